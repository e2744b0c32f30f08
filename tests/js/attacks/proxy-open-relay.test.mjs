// @ts-check
// The proxy of the examples, by those who would use it as their own: it is closed until it is set up, and passes on
// nothing but calls of models, to nobody but the provider.

import assert from "node:assert/strict";
import { test } from "node:test";
import worker, { proxy } from "../../../www/examples/proxy/worker.js";

const ORIGIN = "https://app.example";
const ENV = { OPENAI_API_KEY: "key-of-openai", GEMINI_API_KEY: "key-of-gemini", ALLOWED_ORIGINS: ORIGIN, ALLOWED_MODELS: "small" };
const never = async () => assert.fail("it was passed on");

/** @param {any} [init] @param {any} [env] @param {any} [send] */
const ask = (init = {}, env = ENV, send = never) => {
  const { path = "/openai/responses", headers = {}, body = '{"model":"small"}', method = "POST" } = init;
  return proxy(new Request(`https://proxy.example${path}`, { method, headers: { origin: ORIGIN, ...headers }, ...(method === "POST" && { body, duplex: "half" }) }), env, send);
};

test("a proxy that nobody has set up is closed", async () => {
  for (const env of [{}, { OPENAI_API_KEY: "k" }, { ...ENV, ALLOWED_ORIGINS: "" }, { ...ENV, ALLOWED_ORIGINS: "  " }, { ...ENV, ALLOWED_ORIGINS: undefined }]) {
    assert.equal((await ask({}, env)).status, 503, JSON.stringify(env));
    assert.equal((await ask({ headers: { origin: "" } }, env)).status, 503);
    assert.equal((await worker.fetch(new Request("https://proxy.example/openai/responses", { method: "POST", body: "{}" }), env)).status, 503);
  }
  assert.equal((await ask({}, { ...ENV, OPENAI_API_KEY: "" })).status, 503);
  assert.equal((await ask({ path: "/anthropic/v1/messages" })).status, 503, "without a key of its own");
});

test("other pages, models, methods and paths are refused", async () => {
  for (const origin of ["https://evil.example", "null", "", `${ORIGIN}.evil.example`, `${ORIGIN} https://evil.example`]) assert.equal((await ask({ headers: { origin } })).status, 403, origin);
  for (const body of ['{"model":"large"}', '{"model":["small"]}', "{}", '{"model":"small","model":"large"}']) assert.equal((await ask({ body })).status, 403, body);
  for (const body of ["", "[]", "model=small", "null"]) assert.equal((await ask({ body })).status, 400, body);
  for (const path of ["/openai/files", "/openai//chat/completions", "/openai/chat/completions/", "/openai/chat%2fcompletions", "/openai/..%2f..%2fmodels", "/constructor/x", "/gemini/models/small:generateContent", "/gemini/models/../x:streamGenerateContent", "//evil.example/openai/responses"]) assert.equal((await ask({ path })).status, 404, path);
  assert.equal((await ask({ path: "/gemini/models/large:streamGenerateContent" })).status, 403);
  for (const method of ["GET", "PUT", "DELETE"]) assert.equal((await ask({ method })).status, 404, method);
});

test("what is passed on has the key, the body and nothing else; a redirect is not followed", async () => {
  /** @type {any} */
  let passed;
  const send = async (/** @type {any} */ url, /** @type {any} */ init) => ((passed = { url, ...init }), new Response("data: x\n\n", { headers: { "set-cookie": "a=b", "content-type": "text/event-stream" } }));
  const answer = await ask({ path: "/openai/responses?api-version=evil&key=mine", headers: { authorization: "Bearer mine", cookie: "session=1", "x-api-key": "mine", "x-forwarded-for": "1.2.3.4" }, body: '{"model":"large","model":"small"}' }, ENV, send);
  assert.deepEqual([answer.status, answer.headers.get("set-cookie"), await answer.text()], [200, null, "data: x\n\n"]);
  assert.deepEqual([passed.url, passed.redirect, passed.body], ["https://api.openai.com/v1/responses", "manual", '{"model":"small"}']);
  assert.deepEqual(Object.fromEntries(passed.headers), { authorization: "Bearer key-of-openai", "content-type": "text/plain;charset=UTF-8" });
  const redirected = await ask({}, ENV, async () => new Response(null, { status: 307, headers: { location: "https://evil.example/" } }));
  assert.deepEqual([redirected.status, redirected.headers.get("location")], [502, null]);
});

test("a body without end is not read to its end", async () => {
  let pieces = 0;
  const body = new ReadableStream({ pull: (controller) => (++pieces > 1000 ? controller.close() : controller.enqueue(new Uint8Array(65_536).fill(32))) });
  assert.equal((await ask({ body })).status, 413);
  assert.ok(pieces < 100, `${pieces} pieces were read`);
});

test("a caller has a limit, the platform's or its own", async () => {
  const send = async () => new Response("ok");
  /** @type {any[]} */
  const keys = [];
  const LIMIT = { limit: async (/** @type {any} */ { key }) => (keys.push(key), { success: keys.length < 3 }) };
  const statuses = [];
  for (let i = 0; i < 4; i++) statuses.push((await ask({}, { ...ENV, LIMIT }, send)).status);
  assert.deepEqual(statuses, [200, 200, 429, 429]);
  const own = [];
  for (let i = 0; i < 100; i++) own.push((await ask({ headers: { "cf-connecting-ip": `10.0.0.${i}`, "x-forwarded-for": `10.0.0.${i}` } }, ENV, send)).status);
  assert.ok(own.filter((status) => status === 429).length >= 30, "and no header of a client's makes it somebody else");
});
