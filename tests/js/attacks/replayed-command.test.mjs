// @ts-check
// Commands that come again, at once, much later, or after many others: as long as anybody could continue from where they
// were sent, they are answered as the first time and do nothing.

import assert from "node:assert/strict";
import { test } from "node:test";
import { agentHandler, memoryEvents } from "../../../pkg/server.js";
import { Agent, call, scripted, settle, testTool } from "../kit.mjs";

const serve = (/** @type {any} */ agent, /** @type {any} */ options = {}) => {
  const handler = agentHandler(agent, options);
  return async (/** @type {string} */ name, /** @type {any} */ value) => {
    const answer = await handler(new Request(`http://localhost/${name}`, value && { method: "POST", body: JSON.stringify(value), headers: { "content-type": "application/json" } }));
    return { status: answer.status, headers: answer.headers, body: name.startsWith("events") ? answer.body : await answer.json() };
  };
};

test("a message that comes again after thousands of others is not read twice", async () => {
  const agent = new Agent({ model: scripted([call("wait"), "done", "done"]), tools: [testTool("wait", () => new Promise(() => {}))] });
  const ask = serve(agent);
  const first = await ask("prompt", { id: "first", input: "Go" });
  const letter = await ask("steer", { id: "letter", input: "one" });
  for (let i = 0; i < 5000; i++) await ask("abort", { id: `a${i}`, runId: "another" });
  assert.deepEqual((await ask("steer", { id: "letter", input: "one" })).body, letter.body);
  await ask("abort", { id: "stop" });
  await agent.waitForIdle();
  assert.deepEqual(await ask("prompt", { id: "first", input: "Go" }).then(({ status, body }) => [status, body]), [202, first.body]);
  await settle();
  assert.equal(agent.isRunning, false);
  assert.ok(agent.messages.filter(({ role }) => role === "user").length <= 2);
});

test("when no more can be remembered, the next is refused, and nothing is done twice", async () => {
  let now = 1_000_000_000;
  const agent = new Agent({ model: scripted(["a", "b", "c"]) });
  const log = memoryEvents({ start: 10 });
  const ask = serve(agent, { events: log, limits: { commandIds: 50 }, host: { now: () => now } });
  await ask("prompt", { id: "first", input: "Go" });
  await agent.waitForIdle();
  const { lastEventId } = (await ask("state", undefined)).body;
  const statuses = [];
  for (let i = 0; i < 60; i++) statuses.push((await ask("clear-queues", { id: `a${i}` })).status);
  assert.deepEqual([statuses.filter((status) => status === 202).length, statuses.at(-1)], [49, 429]);
  const refused = await ask("clear-queues", { id: "one more" });
  assert.match(refused.body.error.message, /limits\.commandIds/);
  assert.equal(refused.headers.get("retry-after"), "600");
  await ask("prompt", { id: "first", input: "Go" });
  assert.equal(agent.messages.length, 2, "what is remembered is still answered");
  // Later the oldest is forgotten, and nobody can continue from before it any more.
  now += 600_001;
  assert.equal((await ask("clear-queues", { id: "one more" })).status, 202);
  assert.ok(log.first > 10, "the log begins after what was forgotten");
  assert.ok(log.first <= Number(lastEventId) + 60);
  assert.equal((await ask("abort", {})).status, 202, "without an id there is nothing to remember");
});

test("a client that uses up the remembered ids or the commands of a minute cannot keep others from stopping the run or deciding", async () => {
  for (const limits of [{ commandIds: 50 }, { commandsPerMinute: 50 }]) {
    const agent = new Agent({ model: scripted([call("pay"), () => new Promise(() => {})]), tools: [testTool("pay", () => "paid", { requiresApproval: true })] });
    const ask = serve(agent, { limits, host: { now: () => 1_000_000_000 }, answers: ["tool"] });
    await ask("prompt", { id: "first", input: "Go" });
    await settle();
    const statuses = [];
    for (let i = 0; i < 60; i++) statuses.push((await ask("clear-queues", { id: `c${i}` })).status);
    assert.equal(statuses.at(-1), 429);
    assert.equal((await ask("resolve", { id: "yes", question: agent.pendingQuestions[0]?.id, decision: "approve" })).status, 202);
    // The oldest is forgotten rather than the newest refused.
    if (limits.commandIds) for (let i = 0; i < 60; i++) assert.equal((await ask("abort", { id: `a${i}`, runId: "another" })).status, 202);
    assert.equal((await ask("abort", { id: "stop" })).status, 202);
    await agent.waitForIdle();
    assert.ok(agent.messages.some((message) => message.role === "tool_result" && message.toolName === "pay" && !message.isError));
  }
});

test("an id that was given to one command is not another's", async () => {
  const agent = new Agent({ model: scripted(["a", "b"]), messages: [{ role: "user", content: [{ type: "text", text: "kept" }], timestamp: 1 }] });
  const ask = serve(agent);
  assert.equal((await ask("abort", { id: "x" })).status, 202);
  const { status, body } = await ask("reset", { id: "x" });
  assert.deepEqual([status, body.error.code, agent.messages.length], [409, "misuse", 1]);
});

test("a run id that was used is refused, rather than mixed with the run that had it", async () => {
  const agent = new Agent({ model: scripted(["a", "b"]) });
  const ask = serve(agent);
  assert.equal((await ask("prompt", { id: "1", input: "Go", runId: "r" })).status, 202);
  await agent.waitForIdle();
  const { status, body } = await ask("prompt", { id: "2", input: "Go", runId: "r" });
  assert.equal(status, 409);
  assert.match(body.error.message, /every run needs an id of its own/);
  assert.equal(agent.messages.length, 2);
});

test("another instance of the server knows the commands of the one before, also after a reset", async () => {
  const events = memoryEvents({ start: 0 });
  /** A log that outlives its instances, as one on a disk does. */
  const log = Object.assign(Object.create(events), { append: (/** @type {any} */ entry) => events.append(entry), commands: () => events.read(events.first, Infinity).filter(({ type }) => type === "command" || type === "receipt") });
  const agent = new Agent({ model: scripted(["a", "b", "c"]) });
  const ask = serve(agent, { events: log });
  await ask("prompt", { id: "p", input: "Go" });
  await agent.waitForIdle();
  await ask("abort", { id: "a" });
  await ask("reset", { id: "r" });
  await ask("prompt", { id: "q", input: "Again" });
  await agent.waitForIdle();
  const later = serve(agent, { events: log });
  for (const [name, command] of /** @type {[string, any][]} */ ([["reset", { id: "r" }], ["prompt", { id: "p", input: "Go" }], ["prompt", { id: "q", input: "Again" }], ["abort", { id: "a" }]])) assert.equal((await later(name, command)).status, 202);
  await settle();
  assert.deepEqual([agent.messages.length, agent.isRunning], [2, false]);
});
