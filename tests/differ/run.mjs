// @ts-check
// node tests/differ/run.mjs OLD_PKG [NEW_PKG] [--sequences N] [--seed N] [--since REV] [--told N] [--show]
//
// Plays random sequences of calls of the public API with two packages, in two processes, in virtual time and with the same
// dice, and compares all that can be seen: events, results, texts of errors, requests, checkpoints. A checkpoint that either made goes
// on in both. `cargo xtask differ --against REV` builds the packages and runs this.
//
// README: plan.mjs throws a sequence, world.mjs plays it (models.mjs, tools.mjs, functions.mjs are what it meets there), compare.mjs
// looks at what came out, shrink.mjs makes it short, allowed.mjs names the differences that are wanted. Sequence number i has the seed
// SEED + i, so `--seed SEED+i --sequences 1` plays it alone; `--show` writes down all of its lines. With `--since REV`, the old package
// was built from REV, and what is allowed since a commit in its past is not.

import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { ALLOWED } from "./allowed.mjs";
import { compare } from "./compare.mjs";
import { planOf } from "./plan.mjs";
import { playerOf } from "./players.mjs";
import { shrink } from "./shrink.mjs";

const PKG = fileURLToPath(new URL("../../pkg", import.meta.url));
const SEQUENCES = 9000;
/** So many differences are made short and told in full. */
const TOLD = 3;

const fail = (/** @type {string} */ message) => {
  console.error(`error: ${message}`);
  process.exit(2);
};
const whole = (/** @type {string} */ name, /** @type {string} */ text) => {
  const number = Number(text);
  if (!Number.isSafeInteger(number) || number < 0 || number >= 2 ** 31) fail(`\`--${name}\` wants a whole number, not ${text}`);
  return number;
};
const { values, positionals } = parseArgs({ allowPositionals: true, options: { sequences: { type: "string", default: String(SEQUENCES) }, seed: { type: "string" }, since: { type: "string" }, told: { type: "string", default: String(TOLD) }, show: { type: "boolean" } } });
if (positionals.length < 1 || positionals.length > 2) fail("usage: node tests/differ/run.mjs OLD_PKG [NEW_PKG] [--sequences N] [--seed N] [--since REV] [--told N] [--show]");
const [old, current] = [resolve(positionals[0] ?? ""), resolve(positionals[1] ?? PKG)];
for (const folder of [old, current]) if (!existsSync(join(folder, "entry/node.js"))) fail(`${folder} is no package: it has no entry/node.js`);
const count = whole("sequences", values.sequences);
const seed = whole("seed", values.seed ?? String(Math.floor(Math.random() * 1_000_000_000)));
const told = whole("told", values.told);
const allowed = ALLOWED.filter(({ since }) => !values.since || !since || !isPast(since, values.since));

/** Whether a commit is in the past of a revision. A commit that is not here is not. @param {string} commit @param {string} revision */
function isPast(commit, revision) {
  try {
    execFileSync("git", ["merge-base", "--is-ancestor", commit, revision], { stdio: "ignore", cwd: fileURLToPath(new URL(".", import.meta.url)) });
    return true;
  } catch {
    return false;
  }
}

console.log(`${count} sequences from seed ${seed}${allowed.length ? `; allowed: ${allowed.map(({ name }) => name).join(", ")}` : ""}`);
const sides = { old: playerOf(old), current: playerOf(current) };
const players = { old: sides.old.play, current: sides.current.play };
const totals = { lines: 0, restored: 0, different: 0 };
/** How often what is allowed was seen. @type {Map<string, number>} */
const excused = new Map();

/** Whether a sequence shows a difference that nothing allows. @param {import("./plan.mjs").Plan} plan */
const shown = async (plan) => {
  const { difference } = await compare(plan, players, allowed);
  return difference && !difference.excuse ? difference : undefined;
};

try {
  for (let i = 0; i < count; i++) {
    const plan = planOf(seed + i);
    if (values.show) console.log(`${JSON.stringify(plan)}\n${(await players.current(plan)).text}`);
    const { lines, restored, difference } = await compare(plan, players, allowed);
    totals.lines += lines;
    totals.restored += restored;
    if (difference?.excuse) excused.set(difference.excuse, (excused.get(difference.excuse) ?? 0) + 1);
    else if (difference && ++totals.different <= told) await tell(plan, difference);
    if ((i + 1) % 1000 === 0) process.stderr.write(`${i + 1} played\n`);
  }
} catch (error) {
  fail(/** @type {Error} */ (error).message);
} finally {
  for (const side of Object.values(sides)) side.end();
}
for (const [name, times] of excused) console.log(`${times} differ as they should: ${name}, ${ALLOWED.find((each) => each.name === name)?.why}`);
console.log(`${count} sequences and ${totals.restored} restored checkpoints, ${totals.lines} lines alike: ${totals.different === 0 ? "no difference" : `${totals.different} differ`}`);
process.exitCode = totals.different === 0 ? 0 : 1;

/** Prints a difference, and the shortest sequence that was found to show one. @param {import("./plan.mjs").Plan} plan @param {import("./compare.mjs").Difference} difference */
async function tell(plan, difference) {
  console.log(`\nseed ${plan.seed}: ${difference.what} differs at line ${difference.line + 1}`);
  const short = await shrink(plan, async (shorter) => (await shown(shorter)) !== undefined);
  const { seed: _, steps, after, ...rest } = short;
  const last = await shown(short);
  console.log(`  the shortest sequence: ${JSON.stringify(rest)}`);
  for (const step of steps) console.log(`    ${JSON.stringify(step)}`);
  for (const step of after) console.log(`    restored: ${JSON.stringify(step)}`);
  // Chance may have had a part in it.
  if (!last) console.log("  played once more it shows none: something is not reproducible");
  const { what, before, ...lines } = last ?? difference;
  console.log(`  ${what}:`);
  for (const line of before) console.log(`      ${cut(line)}`);
  console.log(`    - ${around(lines.old, lines.current)}\n    + ${around(lines.current, lines.old)}\n`);
}

/** @param {string} line */
function cut(line) {
  return line.length > 300 ? `${line.slice(0, 300)} …` : line;
}

/** The part of a line where it begins to differ from the other. @param {string} line @param {string} other */
function around(line, other) {
  let at = 0;
  while (at < line.length && line[at] === other[at]) at++;
  const from = at > 200 ? at - 120 : 0;
  return `${from > 0 ? `${line.slice(0, 60)} … ` : ""}${line.slice(from, from + 500)}${line.length > from + 500 ? " …" : ""}`;
}
