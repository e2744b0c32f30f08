// @ts-check
// Checkpoints in IndexedDB, in any browser: pages that are reloaded in the middle of a run, many saves at once, errors.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { bundle, wasm } from "../checkpoint/bundle.mjs";
import { expected, interrupted, runLife, plain, tooOften } from "../checkpoint/lives.mjs";
import { world } from "../checkpoint/world.mjs";
import { checkTrace } from "../grammar.mjs";
import { until } from "./tabs.mjs";

const HTML = '<!doctype html><title>lives</title><script type="module" src="/app/page.js"></script>';

/** Serves the page. @returns {Promise<{ address: string, end(): void }>} */
export async function storesSite() {
  /** @type {Record<string, [string, any]>} */
  const files = { "/": ["text/html", HTML], "/app/page.js": ["text/javascript", await bundle("page.mjs", "web")], "/app/turnwheel.wasm": ["application/wasm", await wasm()] };
  const site = createServer((request, response) => {
    const [type, body] = files[request.url ?? ""] ?? [];
    if (body === undefined) return void response.writeHead(404).end();
    response.setHeader("content-type", type ?? "").end(body);
  });
  await new Promise((resolve) => site.listen(0, "127.0.0.1", () => resolve(undefined)));
  return {
    address: `http://127.0.0.1:${/** @type {any} */ (site.address()).port}/`,
    end() {
      site.closeAllConnections();
      site.close();
    },
  };
}

/**
 * @param {(name: string, body: () => Promise<unknown>) => unknown} test
 * @param {import("./tabs.mjs").Tab} tab where the page is open
 * @param {number} schedules
 */
export async function storesSuite(test, tab, schedules) {
  await test("of many saves the first and the newest are written; what was deleted is gone; a lost database is made anew", async () => {
    assert.deepEqual(await tab.run("churn()"), { written: [0, 99, 200, 202, 203], settled: 100, loaded: { n: 99 }, again: { n: 203 } });
  });

  await test("errors name the checkpoint and the place", async () => {
    const { id, none, name, slip, text, uncloneable } = await tab.run("errors()");
    assert.equal(id, "the id of a checkpoint must be a text, got an empty one");
    assert.equal(none, "save(`a`, …) takes what checkpoint() gives, got nothing");
    assert.match(name, /`name` must be the name of a database/);
    assert.deepEqual([slip, text], ["unknown option `nme`; did you mean `name`?", "indexedDBStore takes { name }, got a string"]);
    assert.match(uncloneable, /^the checkpoint `a` could not be saved in IndexedDB `lives`: DataCloneError: /);
  });

  await test(`${schedules} runs, reloaded at random events, come to the same end`, async () => {
    const whole = plain((await runLife(world(), { onEvent() {}, die() {} })).messages);
    let reloads = 0;
    for (let seed = 1; seed <= schedules; seed++) {
      await tab.run(`begin(${seed}, ${1 + (seed % 4)})`).catch(() => {});
      const { failure, events, ran, history } = await until(tab, "globalThis.report?.()", 120_000);
      assert.equal(failure, undefined, `seed ${seed}`);
      assert.deepEqual(history, expected(whole, interrupted(events)), `seed ${seed}`);
      assert.equal(tooOften(ran, events, history), undefined, `seed ${seed}`);
      checkTrace(events.filter((/** @type {any} */ { type }) => type !== "run_resumed"));
      reloads += events.filter((/** @type {any} */ { type }) => type === "run_resumed").length;
    }
    assert.ok(reloads > 1.5 * schedules, `${reloads} reloads`);
  });
}
