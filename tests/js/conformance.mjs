// @ts-check
// node tests/js/conformance.mjs [--engine wasm|web|component] [--queues natural|inbox|provider] [--ag-ui] [--tapes DIR] SCENARIO_DIR TRACE_DIR
// node tests/js/conformance.mjs --replay TAPE_DIR TRACE_DIR
//
// Plays every scenario of a folder, in virtual time, and writes one trace each, in the format of
// tests/data/oracle/README.md, for a judge to compare. The engine is the built package in pkg/ (wasm, behind its public
// API), turnwheel-web (web, see rig/web.mjs) or the core module (component, see rig/component.mjs). What cannot be played is listed by what it needs. `cargo xtask
// conformance --engine wasm` runs it. With `--ag-ui` the runs are also read through turnwheel/ag-ui, and what both versions of
// the AG-UI client accept is counted: everything has to be. With --tapes, a tape of each scenario is written too; with
// --replay, the traces are made of tapes, and of nothing else.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { play, playRecorded } from "./rig/play.mjs";
import { traceOf } from "./rig/replay.mjs";
import { unmetNeed } from "./rig/scenario.mjs";

const QUEUES = ["natural", "inbox", "provider"];
/** @type {Record<string, string>} */
const ENGINES = { wasm: "../../pkg/entry/node.js", web: "./rig/web.mjs", component: "./rig/component.mjs" };

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { engine: { type: "string", default: "wasm" }, queues: { type: "string", default: "natural" }, "ag-ui": { type: "boolean", default: false }, tapes: { type: "string" }, replay: { type: "boolean", default: false } },
});
const [scenarios, traces] = positionals;
const queues = /** @type {any} */ (values.queues);
if (positionals.length !== 2 || !QUEUES.includes(queues) || !Object.hasOwn(ENGINES, values.engine)) {
  console.error("usage: node tests/js/conformance.mjs [--engine wasm|web|component] [--queues natural|inbox|provider] [--ag-ui] SCENARIO_DIR TRACE_DIR");
  process.exit(2);
}

if (values.replay) {
  const tapes = await import("../../pkg/tape.js");
  await tapes.ready();
  mkdirSync(traces, { recursive: true });
  let differ = 0;
  const files = readdirSync(scenarios).filter((name) => name.endsWith(".tape")).sort();
  for (const file of files) {
    try {
      const trace = traceOf(tapes.Tape.parse(readFileSync(join(scenarios, file), "utf8")), tapes);
      writeFileSync(join(traces, file.replace(".tape", ".json")), `${JSON.stringify(trace, null, 2)}\n`);
    } catch (/** @type {any} */ error) {
      console.log(`${join(scenarios, file)}: ${error.message}`);
      differ++;
    }
  }
  console.log(`${files.length} tapes replayed, ${differ} of them otherwise than they were recorded`);
  process.exit(differ === 0 && files.length > 0 ? 0 : 1);
}

// Whatever is loaded on demand is there before virtual time begins.
if (values.engine === "wasm") for (const file of readdirSync(new URL("../../pkg/", import.meta.url))) if (/^core-.*\.js$/.test(file)) await import(`../../pkg/${file}`);
const engine = await import(ENGINES[values.engine]);
const agui = values["ag-ui"] ? new (await import("./ag-ui/verify.mjs")).Verification() : undefined;
/** @type {((agent: any) => any) | undefined} */
let record;
if (values.tapes !== undefined) {
  mkdirSync(values.tapes, { recursive: true });
  const tapes = await import("../../pkg/tape.js");
  await tapes.ready();
  record = tapes.recordNow;
}

// The package reports policies and subscribers that throw, which is expected here.
const report = console.error;
console.error = (/** @type {any[]} */ ...words) => {
  if (!/^turnwheel: a (policy|subscriber) threw/.test(words[0])) report(...words);
};

mkdirSync(traces, { recursive: true });
let written = 0;
/** The skipped files, by what they need. @type {Map<string, string[]>} */
const skipped = new Map();
const skip = (/** @type {string} */ need, /** @type {string} */ file) => skipped.set(need, [...(skipped.get(need) ?? []), file]);

let broken = 0;
const files = readdirSync(scenarios).filter((name) => name.endsWith(".json")).sort();
for (const file of files) {
  let scenario;
  try {
    scenario = JSON.parse(readFileSync(join(scenarios, file), "utf8"));
  } catch (/** @type {any} */ error) {
    console.log(`${join(scenarios, file)}: no JSON: ${error.message}`);
    broken++;
    continue;
  }
  const need = unmetNeed(scenario);
  if (need !== undefined) {
    skip(need, file);
    continue;
  }
  try {
    const onRun = (/** @type {any} */ run) => agui?.read(run);
    let trace;
    if (record) {
      const played = await playRecorded(scenario, queues, engine, record, onRun);
      trace = played.trace;
      writeFileSync(join(/** @type {string} */ (values.tapes), file.replace(".json", ".tape")), played.tape);
    } else trace = await play(scenario, queues, engine, onRun);
    writeFileSync(join(traces, file), `${JSON.stringify(trace, null, 2)}\n`);
    written++;
    await agui?.judge(file);
  } catch (/** @type {any} */ error) {
    skip(`something that the API refuses: ${error.message}`, file);
  }
}

for (const [need, files] of skipped) console.log(`skipped ${files.length}, which need ${need}: ${files.join(", ")}`);
if (files.length === 0) console.log(`no scenario in ${scenarios}: one is a file NAME.json`);
const without = [...skipped.values()].flat().length;
console.log(`${written} traces written, ${without} skipped`);
if (agui) console.log(agui.summary());
process.exit(written > 0 && broken === 0 && !agui?.hasFailed ? 0 : 1);
