// @ts-check
// compaction: "summarize": the agent's own model shortens the conversation.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, clock, custom, readRun, scripted } from "../kit.mjs";

const overflow = { error: { code: /** @type {const} */ ("context_overflow"), message: "too long" } };

/** A long conversation. @returns {any[]} */
const story = () => Array.from({ length: 20 }, (_, n) => ({ role: "user", content: [{ type: "text", text: `${n}: ${"x".repeat(4_000)}` }], timestamp: 1 }));

/** A scripted model that records its requests. @param {any[]} items */
function noted(items) {
  /** @type {any[]} */
  const requests = [];
  const model = scripted(items.map((item) => (/** @type {any} */ request) => (requests.push(request), item)));
  return { model, requests };
}

/** @param {any} message */
const textsOf = (message) => message.content.map((/** @type {any} */ block) => block.text ?? "").join("");

test("summarize: what is old becomes a summary by the same model, the newest messages stay, its usage counts", async () => {
  const { model, requests } = noted([overflow, { text: "they told a story", usage: { input: 900, output: 30 } }, { text: "fine", usage: { input: 10, output: 1 } }]);
  const agent = new Agent({ model, messages: story(), compaction: "summarize", tools: [{ name: "t", description: "", parameters: { type: "object" }, execute: () => "" }] });
  const outcome = await readRun(agent.prompt("go on"));
  assert.equal(outcome.result.text, "fine");
  assert.equal(requests.length, 3);
  assert.equal(requests[1].tools.length, 0);
  assert.match(textsOf(requests[1].messages.at(-1)), /User: 0: x/);
  assert.match(textsOf(requests[2].messages[0]), /they told a story$/);
  assert.equal(textsOf(requests[2].messages.at(-1)), "go on");
  assert.ok(requests[2].messages.length < 12);
  assert.deepEqual([outcome.result.usage.input, outcome.result.usage.output], [910, 31]);
  const [{ report }] = outcome.all("context_compacted");
  assert.ok(report.overflow && report.droppedCount > 5 && report.tokensAfter < report.tokensBefore);
  assert.deepEqual(agent.messages.map(textsOf), [...requests[2].messages.map(textsOf), "fine"]);
});

test("summarize: a failed call is tried again, one that fails for good ends the turn with both reasons", async () => {
  const busy = { error: { code: /** @type {const} */ ("overloaded"), message: "busy" } };
  const host = clock().host;
  const { model, requests } = noted([overflow, busy, "in short", "fine"]);
  const { result } = await readRun(new Agent({ model, messages: story(), compaction: "summarize", host }).prompt("go"));
  assert.deepEqual([result.text, requests.length], ["fine", 4]);
  const failing = scripted([overflow, { error: { code: "auth", message: "no key" } }]);
  const outcome = await readRun(new Agent({ model: failing, messages: story(), compaction: "summarize" }).prompt("go"));
  assert.match(outcome.result.error?.message ?? "", /too long.*no key/);
  assert.equal(outcome.result.error?.code, "context_overflow");
});

test("summarize: an abort ends it at once", async () => {
  /** @type {any} */
  let run;
  const silent = () => (queueMicrotask(() => run.abort("enough")), { text: "never", delayMs: 1e9 });
  run = new Agent({ model: scripted([overflow, silent]), messages: story(), compaction: "summarize" }).prompt("go");
  const { result } = await readRun(run);
  assert.deepEqual([result.stopReason, result.error?.message], ["aborted", "enough"]);
});

test("summarize: a conversation that is short all the same cannot be shortened", async () => {
  const { model, requests } = noted([overflow]);
  const { result } = await readRun(new Agent({ model, compaction: "summarize" }).prompt("x".repeat(50_000)));
  assert.match(result.error?.message ?? "", /nothing to summarise/);
  assert.equal(requests.length, 1);
});

test("a known window: room is made before the call, by the provider's count and an estimate of what came since", async () => {
  /** @type {any[]} */
  const requests = [];
  const counts = [980, 12, 14];
  const model = custom("small", async function* (request) {
    requests.push(request);
    const n = requests.length;
    yield { type: "text_start", contentIndex: 0 };
    yield { type: "text_delta", contentIndex: 0, delta: `answer ${n}` };
    yield { type: "text_end", contentIndex: 0 };
    yield { type: "done", stopReason: "stop", usage: { input: counts[n - 1] } };
  }, { contextWindow: 1_000 });
  /** @type {number[]} */
  const compacted = [];
  const agent = new Agent({ model, compaction: { engine: async (messages) => (compacted.push(messages.length), { messages: messages.slice(-1), report: { text: "the newest" } }) } });
  await agent.prompt("one");
  const outcome = await readRun(agent.prompt("x".repeat(100)));
  assert.deepEqual(outcome.all("context_compacted").map((event) => event.report.overflow), [true]);
  await agent.prompt("three");
  assert.deepEqual(compacted, [3]);
  assert.deepEqual(requests.map((request) => request.messages.length), [1, 1, 3]);
});
