// @ts-check
// An agent that the requests of a plain Worker share: each of them is answered, with the reason, and none hangs.

import assert from "node:assert/strict";
import { test } from "node:test";
import { RemoteAgent } from "../../../pkg/remote.js";
import { start } from "../durable/bundle.mjs";

const quiet = (/** @type {any} */ out, /** @type {any} */ errors) => void (out.resume(), errors.resume());
/** How the Worker makes its handler: where it begins, at its first request, or anew for each. */
const kinds = ["global", "lazy"];

for (const kind of kinds) {
  test(`a handler made ${kind === "global" ? "where the Worker begins" : "at its first request"} says that it cannot be shared`, { timeout: 60_000 }, async () => {
    const server = await start("plain.mjs", { durableObjects: { CHAT: { className: "Chat", useSQLite: true } }, handleRuntimeStdio: quiet });
    const fetch = (/** @type {any} */ url, /** @type {any} */ { headers, body, method, signal }) => server.dispatchFetch(String(url), { headers: Object.fromEntries(headers), body, method, signal });
    try {
      const remote = new RemoteAgent({ url: `http://worker.example/${kind}`, fetch: /** @type {any} */ (fetch), onError() {} });
      const { stopReason, error } = await remote.prompt("Go");
      assert.deepEqual([stopReason, error?.code], ["error", "misuse"]);
      assert.match(error?.message ?? "", /plain Worker.*Durable Object/);
      remote[Symbol.dispose]();
      const state = await server.dispatchFetch(`http://worker.example/${kind}/state`);
      assert.equal(state.status, 501);
    } finally {
      await server.dispose();
    }
  });
}

test("in a Durable Object it is shared", { timeout: 60_000 }, async () => {
  const server = await start("plain.mjs", { durableObjects: { CHAT: { className: "Chat", useSQLite: true } }, handleRuntimeStdio: quiet });
  const fetch = (/** @type {any} */ url, /** @type {any} */ { headers, body, method, signal }) => server.dispatchFetch(String(url), { headers: Object.fromEntries(headers), body, method, signal });
  try {
    const remote = new RemoteAgent({ url: "http://worker.example/object", fetch: /** @type {any} */ (fetch), onError() {} });
    assert.equal((await remote.prompt("Go")).text, "done");
    remote[Symbol.dispose]();
  } finally {
    await server.dispose();
  }
});
