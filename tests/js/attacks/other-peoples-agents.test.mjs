// @ts-check
// `route` of turnwheel/cloudflare: who may use which agent is asked before any object is, and only a yes is one.

import assert from "node:assert/strict";
import { test } from "node:test";
import { route } from "../../../pkg/cloudflare-elsewhere.js";
import { misused } from "../kit.mjs";

/** A namespace that notes which object is asked. */
function namespace() {
  /** @type {string[]} */
  const asked = [];
  return { asked, idFromName: (/** @type {string} */ name) => name, get: (/** @type {string} */ name) => ({ fetch: async () => (asked.push(name), new Response("here")) }) };
}
const ask = (/** @type {string} */ path, init = {}) => new Request(`https://app.example${path}`, init);

test("nobody is let in without a yes, and no object is woken", async (t) => {
  t.mock.method(console, "error", () => {});
  /** @type {any[]} */
  const noes = [() => false, () => undefined, () => null, () => 0, () => 1, () => "yes", () => ({}), () => [], async () => "true", () => Promise.reject(new Error("no")), () => { throw new Error("no"); }];
  for (const authorize of noes) {
    const objects = namespace();
    const response = await route(ask("/agents/ada/state"), objects, { authorize });
    assert.deepEqual([response?.status, objects.asked], [401, []], String(authorize));
  }
  for (const authorize of [null, true, "yes", {}]) misused(() => route(ask("/agents/ada/state"), namespace(), /** @type {any} */ ({ authorize })), /`authorize` must be a function \(request, name\)/);
});

test("the name that is asked about is the one whose object is asked", async () => {
  for (const [path, name] of [["/agents/ada/state", "ada"], ["/agents/%61da/state", "ada"], ["/agents/ada%2F..%2Fbob/state", "ada/../bob"], ["/agents/ada/../bob/state", "bob"], ["/agents/ada%2e/state", "ada."], ["/agents/ada\\..\\bob/x", "bob"], ["/agents/__proto__/state", "__proto__"]]) {
    const objects = namespace();
    /** @type {string[]} */
    const names = [];
    await route(ask(String(path)), objects, { authorize: (_, of) => (names.push(of), true) });
    assert.deepEqual([names, objects.asked], [[name], [name]], path);
  }
});

test("a Response of its own is the answer, and a preflight needs no yes", async () => {
  const objects = namespace();
  assert.equal((await route(ask("/agents/ada/state"), objects, { authorize: () => new Response(null, { status: 302 }) }))?.status, 302);
  assert.deepEqual(objects.asked, []);
  assert.equal((await route(ask("/agents/ada/state", { method: "OPTIONS" }), objects, { authorize: () => false }))?.status, 200);
});
