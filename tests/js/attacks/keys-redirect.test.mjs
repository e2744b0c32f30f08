// @ts-check
// Servers redirect the request to another origin, which would get the prompt and the key.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { Agent, anthropic, gemini, openai, openaiCompatible, openaiResponses } from "../kit.mjs";

const KEY = "qz-7Hk2Vw9Xe4Tb1Lm";
const SAID = 'data: {"choices":[{"index":0,"delta":{"content":"Hi."},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';

/** A server, and what it was sent. @param {(url: string) => [number, Record<string, string>, string]} answer */
async function serve(answer) {
  /** @type {{ url: string, method: string, headers: any, body: string }[]} */
  const asked = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const piece of request) body += piece;
    asked.push({ url: request.url ?? "", method: request.method ?? "", headers: request.headers, body });
    const [status, headers, text] = answer(request.url ?? "");
    response.writeHead(status, headers).end(text);
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", () => done(undefined)));
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  return { asked, port, origin: `http://127.0.0.1:${port}`, close: () => { server.closeAllConnections(); server.close(); } };
}

/** Two origins: one redirects to the other. @param {number} status @param {(thief: Awaited<ReturnType<typeof serve>>) => string} [where] */
async function trap(status, where = (thief) => `${thief.origin}/taken?key=${KEY}`) {
  const thief = await serve(() => [200, { "content-type": "text/event-stream" }, SAID]);
  const server = await serve(() => [status, { location: where(thief), "x-should-retry": "true", "retry-after": "0" }, "moved"]);
  return { thief, server, close: () => (thief.close(), server.close()) };
}

const MODELS = {
  openai: (/** @type {any} */ options) => openai("m", { apiKey: KEY, ...options }),
  responses: (/** @type {any} */ options) => openaiResponses("m", { apiKey: KEY, ...options }),
  anthropic: (/** @type {any} */ options) => anthropic("m", { apiKey: KEY, ...options }),
  gemini: (/** @type {any} */ options) => gemini("m", { apiKey: KEY, ...options }),
  azure: (/** @type {any} */ options) => openaiCompatible("m", { server: "azure", apiKey: KEY, ...options }),
  "own headers": (/** @type {any} */ options) => openai("m", { headers: { "x-secret": KEY, cookie: `a=${KEY}` }, ...options }),
  "no key": (/** @type {any} */ options) => openai("m", options),
};

test("no wire follows a redirect to another origin, and the error names it", async () => {
  for (const [name, make] of Object.entries(MODELS)) {
    for (const status of [300, 301, 302, 303, 307, 308]) {
      const { thief, server, close } = await trap(status);
      const { error, stopReason } = await new Agent({ model: make({ baseUrl: server.origin }) }).prompt("A secret of mine").result;
      close();
      assert.equal(thief.asked.length, 0, `${name} ${status}: the other origin was asked`);
      assert.equal(server.asked.length, 1, `${name} ${status}: not tried again`);
      assert.deepEqual([stopReason, error?.code, error?.info.retryable], ["error", "invalid_request", false], `${name} ${status}`);
      assert.match(error?.message ?? "", new RegExp(`redirects \\(${status}\\) to ${thief.origin}/taken;.*base URL`));
      assert.ok(!error?.message.includes(KEY));
    }
  }
});

test("other spellings of another origin", async () => {
  for (const where of [
    (/** @type {any} */ thief) => `//127.0.0.1:${thief.port}/`,
    (/** @type {any} */ thief) => `http://localhost:${thief.port}/`,
    (/** @type {any} */ thief) => `\\\\127.0.0.1:${thief.port}/`,
    (/** @type {any} */ thief) => `HTTP:/\\127.0.0.1:${thief.port}/`,
    (/** @type {any} */ thief) => `https://127.0.0.1:${thief.port}/`,
    () => "data:text/event-stream,hello", () => "file:///etc/passwd", () => "javascript:1", () => "http://[", () => "",
  ]) {
    const { thief, server, close } = await trap(307, where);
    const { error } = await new Agent({ model: MODELS.openai({ baseUrl: server.origin }) }).prompt("Go").result;
    close();
    assert.equal(thief.asked.length, 0);
    assert.equal(error?.code, "invalid_request", where.toString());
  }
});

test("within its origin a request is sent on, with its method and its body, a few times", async () => {
  const server = await serve((url) => (url === "/v2/chat/completions" ? [200, { "content-type": "text/event-stream" }, SAID] : [308, { location: "/v2/chat/completions" }, ""]));
  const { text } = await new Agent({ model: MODELS.openai({ baseUrl: server.origin }) }).prompt("Go").result;
  server.close();
  assert.equal(text, "Hi.");
  const [first, second] = server.asked;
  assert.deepEqual([second.method, second.body, second.headers.authorization], ["POST", first.body, `Bearer ${KEY}`]);

  const round = await serve(() => [307, { location: "/again" }, ""]);
  const { error } = await new Agent({ model: MODELS.openai({ baseUrl: round.origin }) }).prompt("Go").result;
  round.close();
  assert.equal(error?.code, "invalid_request");
  assert.equal(round.asked.length, 6);
});

test("within its origin, then away: the second redirect is refused", async () => {
  const thief = await serve(() => [200, {}, SAID]);
  const server = await serve((url) => [307, { location: url === "/away" ? thief.origin : "/away" }, ""]);
  const { error } = await new Agent({ model: MODELS.anthropic({ baseUrl: server.origin }) }).prompt("Go").result;
  thief.close();
  server.close();
  assert.deepEqual([thief.asked.length, server.asked.length, error?.code], [0, 2, "invalid_request"]);
});

test("a redirect that would make GET of POST is refused within the origin, too", async () => {
  for (const status of [301, 302, 303]) {
    const server = await serve((url) => (url === "/v2" ? [200, {}, SAID] : [status, { location: "/v2" }, ""]));
    const { error } = await new Agent({ model: MODELS.openai({ baseUrl: server.origin }) }).prompt("Go").result;
    server.close();
    assert.deepEqual([server.asked.length, error?.code], [1, "invalid_request"]);
  }
});

test("a page is not told where a redirect points, and a fetch of one's own may have followed it", async () => {
  const opaque = Object.defineProperties(new Response(null), { type: { value: "opaqueredirect" }, status: { value: 0 }, ok: { value: false } });
  /** @type {any[]} */
  const inits = [];
  const ask = async (/** @type {Response} */ response) => (await new Agent({ model: MODELS.openai({ fetch: async (/** @type {any} */ _url, /** @type {any} */ init) => { inits.push({ ...init }); return response; } }) }).prompt("Go").result);
  const refused = (await ask(opaque)).error;
  assert.deepEqual([refused?.code, refused?.info.retryable], ["invalid_request", false]);
  assert.match(refused?.message ?? "", /redirects.*baseUrl/);
  const followed = Object.defineProperties(new Response(SAID), { redirected: { value: true }, url: { value: "https://thief.example/x?key=1" } });
  const error = (await ask(followed)).error;
  assert.deepEqual([error?.code, inits.length], ["invalid_request", 2]);
  assert.match(error?.message ?? "", /followed a redirect to https:\/\/thief\.example,/);
  const within = Object.defineProperties(new Response(SAID), { redirected: { value: true }, url: { value: "https://api.openai.com/elsewhere" } });
  assert.equal((await ask(within)).text, "Hi.");
  assert.ok(inits.every((init) => init.redirect === "manual"));
});
