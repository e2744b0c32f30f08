// @ts-check
// The memory of wasm never shrinks: an instance that grew and in which nothing is going on is replaced, and its agents
// go on in the next one as if nothing had happened.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { getEngine } from "../../../pkg/core.js";
import { Agent, call, custom, deferred, readRun, scripted, settle, testTool, textOf } from "../kit.mjs";

setFlagsFromString("--expose-gc");
/** @type {() => void} */
const gc = runInNewContext("gc");

const MB = 2 ** 20;
/** A model whose answers may have any length. @param {string[]} answers */
const unlimited = (...answers) => custom("long", async function* () {
  yield { type: "start" };
  yield { type: "text_start", contentIndex: 0 };
  yield { type: "text_delta", contentIndex: 0, delta: answers.shift() ?? "" };
  yield { type: "text_end", contentIndex: 0 };
  yield { type: "done", stopReason: "stop" };
}, { limits: { answer: Infinity } });
const engine = () => /** @type {any} */ (getEngine());
const bytes = () => engine().memory.buffer.byteLength;

/** Collects until nobody holds the instance. @param {WeakRef<object>} held */
async function isGone(held) {
  for (let i = 0; i < 20 && held.deref(); i++) {
    await settle();
    gc();
  }
  return held.deref() === undefined;
}

/** Lets the shared instance grow: six answers of 5 MB. */
async function grow() {
  const agents = Array.from({ length: 6 }, (_, i) => new Agent({ model: scripted([{ text: String(i).repeat(5 * MB) }, `after ${i}`]) }));
  for (const agent of agents) await agent.prompt("Go");
  return agents;
}

/** Grows the instance while this run is in progress in it, so that it is replaced only when that has ended. @param {any} options */
async function during(options) {
  const gate = deferred();
  const begun = deferred();
  const agent = new Agent({ tools: [testTool("wait", () => (begun.resolve(), gate.promise))], ...options, model: scripted([call("wait"), ...(options.answers ?? ["done", "more"])]) });
  const run = agent.prompt("Go");
  await begun.promise;
  const before = new WeakRef(engine());
  await grow();
  assert.equal(before.deref(), engine(), "replaced under a run in progress");
  return { agent, before, end: () => (gate.resolve(""), run) };
}

test("after 30 MB of answers and a moment of rest, the memory is free again, and every agent goes on", async () => {
  await new Agent({ model: scripted(["small"]) }).prompt("Go");
  const small = bytes();
  const gate = deferred();
  const begun = deferred();
  const waiting = new Agent({ model: scripted([call("wait"), "done"]), tools: [testTool("wait", () => (begun.resolve(), gate.promise))] }).prompt("Go");
  await begun.promise;
  const agents = await grow();
  assert.ok(bytes() > 30 * MB, `${bytes()}`);
  const grown = new WeakRef(engine());
  gate.resolve();
  assert.equal((await waiting).text, "done");
  await settle();
  assert.notEqual(engine(), grown.deref(), "the grown instance is still there");
  assert.ok(bytes() <= small + MB, `${bytes()} of ${small}`);
  assert.ok(await isGone(grown), "somebody holds the grown instance");
  for (const [i, agent] of agents.entries()) {
    assert.equal(textOf(agent.messages[1]).length, 5 * MB);
    assert.equal((await agent.prompt("And?")).text, `after ${i}`);
    assert.equal(agent.messages.length, 4);
  }
});

test("a large conversation is not carried to and fro", async () => {
  const agent = new Agent({ model: unlimited("x".repeat(20 * MB), ...Array(20).fill("more")) });
  await agent.prompt("Go");
  await settle();
  const engines = new Set();
  for (let i = 0; i < 20; i++) {
    await agent.prompt("Go on");
    await settle();
    engines.add(engine());
  }
  assert.ok(engines.size <= 2, `${engines.size} instances for 20 runs`);
  agent[Symbol.dispose ?? Symbol.for("Symbol.dispose")]();
  await settle();
  assert.ok(bytes() < 4 * MB, "an agent that is disposed of takes its weight along");
});

test("what an agent has in the grown instance goes along: session state, usage, settings", async () => {
  const seen = /** @type {any[]} */ ([]);
  const note = testTool("note", (/** @type {any} */ _, /** @type {any} */ { state }) => { seen.push(state.get("n")); state.set("n", (state.get("n") ?? 0) + 1); return "noted"; });
  const agent = new Agent({ model: scripted([call("note"), "one", call("note"), "two"]), tools: [note] });
  await agent.prompt("Go");
  const { usage } = agent;
  const { end, before } = await during({});
  await end();
  await settle();
  assert.ok(await isGone(before));
  const checkpoint = agent.checkpoint();
  assert.deepEqual(checkpoint.metadata.turnwheel?.session, { n: 1 });
  assert.deepEqual(agent.usage, usage);
  agent.systemPrompt = "changed meanwhile";
  const { result } = await readRun(agent.prompt("Again"));
  assert.equal(result.text, "two");
  assert.deepEqual(seen, [undefined, 1]);
});

test("a letter that waits in the grown instance is delivered, and its receipt settles", async () => {
  const agent = new Agent({ model: scripted(["one", "two", "three"]) });
  await agent.prompt("Go");
  const receipt = agent.followUp("a letter");
  const { end, before } = await during({});
  await end();
  await settle();
  assert.equal((await agent.prompt("Again")).text, "three");
  assert.equal((await receipt).delivered, true);
  assert.equal(agent.messages.filter((message) => textOf(message) === "a letter").length, 1);
  await settle();
  assert.ok(await isGone(before), "nothing waits there any more");
});

test("a run that nobody has read to its end, one that waits for a person, and a restored one outlive it", async () => {
  const ask = testTool("pay", () => "paid", { requiresApproval: true });
  const asked = new Agent({ model: scripted([call("pay"), "done"]), tools: [ask] });
  const requested = deferred();
  asked.subscribe(({ type }) => { if (type === "tool_approval_requested") requested.resolve(); });
  const pending = asked.prompt("Go");
  await requested.promise;
  const restored = await Agent.restore(asked.checkpoint(), { model: scripted(["restored"]), tools: [ask] });
  const unread = new Agent({ model: scripted(["unread"]) }).prompt("Go");
  const iterator = unread[Symbol.asyncIterator]();
  await grow();
  const grown = new WeakRef(engine());
  asked.resolveTool("c1", "approve");
  assert.equal((await pending).text, "done");
  await settle();
  assert.notEqual(engine(), grown.deref());
  assert.equal(restored.pendingApprovals.length, 1);
  const events = [];
  for (let step; !(step = await iterator.next()).done; ) events.push(step.value.type);
  assert.equal(events.at(-1), "agent_end");
  const run = restored.continue();
  restored.resolveTool("c1", "approve");
  assert.equal((await run).text, "restored");
});

test("an isolated agent's instance is replaced too", async () => {
  let made = 0;
  const { Instance } = WebAssembly;
  WebAssembly.Instance = /** @type {any} */ (new Proxy(Instance, { construct: (target, given) => (made++, Reflect.construct(target, given)) }));
  const agent = new Agent({ model: unlimited("x".repeat(20 * MB), "small", "again"), isolate: true });
  await agent.prompt("Go");
  await settle();
  await agent.prompt("Go on");
  await agent.prompt("Go on");
  WebAssembly.Instance = Instance;
  assert.equal(made, 2);
});
