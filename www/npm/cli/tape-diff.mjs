// @ts-check
// npx turnwheel tape diff A B: the first thing in which two tapes differ.

import { readFileSync } from "node:fs";
import { ready, replay, Tape } from "../tape.js";
import { parsed, refuse, say, textOf } from "./terminal.mjs";
import { usageOf } from "./usage.mjs";

/** @import { TapeEntry } from "../tape.js" */
/** Something on a tape: how many events are before it, what it is, and what of it is compared. @typedef {{ n: number, what: string, value: any }} Step */

/** What differs between two recordings of the same. */
const TIMES = ["at", "timestamp", "createdAt", "delayMs"];
const IDS = ["runId", "sessionId", "callId", "id"];
/** What an app puts in: a time in it is a value like any other. */
const OPAQUE = ["arguments", "details", "data", "metadata", "set"];
/** How much of a value is shown. */
const SHOWN = 100;

/** @param {string[]} args @returns {Promise<number>} the exit code */
export async function tapeDiff(args) {
  let given;
  try {
    given = parsed(args, [], ["exact"]);
  } catch (error) {
    return refuse(`${textOf(error)}\n\n${usageOf("tape diff")}`);
  }
  const { values, positionals: [a, b, ...more] } = given;
  if (values.help) return say(usageOf("tape diff"));
  if (a === undefined || b === undefined || more.length > 0) return refuse(`tape diff takes two tapes: npx turnwheel tape diff A B\n\n${usageOf("tape diff")}`);
  try {
    await ready();
    const [left, right] = [stepsOf(a, values.exact), stepsOf(b, values.exact)];
    const i = left.findIndex((step, i) => JSON.stringify([step.what, step.value]) !== JSON.stringify([right[i]?.what, right[i]?.value]));
    if (i < 0 && left.length === right.length) return say(`${a} and ${b} are the same: ${left.length} entries`);
    const at = i < 0 ? left.length : i;
    return differ({ file: a, step: left[at] }, { file: b, step: right[at] }, at);
  } catch (error) {
    return refuse(textOf(error));
  }
}

/** @param {string} file @param {boolean} isExact @returns {Step[]} */
function stepsOf(file, isExact) {
  let entries;
  try {
    entries = replay(Tape.parse(readFileSync(file, "utf8"))).entries();
  } catch (error) {
    throw new Error(`${file} cannot be compared: ${textOf(error)}`);
  }
  if (isExact) return entries.map(({ n, messages, ...rest }) => ({ n, what: named(/** @type {TapeEntry} */ ({ n, messages, ...rest })), value: rest }));
  return joined(entries.filter(({ kind }) => kind !== "note"));
}

/**
 * The same without what differs between two recordings. Pieces of an answer that add to the same block are one, and the events that
 * follow from them are left out.
 * @param {TapeEntry[]} entries @returns {Step[]}
 */
function joined(entries) {
  /** @type {Map<string, string>} */
  const ids = new Map();
  /** @type {Step[]} */
  const steps = [];
  for (const entry of entries) {
    if (entry.kind === "event" && entry.event.type === "message_update") continue;
    const { n, messages, ...rest } = entry;
    const step = { n, what: named(entry), value: plain(rest, ids) };
    const [reply, last] = [step.value.reply, steps.at(-1)];
    const before = last?.what === step.what ? last.value.reply : undefined;
    const isSame = typeof reply?.delta === "string" && typeof before?.delta === "string" && before.type === reply.type && before.contentIndex === reply.contentIndex;
    if (isSame) before.delta += reply.delta;
    else steps.push(step);
  }
  return steps;
}

/** @param {TapeEntry} entry */
function named(entry) {
  if (entry.kind === "event") return `event ${entry.event.type}`;
  if (entry.kind === "start") return `effect ${entry.name}`;
  if (entry.kind === "input") return `input ${entry.input["in"]}`;
  if (entry.kind === "rule") return `rule ${entry.rule}`;
  return "name" in entry ? `${entry.kind} ${entry.kind === "cancel" ? "of" : "to"} ${entry.name || "all"}` : entry.kind;
}

/** Without times; an id is the number of its first appearance. @param {any} value @param {Map<string, string>} ids @returns {any} */
function plain(value, ids) {
  if (Array.isArray(value)) return value.map((item) => plain(item, ids));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).flatMap(([name, item]) => {
    // `to` counts the events and effects before an input.
    if (TIMES.includes(name) || (name === "to" && "in" in value)) return [];
    if (OPAQUE.includes(name)) return [[name, item]];
    if (!IDS.includes(name) || typeof item !== "string") return [[name, plain(item, ids)]];
    if (!ids.has(item)) ids.set(item, `#${ids.size + 1}`);
    return [[name, ids.get(item)]];
  }));
}

/** @typedef {{ file: string, step: Step | undefined }} Side */

/** @param {Side} a @param {Side} b @param {number} i */
function differ(a, b, i) {
  const [left, right] = [a.step, b.step];
  const n = left?.n ?? right?.n ?? 0;
  const what = left?.what === right?.what ? `: ${left?.what}` : "";
  const where = `${a.file} and ${b.file} differ at entry ${i + 1}, after ${n - (/^event/.test((left ?? right)?.what ?? "") ? 1 : 0)} events`;
  if (left && right && what !== "") {
    const { path, values: [one, other] } = within(left.value, right.value, "");
    report(`${where}${what}${path ? `, ${path}` : ""}`, a.file, b.file, ...cut(one, other));
  } else report(where, a.file, b.file, ...cutEach(left), ...cutEach(right));
  return 1;
}

/** @param {string} title @param {string} a @param {string} b @param {string} one @param {string} other */
function report(title, a, b, one, other) {
  const width = Math.max(a.length, b.length);
  say(`${title}\n  ${a.padEnd(width)}  ${one}\n  ${b.padEnd(width)}  ${other}`);
}

/** @param {Step | undefined} step @returns {[string]} */
const cutEach = (step) => [step ? `${step.what}: ${cut(step.value, undefined)[0]}` : "ends here"];

/** The innermost place in which two values differ. @param {any} one @param {any} other @param {string} path @returns {{ path: string, values: [any, any] }} */
function within(one, other, path) {
  const areBoth = [one, other].every((value) => typeof value === "object" && value !== null) && Array.isArray(one) === Array.isArray(other);
  if (!areBoth) return { path, values: [one, other] };
  for (const name of new Set([...Object.keys(one), ...Object.keys(other)])) {
    if (JSON.stringify(one[name]) === JSON.stringify(other[name])) continue;
    const inside = Array.isArray(one) ? `${path}[${name}]` : `${path}${path ? "." : ""}${name}`;
    return within(one[name], other[name], inside);
  }
  return { path, values: [one, other] };
}

/** Both values short, from a little before the place where they begin to differ. @param {any} one @param {any} other @returns {[string, string]} */
function cut(one, other) {
  const [a, b] = [one, other].map((value) => (value === undefined ? "nothing" : JSON.stringify(value)));
  let same = 0;
  while (other !== undefined && same < a.length && a[same] === b[same]) same += 1;
  const from = same > SHOWN / 2 ? same - 20 : 0;
  const shown = (/** @type {string} */ text) => `${from > 0 ? "…" : ""}${text.slice(from, from + SHOWN)}${text.length > from + SHOWN ? "…" : ""}`;
  return [shown(a), shown(b)];
}
