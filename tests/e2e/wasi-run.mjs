// @ts-check
// Runs the tests of one file, compiled for WASI: node wasi-run.mjs ROOT FILE [NAME...], without those whose names have one of the words

import { readFileSync } from "node:fs";
import { WASI } from "node:wasi";

const [, , root, file, ...without] = /** @type {[string, string, string, string, ...string[]]} */ (process.argv);
// WASI has no threads and no processes; only the unstable test harness can be told to do without them.
const args = [file, "--test-threads=1", "-Zunstable-options", "--force-run-in-process", ...["panic", ...without].flatMap((word) => ["--skip", word])];
const wasi = new WASI({ version: "preview1", args, env: { RUSTC_BOOTSTRAP: "1", TURNWHEEL_RUNS: "2000" }, preopens: { [root]: root, ".": root } });
const { instance } = await WebAssembly.instantiate(readFileSync(file), /** @type {any} */ (wasi.getImportObject()));
process.exitCode = Number(wasi.start(instance));
