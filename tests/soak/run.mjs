// @ts-check
// Runs the soak:   node tests/soak/run.mjs [--minutes N | --seconds N] [--seed N] …   (README.md says the rest)

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { dice } from "../js/dice.mjs";
import { nodeHost, sleep, workerdHost } from "./hosts.mjs";
import { Ledger } from "./ledger.mjs";
import { FEWEST, flatness } from "./memory.mjs";
import { report } from "./report.mjs";
import { SABOTAGE } from "./sabotage.mjs";
import { planOf, SCENARIOS } from "./scenarios.mjs";
import { serve } from "./server.mjs";

const text = { type: /** @type {const} */ ("string") };
const { values: given } = parseArgs({ options: { minutes: text, seconds: text, seed: text, life: text, only: text, hosts: text, lives: text, patience: text, sabotage: text, "at-once": text, verbose: { type: "boolean" } } });

/** @param {string} name @param {number} usual */
function number(name, usual) {
  const value = Number(/** @type {any} */ (given)[name] ?? usual);
  if (!(value >= 0)) misused(`--${name} wants a number`);
  return value;
}

/** @param {string} why @returns {never} */
function misused(why) {
  console.error(`error: ${why}`);
  process.exit(2);
}

/** @param {string} name @param {string[]} known */
function listed(name, known) {
  const words = String(/** @type {any} */ (given)[name] ?? "").split(",").filter(Boolean);
  for (const word of words) if (!known.includes(word)) misused(`--${name}: there is no \`${word}\`; there is ${known.join(", ")}`);
  return words;
}

const seed = number("seed", 1);
const duration = given.minutes === undefined ? number("seconds", 60) * 1000 : number("minutes", 1) * 60_000;
const only = listed("only", Object.keys(SCENARIOS));
const [sabotage] = listed("sabotage", SABOTAGE);
const hosts = given.life ? [given.life.charAt(0)] : given.hosts ? listed("hosts", ["n", "v", "w"]) : ["n", "v", "w"];
const atOnce = given.life ? 1 : number("at-once", 100);
const most = given.life ? 1 : number("lives", 1e9);
const first = given.life ? Number(given.life.slice(1)) : 0;

const from = Date.now();
const ledger = new Ledger(seed, only);
const servers = await serve(ledger);
const orders = { models: servers.models, control: servers.control, seed, only, ...(sabotage && { sabotage }), verbose: given.verbose === true, grace: Math.min(20_000, number("patience", 60) * 500) };
const isOver = () => Date.now() - from > duration;
/** How long lives are lived between two looks at the memory. */
const stretch = Math.max(1200, duration / 40);
/** When a life that does not end is given up. */
const patience = number("patience", 60) * 1000;
/** @type {{ host: string, windows: any[] }[]} */
const memory = [];

/** Waits, but not for ever. @template T @param {Promise<T>} promise @param {string} what @returns {Promise<T | undefined>} */
async function patiently(promise, what) {
  /** @type {any} */
  let timer;
  const late = new Promise((resolve) => { timer = setTimeout(() => resolve("late"), patience); });
  const result = await Promise.race([promise, late]);
  clearTimeout(timer);
  if (result !== "late") return /** @type {T} */ (result);
  ledger.fault("the soak itself failed", "", `${what} took longer than ${patience} ms; not ended: ${ledger.unended().slice(0, 10)}`);
}

/** @param {any} measured @param {any[]} windows @param {string} host */
function look(measured, windows, host) {
  if (!measured) return;
  windows.push({ ...measured, lives: ledger.counts.lives });
  if (measured.timers > 0) ledger.fault("something is left open", "", `${host}: ${measured.timers} timers run after all lives have ended`);
}

/** The Node process that is never killed, so that its memory can be watched. */
async function steady() {
  /** @type {any[]} */
  const windows = [];
  memory.push({ host: "node", windows });
  /** @type {(message: any) => void} */
  let answer = () => {};
  let idle = false;
  const child = nodeHost({ ...orders, letter: "n", next: first, most, atOnce }, (message) => (message.idle ? (idle = true) : answer(message.measured)));
  const ask = (/** @type {any} */ order) => {
    const measured = new Promise((/** @type {(value: any) => void} */ resolve) => { answer = resolve; });
    child.send(order);
    return patiently(Promise.race([measured, child.gone.then(() => undefined)]), "Node");
  };
  // A slow machine goes on beyond its time, until there is enough to compare.
  const isDone = () => idle || (isOver() && windows.length >= FEWEST - 1);
  while (!isDone()) {
    await Promise.race([until(stretch, isDone), child.gone]);
    if (isDone()) break;
    const measured = await ask({ pause: true });
    if (!measured) break;
    look(measured, windows, "node");
    child.send({ go: true });
  }
  const last = await ask({ end: true, measure: true });
  look(last, windows, "node");
  if (last?.held > 2) ledger.fault("a leak", "", `node: ${last.held} agents that nobody holds were not collected`);
  await patiently(child.gone, "the end of the Node process");
  child.kill();
}

/** @param {number} ms @param {() => boolean} holds */
async function until(ms, holds) {
  const end = Date.now() + ms;
  while (Date.now() < end && !holds()) await sleep(Math.min(100, ms));
}

/** The Node process that is killed again and again; the last one brings everything to its end. */
async function victim() {
  const folder = mkdtempSync(join(tmpdir(), "turnwheel-soak-"));
  const roll = dice(seed + 99);
  let begun = first;
  let idle = false;
  for (let kills = 0; ; kills++) {
    const resume = ledger.unended().filter((id) => id.startsWith("v"));
    const numbers = [begun - 1, ...ledger.begun("v")];
    begun = Math.max(...numbers) + 1;
    idle = false;
    const child = nodeHost({ ...orders, letter: "v", next: begun, most: Math.max(0, most - begun + first), atOnce: Math.max(1, Math.ceil(atOnce / 3)), folder, resume }, (message) => { idle ||= message.idle === true; });
    await Promise.race([until(700 + roll(1500), () => idle || isOver()), child.gone]);
    if (isOver() || idle) {
      child.send({ end: true });
      const ended = await patiently(child.gone, "the end of the victim");
      if (ended?.code !== 0) ledger.fault("the soak itself failed", "", `the victim ended with ${ended?.code}`);
      child.kill();
      break;
    }
    child.kill();
    await child.gone;
    ledger.counts.kills = kills + 1;
  }
  rmSync(folder, { recursive: true, force: true });
}

async function workerd() {
  const server = await workerdHost(orders, ledger);
  /** @type {any[]} */
  const windows = [];
  memory.push({ host: "workerd", windows });
  let next = first;
  let left = most;
  const lane = async (/** @type {number} */ end) => {
    while (Date.now() < end && !isOver() && left-- > 0) await server.live(`w${next++}`);
  };
  while (!isOver() && left > 0) {
    const end = Date.now() + stretch;
    await patiently(Promise.all(Array.from({ length: Math.ceil(atOnce / 2) }, () => lane(end))), "workerd");
    const { wasm, rejections } = await server.state();
    for (const error of rejections) ledger.fault("an unhandled rejection", "", `workerd: ${error}`);
    look({ heap: await server.heap(), wasm, timers: 0 }, windows, "workerd");
  }
  await server.close();
}

const RUN = /** @type {Record<string, () => Promise<void>>} */ ({ n: steady, v: victim, w: workerd });
if (given.life) console.log(`${given.life}: ${JSON.stringify(planOf(given.life, seed, only), null, 1)}`);
const failed = (/** @type {any} */ error) => ledger.fault("the soak itself failed", "", String(error?.stack ?? error));
await Promise.all(hosts.map((host) => RUN[host]?.().catch(failed)));
await sleep(300);
ledger.close();
await servers.close();

const judged = memory.map(({ host, windows }) => ({ host, windows, flat: flatness(windows) }));
for (const { host, flat } of judged) for (const { name, middle, end, lives, flat: isFlat } of flat) if (!isFlat) ledger.fault("a leak", "", `${host}: ${name} grew from ${middle} to ${end} bytes in ${lives} lives`);
const play = (/** @type {string} */ id) => `cargo xtask soak --seed ${seed} --life ${id.replace(/x.*/, "")}${only.length ? ` --only ${only}` : ""}${sabotage ? ` --sabotage ${sabotage}` : ""} --verbose`;
const { text: words, failed: claims } = report(ledger, judged, play);
console.log(words);
process.exitCode = claims > 0 ? 1 : 0;
