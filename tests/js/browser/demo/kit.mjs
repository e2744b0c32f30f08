// @ts-check
// The browser, the checks and what they all do on the page.

import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { chromium } from "playwright-core";

export const [baseUrl, place = "page", folder] = process.argv.slice(2);
export const inWorker = place === "worker";
if (!baseUrl) {
  console.error("Usage: node demo.mjs BASE_URL page|worker [FOLDER_FOR_SCREENSHOTS]");
  process.exit(1);
}
if (folder) await mkdir(folder, { recursive: true });

/** @type {string} */
const axeSource = createRequire(import.meta.url)("axe-core").source;
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const browser = await chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: FLAGS });

/** @typedef {import("playwright-core").Page} Page */

export const TWO_PARTS = "What is 17*23, and what time is it in Oslo?";
export const SLOW = "Count the primes below 5 million";
let passed = 0;
let failed = 0;

/**
 * One check on a fresh page. Whatever the page complains about in its console fails it too. With `hold` the tools run so many
 * times longer: what must be done while they run has the time that a slow machine needs.
 *
 * @param {string} name
 * @param {(page: Page, complaints: string[]) => Promise<void>} body
 * @param {import("playwright-core").BrowserContextOptions & { hold?: number }} [options]
 */
export async function check(name, body, { hold = 1, ...options } = {}) {
  if (!name.includes(process.env["ONLY"] ?? "")) return;
  const startedAt = performance.now();
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  /** @type {string[]} */
  const complaints = [];
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("console", (message) => {
    // What Chromium says when it is asked for a model that it does not have.
    if (/Unable to create a text session/.test(message.text())) return;
    if (message.type() === "error" || message.type() === "warning") complaints.push(message.text());
  });
  try {
    await page.goto(`${baseUrl}?hold=${hold}`);
    await page.waitForSelector("html[data-ready]");
    if (inWorker) await page.check(by("place-worker"));
    await body(page, complaints);
    assert.deepEqual(complaints, [], "the page complains in its console");
    passed += 1;
    console.log(`ok      ${name} (${((performance.now() - startedAt) / 1000).toFixed(1)} s)`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED  ${name}\n        ${String(error instanceof Error ? error.stack : error).replaceAll("\n", "\n        ")}`);
    await shot(page, `failed-${failed}`);
  } finally {
    await context.close();
  }
}

/**
 * A check of something that is the same wherever the loop runs, so it only runs for the page.
 * @type {typeof check}
 */
export const checkPage = async (...given) => (inWorker ? undefined : check(...given));

/** @param {Page} page @param {string} name */
export async function shot(page, name) {
  if (folder) await page.screenshot({ path: join(folder, `${place}-${name}.png`) });
}

/** What the timeline shows, asked of the inspector. @param {Page} page @param {string} code */
export const ofInspector = (page, code) => page.evaluate(`((log) => ${code})(document.querySelector("#inspector").log)`);
export const marks = (/** @type {Page} */ page, /** @type {string} */ kind) => ofInspector(page, `log.lanes.marks.filter((mark) => mark.kind === "${kind}").length`);
export const inspected = (/** @type {string} */ selector) => `#inspector ${selector}`;

export const by = (/** @type {string} */ testid) => `[data-testid="${testid}"]`;
export const card = (/** @type {string} */ tool, /** @type {string} */ state) => `${by("tool-card")}[data-tool="${tool}"][data-state="${state}"]`;

/** @param {Page} page @param {string} text */
export async function send(page, text) {
  await page.fill(by("box"), text);
  await page.press(by("box"), "Enter");
}

/** @param {Page} page */
export async function idle(page) {
  await page.waitForSelector('[data-testid="composer"][data-mode="idle"]');
  await page.waitForSelector(by("run-end"));
  await drawn(page);
}

/** Waits until what has happened is drawn, in the next frame. @param {Page} page */
export async function drawn(page) {
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
}

/**
 * Returns what the page has stored for its next life, once this is in it.
 * @param {Page} page @param {string} wanted @returns {Promise<string>}
 */
export async function stored(page, wanted) {
  for (const end = Date.now() + 60_000; ; ) {
    const found = await page.evaluate(() => new Promise((resolve) => {
      const opened = indexedDB.open("turnwheel-demo");
      opened.onsuccess = () => {
        const all = opened.result.transaction("checkpoints").objectStore("checkpoints").getAll();
        all.onsuccess = () => (opened.result.close(), resolve(JSON.stringify(all.result)));
      };
    }));
    if (String(found).includes(wanted)) return String(found);
    assert.ok(Date.now() < end, `${wanted} is not stored: ${found}`);
  }
}

/** @param {Page} page */
export async function full(page) {
  await page.uncheck(by("hold"));
}

/** @param {Page} page */
export async function answer(page) {
  await drawn(page);
  return (await page.locator(by("answer")).last().innerText()).trim();
}

/** @param {Page} page */
export async function noSidewaysScroll(page) {
  const wide = await page.evaluate(() => ({ scroll: document.documentElement.scrollWidth, body: document.body.scrollWidth, window: innerWidth }));
  assert.ok(wide.scroll <= wide.window && wide.body <= wide.window, `the page is ${Math.max(wide.scroll, wide.body)} px wide in a window of ${wide.window}`);
  const outside = await page.evaluate(() => [...document.querySelectorAll("main *, header *")]
    .filter((element) => element instanceof HTMLElement && element.offsetParent && !element.closest(".suggestions, .hidden, .skip, pre, .table") && element.getBoundingClientRect().right > innerWidth + 1)
    .map((element) => element.className || element.tagName));
  assert.deepEqual(outside, [], "elements stand outside the window");
}

/** Checks that the placeholder of the empty box fits into it. @param {Page} page */
export async function wholePlaceholder(page) {
  const { text, room } = await page.locator(by("box")).evaluate((element) => {
    const box = /** @type {HTMLTextAreaElement} */ (element);
    const { font, paddingLeft, paddingRight } = getComputedStyle(box);
    const canvas = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));
    canvas.font = font;
    return { text: canvas.measureText(box.placeholder).width, room: box.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight) };
  });
  assert.ok(text <= room, `the placeholder is ${text} px wide, the box ${room}`);
}

/** @param {Page} page */
export async function accessible(page) {
  if (!(await page.evaluate(() => "axe" in globalThis))) {
    await page.evaluate((source) => {
      // The page's own policy would refuse a script tag, but not the protocol's evaluation.
      (0, eval)(source);
    }, axeSource);
  }
  const findings = await page.evaluate(async () => {
    const { violations } = await /** @type {any} */ (globalThis)["axe"].run(document, { resultTypes: ["violations"] });
    return violations.map((/** @type {any} */ { id, impact, nodes }) => ({ id, impact, where: nodes.map((/** @type {any} */ node) => `${node.target.join(" ")}: ${node.failureSummary}`) }));
  });
  assert.deepEqual(findings.filter((/** @type {any} */ { impact }) => impact === "serious" || impact === "critical"), []);
}

/**
 * A server on loopback for the time of `body`.
 *
 * @param {import("node:http").RequestListener} answer
 * @param {(address: string) => Promise<void>} body
 */
export async function withServer(answer, body) {
  const server = createServer(answer);
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  try {
    await body(`http://127.0.0.1:${port}/v1`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

export const CORS = { "access-control-allow-origin": "*", "access-control-allow-headers": "*", "access-control-allow-methods": "*" };

/** @param {Page} page @param {{ address: string, model?: string, key?: string, remember?: boolean }} choice */
export async function choose(page, { address, model = "some-model", key, remember = false }) {
  await page.click(by("choose-model"));
  await page.check(by("row-own"));
  await page.fill(by("base-url"), address);
  await page.fill(by("model-id"), model);
  if (key) await page.fill(by("api-key"), key);
  if (remember) await page.check(by("remember"));
  await page.click(by("model-use"));
  await page.waitForSelector(by("model-dialog"), { state: "hidden" });
}

/** Another tab of the same browser. @param {Page} page */
export async function secondTab(page) {
  const other = await page.context().newPage();
  other.setDefaultTimeout(60_000);
  await other.goto(page.url());
  await other.waitForSelector("html[data-ready]");
  return other;
}

/** @param {Page} page */
export async function reload(page) {
  await page.reload();
  await page.waitForSelector("html[data-ready]");
}

/**
 * Clears the complaints: what the browser itself logs about failed requests is not the page's fault.
 * @param {string[]} complaints
 */
export function forgive(complaints) {
  complaints.length = 0;
}

/** Says how many checks passed. */
export async function end() {
  await browser.close();
  console.log(`${place}: ${passed} passed, ${failed} failed`);
  process.exitCode = failed === 0 ? 0 : 1;
}
