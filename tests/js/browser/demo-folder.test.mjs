// @ts-check
// A folder of the demo, as any web host serves it: under a path, without a network on the second visit, and replaced by a newer
// one.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { brotliCompressSync } from "node:zlib";
import { chromium } from "playwright-core";
import { makeFolder, servedFolder } from "../../demo/made.mjs";

/** @type {import("playwright-core").Browser} */
let browser;
before(async () => void (browser = await chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"] })));
after(() => browser?.close());
const by = (/** @type {string} */ testid) => `[data-testid="${testid}"]`;

/** @param {import("playwright-core").BrowserContext} context @param {string} url */
async function open(context, url) {
  const page = await context.newPage();
  await page.goto(url);
  await page.waitForSelector("html[data-ready]");
  return page;
}

/** Waits until the page's worker has kept all of it, and is in charge. @param {import("playwright-core").Page} page */
const keeps = (page) => page.evaluate(async () => {
  await navigator.serviceWorker.ready;
  if (!navigator.serviceWorker.controller) await new Promise((resolve) => navigator.serviceWorker.addEventListener("controllerchange", resolve, { once: true }));
});

/** Lets the agent pay, and says yes. @param {import("playwright-core").Page} page */
async function pay(page) {
  await page.click(by("begin"));
  await page.click(by("yes"));
  await page.waitForSelector('[data-testid="total"][data-state="all"]');
  return page.innerText(by("total"));
}

test("the first visit under a path loads little; the second needs no network", { timeout: 120_000 }, async (t) => {
  const site = await servedFolder();
  t.after(() => site.end());
  const context = await browser.newContext();
  t.after(() => context.close());
  /** @type {Set<string>} */
  const first = new Set();
  // What the page itself asks for; its worker keeps the rest meanwhile.
  context.on("request", (request) => void (!request.serviceWorker() && first.add(request.url())));
  const page = await open(context, site.url);
  const loaded = [...first].filter((url) => url.startsWith(site.url)).map((url) => url.slice(site.url.length).replace(/\?.*/, "") || "index.html");
  const bytes = loaded.reduce((sum, name) => sum + brotliCompressSync(readFileSync(join(site.out, name))).length, 0);
  t.diagnostic(`${loaded.length} files, ${bytes} bytes after brotli`);
  assert.ok(bytes < 60_000, `${bytes} bytes: ${loaded.join(", ")}`);
  assert.ok([...first].every((url) => url.startsWith(site.url)), "nobody else was asked");
  await keeps(page);
  await page.close();
  await site.stop();
  const again = await open(context, site.url);
  assert.match(await pay(again), /3 of 3 paid, each once/);
});

test("a newer folder replaces the older one, its files and what browsers have kept", { timeout: 120_000 }, async (t) => {
  const site = await servedFolder();
  t.after(() => site.end());
  const context = await browser.newContext();
  t.after(() => context.close());
  const page = await open(context, site.url);
  await keeps(page);
  const kept = () => page.evaluate(() => caches.keys().then((names) => names.filter((name) => !/ later /.test(name))));
  const [old] = await kept();
  const sheet = join(site.out, "style.css");
  writeFileSync(join(site.out, "notes.txt"), "of the person");
  // The next version differs in one file, and is made as the first one was.
  const { status, said } = makeFolder(site.out);
  assert.equal(status, 0, said);
  const worker = readFileSync(join(site.out, "sw.js"), "utf8");
  assert.equal((await kept()).length, 1);
  writeFileSync(sheet, `${readFileSync(sheet, "utf8")}\n/* newer */\n`);
  writeFileSync(join(site.out, "sw.js"), worker.replace(/"version":"\w+"/, '"version":"newer"'));
  await page.evaluate(() => navigator.serviceWorker.ready.then((registration) => registration.update()));
  for (let names = await kept(); names.length !== 1 || !names[0]?.endsWith(" newer"); names = await kept());
  assert.ok(!(await kept()).includes(String(old)));
  await page.reload();
  await page.waitForSelector("html[data-ready]");
  assert.match(await page.evaluate(() => fetch("./style.css").then((response) => response.text())), /newer/);
  assert.equal(readFileSync(join(site.out, "notes.txt"), "utf8"), "of the person", "what is not ours stays");
});

test("a folder with other things in it is left alone; bad weights get an error", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "turnwheel-other-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, "thesis.txt"), "years of work");
  const refused = makeFolder(folder);
  assert.equal(refused.status, 1);
  assert.match(refused.said, /has other files in it; give an empty folder/);
  assert.deepEqual(readdirSync(folder), ["thesis.txt"]);
  assert.match(makeFolder(join(folder, "out"), ["--weights", folder]).said, /has no file that ends in \.gguf/);
  assert.match(makeFolder(join(folder, "out2"), ["--weights", join(folder, "none")]).said, /is not there; --weights wants/);
});

test("weights of the folder have their name, size and checksum; those elsewhere their address", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "turnwheel-weights-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, "Tiny-1M-Q4_K_M.gguf"), "GGUF and so on");
  const site = (/** @type {string} */ out) => JSON.parse(readFileSync(join(folder, out, "site.json"), "utf8"));
  assert.equal(makeFolder(join(folder, "a"), ["--weights", folder]).status, 0);
  const { weights } = site("a");
  assert.deepEqual([weights.url, weights.name, weights.bytes, weights.sha256.length], ["./weights/Tiny-1M-Q4_K_M.gguf", "Tiny-1M", 14, 64]);
  assert.equal(makeFolder(join(folder, "b"), ["--weights", "https://models.example/Tiny-1M.gguf"]).status, 0);
  assert.deepEqual(site("b").weights, { url: "https://models.example/Tiny-1M.gguf", name: "Tiny-1M" });
});
