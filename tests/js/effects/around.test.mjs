// @ts-check
// What stands around execution, what hooks hear, and what every function of the host is told about the run.

import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { test } from "node:test";
import { Agent, call, custom, misused, openai, readRun, scripted, settle, subagent, testTool } from "../kit.mjs";

const failed = { error: { code: /** @type {const} */ ("network"), message: "gone" } };
const host = () => ({ host: { sleep: async () => {}, now: () => 1_000, id: () => "id" } });

test("wrapTool stands around every execution, may change the result, and its async context holds inside", async () => {
  const storage = new AsyncLocalStorage();
  /** @type {any[]} */
  const seen = [];
  const tools = [testTool("ok", async () => `in ${storage.getStore()}`), testTool("bad", async () => { throw new Error("no"); })];
  const agent = new Agent({
    model: scripted([call("ok", "bad"), "done"]), tools, sessionId: "s", ...host(),
    wrapTool: async (wrapped, next) => {
      seen.push([wrapped.toolName, wrapped.path, wrapped.runId, wrapped.sessionId, wrapped.turnIndex]);
      return `${await storage.run(wrapped.callId, next)}!`;
    },
  });
  const { messages, runId } = await agent.prompt("go");
  assert.deepEqual(seen, [["ok", [], runId, "s", 0], ["bad", [], runId, "s", 0]]);
  const results = messages.filter((message) => message.role === "tool_result").map((message) => [/** @type {any} */ (message.content[0]).text, message.cause]);
  assert.deepEqual(results, [["in c1!", undefined], ["tool `bad` failed: no", "threw"]]);
});

test("wrapModel stands around every attempt: the request is made where next is called, and its end is told once", async () => {
  const storage = new AsyncLocalStorage();
  /** @type {any[]} */
  const seen = [];
  let calls = 0;
  const model = custom("m", async function* () {
    seen.push(`in ${storage.getStore()}`);
    if (calls++ === 0) return yield { type: "error", error: failed.error };
    yield { type: "text_start", contentIndex: 0 };
    yield { type: "text_delta", contentIndex: 0, delta: "Hi" };
    yield { type: "done", stopReason: "stop" };
  });
  const agent = new Agent({
    model, ...host(),
    wrapModel: async ({ attempt, model: id }, next) => {
      const message = await storage.run(attempt, next);
      seen.push(`${id} ${attempt} ${message?.stopReason} ${message?.error?.code}`);
    },
  });
  assert.equal((await agent.prompt("go")).text, "Hi");
  assert.deepEqual(seen, ["in 1", "m 1 error network", "in 2", "m 2 stop undefined"]);
});

test("over HTTP too", async () => {
  const storage = new AsyncLocalStorage();
  let inside;
  const body = 'data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';
  const fetch = /** @type {any} */ (async () => ((inside = storage.getStore()), new Response(body, { headers: { "content-type": "text/event-stream" } })));
  const agent = new Agent({ model: openai("m", { apiKey: "k", fetch }), wrapModel: (_, next) => storage.run("here", next) });
  assert.equal((await agent.prompt("go")).text, "Hi");
  assert.equal(inside, "here");
});

test("a wrapper that never calls next, or fails, ends the run with an error that says so", async () => {
  for (const wrapModel of [() => {}, async () => { throw new Error("no tracer"); }]) {
    let asked = 0;
    const { error } = await new Agent({ model: scripted([() => (asked++, "x")]), wrapModel }).prompt("go");
    assert.match(String(error?.message), /wrapModel|no tracer/);
    assert.equal(asked, 0);
  }
});

test("nothing starts after an abort", async () => {
  let started = 0;
  const agent = new Agent({
    model: scripted([call("t"), "never"]), tools: [testTool("t", async () => String(started++))],
    wrapTool: async (_, next) => {
      agent.abort();
      await settle();
      return next();
    },
  });
  assert.equal((await agent.prompt("go")).stopReason, "aborted");
  await settle();
  assert.equal(started, 0);
  /** @type {any} */
  let late;
  let asked = 0;
  const other = new Agent({
    model: scripted([() => String(asked++)]),
    wrapModel: async ({ attempt }, next) => {
      other.abort();
      await settle();
      late = [attempt, (await next())?.stopReason];
    },
  });
  assert.equal((await other.prompt("go")).stopReason, "aborted");
  await settle();
  assert.deepEqual([asked, late], [0, [1, "aborted"]]);
});

test("wrappers reach sub-agents, with the path, unless those set their own", async () => {
  /** @type {string[]} */
  const seen = [];
  const inner = () => new Agent({ model: scripted([call("leaf"), "leaf done"]), tools: [testTool("leaf", async () => "x")] });
  const own = () => new Agent({ model: scripted(["own done"]), wrapModel: (_, next) => next() });
  const agent = new Agent({
    model: scripted([{ toolCalls: [{ callId: "a", toolName: "inner", arguments: { prompt: "p" } }, { callId: "b", toolName: "own", arguments: { prompt: "p" } }] }, "done"]),
    tools: [subagent({ name: "inner", description: "", agent: inner }), subagent({ name: "own", description: "", agent: own })],
    wrapTool: (wrapped, next) => (seen.push(`tool ${[...wrapped.path, wrapped.toolName].join("/")}`), next()),
    wrapModel: (wrapped, next) => (seen.push(`model ${wrapped.path.join("/")}`), next()),
  });
  assert.equal((await agent.prompt("go")).text, "done");
  assert.deepEqual(seen.sort(), ["model ", "model ", "model a", "model a", "tool a/leaf", "tool inner", "tool own"]);
});

test("hooks hear of failed tools and of every attempt's end, also of one that was aborted", async () => {
  /** @type {string[]} */
  const seen = [];
  const hooks = {
    beforeInference: ({ attempt }) => void seen.push(`before ${attempt}`),
    afterInference: ({ attempt, message }) => void seen.push(`after ${attempt} ${message.stopReason}`),
    afterToolExecution: ({ call: { toolName }, result }) => void seen.push(`${toolName} ${result.cause}`),
  };
  const tools = [testTool("bad", async () => { throw new Error("no"); }), { ...testTool("deaf", () => new Promise(() => {})), timeoutMs: 5 }];
  const model = custom("m", async function* (request, { signal }) {
    if (request.messages.length > 1) await new Promise((_, reject) => signal.addEventListener("abort", reject));
    if (seen.length < 2) return yield { type: "error", error: failed.error };
    yield* [{ type: "tool_call_start", contentIndex: 0, callId: "a", toolName: "bad" }, { type: "tool_call_end", contentIndex: 0 }, { type: "tool_call_start", contentIndex: 1, callId: "b", toolName: "deaf" }, { type: "tool_call_end", contentIndex: 1 }];
    yield { type: "done", stopReason: "tool_use" };
  });
  const agent = new Agent({ model, tools, hooks, retry: { initialBackoffMs: 0 } });
  agent.subscribe((event) => void (event.type === "message_start" && agent.messages.length > 1 && setTimeout(() => agent.abort(), 20)));
  await agent.prompt("go");
  await settle();
  assert.deepEqual(seen, ["before 1", "after 1 error", "before 2", "after 2 tool_use", "bad threw", "deaf timeout", "before 1", "after 1 aborted"]);
});

test("every function is told about the run, and events that begin or end something say when", async () => {
  /** @type {Record<string, any>} */
  const told = {};
  const note = (/** @type {string} */ name, /** @type {any} */ about) => {
    const { runId, sessionId, turnIndex, metadata } = about ?? {};
    told[name] ??= [runId, sessionId, turnIndex, metadata?.user];
  };
  const agent = new Agent({
    model: custom("m", async function* (request, context) {
      note("streamFn", context);
      if (request.messages.some(({ role }) => role === "tool_result")) return yield { type: "done", stopReason: "stop" };
      yield* [{ type: "tool_call_start", contentIndex: 0, callId: "a", toolName: "t" }, { type: "tool_call_end", contentIndex: 0 }, { type: "done", stopReason: "tool_use" }];
    }),
    tools: [{ ...testTool("t", async (_, context) => (note("execute", context), "x")), requiresApproval: (_, about) => (note("requiresApproval", about), true) }],
    sessionId: "s", host: { now: () => 77, id: () => "run" },
    convertToLlm: (message, about) => (note("convertToLlm", about), message),
    transformContext: (_, __, about) => note("transformContext", about),
    asyncTransformContext: async (_, __, ___, about) => note("asyncTransformContext", about),
    dynamicSystemPrompt: (about) => (note("dynamicSystemPrompt", about), ""),
    getApiKey: (_, about) => (note("getApiKey", about), "k"),
    getSteeringMessages: (about) => (note("getSteeringMessages", about), []),
    getFollowUpMessages: (about) => (note("getFollowUpMessages", about), []),
    toolExecution: (calls, about) => (note("toolExecution", about), [calls.map((_, i) => i)]),
    approveTool: (about) => (note("approveTool", about), "approve"),
    policies: { preTurn: [(about) => note("preTurn", about)], preDispatch: [(about) => note("preDispatch", about)], postTurn: [(about) => note("postTurn", about)], postLoop: [(about) => note("postLoop", about)] },
    hooks: { beforeInference: (about) => note("beforeInference", about), afterInference: (about) => note("afterInference", about), beforeToolExecution: (about) => note("beforeToolExecution", about), afterToolExecution: (about) => note("afterToolExecution", about) },
  });
  assert.equal(agent.sessionId, "s");
  const { events } = await readRun(agent.prompt("go", { runId: "r", metadata: { user: "u" } }));
  const { postLoop, getFollowUpMessages, ...others } = told;
  assert.equal(Object.keys(others).length, 18);
  for (const [name, about] of Object.entries(others)) assert.deepEqual(about, ["r", "s", 0, "u"], name);
  assert.deepEqual([postLoop, getFollowUpMessages], [["r", "s", 2, "u"], ["r", "s", 2, "u"]]);
  for (const event of events) assert.equal(/** @type {any} */ (event).at, /_start$|_end$/.test(event.type) ? 77 : undefined, event.type);
});

test("sessionId is there before the first run, and stays", async () => {
  const agent = new Agent({ model: scripted(["a"]) });
  const id = agent.sessionId;
  assert.ok(id.length > 10);
  await agent.prompt("go");
  assert.equal(agent.sessionId, id);
  misused(() => new Agent({ model: scripted([]), wrapTool: /** @type {any} */ (1) }), /wrapTool/);
});

test("so are those that are called when something fails, stands around or is inside", async () => {
  /** @type {Record<string, any>} */
  const told = {};
  const note = (/** @type {string} */ name, /** @type {any} */ about) => {
    const { runId, sessionId, turnIndex, metadata } = about ?? {};
    told[name] ??= [runId, sessionId, turnIndex, metadata?.user];
  };
  const fails = [{ code: "context_overflow", message: "long" }, { code: "overloaded", message: "busy" }];
  let turn = 0;
  const model = custom("m", async function* () {
    const error = fails.shift();
    if (error) return yield { type: "error", error };
    if (turn++ > 0) throw new Error("broken");
    yield* [{ type: "tool_call_start", contentIndex: 0, callId: "a", toolName: "ghost" }, { type: "tool_call_end", contentIndex: 0 }];
    yield* [{ type: "tool_call_start", contentIndex: 1, callId: "b", toolName: "inner" }, { type: "tool_call_delta", contentIndex: 1, delta: '{"prompt":"go"}' }, { type: "tool_call_end", contentIndex: 1 }];
    yield { type: "done", stopReason: "tool_use" };
  });
  const inner = subagent({ name: "inner", description: "", agent: (_, context) => (note("agent", context), new Agent({ model: scripted(["x"]) })) });
  const agent = new Agent({
    model, sessionId: "s", tools: [inner], messages: [{ role: "user", content: "old" }],
    resultTexts: { unknown_tool: (_, __, run) => (note("resultTexts", run), "no") },
    retry: (error, _, run) => (note("retry", run), error.code === "overloaded" && 0),
    compaction: { engine: async (messages, _, __, run) => (note("compaction", run), { messages: messages.slice(-1) }) },
    prepareTurn: (about) => note("prepareTurn", about),
    wrapTool: (about, next) => (note("wrapTool", about), next()),
    wrapModel: (about, next) => (note("wrapModel", about), next()),
    hooks: { onError: (about) => note("onError", about) },
  });
  const { error } = await agent.prompt("go", { runId: "r", metadata: { user: "u" } });
  assert.match(error?.message ?? "", /broken/);
  const { onError, ...others } = told;
  assert.deepEqual(Object.keys(others).sort(), ["agent", "compaction", "prepareTurn", "resultTexts", "retry", "wrapModel", "wrapTool"]);
  for (const [name, about] of Object.entries(others)) assert.deepEqual(about, ["r", "s", 0, "u"], name);
  assert.deepEqual([onError[0], onError[1], onError[3]], ["r", "s", "u"]);
});
