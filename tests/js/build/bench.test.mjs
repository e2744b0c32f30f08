// @ts-check
// The bench's own arithmetic, and a comparison of two builds that must notice which one is slower.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { isAll } from "../share.mjs";
import { FEWEST, ratio } from "../../../benches/lib/stats.mjs";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));

/** The interval of the ratios 1, 2, … n, in any order. @param {number} n */
const interval = (n) => {
  const ratios = Array.from({ length: n }, (_, i) => (i % 2 ? n - (i - 1) / 2 : i / 2 + 1));
  return ratio(ratios.map(() => 10), ratios.map((times) => 10 * times));
};

test("the interval of a ratio goes by the order of the pairs, as the tables of the sign test have it", () => {
  assert.deepEqual(interval(6), { ratio: 3.5, low: 1, high: 6 });
  assert.deepEqual(interval(9), { ratio: 5, low: 2, high: 8 });
  assert.deepEqual(interval(12), { ratio: 6.5, low: 3, high: 10 });
  assert.deepEqual(interval(20), { ratio: 10.5, low: 6, high: 15 });
});

test("one run that something else disturbed moves neither end of the interval far", () => {
  const quiet = Array.from({ length: 12 }, (_, i) => 100 + i);
  const disturbed = [...quiet.slice(0, 11), 100_000];
  assert.equal(ratio(quiet.map(() => 100), disturbed).high, ratio(quiet.map(() => 100), quiet).high);
});

test("measurements that are no pairs, or too few, have no interval", () => {
  assert.throws(() => ratio([1, 2], [1]), /2 and 1 measurements are no pairs/);
  assert.throws(() => interval(FEWEST - 1), /wants 6 pairs/);
});

/** A package that needs 30 ms of CPU more to begin a run. @param {string} folder */
function slowed(folder) {
  const built = JSON.stringify(pathToFileURL(join(ROOT, "pkg/entry/node.js")).href);
  mkdirSync(join(folder, "entry"));
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  writeFileSync(join(folder, "entry/node.js"), `
    import { Agent as Built } from ${built};
    export * from ${built};
    export class Agent extends Built {
      prompt(...given) {
        for (const begun = process.cpuUsage(); process.cpuUsage(begun).user < 30_000;);
        return super.prompt(...given);
      }
    }`);
  return folder;
}

// It compares times, so it is no test for every change.
test("a build that became slower is told, after a second look", { timeout: 120_000, skip: !isAll && "it measures time" }, () => {
  const folder = mkdtempSync(join(tmpdir(), "bench-"));
  const compare = (/** @type {string[]} */ ...words) =>
    spawnSync(process.execPath, [join(ROOT, "benches/against.mjs"), ...words], { cwd: ROOT, encoding: "utf8" });
  try {
    const slow = slowed(folder);
    const worse = compare("pkg", slow, "W3-100", "--rounds=6");
    assert.equal(worse.status, 1, worse.stdout + worse.stderr);
    assert.match(worse.stdout, /^W3-100 .* WORSE$/m);
    assert.match(worse.stdout, /^worse by more than the noise, twice: W3-100$/m);
    assert.match(compare("pkg", slow, "W33").stderr, /no cell `W33`; there are W1, /);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
