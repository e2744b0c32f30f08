// @ts-check
// The engine in parts, as pages load it: the run begins and sends its request before the others are asked for, the first
// text is there before everything is, and whatever comes in between changes nothing but the time that it takes.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { inParts, use } from "../../../pkg/core.js";
import { Agent, anthropic, deferred, errorInfo, gemini, openai, openaiCompatible, openaiResponses, readRun, settle, testTool } from "../kit.mjs";
import { calls, sse, textAnswer } from "../server.mjs";

const NAMES = ["first", "answer", "rest"];
const fileOf = (/** @type {string} */ name) => new URL(`../../../pkg/turnwheel${name}.wasm`, import.meta.url);
const compiled = async (/** @type {string} */ name) => WebAssembly.compile(await readFile(fileOf(name)));
/** @type {Record<string, WebAssembly.Module>} */
const files = Object.fromEntries(await Promise.all(NAMES.map(async (name) => [name, await compiled(`-${name}`)])));
const whole = await compiled("");

/**
 * A page: what reads answers and the rest come when they are let through, and each file may be replaced. Each begins to arrive
 * as soon as it is asked for.
 * @param {(name: string) => any} [replaced] gives or throws what is loaded in place of a file
 */
function page(replaced = () => undefined) {
  /** @type {string[]} */
  const log = [];
  const [answer, rest] = [deferred(), deferred()];
  const file = (/** @type {string} */ name) => async (/** @type {(() => void) | undefined} */ begun) => {
    log.push(name);
    begun?.();
    if (name === "answer") await answer.promise;
    if (name === "rest") await rest.promise;
    return replaced(name) ?? files[name];
  };
  use(inParts({ first: file("first"), answer: file("answer"), rest: file("rest"), whole: async () => (log.push("whole"), replaced("whole") ?? Promise.reject(new Error("no whole"))) }));
  /** @type {any[]} */
  const requests = [];
  /** What the model's server sends. @type {TransformStream<string, string>[]} */
  const answers = [];
  const fetch = async (/** @type {any} */ url, /** @type {any} */ init) => {
    log.push("request");
    requests.push({ url, ...init, text: new TextDecoder().decode(init.body), signal: init.signal });
    const body = new TransformStream();
    answers.push(body);
    return new Response(body.readable.pipeThrough(new TextEncoderStream()), { headers: { "content-type": "text/event-stream" } });
  };
  /** Sends a piece of the n-th answer. @param {string} text @param {number} [n] */
  const say = async (text, n = -1) => {
    const writer = /** @type {TransformStream<string, string>} */ (answers.at(n)).writable.getWriter();
    writer.write(text).catch(() => {});
    writer.releaseLock();
    await quiet();
  };
  const end = async (/** @type {string} */ text, n = -1) => {
    const body = answers.at(n);
    await say(text, n);
    body?.writable.close().catch(() => {});
    await quiet();
  };
  // An instance of its own, so that each test loads the engine anew.
  const agent = (/** @type {any} */ options = {}) => new Agent({ model: openai("m", { apiKey: "not-a-real-key", fetch }), isolate: true, ...options });
  const open = () => (answer.resolve(), rest.resolve());
  /** Until so many requests were sent. @param {number} n */
  const asked = async (n) => { for (let i = 0; i < 100 && requests.length < n; i++) await settle(); };
  return { log, requests, answer, rest, open, fetch, agent, say, end, asked };
}

/** Until everything that can happen has happened. */
const quiet = async () => { for (let i = 0; i < 10; i++) await settle(); };

const WHOLE = textAnswer(["hel", "lo"]);
/** An answer, cut before what ends it. */
const cut = (/** @type {string} */ text, pieces = 1) => [text.split("\n\n").slice(0, pieces).join("\n\n") + "\n\n", text.split("\n\n").slice(pieces).join("\n\n")];
const [BEGIN, END] = /** @type {[string, string]} */ (cut(WHOLE));
const [TEXT, STOP] = /** @type {[string, string]} */ (cut(END));

/** What a listener of an agent hears. @param {any} agent */
function heard(agent) {
  /** @type {string[]} */
  const names = [];
  const texts = { text: "", names };
  agent.subscribe((/** @type {any} */ event) => {
    if (event.type === "message_update" && event.delta.type === "text") texts.text += event.delta.delta;
    if (names.at(-1) !== event.type) names.push(event.type);
  });
  return texts;
}

const WIRES = /** @type {[string, string, (id: string, options: any) => any][]} */ ([
  ["openai", "openai-chat", openai], ["openaiResponses", "openai-responses", openaiResponses], ["anthropic", "anthropic", (id, options) => anthropic(id, { dangerouslyAllowBrowser: true, ...options })],
  ["gemini", "gemini", gemini], ["openaiCompatible", "openai-chat", (id, options) => openaiCompatible(id, { baseUrl: "http://127.0.0.1:9/v1", ...options })],
]);
for (const [name, , make] of WIRES) {
  test(`${name}: the request leaves with one part there, and is what the whole engine would send`, async () => {
    const { log, requests, open, fetch, agent, end } = page();
    const pay = testTool("pay", () => "paid", { requiresApproval: true });
    const options = { retry: { maxAttempts: 1 }, systemPrompt: "Be brief.", tools: [pay], approveTool: () => "approve", steering: { when: "immediate" } };
    const run = agent({ model: make("m", { apiKey: "not-a-real-key", fetch }), ...options }).prompt("Hello");
    await quiet();
    // What reads the answer is asked for as soon as the first part begins to arrive.
    assert.deepEqual(log, ["first", "answer", "request"]);
    open();
    await end("");
    await run.result;
    assert.deepEqual(log.slice(3), ["rest"]);
    assert.equal(requests.length, 1);
    assert.ok(requests[0].text.includes("Hello"));
    // The same run with the whole engine asks for the same.
    use(() => whole);
    const again = { requests: /** @type {any[]} */ ([]) };
    const fetchAgain = async (/** @type {any} */ url, /** @type {any} */ init) => (again.requests.push({ url, text: new TextDecoder().decode(init.body), headers: init.headers }), new Response("", { status: 400 }));
    await agent({ model: make("m", { apiKey: "not-a-real-key", fetch: fetchAgain }), ...options }).prompt("Hello").result;
    const plain = (/** @type {any} */ { url, text, headers }) => JSON.stringify([url, text, headers]).replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, "ID");
    assert.equal(plain(requests[0]), plain(again.requests[0]));
  });
}

/** Schemas as libraries write them for tools: zod, TypeBox, MCP servers. @type {any[]} */
const ORDINARY = [
  { type: "object", properties: {} },
  { type: "object", properties: { city: { type: "string", description: "A city", minLength: 1, maxLength: 80, pattern: "^[A-Za-z -]+$" } }, required: ["city"], additionalProperties: false },
  { $schema: "https://json-schema.org/draft/2020-12/schema", type: "object", properties: { unit: { enum: ["c", "f"] }, days: { type: "integer", minimum: 1, exclusiveMaximum: 15, default: 3 }, at: { type: "string", format: "date-time" } } },
  { type: "object", properties: { note: { anyOf: [{ type: "string" }, { type: "null" }] }, tags: { type: "array", items: { type: "string" }, maxItems: 9 }, size: { type: ["number", "null"] } } },
  { type: "object", properties: { to: { $ref: "#/$defs/place" } }, $defs: { place: { type: "object", properties: { lat: { type: "number" }, lon: { type: "number" }, near: { $ref: "#/$defs/place" } } } } },
  { type: "object", properties: { edits: { type: "array", items: { type: "object", properties: { path: { type: "string" }, lines: { type: "array", items: { type: "integer" } } } } }, extra: { type: "object", additionalProperties: { type: "string" } } } },
];
for (const [name, , make] of WIRES) {
  test(`${name}: ordinary tools do not wait for what mends schemas; one that must be mended does`, async () => {
    /** Whether the request leaves before the rest of the engine is there. @param {any[]} schemas */
    const leaves = async (schemas) => {
      const { requests, answer, open, fetch, agent, end, asked } = page();
      // What a schema has that is less common is judged by what comes with the part that reads answers.
      answer.resolve();
      const tools = schemas.map((parameters, i) => ({ name: `tool_${i}`, description: "Does it", parameters, execute: () => "done" }));
      const run = agent({ model: make("m", { apiKey: "not-a-real-key", fetch }), retry: { maxAttempts: 1 }, tools }).prompt("Hello");
      await quiet();
      const left = requests.length === 1;
      open();
      await asked(1);
      await end("");
      await run.result;
      assert.equal(requests.length, 1);
      return left;
    };
    assert.equal(await leaves(ORDINARY), true);
    assert.equal(await leaves([...ORDINARY, { oneOf: ORDINARY.slice(0, 2) }]), false);
  });
}

test("what is needed next is asked for when what comes before it begins to arrive, and once", async () => {
  /** @type {Map<string, (() => void) | undefined>} */
  const asked = new Map();
  const file = (/** @type {string} */ name) => async (/** @type {(() => void) | undefined} */ begun) => {
    assert.ok(!asked.has(name), name);
    asked.set(name, begun);
    return /** @type {WebAssembly.Module} */ (files[name]);
  };
  const load = inParts({ first: file("first"), answer: file("answer"), rest: file("rest"), whole: file("whole") });
  const parts = await load();
  const names = () => [...asked.keys()].join(" ");
  assert.equal(names(), "first");
  asked.get("first")?.();
  assert.equal(names(), "first answer");
  for (const all of ["first answer", "first answer rest"]) {
    await parts.more();
    assert.equal(names(), all);
  }
  assert.ok(parts.isWhole);
});

test("a request with a history leaves when what reads answers is there, before the rest is", async () => {
  const { answer, rest, agent, requests, end } = page();
  const said = [{ role: "user", content: "Before." }, { role: "assistant", content: [{ type: "text", text: "I know." }] }];
  const run = agent({ messages: said, streamOptions: { temperature: 0.5 } }).prompt("Hello");
  await quiet();
  assert.equal(requests.length, 0);
  answer.resolve();
  await quiet();
  assert.equal(requests.length, 1);
  assert.ok(requests[0].text.includes("I know.") && requests[0].text.includes("0.5"));
  rest.resolve();
  await end(WHOLE);
  assert.equal((await run.result).text, "hello");
});

/** The beginning of an answer with one text, by wire. @type {Record<string, string>} */
const TEXTS = {
  "openai-chat": BEGIN,
  "openai-responses": [
    { type: "response.created", response: { id: "r", output: [] } }, { type: "response.output_item.added", output_index: 0, item: { id: "m", type: "message", role: "assistant", content: [] } },
    { type: "response.content_part.added", item_id: "m", output_index: 0, content_index: 0, part: { type: "output_text", text: "", annotations: [] } }, { type: "response.output_text.delta", item_id: "m", output_index: 0, content_index: 0, delta: "hel" },
  ].map((data) => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`).join(""),
  anthropic: [
    { type: "message_start", message: { id: "m", type: "message", role: "assistant", model: "m", content: [], usage: { input_tokens: 3, output_tokens: 1 } } }, { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "hel" } },
  ].map((data) => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`).join(""),
  gemini: `data: ${JSON.stringify({ candidates: [{ content: { parts: [{ text: "hel" }], role: "model" }, index: 0 }] })}\n\n`,
};
for (const [name, wire, make] of WIRES) {
  test(`${name}: the first text is heard before the rest is there`, async () => {
    const { answer, rest, fetch, agent, say, log } = page();
    const one = agent({ model: make("m", { apiKey: "not-a-real-key", fetch }), retry: { maxAttempts: 1 } });
    const listener = heard(one);
    const run = one.prompt("Hello");
    await quiet();
    assert.deepEqual(listener.names, ["agent_start", "turn_start", "message_start"]);
    await say(/** @type {string} */ (TEXTS[wire]));
    assert.equal(listener.text, "");
    answer.resolve();
    await quiet();
    assert.equal(listener.text, "hel");
    assert.ok(log.includes("rest"));
    run.abort("enough");
    rest.resolve();
    await run.result;
  });
}

test("the end of an answer waits until everything is there; events come in their order, and nothing twice", async () => {
  const { answer, rest, agent, requests, say, end } = page();
  const one = agent();
  const listener = heard(one);
  const run = one.prompt("Hello");
  const outcome = readRun(run);
  await quiet();
  answer.resolve();
  await say(BEGIN);
  await say(TEXT);
  await end(STOP);
  assert.equal(listener.text, "hello");
  assert.equal(listener.names.at(-1), "message_update");
  rest.resolve();
  const { result, names } = await outcome;
  assert.equal(result.text, "hello");
  assert.deepEqual(names, ["agent_start", "turn_start", "message_start", "message_update", "message_end", "turn_end", "agent_end"]);
  assert.equal(requests.length, 1);
});

test("a text is heard before the rest is there, though its answer came in one piece", async () => {
  const { answer, rest, agent, end } = page();
  const one = agent();
  const listener = heard(one);
  const run = one.prompt("Hello");
  await quiet();
  answer.resolve();
  await end(WHOLE.replaceAll("\n", "\r\n"));
  assert.equal(listener.text, "hello");
  rest.resolve();
  assert.equal((await run.result).text, "hello");
});

test("a tool runs when everything is there, and once", async () => {
  const { answer, rest, agent, requests, end } = page();
  let ran = 0;
  const run = agent({ tools: [testTool("look", () => (ran++, "seen"))] }).prompt("Hello");
  await quiet();
  answer.resolve();
  await end(calls(["look", "{}"]));
  assert.equal(ran, 0);
  rest.resolve();
  await quiet();
  assert.equal(ran, 1);
  await end(WHOLE);
  assert.equal((await run.result).text, "hello");
  assert.equal(requests.length, 2);
});

test("a checkpoint that is taken before everything is there says that the run has not begun", async () => {
  const { answer, rest, agent, requests, say, end, asked } = page();
  const one = agent({ tools: [testTool("look", () => "seen")] });
  const run = one.prompt("Hello");
  await quiet();
  answer.resolve();
  await say(BEGIN);
  one.steer("Be kind.");
  const taken = JSON.parse(JSON.stringify(one.checkpoint()));
  rest.resolve();
  await end(END);
  await asked(2);
  await end(WHOLE);
  await run.result;
  assert.deepEqual(taken.messages, []);
  assert.ok(requests.at(-1).text.includes("kind"));

  const again = page();
  again.open();
  const other = await Agent.restore(taken, { model: openai("m", { apiKey: "not-a-real-key", fetch: again.fetch }), isolate: true });
  const next = other.continue();
  await again.asked(1);
  await again.end(WHOLE);
  await again.asked(2);
  await again.end(WHOLE);
  const { stopReason } = await next.result;
  assert.equal(stopReason, "completed");
  assert.ok(again.requests[0].text.includes("Hello"));
  assert.ok(again.requests.at(-1).text.includes("kind"));
});

test("settings that change in between count from the next turn on, and letters are delivered", async () => {
  const { open, agent, requests, end, asked } = page();
  const one = agent({ tools: [testTool("look", () => "seen")] });
  const run = one.prompt("Hello");
  await quiet();
  one.tools = [testTool("look", () => "seen"), testTool("kind", () => "be kind")];
  const receipt = one.steer("And be brief.");
  open();
  await end(calls(["look", "{}"]));
  await asked(2);
  await end(WHOLE);
  await run.result;
  assert.equal((await receipt).delivered, true);
  assert.ok(!requests[0].text.includes("be kind") && !requests[0].text.includes("brief"));
  assert.ok(requests[1].text.includes("kind") && requests[1].text.includes("brief"));
});

test("a letter that waits for the engine is read before the first call, if it should be", async () => {
  const { open, agent, requests, end } = page();
  const one = agent({ steering: { atStart: "before_first_call" } });
  const receipt = one.steer("And be kind.");
  const run = one.prompt("Hello");
  open();
  await quiet();
  await end(WHOLE);
  await run.result;
  assert.deepEqual(await receipt, { delivered: true, turnIndex: 0 });
  assert.ok(requests[0].text.includes("kind"));
});

for (const stage of ["nothing of the answer", "a piece of the answer"]) {
  test(`a run that is aborted with ${stage} there takes its request back at once`, async () => {
    const { answer, rest, agent, requests, say } = page();
    const run = agent().prompt("Hello");
    const outcome = readRun(run);
    await quiet();
    if (stage === "a piece of the answer") {
      answer.resolve();
      await say(BEGIN);
    }
    run.abort("enough");
    assert.equal(requests[0].signal.aborted, true);
    answer.resolve();
    rest.resolve();
    assert.equal((await outcome).result.stopReason, "aborted");
    assert.equal(requests.length, 1);
  });
}

test("an agent that is reset in between begins anew", async () => {
  const { open, agent, requests, end } = page();
  const one = agent();
  const run = one.prompt("Hello");
  await quiet();
  one.reset();
  const next = one.prompt("Again");
  open();
  await quiet();
  await end(WHOLE);
  assert.equal((await run.result).stopReason, "aborted");
  assert.equal((await next.result).text, "hello");
  assert.ok(!requests.at(-1).text.includes("Hello"));
});

for (const [name, options] of /** @type {[string, any][]} */ ([
  ["a key that must be fetched", { getApiKey: () => "fetched-key-0123" }],
  ["a hook before the call", { hooks: { beforeInference: () => {} } }],
  ["a view of the history", { transformContext: (/** @type {any} */ messages) => messages }],
  ["a prompt that changes", { dynamicSystemPrompt: () => "Be brief." }],
])) {
  test(`${name} is asked for once`, async () => {
    const { open, agent, requests, end } = page();
    let asked = 0;
    const counted = Object.fromEntries(Object.entries(options).map(([key, work]) => [key, key === "hooks" ? { beforeInference: () => void asked++ } : (/** @type {any} */ ...args) => (asked++, work(...args))]));
    const run = agent(counted).prompt("Hello");
    await quiet();
    open();
    await quiet();
    await end(WHOLE);
    assert.equal((await run.result).text, "hello");
    assert.deepEqual([requests.length, asked], [1, 1]);
  });
}

test("several agents share an engine of which parts are missing", async () => {
  const { open, fetch, end, requests } = page();
  const wires = [openai("m", { apiKey: "not-a-real-key", fetch }), gemini("m", { apiKey: "not-a-real-key", fetch }), openai("n", { apiKey: "not-a-real-key", fetch })];
  // What is not isolated shares one instance, which may be there already; so these are agents inside one.
  const runs = wires.map((model) => new Agent({ model, isolate: true, retry: { maxAttempts: 1 } }).prompt("Hello"));
  await quiet();
  open();
  await quiet();
  assert.equal(requests.length, 3);
  const chat = requests.map(({ url }, n) => [url, n]).filter(([url]) => !String(url).includes("google"));
  for (const [, n] of chat) await end(WHOLE, n);
  for (const [, n] of requests.map(({ url }, n) => [url, n]).filter(([url]) => String(url).includes("google"))) await end("", n);
  const texts = await Promise.all(runs.map(({ result }) => result));
  assert.deepEqual(texts.map(({ text }) => text), ["hello", "", "hello"]);
});

test("a refusal that comes before everything is there is read when it is", async () => {
  const { open, agent } = page();
  const fetch = async () => new Response(JSON.stringify({ error: { message: "no such model", code: "model_not_found" } }), { status: 404 });
  const run = agent({ model: openai("m", { apiKey: "not-a-real-key", fetch }), retry: { maxAttempts: 1 } }).prompt("Hello");
  await quiet();
  open();
  assert.match((await run.result).error.message, /no such model/);
});

test("a model of the host's own, and errorInfo, wait for everything", async () => {
  const { open, agent } = page();
  const { scripted } = await import("../kit.mjs");
  const run = agent({ model: scripted(["hi"]) }).prompt("Hello");
  await quiet();
  open();
  assert.equal((await run.result).text, "hi");
  assert.equal((await errorInfo({ status: 429, headers: {}, body: "{}" })).code, "throttled");
});

const LOST = (/** @type {string} */ name) => new Error(`turnwheel-${name}.wasm cannot be fetched from here`);
for (const name of NAMES) {
  test(`a part that does not come (${name}) ends the run with its name, and the next run loads it again`, async () => {
    let isLost = true;
    const { open, agent, end, requests } = page((asked) => {
      if (isLost && asked === name) throw LOST(name);
    });
    open();
    const one = agent();
    const run = one.prompt("Hello");
    const outcome = readRun(run);
    await quiet();
    if (requests.length > 0) await end(WHOLE);
    const { result } = await outcome;
    assert.equal(result.stopReason, "error");
    assert.match(result.error.message, new RegExp(`turnwheel-${name}\\.wasm cannot be fetched`));
    isLost = false;
    const next = one.prompt("Again");
    await quiet();
    await end(WHOLE);
    assert.equal((await next.result).text, "hello");
  });
}

test("a part that comes at the second attempt, before anybody needs it, is no failure", async () => {
  let attempts = 0;
  const { answer, rest, agent, say, end } = page((asked) => {
    if (asked === "rest" && ++attempts === 1) throw LOST("rest");
  });
  const run = agent().prompt("Hello");
  await quiet();
  answer.resolve();
  rest.resolve();
  await say(BEGIN);
  await end(END);
  assert.equal((await run.result).text, "hello");
  assert.equal(attempts, 2);
});

for (const name of NAMES) {
  test(`a part of another build (${name}) is refused by name`, async () => {
    const bytes = await readFile(fileOf(`-${name}`));
    const foreign = await WebAssembly.compile(Buffer.from(bytes.toString("latin1").replace(/turnwheel-[0-9a-f]{4}/g, "turnwheel-zzzz"), "latin1"));
    const { open, agent, end, requests } = page((asked) => (asked === name ? foreign : undefined));
    open();
    const run = agent().prompt("Hello");
    await quiet();
    if (requests.length > 0) await end(WHOLE);
    assert.match((await run.result).error.message, /another version/);
  });
}

test("a server that has only the whole file serves it", async () => {
  const { agent, end } = page((name) => (name === "whole" ? whole : Promise.reject(new Error("no parts"))));
  const run = agent().prompt("Hello");
  await quiet();
  await end(WHOLE);
  assert.equal((await run.result).text, "hello");
});

test("a bundler may write addresses that have no base: nothing is built on them before it must be", async () => {
  // As Turbopack does, which knows only a URL that is written out.
  const at = (/** @type {string} */ path) => JSON.stringify(new URL(`../../../${path}`, import.meta.url).href);
  const script = (await readFile(new URL("../../../www/npm/parts.js", import.meta.url), "utf8"))
    .replace(/new URL\("\.\/([\w-]+\.wasm)", import\.meta\.url\)/g, '"/static/$1"')
    .replace('"./core.js"', at("pkg/core.js"))
    .replace('"./fetched.js"', at("www/npm/fetched.js"));
  assert.equal(script.match(/"\/static\//g)?.length, NAMES.length);
  const { load } = await import(`data:text/javascript,${encodeURIComponent(script)}`);
  await assert.rejects(load(), /turnwheel-\S+\.wasm cannot be fetched from \/static\/turnwheel-/);
});

test("the package's own tests pass with parts, each of them with parts that are loaded anew", { timeout: 240_000 }, () => {
  const files = ["tools/definitions", "effects/http", "run/abort", "models/own", "models/wires", "tools/subagent"];
  // These wait for an engine by a number of turns of the event loop: it is loaded once for all of them.
  const patient = ["run/loop", "checkpoint/sleep"];
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  for (const [how, names] of /** @type {[string, string[]][]} */ ([["anew", files], ["parts", patient]])) {
    const here = (/** @type {string} */ name) => fileURLToPath(new URL(`../${name}.test.mjs`, import.meta.url));
    const { status, stdout } = spawnSync(process.execPath, ["--test", "--test-reporter=dot", ...names.map(here)], { env: { ...env, TURNWHEEL_LOAD: how }, encoding: "utf8", timeout: 200_000 });
    assert.equal(status, 0, stdout);
  }
});
