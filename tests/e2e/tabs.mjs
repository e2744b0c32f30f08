// @ts-check
// One agent in several tabs whose owner ends after every event of a run: 30 runs in Chromium, 10 in Firefox. The everyday tests
// play six.

import assert from "node:assert/strict";
import { test } from "node:test";
import { chromiumTabs } from "../js/browser/tabs/chromium.mjs";
import { medianOf, play, summaryOf } from "../js/browser/tabs/runs.mjs";
import { tabsSite } from "../js/browser/tabs/site.mjs";
import { firefox } from "../js/browser/tabs.mjs";
import { programs } from "./programs.mjs";

const first = (/** @type {number} */ n) => Array.from({ length: n }, (_, i) => i + 1);
/** Each run ends its owners at events of its own, 30 apart, so 30 runs have every event of a run. @type {[string, number[], { [program: string]: string }, (found: any) => Promise<import("../js/browser/tabs/runs.mjs").Browser & { close(): Promise<void> }>][]} */
const BROWSERS = [
  ["Chromium", first(30), {}, chromiumTabs],
  // Nobody can make a tab of it crash from outside.
  ["Firefox", first(10).map((n) => 3 * n), { "firefox-esr": "firefox-esr" }, async (found) => ({ ...(await firefox(found["firefox-esr"])), hows: ["navigate", "close"] })],
];

for (const [name, numbers, wanted, launch] of BROWSERS) {
  const { found, missing } = await programs(wanted);
  test(`${name}: owners that end at every event`, { skip: missing ?? false, timeout: 800_000 }, async () => {
    const [site, browser] = [await tabsSite(), await launch(found)];
    try {
      const takeovers = await play(browser, site, numbers);
      console.log(`# ${name}: ${summaryOf(takeovers)}`);
      for (const slow of takeovers.filter(({ total }) => total >= 500)) console.log(`# ${name}: ${slow.how} took ${slow.total} ms, ${slow.browser} of them until the lock was given`);
      assert.ok(takeovers.length >= numbers.length, JSON.stringify(takeovers));
      assert.ok(takeovers.every(({ total }) => total < 500), JSON.stringify(takeovers));
      assert.ok(medianOf(takeovers.map(({ ours }) => ours)) < 250, JSON.stringify(takeovers));
    } finally {
      await browser.close();
      site.end();
    }
  });
}
