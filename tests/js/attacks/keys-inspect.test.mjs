// @ts-check
// Whatever prints, copies or walks a model, an agent or an error finds no key. A key that goes over plain HTTP is told.

import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { Agent, anthropic, gemini, openai, openaiCompatible, openaiResponses } from "../kit.mjs";
import { RemoteAgent } from "../../../pkg/remote.js";

const KEY = "qz-7Hk2Vw9Xe4Tb1Lm";
const OPTIONS = { apiKey: KEY, headers: { "x-my-token": `other-${KEY}` }, baseUrl: `https://models.example/v1?key=${KEY}` };

/** Every value that can be reached without calling anything. @param {any} value @param {Set<any>} seen @returns {string} */
function dump(value, seen = new Set()) {
  if (typeof value === "string") return value;
  if ((typeof value !== "object" && typeof value !== "function") || value === null || seen.has(value) || seen.size > 20_000) return "";
  seen.add(value);
  const names = Reflect.ownKeys(value).filter((name) => typeof value !== "function" || !["caller", "arguments", "callee"].includes(String(name)));
  return names.map((name) => {
    const found = Object.getOwnPropertyDescriptor(value, name);
    return `${String(name)} ${dump(found && "value" in found ? found.value : undefined, seen)}`;
  }).join("\n") + dump(Object.getPrototypeOf(value), seen);
}

const shown = (/** @type {any} */ value) => [
  inspect(value, { depth: Infinity, showHidden: true, getters: true, maxArrayLength: Infinity, maxStringLength: Infinity }),
  inspect({ deep: [value] }, { depth: Infinity, showProxy: true }), JSON.stringify(value), String(value), Object.entries(value).join(),
].join("\n");

test("models show no key", () => {
  for (const model of [openai("m", OPTIONS), openaiResponses("m", OPTIONS), anthropic("m", OPTIONS), gemini("m", OPTIONS), openaiCompatible("m", OPTIONS)]) {
    const text = [shown(model), dump(model), inspect(structuredClone({ ...model }), { showHidden: true }), inspect(Object.getOwnPropertyDescriptors(model), { depth: Infinity, showHidden: true })].join("\n");
    assert.ok(!text.includes(KEY), text);
  }
});

test("agents show no key, before, during and after a run", async () => {
  const fetch = async () => new Response("no", { status: 401 });
  const agent = new Agent({ model: openai("m", { ...OPTIONS, fetch }), fallback: [anthropic("m", { ...OPTIONS, fetch })] });
  const before = shown(agent);
  const run = agent.prompt("Go");
  const during = [shown(agent), shown(run)];
  const result = await run.result;
  for (const text of [before, ...during, shown(agent), shown(run), shown(result), shown(result.error), dump(result)]) assert.ok(!text.includes(KEY), text);
});

test("remote agents show no headers of theirs", () => {
  const remote = new RemoteAgent({ url: "https://agents.example", headers: { authorization: `Bearer ${KEY}` }, fetch: () => new Promise(() => {}) });
  const text = shown(remote);
  remote.dispose?.();
  assert.ok(!text.includes(KEY), text);
});

test("an address that is refused is not repeated with its password or its query", () => {
  for (const baseUrl of [`ftp://somebody:${KEY}@models.example`, `https://somebody:${KEY}@models.example/v1`, `http://${KEY}@models.example`, `models.example?key=${KEY}`, `https://a:${KEY}/b@c`, `https://[${KEY}?key=${KEY}`.replace(`[${KEY}`, "[x")]) {
    for (const make of [openai, anthropic, gemini, openaiResponses]) {
      assert.throws(() => make("m", { baseUrl }), (error) => /** @type {any} */ (error).code === "misuse" && !inspect(error).replaceAll(/at .*/g, "").includes(KEY), baseUrl);
    }
  }
});

test("a key over plain HTTP to another machine is told once for each origin", async () => {
  /** @type {string[]} */
  const told = [];
  const { warn } = console;
  console.warn = (/** @type {any[]} */ ...texts) => void told.push(texts.join(" "));
  const fetch = async () => new Response("no", { status: 401 });
  const ask = (/** @type {string} */ baseUrl, /** @type {any} */ options = { apiKey: KEY }) => new Agent({ model: openai("m", { baseUrl, fetch, ...options }) }).prompt("Go").result;
  try {
    for (const baseUrl of ["http://models.example/v1", "http://models.example/v2", "http://10.0.0.7:8080/v1"]) await ask(baseUrl);
    await ask("http://other.example/v1", { headers: { "X-Api-Key": KEY } });
    await ask("http://third.example/v1?key=abc", {});
    for (const baseUrl of ["http://localhost:1234/v1", "http://127.0.0.1/v1", "http://127.8.9.1:80", "http://[::1]:8080/v1", "http://a.localhost/v1", "https://models.example/v1"]) await ask(baseUrl);
    await ask("http://silent.example/v1", {});
    // What warns is loaded when it is first needed.
    for (let turn = 0; turn < 500 && told.length < 4; turn++) await new Promise((done) => setTimeout(done, 5));
  } finally {
    console.warn = warn;
  }
  assert.deepEqual(told.map((text) => /** @type {any} */ (/http:\/\/[^ ]+/.exec(text))[0]), ["http://models.example", "http://10.0.0.7:8080", "http://other.example", "http://third.example"]);
  assert.ok(told.every((text) => text.startsWith("turnwheel: ") && !text.includes(KEY)));
});
