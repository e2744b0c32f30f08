// @ts-check
// An agent between its restore and its first run: it may still change its engine, and nothing of it is lost.

import assert from "node:assert/strict";
import { test } from "node:test";
import { peek } from "../../../pkg/entry/node.js";
import { getEngine } from "../../../pkg/core.js";
import { record } from "../../../pkg/tape.js";
import { Agent, call, misused, misusedLater, scripted, subagent, testTool } from "../kit.mjs";

const pay = () => testTool("pay", () => "paid", { requiresApproval: true });
const options = () => ({ model: scripted(["done"]), tools: [pay()] });

/** A checkpoint with an open question. */
async function asked() {
  const agent = new Agent({ model: scripted([call("pay"), "done"]), tools: [pay()] });
  agent.prompt("Go");
  while (agent.pendingQuestions.length === 0) await new Promise((go) => setTimeout(go, 1));
  const saved = JSON.stringify(agent.checkpoint());
  agent.abort();
  return saved;
}

/** @param {any} agent */
const answered = (agent) => assert.equal(agent.resolve(String(agent.pendingQuestions[0]?.id), "approve"), true);

test("what was decided before the agent is recorded, is decided in its new engine", async () => {
  const agent = await Agent.restore(await asked(), options());
  answered(agent);
  const recorder = await record(agent);
  assert.equal((await agent.continue()).text, "done");
  recorder.stop();
});

test("what was decided, and what waits, outlives the instance of the engine", async () => {
  const agent = await Agent.restore(await asked(), options());
  answered(agent);
  /** @type {any} */ (getEngine()).discard(new Error("the instance broke"));
  assert.equal((await agent.continue()).text, "done");
  const before = new Agent({ model: scripted(["never"]) });
  before.followUp("more");
  const idle = await Agent.restore(JSON.stringify(before.checkpoint()), { model: scripted(["one", "two"]) });
  /** @type {any} */ (getEngine()).discard(new Error("the instance broke"));
  await idle.prompt("Go");
  assert.deepEqual(idle.messages.flatMap((message) => (message.role === "user" ? [/** @type {any} */ (message.content[0]).text] : [])), ["Go", "more"]);
});

test("a checkpoint that is taken at once says what the one before said", async () => {
  /** @type {string[]} */
  const saved = [];
  const agent = new Agent({ model: scripted([call("look"), "done"]), tools: [testTool("look", () => "seen")] });
  for await (const _ of agent.prompt("Go")) saved.push(JSON.stringify(agent.checkpoint()));
  for (const text of saved) {
    const again = (await Agent.restore(text, { model: scripted([]), tools: [testTool("look", () => "seen")] })).checkpoint();
    const told = (/** @type {any} */ checkpoint) => (checkpoint.metadata.turnwheel.untold ?? []).map(({ type }) => type);
    assert.deepEqual(told(again), told(JSON.parse(text)));
  }
});

test("an agent inside that goes on may be a restored one: it becomes that of the checkpoint", async () => {
  const inner = (/** @type {any} */ make) => subagent({ name: "sub", description: "", agent: make });
  const outer = new Agent({ model: scripted([call(["sub", { prompt: "Go" }]), "done"]), tools: [inner(() => new Agent({ model: scripted([call("pay"), "inside is done"]), tools: [pay()] }))] });
  outer.prompt("Go");
  while (outer.pendingQuestions.length === 0) await new Promise((go) => setTimeout(go, 1));
  assert.equal(outer.pendingQuestions.length, 1);
  const saved = JSON.stringify(outer.checkpoint());
  outer.abort();
  const other = await asked();
  const again = await Agent.restore(saved, { model: scripted(["done"]), tools: [inner(() => Agent.restore(other, { model: scripted(["inside is done"]), tools: [pay()] }))] });
  answered(again);
  assert.equal((await again.continue()).text, "done");
  const result = /** @type {any} */ (again.messages.find(({ role }) => role === "tool_result"));
  assert.equal(result.content[0].text, "inside is done");
});

test("a damaged checkpoint is misuse, wherever it is damaged", async () => {
  const checkpoint = JSON.parse(await asked());
  const damages = /** @type {((own: any, checkpoint: any) => void)[]} */ ([
    (own) => (own.children = null), (own) => (own.run.phase.calls[0] = null), (own) => (own.run.phase = null), (_, whole) => (whole.messages[0].role = { __proto__: null }),
  ]);
  for (const damage of damages) {
    const damaged = structuredClone(checkpoint);
    damage(damaged.metadata.turnwheel, damaged);
    const outcome = await Agent.restore(damaged, options()).then(() => undefined, (error) => error);
    if (outcome) misused(() => { throw outcome; }, /./);
    try {
      peek(damaged);
    } catch (error) {
      misused(() => { throw error; }, /./);
    }
  }
  await misusedLater(() => Agent.restore({ ...checkpoint, messages: 5 }, options()), /`messages` must be a list/);
});
