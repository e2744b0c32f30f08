// @ts-check
// Options that no other file here covers, each as a user would set it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, AgentError, agentLoopContinue, call, clock, deferred, isOpen, openai, readRun, scripted, settle, testTool, textOf } from "../kit.mjs";

const overflow = { error: { code: /** @type {any} */ ("context_overflow"), message: "too long" } };
const quick = testTool("quick", () => "done");

/** The requests of a model, a list of texts for each call. @param {any[]} answers */
function recordingModel(answers) {
  /** @type {string[][]} */
  const requests = [];
  const model = scripted(answers.map((answer) => (/** @type {any} */ request) => {
    requests.push(request.messages.map(textOf));
    return answer;
  }));
  return { model, requests };
}

test("hooks: all five stages, one list after the other, each waited for", async () => {
  /** @type {string[]} */
  const calls = [];
  const hooks = (/** @type {string} */ name) => ({
    beforeInference: async (/** @type {any} */ { runId, turnIndex, attempt, model, messages }) => {
      await settle();
      calls.push(`${name} before ${typeof runId} ${turnIndex} ${attempt} ${model} ${messages.length}`);
    },
    afterInference: (/** @type {any} */ { turnIndex, message }) => void calls.push(`${name} after ${turnIndex} ${message.stopReason}`),
    beforeToolExecution: async (/** @type {any} */ { call }) => void calls.push(`${name} before ${call.toolName} ${call.callId}`),
    afterToolExecution: async (/** @type {any} */ { call, result }) => void calls.push(`${name} after ${call.callId} ${textOf(result)}`),
    onError: (/** @type {any} */ { error }) => void calls.push(`${name} error ${error.code}`),
  });
  const model = scripted([call("quick"), { error: { code: "auth", message: "no" } }]);
  const { result } = await readRun(new Agent({ model, tools: [quick], hooks: [hooks("a"), hooks("b")] }).prompt("go"));
  assert.equal(result.stopReason, "error");
  assert.deepEqual(calls, [
    "a before string 0 1 scripted 1", "b before string 0 1 scripted 1", "a after 0 tool_use", "b after 0 tool_use",
    "a before quick c1", "b before quick c1", "a after c1 done", "b after c1 done",
    "a before string 1 1 scripted 3", "b before string 1 1 scripted 3", "a after 1 error", "b after 1 error", "a error auth", "b error auth",
  ]);
});

for (const stage of ["beforeInference", "afterInference", "beforeToolExecution", "afterToolExecution"]) {
  for (const fails of [() => { throw new Error("the hook broke"); }, async () => { throw new Error("the hook broke"); }]) {
    test(`a hook that fails ends the run, announced, with what it threw: ${stage}, ${fails.constructor.name}`, async () => {
      /** @type {any[]} */
      const errors = [];
      const hooks = { [stage]: fails, onError: (/** @type {any} */ { error }) => void errors.push(error.code) };
      const { result, end } = await readRun(new Agent({ model: scripted([call("quick")]), tools: [quick], hooks }).prompt("go"));
      assert.deepEqual([result.stopReason, result.error.code, end.error.code, errors], ["error", "hook", "hook", ["hook"]]);
      assert.match(result.error.message, /the hook broke/);
      assert.ok(result.error instanceof AgentError && /** @type {any} */ (result.error.cause)?.message === "the hook broke");
    });
  }
}

test("onError that fails changes nothing", async () => {
  const hooks = { onError: async () => { throw new Error("worse"); } };
  const { result } = await readRun(new Agent({ model: scripted([{ error: { code: "auth", message: "no key" } }]), hooks }).prompt("go"));
  assert.deepEqual([result.error.code, result.error.message], ["auth", "no key"]);
});

test("of several hooks none is told after one that stopped the run, and all are told of an error", async () => {
  /** @type {string[]} */
  const calls = [];
  /** @type {Agent} */
  const stops = new Agent({
    model: scripted(["never"]),
    hooks: [{ beforeInference: () => void stops.abort("no") }, { beforeInference: () => void calls.push("too late") }],
  });
  assert.equal((await readRun(stops.prompt("go"))).result.stopReason, "aborted");
  const fails = { onError: async () => { throw new Error("worse"); } };
  const model = scripted([{ error: { code: "auth", message: "no key" } }]);
  await readRun(new Agent({ model, hooks: [fails, { onError: () => void calls.push("told") }] }).prompt("go"));
  assert.deepEqual(calls, ["told"]);
});

test("compaction: the engine of the host makes room, in the same turn", async () => {
  const { model, requests } = recordingModel([overflow, "fine"]);
  const kept = { role: "user", content: [{ type: "text", text: "in short" }], timestamp: 1 };
  const engine = async (/** @type {any} */ messages, /** @type {any} */ asks, /** @type {any} */ signal) => {
    assert.deepEqual([messages.length, asks.id, signal instanceof AbortSignal], [1, "scripted", true]);
    return { messages: [/** @type {any} */ (kept)], report: { text: "shorter", droppedCount: 1 } };
  };
  const outcome = await readRun(new Agent({ model, compaction: { engine } }).prompt("a long story"));
  assert.deepEqual(requests, [["a long story"], ["in short"]]);
  assert.deepEqual([outcome.all("turn_start").length, outcome.all("message_start").length, outcome.result.text], [1, 1, "fine"]);
  assert.deepEqual([outcome.all("context_compacted")[0].report.droppedCount, outcome.all("context_compacted")[0].report.overflow], [1, true]);
});

test("compaction: an engine that fails, one that gives nonsense, and one that never makes it fit end the turn in error", async () => {
  const engines = [
    async () => { throw new Error("no room"); },
    () => { throw new Error("no room"); },
    async () => ({ nothing: true }),
    async (/** @type {any} */ messages) => ({ messages }),
  ];
  for (const engine of engines) {
    const outcome = await readRun(new Agent({ model: scripted([overflow, overflow, "never"]), compaction: { engine: /** @type {any} */ (engine) } }).prompt("go"));
    assert.deepEqual([outcome.result.stopReason, outcome.result.error.code, outcome.all("message_end").length], ["error", "context_overflow", 1]);
  }
});

test("maxRecoveriesPerTurn: 0 recovers from nothing, 2 from two in a turn", async () => {
  for (const [most, calls] of [[0, 1], [1, 2], [2, 3]]) {
    const { model, requests } = recordingModel([overflow, overflow, overflow, "fine"]);
    const engine = async (/** @type {any} */ messages) => ({ messages });
    const { result } = await readRun(new Agent({ model, compaction: { engine, maxRecoveriesPerTurn: most } }).prompt("go"));
    assert.deepEqual([requests.length, result.error.code], [calls, "context_overflow"]);
  }
});

test("fallback: the next model answers when the retries of the first are used up; the event names both", async () => {
  const model = scripted(Array(2).fill({ error: { code: "overloaded", message: "busy" } }));
  const fallback = [/** @type {any} */ ({ .../** @type {any} */ (scripted(["here"])), id: "spare" })];
  const { host } = clock();
  const outcome = await readRun(new Agent({ model, fallback, retry: { maxAttempts: 2, jitter: false }, host }).prompt("go"));
  assert.equal(outcome.result.text, "here");
  assert.deepEqual(outcome.all("model_fallback").map(({ from, to }) => [from, to]), [["scripted", "spare"]]);
  assert.deepEqual(outcome.all("retry_attempt").map(({ attempt, delayMs }) => [attempt, delayMs]), [[1, 1000]]);
});

test("a policy that promises a verdict or injects what is no message is told so; the others still decide", async () => {
  const report = console.error;
  /** @type {string[]} */
  const calls = [];
  console.error = (/** @type {any[]} */ ...parts) => void calls.push(String(parts[1]?.message));
  try {
    const policies = {
      preTurn: [/** @type {any} */ (async () => ({ stop: "later" })), () => ({ inject: ["a note"] }), /** @type {any} */ (() => ({ inject: [7] })), () => ({ inject: ["another"] })],
      preDispatch: [/** @type {any} */ (async () => { throw new Error("later"); })],
    };
    const { model, requests } = recordingModel([call("quick"), "ok"]);
    const { result } = await readRun(new Agent({ model, tools: [quick], policies, maxTurns: 1 }).prompt("go"));
    assert.deepEqual([result.stopReason, requests[0]], ["max_turns", ["go", "a note", "another"]]);
    assert.match(calls.join(" | "), /must decide at once.*inject must be.*must decide at once/);
  } finally {
    console.error = report;
  }
});

test("a dynamic prompt and a conversion that promise are errors that say so", async () => {
  const prompt = await readRun(new Agent({ model: scripted(["never"]), dynamicSystemPrompt: /** @type {any} */ (async () => "later") }).prompt("go"));
  assert.match(prompt.result.error.message, /dynamic system prompt.*at once.*promise/i);
  const converted = await readRun(new Agent({ model: scripted(["never"]), convertToLlm: /** @type {any} */ (async () => null) }).prompt("go"));
  assert.equal(converted.result.error?.code, "hook");
});

test("a history with what only its provider understands is gone on from", async () => {
  const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
  const data = { type: "server_tool_use", id: "s1" };
  const messages = /** @type {any[]} */ ([
    { role: "user", content: [{ type: "text", text: "hi" }], timestamp: 1 },
    { role: "assistant", content: [{ type: "raw", data }, { type: "text", text: "yes" }], provider: "p", model: "m", usage, stopReason: "stop", timestamp: 1 },
  ]);
  const agent = new Agent({ model: scripted(["on"]), messages });
  assert.equal((await readRun(agent.prompt("go"))).result.text, "on");
  assert.deepEqual(/** @type {any} */ (agent.messages[1]).content[0], { type: "raw", data });
});

test("approval: rules by name, what is not named by `default`, deny in every mode", async () => {
  const tools = ["a", "b", "c"].map((name) => testTool(name, () => "ran"));
  for (const mode of /** @type {const} */ (["smart", "enabled", "bypassed"])) {
    /** @type {string[]} */
    const questions = [];
    const approveTool = (/** @type {any} */ { toolName }) => (questions.push(toolName), "approve");
    const approval = { mode, rules: { a: /** @type {const} */ ("deny"), b: /** @type {const} */ ("ask") }, default: /** @type {const} */ ("approve") };
    const outcome = await readRun(new Agent({ model: scripted([call("a", "b", "c"), "ok"]), tools, approval, approveTool: /** @type {any} */ (approveTool) }).prompt("go"));
    const [a, b, c] = outcome.all("turn_end")[0].toolResults;
    assert.deepEqual([a.cause, textOf(b), textOf(c)], ["denied", "ran", "ran"], mode);
    assert.deepEqual(questions, mode === "bypassed" ? [] : mode === "enabled" ? questions : ["b"], mode);
  }
});

test("gate: with `prefix` a call starts once it and all before it are decided", async () => {
  for (const [gate, early] of /** @type {const} */ ([["batch", []], ["prefix", ["a"]]])) {
    const answer = deferred();
    /** @type {string[]} */
    const ran = [];
    const tools = ["a", "b", "c"].map((name) => testTool(name, () => void ran.push(name), { requiresApproval: name === "b" }));
    const agent = new Agent({ model: scripted([call("a", "b", "c"), "ok"]), tools, gate, approveTool: () => answer.promise });
    const run = agent.prompt("go");
    await isOpen(run.result);
    assert.deepEqual(ran, early);
    assert.deepEqual(agent.pendingApprovals.map(({ toolName }) => toolName), ["b"]);
    answer.resolve("approve");
    assert.equal((await run).stopReason, "completed");
    assert.deepEqual(ran, ["a", "b", "c"]);
  }
});

test("steering.atStart: what was queued before goes with the first call only where the host wants it", async () => {
  for (const [atStart, first] of /** @type {const} */ ([["after_first_turn", ["go"]], ["before_first_call", ["go", "first"]]])) {
    const { model, requests } = recordingModel(["one", "two"]);
    const agent = new Agent({ model, steering: { atStart } });
    void agent.steer("first");
    await readRun(agent.prompt("go"));
    assert.deepEqual(requests[0], first);
  }
});

test("steering.inFlight: tools that run may finish", async () => {
  const first = deferred();
  const second = deferred();
  const tools = [testTool("a", () => first.promise), testTool("b", () => second.promise)];
  const agent = new Agent({ model: scripted([call("a", "b"), "ok"]), tools, steering: { inFlight: "finish" } });
  const run = agent.prompt("go");
  await settle();
  void agent.steer("hey");
  first.resolve("a");
  await settle();
  second.resolve("b");
  const { messages } = await run;
  assert.deepEqual(messages.filter(({ role }) => role === "tool_result").map(textOf), ["a", "b"]);
});

test("timeouts: the whole run, and every tool that says nothing else", async () => {
  const forever = testTool("forever", () => new Promise(() => {}));
  const { result } = await readRun(new Agent({ model: scripted([call("forever")]), tools: [forever], timeouts: { totalMs: 10 } }).prompt("go"));
  assert.deepEqual([result.stopReason, result.error.code], ["error", "timeout"]);
  const slow = await readRun(new Agent({ model: scripted([call("forever"), "ok"]), tools: [forever], timeouts: { toolMs: 10 } }).prompt("go"));
  assert.deepEqual([slow.result.stopReason, slow.all("tool_execution_end")[0].result.cause], ["completed", "timeout"]);
  // A tool that may take any time has to say so.
  const end = deferred();
  const long = testTool("forever", () => end.promise, { timeoutMs: Infinity });
  /** @type {number[]} */
  const waits = [];
  const host = { sleep: (/** @type {number} */ ms) => (waits.push(ms), new Promise(() => {})) };
  const outcome = readRun(new Agent({ model: scripted([call("forever"), "ok"]), tools: [long], timeouts: { toolMs: 10 }, host }).prompt("go"));
  await settle();
  end.resolve("done");
  assert.equal(textOf((await outcome).all("tool_execution_end")[0].result), "done");
  assert.ok(!waits.includes(10));
});

test("resultTexts: the host's own words, and one that fails leaves the stock ones", async () => {
  const resultTexts = {
    unknown_tool: (/** @type {any} */ { toolName }) => `nobody knows ${toolName}`,
    threw: () => { throw new Error("no words"); },
  };
  const tools = [testTool("bad", () => { throw new Error("broken"); })];
  const outcome = await readRun(new Agent({ model: scripted([call("ghost", "bad"), "ok"]), tools, resultTexts }).prompt("go"));
  const [ghost, bad] = outcome.all("turn_end")[0].toolResults.map(textOf);
  assert.equal(ghost, "nobody knows ghost");
  assert.match(bad, /broken/);
});

test("who stops the run while it asks for a key pays for no model call", async () => {
  let calls = 0;
  const model = openai("m", { fetch: /** @type {any} */ (async () => (calls++, new Response(""))) });
  /** @type {Agent} */
  const agent = new Agent({ model, getApiKey: () => (agent.abort("no"), "key") });
  const { result } = await readRun(agent.prompt("go"));
  assert.deepEqual([result.stopReason, calls], ["aborted", 0]);
});

test("what is asked for messages may stop the run or steer it itself", async () => {
  /** @type {Agent} */
  const stops = new Agent({ model: scripted(["one"]), getFollowUpMessages: () => (stops.abort("enough"), []) });
  assert.equal((await readRun(stops.prompt("go"))).result.stopReason, "aborted");
  let asks = 0;
  /** @type {Agent} */
  const steers = new Agent({ model: scripted(["one", "two"]), getFollowUpMessages: () => (asks++ === 0 && void steers.steer("more"), []) });
  assert.equal((await readRun(steers.prompt("go"))).result.text, "two");
});

test("a key that is none and ids that are no texts end nobody else's run", async () => {
  const done = deferred();
  const other = new Agent({ model: scripted([call("wait"), "well"]), tools: [testTool("wait", () => done.promise)] }).prompt("Go");
  const fetch = async () => new Response(JSON.stringify({ error: { message: "no key" } }), { status: 401 });
  const key = async () => "sk";
  const keyless = await new Agent({ model: openai("m", { fetch }), getApiKey: /** @type {any} */ (() => key) }).prompt("Go");
  assert.equal(keyless.error?.code, "auth");
  let n = 0;
  const counted = await new Agent({ model: scripted(["well"]), host: { id: /** @type {any} */ (() => (n += 1)) } }).prompt("Go");
  assert.deepEqual([counted.text, counted.runId], ["well", "2"]);
  done.resolve("waited");
  assert.equal((await other).text, "well");
});

test("an option that is undefined is one that is not there", async () => {
  const names = ["host", "streamOptions", "tools", "retry", "fallback", "policies", "hooks", "approval", "timeouts", "sessionState", "output", "messages", "systemPrompt", "sessionId"];
  const agent = new Agent({ model: scripted(["well"]), ...Object.fromEntries(names.map((name) => [name, undefined])) });
  assert.equal((await agent.prompt("Go")).text, "well");
});

test("hooks, a host, an engine of a class may have members of their own", async () => {
  class Log {
    seen = /** @type {string[]} */ ([]);
    afterInference(/** @type {any} */ { message }) { this.seen.push(textOf(message)); }
  }
  class Clock {
    time = 5;
    now() { return this.time; }
  }
  class Shortening {
    rest = 1;
    async engine(/** @type {any} */ messages) { return { messages: messages.slice(-this.rest) }; }
  }
  const log = new Log();
  const agent = new Agent({ model: scripted([overflow, "well"]), hooks: [log], host: new Clock(), compaction: new Shortening(), messages: [{ role: "user", content: [{ type: "text", text: "old" }], timestamp: 1 }] });
  const { messages, text } = await agent.prompt("Go");
  assert.deepEqual([text, log.seen.at(-1), messages.at(-1)?.timestamp], ["well", "well", 5]);
});

test("options may be an object of a class: getters, methods, what it inherits", async () => {
  class Settings {
    #allowed = ["go"];
    model = scripted([{ toolCalls: [{ toolName: "go" }, { toolName: "halt" }] }, (request) => request.systemPrompt]);
    get systemPrompt() { return "Be brief."; }
    get tools() { return ["go", "halt"].map((name) => testTool(name, () => `${name}: ran`, { requiresApproval: true })); }
    async approveTool(/** @type {any} */ { toolName }) { return /** @type {const} */ (this.#allowed.includes(toolName) ? "approve" : "reject"); }
  }
  const { messages, text } = await new Agent(new Settings()).prompt("Go");
  assert.deepEqual(messages.map((message) => message.role === "tool_result" && (message.cause ?? textOf(message))).filter(Boolean), ["go: ran", "rejected"]);
  assert.equal(text, "Be brief.");
  const history = [{ role: /** @type {const} */ ("user"), content: [{ type: /** @type {const} */ ("text"), text: "Go" }], timestamp: 1 }];
  assert.equal((await agentLoopContinue(history, new Settings())).text, "Be brief.");
  const asleep = new Agent(new Settings()).checkpoint();
  assert.equal((await Agent.restore(asleep, new Settings())).systemPrompt, "Be brief.");

  const house = { policies: { preDispatch: [() => ({ skip: "not here" })] } };
  const agent = new Agent(Object.assign(Object.create(house), { model: scripted([call("quick"), "done"]), tools: [quick] }));
  assert.equal((await agent.prompt("Go")).messages.find((message) => message.role === "tool_result")?.cause, "skipped");
});

test("milliseconds may have a fraction, and Infinity is as long as it takes", async () => {
  const { host, slept } = clock();
  const tools = [testTool("slow", () => new Promise(() => {}), { timeoutMs: 20.5 })];
  const outcome = await readRun(new Agent({ model: scripted([call("slow"), "done"]), host, tools }).prompt("Go"));
  assert.match(textOf(outcome.all("turn_end")[0].toolResults[0]), /did not finish within 20 ms/);
  slept.length = 0;
  const failing = (/** @type {any} */ error) => scripted([{ error: { code: "network", message: "gone", ...error } }, "well"]);
  const again = async (/** @type {any} */ retry, /** @type {any} */ error) => (await new Agent({ model: failing(error), host, retry: { jitter: false, ...retry } }).prompt("Go")).text;
  assert.equal(await again({ initialBackoffMs: 2.5 }), "well");
  assert.equal(await again({}, { retryAfterMs: 7.5 }), "well");
  assert.equal(await again({ initialBackoffMs: 100_000, maxBackoffMs: Infinity }), "well");
  assert.equal(await again({ maxRetryDelayMs: Infinity }, { retryAfterMs: 120_000 }), "well");
  assert.deepEqual(slept, [2, 7, 100_000, 120_000]);
});

test("priorities may have a fraction, and Infinity is the highest", async () => {
  /** @type {string[]} */
  const order = [];
  const tools = Object.entries({ a: 0.5, b: 1.5, c: 1, d: Infinity, e: -0.5, f: -Infinity }).map(([name, priority]) => testTool(name, () => void order.push(name), { priority }));
  await new Agent({ model: scripted([call("f", "e", "a", "b", "c", "d"), "done"]), tools, toolExecution: "priority" }).prompt("Go");
  assert.equal(order.join(""), "dbcaef");
});

test("sessionId reaches the tools, and is one per agent where none is given", async () => {
  /** @type {string[]} */
  const seen = [];
  const tools = [testTool("t", (/** @type {any} */ _, /** @type {any} */ { sessionId }) => void seen.push(sessionId))];
  await readRun(new Agent({ model: scripted([call("t"), "ok"]), tools, sessionId: "mine" }).prompt("go"));
  const agent = new Agent({ model: scripted([call("t"), "ok", call("t"), "ok"]), tools });
  await readRun(agent.prompt("go"));
  await readRun(agent.prompt("again"));
  assert.equal(seen[0], "mine");
  assert.ok(seen[1] && seen[1] === seen[2]);
});

test("a receipt says why a letter was not delivered", async () => {
  const agent = new Agent({ model: scripted(["one"]) });
  const cleared = agent.steer("a");
  agent.clearQueues();
  assert.deepEqual(await cleared, { delivered: false, reason: "cleared" });
  const dropped = agent.followUp("b");
  agent[Symbol.dispose]();
  assert.deepEqual(await dropped, { delivered: false, reason: "disposed" });
});

test("a script may take its time over an item", async () => {
  const agent = new Agent({ model: scripted([async ({ messages }) => `heard ${messages.length}`]) });
  assert.equal((await agent.prompt("Go")).text, "heard 1");
});

test("the arguments that stream have every character, the one of no width too", async () => {
  const text = "\u0000 \ud83d\ude00 \u001f \u20ac";
  const args = JSON.stringify({ text }).replaceAll("\ud83d", "\\ud83d").replaceAll("\ude00", "\\ude00").replaceAll("\u20ac", "\\u20ac");
  const agent = new Agent({ model: scripted([{ toolCalls: [{ callId: "c", toolName: "quick", chunks: [...args] }] }, "done"]), tools: [quick] });
  const run = agent.prompt("Go");
  /** @type {any} */
  let partial;
  for await (const event of run) if (event.type === "message_update" && event.delta.type === "tool_call") partial = run.partialArguments("c");
  assert.deepEqual(partial, { text });
});
