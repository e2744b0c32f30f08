// @ts-check
// The demo's folder with a real model in it: SmolLM2-135M, or the weights of `--gguf FILE`, run by llama.cpp in the page. Without
// a request to another origin, and without a network on the second visit.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";
import { servedFolder } from "../demo/made.mjs";
import { MODEL, pythonWith, weightsOf } from "./python.mjs";

const gguf = process.env.GGUF;
const { python, missing } = gguf ? { python: "" } : pythonWith("the-model", MODEL);
const PATIENCE_MS = 4 * 60_000;

/** @type {Awaited<ReturnType<typeof servedFolder>>} */
let site;
/** A profile on disk: a private window's cache has no room for the larger weights. */
const profile = missing ? "" : mkdtempSync(join(tmpdir(), "turnwheel-profile-"));
/** @type {import("playwright-core").BrowserContext | undefined} */
let context;
/** @type {import("playwright-core").Page} */
let page;
const by = (/** @type {string} */ testid) => `[data-testid="${testid}"]`;
/** @type {string[]} */
const elsewhere = [];

before(async () => {
  if (missing) return;
  site = await servedFolder(["--weights", gguf ?? weightsOf(String(python))]);
  const args = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-dev-shm-usage"];
  context = await chromium.launchPersistentContext(profile, { executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args, viewport: { width: 1280, height: 800 } });
  context.on("request", (request) => void (!/^(data|blob):/.test(request.url()) && !request.url().startsWith(site.url) && elsewhere.push(request.url())));
  await open();
});

after(async () => {
  await context?.close();
  await site?.end();
  if (profile) rmSync(profile, { recursive: true, force: true });
});

async function open() {
  page = await /** @type {import("playwright-core").BrowserContext} */ (context).newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  await page.goto(site.url);
  await page.waitForSelector("html[data-ready]");
}

async function load() {
  await page.click(by("choose-model"));
  await page.check(by("row-small"));
  assert.match(await page.innerText(by("leaves")), /nothing/);
  await page.click(by("model-use"));
}

/** Begins a run, and returns what the model says at its end. */
async function ask() {
  if (await page.isVisible(by("reset"))) await page.click(by("reset"));
  await page.click(by("begin"));
  await page.waitForFunction(() => /^Done|^The run ended/.test(document.querySelector('[data-testid="status"]')?.textContent ?? ""));
  return (await page.locator(`${by("lines")} .agent`).last().innerText()).trim();
}

/** Waits until the model of the page is there. */
async function loaded() {
  await page.waitForFunction(() => document.querySelector('[data-testid="model-name"]')?.textContent !== "Scripted clerk" || document.querySelector('[data-testid="loading"]')?.getAttribute("data-state") === "failed");
  assert.notEqual(await page.innerText(by("model-name")), "Scripted clerk", await page.innerText(by("loading-text")));
}

/** @param {import("node:test").TestContext} t @param {string} name */
const shot = async (t, name) => process.env["SHOTS"] && (await page.screenshot({ path: join(process.env["SHOTS"], `${name}.png`) }), t.diagnostic(name));

test("nothing is fetched before somebody chooses it, and the choice says its size", { skip: missing, timeout: PATIENCE_MS }, async () => {
  await page.click(by("choose-model"));
  assert.match(String(await page.textContent('[data-note="small"]')), /\d+ MB/);
  await page.keyboard.press("Escape");
  assert.ok(!site.asked.some((path) => /weights|wllama/.test(path)), "nothing of it was fetched");
});

test("cancelled, nothing changes; then it loads, and a real model answers in the page", { skip: missing, timeout: 2 * PATIENCE_MS }, async (t) => {
  await load();
  await page.click(by("loading-cancel"));
  await page.waitForSelector(by("loading"), { state: "hidden" });
  assert.equal(await page.innerText(by("model-name")), "Scripted clerk");
  const start = performance.now();
  await load();
  await shot(t, "loading");
  await loaded();
  t.diagnostic(`loaded in ${((performance.now() - start) / 1000).toFixed(1)} s`);
  const words = await ask();
  assert.ok(words.length > 10, words);
  assert.match(await page.innerText(by("hint")), /Nothing leaves this page/);
  t.diagnostic(words.slice(0, 80));
  await shot(t, "answered");
});

test("a model that can calls a tool of the page", { skip: missing ?? (gguf ? false : "SmolLM2 talks; `--gguf FILE` names weights that call"), timeout: 2 * PATIENCE_MS }, async (t) => {
  await ask();
  assert.match(await page.innerText(by("lines")), /read_inbox: INV-1001/);
  await shot(t, "called");
});

test("the next visit has page and weights without a network", { skip: missing, timeout: 2 * PATIENCE_MS }, async () => {
  await page.evaluate(async () => {
    await navigator.serviceWorker.ready;
    if (!navigator.serviceWorker.controller) await new Promise((resolve) => navigator.serviceWorker.addEventListener("controllerchange", resolve, { once: true }));
  });
  await page.close();
  await site.stop();
  await open();
  await load();
  await loaded();
  assert.ok((await ask()).length > 0);
});

test("nothing went to another origin", { skip: missing }, () => assert.deepEqual(elsewhere, []));
