// @ts-check
// Decisions that come over HTTP: late, early, twice, for somebody else's question.

import assert from "node:assert/strict";
import { test } from "node:test";
import { RemoteAgent } from "../../../pkg/remote.js";
import { agentHandler } from "../../../pkg/server.js";
import { Agent, scripted, settle, testTool } from "../kit.mjs";

const AT = "http://localhost/agents/7";
const host = { sleep: (/** @type {number} */ ms, /** @type {AbortSignal} */ signal) => (ms === 7000 || ms >= 15_000 ? new Promise((resolve) => signal.addEventListener("abort", resolve)) : new Promise((resolve) => setImmediate(resolve))) };

/** An agent behind a handler that pays these amounts, always with the same call id. @param {...number} amounts */
function served(...amounts) {
  /** @type {number[]} */
  const paid = [];
  const pay = testTool("pay", (/** @type {any} */ { n }) => (paid.push(n), "paid"), { requiresApproval: true });
  const agent = new Agent({ model: scripted([...amounts.map((n) => ({ toolCalls: [{ callId: "t1", toolName: "pay", arguments: { n } }] })), "done"]), tools: [pay] });
  const handler = agentHandler(agent, { host });
  const fetch = async (/** @type {any} */ url, /** @type {any} */ init) => handler(new Request(url, init));
  const post = async (/** @type {string} */ name, /** @type {any} */ body) => (await handler(new Request(`${AT}/${name}`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) }))).status;
  return { agent, paid, post, client: () => new RemoteAgent({ url: AT, fetch: /** @type {any} */ (fetch), host, onError() {} }) };
}

test("a decision about nothing, too early, or of another run is 409", async () => {
  const { agent, paid, post } = served(1, 1000);
  const decision = "approve";
  assert.equal(await post("resolve", { callId: "t1", decision }), 409, "nothing runs");
  await post("prompt", { input: "Go" });
  assert.equal(await post("resolve", { callId: "nobody", decision }), 409);
  await settle();
  const first = String(agent.pendingQuestions[0]?.id);
  await post("reset", {});
  assert.equal(await post("resolve", { question: first, decision }), 409);
  await post("prompt", { input: "Go" });
  await settle();
  for (const body of [{ question: first, decision }, { callId: "t1", decision }, { callId: "t1", question: first, decision }, { decisions: { t1: decision } }, { decisions: { [first]: decision } }]) {
    assert.equal(await post("resolve", body), 409, JSON.stringify(body));
  }
  assert.equal(await post("resolve", { question: 7, decision }), 400);
  await settle();
  assert.deepEqual([paid, agent.pendingApprovals.length], [[], 1]);
  const open = agent.pendingQuestions[0]?.id;
  assert.equal(await post("resolve", { question: open, decision }), 202);
  assert.equal(await post("resolve", { question: open, decision: "reject" }), 409);
  await agent.waitForIdle();
  assert.deepEqual(paid, [1000]);
});

test("of two clients that answer at once, one decides and the other is told", async () => {
  const { agent, paid, client } = served(5);
  const [one, two] = [client(), client()];
  for (const each of [one, two]) each.subscribe(() => {});
  await Promise.all([one.ready(), two.ready()]);
  agent.prompt("Go");
  for (let i = 0; i < 9; i++) await settle();
  assert.deepEqual(one.pendingQuestions, agent.pendingQuestions);
  const id = String(two.pendingQuestions[0]?.id);
  const outcomes = await Promise.allSettled([one.resolve(id, "reject"), two.resolve(id, "approve")]);
  assert.deepEqual(outcomes.map(({ status }) => status), ["fulfilled", "rejected"]);
  await agent.waitForIdle();
  assert.deepEqual(paid, []);
  for (const each of [one, two]) each[Symbol.dispose]();
});

test("a client that is behind decides about what it shows", async () => {
  const { agent, paid, client } = served(1, 1000);
  const mirror = client();
  mirror.subscribe(() => {});
  await mirror.ready();
  agent.prompt("Go");
  for (let i = 0; i < 9; i++) await settle();
  assert.deepEqual(mirror.pendingApprovals.map((one) => one.arguments), [{ n: 1 }]);
  // It clicks while the agent begins anew, and before it has heard of that.
  agent.reset();
  agent.prompt("Go");
  const late = mirror.resolveTool("t1", "approve");
  await assert.rejects(late, /no open question/);
  for (let i = 0; i < 9; i++) await settle();
  assert.deepEqual(paid, []);
  agent.abort();
  mirror[Symbol.dispose]();
});
