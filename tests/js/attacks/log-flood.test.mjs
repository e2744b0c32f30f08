// @ts-check
// Events and messages without end: what an agent's server keeps of them has a limit in bytes, however large each is.

import assert from "node:assert/strict";
import { test } from "node:test";
import { agentHandler, memoryEvents } from "../../../pkg/server.js";
import { RemoteAgent } from "../../../pkg/remote.js";
import { Agent, call, scripted, settle, testTool } from "../kit.mjs";

const AT = "http://localhost/agent";
const post = (/** @type {any} */ handler, /** @type {string} */ name, /** @type {any} */ value) => handler(new Request(`${AT}/${name}`, { method: "POST", body: JSON.stringify(value), headers: { "content-type": "application/json" } }));
/** The bytes that a log keeps. @param {any} log */
const kept = (log) => log.read(log.first, Infinity).reduce((/** @type {number} */ sum, /** @type {any} */ { data, history = "" }) => sum + 2 * (data.length + history.length), 0);

for (const [what, turns, size] of /** @type {[string, number, number][]} */ ([["few large results", 12, 1_000_000], ["many results", 300, 20_000], ["one that is larger than the log", 1, 20_000_000]])) {
  test(`${what} do not fill the log, and everybody knows in the end what the agent knows`, async () => {
    const log = memoryEvents();
    const agent = new Agent({ model: scripted([...Array.from({ length: turns }, () => call("look")), "done"]), tools: [testTool("look", () => "x".repeat(size), { maxResultBytes: 1_000_000_000 })], maxTurns: Infinity });
    const handler = agentHandler(agent, { events: log });
    let most = 0;
    agent.subscribe(() => void (most = Math.max(most, kept(log))));
    const mirror = new RemoteAgent({ url: AT, fetch: (/** @type {any} */ url, /** @type {any} */ init) => handler(new Request(url, init)), reconnects: { initialMs: 1 } });
    const { stopReason } = await mirror.prompt("Go");
    assert.equal(stopReason, "completed");
    assert.ok(most <= 16_000_000 && kept(log) <= 16_000_000, `${most} bytes`);
    assert.deepEqual(mirror.messages, JSON.parse(JSON.stringify(agent.messages)));
    mirror[Symbol.dispose]();
  });
}

test("the limit is an option", async () => {
  for (const [logBytes, fits] of /** @type {[number, boolean][]} */ ([[20_000, false], [Infinity, true], [0, false]])) {
    const log = memoryEvents();
    const agent = new Agent({ model: scripted(["x".repeat(50_000)]) });
    const handler = agentHandler(agent, { events: log, limits: { logBytes } });
    assert.equal((await post(handler, "prompt", { input: "Go" })).status, 202);
    await agent.waitForIdle();
    assert.ok(fits ? kept(log) > 100_000 : kept(log) <= logBytes);
    assert.equal((await (await handler(new Request(`${AT}/state`))).json()).messages.length, 2);
  }
});

test("commands alone do not fill it, nor do messages that nobody reads", async () => {
  const log = memoryEvents();
  const agent = new Agent({ model: scripted([call("wait")]), tools: [testTool("wait", () => new Promise(() => {}))] });
  const handler = agentHandler(agent, { events: log, limits: { events: 100 } });
  await post(handler, "prompt", { input: "Go" });
  for (let i = 0; i < 1000; i++) await post(handler, "abort", { id: `a${i}`, runId: "another" });
  assert.ok(log.last - log.first <= 125, `${log.last - log.first} entries`);
  const statuses = new Set();
  for (let i = 0; i < 12; i++) statuses.add((await post(handler, "follow-up", { input: "x".repeat(900_000) })).status);
  assert.deepEqual([...statuses], [202, 413]);
  await settle();
  assert.equal((await post(handler, "clear-queues", {})).status, 202);
  await settle();
  assert.equal((await post(handler, "follow-up", { input: "short" })).status, 202);
  agent.abort();
  await agent.waitForIdle();
});
