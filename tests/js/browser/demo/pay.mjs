// @ts-check
// What the tests of the demo do on its page.

import { createServer } from "node:http";
import { after, before } from "node:test";
import { chromium } from "playwright-core";
import { serveDemo } from "../../../demo/site.mjs";

/** A browser and the demo on a server, from before the first test of a file until after its last. */
export function stage() {
  const stage = /** @type {{ browser: import("playwright-core").Browser, site: Awaited<ReturnType<typeof serveDemo>> }} */ ({});
  before(async () => {
    stage.site = await serveDemo();
    stage.browser = await chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"] });
  });
  after(async () => {
    await stage.browser?.close();
    await stage.site?.end();
  });
  return stage;
}

export const by = (/** @type {string} */ testid) => `[data-testid="${testid}"]`;

/** Opens the page, and notes what it complains about. @param {import("playwright-core").BrowserContext} context @param {string} url */
export async function open(context, url) {
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  /** @type {string[]} */
  const complaints = [];
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("console", (message) => void (["error", "warning"].includes(message.type()) && complaints.push(message.text())));
  await page.goto(url);
  await page.waitForSelector("html[data-ready]");
  return { page, complaints };
}

/** Presses a button that harms the run, and waits until the page is there again. @param {import("playwright-core").Page} page @param {string} kill */
export async function press(page, kill) {
  if (kill !== "reload") return page.click(by(`kill-${kill}`));
  const loaded = page.waitForEvent("load");
  await page.click(by("kill-reload"));
  await loaded;
  await page.waitForSelector("html[data-ready]");
}

/** The bank's books, read from its database. @param {import("playwright-core").Page} page @returns {Promise<{ payments: { invoice: string, key: string }[], requests: { invoice: string, key: string }[] }>} */
export const booksOf = (page) => page.evaluate(() => new Promise((resolve, reject) => {
  const opened = indexedDB.open("turnwheel-demo-bank");
  opened.onerror = () => reject(opened.error);
  opened.onsuccess = () => {
    const stores = opened.result.transaction(["payments", "requests"]);
    const [payments, requests] = [stores.objectStore("payments").getAll(), stores.objectStore("requests").getAll()];
    requests.onsuccess = () => {
      opened.result.close();
      resolve({ payments: payments.result, requests: requests.result });
    };
  };
}));

export const CORS = { "access-control-allow-origin": "*", "access-control-allow-headers": "*", "access-control-allow-methods": "*" };

/**
 * A server on loopback for the time of `body`.
 * @param {import("node:http").RequestListener} answer @param {(address: string) => Promise<void>} body
 */
export async function withServer(answer, body) {
  const server = createServer((request, response) => {
    if (request.method === "OPTIONS") return void response.writeHead(204, { ...CORS, "access-control-allow-headers": request.headers["access-control-request-headers"] ?? "*" }).end();
    answer(request, response);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  try {
    await body(`http://127.0.0.1:${port}/v1`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

/** Waits until an element's text fits. @param {import("playwright-core").Page} page @param {string} selector @param {RegExp} words */
export const reads = (page, selector, words) => page.waitForFunction(([selector, source]) => new RegExp(String(source)).test(document.querySelector(String(selector))?.textContent ?? ""), [selector, words.source]);

/** @param {import("playwright-core").Page} page */
export async function reload(page) {
  await page.reload();
  await page.waitForSelector("html[data-ready]");
}
