// @ts-check
// Checkpoints in IndexedDB, in Chromium: pages that are reloaded in the middle of a run, many saves at once, errors.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, test } from "node:test";
import { chromium } from "playwright-core";
import { bundle, wasm } from "../checkpoint/bundle.mjs";
import { expected, interrupted, live, plain, tooOften } from "../checkpoint/lives.mjs";
import { world } from "../checkpoint/world.mjs";
import { checkTrace } from "../grammar.mjs";

const SCHEDULES = 50;
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const HTML = '<!doctype html><title>lives</title><script type="module" src="/app/page.js"></script>';
/** @type {Record<string, [string, any]>} */
const FILES = { "/": ["text/html", HTML], "/app/page.js": ["text/javascript", await bundle("page.mjs", "web")], "/turnwheel.wasm": ["application/wasm", await wasm()] };

const site = createServer((request, response) => {
  const [type, body] = FILES[request.url ?? ""] ?? [];
  if (body === undefined) return void response.writeHead(404).end();
  response.setHeader("content-type", type ?? "").end(body);
});
await new Promise((resolve) => site.listen(0, "127.0.0.1", () => resolve(undefined)));
const browser = await chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: FLAGS });
after(async () => {
  await browser.close();
  site.closeAllConnections();
  site.close();
});
const page = await browser.newPage();
await page.goto(`http://127.0.0.1:${/** @type {any} */ (site.address()).port}/`);
await page.waitForSelector("html[data-ready]", { state: "attached" });

/** @param {any} name of a function of the page */
const inPage = (name) => page.evaluate((/** @type {any} */ name) => /** @type {any} */ (globalThis)[name](), name);

test("of many saves the first and the newest are written; what was deleted is gone; a lost database is made anew", async () => {
  assert.deepEqual(await inPage("churn"), { written: [0, 99, 200, 202, 203], settled: 100, loaded: { n: 99 }, gone: undefined, after: undefined, again: { n: 203 } });
});

test("errors name the checkpoint and the place", async () => {
  const { id, none, name, uncloneable } = await inPage("errors");
  assert.equal(id, "the id of a checkpoint must be a text, got an empty one");
  assert.equal(none, "save(`a`, …) takes what checkpoint() gives, got nothing");
  assert.match(name, /`name` must be the name of a database/);
  assert.match(uncloneable, /^the checkpoint `a` could not be saved in IndexedDB `lives`: DataCloneError: /);
});

test(`${SCHEDULES} runs, reloaded at random events, come to the same end`, { timeout: 300_000 }, async () => {
  const whole = plain((await live(world(), { hear() {}, die() {} })).messages);
  let reloads = 0;
  for (let seed = 1; seed <= SCHEDULES; seed++) {
    await page.evaluate(([seed, most]) => /** @type {any} */ (globalThis).begin(seed, most), [seed, 1 + (seed % 4)]).catch(() => {});
    const told = await page.waitForFunction(() => /** @type {any} */ (globalThis).told?.(), undefined, { timeout: 30_000 });
    const { failure, events, ran, history } = await told.jsonValue();
    assert.equal(failure, undefined, `seed ${seed}`);
    assert.deepEqual(history, expected(whole, interrupted(events)), `seed ${seed}`);
    assert.equal(tooOften(ran, events, history), undefined, `seed ${seed}`);
    checkTrace(events.filter((/** @type {any} */ { type }) => type !== "run_resumed"));
    reloads += events.filter((/** @type {any} */ { type }) => type === "run_resumed").length;
  }
  assert.ok(reloads > 1.5 * SCHEDULES, `${reloads} reloads`);
});
