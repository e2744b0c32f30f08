// @ts-check
// The package against llmock, a provider simulator that judges its client: it sees every call and when it
// came, and reports whether a wait was kept, a cut stream was taken for a complete one, or a refused request
// was repeated. Time is real here, so that the waits can be judged; only the random numbers are fixed.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { Agent, openaiCompatible, readRun, textOf } from "../js/kit.mjs";
import { pythonWith, startServer } from "./python.mjs";

/** A response that the server is told to send. @param {number} status @param {any} [more] */
const refuses = (status, more) => ({ type: "fail", status, ...more });
/** @param {string} kind @param {any} [more] */
const breaks = (kind, more) => ({ type: "stream_fault", kind, after_chunks: 3, ...more });

/**
 * Faults that a retry fixes: what happens, how often the server is called, what the agent reports.
 * @type {[string, any[], number, any?][]}
 */
const PASSING = [
  ["a rate limit with a wait", [refuses(429, { retry_after: 1.2, times: 2 })], 3],
  ["an overload without one, twice", [refuses(503, { times: 2 })], 3],
  ["a server's own fault", [refuses(500)], 2],
  ["a timeout of the server", [refuses(408)], 2],
  ["a connection dropped in mid-stream", [breaks("disconnect")], 2],
  ["a stream that ends early and says nothing", [breaks("truncate")], 2],
  ["a stream that ends before it began", [breaks("truncate", { after_chunks: 0 })], 2],
  ["a chunk that is no JSON", [breaks("malformed")], 2],
  ["a stream that falls silent", [breaks("stall", { stall_seconds: 4 })], 2, { timeouts: { chunkMs: 300 } }],
  ["a first word that does not come", [{ type: "slow_first_token", seconds: 4 }], 2, { timeouts: { firstChunkMs: 300 } }],
  ["one thing after the other", [refuses(429, { retry_after: 0.6 }), breaks("truncate")], 3],
];

/** Refusals that the same request would meet again. @type {[number, string, any?][]} */
const LASTING = [
  [400, "invalid_request"],
  [401, "auth"],
  [403, "auth"],
  [404, "invalid_request"],
  [422, "invalid_request"],
  [400, "context_overflow", { code: "context_length_exceeded", message: "This model's maximum context length was exceeded." }],
];

const constraints = fileURLToPath(new URL("llmock.txt", import.meta.url));
const { python, missing } = pythonWith("llmock", ["--constraint", constraints, "llmock==0.2.2"]);
if (missing) test("llmock", { skip: missing });
else suite(python);

/** @param {string} python */
function suite(python) {
  /** @type {Awaited<ReturnType<typeof startServer>>} */
  let server;
  before(async () => void (server = await startServer(python, "serve_llmock.py")));
  after(() => server?.stop());

  /** @param {any[]} behaviors */
  async function queue(behaviors) {
    const answer = await fetch(`${server.url}/_llmock/scenario`, { method: "POST", body: JSON.stringify({ behaviors }) });
    assert.equal(answer.status, 201, await answer.text());
  }

  /** @param {string} path */
  const told = async (path) => (await fetch(`${server.url}/_llmock/${path}`)).json();

  /** @param {any} [options] */
  function agent(options) {
    const model = openaiCompatible("gpt-4o-mini", { baseUrl: `${server.url}/v1`, apiKey: "not-a-secret" });
    // Fixed at the middle: at random, two growing waits could by chance look like equal ones.
    return new Agent({ model, host: { random: () => 0.5 }, ...options });
  }

  /** How often the server got this prompt. @param {string} prompt */
  async function asked(prompt) {
    const { requests } = await told("requests");
    return requests.filter((/** @type {any} */ { body }) => body.messages.some((/** @type {any} */ { content }) => content === prompt)).length;
  }

  for (const [name, behaviors, calls, options] of PASSING) {
    test(`mended by asking again: ${name}`, async () => {
      await queue(behaviors);
      const outcome = await readRun(agent(options).prompt(name));
      assert.equal(outcome.result.stopReason, "completed", outcome.result.error?.message);
      assert.ok(outcome.result.text.length > 0);
      assert.equal(outcome.all("message_end").length, 1);
      assert.deepEqual([outcome.all("retry_attempt").length, await asked(name)], [calls - 1, calls]);
    });
  }

  for (const [status, code, more] of LASTING) {
    test(`asked once: a ${status}, ${code}`, async () => {
      const prompt = `refused with ${status} ${code}`;
      await queue([refuses(status, more)]);
      const outcome = await readRun(agent().prompt(prompt));
      assert.equal(outcome.result.error.code, code);
      assert.equal(await asked(prompt), 1);
    });
  }

  test("an outage is asked three times and no more", async () => {
    await queue([refuses(503, { times: 3 })]);
    const outcome = await readRun(agent().prompt("an outage"));
    assert.equal(outcome.result.error.code, "overloaded");
    assert.equal(await asked("an outage"), 3);
  });

  const weather = {
    name: "weather",
    description: "The weather of a city.",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
    execute: (/** @type {any} */ { city }) => `Rain in ${city}.`,
  };

  test("a tool turn: the call comes in pieces, runs, and its result is answered", async () => {
    const outcome = await readRun(agent({ tools: [weather] }).prompt("What is the weather?"));
    assert.equal(outcome.result.stopReason, "completed", outcome.result.error?.message);
    assert.match(textOf(outcome.all("tool_execution_end")[0].result), /^Rain in /);
    assert.equal(outcome.result.turns, 2);
  });

  for (const [kind, cause] of [["malformed_arguments", "invalid_arguments"], ["unknown_tool", "unknown_tool"]]) {
    test(`a broken call gets an error result, and the run goes on: ${kind}`, async () => {
      await queue([{ type: "tool_fault", kind }]);
      const outcome = await readRun(agent({ tools: [weather] }).prompt(`What is the weather, ${kind}?`));
      assert.equal(outcome.result.stopReason, "completed", outcome.result.error?.message);
      assert.equal(outcome.all("tool_execution_end")[0].result.cause, cause);
    });
  }

  test("a tool call cut in mid-stream is asked for again, and the tool runs once", async () => {
    let ran = 0;
    const tools = [{ ...weather, execute: () => String(++ran) }];
    await queue([breaks("disconnect")]);
    const outcome = await readRun(agent({ tools }).prompt("What is the weather behind the cut?"));
    assert.equal(outcome.result.stopReason, "completed", outcome.result.error?.message);
    assert.deepEqual([ran, outcome.all("message_reset").length], [1, 1]);
  });

  test("ten runs at once in bad weather all arrive", async () => {
    await queue([breaks("truncate", { times: 3 }), breaks("disconnect", { times: 3 }), refuses(429, { retry_after: 0.3, times: 3 }), refuses(502, { times: 2 })]);
    const retry = { maxAttempts: 9, initialBackoffMs: 100 };
    const prompts = Array.from({ length: 10 }, (_, n) => `bad weather ${n}`);
    const outcomes = await Promise.all(prompts.map((prompt) => readRun(agent({ retry }).prompt(prompt))));
    for (const { result } of outcomes) assert.equal(result.stopReason, "completed", result.error?.message);
  });

  test("the verdict on this client is clean", async () => {
    console.log(await (await fetch(`${server.url}/_llmock/verdict?format=text`)).text());
    const { passed, findings, faults_injected, calls } = await told("verdict");
    assert.deepEqual(findings, []);
    assert.ok(passed && faults_injected >= 30 && calls >= 30, `${faults_injected} faults in ${calls} calls`);
    assert.deepEqual((await told("scenario")).pending, []);
  });
}
