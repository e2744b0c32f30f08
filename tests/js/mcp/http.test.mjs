// @ts-check
// A server by its address: headers, a fetch of one's own, and a login. The same login in a page: browser/mcp-login.test.mjs.

import assert from "node:assert/strict";
import { test } from "node:test";
import { mcpTools } from "../../../pkg/mcp.js";
import { loginServer } from "./oauth.mjs";
import { LocalLogin } from "./local-login.mjs";
import { results } from "./made.mjs";
import { misused } from "../kit.mjs";

const URL_OF_SERVER = "http://server.localhost/mcp";

/** A server in this process, and the options that lead there. */
function inProcess() {
  const server = loginServer();
  return { ...server, fetch: (/** @type {any} */ url, /** @type {any} */ init) => server.handle(new Request(url, init)) };
}

/** A page's storage, and where it is sent. */
function browserLike() {
  const kept = new Map();
  /** @type {URL[]} */
  const visited = [];
  Object.assign(globalThis, {
    localStorage: { getItem: (/** @type {string} */ key) => kept.get(key) ?? null, setItem: (/** @type {string} */ key, /** @type {string} */ value) => void kept.set(key, value) },
    location: { href: "http://app.localhost/", assign: (/** @type {URL} */ url) => void visited.push(url) },
  });
  return { kept, visited };
}

test("headers and a fetch of one's own reach the server; without them it says what it wants", async () => {
  const { fetch, issue, log } = inProcess();
  const token = issue().access_token;
  const server = await mcpTools(URL_OF_SERVER, { fetch, headers: { authorization: `Bearer ${token}`, "x-tenant": "seven" } });
  assert.equal((await results(server.tools, "secret"))[0].content[0].text, "the secret, asked as seven");
  assert.ok(log.includes("POST /mcp"));
  await server.dispose();
  await assert.rejects(mcpTools(URL_OF_SERVER, { fetch }), (error) => {
    const { code, message } = /** @type {any} */ (error);
    return code === "auth" && message.includes(`${URL_OF_SERVER} does not let this client in: give \`headers\` with a token, or an \`authProvider\``) && !message.includes(token);
  });
});

test("a login: begun, come back, kept, renewed, and begun again when nothing helps", async (t) => {
  const { fetch, handle, expire, expireAll, log } = inProcess();
  const { kept, visited } = browserLike();
  t.after(() => { for (const name of ["localStorage", "location"]) Reflect.deleteProperty(globalThis, name); });
  const authProvider = new LocalLogin("login", "http://app.localhost/");
  const begun = await mcpTools(URL_OF_SERVER, { fetch, authProvider }).then(() => undefined, (error) => error);
  assert.deepEqual([begun.code, /a login has begun; when it comes back, call mcpTools again with its code as `authorizationCode`/.test(begun.message)], ["auth", true]);
  const page = await (await handle(new Request(/** @type {URL} */ (visited[0])))).text();
  const back = new URL(/href="([^"]+)"/.exec(page)?.[1]?.replaceAll("&amp;", "&") ?? "");
  assert.equal(back.searchParams.get("state"), JSON.parse(kept.get("login.state")));
  const authorizationCode = back.searchParams.get("code") ?? "";
  const server = await mcpTools(URL_OF_SERVER, { fetch, authProvider, authorizationCode });
  assert.match((await results(server.tools, "secret"))[0].content[0].text, /^the secret/);

  const first = kept.get("login.tokens");
  expire();
  assert.match((await results(server.tools, "secret"))[0].content[0].text, /^the secret/, "renewed in the middle of a call");
  assert.notEqual(kept.get("login.tokens"), first);
  assert.ok(log.filter((line) => line === "POST /token").length >= 2);

  const again = await mcpTools(URL_OF_SERVER, { fetch, authProvider });
  assert.equal(again.tools.length, 1, "no second login");
  expireAll();
  const [out] = await results(again.tools, "secret");
  assert.match(out.content[0].text, /private does not let this client in: a login has begun/);
  assert.equal(visited.length, 2);
  const wrong = await mcpTools(URL_OF_SERVER, { fetch, authProvider, authorizationCode }).then(() => undefined, (error) => error);
  assert.match(wrong.message, /http:\/\/server\.localhost\/mcp/, "a code works once");
});

test("options for an address do not go with a client or a transport, nor a code without the login that it is of", async () => {
  for (const [options, text] of /** @type {[any, RegExp][]} */ ([[{ headers: {} }, /`headers` is for the address of a server; a transport brings its own/], [{ authProvider: {} }, /`authProvider` is for the address/]])) {
    const outcome = await mcpTools({ start: async () => {}, send: async () => {}, close: async () => {} }, options).then(() => undefined, (error) => error);
    misused(() => { throw outcome; }, text);
  }
  const outcome = await mcpTools(URL_OF_SERVER, { authorizationCode: "a" }).then(() => undefined, (error) => error);
  misused(() => { throw outcome; }, /`authorizationCode` needs the `authProvider` that began the login/);
  const typed = await mcpTools(URL_OF_SERVER, /** @type {any} */ ({ onElicit: true })).then(() => undefined, (error) => error);
  misused(() => { throw typed; }, /`onElicit` must be a function, "ask" or false, got a boolean/);
});
