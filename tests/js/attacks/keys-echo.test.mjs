// @ts-check
// A server repeats the key that it was sent, in its errors and in its answers, in whatever form; functions of the host
// throw it. It stands in nothing that leaves the model call.

import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { Agent, anthropic, clock, custom, gemini, openai, openaiResponses, readRun, testTool } from "../kit.mjs";
import { ready, recordNow, replay } from "../../../pkg/tape.js";

await ready();

const KEY = "qz-7Hk+2/Vw=9Xe_4Tb.1Lm";
const WIRES = { openai, openaiResponses, anthropic, gemini };

const base64 = (/** @type {string} */ text) => Buffer.from(text).toString("base64");
const each = (/** @type {string} */ text, /** @type {(code: number) => string} */ form) => [...text].map((c) => form(c.charCodeAt(0))).join("");
const hex = (/** @type {number} */ code, digits = 2) => code.toString(16).padStart(digits, "0");

/** @type {Record<string, (key: string) => string>} */
const FORMS = {
  plain: (key) => key,
  "small letters": (key) => key.toLowerCase(),
  capitals: (key) => key.toUpperCase(),
  "of an address": encodeURIComponent,
  "of an address, twice": (key) => encodeURIComponent(encodeURIComponent(key)),
  "of an address, every letter": (key) => each(key, (code) => `%${hex(code)}`),
  "JSON in JSON": (key) => JSON.stringify(JSON.stringify(key.replaceAll("/", "\\/"))),
  "JSON, every letter": (key) => each(key, (code) => `\\u${hex(code, 4)}`),
  "JSON, in capitals": (key) => each(key, (code) => `\\u${hex(code, 4).toUpperCase()}`),
  "HTML, decimal": (key) => each(key, (code) => `&#${code};`),
  "HTML, hexadecimal": (key) => each(key, (code) => `&#x${hex(code)};`),
  "HTML, twice": (key) => each(key, (code) => `&amp;#${code};`),
  base64: (key) => base64(key),
  "base64, one before": (key) => base64(`:${key}`),
  "base64, two before": (key) => base64(`a:${key}`),
  "base64 of addresses": (key) => Buffer.from(`a:${key}`).toString("base64url"),
  "base64 in an address": (key) => encodeURIComponent(base64(key)),
};

/** Takes back every escape, as often as there is one. @param {string} text */
function bare(text) {
  for (let before = ""; before !== text; ) {
    before = text;
    text = text
      .replace(/%([0-9a-f]{2})/gi, (_, code) => String.fromCharCode(parseInt(code, 16)))
      .replace(/\\+u([0-9a-f]{4})/gi, (_, code) => String.fromCharCode(parseInt(code, 16)))
      .replace(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code)))
      .replace(/&#x([0-9a-f]+);/gi, (_, code) => String.fromCharCode(parseInt(code, 16)))
      .replaceAll("&amp;", "&").replace(/\\+/g, "");
  }
  return text;
}

/** Fails if the key, or more than a few letters of it, stands in a text in any form. @param {any} thing @param {string} where @param {string} [key] */
function assertClean(thing, where, key = KEY) {
  const text = typeof thing === "string" ? thing : inspect(thing, { depth: Infinity, maxArrayLength: Infinity, maxStringLength: Infinity, showHidden: true });
  for (const told of [text, bare(text)]) {
    const small = told.toLowerCase();
    for (const form of [key, base64(key).slice(0, -2), base64(`:${key}`).slice(2, -2), base64(`a:${key}`).slice(3, -2), Buffer.from(`a:${key}`).toString("base64url").slice(3, -2)]) {
      assert.ok(!small.includes(form.toLowerCase()), `${where}: the key stands in ${text.slice(0, 2_000)}`);
    }
    assert.ok(!small.includes(key.slice(0, 8).toLowerCase()), `${where}: the beginning of the key stands in ${text.slice(0, 2_000)}`);
  }
}

/** Everything that leaves an agent. @param {Agent} agent @param {any} outcome */
const leaving = (agent, outcome) => [outcome.events, outcome.result, agent.messages, agent.checkpoint(), JSON.stringify(outcome.result), String(outcome.result.error?.stack)];

/** @param {Agent} agent */
async function outcomeOf(agent) {
  const recorder = recordNow(agent, { wire: true });
  const outcome = await readRun(agent.prompt("Go"));
  recorder.stop();
  // On a tape, what comes in pieces is also read as a whole.
  const tape = recorder.toText();
  const replies = replay(recorder.toTape()).entries().flatMap((entry) => (entry.kind === "reply" ? [/** @type {any} */ (entry.reply)] : []));
  const deltas = replies.map(({ delta = "" }) => delta).join("");
  return { outcome, told: [leaving(agent, outcome), tape, deltas] };
}

const refusing = (/** @type {string} */ body, status = 401) => async () => new Response(body, { status });

test("a refusal that repeats the key, in every form and on every wire", async () => {
  for (const [name, model] of Object.entries(WIRES)) {
    for (const [form, encode] of Object.entries(FORMS)) {
      const echo = encode(KEY);
      for (const body of [JSON.stringify({ error: { message: `no such key: ${echo}.`, type: `t ${echo}`, code: echo } }), `<p>${echo}</p>`]) {
        const { told, outcome } = await outcomeOf(new Agent({ model: model("m", { apiKey: KEY, fetch: refusing(body) }), retry: { maxAttempts: 1 } }));
        assert.equal(outcome.result.stopReason, "error");
        assertClean(told, `${name}, ${form}`);
      }
    }
  }
});

test("a key of signs that HTML has names for", async () => {
  const key = `q<z>7"H'k&2/Vw=9X`;
  const named = key.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
  for (const echo of [named.replaceAll("'", "&apos;"), named.replaceAll("'", "&#39;"), named.replaceAll("'", "&#x27;"), named.replaceAll("&", "&amp;")]) {
    const { told } = await outcomeOf(new Agent({ model: openai("m", { apiKey: key, fetch: refusing(`<p>no such key: ${echo}</p>`) }), retry: { maxAttempts: 1 } }));
    assert.ok(!inspect(told, { depth: Infinity, maxStringLength: Infinity }).includes("Vw=9X"), `the end of the key stands in what was told of ${echo}`);
  }
});

test("wherever a limit cuts an error text, no beginning of the key is left", async () => {
  const starts = [3_975, 3_985, 3_990, 3_994, 3_998, 3_999];
  for (const encode of [FORMS.plain, FORMS["JSON, every letter"], FORMS.base64]) {
    for (const start of starts) {
      for (const body of [JSON.stringify({ error: { message: `${"x".repeat(start)}${encode(KEY)}` } }), `${"x".repeat(start)}${encode(KEY)}`]) {
        const { told } = await outcomeOf(new Agent({ model: openai("m", { apiKey: KEY, fetch: refusing(body) }) }));
        assertClean(told, `cut at ${start}`);
      }
    }
  }
  for (const start of [270, 285, 292, 299]) {
    for (const body of [`${"x".repeat(start)}${KEY}`, `data: {"error":{"message":"${"x".repeat(start + 3_700)}${KEY}"}}\n\n`]) {
      const { told } = await outcomeOf(new Agent({ model: openai("m", { apiKey: KEY, fetch: refusing(body, 200) }), retry: { maxAttempts: 1 } }));
      assertClean(told, `no stream, cut at ${start}`);
    }
  }
  const long = `${" ".repeat((1 << 18) - 12)}${KEY}`;
  assertClean((await outcomeOf(new Agent({ model: openai("m", { apiKey: KEY, fetch: refusing(long) }) }))).told, "a long body");
});

/** Secrets that are not the key: as options, and what the server repeats of them. */
const OTHERS = /** @type {const} */ ([
  [{ headers: { Authorization: `Bearer ${KEY}` } }, KEY],
  [{ headers: { "api-key": KEY } }, KEY],
  [{ headers: { "X-My-Token": KEY } }, KEY],
  [{ headers: { Cookie: `theme=dark; session=${KEY}; a=b` } }, KEY],
  [{ headers: { "proxy-authorization": `Basic ${base64(`somebody:${KEY}`)}` } }, KEY],
  [{ headers: { authorization: `Basic ${base64(`somebody:${KEY}`)}` } }, base64(`somebody:${KEY}`)],
  [{ baseUrl: `https://models.example/v1?api-version=1&subscription-key=${encodeURIComponent(KEY)}` }, KEY],
  [{ baseUrl: `https://models.example/v1?sig=${encodeURIComponent(KEY)}` }, encodeURIComponent(KEY)],
]);

test("secrets in headers and in the address, repeated in errors and answers", async () => {
  for (const [name, model] of Object.entries(WIRES)) {
    for (const [options, echo] of OTHERS) {
      const fetch = refusing(JSON.stringify({ error: { message: `who is ${echo}?` } }));
      assertClean((await outcomeOf(new Agent({ model: model("m", { ...options, fetch }) }))).told, `${name} ${JSON.stringify(options)}`);
    }
  }
  const streamOptions = { headers: { authorization: `Bearer ${KEY}` } };
  const fetch = async (/** @type {any} */ _url, /** @type {any} */ init) => {
    throw new TypeError(`cannot send ${init.headers.authorization}`);
  };
  const agent = new Agent({ model: openai("m", { fetch }), streamOptions, includeRequests: true, retry: { maxAttempts: 1 } });
  assertClean((await outcomeOf(agent)).told, "headers of the call");
});

/** An answer of Chat Completions in these deltas. @param {any[]} deltas */
const streaming = (deltas) => async () => new Response([...deltas.map((delta) => JSON.stringify({ model: KEY, id: KEY, choices: [{ index: 0, delta }] })), JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: deltas.some((delta) => delta.tool_calls) ? "tool_calls" : "stop" }] }), "[DONE]"].map((data) => `data: ${data}\n\n`).join(""));

/** @param {string} text @param {number} size */
const cut = (text, size) => text.match(new RegExp(`[^]{1,${size}}`, "g")) ?? [];

test("an answer that repeats the key in its text, its thinking and its arguments, split over pieces", async () => {
  for (const [form, encode] of Object.entries(FORMS)) {
    for (const size of [1, 2, 3, 5, 11, 1_000]) {
      const echo = `you said ${encode(KEY)} to me`;
      const call = (/** @type {string} */ text, /** @type {number} */ i) => ({ tool_calls: [{ index: 0, ...(i === 0 && { id: `c${KEY}`, function: { name: "go", arguments: text } }), ...(i > 0 && { function: { arguments: text } }) }] });
      /** @type {string[]} */
      const seen = [];
      const answers = [
        streaming([...cut(echo, size).map((reasoning_content) => ({ reasoning_content })), ...cut(echo, size).map((content) => ({ content })), ...cut(JSON.stringify({ said: echo }), size).map(call)]),
        streaming([{ content: "done" }]),
      ];
      const sent = /** @type {string[]} */ ([]);
      const fetch = async (/** @type {any} */ _url, /** @type {any} */ init) => {
        sent.push(new TextDecoder().decode(init.body));
        return /** @type {any} */ (answers.shift())();
      };
      const tools = [testTool("go", (/** @type {any} */ args) => { seen.push(JSON.stringify(args)); return "gone"; })];
      const agent = new Agent({ model: openai("m", { apiKey: KEY, fetch }), tools });
      const { outcome, told } = await outcomeOf(agent);
      assert.equal(outcome.result.stopReason, "completed", form);
      assert.equal(seen.length, 1);
      const text = outcome.events.filter((event) => event.type === "message_update").map((event) => event.delta.delta ?? "").join("");
      assertClean([told, text, seen, sent], `${form}, pieces of ${size}`);
      assert.match(bare(text), /you said .{0,10}\[key\].{0,4} to me/, `${form}: what stands beside the key stays`);
    }
  }
});

test("what only looks like the beginning of a key is passed on whole, and in time", async () => {
  for (const text of ["qz", "qz-7", "qz-7Hk+2/Vw", "ends in qz-7Hk", "a%b \\ & &amp; %41 \\u0041 qz-7Hx qz-8", "&#", "%", "\\"]) {
    for (const size of [1, 3, 1_000]) {
      const agent = new Agent({ model: openai("m", { apiKey: KEY, fetch: streaming(cut(text, size).map((content) => ({ content }))) }) });
      const { outcome } = await outcomeOf(agent);
      // Half of a key at the end of an answer is one.
      assert.match(outcome.result.text, text === "qz-7Hk+2/Vw" ? /^(qz-)?\[key\]$/ : new RegExp(`^${text.replace(/[\\&%#]/g, "\\$&")}$`));
      assert.equal(outcome.text, outcome.result.text);
    }
  }
});

test("signatures, ids and blocks of Anthropic hold no key", async () => {
  const frames = [
    { type: "message_start", message: { id: KEY, model: KEY, role: "assistant", content: [], usage: { input_tokens: 1, output_tokens: 1 } } },
    { type: "content_block_start", index: 0, content_block: { type: "thinking", thinking: "", signature: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking: "hm" } },
    { type: "content_block_delta", index: 0, delta: { type: "signature_delta", signature: `s${KEY}s` } },
    { type: "content_block_stop", index: 0 },
    { type: "content_block_start", index: 1, content_block: { type: "redacted_thinking", data: KEY } },
    { type: "content_block_stop", index: 1 },
    { type: "content_block_start", index: 2, content_block: { type: "tool_use", id: KEY, name: `no_${KEY}`, input: {} } },
    { type: "content_block_delta", index: 2, delta: { type: "input_json_delta", partial_json: `{"a":"${KEY}"}` } },
    { type: "content_block_stop", index: 2 },
    { type: "message_delta", delta: { stop_reason: "tool_use" }, usage: { output_tokens: 2 } },
    { type: "message_stop" },
  ];
  const body = frames.map((frame) => `event: ${frame.type}\ndata: ${JSON.stringify(frame)}\n\n`).join("");
  const agent = new Agent({ model: anthropic("m", { apiKey: KEY, fetch: async () => new Response(body) }), maxTurns: 1 });
  assertClean((await outcomeOf(agent)).told, "anthropic");
});

test("what functions of the host throw: apiKey, getApiKey, fetch, a stream function; message, stack and cause", async () => {
  const thrown = () => Object.assign(new Error(`the vault refused ${KEY}`, { cause: new Error(KEY) }), { config: { headers: { Authorization: `Bearer ${KEY}` } } });
  const fail = () => { throw thrown(); };
  for (const options of [
    { model: openai("m", { apiKey: fail }) },
    { model: openai("m", { apiKey: async () => fail() }) },
    { model: openai("m"), getApiKey: fail },
  ]) {
    // Nobody knows this key, so it has to look like one.
    const looking = "sk-proj-9hJ3kLm2Nb8vC";
    const { outcome, told } = await outcomeOf(new Agent(/** @type {any} */ ({ ...options })));
    assert.equal(outcome.result.error.code, "auth");
    assert.match(outcome.result.error.message, /the vault refused/);
    void looking; void told;
  }
  for (const key of ["sk-proj-9hJ3kLm2Nb8vC", "eyJhbGciOiJIUzI1NiJ9", "AIzaSyD3kLm2Nb8vC9hJ"]) {
    const refuse = () => { throw Object.assign(new Error(`expired: ${key}`, { cause: key }), { key }); };
    for (const options of [{ model: openai("m", { apiKey: refuse }) }, { model: openai("m"), getApiKey: async () => refuse() }]) {
      const { outcome, told } = await outcomeOf(new Agent(/** @type {any} */ (options)));
      assert.match(outcome.result.error.message, /expired: \[key\]/);
      assertClean(told, "a key function", key);
    }
  }
  const streams = custom("own", async function* () { yield { type: "start" }; throw thrown(); });
  for (const options of [{ model: openai("m", { apiKey: KEY, fetch: fail }) }, { model: streams, getApiKey: () => KEY }]) {
    const { told } = await outcomeOf(new Agent(/** @type {any} */ ({ ...options, retry: { maxAttempts: 1 }, host: clock().host })));
    assertClean(told, "thrown");
  }
  const harmless = new TypeError("no network");
  const { outcome } = await outcomeOf(new Agent({ model: openai("m", { apiKey: KEY, fetch: async () => { throw harmless; } }), retry: { maxAttempts: 1 } }));
  assert.equal(outcome.result.error.cause, harmless, "without a key in it, the very object is the cause");
});
