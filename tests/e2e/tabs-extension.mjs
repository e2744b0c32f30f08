// @ts-check
// Pages of a browser extension that share an agent in the extension's own storage, in Chromium: one takes over from another, and a
// page that is opened later finds what was said.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, copyFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { chromium } from "playwright-core";

const PKG = fileURLToPath(new URL("../../pkg/", import.meta.url));
const PAGE = `
  import { scripted } from "./entry/web.js";
  import { extensionStore } from "./stores.js";
  import { openAgent, shared } from "./tabs.js";
  const words = (count) => Array.from({ length: count }, (_, i) => "word" + i).join(" ");
  globalThis.agent = await shared("notes", (lease) => openAgent(lease, { model: scripted([...Array(5)].map(() => words(5)), { delayMs: 20 }) }), { store: extensionStore(chrome.storage.local) });
  await agent.ready();
  document.documentElement.dataset.ready = "";
`;

/** An extension with this page. @param {string} folder */
async function makeExtension(folder) {
  const entry = { name: "entry", setup: (/** @type {any} */ made) => made.onResolve({ filter: /entry\/node\.js$/ }, () => ({ path: join(PKG, "entry/web.js") })) };
  await build({ stdin: { contents: PAGE, resolveDir: PKG }, bundle: true, format: "esm", outfile: join(folder, "page.js"), logLevel: "silent", external: ["*.wasm"], plugins: [entry] });
  for (const name of readdirSync(PKG)) if (name.endsWith(".wasm")) copyFileSync(join(PKG, name), join(folder, name));
  writeFileSync(join(folder, "page.html"), '<!doctype html><title>page</title><script type="module" src="page.js"></script>');
  writeFileSync(join(folder, "manifest.json"), JSON.stringify({ manifest_version: 3, name: "notes", version: "1", permissions: ["storage"], content_security_policy: { extension_pages: "script-src 'self' 'wasm-unsafe-eval'; object-src 'self'" } }));
  // As Chromium names one that is in a folder.
  const id = createHash("sha256").update(folder).digest("hex").slice(0, 32).replace(/./g, (digit) => String.fromCharCode(97 + parseInt(digit, 16)));
  return `chrome-extension://${id}/page.html`;
}

test("pages of an extension share an agent in its storage", { timeout: 120_000 }, async (t) => {
  const [folder, profile] = [mkdtempSync(join(tmpdir(), "turnwheel-extension-")), mkdtempSync(join(tmpdir(), "turnwheel-profile-"))];
  const address = await makeExtension(folder);
  const context = await chromium.launchPersistentContext(profile, { executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: ["--no-sandbox", "--headless=new", `--disable-extensions-except=${folder}`, `--load-extension=${folder}`], ignoreDefaultArgs: ["--disable-extensions"] });
  t.after(async () => {
    await context.close();
    for (const each of [folder, profile]) rmSync(each, { recursive: true, force: true });
  });
  const open = async () => {
    const page = await context.newPage();
    await page.goto(address);
    await page.waitForSelector("html[data-ready]");
    return page;
  };
  const state = (/** @type {import("playwright-core").Page} */ page) => page.evaluate("[agent.role, agent.messages.length]");
  const [one, two] = [await open(), await open()];
  assert.deepEqual([await state(one), await state(two)], [["owner", 0], ["follower", 0]]);
  assert.equal(await two.evaluate('agent.prompt("Go").then(({ text }) => text)'), "word0 word1 word2 word3 word4");
  // In the middle of an answer.
  await two.evaluate('void (globalThis.run = agent.prompt("Again"))');
  await two.evaluate("new Promise((resolve) => agent.subscribe((event) => event.type === 'message_update' && resolve()))");
  await one.close();
  assert.equal(await two.evaluate("run.then(({ stopReason }) => stopReason)"), "completed");
  assert.deepEqual(await state(two), ["owner", 4]);
  await two.close();
  assert.deepEqual(await state(await open()), ["owner", 4]);
});
