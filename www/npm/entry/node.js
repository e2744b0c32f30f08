// Node, Bun: the bytes are read when the first run begins.
import { readFileSync } from "node:fs";
import { use } from "../engine.js";

use(() => readFileSync(new URL("../turnwheel.wasm", import.meta.url)));

export * from "../index.js";
