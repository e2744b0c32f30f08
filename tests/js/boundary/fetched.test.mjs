// @ts-check
// Where a page looks for its wasm files, and what it says when they are not there: why, and what to do.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fetched } from "../../../pkg/core.js";

const EMPTY = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]);

/** What is asked for at a server that has some files and a page for everything else. @param {import("node:test").TestContext} t @param {(url: string) => any} [serve] */
function asked(t, serve = () => undefined) {
  /** @type {string[]} */
  const urls = [];
  t.mock.method(globalThis, "fetch", async (/** @type {string} */ url) => {
    urls.push(url);
    const given = serve(url) ?? new Response("<html>", { headers: { "content-type": "text/html" } });
    return Object.defineProperty(given, "url", { value: url });
  });
  return urls;
}

test("a dev server of Vite that keeps its bundles in another folder: the file is where the package is", async (t) => {
  const at = { "http://h:5173/node_modules/.vite/deps/a.wasm": "http://h:5173/node_modules/turnwheel/a.wasm", "http://h/.cache/vite/deps/a.wasm": "http://h/node_modules/turnwheel/a.wasm", "http://h/.vite/deps/a.wasm": "http://h/node_modules/turnwheel/a.wasm",
    "http://h/_nuxt/node_modules/.cache/vite/client/deps/a.wasm": "http://h/_nuxt/node_modules/turnwheel/a.wasm", "http://h/@fs/x/node_modules/.cache/sb-vite/deps/a.wasm": "http://h/@fs/x/node_modules/turnwheel/a.wasm" };
  const urls = asked(t, (url) => (Object.values(at).includes(url) ? new Response(EMPTY, { headers: { "content-type": "application/wasm" } }) : undefined));
  for (const [from, to] of Object.entries(at)) {
    assert.ok((await fetched(from)) instanceof WebAssembly.Module);
    assert.deepEqual(urls.splice(0), [from, to]);
  }
});

test("what is missing is named, with the reason and the way out", async (t) => {
  asked(t);
  await assert.rejects(fetched("http://h/assets/a.wasm"), /^Error: a\.wasm is not at http:\/\/h\/assets\/a\.wasm; copy it there; or import `turnwheel\/inline`$/);
});

test("a policy that forbids the request: its reason is in the message, and an address of data is never shown whole", async (t) => {
  t.mock.method(globalThis, "fetch", async () => Promise.reject(new TypeError("Failed to fetch")));
  for (const address of ["http://h/a.wasm", `data:application/wasm;base64,${"A".repeat(4000)}`]) {
    const error = await fetched(address).then(() => undefined, (thrown) => thrown);
    assert.match(error.message, /cannot be fetched from .*: Failed to fetch\. Does `connect-src` of the page allow it\?; or import `turnwheel\/inline`/);
    assert.ok(error.message.length < 600, error.message);
    assert.ok(error.cause instanceof TypeError);
  }
});

test("an error says that a file was cut", async (t) => {
  asked(t, () => new Response(EMPTY.subarray(0, 6), { headers: { "content-type": "application/wasm" } }));
  await assert.rejects(fetched("http://h/a.wasm"), /a\.wasm from http:\/\/h\/a\.wasm is not whole, or cannot be compiled: .*turnwheel\/inline/);
});
