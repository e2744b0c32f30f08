// @ts-check
// Writes the engines as text: a workflow's VM can read no files. The body runs in that of the server, for it has `host.step`; its steps
// run in that of pages.   node wasm.mjs

import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

const folder = dirname(createRequire(import.meta.url).resolve("turnwheel/slim"));
const text = (/** @type {string} */ file) => JSON.stringify(readFileSync(join(folder, file), "base64"));
writeFileSync("wasm.js", `export const pageEngine = ${text("turnwheel.wasm")};\nexport const serverEngine = ${text("turnwheel-server.wasm")};\n`);
