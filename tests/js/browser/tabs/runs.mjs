// @ts-check
// Runs of an agent that several tabs share, whose owner ends again and again, in any browser: by a crash, by leaving its page,
// by being closed. Who survives must have heard one whole run, with the history of an undisturbed one, and nothing paid twice.

import assert from "node:assert/strict";
import { expected, interrupted, plain, runLife, tooOften } from "../../checkpoint/lives.mjs";
import { world } from "../../checkpoint/world.mjs";
import { checkTrace } from "../../grammar.mjs";
import { until } from "../tabs.mjs";

/** @import { Tab } from "../tabs.mjs" */
/** @typedef {Awaited<ReturnType<import("./site.mjs").tabsSite>>} Site */
/**
 * How many milliseconds a tab took to take over: from the end of one owner to the first event that the observer heard of the next.
 * `browser` is the part until the lock was given, or the owner said that it leaves; `ours` is the rest.
 * @typedef {{ how: string, total: number, browser: number, ours: number }} Takeover
 */
/** A browser, and how a tab of it can end. @template [T=Tab & { crash?(): Promise<unknown> }] @typedef {{ tab(): Promise<T>, hows: string[] }} Browser */

/** An owner ends at every so many events. */
const STEP = 30;
const OWNERS = 3;
/** A run takes a second, on a slow machine more. */
const RUN_MS = 60_000;

/**
 * @param {Browser} browser @param {Site} site @param {number[]} numbers of the runs: run n ends its owners at the events n, n + 30, n + 60
 * @returns {Promise<Takeover[]>}
 */
export async function play(browser, site, numbers) {
  const whole = plain((await runLife(world(), { onEvent() {}, die() {} })).messages);
  /** @type {Takeover[]} */
  const takeovers = [];
  const observer = await open(browser, site, "observer");
  for (const n of numbers) takeovers.push(...(await playOne(browser, site, observer, n, whole)));
  await observer.close();
  return takeovers;
}

/** @template {Tab} T @param {Browser<T>} browser @param {Site} site @param {string} name @returns {Promise<T>} */
export async function open(browser, site, name) {
  const tab = await browser.tab();
  await tab.open(`${site.address}?tab=${encodeURIComponent(name)}`);
  await until(tab, "document.documentElement.dataset.ready === ''");
  return tab;
}

/** @param {Browser} browser @param {Site} site @param {Tab} observer @param {number} n @param {any[]} whole */
async function playOne(browser, site, observer, n, whole) {
  const id = `run ${n}`;
  const how = browser.hows[n % browser.hows.length] ?? "";
  const ends = Array.from({ length: OWNERS }, (_, i) => n + i * STEP);
  /** @type {Map<string, Tab & { crash?(): Promise<unknown> }>} */
  const owners = new Map();
  /** @type {number[]} */
  const ended = [];
  site.onEnd((told) => {
    const tab = owners.get(told.tab);
    ended.push(told.at);
    if (told.how === "crash") void tab?.crash?.().catch(() => {});
    if (told.how === "close") void tab?.close().catch(() => {});
    if (told.how !== "navigate") owners.delete(told.tab);
  });
  for (let i = 0; i < OWNERS; i++) {
    const name = `${id} ${i}`;
    const tab = await open(browser, site, name);
    owners.set(name, tab);
    assert.equal(await tab.run(`page.join(${JSON.stringify(id)}, ${JSON.stringify({ ends, how })})`), i === 0 ? "owner" : "follower");
  }
  await observer.run(`page.join(${JSON.stringify(id)})`);
  await observer.run(`void page.agent.prompt("Go").then(({ stopReason, error }) => (page.stopReason = error?.message ?? stopReason))`);
  const stopReason = await until(observer, "page.stopReason", RUN_MS).catch(async () => {
    const told = "({ role: page.agent.role, roles: page.roles, errors: page.errors, events: page.events.map(({ type }) => type).join(' ') })";
    throw new Error(`${id} (${how} at ${ends}) does not end: ${JSON.stringify([await observer.run(told), ...(await Promise.all([...owners.values()].map((tab) => tab.run(told).catch(String))))])}`);
  });
  const { events, heardAt, history, errors, owners: took } = await observer.run("({ events: page.events, heardAt: page.heardAt, errors: page.errors, owners: page.owners.splice(0), history: page.history() })");
  const ran = site.ran.get(id) ?? [];
  const what = `${id} (${how} at ${ends}): ${events.map((/** @type {any} */ { type }) => type).join(" ")}`;
  assert.deepEqual([stopReason, errors], ["completed", []], what);
  checkTrace(events.filter((/** @type {any} */ { type }) => type !== "run_resumed"));
  assert.deepEqual(history, expected(whole, interrupted(events)), what);
  assert.equal(tooOften(ran, events, history), undefined, what);
  const resumed = events.flatMap((/** @type {any} */ { type }, /** @type {number} */ at) => (type === "run_resumed" ? [heardAt[at]] : []));
  // One that ends at an event of the owner before it has not resumed anything yet.
  assert.ok(resumed.length >= 1 && resumed.length <= ended.length, `${resumed.length} were resumed, ${ended.length} ended, ${what}`);
  await observer.run("page.leave()");
  for (const tab of owners.values()) await tab.close().catch(() => {});
  return resumed.map((/** @type {number} */ at) => {
    const end = ended.findLast((end) => end <= at) ?? 0;
    const from = Math.max(end, took.findLast((/** @type {{ from: number }} */ { from }) => from <= at)?.from ?? end);
    return { how, total: Math.round(at - end), browser: Math.round(from - end), ours: Math.round(at - from) };
  });
}

/** @param {number[]} numbers */
export const medianOf = (numbers) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? NaN;

/** @param {Takeover[]} takeovers */
export function summaryOf(takeovers) {
  const part = (/** @type {"total" | "browser" | "ours"} */ name) => {
    const all = takeovers.map((takeover) => takeover[name]);
    return `${medianOf(all)} ms, at most ${Math.max(...all)}`;
  };
  return `${takeovers.length} tabs took over in ${part("total")}: until they could ${part("browser")}, from then on ${part("ours")}`;
}
