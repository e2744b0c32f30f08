// @ts-check
// The host's own models: scripted in all its forms, custom stream functions that behave and misbehave.

import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { Agent, AgentError, call, clock, custom, deferred, misused, openai, readRun, scripted, settle, testTool, textOf } from "../kit.mjs";

const ONCE = { retry: { maxAttempts: 1 } };

/** @param {any} item @param {any} [options] */
const play = (item, options) => readRun(new Agent({ model: scripted([item, "done"]), tools: [testTool("go", () => "gone")], ...options }).prompt("Go"));

test("scripted: a text, pieces of text, thinking, calls, events, a function of the request", async () => {
  assert.equal((await play("Hello")).result.text, "Hello");
  assert.deepEqual((await play({ text: ["Hel", "lo"] })).all("message_update").map((event) => event.delta.delta), ["Hel", "lo"]);
  const thought = await play({ thinking: "hm", text: "so" });
  assert.deepEqual(thought.all("message_end")[0].message.content, [{ type: "thinking", thinking: "hm" }, { type: "text", text: "so" }]);
  const called = await play({ text: "I look", toolCalls: [{ toolName: "go", arguments: { a: 1 } }, { callId: "mine", toolName: "go", chunks: ['{"b"', ":2}"] }] });
  assert.deepEqual(called.all("tool_execution_start").map((event) => [event.callId, event.arguments]), [["call_1", { a: 1 }], ["mine", { b: 2 }]]);
  assert.equal(called.all("message_end")[0].message.stopReason, "tool_use");
  const events = await play([{ type: "start" }, { type: "text_start", contentIndex: 0 }, { type: "text_delta", contentIndex: 0, delta: "raw" }, { type: "text_end", contentIndex: 0 }, { type: "done", stopReason: "stop", usage: { input: 5, output: 1, cacheRead: 2, reasoning: 1 } }]);
  assert.deepEqual([events.result.text, events.result.usage], ["raw", { input: 5, output: 1, cacheRead: 2, cacheWrite: 0, reasoning: 1, total: 8 }]);
  assert.equal((await play((/** @type {any} */ request) => textOf(request.messages[0]))).result.text, "Go");
});

test("the cause is not what was thrown before the error that tells of the key", async () => {
  let calls = 0;
  const fetch = async () => {
    if (calls++ === 0) throw new TypeError("fetch failed");
    return new Response(JSON.stringify({ error: { message: "Incorrect API key provided: sk-42424242" } }), { status: 401 });
  };
  const { result } = await readRun(new Agent({ model: openai("gpt", { apiKey: "sk-42424242", fetch }), host: clock().host }).prompt("Go"));
  assert.deepEqual([result.error.code, result.error.message, result.error.cause], ["auth", "Incorrect API key provided: [key]", undefined]);
});

test("a scripted model may stand behind one of one's own, also with a delay", async () => {
  const inner = scripted([{ text: "late", delayMs: 1 }]);
  const outer = custom("outer", (request, { signal, runId }) => /** @type {any} */ (inner).streamFn(request, { signal, runId }));
  assert.equal((await readRun(new Agent({ model: outer }).prompt("Go"))).result.text, "late");
});

test("a key that a stream function is told stands in none of its errors, and in no cause", async () => {
  const boom = new Error("401: no such key: sk-42424242");
  const failure = { type: /** @type {const} */ ("error"), error: { code: /** @type {const} */ ("auth"), message: "who is sk-42424242?" } };
  const throws = custom("own", async function* ({ apiKey }) { yield { type: "start" }; throw apiKey === "sk-42424242" ? boom : apiKey; });
  for (const [model, cause, message] of /** @type {const} */ ([[throws, "401: no such key: [key]", "401: no such key: [key]"], [scripted([[failure]]), undefined, "who is [key]?"]])) {
    const agent = new Agent({ model, getApiKey: () => "sk-42424242" });
    const outcome = await readRun(agent.prompt("Go"));
    assert.equal(outcome.result.error.message, message);
    assert.equal(outcome.result.error.cause?.message, cause);
    assert.doesNotMatch(inspect(outcome.result.error), /sk-4242/);
    assert.doesNotMatch(JSON.stringify([outcome.events, agent.messages, agent.checkpoint()]), /sk-4242/);
  }
});

test("a character whose halves come in two pieces is whole", async () => {
  const arguments_ = { note: "a😀b" };
  const outcome = await play({ thinking: "😀", text: "Hi 😀!".split(""), toolCalls: [{ toolName: "go", chunks: JSON.stringify(arguments_).split("") }] });
  assert.equal(outcome.text, "Hi 😀!done");
  assert.deepEqual(outcome.all("message_end")[0].message.content.map((/** @type {any} */ block) => block.thinking ?? block.text ?? block.arguments), ["😀", "Hi 😀!", arguments_]);
  const [first, second] = "😀".split("");
  const delta = (/** @type {number} */ contentIndex, /** @type {string | undefined} */ text) => ({ type: "text_delta", contentIndex, delta: text });
  const places = [0, 1, 2];
  const mixed = await play([
    ...places.map((contentIndex) => ({ type: "text_start", contentIndex })),
    delta(0, `a${first}`), delta(1, `b${first}`), delta(0, second), delta(1, `${second}.`), delta(2, `c${first}`),
    ...places.map((contentIndex) => ({ type: "text_end", contentIndex })), { type: "done", stopReason: "stop" },
  ]);
  assert.deepEqual(mixed.all("message_end")[0].message.content.map(({ text }) => text), ["a😀", "b😀.", "c\ufffd"], "each block has its own; a half that stays alone is mended");
});

test("an error that is yielded may be an Error, with what it says of itself", async () => {
  const busy = Object.assign(new Error("busy"), { code: "throttled", retryAfterMs: 70 });
  const { slept, host } = clock();
  const script = [{ error: busy }, [{ type: "error", error: new AgentError({ code: "auth", message: "who are you?", retryable: false }) }]];
  const { result } = await readRun(new Agent({ model: scripted(/** @type {any} */ (script)), host }).prompt("Go"));
  assert.deepEqual([slept, result.error.code, result.error.message], [[70], "auth", "who are you?"]);
});

test("scripted: how an answer stops, its errors, its delay, its end", async () => {
  for (const stopReason of /** @type {const} */ (["length", "refusal", "content_filter"])) {
    const outcome = await play({ text: "so", stopReason });
    assert.deepEqual([outcome.all("message_end")[0].message.stopReason, outcome.result.stopReason], [stopReason, "completed"]);
  }
  const failed = await play({ text: "half", error: { code: "auth", message: "who are you?" } });
  assert.deepEqual([failed.result.error.code, failed.result.text], ["auth", "half"]);
  const { slept, host } = clock();
  await play({ text: "late", delayMs: 70 }, { host });
  assert.deepEqual(slept, [70]);
  const over = await readRun(new Agent({ model: scripted([]) }).prompt("Go"));
  assert.match(over.result.error.message, /script is exhausted: it has 0 items/);
});

test("a pause is another turn without a new message, five times in a row", async () => {
  const outcome = await readRun(new Agent({ model: scripted([...Array.from({ length: 9 }, () => ({ text: "p", stopReason: /** @type {const} */ ("pause") }))]) }).prompt("Go"));
  assert.equal(outcome.result.turns, 6);
});

/** @param {(request: any, context: any) => any} streamFn @param {any} [options] */
const stream = (streamFn, options) => readRun(new Agent({ model: custom("own", streamFn), ...ONCE, ...options }).prompt("Go"));
const text = (/** @type {string} */ delta) => [{ type: "start" }, { type: "text_start", contentIndex: 0 }, { type: "text_delta", contentIndex: 0, delta }, { type: "text_end", contentIndex: 0 }, { type: "done", stopReason: "stop" }];

test("a stream function may be a generator, give a promise of one, or anything that can be walked", async () => {
  assert.equal((await stream(async function* () { yield* text("a"); })).result.text, "a");
  assert.equal((await stream(async () => (async function* () { yield* text("b"); })())).result.text, "b");
  assert.equal((await stream(() => text("c"))).result.text, "c");
  assert.equal((await stream(() => new ReadableStream({ start(controller) { for (const event of text("d")) controller.enqueue(event); controller.close(); } }))).result.text, "d");
});

test("a stream function gets the request and its signal", async () => {
  /** @type {any} */
  let received;
  const outcome = await stream((request, context) => ((received = { request, context }), text("a")), { systemPrompt: "Be brief.", tools: [testTool("go", () => "")], streamOptions: { temperature: 1 }, getApiKey: () => "k" });
  assert.equal(received.request.model, "own");
  assert.equal(received.request.systemPrompt, "Be brief.");
  assert.deepEqual(received.request.tools, [{ name: "go", description: "says go", parameters: { type: "object", properties: {} } }]);
  assert.deepEqual(received.request.options.temperature, 1);
  assert.equal(received.request.apiKey, "k");
  assert.equal(received.context.runId, outcome.result.runId);
  assert.ok(received.context.signal instanceof AbortSignal);
  assert.ok(!JSON.stringify(outcome.events).includes('"k"'));
});

test("a stream function is told when its answer is not wanted any more", async () => {
  const reached = deferred();
  let returned = false;
  /** @type {any} */
  let signal;
  const agent = new Agent({ model: custom("own", async function* (_, context) {
    ({ signal } = context);
    try {
      yield { type: "start" };
      reached.resolve();
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      yield { type: "text_start", contentIndex: 0 };
    } finally {
      returned = true;
    }
  }) });
  const run = agent.prompt("Go");
  reached.promise.then(() => run.abort(new Error("mine")));
  await readRun(run);
  await settle();
  assert.equal(signal.aborted, true);
  assert.equal(signal.reason.message, "mine");
  assert.equal(returned, true);
});

const boom = new Error("boom");
/** @type {[string, (request: any, context: any) => any, RegExp, unknown?][]} */
const WRONG = [
  ["throws", () => { throw boom; }, /boom/, boom],
  ["rejects", async () => { throw boom; }, /boom/, boom],
  ["throws in the middle", async function* () { yield { type: "start" }; throw boom; }, /boom/, boom],
  ["throws a word", async function* () { throw "no"; }, /no/],
  ["throws a thing without a prototype", async function* () { throw Object.create(null); }, /./],
  ["throws undefined", async function* () { throw undefined; }, /undefined/],
  ["throws what nobody may look at", async function* () { throw new Proxy({}, { get() { throw boom; } }); }, /an object was thrown/],
  ["throws a thing whose code throws", async function* () { throw { message: "hands off", get code() { throw boom; } }; }, /hands off/],
  ["gives nothing", () => undefined, /streamFn of model `own` must give an async iterable/],
  ["gives a number", () => 7, /must give an async iterable/],
  ["ends without `done`", async function* () { yield { type: "start" }; }, /ended/],
  ["yields nothing at all", async function* () {}, /ended/],
  ["yields an unknown event", async function* () { yield { type: "txt_delta", contentIndex: 0, delta: "x" }; }, /bad event.*txt_delta/],
  ["yields a text", async function* () { yield "hello"; }, /bad event/],
  ["yields undefined", async function* () { yield undefined; }, /bad event/],
  ["yields a delta that is no text", async function* () { yield { type: "start" }; yield { type: "text_start", contentIndex: 0 }; yield { type: "text_delta", contentIndex: 0, delta: 7 }; }, /bad event|delta/],
  ["yields a block with a negative place", async function* () { yield { type: "text_start", contentIndex: -1 }; }, /bad event|contentIndex/],
  ["yields what is no JSON", async function* () { yield { type: "done", stopReason: "stop", usage: { input: 1n } }; }, /BigInt|bad event/],
  ["yields a cycle", async function* () { const event = /** @type {any} */ ({ type: "start" }); event.self = event; yield event; }, /circular/],
  ["stops for an unknown reason", async function* () { yield { type: "done", stopReason: "tired" }; }, /tired/],
  ["opens a block twice", async function* () { yield { type: "text_start", contentIndex: 0 }; yield { type: "text_start", contentIndex: 0 }; }, /./],
  ["writes into a block that is not there", async function* () { yield { type: "text_delta", contentIndex: 3, delta: "x" }; }, /./],
];
for (const [name, streamFn, message, cause] of WRONG) {
  test(`a stream function that ${name} ends the run with an error that says so`, async () => {
    const outcome = await stream(streamFn);
    assert.equal(outcome.result.stopReason, "error");
    assert.match(outcome.result.error.message, message);
    if (cause) assert.equal(outcome.result.error.cause, cause);
  });
}

test("an answer that is done is not cancelled: its signal is not aborted, and its generator ends", async () => {
  const told = /** @type {any[]} */ ([]);
  const model = custom("m", async function* (_, { signal }) {
    signal.addEventListener("abort", () => told.push("aborted"));
    try {
      yield { type: "start" };
      yield { type: "done", stopReason: "stop" };
      told.push("read on");
    } finally {
      told.push("ended");
    }
  });
  await readRun(new Agent({ model }).prompt("Go"));
  assert.deepEqual(told, ["ended"]);
});

test("an error of a stream function may say its kind, and is tried again if it is a passing one", async () => {
  const { slept, host } = clock();
  let n = 0;
  const model = custom("own", async function* () {
    n += 1;
    if (n === 1) throw Object.assign(new Error("later"), { code: "throttled", retryAfterMs: 1234 });
    if (n === 2) throw new AgentError({ code: "overloaded", message: "busy", retryable: true });
    yield* /** @type {any} */ (text("there"));
  });
  const outcome = await readRun(new Agent({ model, host }).prompt("Go"));
  assert.equal(outcome.result.text, "there");
  assert.deepEqual(outcome.all("retry_attempt").map((event) => event.error.code), ["throttled", "overloaded"]);
  assert.deepEqual(slept, [1234, 2000]);
});

test("retry may be a function", async () => {
  const { slept, host } = clock();
  /** @type {any[]} */
  const retries = [];
  const items = Array.from({ length: 4 }, () => ({ error: { code: /** @type {const} */ ("unknown"), message: "hm" } }));
  const outcome = await readRun(new Agent({ model: scripted(items), host, retry: (error, attempt) => (retries.push([error.code, attempt]), attempt < 3 ? attempt * 10 : false) }).prompt("Go"));
  assert.deepEqual(retries, [["unknown", 1], ["unknown", 2], ["unknown", 3]]);
  assert.deepEqual(slept, [10, 20]);
  assert.equal(outcome.result.stopReason, "error");
});

test("what comes after the end of an answer is nothing", async () => {
  const outcome = await stream(async function* () { yield* text("a"); yield { type: "text_start", contentIndex: 1 }; yield { type: "text_delta", contentIndex: 1, delta: "ghost" }; });
  assert.equal(outcome.result.text, "a");
  assert.equal(outcome.text, "a");
});

test("models are described, not run: bad ones are refused where they are made", () => {
  misused(() => custom("m", /** @type {any} */ (undefined)), /custom\("m"\) needs a streamFn, got nothing/);
  misused(() => scripted(/** @type {any} */ ("text")), /scripted needs an array of items, got a string/);
});

test("calls of two turns with one id are told apart", async () => {
  const outcome = await readRun(new Agent({ model: scripted([call("go"), call("go"), "done"]), tools: [testTool("go", () => "gone")] }).prompt("Go"));
  assert.deepEqual(outcome.all("tool_execution_end").map((event) => event.callId), ["c1", "c1#2"]);
});

test("blocks that are open at the same time come out in the order of their numbers, each whole", async () => {
  const piece = (/** @type {number} */ contentIndex, /** @type {string} */ delta) => ({ type: /** @type {"text_delta"} */ ("text_delta"), contentIndex, delta });
  const model = custom("interleaved", async function* () {
    yield { type: "thinking_start", contentIndex: 0 };
    yield { type: "text_start", contentIndex: 1 };
    yield { type: "tool_call_start", contentIndex: 2, callId: "a", toolName: "go" };
    yield* [piece(1, "o"), { type: "thinking_delta", contentIndex: 0, delta: "h" }, { type: "tool_call_delta", contentIndex: 2, delta: '{"x"' }];
    yield* [{ type: "tool_call_delta", contentIndex: 2, delta: ":1}" }, { type: "thinking_delta", contentIndex: 0, delta: "m" }, piece(1, "ne")];
    for (const type of /** @type {const} */ (["tool_call_end", "text_end", "thinking_end"])) yield { type, contentIndex: ["thinking_end", "text_end", "tool_call_end"].indexOf(type) };
    yield { type: "done", stopReason: "tool_use" };
  });
  const { all } = await readRun(new Agent({ model, tools: [testTool("go", () => "gone")], maxTurns: 1 }).prompt("Go"));
  assert.deepEqual(all("message_end")[0].message.content, [
    { type: "thinking", thinking: "hm" }, { type: "text", text: "one" }, { type: "tool_call", callId: "a", toolName: "go", arguments: { x: 1 } },
  ]);
});
