// @ts-check
// Arguments that JSON shows otherwise than they run: numbers that are not finite, `-0`, a name that is there twice, `__proto__`.
// Either nobody is asked and nothing runs, or whoever is asked, here or far away, sees what will run.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fromLanguageModel } from "../../../pkg/ai-sdk.js";
import { RemoteAgent } from "../../../pkg/remote.js";
import { agentHandler } from "../../../pkg/server.js";
import { Agent, openaiCompatible, scripted, settle, subagent, testTool, textOf } from "../kit.mjs";

/** Timers that do not wait: what follows a run, and a pause between two tries, is soon over. */
const host = { sleep: (/** @type {number} */ ms, /** @type {AbortSignal} */ signal) => (ms === 7000 || ms >= 15_000 ? new Promise((resolve) => signal.addEventListener("abort", resolve)) : new Promise((resolve) => setImmediate(resolve))) };

/** A model that calls `name` with each of these texts as arguments, one after the other. @param {string[]} texts @param {string} [name] */
function writing(texts, name = "pay") {
  let asked = 0;
  const fetch = async () => {
    const text = texts[asked++];
    const call = { tool_calls: [{ index: 0, id: `c${asked}`, function: { name, arguments: text } }] };
    const chunks = text === undefined ? [{ choices: [{ index: 0, delta: { content: "done" }, finish_reason: "stop" }] }] : [{ choices: [{ index: 0, delta: call }] }, { choices: [{ index: 0, delta: {}, finish_reason: "tool_calls" }] }];
    return new Response([...chunks.map((chunk) => JSON.stringify(chunk)), "[DONE]"].map((data) => `data: ${data}\n\n`).join(""), { headers: { "content-type": "text/event-stream" } });
  };
  return openaiCompatible("m", { baseUrl: "http://127.0.0.1:9/v1", fetch });
}

/** A tool that asks first, and what it ran with. */
function paying() {
  /** @type {any[]} */
  const ran = [];
  return { ran, pay: testTool("pay", (/** @type {any} */ args) => (ran.push(args), "paid"), { requiresApproval: true, parameters: { type: "object", properties: { amount: { type: "number" } } } }) };
}

/** @param {Agent} agent @param {() => boolean} isThere */
async function until(agent, isThere) {
  while (agent.isRunning && !isThere()) await new Promise((resolve) => setTimeout(resolve, 1));
}

const refusals = (/** @type {Agent} */ agent) => agent.messages.flatMap((message) => (message.role === "tool_result" && message.cause === "invalid_arguments" ? [textOf(message)] : []));

/** @type {[string, RegExp][]} */
const INFINITE = [
  ['{"amount":1e400}', /^invalid arguments for `pay`: .*`amount` is 1e400, which is too large for a number/],
  ['{"amount":-1e309}', /`amount` is -1e309/], ['{"amount":1.7976931348623159E+308}', /is 1\.7976931348623159E\+308/],
  [`{"amount":${"9".repeat(310)}}`, /`amount` is 9{40}…, which/], ['{"a":[{"b":[0,1e999999999999999999999]}]}', /`a\[0\]\.b\[1\]` is 1e9/],
  ['{"amount":1,"amount":1e400}', /1e400/],
];

for (const [text, said] of INFINITE) {
  test(`nobody is asked about a number that is not finite: ${text.slice(0, 50)}`, async () => {
    const { ran, pay } = paying();
    const agent = new Agent({ model: writing([text, '{"amount":1}']), tools: [pay] });
    const handler = agentHandler(agent);
    const run = agent.prompt("Go");
    await until(agent, () => agent.pendingQuestions.length > 0);
    assert.deepEqual(agent.pendingApprovals.map(({ arguments: args }) => args), [{ amount: 1 }]);
    const { pendingApprovals } = await (await handler(new Request("http://localhost/a/state"))).json();
    assert.deepEqual(pendingApprovals.map((/** @type {any} */ { arguments: args }) => args), [{ amount: 1 }]);
    assert.match(refusals(agent)[0] ?? "", said);
    agent.resolve(agent.pendingQuestions[0]?.id ?? "", "approve");
    assert.equal((await run).text, "done");
    assert.deepEqual(ran, [{ amount: 1 }]);
    // What others store of it is the same.
    assert.deepEqual(JSON.parse(JSON.stringify(agent.messages)), agent.messages);
  });
}

/** @type {[string, any][]} */
const SAME = [
  ['{"amount":1,"amount":1000}', { amount: 1000 }], ['{"amount":1,"\\u0061mount":1000}', { amount: 1000 }], ['{"deep":{"a":1,"b":[{"c":1,"c":{"d":2}}],"a":3}}', { deep: { b: [{ c: { d: 2 } }], a: 3 } }],
  ['{"amount":-0}', { amount: 0 }], ['{"list":[-0.0,-0e9,-1e-400,1e-400]}', { list: [0, 0, 0, 0] }], ['{"amount":12345678901234567890}', { amount: 12345678901234567000 }], ['{"amount":9007199254740993,"b":1e308}', { amount: 9007199254740992, b: 1e308 }],
  ['{"__proto__":{"amount":1000},"note":1}', { note: 1 }], ['{"note":[{"\\u005f_proto__":{"amount":1000}}]}', { note: [{}] }], ['{"amount":1.0,"constructor":{"prototype":{"x":1}}}', { amount: 1, constructor: { prototype: { x: 1 } } }],
  ['{"text":"\\ud800"}', { text: "\ufffd" }],
];

for (const [text, args] of SAME) {
  test(`what is shown here and far away is what runs: ${text}`, async () => {
    const { ran, pay } = paying();
    const agent = new Agent({ model: writing([text]), tools: [pay] });
    const handler = agentHandler(agent, { host });
    const remote = new RemoteAgent({ url: "http://localhost/a", fetch: /** @type {any} */ (async (/** @type {any} */ url, /** @type {any} */ init) => handler(new Request(url, init))), host, onError() {} });
    remote.subscribe(() => {});
    await remote.ready();
    const run = agent.prompt("Go");
    await until(agent, () => remote.pendingApprovals.length > 0);
    const here = agent.pendingApprovals[0];
    assert.deepEqual(here?.arguments, args);
    assert.deepEqual(remote.pendingApprovals[0]?.arguments, args);
    await remote.resolve(here?.id ?? "", "approve");
    assert.equal((await run).text, "done");
    // Strictly: 0 and -0 are two values, and so is a member that is there and one that is not.
    assert.deepStrictEqual(ran, [args]);
    assert.equal(JSON.stringify(ran[0]), JSON.stringify(here?.arguments));
    const answer = /** @type {any} */ (agent.messages[1]);
    assert.deepStrictEqual(answer.content.at(-1).arguments, args);
    remote[Symbol.dispose]();
  });
}

test("a decision gives no number that is not finite, whoever sends it", async () => {
  const { ran, pay } = paying();
  const agent = new Agent({ model: writing(['{"amount":1}']), tools: [pay] });
  const handler = agentHandler(agent, { answers: ["tool", "arguments"] });
  const run = agent.prompt("Go");
  await until(agent, () => agent.pendingQuestions.length > 0);
  const { id, callId } = /** @type {any} */ (agent.pendingQuestions[0]);
  for (const amount of [Infinity, -Infinity, NaN, { deep: [Infinity] }]) {
    const decision = /** @type {any} */ ({ action: "approve", arguments: { amount } });
    assert.throws(() => agent.resolve(id, decision), /is no JSON: `arguments`\.amount/);
    assert.throws(() => agent.resolveTool(callId, decision), /is no JSON/);
    assert.throws(() => agent.resolveTools({ [callId]: decision }), /is no JSON/);
  }
  for (const number of ["1e400", "-1e309", '{"a":[1e999]}']) {
    const body = `{"id":"x${number.length}","question":${JSON.stringify(id)},"decision":{"action":"approve","arguments":{"amount":${number}}}}`;
    const response = await handler(new Request("http://localhost/a/resolve", { method: "POST", headers: { "content-type": "application/json" }, body }));
    assert.equal(response.status, 400, await response.text());
  }
  assert.deepEqual([agent.pendingQuestions.length, ran.length], [1, 0]);
  agent.resolve(id, { action: "approve", arguments: { amount: -0 } });
  await run;
  assert.deepStrictEqual(ran, [{ amount: 0 }]);
});

test("a model of the host's own that gives objects is read as one that writes", async () => {
  for (const n of [Infinity, -Infinity, NaN, [1, [Infinity]]]) {
    const { ran, pay } = paying();
    const agent = new Agent({ model: scripted([{ toolCalls: [{ callId: "c", toolName: "pay", arguments: { amount: n } }] }, "done"]), tools: [pay] });
    const { messages } = await agent.prompt("Go");
    assert.deepEqual(ran, []);
    assert.match(JSON.stringify(messages), /1e999|NaN/);
    const stream = new ReadableStream({
      start(controller) {
        for (const part of [{ type: "stream-start", warnings: [] }, { type: "tool-call", toolCallId: "c", toolName: "pay", input: { amount: n } }, { type: "finish", finishReason: "tool-calls", usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 } }]) controller.enqueue(part);
        controller.close();
      },
    });
    const model = fromLanguageModel(/** @type {any} */ ({ specificationVersion: "v3", provider: "x", modelId: "m", supportedUrls: {}, doGenerate: async () => ({}), doStream: async () => ({ stream }) }));
    await new Agent({ model, tools: [pay], maxTurns: 1 }).prompt("Go");
    assert.deepEqual(ran, []);
  }
});

test("the answer to a tool's question has no such number", async () => {
  const told = /** @type {any[]} */ ([]);
  const asks = { name: "asks", description: "", parameters: { type: "object" }, execute: async (/** @type {any} */ _, /** @type {any} */ context) => (told.push(await context.ask({ message: "How much?", schema: { type: "object", properties: { n: { type: "number" } } } })), "asked") };
  const agent = new Agent({ model: scripted([{ toolCalls: [{ callId: "c", toolName: "asks", arguments: {} }] }, "done"]), tools: [asks] });
  const run = agent.prompt("Go");
  await until(agent, () => agent.pendingQuestions.length > 0);
  const id = String(agent.pendingQuestions[0]?.id);
  for (const n of [Infinity, -Infinity, NaN]) assert.throws(() => agent.resolve(id, { action: "accept", content: { n } }), /content.* is (-?Infinity|NaN)/);
  const response = await agentHandler(agent, {})(new Request("http://localhost/a/resolve", { method: "POST", headers: { "content-type": "application/json" }, body: `{"question":${JSON.stringify(id)},"decision":{"action":"accept","content":{"n":1e400}}}` }));
  assert.equal(response.status, 400);
  agent.resolve(id, { action: "accept", content: { n: 5 } });
  await run;
  assert.deepEqual(told, [{ action: "accept", content: { n: 5 } }]);
});

test("a policy gives none either: the call does not run with null", async () => {
  for (const amount of [Infinity, -Infinity, NaN]) {
    const { ran, pay } = paying();
    const preDispatch = [(/** @type {any} */ { arguments: args }) => ({ arguments: { ...args, amount } })];
    const agent = new Agent({ model: writing(['{"amount":1}']), tools: [pay], policies: { preDispatch } });
    /** @type {any[]} */
    const events = [];
    agent.subscribe((event) => void events.push(event));
    assert.equal((await agent.prompt("Go")).text, "done");
    assert.deepEqual([ran.length, events.filter(({ type }) => type === "tool_approval_requested").length], [0, 0]);
    assert.match(textOf(/** @type {any} */ (agent.messages[2])), /invalid arguments for `pay`: .*`arguments`\.amount is -?(Infinity|NaN)/);
  }
});

test("the calls of an agent inside a call are read in the same way, and so is the call of the agent", async () => {
  const { ran, pay } = paying();
  const inner = subagent({ name: "helper", description: "Helps", agent: () => new Agent({ model: writing(['{"amount":1e400}', '{"amount":-0}']), tools: [pay] }) });
  const agent = new Agent({ model: writing(['{"prompt":1e400}', '{"prompt":"Pay"}'], "helper"), tools: [inner] });
  const run = agent.prompt("Go");
  await until(agent, () => agent.pendingQuestions.length > 0);
  assert.deepEqual(agent.pendingApprovals.map(({ arguments: args }) => args), [{ amount: 0 }]);
  assert.match(refusals(agent)[0] ?? "", /`prompt` is 1e400/);
  agent.resolve(agent.pendingQuestions[0]?.id ?? "", "approve");
  assert.equal((await run).text, "done");
  assert.deepStrictEqual(ran, [{ amount: 0 }]);
});

test("a checkpoint with a question about such a number asks nobody and runs nothing", async () => {
  const { pay } = paying();
  const agent = new Agent({ model: scripted([{ toolCalls: [{ callId: "c1", toolName: "pay", arguments: { amount: 4711 } }] }]), tools: [pay] });
  agent.prompt("Go");
  await until(agent, () => agent.pendingQuestions.length > 0);
  const honest = JSON.stringify(agent.checkpoint());
  agent.abort();
  assert.match(honest, /4711/);
  for (const number of ["1e400", '[{"n":-1e309}]']) {
    const text = honest.replaceAll("4711", number);
    for (const given of [text, JSON.parse(text)]) {
      const { ran, pay } = paying();
      const second = await Agent.restore(given, { model: scripted(["done"]), tools: [pay] });
      assert.deepEqual(second.pendingQuestions, []);
      /** @type {any[]} */
      const events = [];
      second.subscribe((event) => void events.push(event));
      assert.equal((await second.continue()).text, "done");
      assert.deepEqual([ran.length, events.filter(({ type }) => type === "tool_approval_requested").length], [0, 0]);
      assert.match(refusals(second)[0] ?? "", /`arguments`\.amount.* is -?Infinity/);
    }
  }
  // It is shown as it runs, before it goes on too.
  const odd = paying();
  const shown = await Agent.restore(honest.replaceAll('"amount":4711', '"amount":4711,"__proto__":{"amount":1}'), { model: scripted(["done"]), tools: [odd.pay] });
  assert.equal(JSON.stringify(/** @type {any} */ (shown.pendingQuestions[0]).arguments), '{"amount":4711}');
  // An honest one is asked about as before.
  const { ran, pay: honestly } = paying();
  const third = await Agent.restore(honest, { model: scripted(["done"]), tools: [honestly] });
  const [question] = third.pendingQuestions;
  const run = third.continue();
  await settle();
  third.resolve(question?.id ?? "", "approve");
  await run;
  assert.deepEqual(ran, [{ amount: 4711 }]);
});
