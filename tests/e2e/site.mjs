// @ts-check
// The site as `cargo xtask site` makes it, under a path of a web host, as its readers use it: each block with "Run" prints what its
// page says in Chromium, after the first visit without a network; a sample of them in Firefox and in WebKit.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";
import { firefoxTab, until, webkitTab } from "../js/browser/tabs.mjs";
import { servedSite } from "../js/docs/site.mjs";
import { fits } from "../js/docs/program.mjs";
import { PAGES, addressOf } from "../../www/site/pages.mjs";
import { programsAt } from "../../www/site/programs.mjs";
import { programs } from "./programs.mjs";

const PATIENCE_MS = 240_000;
/** The pages in which other browsers run every block. */
const SAMPLE = ["README.md", "docs/concepts.md", "docs/tools.md", "docs/tape.md", "docs/tabs.md"];

/** The pages with a button, each with its programs. */
const pages = PAGES.filter((page) => page !== "sizes.md").map((page) => ({ page, runs: [...programsAt(page).values()].filter(({ missing }) => missing === undefined) })).filter(({ runs }) => runs.length > 0);

/** In a page: presses a button, and waits for the end of its program. @param {string} name */
const pressed = (name) => `(async () => {
  const button = document.querySelector('button[data-program="${name}"]');
  const output = button.nextElementSibling;
  button.click();
  while (output.dataset.state === "running") await new Promise((resolve) => setTimeout(resolve, 10));
  return { state: output.dataset.state, text: output.textContent, lines: [...output.querySelectorAll(".log")].map((line) => line.textContent).join("").split("\\n").slice(0, -1) };
})()`;

/** @param {{ name: string, prints: string[] }} program @param {{ state: string, text: string, lines: string[] }} shown */
function check({ name, prints }, { state, text, lines }) {
  assert.equal(state, "done", `${name}: ${text}`);
  if (prints.length > 0) assert.deepEqual(lines.map((line, i) => (fits(prints[i] ?? "", line) ? prints[i] : line.trimEnd())), prints, name);
}

/** @type {Awaited<ReturnType<typeof servedSite>>} */
let site;
before(async () => void (site = await servedSite()));
after(() => site?.end());

for (const [name, wanted, launch] of /** @type {[string, Record<string, string>, (found: any) => Promise<import("../js/browser/tabs.mjs").Tab>][]} */ ([
  ["Firefox", { "firefox-esr": "firefox-esr" }, (found) => firefoxTab(found["firefox-esr"])],
  ["WebKit", { WebKitWebDriver: "webkit2gtk-driver", Xvfb: "xvfb" }, (found) => webkitTab({ driver: found.WebKitWebDriver, xvfb: found.Xvfb })],
])) {
  const { found, missing } = await programs(wanted);
  test(`${name} runs the blocks of ${SAMPLE.length} pages`, { skip: missing, timeout: PATIENCE_MS }, async (t) => {
    const tab = await launch(found);
    try {
      for (const { page, runs } of pages.filter(({ page }) => SAMPLE.includes(page))) {
        await t.test(page, async () => {
          await tab.open(site.url + addressOf(page));
          await until(tab, "document.querySelector('button.run').onclick !== null");
          for (const program of runs) check(program, await tab.run(pressed(program.name)));
        });
      }
    } finally {
      await tab.close();
    }
  });
}

test("Chromium runs every block, and after the first visit without a network", { timeout: 2 * PATIENCE_MS }, async (t) => {
  const browser = await chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"] });
  t.after(() => browser.close());
  const context = await browser.newContext();
  /** @type {string[]} */
  const elsewhere = [];
  context.on("request", (request) => void (!/^(data|blob):/.test(request.url()) && !request.url().startsWith(site.url) && elsewhere.push(request.url())));
  const page = await context.newPage();
  /** @type {string[]} */
  const complaints = [];
  page.on("pageerror", (error) => complaints.push(`${page.url()}: ${error.message}`));
  page.on("console", (message) => void (message.type() === "error" && complaints.push(`${page.url()}: ${message.text()}`)));
  await page.goto(`${site.url}docs/index.html`);
  await page.evaluate(async () => {
    await navigator.serviceWorker.ready;
    if (!navigator.serviceWorker.controller) await new Promise((resolve) => navigator.serviceWorker.addEventListener("controllerchange", resolve, { once: true }));
  });
  await site.stop();
  let count = 0;
  for (const { page: name, runs } of pages) {
    await t.test(name, async () => {
      // The demo of the first page is another folder, with a service worker of its own.
      await page.goto(site.url + addressOf(name), { waitUntil: name === "README.md" ? "domcontentloaded" : "load" });
      assert.equal(await page.locator("button.run").count(), runs.length);
      for (const program of runs) {
        check(program, await page.evaluate(pressed(program.name)));
        count += 1;
      }
    });
  }
  t.diagnostic(`${count} blocks of ${pages.length} pages`);
  assert.ok(count > 100, `${count} blocks`);
  assert.deepEqual(complaints.filter((text) => !text.includes("demo/") && !text.includes("ERR_CONNECTION_REFUSED")), []);
  assert.deepEqual(elsewhere, [], "nobody else was asked");
});
