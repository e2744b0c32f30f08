// @ts-check
// What a page shows of a checkpoint before the engine is there: `peek`. And what is true once `Agent.restore` has been awaited.

import assert from "node:assert/strict";
import { test } from "node:test";
import { peek } from "../../../pkg/entry/node.js";
import { Agent, call, misused, misusedLater, scripted, settle, subagent, testTool } from "../kit.mjs";

const pay = () => testTool("pay", () => "paid", { requiresApproval: true });

/** An agent that waits for a decision, and one inside a call of it that does too. */
async function asking() {
  const inner = subagent({ name: "inner", description: "", agent: () => new Agent({ model: scripted([call("pay"), "done"]), tools: [pay()] }) });
  const tools = () => [pay(), inner];
  const agent = new Agent({ model: scripted([call(["inner", { prompt: "Go" }], "pay"), "done"]), tools: tools(), gate: "prefix" });
  agent.prompt("Go");
  while (agent.pendingQuestions.length < 2) await new Promise((go) => setTimeout(go, 1));
  return { agent, tools };
}

test("peek shows the messages and the questions that the restored agent has", async () => {
  const { agent, tools } = await asking();
  const saved = JSON.stringify(agent.checkpoint());
  const shown = peek(saved);
  assert.equal(shown.pendingQuestions.length, 2);
  const restored = await Agent.restore(saved, { model: scripted(["done"]), tools: tools(), gate: "prefix" });
  assert.deepEqual(shown, { messages: restored.messages, pendingQuestions: restored.pendingQuestions });
  assert.deepEqual(peek(new Agent({ model: scripted([]) }).checkpoint()), { messages: [], pendingQuestions: [] });
  agent.abort();
});

test("peek refuses what is no checkpoint as restore does", async () => {
  misused(() => peek(/** @type {any} */ (7)), /a checkpoint must be an object or its JSON, got a number/);
  await misusedLater(() => Agent.restore(/** @type {any} */ (7), { model: scripted([]) }), /a checkpoint must be an object or its JSON, got a number/);
});

test("what only the engine finds wrong is thrown by restore, and not by the first run", async () => {
  const { agent, tools } = await asking();
  const checkpoint = /** @type {any} */ (agent.checkpoint());
  checkpoint.metadata.turnwheel.run.phase.kind = "thinking";
  await misusedLater(() => Agent.restore(checkpoint, { model: scripted([]), tools: tools() }), /the run of the checkpoint cannot be read/);
  const host = { step: async (/** @type {string} */ _, /** @type {() => Promise<any>} */ work) => work() };
  await misusedLater(() => Agent.restore(checkpoint, { model: scripted([]), tools: tools(), host }), /the run of the checkpoint cannot be read/);
  agent.abort();
});

test("a listener of the end may begin the next run while the agent is reset: it is the agent's run", async () => {
  const agent = new Agent({ model: scripted([call("wait"), () => new Promise(() => {})]), tools: [testTool("wait", () => new Promise(() => {}))] });
  const first = agent.prompt("Go");
  await settle();
  /** @type {any} */
  let second;
  const stop = agent.subscribe(({ type }) => {
    if (type !== "agent_end") return;
    stop();
    second = agent.prompt("Again");
  });
  agent.reset();
  assert.equal((await first).stopReason, "aborted");
  assert.deepEqual([agent.isRunning, second !== undefined], [true, true]);
  await settle();
  assert.deepEqual(agent.messages.map(({ role }) => role), ["user"], "the history is new");
  agent.abort();
  assert.equal((await second).stopReason, "aborted");
  assert.equal(agent.isRunning, false);
});

test("a picture in a detail that the format does not know is refused, as by the crate", async () => {
  const withDetail = (/** @type {any} */ detail) => ({ version: /** @type {1} */ (1), format: "stakai_message_v1", run_id: null, messages: [{ role: "user", content: [{ type: "image", url: "u", detail }] }], metadata: {} });
  for (const detail of ["low", "high", "auto", null]) assert.equal(peek(withDetail(detail)).messages.length, 1);
  assert.throws(() => peek(withDetail("huge")), /message 0: `detail` of an image must be `low`, `high` or `auto`/);
});
