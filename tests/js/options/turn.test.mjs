// @ts-check
// What holds for a run or a turn: `prompt(input, options)`, `prepareTurn`, `agent.streamOptions`, and their order.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, call, custom, misused, openai, scripted, testTool } from "../kit.mjs";
import { RemoteAgent } from "../../../pkg/remote.js";
import { agentHandler } from "../../../pkg/server.js";

/** A model that says what it is asked with. @param {any[]} seen @param {string} id @param {any[]} answers */
function noting(seen, id, answers) {
  const model = scripted(answers, { id });
  return custom(id, (request, context) => {
    const { options, tools, systemPrompt, messages } = request;
    seen.push({ id, options, tools: tools.map(({ name }) => name), systemPrompt, said: messages.length });
    return /** @type {any} */ (model).streamFn(request, context);
  });
}

/** @param {() => unknown} call @param {string} text */
const refused = (call, text) => misused(call, new RegExp(RegExp.escape?.(text) ?? text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")));
const tools = () => [testTool("one", () => "1"), testTool("two", () => "2")];

test("a forced tool choice holds for the first call of a run", async () => {
  /** @type {any[]} */
  const seen = [];
  const agent = new Agent({ model: noting(seen, "m", [call("one"), call("one"), "done", "again"]), tools: tools(), streamOptions: { toolChoice: "required" } });
  assert.equal((await agent.prompt("go")).stopReason, "completed");
  await agent.prompt("go");
  assert.deepEqual(seen.map(({ options }) => options.toolChoice), ["required", "auto", "auto", "required"]);
});

test("the options of a run come before the turn's, and those before the agent's", async () => {
  /** @type {any[]} */
  const seen = [];
  /** @type {any[]} */
  const asked = [];
  const other = noting(seen, "other", ["done"]);
  const agent = new Agent({
    model: noting(seen, "m", [call("one")]), tools: tools(), systemPrompt: "agent", streamOptions: { maxTokens: 5, temperature: 1, headers: { a: "agent", b: "agent" } },
    prepareTurn: ({ turnIndex, messages, usage, metadata, signal, runId, sessionId }) => {
      asked.push([turnIndex, messages.length, typeof usage.total, metadata, signal.aborted, typeof runId, typeof sessionId]);
      if (turnIndex === 0) return { activeTools: ["one"], streamOptions: { temperature: 0.5, toolChoice: { toolName: "one" }, headers: { b: "turn", c: "turn" } } };
      return { model: other, systemPrompt: "turn", messages: messages.slice(1), streamOptions: { toolChoice: "required" } };
    },
  });
  const { text, messages } = await agent.prompt("go", { metadata: { user: "u" }, streamOptions: { temperature: 0, headers: { c: "run" } } });
  assert.equal(text, "done");
  assert.deepEqual(seen, [
    { id: "m", options: { temperature: 0, maxTokens: 5, toolChoice: { toolName: "one" }, headers: { c: "run", b: "turn", a: "agent" } }, tools: ["one"], systemPrompt: "agent", said: 1 },
    { id: "other", options: { temperature: 0, maxTokens: 5, toolChoice: "required", headers: { c: "run", a: "agent", b: "agent" } }, tools: ["one", "two"], systemPrompt: "turn", said: 2 },
  ]);
  assert.deepEqual(asked, [[0, 1, "number", { user: "u" }, false, "string", "string"], [1, 3, "number", { user: "u" }, false, "string", "string"]]);
  assert.equal(messages.filter((message) => message.role === "assistant").at(-1)?.model, "other");
  assert.equal(agent.model.id, "m");
});

test("streamOptions can be assigned, and hold from the next turn on", async () => {
  /** @type {any[]} */
  const seen = [];
  const agent = new Agent({ model: noting(seen, "m", [call("one"), "done", "done"]), tools: tools() });
  assert.equal(agent.streamOptions, undefined);
  agent.subscribe((event) => {
    if (event.type === "tool_execution_end") agent.streamOptions = { temperature: 0.25 };
  });
  await agent.prompt("go");
  agent.streamOptions = undefined;
  await agent.prompt("go");
  assert.deepEqual(seen.map(({ options }) => options.temperature), [undefined, 0.25, undefined]);
  refused(() => (agent.streamOptions = /** @type {any} */ ({ temprature: 1 })), "unknown option `streamOptions.temprature`; did you mean `temperature`?");
  refused(() => (agent.streamOptions = { temperature: -1 }), "`streamOptions.temperature` must be a finite number from 0 on, got -1");
});

test("a key function of a model that only a turn or a run has is asked", async () => {
  /** @type {any[]} */
  const keys = [];
  /** @type {any} */
  const fetch = async (/** @type {any} */ url, /** @type {any} */ { headers }) => (keys.push(new Headers(headers).get("authorization")), new Response("data: [DONE]\n\n"));
  const keyed = (/** @type {string} */ id) => openai(id, { apiKey: () => `key-of-${id}`, fetch });
  const agent = new Agent({ model: scripted(["no", "no"]), prepareTurn: () => ({ model: keyed("turn") }) });
  await agent.prompt("go");
  await agent.prompt("go", { model: keyed("run") });
  assert.deepEqual([...new Set(keys)], ["Bearer key-of-turn", "Bearer key-of-run"]);
});

test("what cannot be is refused at the call, or ends the run", async () => {
  const agent = new Agent({ model: scripted(["done"]), tools: tools() });
  refused(() => agent.prompt("go", { activeTools: ["three"] }), '`activeTools` names "three", which is none of the tools');
  refused(() => agent.prompt("go", /** @type {any} */ ({ temperature: 1 })), "unknown option `temperature`; did you mean `streamOptions.temperature`?");
  refused(() => agent.prompt("go", /** @type {any} */ ({ model: "gpt" })), "`model` must be a model");
  refused(() => agent.prompt("go", /** @type {any} */ ({ metadata: "u" })), "`metadata` must be an object, got a string");
  refused(() => agent.prompt("go", /** @type {any} */ ({ metadata: { user: 1n } })), "the options of the run are");
  refused(() => new Agent({ model: scripted([]), prepareTurn: /** @type {any} */ ({}) }), "`prepareTurn` must be a function, got an object");
  for (const [answer, text] of /** @type {[any, string][]} */ ([
    [{ toolChoice: "required" }, "the answer of `prepareTurn`: unknown option `toolChoice`; did you mean `streamOptions.toolChoice`?"],
    [{ activeTools: ["three"] }, 'the answer of `prepareTurn`: `activeTools` names "three"'],
    [{ messages: [] }, "`messages` is empty"],
    [{ model: 7 }, "`model` must be a model"],
    [7, "the answer of `prepareTurn` must be an object, got a number"],
    [Promise.reject(new Error("own")), "own"],
  ])) {
    const { error, stopReason } = await new Agent({ model: scripted(["done"]), tools: tools(), prepareTurn: () => answer }).prompt("go");
    assert.equal(stopReason, "error", text);
    assert.ok(error?.message.includes(text), `${error?.message} has ${text}`);
    assert.equal(error?.code, "hook");
  }
});

test("an abort while a turn is prepared ends the run, and nothing is asked", async () => {
  /** @type {any[]} */
  const seen = [];
  const agent = new Agent({ model: noting(seen, "m", ["done"]), prepareTurn: ({ signal }) => new Promise((resolve) => { signal.addEventListener("abort", () => resolve(undefined)); agent.abort("enough"); }) });
  const { stopReason } = await agent.prompt("go");
  assert.deepEqual([stopReason, seen], ["aborted", []]);
});

test("a restored run has its options and metadata, without headers, and its turn is prepared again", async () => {
  /** @type {any[]} */
  const seen = [];
  /** @type {any[]} */
  const asked = [];
  const options = (/** @type {any[]} */ answers) => ({
    model: noting(seen, "m", answers), tools: tools(),
    prepareTurn: (/** @type {any} */ { turnIndex, metadata }) => void asked.push([turnIndex, metadata]),
  });
  const agent = new Agent(options([call("one"), "lost"]));
  /** @type {any} */
  let checkpoint;
  agent.subscribe((event) => {
    if (event.type === "turn_start" && event.turnIndex === 1) checkpoint = agent.checkpoint();
  });
  await agent.prompt("go", { metadata: { user: "u" }, activeTools: ["one"], streamOptions: { maxTokens: 9, headers: { "x-key": "secret" } } });
  assert.ok(!JSON.stringify(checkpoint).includes("secret"));
  seen.length = asked.length = 0;
  const restored = await Agent.restore(checkpoint, options(["done"]));
  assert.equal((await restored.continue()).text, "done");
  assert.deepEqual(asked, [[1, { user: "u" }]]);
  assert.deepEqual(seen, [{ id: "m", options: { maxTokens: 9 }, tools: ["one"], systemPrompt: "", said: 3 }]);
});

test("a run that has not begun keeps its options in a checkpoint too, however often it is stored", async () => {
  /** @type {any[]} */
  const seen = [];
  /** @type {any[]} */
  const told = [];
  const options = () => ({ model: noting(seen, "m", ["done"]), tools: tools(), hooks: { beforeInference: (/** @type {any} */ { metadata }) => void told.push(metadata) } });
  const agent = new Agent(options());
  const run = agent.prompt("go", { model: openai("secret-model", { apiKey: "secret" }), metadata: { user: "u" }, activeTools: ["one"], streamOptions: { maxTokens: 9, headers: { "x-key": "secret" } } });
  const checkpoint = agent.checkpoint();
  run.abort();
  await run;
  assert.ok(!JSON.stringify(checkpoint).includes("secret"));
  const once = await Agent.restore(checkpoint, options());
  const again = await Agent.restore(JSON.stringify(once.checkpoint()), options());
  assert.equal((await again.continue({ streamOptions: { temperature: 0 } })).text, "done");
  assert.deepEqual(told, [{ user: "u" }]);
  assert.deepEqual(seen, [{ id: "m", options: { temperature: 0 }, tools: ["one"], systemPrompt: "", said: 1 }]);
});

test("after a compaction the transformers see the new history, not the turn's view of the old one", async () => {
  /** @type {any[]} */
  const seen = [];
  const tooLong = { error: { code: /** @type {const} */ ("context_overflow"), message: "too long" } };
  const agent = new Agent({
    model: scripted(["one", "two", tooLong, "done"]),
    prepareTurn: ({ messages }) => ({ messages: messages.slice(-3) }),
    asyncTransformContext: async (messages, overflow) => void seen.push([messages.length, overflow]),
    compaction: { engine: async (messages) => ({ messages: messages.slice(-1) }) },
  });
  for (const text of ["a", "b", "c"]) assert.equal((await agent.prompt(text)).stopReason, "completed");
  assert.deepEqual(seen, [[1, false], [3, false], [3, false], [3, true], [1, false]]);
});

test("a client sets what the host allows it to, and nothing else", async () => {
  /** @type {any[]} */
  const seen = [];
  /** @type {any[]} */
  const told = [];
  const agent = new Agent({ model: noting(seen, "m", ["one", "two"]), systemPrompt: "host", hooks: { beforeInference: ({ metadata }) => void told.push(metadata) } });
  const handler = agentHandler(agent, { runOptions: ["metadata", "streamOptions"] });
  const client = new RemoteAgent({ url: "http://a.localhost/x", fetch: (url, init) => handler(new Request(url, init)) });
  assert.equal((await client.prompt("go", { metadata: { tab: 2 }, streamOptions: { maxTokens: 3 } })).text, "one");
  const { error } = await client.prompt("go", { systemPrompt: "mine" });
  assert.equal(error?.message, "clients may not set `systemPrompt`; see the option `runOptions`");
  assert.deepEqual([told, seen.map(({ options }) => options)], [[{ tab: 2 }], [{ maxTokens: 3 }]]);
  client[Symbol.dispose]?.();
  refused(() => agentHandler(agent, { runOptions: /** @type {any} */ (["model"]) }), "`runOptions` must be a list of");
});
