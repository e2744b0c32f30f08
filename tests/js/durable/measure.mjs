// @ts-check
// What an agent in a Durable Object costs:   node tests/js/durable/measure.mjs
// Prints the tables of www/examples/durable-object/README.md. Storage and rows are counted; memory is what workerd grows by,
// so it holds here and near there.

import { readFileSync, readdirSync } from "node:fs";
import { RemoteAgent } from "../../../pkg/remote.js";
import { start } from "./bundle.mjs";

const quiet = (/** @type {any} */ out, /** @type {any} */ errors) => void (out.resume(), errors.resume());
const server = await start("measured.mjs", { handleRuntimeStdio: quiet });
await server.ready;

/** @param {string} name */
function agent(name) {
  const at = `http://worker.example/agents/${name}`;
  const fetch = (/** @type {any} */ url, /** @type {any} */ { headers, body, method, signal }) => server.dispatchFetch(String(url), { headers: Object.fromEntries(headers), body, method, signal });
  return { agent: new RemoteAgent({ url: at, fetch: /** @type {any} */ (fetch) }), counts: async () => /** @type {any} */ (await (await server.dispatchFetch(`${at}/counts`)).json()) };
}

/** Memory of the workerd that this process started, in KB. */
function resident() {
  const read = (/** @type {string} */ path) => { try { return readFileSync(path, "utf8"); } catch { return ""; } };
  const own = readdirSync("/proc").filter((pid) => /^\d+$/.test(pid) && new RegExp(`\\) [A-Z] ${process.pid} `).test(read(`/proc/${pid}/stat`)) && read(`/proc/${pid}/cmdline`).includes("workerd"));
  return own.reduce((sum, pid) => sum + Number(/VmRSS:\s+(\d+)/.exec(read(`/proc/${pid}/status`))?.[1] ?? 0), 0);
}

const kb = (/** @type {number} */ bytes) => `${(bytes / 1024).toFixed(0)} KB`;
console.log("| prompts | conversation | database | events | checkpoints written | ms per prompt |\n|---|---|---|---|---|---|");
const long = agent("long");
long.agent.subscribe(() => {});
let done = 0;
for (const prompts of [1, 10, 50]) {
  const from = performance.now();
  const added = prompts - done;
  for (; done < prompts; done++) await long.agent.prompt(`Question ${done}, of some length, as people write them.`);
  const { history, database, events, checkpoints, checkpointBytes } = await long.counts();
  console.log(`| ${prompts} | ${kb(history)} | ${kb(database)} | ${events} | ${checkpoints}, ${kb(checkpointBytes)} in all | ${((performance.now() - from) / added).toFixed(0)} |`);
}
long.agent[Symbol.dispose]();

const OBJECTS = 300;
const before = resident();
for (let i = 0; i < OBJECTS; i++) {
  const one = agent(`object-${i}`);
  await one.agent.prompt("Hello");
  one.agent[Symbol.dispose]();
}
const idle = resident();
const listeners = Array.from({ length: OBJECTS }, (_, i) => agent(`object-${i}`).agent);
for (const listener of listeners) { listener.subscribe(() => {}); await listener.ready(); }
const heard = resident();
console.log(`\nmemory: ${((idle - before) / OBJECTS).toFixed(0)} KB per object after one prompt, ${((heard - idle) / OBJECTS).toFixed(0)} KB more per open listener (${OBJECTS} objects, ${(before / 1024).toFixed(0)} MB before)`);
for (const listener of listeners) listener[Symbol.dispose]();
await server.dispose();
