// @ts-check
// The demo page as a person uses it: begins, says yes or no, shares, forks, opens it twice, by keyboard and on a telephone.
// `SHOTS=FOLDER` keeps screenshots.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join } from "node:path";
import { test } from "node:test";
import { booksOf, by, open, press, stage } from "./demo/pay.mjs";

/** @typedef {import("playwright-core").Page} Page */

/** @type {string} */
const axeSource = createRequire(import.meta.url)("axe-core").source;
const PAGE = "?pace=0.1";
const on = stage();

/** A test on a page of a fresh profile, whose console must stay clean. @param {string} name @param {(page: Page, context: import("playwright-core").BrowserContext, t: import("node:test").TestContext) => Promise<void>} body @param {import("playwright-core").BrowserContextOptions} [options] */
function onPage(name, body, options) {
  test(name, { timeout: 120_000 }, async (t) => {
    const context = await on.browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
    t.after(() => context.close());
    const { page, complaints } = await open(context, on.site.url + PAGE);
    await body(page, context, t);
    assert.deepEqual(complaints, [], "the page complains in its console");
  });
}

/** @param {Page} page @param {RegExp} words */
const says = (page, words) => page.waitForFunction(([source]) => new RegExp(String(source)).test(document.querySelector("#words")?.textContent ?? ""), [words.source]);
/** @param {Page} page @param {RegExp} words */
const stands = (page, words) => page.waitForFunction(([source]) => new RegExp(String(source)).test(document.querySelector("#status")?.textContent ?? ""), [words.source]);
/** @param {Page} page */
const invoices = async (page) => (await booksOf(page)).payments.map(({ invoice }) => invoice).sort();

/** @param {Page} page @param {string} name */
async function shot(page, name) {
  if (process.env["SHOTS"]) await page.screenshot({ path: join(process.env["SHOTS"], `${name}.png`), fullPage: true });
}

/** Begins a run and says yes. @param {Page} page */
async function payAll(page) {
  await page.click(by("begin"));
  await page.click(by("yes"));
  await stands(page, /^Done/);
}

onPage("it pays two invoices, asks about the third, and takes a yes by keyboard alone", async (page) => {
  assert.equal(await page.innerText(by("total")), "Nothing is paid yet.");
  assert.ok(await page.isDisabled(by("kill-close")), "nothing is there to be harmed");
  await page.focus(by("begin"));
  await page.keyboard.press("Enter");
  await page.waitForSelector(by("question"));
  assert.match(await page.innerText(by("question")), /INV-1003, €2,400\.00, to Harbour Legal/);
  assert.deepEqual(await invoices(page), ["INV-1001", "INV-1002"]);
  await page.focus(by("yes"));
  await page.keyboard.press("Enter");
  await stands(page, /^Done/);
  assert.deepEqual(await invoices(page), ["INV-1001", "INV-1002", "INV-1003"]);
  assert.equal(await page.innerText(by("total")), "3 of 3 paid, each once.");
  await page.click(by("reset"));
  await page.waitForSelector(by("begin"));
  assert.deepEqual(await invoices(page), []);
});

onPage("a no is kept, also by the next process", async (page) => {
  await page.click(by("begin"));
  await page.click(by("no"));
  await stands(page, /^Done/);
  await press(page, "crash");
  await says(page, /Crashed the engine/);
  await stands(page, /^Done/);
  await page.waitForFunction(() => document.documentElement.dataset["life"] === "on");
  assert.deepEqual(await invoices(page), ["INV-1001", "INV-1002"]);
  assert.match(await page.innerText('[data-invoice="INV-1003"]'), /you said no/);
});

onPage("a second yes is refused, an injection is read and its order refused", async (page) => {
  await page.click(by("begin"));
  await press(page, "twice");
  await says(page, /first yes was taken, the second was refused/);
  await stands(page, /^Done/);
  await press(page, "inject");
  await says(page, /INV-666 is not on the list\. The bank was never asked/);
  await stands(page, /^Done/);
  await press(page, "twice");
  await says(page, /a further yes to it is refused/);
  assert.deepEqual(await invoices(page), ["INV-1001", "INV-1002", "INV-1003"]);
  assert.ok(!(await booksOf(page)).requests.some(({ invoice }) => invoice === "INV-666"));
});

onPage("asleep for thirty days over an open question, in a new version of the page, it is the same question", async (page) => {
  await page.click(by("begin"));
  await page.waitForSelector(by("question"));
  await press(page, "sleep");
  await says(page, /Thirty days have passed/);
  await page.waitForSelector(by("question"));
  await press(page, "reload");
  assert.match(page.url(), /v=2/);
  await page.click(by("yes"));
  await stands(page, /^Done/);
  assert.deepEqual(await invoices(page), ["INV-1001", "INV-1002", "INV-1003"]);
});

onPage("offline, orders wait and the model is asked again; online, it goes on", async (page) => {
  await page.click(by("begin"));
  await press(page, "offline");
  await page.waitForFunction(() => /No network/.test(document.querySelector("#status")?.textContent ?? ""));
  assert.equal(await page.getAttribute(by("kill-offline"), "aria-pressed"), "true");
  await press(page, "offline");
  await page.click(by("yes"));
  await stands(page, /^Done/);
});

onPage("of two tabs one has the agent, and the other goes on when it is closed", async (page, context) => {
  await page.click(by("begin"));
  await page.waitForSelector(by("question"));
  const { page: second, complaints } = await open(context, on.site.url + PAGE);
  await stands(second, /Another tab/);
  await page.close();
  await second.click(by("yes"));
  await stands(second, /^Done/);
  assert.deepEqual(await invoices(second), ["INV-1001", "INV-1002", "INV-1003"]);
  assert.deepEqual(complaints, []);
  // The first page's console is gone with it.
});

onPage("a fork goes on from an earlier moment and pays into books of its own", async (page) => {
  await payAll(page);
  const before = await booksOf(page);
  await page.evaluate(() => {
    const inspector = /** @type {any} */ (document.querySelector("#inspector"));
    const { log } = inspector;
    for (let n = 1; n <= log.end; n++) if (log.event(n).type === "tool_approval_requested") inspector.n = n;
  });
  await page.click("#inspector .fork, #inspector [data-action=fork], #inspector button:has(slot[name=fork])");
  await page.click(by("no"));
  await stands(page, /^The fork is done/);
  assert.match(await page.innerText(by("total")), /2 of 3/);
  await shot(page, "fork");
  await page.click(by("leave"));
  await page.waitForFunction(() => document.querySelector("#total")?.textContent?.startsWith("3 of 3"));
  assert.deepEqual(await booksOf(page), before, "the real books are as they were");
});

onPage("a link with the tape opens elsewhere, and sends nothing", async (page, _, t) => {
  await payAll(page);
  await page.click(by("share"));
  await page.waitForFunction(() => /** @type {HTMLInputElement} */ (document.querySelector("#link")).value !== "");
  const link = await page.inputValue(by("link"));
  t.diagnostic(`${link.length} characters`);
  const elsewhere = await on.browser.newContext({ viewport: { width: 1280, height: 800 } });
  t.after(() => elsewhere.close());
  /** @type {string[]} */
  const asked = [];
  elsewhere.on("request", (request) => void asked.push(`${request.method()} ${request.url()}`));
  const { page: other, complaints } = await open(elsewhere, link);
  assert.equal(await other.innerText(by("total")), "3 of 3 paid, each once.");
  assert.match(await other.innerText(by("lines")), /I look into the inbox[\s\S]*Paid, each once/);
  assert.ok(await other.evaluate(() => /** @type {any} */ (document.querySelector("#inspector")).end) > 40);
  assert.deepEqual(asked.filter((one) => !one.startsWith(`GET ${on.site.url}`)), []);
  assert.ok(!asked.some((one) => one.includes("payer.js")), "no process was started");
  assert.deepEqual(await booksOf(other), { payments: [], requests: [] });
  await shot(other, "shared");
  assert.deepEqual(complaints, []);
  await other.click(by("leave"));
  await other.waitForSelector(by("begin"));
});

test("a link that was cut, or is none, says so", { timeout: 60_000 }, async (t) => {
  const context = await on.browser.newContext();
  t.after(() => context.close());
  for (const [hash, words] of /** @type {[string, RegExp][]} */ ([["#tape=abc", /no whole tape/], ["#tape=%%%", /no whole tape/], [`#tape=${"A".repeat(31_000)}`, /more than 30,000 characters/]])) {
    const { page } = await open(context, on.site.url + PAGE + hash);
    assert.match(await page.innerText(by("banner")), words, hash.slice(0, 20));
    assert.match(await page.innerText(by("banner")), /as a file|the file/, "with a way out");
    await page.close();
  }
  // Far more bytes than characters: it is not unpacked to its end.
  const { page } = await open(context, on.site.url + PAGE);
  const bomb = await page.evaluate(async () => {
    const packed = new Blob([new Uint8Array(2e7)]).stream().pipeThrough(new CompressionStream("deflate-raw"));
    const bytes = new Uint8Array(await new Response(packed).arrayBuffer());
    return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join("")).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
  });
  const { page: struck } = await open(context, `${on.site.url}${PAGE}#tape=${bomb}`);
  assert.match(await struck.innerText(by("banner")), /longer than 4 MB/);
});

for (const [width, height] of /** @type {[number, number][]} */ ([[360, 740], [1280, 800]])) {
  for (const colorScheme of /** @type {const} */ (["light", "dark"])) {
    onPage(`${width} px, ${colorScheme}: nothing stands outside, and nothing keeps anybody out`, async (page) => {
      await shot(page, `${width}-${colorScheme}-begin`);
      await accessible(page);
      await page.click(by("begin"));
      await page.waitForSelector(by("question"));
      await shot(page, `${width}-${colorScheme}-asks`);
      await accessible(page);
      await page.click(by("yes"));
      await stands(page, /^Done/);
      await press(page, "inject");
      await says(page, /The bank was never asked/);
      await stands(page, /^Done/);
      await shot(page, `${width}-${colorScheme}-done`);
      const wide = await page.evaluate(() => Math.max(document.documentElement.scrollWidth, document.body.scrollWidth));
      assert.ok(wide <= width, `the page is ${wide} px wide in a window of ${width}`);
      await accessible(page);
    }, { viewport: { width, height }, colorScheme });
  }
}

/** @param {Page} page */
async function accessible(page) {
  // The page's own policy would refuse a script tag, but not the protocol's evaluation.
  await page.evaluate((source) => void ("axe" in globalThis || (0, eval)(source)), axeSource);
  const findings = await page.evaluate(async () => {
    const { violations } = await /** @type {any} */ (globalThis)["axe"].run(document, { resultTypes: ["violations"] });
    return violations.map((/** @type {any} */ { id, impact, nodes }) => ({ id, impact, where: nodes.map((/** @type {any} */ node) => `${node.target.join(" ")}: ${node.failureSummary}`) }));
  });
  assert.deepEqual(findings, []);
}
