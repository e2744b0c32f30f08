// @ts-check
// A page whose own name leads to this machine (DNS rebinding) is of the same origin for its browser: only the name in its
// requests tells that they are not for the agent.

import assert from "node:assert/strict";
import { test } from "node:test";
import { agentHandler } from "../../../pkg/server.js";
import { Agent, misused, scripted } from "../kit.mjs";
import { post, send, serve } from "./http.mjs";

const agentOf = () => new Agent({ model: scripted(["hello"]), messages: [{ role: "user", content: [{ type: "text", text: "the secret" }], timestamp: 1 }] });
const EVIL = ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example", "evil-localhost", "localhost.evil", "127.0.0.1evil", "0.0.0.0", "192.168.0.7", "[::2]"];
/** What is no host: it may not become a Request in the first place. */
const BROKEN = ["localhost@evil.example", "evil.example#localhost", "evil.example/localhost", "localhost, evil.example", "lo\u0441alhost", "localhost:99999"];

test("only this machine's own names are answered to, unless others are allowed", async (t) => {
  const agent = agentOf();
  const port = await serve(t, agentHandler(agent));
  for (const host of EVIL) {
    for (const more of [{}, { origin: `http://${host}`, "sec-fetch-site": "same-origin" }]) {
      for (const path of ["/state", "/events"]) {
        const answer = await send(port, path, { headers: { host, ...more } });
        assert.equal(answer.status, 403, host);
        assert.match(answer.text, /allowedHosts/);
        assert.ok(!answer.text.includes("the secret"));
        assert.equal(answer.headers["access-control-allow-origin"], undefined);
      }
      assert.equal((await post(port, "/prompt", { input: "Go" }, { host, ...more })).status, 403);
    }
  }
  for (const host of BROKEN) {
    const status = await send(port, "/state", { headers: { host: Buffer.from(host).toString("latin1") } }).then((answer) => answer.status, () => "gone");
    assert.ok(status === 403 || status === 400 || status === "gone", `${host}: ${status}`);
  }
  assert.equal(agent.messages.length, 1);
  for (const host of [`localhost:${port}`, "LOCALHOST", "localhost.", `127.0.0.1:${port}`, "127.1.2.3", "agent.localhost:1", "[::1]:80"]) {
    assert.equal((await send(port, "/state", { headers: { host } })).status, 200, host);
  }
});

test("a Request that was made by hand is judged by its header, and by its address if it has none", async () => {
  const handler = agentHandler(agentOf());
  const status = async (/** @type {string} */ url, /** @type {any} */ headers = {}) => (await handler(new Request(url, { headers }))).status;
  assert.deepEqual(await Promise.all([status("http://evil.example/state"), status("http://localhost/state", { host: "evil.example" }), status("http://localhost/state", { host: "" }), status("http://localhost/state", { "x-forwarded-host": "localhost", host: "evil.example" })]), [403, 403, 403, 403]);
  assert.deepEqual(await Promise.all([status("http://localhost/state"), status("http://127.1/state"), status("http://2130706433/state"), status("http://[::ffff:127.0.0.1]/state")]), [200, 200, 200, 200]);
});

test("the names of `allowedHosts` are answered to, and no others; with `authorize` alone, all are", async () => {
  const ask = async (/** @type {any} */ options, /** @type {string} */ host) => (await agentHandler(agentOf(), options)(new Request("http://localhost/state", { headers: { host } }))).status;
  const allowedHosts = ["App.example", "other.example:8443", "[::1]"];
  for (const host of ["app.example", "app.example:99", "APP.EXAMPLE.", "other.example:8443", "[::1]:5"]) assert.equal(await ask({ allowedHosts }, host), 200, host);
  for (const authorize of [undefined, () => true]) {
    for (const host of ["evil.example", "other.example", "other.example:80", "sub.app.example", "app.example.evil.example", "localhost"]) assert.equal(await ask({ allowedHosts, authorize }, host), 403, host);
  }
  assert.equal(await ask({ allowedHosts: true }, "any.example"), 200);
  assert.equal(await ask({ authorize: () => true }, "any.example"), 200);
  assert.equal(await ask({ allowedHosts: [] }, "localhost"), 403);
  misused(() => agentHandler(agentOf(), { allowedHosts: /** @type {any} */ ("app.example") }), /`allowedHosts` must be true or a list/);
  misused(() => agentHandler(agentOf(), { allowedHosts: ["https://app.example"] }), /holds names such as "app.example"/);
  misused(() => agentHandler(agentOf(), { allowedHosts: /** @type {any} */ (null) }), /must be true or a list/);
});
