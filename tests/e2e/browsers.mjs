// @ts-check
// The package in Firefox and in WebKit: the checks that Chromium gets every day, see
// tests/js/browser/battery.mjs.

import assert from "node:assert/strict";
import { test } from "node:test";
import { serveDemo } from "../demo/site.mjs";
import { battery, plainHttp } from "../js/browser/battery.mjs";
import { storesSite, storesSuite } from "../js/browser/stores.mjs";
import { firefoxTab, until, webkitTab } from "../js/browser/tabs.mjs";
import { programs } from "./programs.mjs";

/** @type {[string, { [program: string]: string }, (found: any) => Promise<import("../js/browser/tabs.mjs").Tab>, boolean][]} */
const BROWSERS = [
  ["Firefox", { "firefox-esr": "firefox-esr" }, (found) => firefoxTab(found["firefox-esr"]), true],
  // It resolves no name to 127.0.0.1 except `localhost`, which counts as secure.
  ["WebKit", { WebKitWebDriver: "webkit2gtk-driver", Xvfb: "xvfb" }, (found) => webkitTab({ driver: found.WebKitWebDriver, xvfb: found.Xvfb }), false],
];

for (const [name, wanted, launch, hasPlainHttp] of BROWSERS) {
  const { found, missing } = await programs(wanted);
  if (missing) {
    test(name, { skip: missing });
    continue;
  }
  test(name, { timeout: 240_000 }, async (context) => {
    const tab = await launch(found);
    let done;
    try {
      const check = async (/** @type {string} */ what, /** @type {() => Promise<unknown>} */ body) => void (await context.test(what, async () => assert.equal((await body()) || "", "")));
      done = await battery(tab, check);
      if (hasPlainHttp) await check("a page over plain HTTP, where half of `crypto` is missing", () => plainHttp(tab, /** @type {any} */ (done)));
      await check("the demo answers a question of two parts with two tools", () => demo(tab));
      const stores = await storesSite();
      try {
        await tab.open(stores.address);
        await until(tab, "document.documentElement.dataset.ready === ''");
        await storesSuite((what, body) => context.test(what, body), tab, 20);
      } finally {
        stores.end();
      }
    } finally {
      await tab.close();
      await done?.site.end();
    }
  });
}

/** Asks the demo page one question. @param {import("../js/browser/tabs.mjs").Tab} tab */
async function demo(tab) {
  const site = await serveDemo();
  try {
    tab.complaints.length = 0;
    await tab.open(site.url);
    await until(tab, "document.documentElement.dataset.ready !== undefined");
    await tab.run(`(() => {
      const box = document.querySelector('[data-testid="box"]');
      box.value = "What is 17*23, and what time is it in Oslo?";
      box.dispatchEvent(new Event("input", { bubbles: true }));
      document.querySelector('[data-testid="send"]').click();
    })()`);
    await until(tab, `document.querySelector('[data-testid="run-end"]') !== null`, 90_000);
    const [text, cards] = await tab.run(`[document.querySelector('[data-testid="answer"]:last-of-type')?.innerText ?? document.body.innerText, document.querySelectorAll('[data-testid="tool-card"]').length]`);
    assert.match(text, /391/);
    assert.equal(cards, 2);
    return tab.complaints.join("\n");
  } finally {
    site.end();
  }
}
