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
      await check("the demo pays three invoices, each once, over a crash", () => demo(tab));
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

/** Lets the demo pay, and crashes its engine meanwhile. @param {import("../js/browser/tabs.mjs").Tab} tab */
async function demo(tab) {
  const site = await serveDemo();
  const press = (/** @type {string} */ name) => tab.run(`document.querySelector('[data-testid="${name}"]').click()`);
  try {
    tab.complaints.length = 0;
    await tab.open(`${site.url}?pace=0.2`);
    await until(tab, "document.documentElement.dataset.ready !== undefined");
    await press("begin");
    await until(tab, `document.querySelector('[data-testid="question"]').hidden === false`, 90_000);
    await press("kill-crash");
    await until(tab, `/Crashed the engine/.test(document.querySelector('[data-testid="words"]').textContent)`, 90_000);
    await until(tab, `document.querySelector('[data-testid="question"]').hidden === false`, 90_000);
    await press("yes");
    await until(tab, `document.querySelector('[data-testid="total"]').dataset.state === "all"`, 90_000);
    return tab.complaints.filter((text) => !/because its engine broke/.test(text)).join("\n");
  } finally {
    site.end();
  }
}
