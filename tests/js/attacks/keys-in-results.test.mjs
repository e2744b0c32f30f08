// @ts-check
// A tool reads the environment, or a file with the key in it, and returns it, in whatever form: the key of the model is in nothing
// that leaves the agent.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, openai, readRun, subagent, testTool } from "../kit.mjs";
import { ready, recordNow } from "../../../pkg/tape.js";

await ready();

const KEY = "qz-7Hk+2/Vw=9Xe_4Tb.1Lm";
const base64 = (/** @type {string} */ text) => Buffer.from(text).toString("base64");
const FORMS = [KEY, KEY.toUpperCase(), encodeURIComponent(KEY), JSON.stringify(KEY).replaceAll("/", "\\/"), base64(KEY), base64(`:${KEY}`), base64(`a:${KEY}`), [...KEY].map((letter) => `&#${letter.charCodeAt(0)};`).join(""), [...KEY].map((letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`).join("")];
/** What would give it away: the middle of the key, and of each of its forms. */
const SIGNS = FORMS.map((form) => form.slice(12, -6).toLowerCase());

/** @param {any[]} pieces */
const stream = (...pieces) => new Response(pieces.map((piece) => `data: ${JSON.stringify(piece)}\n\n`).join("") + "data: [DONE]\n\n", { headers: { "content-type": "text/event-stream" } });
const choice = (/** @type {any} */ delta, /** @type {string | null} */ finish = null) => ({ choices: [{ index: 0, delta, finish_reason: finish }] });

/** @param {any} execute */
async function told(execute) {
  let calls = 0;
  /** @type {string[]} */
  const sent = [];
  const fetch = async (/** @type {any} */ _url, /** @type {any} */ init) => {
    sent.push(typeof init.body === "string" ? init.body : new TextDecoder().decode(init.body));
    return calls++ === 0
      ? stream(choice({ role: "assistant", tool_calls: [{ index: 0, id: "c1", type: "function", function: { name: "env", arguments: "{}" } }] }), choice({}, "tool_calls"))
      : stream(choice({ role: "assistant", content: "ok" }), choice({}, "stop"));
  };
  const agent = new Agent({ model: openai("m", { apiKey: KEY, fetch }), tools: [testTool("env", execute)], includeRequests: true });
  const recorder = recordNow(agent, { wire: true });
  const { events, result } = await readRun(agent.prompt("Go"));
  recorder.stop();
  assert.equal(result.stopReason, "completed", result.error?.message);
  return { text: JSON.stringify([events, result, agent.messages, agent.checkpoint(), recorder.toText(), sent]).toLowerCase(), messages: result.messages };
}

test("what a tool returns, throws or reports has no key in it, in any form", async () => {
  for (const form of FORMS) {
    /** @type {any[]} */
    const tools = [
      () => `OPENAI_API_KEY=${form}\nHOME=/root`,
      () => ({ content: [{ type: "text", text: "see details" }], details: { environment: { key: form, [form]: 1 } } }),
      () => { throw new Error(`cannot use ${form} here`); },
      (/** @type {any} */ _, /** @type {any} */ { update }) => (update(`reading ${form}`), update({ content: [{ type: "text", text: form }] }), "read"),
      async () => [{ type: "text", text: `a ${form} b` }, { type: "text", text: form }],
    ];
    for (const execute of tools) {
      const { text, messages } = await told(execute);
      for (const sign of SIGNS) assert.ok(!text.includes(sign), `${form}: ${execute}: ${text.slice(Math.max(0, text.indexOf(sign) - 200), text.indexOf(sign) + 100)}`);
      assert.match(JSON.stringify(messages), /\[key\]|"read"|see details/);
    }
  }
});

test("the rest of a result stays as it was", async () => {
  const { messages } = await told(() => `HOME=/root\nOPENAI_API_KEY=${KEY}\nLANG=C`);
  const [result] = messages.filter((/** @type {any} */ { role }) => role === "tool_result");
  assert.equal(result.content[0].text, "HOME=/root\nOPENAI_API_KEY=[key]\nLANG=C");
});

/** A model that calls these tools, one after the other, and then says "ok". @param {string} apiKey @param {...string} names */
function caller(apiKey, ...names) {
  let calls = 0;
  const fetch = async () => {
    const name = names[calls++];
    return name ? stream(choice({ role: "assistant", tool_calls: [{ index: 0, id: `c${calls}`, type: "function", function: { name, arguments: '{"prompt":"x"}' } }] }), choice({}, "tool_calls")) : stream(choice({ content: "ok" }), choice({}, "stop"));
  };
  return openai("m", { apiKey, fetch });
}

const OTHER = "sk-other-Zz9yXw8vUt7sRq6p";
const THIRD = "sk-third-Mn5bVc4xZl3kJh2g";

/** Everything that is told of a run. @param {any} agent */
async function allOf(agent) {
  const { events, result } = await readRun(agent.prompt("Go"));
  assert.equal(result.stopReason, "completed", result.error?.message);
  return JSON.stringify([events, result, agent.messages, agent.checkpoint()]);
}

/** @param {string} text @param {string[]} keys */
function assertNone(text, ...keys) {
  for (const key of keys) assert.ok(!text.includes(key.slice(6, -3)), `${key}: ${text.slice(Math.max(0, text.indexOf(key) - 200), text.indexOf(key) + 50)}`);
  assert.match(text, /\[key\]/);
}

test("the keys of all its models are hidden: of the one before a fallback, of one that was not asked yet, in headers and addresses", async () => {
  const show = testTool("env", () => [KEY, OTHER, THIRD].join("\n"));
  const broken = openai("a", { apiKey: OTHER, fetch: async () => new Response("{}", { status: 500 }) });
  assertNone(await allOf(new Agent({ model: broken, fallback: [caller(KEY, "env")], retry: { maxAttempts: 1 }, tools: [show] })), KEY, OTHER);
  const unused = openai("b", { baseUrl: `https://x.example/v1?key=${OTHER}`, headers: { "x-api-key": THIRD } });
  assertNone(await allOf(new Agent({ model: caller(KEY, "env"), fallback: [unused], tools: [show] })), KEY, OTHER, THIRD);
});

test("a key that one turn used is hidden in the next, which has another model", async () => {
  const [first, second] = [caller(OTHER, "look"), caller(KEY, "env")];
  const tools = [testTool("look", () => "nothing"), testTool("env", () => `${KEY} ${OTHER}`)];
  const text = await allOf(new Agent({ model: first, prepareTurn: ({ turnIndex }) => ({ model: turnIndex === 0 ? first : second }), tools }));
  assertNone(text, KEY, OTHER);
  // Of keys that a function gives, too.
  let asked = 0;
  const given = new Agent({ model: openai("m", { fetch: setFetch(["look", "env"]) }), getApiKey: () => (asked++ ? KEY : OTHER), tools });
  assertNone(await allOf(given), KEY, OTHER);
});

test("keys that are renewed do not make an agent forget those of its models", async () => {
  let asked = 0;
  const renewed = openai("m", { fetch: setFetch([...Array.from({ length: 40 }, () => "look"), "env"]) });
  const unused = openai("b", { apiKey: OTHER, fetch: async () => new Response("{}", { status: 500 }) });
  const tools = [testTool("look", () => "nothing"), testTool("env", () => `${OTHER} ${renewedKey(asked)}`)];
  const agent = new Agent({ model: renewed, fallback: [unused], getApiKey: () => renewedKey(++asked), tools, maxTurns: 50 });
  assertNone(await allOf(agent), OTHER);
  assert.equal(asked, 42);
});

/** @param {number} number */
const renewedKey = (number) => `sk-renewed-${String(number).padStart(4, "0")}-Qa8wSe7dRf6tG`;

/** @param {string[]} names */
function setFetch(names) {
  let calls = 0;
  return async () => {
    const name = names[calls++];
    return name ? stream(choice({ tool_calls: [{ index: 0, id: `c${calls}`, type: "function", function: { name, arguments: "{}" } }] }), choice({}, "tool_calls")) : stream(choice({ content: "ok" }), choice({}, "stop"));
  };
}

test("an agent inside a call shows no key of the one around it, nor the other way round", async () => {
  const show = testTool("env", () => `${KEY} ${OTHER}`);
  const child = () => new Agent({ model: caller(OTHER, "env"), tools: [show] });
  const kid = subagent({ name: "kid", description: "helps", agent: child });
  assertNone(await allOf(new Agent({ model: caller(KEY, "kid"), tools: [kid] })), KEY, OTHER);
  assertNone(await allOf(new Agent({ model: caller(KEY, "kid", "env"), tools: [kid, show] })), KEY, OTHER);
});

test("what a tool asks a person has no key in it", async () => {
  const asks = testTool("env", (/** @type {any} */ _, /** @type {any} */ { ask }) => ask({ message: `use ${KEY}?`, schema: { type: "object", properties: { key: { type: "string", description: KEY } } } }).then(() => "asked"));
  const agent = new Agent({ model: caller(KEY, "env"), tools: [asks] });
  /** @type {string[]} */
  const told = [];
  for await (const event of agent.prompt("Go")) {
    told.push(JSON.stringify([event, agent.pendingQuestions, agent.checkpoint()]));
    for (const { id } of agent.pendingQuestions) agent.resolve(id, { action: "decline" });
  }
  assertNone(told.join("\n"), KEY);
});

test("a guess is not answered: what only begins like the key stays as it is", async () => {
  // Whoever lets a model call a tool that repeats what it is given could else find the key letter by letter.
  const key = "no-real-key-Ab3dEf6hIj9kLm2n";
  for (let length = 6; length < key.length / 2; length++) {
    const agent = new Agent({ model: caller(key, "env"), tools: [testTool("env", () => `x ${key.slice(0, length)}`)] });
    assert.ok((await allOf(agent)).includes(`x ${key.slice(0, length)}"`), `${length} letters`);
  }
});
