// @ts-check
// What one sequence shows of two packages: each plays it, and each goes on from the checkpoints of both.

/** @import { Plan } from "./plan.mjs" */
/** @import { Saved } from "./world.mjs" */
/** @import { Allowed } from "./allowed.mjs" */
/** @typedef {(plan: Plan, from?: Saved) => Promise<{ text: string, saved?: Saved }>} Player Plays a plan, from its beginning or from a checkpoint. */
/** @typedef {{ what: string, line: number, old: string, current: string, before: string[], excuse?: string }} Difference `excuse`: the name of what allows it. */

/**
 * Plays a sequence with both. Returns the first difference there is, if there is one, and how many lines were the same.
 * @param {Plan} plan @param {{ old: Player, current: Player }} players @param {Allowed[]} allowed
 * @returns {Promise<{ lines: number, restored: number, difference?: Difference }>}
 */
export async function compare(plan, { old, current }, allowed) {
  const [before, after] = await Promise.all([old(plan), current(plan)]);
  let lines = 0;
  let restored = 0;
  let found = firstDifference("the sequence itself", before.text, after.text, allowed);
  lines += found.lines;
  /** Those of both; often they are one and the same. @type {Map<string, [string, Saved]>} */
  const checkpoints = new Map();
  if (before.saved) checkpoints.set(before.saved.text, ["the old package", before.saved]);
  if (after.saved && !checkpoints.has(after.saved.text)) checkpoints.set(after.saved.text, ["the present package", after.saved]);
  for (const [whose, saved] of checkpoints.values()) {
    if (found.difference && !found.difference.excuse) break;
    const [one, other] = await Promise.all([old(plan, saved), current(plan, saved)]);
    restored++;
    const further = firstDifference(`a checkpoint that ${whose} made, gone on with in both`, one.text, other.text, allowed);
    lines += further.lines;
    if (further.difference && (!found.difference || !further.difference.excuse)) found = further;
  }
  return { lines, restored, ...(found.difference && { difference: found.difference }) };
}

/**
 * The first line that differs, and whether that is wanted.
 * @param {string} what @param {string} old @param {string} current @param {Allowed[]} allowed
 * @returns {{ lines: number, difference?: Difference }}
 */
export function firstDifference(what, old, current, allowed) {
  if (old === current) return { lines: lineCount(old) };
  const alike = (/** @type {string} */ line) => allowed.reduce((text, { lines }) => lines?.(text) ?? text, line);
  const [ones, others] = [old.split("\n"), current.split("\n")];
  const at = ones.findIndex((line, i) => alike(line) !== alike(others[i] ?? ""));
  const line = at < 0 ? ones.length : at;
  if (at < 0 && others.length <= ones.length) return { lines: ones.length };
  const pair = [ones[line] ?? "(nothing)", others[line] ?? "(nothing)"];
  const excuse = allowed.find(({ excuses }) => excuses?.(pair[0] ?? "", pair[1] ?? ""))?.name;
  return { lines: line, difference: { what, line, old: pair[0] ?? "", current: pair[1] ?? "", before: ones.slice(Math.max(0, line - 3), line), ...(excuse !== undefined && { excuse }) } };
}

/** @param {string} text */
function lineCount(text) {
  let count = 1;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) count++;
  return count;
}
