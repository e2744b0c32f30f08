// The engine's memory in WebAssembly: bytes per byte of an answer, the peak for an answer that is refused, many runs,
// many agents.   node --expose-gc benches/memory.mjs [agents]
// Each row is measured in a process of its own: the memory of WebAssembly never shrinks.
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { Agent, openai } from "../pkg/entry/node.js";
import { getEngine } from "../pkg/core.js";

const MB = 1 << 20;
/** Those of the engines that were used: one that grew and is idle is replaced. @type {Set<WebAssembly.Memory>} */
const memories = new Set();
const sizeOf = (/** @type {WebAssembly.Memory} */ memory) => memory.buffer.byteLength;
const size = () => sizeOf(getEngine().memory);
const frame = (delta) => `data: ${JSON.stringify({ choices: [{ delta }] })}\n\n`;
const encoder = new TextEncoder();

/** An answer of a length, in pieces of 40 bytes, as models send them. @param {number} bytes @param {(piece: string) => object} delta */
function answer(bytes, delta) {
  const piece = encoder.encode(frame(delta("a word or two of what a model says here ".slice(0, 40))).repeat(50));
  let left = bytes;
  return new Response(new ReadableStream({
    pull(controller) {
      if (left <= 0) {
        controller.enqueue(encoder.encode("data: [DONE]\n\n"));
        return controller.close();
      }
      controller.enqueue(piece);
      left -= 2_000;
    },
  }, { highWaterMark: 0 }));
}

const small = () => new Response(frame({ content: "done" }) + "data: [DONE]\n\n");
const agentOf = (fetch, limits) => new Agent({ model: openai("m", { apiKey: "k", fetch, limits }), systemPrompt: "You help.", retry: { maxAttempts: 1 } });

/** Collects what is garbage, and lets the finalizers run. */
async function collect() {
  for (let i = 0; i < 5; i++) {
    globalThis.gc?.();
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** One answer of a length. */
async function one(bytes, delta, limits) {
  await agentOf(async () => small()).prompt("Go");
  const { memory } = getEngine();
  const before = sizeOf(memory);
  const agent = agentOf(async () => answer(bytes, delta), limits);
  const { stopReason } = await agent.prompt("Go");
  const grown = sizeOf(memory) - before;
  return { "MB": (grown / MB).toFixed(1), "bytes per byte": (grown / bytes).toFixed(2), "note": stopReason === "error" ? "refused" : "" };
}

/** Many agents, one run each. */
async function agents(count, after) {
  const held = [];
  let first = 0;
  // Held agents keep the engines in which they are.
  const all = () => (after === "held" ? [...memories.add(getEngine().memory)].reduce((sum, memory) => sum + sizeOf(memory), 0) : size());
  for (let i = 0; i < count; i++) {
    const agent = agentOf(async () => small());
    await agent.prompt("Go");
    if (after === "disposed") agent[Symbol.dispose]();
    if (after === "held") held.push(agent);
    if (after === "held") memories.add(getEngine().memory);
    if (i === 999) first = all();
    if (i % 500 === 499) await collect();
  }
  const grown = all() - first;
  return { "MB": (all() / MB).toFixed(1), "note": grown === 0 ? "flat from the 1,000th on" : `${(grown / (count - 1_000) / 1024).toFixed(2)} KB for each after the 1,000th` };
}

/** Runs of one agent after the other, whose history is emptied in between. */
async function runs(count) {
  const agent = agentOf(async () => small());
  for (let i = 0; i < count / 10; i++) (await agent.prompt("Go"), agent.reset());
  const before = size();
  for (let i = 0; i < count; i++) (await agent.prompt("Go"), agent.reset());
  return { "MB": (size() / MB).toFixed(1), "note": size() === before ? "flat" : `${size() - before} bytes more` };
}

const text = (content) => ({ content });
const thinking = (reasoning_content) => ({ reasoning_content });
const some = Number(process.argv[2] ?? 20_000) || 20_000;
const ROWS = {
  "an answer of 1 MB": () => one(MB, text),
  "an answer of 4 MB": () => one(4 * MB, text),
  "an answer of 7.9 MB": () => one(7.9 * MB, text),
  "thinking of 4 MB": () => one(4 * MB, thinking),
  "an answer of 64 MB": () => one(64 * MB, text),
  "an answer of 64 MB, limit 128 MB": () => one(64 * MB, text, { answer: 128 * MB }),
  "1,000 runs of one agent": () => runs(1_000),
  [`${some} agents, disposed of`]: () => agents(some, "disposed"),
  [`${some} agents, forgotten`]: () => agents(some, "forgotten"),
  [`${some} agents, held`]: () => agents(some, "held"),
};

const row = process.argv[3];
if (row) {
  process.stdout.write(JSON.stringify(await ROWS[row]()));
  process.exit(0);
}
const table = {};
for (const name of Object.keys(ROWS)) table[name] = JSON.parse(execFileSync(process.execPath, ["--expose-gc", fileURLToPath(import.meta.url), String(some), name], { encoding: "utf8" }));
console.table(table);
