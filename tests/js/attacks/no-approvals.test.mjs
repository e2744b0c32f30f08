// @ts-check
// What looks like an approval and is none is refused aloud, wherever decisions come in, and the question stays open.

import assert from "node:assert/strict";
import { test } from "node:test";
import { RemoteAgent } from "../../../pkg/remote.js";
import { agentHandler } from "../../../pkg/server.js";
import { Agent, call, clock, misused, scripted, settle, testTool } from "../kit.mjs";

/** Arguments that are no object, or that JSON makes another value of. @type {[string, any][]} */
const NONE = [["null", null], ["undefined", undefined], ["NaN", NaN], ["a list", []], ["a list of objects", [{}]], ["a text", "{}"], ["an empty text", ""], ["a number", 0], ["true", true], ["false", false], ["a function", () => ({})], ["a symbol", Symbol("x")], ["a Map", new Map([["n", 1]])], ["a Set", new Set()], ["a Date", new Date(0)], ["a Promise", Promise.resolve({})], ["bytes", new Uint8Array(2)], ["a toJSON that gives null", { toJSON: () => null }], ["an object with NaN", { n: NaN }]];

function asking() {
  /** @type {any[]} */
  const ran = [];
  const agent = new Agent({ model: scripted([call(["pay", { amount: 5 }]), "done"]), tools: [testTool("pay", (/** @type {any} */ args) => (ran.push(args), "paid"), { requiresApproval: true })], host: clock().host });
  return { agent, ran };
}

test("resolveTool and resolveTools throw, and the question stays open", async () => {
  const { agent, ran } = asking();
  const run = agent.prompt("Go.");
  await settle();
  for (const [name, given] of NONE) {
    const decision = /** @type {any} */ ({ action: "approve", arguments: given });
    misused(() => agent.resolveTool("c1", decision), /the decision about `c1`.*(must be an object|no JSON)/s);
    misused(() => agent.resolveTools({ c1: decision }), /the decision about `c1`/);
    await settle();
    assert.deepEqual([agent.pendingApprovals.length, ran.length], [1, 0], name);
  }
  agent.resolveTool("c1", { action: "approve", arguments: { amount: 1 } });
  await run;
  assert.deepEqual(ran, [{ amount: 1 }]);
});

test("an approver that gives them has failed, and its call is rejected with the reason", async () => {
  for (const [name, given] of NONE) {
    let ran = false;
    const agent = new Agent({ model: scripted([call("pay"), "done"]), tools: [testTool("pay", () => (ran = true), { requiresApproval: true })], approveTool: () => /** @type {any} */ ({ action: "approve", arguments: given }), host: clock().host });
    const { messages } = await agent.prompt("Go.");
    const result = /** @type {any} */ (messages.find(({ role }) => role === "tool_result"));
    assert.deepEqual([ran, result.cause], [false, "rejected"], name);
    assert.match(result.content[0].text, /decision/, name);
  }
});

test("a decision that says one thing when it is checked and another when it is sent is taken at its first word", async () => {
  let reads = 0;
  let ran = /** @type {any} */ (undefined);
  const agent = new Agent({ model: scripted([call("pay"), "done"]), tools: [testTool("pay", (/** @type {any} */ args) => ((ran = args), "paid"), { requiresApproval: true })], approveTool: () => /** @type {any} */ ({ get action() { return reads++ === 0 ? "reject" : "approve"; } }), host: clock().host });
  await agent.prompt("Go.");
  assert.equal(ran, undefined);
});

test("agentHandler answers with an error, RemoteAgent throws, and nothing runs", async () => {
  const { agent, ran } = asking();
  const handler = agentHandler(agent, { authorize: () => true, answers: ["tool", "arguments"] });
  const run = agent.prompt("Go.");
  await settle();
  const post = (/** @type {string} */ body) => handler(new Request("http://localhost/agent/resolve", { method: "POST", headers: { "content-type": "application/json" }, body }));
  for (const written of ["null", "[]", "[{}]", "\"{}\"", "0", "true"]) {
    for (const body of [`{"callId":"c1","decision":{"action":"approve","arguments":${written}}}`, `{"decisions":{"c1":{"action":"approve","arguments":${written}}}}`]) {
      const response = await post(body);
      assert.ok(response.status >= 400 && response.status < 500, `${body}: ${response.status}`);
      assert.match(await response.text(), /must be an object/);
    }
  }
  const remote = new RemoteAgent({ url: "http://localhost/agent", fetch: /** @type {any} */ (async () => new Response("{}")) });
  for (const [, given] of NONE) {
    misused(() => remote.resolveTool("c1", /** @type {any} */ ({ action: "approve", arguments: given })), /decision about `c1`/);
    misused(() => remote.resolveTools(/** @type {any} */ ({ c1: { action: "approve", arguments: given } })), /decision about `c1`/);
  }
  assert.deepEqual([agent.pendingApprovals.length, ran.length], [1, 0]);
  agent.resolveTool("c1", "reject");
  await run;
  /** @type {any} */ (handler)[Symbol.dispose]();
});
