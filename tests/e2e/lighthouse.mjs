// @ts-check
// What Lighthouse says of the demo's folder, on a telephone and on a desk: 95 or more in each category.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { servedFolder } from "../demo/made.mjs";
import { packagesOf } from "./npm.mjs";

const { folder, missing } = packagesOf("lighthouse", ["lighthouse@12.8.2"]);
const LEAST = 95;
const METRICS = ["first-contentful-paint", "largest-contentful-paint", "total-blocking-time", "cumulative-layout-shift", "speed-index"];
const CATEGORIES = ["performance", "accessibility", "best-practices"];

/** @type {Awaited<ReturnType<typeof servedFolder>>} */
let site;
before(async () => void (site = await servedFolder()));
after(() => site.end());

/** Runs Lighthouse in a process of its own: this one serves the page. @param {string[]} words */
async function report(words) {
  const file = join(site.out, "report.json");
  await promisify(execFile)(process.execPath, [join(String(folder), "node_modules/lighthouse/cli/index.js"), site.url, "--quiet", "--output=json", `--output-path=${file}`,
    `--only-categories=${CATEGORIES.join(",")}`, "--chrome-flags=--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --disable-background-networking --disable-component-update", ...words],
  { env: { ...process.env, CHROME_PATH: process.env["CHROMIUM"] ?? "/usr/bin/chromium" }, timeout: 300_000 });
  return JSON.parse(readFileSync(file, "utf8"));
}

/** What else the machine does costs points: the best of three counts. @param {string[]} words @param {(text: string) => void} say */
async function best(words, say) {
  let best = { least: -1, scores: /** @type {number[]} */ ([]), flaws: "" };
  for (let run = 0; run < 3 && best.least < LEAST; run++) {
    const { categories, audits } = await report(words);
    const scores = CATEGORIES.map((id) => Math.round(100 * categories[id].score));
    const flaws = CATEGORIES.flatMap((id) => categories[id].auditRefs).map(({ id }) => audits[id]).filter(({ score, weight }) => weight !== 0 && score !== null && score < 0.9).map(({ id, displayValue }) => `${id} ${displayValue ?? ""}`.trim()).join("; ");
    say(`${CATEGORIES.map((id, index) => `${id} ${scores[index]}`).join(", ")}; ${METRICS.map((id) => `${id} ${audits[id].displayValue}`).join(", ")}`);
    if (Math.min(...scores) > best.least) best = { least: Math.min(...scores), scores, flaws };
  }
  return best;
}

for (const [name, words] of /** @type {[string, string[]][]} */ ([["a telephone", []], ["a desk", ["--preset=desktop"]]])) {
  test(`Lighthouse, ${name}`, { skip: missing, timeout: 15 * 60_000 }, async (t) => {
    const { least, scores, flaws } = await best(words, (text) => t.diagnostic(text));
    assert.ok(least >= LEAST, `${scores.join(", ")}: ${flaws}`);
  });
}
