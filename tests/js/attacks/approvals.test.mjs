// @ts-check
// Decisions that are about something else than what would run: stale ids, reused call ids, forks, swapped tools.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, custom, scripted, settle, testTool } from "../kit.mjs";

/** The amounts that were paid. @type {number[]} */
const paid = [];
const pay = () => testTool("pay", (/** @type {any} */ { n }) => (paid.push(n), `paid ${n}`), { requiresApproval: true });
const payments = (/** @type {number[]} */ ...amounts) => scripted([...amounts.map((n) => ({ toolCalls: [{ callId: "t1", toolName: "pay", arguments: { n } }] })), "done", "done"]);
const refusals = (/** @type {any} */ agent) => {
  /** @type {any[]} */
  const events = [];
  agent.subscribe((/** @type {any} */ event) => event.type === "command_refused" && events.push(event));
  return events;
};
const begin = () => void (paid.length = 0);

test("a decision about a question of before a reset does not approve a call with the same id", async () => {
  begin();
  const agent = new Agent({ model: payments(1, 1000), tools: [pay()] });
  const refused = refusals(agent);
  agent.prompt("one");
  await settle();
  const [first] = agent.pendingQuestions;
  assert.deepEqual([first?.kind, first?.callId, first?.path, first?.arguments], ["tool", "t1", [], { n: 1 }]);
  agent.reset();
  assert.equal(agent.resolve(String(first?.id), "approve"), false, "nothing runs");
  agent.prompt("two");
  await settle();
  assert.equal(agent.resolve(String(first?.id), "approve"), false);
  assert.equal(agent.resolveTools({ [String(first?.id)]: "approve" }), false);
  await settle();
  assert.deepEqual([paid, agent.pendingApprovals.map((one) => one.arguments), refused.length], [[], [{ n: 1000 }], 2]);
  assert.notEqual(agent.pendingQuestions[0]?.id, first?.id);
  agent.abort();
});

test("a decision that comes between two runs is not kept for the next one", async () => {
  begin();
  const agent = new Agent({ model: payments(5), tools: [pay()], earlyDecisions: "park" });
  assert.equal(agent.resolveTool("t1", "approve"), false);
  agent.prompt("Go");
  await settle();
  assert.deepEqual([paid, agent.pendingApprovals.length], [[], 1]);
  agent.abort();
});

test("a decision before the question is refused, unless the host parks it", async () => {
  for (const earlyDecisions of /** @type {const} */ (["refuse", "park"])) {
    begin();
    const agent = new Agent({ model: payments(5), tools: [pay()], earlyDecisions });
    const refused = refusals(agent);
    const run = agent.prompt("Go");
    assert.equal(agent.resolveTool("t1", "approve"), earlyDecisions === "park");
    await settle();
    assert.deepEqual([paid, refused.length], earlyDecisions === "park" ? [[5], 0] : [[], 1]);
    agent.abort();
    await run;
  }
  assert.throws(() => new Agent({ model: payments(5), earlyDecisions: /** @type {any} */ ("perhaps") }), /earlyDecisions/);
});

test("what was parked for an answer that was reset is gone with it", async () => {
  begin();
  let attempt = 0;
  const model = custom("m", async function* () {
    attempt += 1;
    if (attempt > 2) return void (yield { type: "text_delta", contentIndex: 0, delta: "done" }, yield { type: "done", stopReason: "stop" });
    yield { type: "tool_call_start", contentIndex: 0, callId: "t1", toolName: "pay" };
    yield { type: "tool_call_delta", contentIndex: 0, delta: `{"n":${attempt === 1 ? 1 : 1000}}` };
    if (attempt === 1) return void (yield { type: "error", error: { code: "overloaded", message: "busy", retryable: true } });
    yield { type: "tool_call_end", contentIndex: 0 };
    yield { type: "done", stopReason: "tool_use" };
  });
  const agent = new Agent({ model, tools: [pay()], earlyDecisions: "park", retry: { initialBackoffMs: 1, jitter: false }, host: { sleep: async () => {} } });
  let isParked = false;
  agent.subscribe((event) => {
    if (event.type === "message_update" && !isParked) isParked = agent.resolveTool("t1", "approve");
  });
  // The delay before the next attempt is one of the clock: however long it takes, the question comes.
  const asked = new Promise((resolve) => agent.subscribe((event) => event.type === "tool_approval_requested" && resolve(event)));
  agent.prompt("Go");
  await asked;
  await settle();
  assert.deepEqual([isParked, paid, agent.pendingApprovals.map((one) => one.arguments)], [true, [], [{ n: 1000 }]]);
  agent.abort();
});

test("the first answer counts, the second is told so", async () => {
  begin();
  const agent = new Agent({ model: payments(5), tools: [pay()] });
  const refused = refusals(agent);
  const run = agent.prompt("Go");
  await settle();
  const id = String(agent.pendingQuestions[0]?.id);
  assert.deepEqual([agent.resolve(id, "reject"), agent.resolve(id, "approve"), agent.resolveTools({ [id]: "approve", t1: "approve" })], [true, false, false]);
  await run;
  assert.deepEqual([paid, refused.length, agent.resolve(id, "approve"), agent.pendingQuestions], [[], 2, false, []]);
});

test("two runs from one checkpoint share the open question, and no other", async () => {
  begin();
  const first = new Agent({ model: payments(1), tools: [pay()] });
  first.prompt("Go");
  await settle();
  const saved = JSON.stringify(first.checkpoint());
  const script = () => scripted([{ toolCalls: [{ callId: "t2", toolName: "pay", arguments: { n: 2 } }] }, "done"]);
  const forks = await Promise.all([1, 2].map(() => Agent.restore(saved, { model: script(), tools: [pay()] })));
  const ids = new Set();
  for (const fork of forks) {
    assert.equal(fork.pendingQuestions[0]?.id, first.pendingQuestions[0]?.id);
    fork.continue();
    await settle();
    assert.ok(fork.resolve(String(first.pendingQuestions[0]?.id), "approve"));
    await settle();
    ids.add(fork.pendingQuestions[0]?.id);
  }
  assert.deepEqual([paid, ids.size], [[1, 1], 2]);
  const [one, two] = forks;
  assert.equal(two?.resolve(String(one?.pendingQuestions[0]?.id), "approve"), false, "the other's question");
  first.abort();
  for (const fork of forks) fork.abort();
});

test("tools that are swapped while a person decides run in the next turn, not in this one", async () => {
  /** @type {string[]} */
  const ran = [];
  const tool = (/** @type {string} */ name) => testTool("send", () => (ran.push(name), "sent"), { requiresApproval: true });
  const agent = new Agent({ model: scripted([1, 2].map((n) => ({ toolCalls: [{ callId: `c${n}`, toolName: "send" }] })).concat(/** @type {any} */ ("done"))), tools: [tool("shown")] });
  const run = agent.prompt("Go");
  await settle();
  agent.tools = [tool("other")];
  for (let i = 0; i < 50; i++) agent.tools = [tool("swapped")];
  agent.resolveTool("c1", "approve");
  await settle();
  assert.deepEqual(ran, ["shown"]);
  agent.resolveTool("c2", "approve");
  await run;
  assert.deepEqual(ran, ["shown", "swapped"]);
});

test("a tool that no longer asks, and one that was removed, do not change what was asked", async () => {
  /** @type {string[]} */
  const ran = [];
  const agent = new Agent({ model: scripted([{ toolCalls: [{ callId: "c1", toolName: "send", arguments: { n: 1 } }] }, "done"]), tools: [testTool("send", () => (ran.push("first"), "sent"), { requiresApproval: true, parameters: { type: "object", properties: { n: { type: "number" } }, additionalProperties: false } })] });
  const run = agent.prompt("Go");
  await settle();
  agent.tools = [testTool("send", () => (ran.push("second"), "sent"))];
  await settle();
  assert.deepEqual(ran, [], "it waits still");
  agent.tools = [];
  agent.resolveTool("c1", { action: "approve", arguments: { n: 1, more: true } });
  await run;
  assert.deepEqual(ran, [], "the schema of then judges");
  assert.equal(/** @type {any} */ (agent.messages[2]).cause, "invalid_arguments");
});
