// @ts-check
// A server that is off: `onError` is called after the first failed try, once, until the server is reached again.

import assert from "node:assert/strict";
import { test } from "node:test";
import { RemoteAgent } from "../../../pkg/remote.js";
import { agentHandler } from "../../../pkg/server.js";
import { Agent, scripted } from "../kit.mjs";

const AT = "http://agent.localhost/7";

test("the first try that fails is told, once, and again when the server is off again", async () => {
  const handler = agentHandler(new Agent({ model: scripted(["one", "two"]) }));
  /** @type {string[]} */
  const heard = [];
  let isOff = true;
  let tries = 0;
  const remote = new RemoteAgent({
    url: AT,
    onError: (error) => void heard.push(/** @type {any} */ (error).message),
    host: { sleep: async (ms) => { if (ms < 10_000 && ++tries === 4) isOff = false; await new Promise((go) => setTimeout(go, ms < 10_000 ? 1 : 2_000)); } },
    fetch: async (url, init) => {
      if (isOff) throw new TypeError("fetch failed", { cause: new Error("connect ECONNREFUSED 127.0.0.1:9") });
      return handler(new Request(/** @type {any} */ (url), /** @type {any} */ (init)));
    },
  });
  assert.equal((await remote.prompt("Go")).text, "one");
  assert.equal(heard.length, 1, heard.join("\n"));
  assert.match(heard[0] ?? "", /fetch failed \(connect ECONNREFUSED 127\.0\.0\.1:9\); it is tried again/);
  [isOff, tries] = [true, 0];
  assert.equal((await remote.prompt("Go")).text, "two");
  assert.ok(heard.length >= 2, "and when it is off again");
  remote[Symbol.dispose ?? Symbol.for("Symbol.dispose")]();
});

test("a mistake in `fetch` or `headers` is reported at once, and not as a server that is off", async () => {
  for (const more of [{ fetch: async () => Promise.reject(new TypeError("Cannot read properties of undefined (reading 'x')")) }, { fetch: async () => new Response("{}"), headers: () => { throw new ReferenceError("token is not defined"); } }]) {
    const remote = new RemoteAgent(/** @type {any} */ ({ url: "http://agents.localhost/7", ...more }));
    const { error } = await remote.prompt("Go").result;
    assert.equal(error?.code, "misuse");
    assert.match(String(error?.message), /`fetch` or `headers` failed, (Cannot read|token is not)/);
    remote[Symbol.dispose]();
  }
});
