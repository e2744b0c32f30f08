// @ts-check
// For authors of models and bridges: the events that a host may stream, and what its errors mean.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, custom, errorInfo } from "../kit.mjs";

test("raw blocks, signatures, metadata, usage and pings of a custom stream are kept", async () => {
  const raw = { type: "server_tool_use", id: "s1", n: 1.5 };
  /** @type {any[]} */
  const asked = [];
  const model = custom("m", async function* (request) {
    asked.push(request.messages);
    if (asked.length > 1) return yield { type: "done", stopReason: "stop" };
    yield* [{ type: "ping" }, { type: "usage", input: 7, output: 1 }];
    yield* [{ type: "thinking_start", contentIndex: 0 }, { type: "thinking_end", contentIndex: 0, signature: "sealed", redacted: true }];
    yield* [{ type: "text_start", contentIndex: 1 }, { type: "text_delta", contentIndex: 1, delta: "Hi" }, { type: "text_end", contentIndex: 1, signature: "t" }];
    yield { type: "raw", contentIndex: 2, data: raw };
    yield* [{ type: "tool_call_start", contentIndex: 3, callId: "c", toolName: "t" }, { type: "tool_call_end", contentIndex: 3, metadata: { k: 1 } }];
    yield { type: "done", stopReason: "tool_use" };
  });
  const agent = new Agent({ model, tools: [{ name: "t", description: "", parameters: { type: "object" }, execute: () => "x" }] });
  const { usage } = await agent.prompt("go");
  assert.deepEqual([usage.input, usage.output], [7, 1]);
  const [thinking, text, block, called] = /** @type {any} */ (agent.messages[1]).content;
  assert.deepEqual([thinking.signature, thinking.redacted, text.signature, called.metadata], ["sealed", true, "t", { k: 1 }]);
  assert.deepEqual(block, { type: "raw", data: raw });
  assert.deepEqual(asked[1][1].content[2], block);
});

test("a response means the same for a host as for the models of the package", async () => {
  const limited = await errorInfo({ status: 429, headers: { "Retry-After": "3" }, body: '{"error":{"message":"slow down","type":"rate_limit"}}' });
  assert.deepEqual([limited.code, limited.retryable, limited.retryAfterMs, limited.message], ["throttled", true, 3_000, "slow down"]);
  const response = await errorInfo(new Response('{"error":{"message":"bad key"}}', { status: 401 }));
  assert.deepEqual([response.code, response.retryable, response.provider?.status], ["auth", false, 401]);
  assert.equal((await errorInfo({ status: 200, body: { error: { type: "overloaded_error", message: "busy" } } })).code, "overloaded");
  assert.equal((await errorInfo({ status: 503 })).retryable, true);
  await assert.rejects(errorInfo(/** @type {any} */ ({})), /status/);
});

/** How a run ends whose stream fails once with this. @param {() => unknown} fail @param {boolean} [yields] */
async function endOf(fail, yields) {
  let calls = 0;
  /** @type {number[]} */
  const slept = [];
  const model = custom("m", async function* () {
    if (calls++ === 0) {
      if (!yields) throw fail();
      yield { type: "error", error: /** @type {any} */ (fail()) };
    }
    yield* [{ type: "text_start", contentIndex: 0 }, { type: "text_delta", contentIndex: 0, delta: "fine" }, { type: "done", stopReason: "stop" }];
  });
  const agent = new Agent({ model, host: { sleep: async (ms) => void slept.push(ms), now: (() => { let now = 0; return () => (now += 100_000); })() } });
  const { text, error } = await agent.prompt("go");
  return { text, code: error?.code, message: error?.message, slept: slept[0] };
}

test("what the AI SDK and providers' libraries throw is judged by its status, headers and body", async () => {
  const apiCallError = (/** @type {object} */ more) => () => Object.assign(new Error("failed"), { [Symbol.for("vercel.ai.error.AI_APICallError")]: true, url: "https://x" }, more);
  assert.deepEqual((await endOf(apiCallError({ statusCode: 429, responseHeaders: { "retry-after": "2" }, responseBody: '{"error":{"message":"slow"}}', isRetryable: true }))).slept, 2_000);
  assert.equal((await endOf(apiCallError({ statusCode: 503, isRetryable: true }))).text, "fine");
  const spent = await endOf(apiCallError({ statusCode: 429, responseBody: '{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}', isRetryable: true }));
  assert.deepEqual([spent.text, spent.slept], ["", undefined]);
  assert.equal((await endOf(apiCallError({ statusCode: 401, responseBody: '{"error":{"message":"no key"}}', isRetryable: false }))).code, "auth");
  assert.equal((await endOf(() => Object.assign(new Error("x"), { status: 400, error: { message: "prompt is too long: 9 tokens > 8 maximum" } }))).code, "context_overflow");
  assert.equal((await endOf(() => Object.assign(new Error("retried"), { lastError: apiCallError({ statusCode: 500 })() }))).text, "fine");
  assert.equal((await endOf(() => ({ type: "overloaded_error", message: "busy", statusCode: 529, isRetryable: true }), true)).text, "fine");
  assert.equal((await endOf(apiCallError({ statusCode: 500, isRetryable: false }))).code, "server");
});

test("a dead network is retried; a mistake in the code is not", async () => {
  assert.equal((await endOf(() => new TypeError("fetch failed", { cause: Object.assign(new Error("x"), { code: "ECONNRESET" }) }))).text, "fine");
  assert.equal((await endOf(() => Object.assign(new Error("connect"), { code: "ECONNREFUSED" }))).text, "fine");
  const mistake = await endOf(() => new TypeError("x is not a function"));
  assert.deepEqual([mistake.code, mistake.message], ["unknown", "x is not a function"]);
  assert.equal((await endOf(() => Object.assign(new Error("later"), { code: "throttled", retryable: true }))).text, "fine");
  const revoked = Proxy.revocable({}, {});
  revoked.revoke();
  assert.equal((await endOf(() => revoked.proxy)).code, "unknown");
});
