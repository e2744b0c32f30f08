// @ts-check
// The engine in halves, as pages load it: the first request leaves before the rest is asked for, and whatever comes in
// between changes nothing but the time that it takes.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { inHalves, use } from "../../pkg/core.js";
import { Agent, anthropic, deferred, gemini, openai, openaiCompatible, openaiResponses, readRun, settle, testTool } from "./kit.mjs";
import { textAnswer } from "./server.mjs";

const compiled = async (/** @type {string} */ name) => WebAssembly.compile(await readFile(new URL(`../../pkg/turnwheel${name}.wasm`, import.meta.url)));
const [first, rest, whole] = await Promise.all(["-first", "-rest", ""].map(compiled));

/** A page whose rest comes when it is let through. @param {() => any} [lost] throws in place of the rest */
function page(lost) {
  /** @type {string[]} */
  const log = [];
  const gate = deferred();
  use(inHalves(async () => (log.push("first"), first), async () => {
    log.push("rest");
    await gate.promise;
    return lost?.() ?? rest;
  }, async () => (log.push("whole"), whole)));
  /** @type {any[]} */
  const requests = [];
  const fetch = async (/** @type {any} */ url, /** @type {any} */ init) => {
    log.push("request");
    requests.push({ url, ...init, text: new TextDecoder().decode(init.body), signal: init.signal });
    return new Response(textAnswer(["hello"]), { headers: { "content-type": "text/event-stream" } });
  };
  // An instance of its own, so that each test loads the engine anew.
  const agent = (/** @type {any} */ options = {}) => new Agent({ model: openai("m", { apiKey: "not-a-real-key", fetch }), isolate: true, ...options });
  return { log, requests, gate, fetch, agent };
}

/** Until everything that can happen has happened. */
const quiet = async () => { for (let i = 0; i < 5; i++) await settle(); };

const WIRES = /** @type {[string, (id: string, options: any) => any][]} */ ([
  ["openai", openai], ["openaiResponses", openaiResponses], ["anthropic", (id, options) => anthropic(id, { dangerouslyAllowBrowser: true, ...options })],
  ["gemini", gemini], ["openaiCompatible", (id, options) => openaiCompatible(id, { baseUrl: "http://127.0.0.1:9/v1", ...options })],
]);
for (const [name, make] of WIRES) {
  test(`${name}: the first request leaves before the rest is asked for, and is the run's own`, async () => {
    const { log, requests, gate, fetch, agent } = page();
    const pay = testTool("pay", () => "paid", { requiresApproval: true });
    const run = agent({ model: make("m", { apiKey: "not-a-real-key", fetch }), retry: { maxAttempts: 1 }, systemPrompt: "Be brief.", tools: [pay], approveTool: () => "approve", steering: { when: "immediate" } }).prompt("Hello");
    await quiet();
    assert.deepEqual(log, ["first", "request", "rest"]);
    gate.resolve();
    await run.result;
    assert.equal(requests.length, 1);
    assert.ok(requests[0].text.includes("Hello"));
    // The same run with the whole engine asks for the same.
    use(() => whole);
    const again = { log: /** @type {string[]} */ ([]), requests: /** @type {any[]} */ ([]) };
    const fetchAgain = async (/** @type {any} */ url, /** @type {any} */ init) => (again.requests.push({ url, text: new TextDecoder().decode(init.body), headers: init.headers }), new Response("", { status: 400 }));
    await agent({ model: make("m", { apiKey: "not-a-real-key", fetch: fetchAgain }), systemPrompt: "Be brief.", tools: [pay], approveTool: () => "approve", steering: { when: "immediate" } }).prompt("Hello").result;
    const plain = (/** @type {any} */ { url, text, headers }) => JSON.stringify([url, text, headers]).replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, "ID");
    assert.equal(plain(requests[0]), plain(again.requests[0]));
  });
}

test("the events come in their order once the rest is there, and the answer is that of the early request", async () => {
  const { gate, agent, requests } = page();
  const run = agent().prompt("Hello");
  await quiet();
  gate.resolve();
  const { result, names } = await readRun(run);
  assert.equal(result.text, "hello");
  assert.deepEqual(names.slice(0, 3), ["agent_start", "turn_start", "message_start"]);
  assert.equal(requests.length, 1);
});

test("what comes in between drops the early request: the run sends its own", async () => {
  const { gate, agent, requests } = page();
  const one = agent();
  const run = one.prompt("Hello");
  await quiet();
  one.tools = [testTool("kind", () => "be kind")];
  gate.resolve();
  const { result } = await readRun(run);
  assert.equal(result.stopReason, "completed");
  assert.equal(requests.length, 2);
  assert.equal(requests[0].signal.aborted, true);
  assert.ok(!requests[0].text.includes("kind") && requests[1].text.includes("kind"));
});

test("a letter that waits for the engine is read before the first call, if it should be", async () => {
  const { gate, agent, requests } = page();
  const one = agent({ steering: { atStart: "before_first_call" } });
  const run = one.prompt("Hello");
  await quiet();
  const receipt = one.steer("And be kind.");
  gate.resolve();
  await run.result;
  assert.deepEqual(await receipt, { delivered: true, turnIndex: 0 });
  assert.ok(requests.at(-1).text.includes("kind"));
});

test("a run that is aborted before the rest is there takes its request back", async () => {
  const { gate, agent, requests } = page();
  const run = agent().prompt("Hello");
  await quiet();
  run.abort("enough");
  assert.equal(requests[0].signal.aborted, true);
  gate.resolve();
  assert.equal((await run.result).stopReason, "aborted");
  assert.equal(requests.length, 1);
});

for (const [name, options] of /** @type {[string, any][]} */ ([
  ["a key that must be fetched", { getApiKey: () => "fetched-key-0123" }],
  ["a hook before the call", { hooks: { beforeInference: () => {} } }],
  ["a view of the history", { transformContext: (/** @type {any} */ messages) => messages }],
])) {
  test(`${name} is asked for once: the request leaves with the run`, async () => {
    const { gate, agent, requests, log } = page();
    let asked = 0;
    const counted = Object.fromEntries(Object.entries(options).map(([key, work]) => [key, key === "hooks" ? { beforeInference: () => void asked++ } : (/** @type {any} */ ...args) => (asked++, work(...args))]));
    const run = agent(counted).prompt("Hello");
    await quiet();
    assert.deepEqual(log, ["first", "rest"]);
    gate.resolve();
    assert.equal((await run.result).text, "hello");
    assert.deepEqual([requests.length, asked], [1, 1]);
  });
}

test("a rest that does not come ends the run with an error, and the next run loads it again", async () => {
  let isLost = true;
  const { gate, agent, requests, log } = page(() => {
    if (isLost) throw new Error("turnwheel-rest.wasm cannot be fetched from here");
  });
  const one = agent();
  const run = one.prompt("Hello");
  await quiet();
  gate.resolve();
  const { stopReason, error } = await run.result;
  assert.equal(stopReason, "error");
  assert.match(error.message, /turnwheel-rest\.wasm cannot be fetched/);
  assert.equal(requests[0].signal.aborted, true);
  isLost = false;
  assert.equal((await one.prompt("Again").result).text, "hello");
  assert.deepEqual(log, ["first", "request", "rest", "first", "request", "rest"]);
});

test("a rest of another build is refused by name", async () => {
  const bytes = await readFile(new URL("../../pkg/turnwheel-rest.wasm", import.meta.url));
  const foreign = Buffer.from(bytes.toString("latin1").replace(/turnwheel-[0-9a-f]{4}/g, "turnwheel-zzzz"), "latin1");
  const module = await WebAssembly.compile(foreign);
  const { gate, agent } = page(() => module);
  gate.resolve();
  assert.match((await agent().prompt("Hello").result).error.message, /another version/);
});

test("a server that has only the whole file serves it", async () => {
  const { fetch } = page();
  use(inHalves(() => Promise.reject(new Error("no halves")), () => Promise.reject(new Error("no halves")), async () => whole));
  const agent = new Agent({ model: openai("m", { apiKey: "not-a-real-key", fetch }), isolate: true });
  assert.equal((await agent.prompt("Hello").result).text, "hello");
});

test("the package's own tests pass with halves", { timeout: 120_000 }, () => {
  const files = ["package-loop", "package-tools", "package-http", "package-abort", "package-models", "checkpoint", "tools", "wires", "subagent"];
  const here = (/** @type {string} */ name) => fileURLToPath(new URL(`${name}.test.mjs`, import.meta.url));
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const { status, stdout } = spawnSync(process.execPath, ["--test", "--test-reporter=dot", ...files.map(here)], { env: { ...env, TURNWHEEL_LOAD: "halves" }, encoding: "utf8" });
  assert.equal(status, 0, stdout);
});
