// @ts-check
// node tests/js/ai-sdk/fixtures.mjs DIR [--update]
//
// Plays recorded answers of providers twice: on the wires of the built package in pkg/, and through the packages of the AI SDK
// with `fromLanguageModel`, for each version of its specification. The last message and the error must be equal; a difference
// must have a reason of differences.mjs, and for our own recordings stand in tests/data/ai-sdk/differences.json, which --update
// writes anew. `cargo xtask fixtures DIR --engine ai-sdk` runs it.

import { readFileSync, realpathSync, writeFileSync } from "node:fs";
import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual } from "node:util";
import { fromLanguageModel } from "../../../pkg/ai-sdk.js";
import { find, readCase } from "../recordings.mjs";
import { explain, isUndone } from "./differences.mjs";
import { comparable, nativeModel, play } from "./outcome.mjs";
import { languageModel, VERSIONS } from "./providers.mjs";

/** @typedef {import("./providers.mjs").Version} Version */

const OWN = fileURLToPath(new URL("../../data/fixtures", import.meta.url));
const LIST = fileURLToPath(new URL("../../data/ai-sdk/differences.json", import.meta.url));
/** How much must be equal in the newest version. */
const WANTED = 0.85;

const [dir, option] = process.argv.slice(2);
if (!dir || (option && option !== "--update")) {
  console.error("usage: node tests/js/ai-sdk/fixtures.mjs DIR [--update]");
  process.exit(2);
}

/** Cases by their reasons, for each version. @type {Record<string, Record<string, string[]>>} */
const found = Object.fromEntries(VERSIONS.map((version) => [version, {}]));
/** How many were equal, of how many, by version and wire. @type {Record<string, Record<string, [number, number]>>} */
const counts = Object.fromEntries(VERSIONS.map((version) => [version, {}]));
let [passed, failed] = [0, 0];

/** @param {string} path */
async function compare(path) {
  const { expected, body, answer } = readCase(path);
  const name = relative(dir ?? "", path);
  const fetch = async () => answer(1_000);
  const native = comparable(await play(nativeModel(expected.wire, fetch), expected), expected);
  for (const version of VERSIONS) {
    const outcome = await play(fromLanguageModel(languageModel(version, expected.wire, "recorded", fetch)), expected);
    const bridge = comparable(outcome, expected);
    const fields = Object.keys(native).filter((field) => !isDeepStrictEqual(/** @type {any} */ (native)[field], /** @type {any} */ (bridge)[field]));
    const { reasons, left } = explain({ version, expected, body: body?.toString() ?? "", native, bridge, message: outcome.error?.message ?? "" }, fields);
    const tally = ((counts[version] ??= {})[expected.wire] ??= [0, 0]);
    // The share is of answers that the packages can read; those that a server spoilt have a reason of their own.
    if (!isUndone(expected)) {
      tally[1]++;
      if (fields.length === 0) tally[0]++;
    }
    for (const reason of reasons) (/** @type {any} */ (found[version])[reason] ??= []).push(name);
    if (left.length === 0) passed++;
    else failed++;
    for (const field of left) console.log(`${name} (${version}): ${field}: ${JSON.stringify(/** @type {any} */ (bridge)[field])} in place of ${JSON.stringify(/** @type {any} */ (native)[field])}${outcome.error ? ` (${outcome.error.message.slice(0, 200)})` : ""}`);
  }
}

for (const path of find(dir).sort()) {
  try {
    await compare(path);
  } catch (/** @type {any} */ error) {
    failed++;
    console.log(`${relative(dir, path)} (not played): ${error.message}`);
  }
}

/** What is found of our own recordings is a list that is kept. */
if (realpathSync(dir) === OWN) {
  const text = `${JSON.stringify(found, undefined, 2)}\n`;
  if (option === "--update") writeFileSync(LIST, text);
  const listed = JSON.parse(readFileSync(LIST, "utf8"));
  for (const version of VERSIONS) {
    for (const reason of new Set([...Object.keys(listed[version] ?? {}), ...Object.keys(found[version] ?? {})])) {
      const [was, is] = [listed[version]?.[reason] ?? [], found[version]?.[reason] ?? []];
      if (isDeepStrictEqual(was, is)) continue;
      failed++;
      console.log(`${version}: ${reason}: ${JSON.stringify(is)} in place of ${JSON.stringify(was)} in the list`);
    }
  }
}

for (const version of VERSIONS) {
  const wires = Object.entries(counts[version] ?? {});
  const [equal, all] = wires.reduce((sum, [, [a, b]]) => [sum[0] + a, sum[1] + b], [0, 0]);
  const share = all === 0 ? 0 : equal / all;
  console.log(`${version}: ${equal} of ${all} equal (${(share * 100).toFixed(1)} %): ${wires.map(([wire, [a, b]]) => `${wire} ${a}/${b}`).join(", ")}`);
  for (const [reason, names] of Object.entries(found[version] ?? {})) console.log(`    ${String(names.length).padStart(3)}  ${reason}`);
  if (version === VERSIONS.at(-1) && share < WANTED && all > 0) {
    failed++;
    console.log(`${version}: less than ${WANTED * 100} % are equal`);
  }
}
if (passed + failed === 0) console.log(`no case in ${dir}: one is NAME.expect.json beside NAME.sse or NAME.http.json`);
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed > 0 || passed === 0 ? 1 : 0);
