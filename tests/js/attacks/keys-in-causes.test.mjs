// @ts-check
// What functions of the host throw is the cause of an error, and a console, JSON or a debugger shows all that hangs on it: requests,
// addresses, headers, whatever libraries put there. A key is in none of it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { Agent, call, clock, openai, readRun, scripted, testTool } from "../kit.mjs";
import { RemoteAgent } from "../../../pkg/remote.js";

const KEY = "no-real-key-Ab3dEf6hIj9kLm2n";

/** What is hung on an error. @type {Record<string, () => any>} */
const HUNG = {
  "an address": () => new URL(`https://x.example/?key=${KEY}`),
  "parameters of an address": () => new URLSearchParams({ key: KEY }),
  "a form": () => { const form = new FormData(); form.set("key", KEY); return form; },
  "a request": () => new Request("https://x.example/", { headers: { authorization: `Bearer ${KEY}` } }),
  "headers": () => new Headers({ authorization: `Bearer ${KEY}` }),
  "a map": () => new Map([[{ key: KEY }, 1]]),
  "a text as an object": () => new String(KEY),
  "a function with a member": () => Object.assign(() => {}, { key: KEY }),
  "a class with a member": () => class { static key = KEY; },
  "bytes": () => new TextEncoder().encode(KEY),
  "an accessor of a class": () => new (class { #key = KEY; get key() { return this.#key; } })(),
  "what is inherited": () => Object.create({ key: KEY }),
  "what becomes JSON": () => ({ toJSON: () => KEY }),
  "what a console is shown": () => ({ [inspect.custom]: () => KEY }),
  "a pattern": () => new RegExp(KEY),
  "what a promise was kept with": () => Promise.resolve({ key: KEY }),
  "what cannot be read": () => ({ get key() { throw new Error("no"); }, other: KEY }),
  "an error without end": () => { const error = /** @type {any} */ (new Error("round")); error.cause = error; error.key = KEY; return error; },
};

/** @type {Record<string, () => any>} */
const THROWN = {
  ...Object.fromEntries(Object.entries(HUNG).map(([name, hung]) => [name, () => Object.assign(new Error("no"), { more: hung() })])),
  "the name of a symbol": () => Object.assign(new Error("no"), { [Symbol(KEY)]: 1 }),
  "many errors": () => new AggregateError([new Error(KEY)], "no"),
  "the end of a long chain": () => { let error = new Error(KEY); for (let i = 0; i < 20; i++) error = new Error("no", { cause: error }); return error; },
};

/** @param {unknown[]} told @param {string} where */
function assertNoKey(told, where) {
  const text = inspect(told, { depth: 30, showHidden: true, getters: true, maxStringLength: Infinity, maxArrayLength: Infinity }) + JSON.stringify(told, (_, value) => (value instanceof Error ? { ...value, stack: value.stack, cause: value.cause } : value));
  assert.ok(!text.includes(KEY), `${where}: ${text.slice(Math.max(0, text.indexOf(KEY) - 200), text.indexOf(KEY) + 50)}`);
}

/** @param {any} options */
async function failed(options) {
  const { events, result } = await readRun(new Agent({ retry: { maxAttempts: 1 }, ...options }).prompt("Go"));
  assert.equal(result.stopReason, "error");
  return { told: [events, result, result.error, result.error.cause], cause: result.error.cause };
}

/** Calls the tool `t` once. */
const model = () => {
  let asked = 0;
  const choice = (/** @type {any} */ delta, /** @type {string} */ finish) => new Response(`data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }] })}\n\ndata: [DONE]\n\n`, { headers: { "content-type": "text/event-stream" } });
  return openai("m", { apiKey: KEY, fetch: async () => (asked++ ? choice({ content: "ok" }, "stop") : choice({ tool_calls: [{ index: 0, id: "c1", function: { name: "t", arguments: "{}" } }] }, "tool_calls")) });
};

test("fetch throws it, with the key in it", async () => {
  for (const [name, thrown] of Object.entries(THROWN)) {
    const { told, cause } = await failed({ model: openai("m", { apiKey: KEY, fetch: async () => { throw thrown(); } }) });
    assertNoKey(told, name);
    assert.ok(cause instanceof Error, name);
  }
});

test("a tool whose errors are fatal throws it", async () => {
  for (const [name, thrown] of Object.entries(THROWN)) assertNoKey((await failed({ model: model(), tools: [testTool("t", () => { throw thrown(); }, { fatal: true })] })).told, name);
});

test("hooks, wrappers and transformers throw it: the word and the object", async () => {
  const fail = () => { throw Object.assign(new Error(`the vault gave ${KEY}`), { url: new URL(`https://x.example/?key=${KEY}`) }); };
  const tools = [testTool("t", () => "x")];
  for (const name of ["transformContext", "prepareTurn", "convertToLlm", "wrapModel"]) {
    const { told } = await failed({ model: model(), tools, [name]: fail });
    // Before the first request, too: the model's own key is known.
    assertNoKey(told, name);
  }
  for (const name of ["beforeInference", "afterInference", "beforeToolExecution", "afterToolExecution"]) assertNoKey((await failed({ model: model(), tools, hooks: { [name]: fail } })).told, name);
});

test("without a key in it, the very object is the cause, whatever hangs on it", async () => {
  const harmless = [
    new TypeError("no"), Object.assign(new Error("no"), { address: new URL("https://x.example/"), headers: new Headers({ a: "b" }), at: new Date(0), bytes: new Uint8Array(8), more: { list: [1, { a: null }] } }),
    new DOMException("no", "DataError"), new AggregateError([new Error("a"), new Error("b")], "no"),
  ];
  for (const error of harmless) assert.equal((await failed({ model: openai("m", { apiKey: KEY, fetch: async () => { throw error; } }) })).cause, error);
  const own = new Error("no");
  assert.equal((await failed({ model: scripted([call("t")]), tools: [testTool("t", () => { throw own; }, { fatal: true })] })).cause, own);
});

test("a RemoteAgent's fetch throws its headers, as they are, escaped or hung on an error", async () => {
  const each = (/** @type {(code: string) => string} */ form) => () => new Error([...KEY].map((letter) => form(letter.charCodeAt(0).toString(16))).join(""));
  const forms = {
    ...THROWN, "as it is": () => new Error(KEY), percent: each((code) => `%${code}`), JSON: each((code) => `\\u${code.padStart(4, "0")}`), HTML: each((code) => `&#x${code};`),
    base64: () => new Error(btoa(KEY)), "base64, one before": () => new Error(btoa(`:${KEY}`)), "base64, two before": () => new Error(btoa(`a:${KEY}`)),
  };
  const signs = [KEY, "%73%6b", "\\u0073\\u006b", "&#x73;&#x6b;", ...["", ":", "a:"].map((before) => btoa(before + KEY).slice(4, 20))];
  for (const [name, thrown] of Object.entries(forms)) {
    const agent = new RemoteAgent({ url: "http://localhost:1/x", headers: { authorization: `Bearer ${KEY}` }, fetch: async () => { throw thrown(); }, reconnects: { maxAttempts: 1 }, host: clock().host });
    const { error } = await agent.prompt("Go").result;
    agent[Symbol.dispose]?.();
    const text = inspect([error, error?.cause], { depth: 30, showHidden: true, getters: true });
    for (const sign of signs) assert.ok(!text.includes(sign), `${name}: ${text.slice(Math.max(0, text.indexOf(sign) - 200), text.indexOf(sign) + 50)}`);
  }
});
