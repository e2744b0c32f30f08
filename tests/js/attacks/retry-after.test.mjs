// @ts-check
// A server that asks to wait for years does not stall a run: the delay has a cap, wherever it stands.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, anthropic, clock, custom, gemini, openai, openaiResponses } from "../kit.mjs";

const YEARS = 10 * 365 * 86_400;
const error = (/** @type {any} */ more) => JSON.stringify({ error: { message: "busy", ...more } });
/** @type {[string, Record<string, string>, string][]} */
const ASKS = [
  ["seconds", { "retry-after": `${YEARS}` }, error({})],
  ["more milliseconds than there are", { "retry-after": "9".repeat(19) }, error({})],
  ["a date", { "retry-after": "Fri, 01 Jan 2100 00:00:00 GMT" }, error({})],
  ["milliseconds", { "retry-after-ms": `${YEARS * 1000}` }, error({})],
  ["a fraction", { "retry-after": `${YEARS}.5` }, error({})],
  ["the reset of a limit", { "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "99999h" }, error({})],
  ["the reset of another", { "anthropic-ratelimit-requests-remaining": "0", "anthropic-ratelimit-requests-reset": "2100-01-01T00:00:00Z" }, error({})],
  ["RetryInfo", {}, error({ details: [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: `${YEARS}s` }] })],
  ["words", {}, error({ message: "Please try again in 99999h0m0s" })],
];

for (const wire of [openai, openaiResponses, anthropic, gemini]) {
  test(`${wire.name}: ten years are not waited for`, async () => {
    for (const [name, headers, body] of ASKS) {
      const time = clock();
      let calls = 0;
      const fetch = async () => (calls++, new Response(body, { status: 429, headers }));
      const outcome = await new Agent({ model: wire("m", { apiKey: "k", fetch }), host: time.host }).prompt("Go");
      assert.equal(outcome.stopReason, "error", name);
      assert.match(outcome.error?.message ?? "", /the server asks to wait \d+ ms/, name);
      assert.deepEqual([calls, time.slept], [1, []], name);
    }
  });
}

test("nor for the delay of an error inside a stream, or of a model of the host", async () => {
  const time = clock();
  const body = `data: ${error({ code: 429, details: [{ retryDelay: `${YEARS}s` }] })}\n\n`;
  const models = [
    gemini("m", { apiKey: "k", fetch: async () => new Response(body) }),
    custom("m", async function* () { yield { type: "error", error: { code: "throttled", message: "busy", retryable: true, retryAfterMs: YEARS * 1000 } }; }),
  ];
  for (const model of models) assert.match((await new Agent({ model, host: time.host }).prompt("Go")).error?.message ?? "", /asks to wait/);
  assert.deepEqual(time.slept, []);
});

test("who allows it waits as long, also where the platform's timers do not reach as far", async () => {
  const time = clock();
  let calls = 0;
  const fetch = async () => (++calls === 1 ? new Response("{}", { status: 429, headers: { "retry-after": `${YEARS}` } }) : new Response('data: {"choices":[{"delta":{"content":"ok"}}]}\n\ndata: [DONE]\n\n'));
  const outcome = await new Agent({ model: openai("m", { apiKey: "k", fetch }), host: time.host, retry: { maxRetryDelayMs: Infinity } }).prompt("Go");
  assert.deepEqual([outcome.text, time.slept], ["ok", [YEARS * 1000]]);
});
