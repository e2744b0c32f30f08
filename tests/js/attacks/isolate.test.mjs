// @ts-check
// An instance that dies takes only the runs in it along; an isolated agent has an instance of its own.

import assert from "node:assert/strict";
import { test } from "node:test";
import { getEngine } from "../../../pkg/core.js";
import { Agent, agentLoop, call, deferred, scripted, settle, subagent, testTool, textOf } from "../kit.mjs";

/** The memories of all instances, in the order in which they were made. @type {WebAssembly.Memory[]} */
const memories = [];
const { Instance } = WebAssembly;
WebAssembly.Instance = /** @type {any} */ (new Proxy(Instance, {
  construct(target, given) {
    const made = Reflect.construct(target, given);
    memories.push(made.exports.memory);
    return made;
  },
}));

/** An agent that kills an instance: the shared one, or the one that was made last. @param {"shared" | "own"} which @returns {any} */
const killer = (which) => ({
  model: scripted([call("kill"), "never"]),
  tools: [testTool("kill", () => void new Uint8Array((which === "own" ? /** @type {any} */ (memories.at(-1)) : /** @type {any} */ (getEngine()).memory).buffer).fill(0xff))],
  isolate: which === "own",
});

/** A run that waits for its tool. @param {any} [options] */
async function waiting(options) {
  const gate = deferred();
  const begun = deferred();
  const agent = new Agent({ model: scripted([call("wait"), "whole", "later"]), tools: [testTool("wait", () => (begun.resolve(), gate.promise))], ...options });
  const run = agent.prompt("Go");
  await begun.promise;
  return { agent, end: () => (gate.resolve("ok"), run) };
}

test("what kills an isolated agent's instance ends nobody else's run, and it has a fresh one for its next run", async () => {
  const others = [await waiting(), await waiting({ isolate: true }), await waiting({ isolate: true })];
  const agent = new Agent(killer("own"));
  const { error } = await agent.prompt("Go");
  assert.deepEqual([error?.code, error?.phase], ["internal", "engine"]);
  agent.model = scripted(["well again"]);
  assert.equal((await agent.prompt("And now?")).text, "well again");
  assert.equal((await agentLoop(["Go"], killer("own"))).error?.code, "internal");
  for (const { end } of others) assert.equal((await end()).text, "whole");
});

test("what kills the shared instance ends no isolated agent's run", async () => {
  const isolated = await waiting({ isolate: true });
  const sharing = await waiting();
  assert.equal((await new Agent(killer("shared")).prompt("Go")).error?.code, "internal");
  assert.equal((await sharing.end()).error?.code, "internal");
  assert.equal((await isolated.end()).text, "whole");
});

test("a sub-agent lives where its parent lives, unless it is isolated itself", async () => {
  for (const [parent, child, ends] of /** @type {const} */ ([[true, false, "error"], [true, true, "completed"], [false, true, "completed"]])) {
    const other = await waiting();
    const tools = [subagent({ name: "ask", description: "asks another", agent: () => new Agent({ ...killer("own"), isolate: child }) })];
    const agent = new Agent({ model: scripted([call(["ask", { prompt: "Go" }]), "done"]), tools, isolate: parent });
    assert.equal((await agent.prompt("Go")).stopReason, ends, `parent ${parent}, child ${child}`);
    assert.equal((await other.end()).text, "whole");
  }
});

test("a checkpoint goes from an isolated agent to one that is not, and back", async () => {
  const { agent, end } = await waiting({ isolate: true, sessionState: { n: 1 } });
  const checkpoint = agent.checkpoint();
  await end();
  for (const isolate of [true, false]) {
    const restored = await Agent.restore(checkpoint, { model: scripted(["restored"]), tools: [testTool("wait", () => "again", { idempotent: true })], isolate });
    assert.equal((await restored.continue()).text, "restored");
    assert.equal((await (await Agent.restore(restored.checkpoint(), { model: scripted(["more"]), isolate: !isolate })).prompt("Go on")).text, "more");
  }
});

test("an agent that was idle when its instance died has lost nothing: its letters and its session state", async () => {
  const seen = /** @type {any[]} */ ([]);
  const tools = [testTool("note", (/** @type {any} */ _, /** @type {any} */ { state }) => { seen.push(state.get("n")); state.set("n", state.get("n") + 1); return "noted"; })];
  const agent = new Agent({ model: scripted([call("note"), "one", "two", call("note"), "three"]), tools, sessionState: { n: 1 } });
  await agent.prompt("Go");
  const usage = agent.checkpoint().metadata.turnwheel?.usage;
  const receipt = agent.followUp("a letter");
  await new Agent(killer("shared")).prompt("Go");
  await settle();
  assert.equal(agent.checkpoint().metadata.turnwheel?.mail?.length, 1);
  assert.deepEqual(agent.checkpoint().metadata.turnwheel?.usage, usage);
  const { text } = await agent.prompt("Again");
  assert.equal(text, "three");
  assert.equal((await receipt).delivered, true);
  assert.deepEqual(seen, [1, 2]);
  assert.equal(agent.messages.filter(({ content }) => JSON.stringify(content).includes("a letter")).length, 1);
});

test("a run from a checkpoint that has not gone on yet outlives the instance", async () => {
  const pay = testTool("pay", () => "paid", { requiresApproval: true });
  const asked = new Agent({ model: scripted([call("pay"), "never"]), tools: [pay] });
  const run = asked.prompt("Go");
  await settle();
  const restored = await Agent.restore(run.checkpoint(), { model: scripted(["restored"]), tools: [pay] });
  await new Agent(killer("shared")).prompt("Go");
  assert.equal((await run).error?.code, "internal");
  assert.deepEqual(restored.pendingApprovals.map(({ callId }) => callId), ["c1"]);
  const going = restored.continue();
  restored.resolveTool("c1", "approve");
  const { text, messages } = await going;
  assert.deepEqual([text, textOf(/** @type {any} */ (messages.find(({ role }) => role === "tool_result")))], ["restored", "paid"]);
});

test("a listener that throws when its instance dies keeps no other run from its end", async (t) => {
  t.mock.method(console, "error", () => {});
  const runs = [];
  for (let i = 0; i < 4; i++) {
    const one = await waiting({ hooks: { onError: () => { throw new Error("no"); } } });
    one.agent.subscribe(() => { throw new Error("nor here"); });
    runs.push(one);
  }
  await new Agent(killer("shared")).prompt("Go");
  for (const { end } of runs) assert.equal((await end()).error?.code, "internal");
});

test("`isolate` is a flag", () => {
  assert.throws(() => new Agent({ model: scripted([]), isolate: /** @type {any} */ ("yes") }), /`isolate` must be/);
});
