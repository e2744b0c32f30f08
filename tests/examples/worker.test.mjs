// @ts-check
// The Worker that streams to a page: built as Wrangler does, run in workerd, its page opened in Chromium,
// with our own model server.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, test } from "node:test";
import { build } from "esbuild";
import { Miniflare } from "miniflare";
import { chromium } from "playwright-core";
import { calls, serve, textAnswer } from "../js/server.mjs";
import { clean, install } from "./kit.mjs";

after(clean);
const folder = await install("worker");
const { outputFiles } = await build({ entryPoints: [join(folder, "worker.js")], bundle: true, write: false, format: "esm", conditions: ["workerd", "worker"], external: ["*.wasm"], loader: { ".html": "text" }, logLevel: "silent" });
const script = outputFiles[0]?.text ?? "";
const wasm = /from "([^"]+\.wasm)"/.exec(script)?.[1] ?? "";

/** The Worker at an address, its model at this server. @param {any} t @param {any} answers */
async function deploy(t, answers) {
  const server = await serve(t, answers);
  const worker = new Miniflare({
    cf: false, compatibilityDate: "2026-07-01", port: 0, bindings: { OPENAI_API_KEY: "sk-of-the-worker", BASE_URL: server.baseUrl },
    modules: [
      { type: "ESModule", path: "worker.js", contents: script.replace(wasm, "./turnwheel.wasm") },
      { type: "CompiledWasm", path: "turnwheel.wasm", contents: await readFile(join(folder, "node_modules/turnwheel/turnwheel.wasm")) },
    ],
  });
  t.after(() => worker.dispose());
  return { server, address: String(await worker.ready) };
}

test("the page shows what comes, stops what it wants no more, and goes on", { timeout: 90_000 }, async (t) => {
  const piece = textAnswer(["on ", "and "]).split("\n\n")[0] + "\n\n";
  const { server, address } = await deploy(t, [
    calls(["clock", '{"zone":"Europe/Oslo"}']),
    textAnswer(["It is ", "noon."]),
    { body: piece, again: piece },
    textAnswer("As you like."),
  ]);
  const browser = await chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"] });
  t.after(() => browser.close());
  const page = await browser.newPage();
  const send = async (/** @type {string} */ words) => (await page.fill("#text", words), page.press("#text", "Enter"));
  const idle = () => page.waitForFunction(() => document.querySelector("#stop")?.matches(":disabled"));
  const said = (/** @type {string} */ kind) => page.locator(`#log .${kind}`).allTextContents();
  await page.goto(address);

  await send("What time is it in Oslo?");
  await idle();
  assert.deepEqual(await said("assistant"), ["It is noon."]);
  assert.match((await said("note"))[0] ?? "", /^clock: .*\d\d:\d\d/);
  assert.equal(server.requests[0]?.headers.authorization, "Bearer sk-of-the-worker");

  await send("Tell me a story.");
  await page.waitForFunction(() => document.querySelector("#log .assistant:last-child")?.textContent?.startsWith("on on on "));
  await page.click("#stop");
  await idle();
  // workerd only notices that the page has left when it writes the next piece.
  assert.equal(await server.requests[2]?.closed, "left", "the call of the model is given up");

  await send("Thanks.");
  await idle();
  assert.equal((await said("assistant")).at(-1), "As you like.");
  assert.deepEqual(server.requests[3]?.body.messages.map((/** @type {any} */ message) => message.role), ["system", "user", "assistant", "tool", "assistant", "user"]);
});

test("what is no conversation is refused with the reason, other paths are not there", { timeout: 60_000 }, async (t) => {
  const { address } = await deploy(t, []);
  const post = (/** @type {string} */ body) => fetch(new URL("/chat", address), { method: "POST", body });
  for (const [body, text] of /** @type {const} */ ([["no JSON", /JSON/], ["{}", /input must be a text/], ['{"prompt":"Hi","messages":[{"role":"system"}]}', /must be a message with a role/]])) {
    const response = await post(body);
    assert.equal(response.status, 400, body);
    assert.match(await response.text(), text);
  }
  assert.equal((await fetch(new URL("/chat", address))).status, 404);
  const send = (/** @type {any} */ init) => fetch(new URL("/chat", address), { method: "POST", duplex: "half", ...init });
  for (const site of ["cross-site", "same-site", "none"]) assert.equal((await send({ body: "{}", headers: { "sec-fetch-site": site } })).status, 403, site);
  assert.equal((await send({ body: "x".repeat(1_000_001) })).status, 413);
  assert.equal((await send({ body: new Blob(["{}"]).stream() })).status, 413, "one whose length nobody says");
});
