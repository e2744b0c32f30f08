// @ts-check
// "Kill it anywhere. It pays once.": each button of the demo, pressed at moments that a seed chooses. The bank's own books say
// whether each invoice was paid exactly once. A change plays one moment of each, `cargo xtask e2e demo-kills` plays twenty.

import assert from "node:assert/strict";
import { test } from "node:test";
import { dice } from "../dice.mjs";
import { booksOf, by, open, press, stage } from "./demo/pay.mjs";

const SEED = Number(process.env["TURNWHEEL_SEED"] ?? Date.now() % 1e9);
const MOMENTS = process.env["TURNWHEEL_WORLDS"] === "all" ? 20 : 1;
const KILLS = ["close", "crash", "offline", "reload", "sleep", "twice", "inject"];
/** A run takes about this long at this pace, a person's yes included. */
const PACE = 0.15;
const RUN_MS = 2500;
/** So long an order is on its way to the bank and back, or a little less. */
const ORDER_MS = 300;

const on = stage();

/** Begins a run, has `harm` done to it while somebody says yes, and looks into the bank's books. @param {(page: import("playwright-core").Page) => Promise<void>} harm @param {number} [pace] */
async function paid(harm, pace = PACE) {
  const context = await on.browser.newContext();
  try {
    const { page, complaints } = await open(context, `${on.site.url}?pace=${pace}`);
    await page.click(by("begin"));
    let isHarmed = false;
    const harmed = harm(page).finally(() => (isHarmed = true));
    // It is awaited below, once the run has ended.
    harmed.catch(() => {});
    // A person who says yes whenever there is a question, until all is done.
    for (const end = Date.now() + 60_000; ; ) {
      assert.ok(Date.now() < end, `the run did not end: ${await page.innerText("main")}`);
      await page.click(by("yes"), { timeout: 100 }).catch(() => {});
      const isDone = await page.evaluate(() => document.querySelector("#status")?.textContent?.startsWith("Done.") && document.querySelector("#total")?.getAttribute("data-state") === "all").catch(() => false);
      if (isDone && isHarmed) break;
    }
    await harmed;
    const { payments, requests } = await booksOf(page);
    assert.deepEqual(payments.map(({ invoice }) => invoice).sort(), ["INV-1001", "INV-1002", "INV-1003"]);
    for (const { invoice, key } of payments) assert.deepEqual([...new Set(requests.filter((asked) => asked.invoice === invoice).map((asked) => asked.key))], [key], `${invoice} was ordered with one key only`);
    assert.deepEqual(requests.filter(({ invoice }) => !payments.some((payment) => payment.invoice === invoice)), [], "nothing else was ordered");
    assert.match(await page.innerText(by("total")), /3 of 3 paid, each once/);
    // A process whose engine was written over may say so before it is ended.
    assert.deepEqual(complaints.filter((text) => !/because its engine broke/.test(text)), []);
    return requests.length;
  } finally {
    await context.close();
  }
}

test("killed after the bank has paid and before the agent knows, it orders again with the same key", { timeout: 70_000 }, async () => {
  /** Presses a button in the moment in which the ledger shows a payment. @type {(page: import("playwright-core").Page, invoice: string, kill: string) => Promise<void>} */
  const onPayment = (page, invoice, kill) => page.evaluate(([invoice, kill]) => new Promise((resolve) => {
    const look = () => {
      if (!document.querySelector(`[data-invoice="${invoice}"][data-state="paid"]`)) return;
      watch.disconnect();
      /** @type {HTMLButtonElement} */ (document.querySelector(`[data-kill="${kill}"]`)).click();
      resolve(undefined);
    };
    const watch = new MutationObserver(look);
    watch.observe(/** @type {Element} */ (document.querySelector("#ledger-rows")), { childList: true, subtree: true });
  }), [invoice, kill]);
  const requests = await paid(async (page) => {
    await onPayment(page, "INV-1001", "close");
    await onPayment(page, "INV-1003", "crash");
  }, 0.4);
  assert.ok(requests >= 5, `${requests} requests`);
});

for (const [place, kill] of KILLS.entries()) {
  test(`${kill}, at random moments`, { timeout: MOMENTS * 70_000 }, async (t) => {
    const roll = dice(SEED + place);
    t.diagnostic(`seed ${SEED}`);
    for (let i = 0; i < MOMENTS; i++) {
      // Half of the moments are those in which it is hardest to pay once: while an order is on its way.
      const isOrdered = roll(2) === 1;
      const [moment, later] = [roll(isOrdered ? ORDER_MS : RUN_MS), roll(800)];
      try {
        await paid(async (page) => {
          if (isOrdered) await page.waitForSelector('[data-testid="ledger-row"]:is([data-state="ordered"], [data-state="paid"])', { state: "attached" });
          await page.waitForTimeout(moment);
          await press(page, kill);
          await page.waitForTimeout(kill === "offline" ? later : 0);
          if (kill === "offline") await press(page, kill);
        });
      } catch (error) {
        throw new Error(`TURNWHEEL_SEED=${SEED}, ${kill} ${moment} ms after ${isOrdered ? "an order" : "the beginning"}, moment ${i}: ${error}`, { cause: error });
      }
    }
  });
}

test("all of them in one run, in random order", { timeout: MOMENTS * 90_000 }, async (t) => {
  const roll = dice(SEED + KILLS.length);
  t.diagnostic(`seed ${SEED}`);
  let most = 0;
  for (let i = 0; i < MOMENTS; i++) {
    const order = KILLS.flatMap((kill) => (kill === "offline" ? [kill, kill] : [kill])).map((kill) => ({ kill, wait: roll(500), key: roll(1e6) })).sort((a, b) => a.key - b.key);
    const requests = await paid(async (page) => {
      for (const { kill, wait } of order) {
        await page.waitForTimeout(wait);
        await press(page, kill);
      }
    }).catch((error) => {
      throw new Error(`TURNWHEEL_SEED=${SEED}, ${order.map(({ kill, wait }) => `${wait} ms, ${kill}`).join(", ")}: ${error}`, { cause: error });
    });
    most = Math.max(most, requests);
  }
  t.diagnostic(`at most ${most} requests for 3 payments`);
});
