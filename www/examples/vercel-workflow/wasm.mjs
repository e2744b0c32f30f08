// @ts-check
// Writes the engine as text: a workflow's VM can read no files.   node wasm.mjs

import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

const entry = createRequire(import.meta.url).resolve("turnwheel/slim");
writeFileSync("wasm.js", `export default "${readFileSync(join(dirname(entry), "turnwheel.wasm"), "base64")}";\n`);
