// @ts-check
// A server that redirects: neither the headers of a RemoteAgent nor a prompt go to another origin.

import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { RemoteAgent } from "../../../pkg/remote.js";
import { agentHandler } from "../../../pkg/server.js";
import { Agent, misused, scripted } from "../kit.mjs";
import { listen, serve } from "./http.mjs";

const SECRET = "Bearer of-everything-0123456789";

/** A server of somebody else, and what it was sent. @param {any} t */
async function evil(t) {
  /** @type {any[]} */
  const received = [];
  const port = await listen(t, (request, response) => {
    let body = "";
    request.on("data", (piece) => (body += piece)).on("end", () => received.push({ url: request.url, headers: request.headers, body }));
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write("data: {}\n\n");
  });
  return { port, received };
}

for (const status of [301, 302, 303, 307, 308]) {
  for (const target of ["events", "prompt"]) {
    test(`${status} of ${target} to another origin ends the run, which names it, and nothing is sent there`, async (t) => {
      const { port: there, received } = await evil(t);
      const handler = agentHandler(new Agent({ model: scripted(["hello"]) }));
      let asked = 0;
      const inner = await serve(t, async (request) => {
        asked += 1;
        if (!new URL(request.url).pathname.endsWith(target)) return handler(request);
        return new Response(null, { status, headers: { location: `http://localhost:${there}/taken?secret=in-path` } });
      });
      const remote = new RemoteAgent({ url: `http://127.0.0.1:${inner}/agent`, headers: { authorization: SECRET, "x-tenant": "tenant-of-mine" }, onError() {} });
      const { stopReason, error } = await remote.prompt("my private prompt");
      assert.deepEqual([stopReason, error?.info.retryable], ["error", false]);
      assert.match(error?.message ?? "", new RegExp(`redirect \\(${status}\\) to http://localhost:${there},`));
      assert.ok(!inspect(error, { depth: 10 }).includes("in-path"));
      remote[Symbol.dispose]();
      assert.deepEqual(received, []);
      assert.ok(asked < 10, `${asked} requests`);
    });
  }
}

test("within its origin a redirect that keeps the command is followed, one that loses it is not, and none without end", async (t) => {
  const handler = agentHandler(new Agent({ model: scripted(["hello", "hello"]) }));
  let status = 307;
  let hops = 0;
  const port = await serve(t, async (request) => {
    const { pathname, search } = new URL(request.url);
    if (pathname.startsWith("/new/")) return handler(request);
    hops += 1;
    return new Response(null, { status, headers: { location: pathname.startsWith("/loop/") ? pathname : `${pathname.replace("/old/", "/new/")}${search}` } });
  });
  const ask = async (/** @type {string} */ path) => {
    const remote = new RemoteAgent({ url: `http://127.0.0.1:${port}/${path}`, onError() {} });
    const result = await remote.prompt("Go");
    remote[Symbol.dispose]();
    return result;
  };
  assert.equal((await ask("old")).text, "hello");
  status = 302;
  assert.match((await ask("old")).error?.message ?? "", /redirect \(302\)/);
  status = 307;
  hops = 0;
  assert.match((await ask("loop")).error?.message ?? "", /redirect/);
  assert.ok(hops < 20, `${hops} hops`);
});

test("where the host hides what a redirect says, or follows it unasked, it is an error all the same", async () => {
  const hidden = Object.defineProperties(new Response(null), { type: { value: "opaqueredirect" }, status: { value: 0 }, ok: { value: false } });
  const followed = Object.defineProperties(new Response("data: {}\n\n", { headers: { "content-type": "text/event-stream" } }), { redirected: { value: true }, url: { value: "https://evil.example/x" } });
  const broken = [new Response(null, { status: 302 }), new Response(null, { status: 302, headers: { location: "http://" } }), new Response(null, { status: 308, headers: { location: "//evil.example" } }), new Response(null, { status: 307, headers: { location: "http://agents.example:81/x" } }), new Response(null, { status: 307, headers: { location: "https://agents.example/x" } })];
  for (const response of [hidden, followed, ...broken]) {
    let asked = 0;
    const remote = new RemoteAgent({ url: "http://agents.example/7", headers: { authorization: SECRET }, fetch: async () => (asked++, response), onError() {} });
    const { error } = await remote.prompt("Go");
    assert.match(error?.message ?? "", /answered with a redirect/);
    assert.equal(asked, 1);
    remote[Symbol.dispose]();
  }
});

test("no error and no look at the agent shows the headers", async () => {
  const key = SECRET.slice("Bearer ".length);
  const forms = [key, encodeURIComponent(SECRET), btoa(key).replace(/=+$/, ""), key.toUpperCase()];
  /** @type {any[]} */
  const fetches = [
    async (/** @type {any} */ _, /** @type {any} */ init) => { throw Object.assign(new Error("failed"), { init, sent: [...init.headers] }); },
    async () => { throw new Error(`who is ${SECRET}?`); },
    async () => new Response(JSON.stringify({ error: { code: "auth", message: `bad key ${forms.join(" ")}` } }), { status: 401 }),
    async () => new Response(forms.join(" "), { status: 500, headers: { "retry-after": "0" } }),
  ];
  for (const fetch of fetches) {
    /** @type {any[]} */
    const seen = [];
    const remote = new RemoteAgent({ url: "http://agents.example/7", headers: () => ({ authorization: SECRET }), fetch, host: { sleep: async () => {} }, onError: (error) => void seen.push(error) });
    const run = remote.prompt("Go");
    seen.push(remote, run, await run, await remote.abort().catch((error) => error));
    const shown = `${inspect(seen, { depth: 20, showHidden: true, getters: true })}${JSON.stringify(seen)}${seen.map((one) => one?.error?.stack ?? one?.stack)}`;
    for (const form of forms) assert.ok(!shown.includes(form), form);
  }
  const broken = new RemoteAgent({ url: "http://agents.example/7", headers: { authorization: `${SECRET}\n${SECRET}` }, onError() {} });
  const { error } = await broken.prompt("Go");
  assert.match(error?.message ?? "", /a header of `headers` cannot be sent/);
  assert.ok(!inspect(error, { depth: 20 }).includes(key));
  for (const url of [`https://me:${key}@agents.example/7`, `https://${key}@agents.example/7`, `https://agents.example/7?key=${key}`]) {
    assert.throws(() => new RemoteAgent({ url }), (/** @type {any} */ thrown) => thrown.code === "misuse" && !inspect(thrown).includes(key));
  }
  misused(() => new RemoteAgent({ url: "https://me:word@agents.example/7" }), /send them in `headers`/);
});
