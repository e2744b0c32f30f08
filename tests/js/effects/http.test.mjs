// @ts-check
// Models over real HTTP on loopback: recorded streams cut in every way, tools, refusals, retries, and
// whatever a server can do wrong.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { createServer } from "node:net";
import { test } from "node:test";
import { Agent, clock, deferred, openai, openaiCompatible, readRun, settle, textOf, tool } from "../kit.mjs";
import { calls, recorded, refusal, serve, sse, textAnswer } from "../server.mjs";

const KEY = "sk-test-0123456789abcdef";
const FIXTURES = new URL("../../data/fixtures/openai-chat/", import.meta.url);
const NAMES = readdirSync(FIXTURES).filter((name) => name.endsWith(".sse")).map((name) => name.slice(0, -4));

/** @param {{ baseUrl: string }} server @param {any} [options] */
const modelAt = ({ baseUrl }, options) => openaiCompatible("test-model", { baseUrl, apiKey: KEY, ...options });

/** No second attempt: for tests of a single answer. */
const ONCE = { maxAttempts: 1 };

/** Asserts that nothing visible of a run contains the key. @param {any} outcome */
function keepsTheKey({ events, result }) {
  const shown = JSON.stringify(events) + JSON.stringify(result) + String(result.error) + JSON.stringify(result.error?.info) + String(result.error?.stack);
  assert.ok(!shown.includes(KEY), "the key is shown");
}

for (const cut of [1, 7, 17, undefined]) {
  test(`recorded streams come out as they are meant to, ${cut ? `${cut} bytes at a time` : "whole"}`, async (t) => {
    // Small pieces take long, so long recordings are left out: only their beginning would be anything new.
    const names = NAMES.filter((name) => recorded(name).length < (cut ?? 999) * 1000);
    const server = await serve(t, names.map((name) => ({ body: recorded(name), cut })));
    for (const name of names) {
      const expected = JSON.parse(readFileSync(new URL(`${name}.expect.json`, FIXTURES), "utf8"));
      const tools = [...new Set((expected.tool_calls ?? []).map((/** @type {any} */ call) => call.name))].map((tool) => ({
        name: tool, description: "", parameters: { type: "object" }, execute: () => "done",
      }));
      const agent = new Agent({ model: modelAt(server), tools, retry: ONCE, maxTurns: 1 });
      const outcome = await readRun(agent.prompt("Hello"));
      const message = outcome.all("message_end")[0].message;
      assert.equal(textOf(message), (expected.text ?? "") + (expected.refusal ?? ""), name);
      if (expected.text_from_deltas === undefined) assert.equal(outcome.text, textOf(message), name);
      const called = message.content.filter((/** @type {any} */ block) => block.type === "tool_call");
      const complete = (expected.tool_calls ?? []).filter((/** @type {any} */ call) => call.complete !== false);
      assert.deepEqual(called.filter((/** @type {any} */ _, /** @type {number} */ i) => expected.tool_calls[i].complete !== false).map((/** @type {any} */ block) => [block.toolName, block.arguments]), complete.map((/** @type {any} */ call) => [call.name, call.arguments]), name);
      if (expected.error) assert.equal(outcome.result.error?.code, expected.error.kind, name);
      else if (expected.stop_reason !== "unknown") assert.equal(message.stopReason, expected.stop_reason, name);
      keepsTheKey(outcome);
    }
  });
}

test("a run of two tools at once: the request, the results in the order of the calls, the answer", async (t) => {
  const server = await serve(t, [calls(["slow", '{"n":1}'], ["quick", '{"n":2}']), textAnswer(["It is ", "done."])]);
  /** @type {string[]} */
  const order = [];
  const tools = ["slow", "quick"].map((name) =>
    tool({
      name, description: `is ${name}`, parameters: { type: "object", properties: { n: { type: "number" } }, required: ["n"] },
      async execute({ n }) {
        order.push(`${name} begins`);
        if (name === "slow") for (let i = 0; i < 5; i++) await settle();
        order.push(`${name} ends`);
        return `${name} ${n}`;
      },
    }),
  );
  const agent = new Agent({ model: modelAt(server), tools, systemPrompt: "Be brief." });
  const outcome = await readRun(agent.prompt("Go"));
  assert.equal(outcome.result.text, "It is done.");
  assert.deepEqual(order, ["slow begins", "quick begins", "quick ends", "slow ends"]);
  assert.deepEqual(outcome.all("tool_execution_end").map((event) => event.toolName), ["quick", "slow"]);
  assert.deepEqual(outcome.all("turn_end")[0].toolResults.map(textOf), ["slow 1", "quick 2"]);
  assert.deepEqual(outcome.result.usage, { input: 14, output: 6, cacheRead: 0, cacheWrite: 0, total: 20 });

  const [first, second] = server.requests;
  assert.equal(first?.path, "/v1/chat/completions");
  assert.equal(first?.headers.authorization, `Bearer ${KEY}`);
  assert.equal(first?.body.stream, true);
  assert.deepEqual(first?.body.messages.map((/** @type {any} */ m) => m.role), ["system", "user"]);
  assert.deepEqual(first?.body.tools.map((/** @type {any} */ t) => t.function.name), ["slow", "quick"]);
  assert.deepEqual(second?.body.messages.slice(2).map((/** @type {any} */ m) => [m.role, m.tool_call_id ?? m.tool_calls?.length, m.content ?? null]), [["assistant", 2, null], ["tool", "call_0", "slow 1"], ["tool", "call_1", "quick 2"]]);
  keepsTheKey(outcome);
});

test("two requests of a run share one connection", async (t) => {
  const server = await serve(t, [calls(["go", "{}"]), textAnswer("done"), textAnswer("again")]);
  // The last bytes of an answer come after the event that ends it.
  const whole = async () => {
    assert.equal(await server.requests.at(-1)?.closed, "answered");
    await settle();
  };
  const agent = new Agent({ model: modelAt(server), tools: [{ name: "go", description: "", parameters: { type: "object" }, execute: whole }] });
  await readRun(agent.prompt("Go"));
  await whole();
  await readRun(agent.prompt("Again"));
  assert.equal(server.requests.length, 3);
  assert.equal(server.connections, 1);
});

test("what a model thinks comes as thinking, before the text", async (t) => {
  const server = await serve(t, [recorded("moonshot-reasoning")]);
  const outcome = await readRun(new Agent({ model: modelAt(server) }).prompt("Hello"));
  const types = outcome.all("message_end")[0].message.content.map((/** @type {any} */ block) => block.type);
  assert.equal(types[0], "thinking");
  assert.ok(outcome.all("message_update").some(({ delta }) => delta.type === "thinking"));
});

test("arguments that are no JSON and arguments that are empty", async (t) => {
  const server = await serve(t, [calls(["bad", '{"a":'], ["empty", ""]), textAnswer("I see")]);
  /** @type {any[]} */
  const ran = [];
  const tools = ["bad", "empty"].map((name) => ({ name, description: "", parameters: { type: "object" }, execute: (/** @type {any} */ args) => { ran.push([name, args]); return "fine"; } }));
  const outcome = await readRun(new Agent({ model: modelAt(server), tools }).prompt("Go"));
  assert.deepEqual(ran, [["empty", {}]]);
  const [bad, empty] = outcome.all("turn_end")[0].toolResults;
  assert.equal(bad.isError, true);
  assert.equal(bad.cause, "invalid_arguments");
  assert.match(textOf(bad), /\{"a":/);
  assert.equal(empty.isError, false);
});

test("a call that was cut by the length limit never runs, the complete one beside it does", async (t) => {
  const piece = (/** @type {number} */ index, /** @type {string} */ name, /** @type {string} */ args) => ({ choices: [{ index: 0, delta: { tool_calls: [{ index, id: `call_${index}`, type: "function", function: { name, arguments: args } }] } }] });
  const cut = sse(piece(0, "whole", "{}"), piece(1, "cut", '{"a":'), { choices: [{ index: 0, delta: {}, finish_reason: "length" }] });
  const server = await serve(t, [cut, textAnswer("I go on")]);
  /** @type {string[]} */
  const ran = [];
  const tools = ["whole", "cut"].map((name) => ({ name, description: "", parameters: { type: "object" }, execute: () => void ran.push(name) }));
  const outcome = await readRun(new Agent({ model: modelAt(server), tools }).prompt("Go"));
  assert.deepEqual(ran, ["whole"]);
  const result = outcome.all("turn_end")[0].toolResults[1];
  assert.equal(result.cause, "incomplete");
  assert.equal(textOf(result), "error: tool call was incomplete due to max tokens reached");
  assert.equal(outcome.result.stopReason, "completed");
});

test("a server that asks for patience is asked again after the time that it names", async (t) => {
  const { slept, host } = clock();
  const server = await serve(t, [
    { status: 429, headers: { "retry-after": "7" }, body: '{"error":{"message":"slow down"}}' },
    { status: 503, headers: { "retry-after-ms": "250" }, body: '{"error":{"message":"busy"}}' },
    textAnswer("here I am"),
  ]);
  const outcome = await readRun(new Agent({ model: modelAt(server), host }).prompt("Hello"));
  assert.equal(outcome.result.text, "here I am");
  assert.deepEqual(slept, [7000, 250]);
  assert.deepEqual(outcome.all("retry_attempt").map(({ attempt, delayMs, error }) => [attempt, delayMs, error.code]), [[1, 7000, "throttled"], [2, 250, "overloaded"]]);
  assert.equal(outcome.all("message_start").length, 1);
});

test("a stream that is cut is taken back and asked for again", async (t) => {
  const { host } = clock();
  const whole = textAnswer(["one ", "two ", "three"]);
  // Bun forgets what had come and was not read when a connection is closed.
  const heard = deferred();
  const server = await serve(t, [{ body: whole, after: whole.indexOf("three") - 40, until: () => heard.promise }, whole]);
  const agent = new Agent({ model: modelAt(server), host });
  agent.subscribe(({ type }) => type === "message_update" && heard.resolve());
  const outcome = await readRun(agent.prompt("Count"));
  assert.equal(outcome.all("message_reset").length, 1);
  assert.equal(outcome.all("retry_attempt")[0].error.code, "network");
  assert.equal(outcome.result.text, "one two three");
  const rest = outcome.events.slice(outcome.events.findIndex((event) => event.type === "message_reset"));
  assert.equal(rest.filter((event) => event.type === "message_update").map((event) => event.delta.delta).join(""), "one two three");
});

test("a call whose stream was cut begins anew in the next attempt", async (t) => {
  const { host } = clock();
  const piece = (/** @type {string} */ args) => ({ choices: [{ index: 0, delta: { tool_calls: [{ index: 0, id: "x", type: "function", function: { name: "go", arguments: args } }] } }] });
  // The second piece tells that the name is whole, with which the call begins.
  const cut = sse(piece('{"a":1,'), piece('"b":'), piece("2}"));
  const heard = deferred();
  const server = await serve(t, [{ body: cut, after: cut.indexOf("2}"), until: () => heard.promise }, calls(["go", '{"c":3}', "x"]), textAnswer("done")]);
  const agent = new Agent({ model: modelAt(server), host, tools: [{ name: "go", description: "", parameters: { type: "object" }, execute: () => "gone" }] });
  const run = agent.prompt("Go");
  /** @type {any[]} */
  const seen = [];
  agent.subscribe((event) => {
    if (event.type !== "message_update" || event.delta.type !== "tool_call") return;
    seen.push(structuredClone(run.partialArguments(event.delta.callId)));
    heard.resolve();
  });
  const outcome = await readRun(run);
  assert.equal(outcome.result.stopReason, "completed");
  assert.deepEqual(seen, [{ a: 1 }, { c: 3 }]);
});

/** Ways in which a server can be useless, and the error for each. @type {[string, any, RegExp, string][]} */
const USELESS = [
  ["401", { status: 401, body: JSON.stringify({ error: { message: `Incorrect API key provided: ${KEY}. You can find your API key in your account.`, code: "invalid_api_key" } }) }, /Incorrect API key/, "auth"],
  ["404 with a page", { status: 404, headers: { "content-type": "text/html" }, body: "<!doctype html><title>Not Found</title><h1>Not Found</h1>" }, /Not Found/, "invalid_request"],
  ["an HTML page", { headers: { "content-type": "text/html" }, body: "<!doctype html><html><body>Please log in</body></html>" }, /no stream of events.*Please log in.*is the address/, "invalid_request"],
  ["a body that is no SSE", { headers: { "content-type": "text/plain" }, body: "hello there" }, /no stream of events but: hello there/, "invalid_request"],
  ["an empty body", { body: "" }, /ended|empty/i, "network"],
  ["a body of JSON", { headers: { "content-type": "application/json" }, body: JSON.stringify({ error: { message: "the model is not loaded" } }) }, /the model is not loaded/, "server"],
  ["a cut body", { body: textAnswer("never whole"), after: 30 }, /127\.0\.0\.1.*cut|ended/, "network"],
];
for (const [name, answer, text, code] of USELESS) {
  test(`a useless answer is told plainly: ${name}`, async (t) => {
    const server = await serve(t, [answer]);
    const outcome = await readRun(new Agent({ model: modelAt(server), retry: ONCE }).prompt("Hello"));
    assert.equal(outcome.result.stopReason, "error");
    assert.match(outcome.result.error.message, text);
    assert.equal(outcome.result.error.code, code, outcome.result.error.message);
    assert.equal(outcome.all("message_end")[0].message.stopReason, "error");
    keepsTheKey(outcome);
  });
}

for (const name of ["401-openrouter", "401-mistral", "400-temperature", "429-insufficient-quota"]) {
  test(`a recorded refusal ends the run with its own words: ${name}`, async (t) => {
    const expected = JSON.parse(readFileSync(new URL(`${name}.expect.json`, FIXTURES), "utf8"));
    const server = await serve(t, [refusal(name), textAnswer("never asked")]);
    const outcome = await readRun(new Agent({ model: modelAt(server) }).prompt("Hello"));
    assert.equal(outcome.result.error.code, expected.error.kind);
    assert.equal(outcome.result.error.info.retryable, false);
    assert.equal(server.requests.length, 1);
    keepsTheKey(outcome);
  });
}

test("nobody listening at the address: the text names it and asks the right question", async (t) => {
  const closed = createServer();
  await new Promise((resolve) => closed.listen(0, "127.0.0.1", () => resolve(undefined)));
  const { port } = /** @type {import("node:net").AddressInfo} */ (closed.address());
  await new Promise((resolve) => closed.close(resolve));
  const outcome = await readRun(new Agent({ model: modelAt({ baseUrl: `http://127.0.0.1:${port}/v1` }), retry: ONCE }).prompt("Hello"));
  assert.equal(outcome.result.error.code, "network");
  assert.match(outcome.result.error.message, new RegExp(`no answer from 127.0.0.1:${port}.*ECONNREFUSED.*Is the server running`));
  assert.ok(outcome.result.error.cause instanceof TypeError, "the cause is what fetch threw");
  keepsTheKey(outcome);
});

test("a custom `fetch` that throws an error of its own, or refuses its arguments, is misuse, and is called once", async () => {
  const failures = [
    new TypeError("Cannot read properties of undefined (reading 'tenant')"), new TypeError("x.get is not a function"), new ReferenceError("tenant is not defined"),
    new TypeError("undefined is not an object (evaluating 'a.b')"), new TypeError("RequestInit: Expected signal (\"AbortSignal {}\") to be an instance of AbortSignal."), new TypeError("Failed to execute 'fetch' on 'Window': Illegal invocation"),
  ];
  for (const failure of failures) {
    let calls = 0;
    const outcome = await readRun(new Agent({ model: openai("m", { apiKey: KEY, fetch: async () => (calls++, Promise.reject(failure)) }) }).prompt("Hello"));
    const { code, message, cause } = outcome.result.error;
    assert.deepEqual([code, cause, calls], ["misuse", failure, 1], failure.message);
    assert.match(message, /^`fetch` failed before it asked api\.openai\.com: /);
    assert.doesNotMatch(message, /CORS/);
  }
  for (const failure of ["fetch failed", "Failed to fetch", "Load failed", "NetworkError when attempting to fetch resource.", "Network request failed", "error sending request for url"].map((text) => new TypeError(text))) {
    const { error } = (await readRun(new Agent({ model: openai("m", { apiKey: KEY, fetch: async () => Promise.reject(failure) }), retry: ONCE }).prompt("Hello"))).result;
    assert.equal(error.code, "network", failure.message);
  }
});

test("a key that no header can hold is told as such, not shown in the error, and not tried again", async (t) => {
  const server = await serve(t, [textAnswer("never")]);
  for (const bad of [`${KEY}\nwith a line break`, "sk-…cut", "ключ"]) {
    const outcome = await readRun(new Agent({ model: modelAt(server, { apiKey: bad }) }).prompt("Hello"));
    assert.deepEqual([outcome.result.error.code, outcome.all("retry_attempt").length], ["misuse", 0]);
    assert.match(outcome.result.error.message, /a header cannot be sent.*is the key whole\?/);
    keepsTheKey(outcome);
  }
});

test("a model's own fetch is used, and its headers are sent", async (t) => {
  const server = await serve(t, [textAnswer("hi")]);
  /** @type {any[]} */
  const providers = [];
  const model = openai("gpt-x", {
    apiKey: KEY, baseUrl: `${server.url}/v1/`, headers: { "x-team": "blue" },
    fetch: (/** @type {any} */ url, /** @type {any} */ init) => {
      providers.push([String(url), init.method, init.body.constructor.name]);
      return fetch(url, init);
    },
  });
  assert.deepEqual([model.provider, model.id], ["openai", "gpt-x"]);
  await readRun(new Agent({ model }).prompt("Hello"));
  assert.deepEqual(providers, [[`${server.url}/v1/chat/completions`, "POST", "Uint8Array"]]);
  assert.equal(server.requests[0]?.headers["x-team"], "blue");
});

test("getApiKey is asked once per turn, and its key serves the attempts of that turn", async (t) => {
  const { host } = clock();
  const server = await serve(t, [{ status: 503, body: "{}" }, calls(["go", "{}"]), textAnswer("done")]);
  /** @type {string[]} */
  const providers = [];
  const agent = new Agent({
    model: openaiCompatible("m", { baseUrl: server.baseUrl }), host,
    getApiKey: (provider) => { providers.push(provider); return `${KEY}-${providers.length}`; },
    tools: [{ name: "go", description: "", parameters: { type: "object" }, execute: () => "gone" }],
  });
  keepsTheKey(await readRun(agent.prompt("Go")));
  assert.equal(providers.length, 2);
  assert.equal(providers[0], agent.model.provider);
  assert.deepEqual(server.requests.map((request) => request.headers.authorization), [`Bearer ${KEY}-1`, `Bearer ${KEY}-1`, `Bearer ${KEY}-2`]);
});

test("a model's apiKey may be a function, also one that answers later; getApiKey goes before it", async (t) => {
  const server = await serve(t, [textAnswer("a"), textAnswer("b"), textAnswer("c")]);
  const at = (/** @type {any} */ apiKey, /** @type {any} */ more) => new Agent({ model: modelAt(server, { apiKey }), ...more });
  await readRun(at(() => "now").prompt("Hello"));
  await readRun(at(async () => "later").prompt("Hello"));
  await readRun(at(() => "own", { getApiKey: () => "asked" }).prompt("Hello"));
  assert.deepEqual(server.requests.map((request) => request.headers.authorization), ["Bearer now", "Bearer later", "Bearer asked"]);
});

test("an empty key is none, whoever gives it", async (t) => {
  const server = await serve(t, Array(4).fill(textAnswer("a")));
  for (const [apiKey, getApiKey] of /** @type {any[]} */ ([["", undefined], [" \n", undefined], [() => "", undefined], [KEY, () => ""]])) {
    await readRun(new Agent({ model: modelAt(server, { apiKey }), getApiKey }).prompt("Hello"));
  }
  assert.deepEqual(server.requests.map((request) => request.headers.authorization), Array(4).fill(undefined));
});

test("a model that falls back is given its own key, never that of the one before", async (t) => {
  const [first, second] = [await serve(t, Array(6).fill({ status: 401, body: "{}" })), await serve(t, Array(6).fill(textAnswer("here")))];
  const { host } = clock();
  for (const [theirs, getApiKey, sent] of /** @type {any[]} */ ([
    [() => "second", undefined, "Bearer second"],
    ["second", undefined, "Bearer second"],
    [undefined, undefined, undefined],
    ["second", () => undefined, "Bearer second"],
    [undefined, () => undefined, undefined],
  ])) {
    for (const ours of ["first", async () => "first"]) {
      const down = openaiCompatible("m", { baseUrl: first.baseUrl, apiKey: ours, fetch: (/** @type {any} */ url, /** @type {any} */ init) => fetch(url, init).then(() => Promise.reject(new TypeError("down"))) });
      const fallback = [openaiCompatible("n", { baseUrl: second.baseUrl, ...(theirs && { apiKey: theirs }) })];
      const outcome = await readRun(new Agent({ model: down, fallback, getApiKey, retry: ONCE, host }).prompt("Hello"));
      assert.equal(outcome.result.text, "here");
      assert.equal(first.requests.pop()?.headers.authorization, "Bearer first");
      assert.equal(second.requests.pop()?.headers.authorization, sent);
    }
  }
});

test("getApiKey is asked once a turn, however many models of the provider are tried", async (t) => {
  const [first, second] = [await serve(t, Array(6).fill({ status: 503, body: "{}" })), await serve(t, [calls(["add", '{"a":1,"b":2}']), textAnswer("3")])];
  const { host } = clock();
  /** @type {string[]} */
  const providers = [];
  const model = openaiCompatible("m", { baseUrl: first.baseUrl });
  const fallback = [openaiCompatible("n", { baseUrl: second.baseUrl })];
  const getApiKey = (/** @type {string} */ provider) => `${provider} ${providers.push(provider)}`;
  const outcome = await readRun(new Agent({ model, fallback, getApiKey, retry: ONCE, host, tools: [tool({ name: "add", description: "Adds", parameters: { type: "object" }, execute: () => 3 })] }).prompt("Hello"));
  assert.equal(outcome.result.text, "3");
  assert.deepEqual([...first.requests, ...second.requests].map((request) => request.headers.authorization), [1, 2, 1, 2].map((n) => `Bearer openai-compatible ${n}`));
});

test("a key that cannot be had ends the run, and says why", async (t) => {
  const server = await serve(t, [textAnswer("never")]);
  const vaultError = new Error("the vault is closed");
  const outcome = await readRun(new Agent({ model: modelAt(server), getApiKey: async () => { throw vaultError; } }).prompt("Hello"));
  assert.equal(outcome.result.error.code, "auth");
  assert.match(outcome.result.error.message, /the vault is closed/);
  assert.equal(outcome.result.error.cause, vaultError);
  assert.equal(server.requests.length, 0);
});

test("an abort in mid-stream closes the connection and keeps what was said", async (t) => {
  const whole = textAnswer(["once ", "upon ", "a time"]);
  const server = await serve(t, [{ body: whole, silent: whole.indexOf("\n\n", whole.indexOf("upon")) + 2 }]);
  const agent = new Agent({ model: modelAt(server) });
  const run = agent.prompt("Tell me a story");
  agent.subscribe((event) => {
    if (event.type === "message_update" && event.delta.delta === "upon ") run.abort("enough");
  });
  const outcome = await readRun(run);
  assert.equal(outcome.result.stopReason, "aborted");
  assert.equal(outcome.result.text, "once upon ");
  assert.equal(await server.requests[0]?.closed, "left");
});

test("a server that is silent is noticed by the limits of time", async (t) => {
  const requested = deferred();
  const server = await serve(t, () => (requested.resolve(), { body: "", silent: 0 }));
  const { host, slept } = clock();
  const { sleep } = host;
  host.sleep = async (ms) => (await requested.promise, sleep(ms));
  const outcome = await readRun(new Agent({ model: modelAt(server), retry: ONCE, host, timeouts: { firstChunkMs: 5000 } }).prompt("Hello"));
  assert.equal(outcome.result.error.code, "network");
  assert.deepEqual(slept, [5000]);
  assert.equal(await server.requests[0]?.closed, "left");
});

test("the options of a stream stand in the request", async (t) => {
  const server = await serve(t, [textAnswer("hi")]);
  const streamOptions = { temperature: 0, maxTokens: 77, stop: ["END"], toolChoice: "required", body: { seed: 7 }, headers: { "x-trace": "abc" } };
  const tools = [{ name: "go", description: "", parameters: { type: "object" }, execute: () => "" }];
  await readRun(new Agent({ model: modelAt(server), streamOptions, tools }).prompt("Hello"));
  const { body, headers } = /** @type {any} */ (server.requests[0]);
  assert.equal(body.temperature, 0);
  assert.equal(body.max_tokens ?? body.max_completion_tokens, 77);
  assert.deepEqual(body.stop, ["END"]);
  assert.equal(body.tool_choice, "required");
  assert.equal(body.seed, 7);
  assert.equal(headers["x-trace"], "abc");
});

test("a request that never left costs nothing", async () => {
  const port = await new Promise((/** @type {(port: number) => void} */ resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
      server.close(() => resolve(port));
    });
  });
  const agent = new Agent({ model: openaiCompatible("m", { baseUrl: `http://127.0.0.1:${port}/v1`, price: { input: 10, output: 10 } }), systemPrompt: "x ".repeat(2_000), host: { sleep: async () => {} } });
  const { error, usage } = await agent.prompt("Hello");
  assert.deepEqual([error?.code, error?.phase, usage.total, usage.cost ?? 0, usage.estimated], ["network", "connect", 0, 0, undefined]);
});
