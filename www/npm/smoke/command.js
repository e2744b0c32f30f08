// @ts-check
// The command: what the user wants, the checks one after the other, a line for each, and the file with their results.

import { open, rm, stat, writeFile } from "node:fs/promises";
import { didYouMean, misuse } from "../shared.js";
import { CHECKS } from "./checks.js";
import { addressOf, checkServer, isLocal, keyOf, masked, modelAt, onlyModel, shownAddress } from "./servers.js";

/** @import { Bench, Verdict } from "./checks.js" */
/** @typedef {{ server?: string, "base-url"?: string, model?: string, "key-env"?: string, out?: string, only?: string, skip?: string, timeout?: string }} Values what stands on the command line */
/**
 * `say` and `complain` write a line that a terminal can show, and give the exit code; `harmless` is how they do it.
 * @typedef {{ env: Record<string, string | undefined>, versions: { turnwheel: string, node: string }, say(text: string): number, complain(text: string): number, harmless(text: string): string }} Host
 */
/** @typedef {{ server: string, baseUrl: string, model: string, key: string | undefined, names: string[], seconds: number, file: string, bench: Bench }} Plan */

/** What is kept of an answer or an error. */
const MAX_LETTERS = 200;
/** How much longer than its time limit a check may take before it counts as hanging. */
const GRACE_MS = 5_000;
const MAX_SECONDS = 3_600;

/** @param {Values} values @param {Host} host @returns {Promise<number>} the exit code */
export async function smoke(values, host) {
  try {
    const plan = await planOf(values, host);
    host.say(`${plan.server}, ${plan.model}, at ${shownAddress(plan.baseUrl)}`);
    const date = new Date();
    const checks = await checked(plan, host);
    return await reported(plan, date, checks, host);
  } catch (error) {
    return host.complain(error instanceof Error ? error.message : String(error));
  }
}

/** @param {Values} values @param {Host} host @returns {Promise<Plan>} */
async function planOf(values, { env }) {
  const server = checkServer(values.server);
  const names = chosen(values.only, values.skip);
  const seconds = Number(values.timeout ?? 60);
  if (!(seconds > 0 && seconds <= MAX_SECONDS)) throw misuse(`--timeout is a number of seconds, at most ${MAX_SECONDS}`);
  const baseUrl = addressOf(server, values["base-url"]);
  const key = keyOf(server, values["key-env"], env);
  const id = values.model || (await onlyModel(server, baseUrl, key));
  /** @type {Bench["model"]} */
  const model = (listening) => modelAt(server, id, { baseUrl, apiKey: key, ...(listening && { fetch: listening }) }, values["base-url"] !== undefined);
  // What is wrong with the model is told before anything is asked.
  model();
  const file = values.out ?? `turnwheel-smoke-${named(server)}-${named(id)}-${new Date().toISOString().slice(0, 19).replaceAll(":", "")}Z.json`;
  await checkWritable(file);
  return { server, baseUrl, model: id, key, names, seconds, file, bench: { model, ms: seconds * 1000, isLocal: isLocal(server, baseUrl) } };
}

/** The names of the checks that are wanted. @param {string | undefined} only @param {string | undefined} skip */
function chosen(only, skip) {
  const all = Object.keys(CHECKS);
  const list = (/** @type {string} */ option, /** @type {string | undefined} */ text) => {
    const names = text?.split(",").map((name) => name.trim()).filter((name) => name !== "");
    for (const name of names ?? []) if (!all.includes(name)) throw misuse(`${option}: there is no check ${JSON.stringify(name)}${didYouMean(name, all)}\nThere are ${all.join(", ")}`);
    return names;
  };
  const [wanted = all, unwanted = []] = [list("--only", only), list("--skip", skip)];
  const names = all.filter((name) => wanted.includes(name) && !unwanted.includes(name));
  if (names.length === 0) throw misuse(`--only and --skip leave no check of ${all.join(", ")}`);
  return names;
}

/** A part of a file's name: some hosts take fewer letters than ids have. @param {string} text */
const named = (text) => text.replace(/[^\w.-]+/g, "-").replace(/^[.-]+|[.-]+$/g, "").slice(0, 80) || "model";

/** Nobody wants to hear after all checks that their results cannot be written. @param {string} file */
async function checkWritable(file) {
  const isThere = await stat(file).then(() => true, () => false);
  try {
    await (await open(file, "a")).close();
  } catch (error) {
    throw misuse(`the result cannot be written to ${file} (${/** @type {any} */ (error)?.code ?? error}); name another file with --out FILE`);
  }
  if (!isThere) await rm(file, { force: true });
}

/** @typedef {{ name: string, ms: number } & Verdict} Checked */

/** @param {Plan} plan @param {Host} host */
async function checked({ names, bench, key }, { say }) {
  /** @type {Checked[]} */
  const all = [];
  for (const name of names) {
    const from = performance.now();
    const verdict = hopeless(all) ?? (await limited(name, bench));
    const one = { ...verdict, name, ms: Math.round(performance.now() - from), detail: short(verdict.detail, key) };
    all.push(one);
    const word = { passed: "ok", failed: "FAILED", skipped: "skipped" }[one.result];
    say(`${word.padEnd(7)} ${name.padEnd(10)} ${(one.ms / 1000).toFixed(1).padStart(5)} s  ${one.detail}`);
  }
  return all;
}

/** Why no further check is worth a try: a server that is not there, or does not know the key. @param {Checked[]} before @returns {Verdict | undefined} */
function hopeless(before) {
  const [first] = before;
  const isHopeless = before.length > 0 && first?.result === "failed" && ["auth", "network"].includes(first.code ?? "");
  return isHopeless ? { result: "skipped", detail: `not tried: ${first.name} failed with ${first.code}` } : undefined;
}

/** One check, within its time. @param {string} name @param {Bench} bench @returns {Promise<Verdict>} */
async function limited(name, bench) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  /** @type {Promise<Verdict>} */
  const late = new Promise((resolve) => {
    timer = setTimeout(() => resolve({ result: "failed", detail: `the run hangs: it did not end at its time limit of ${bench.ms / 1000} s` }), bench.ms + GRACE_MS);
  });
  try {
    return await Promise.race([CHECKS[name]?.(bench) ?? late, late]);
  } catch (error) {
    return { result: "failed", detail: `it throws: ${error instanceof Error ? error.message : error}` };
  } finally {
    clearTimeout(timer);
  }
}

/** One line of a text, without the key. @param {string} text @param {string | undefined} key */
function short(text, key) {
  const line = masked(text, key).replace(/\s+/g, " ").trim();
  // By letters: half a pair of surrogates is none.
  const letters = Array.from(line.slice(0, 2 * MAX_LETTERS));
  return letters.length > MAX_LETTERS ? `${letters.slice(0, MAX_LETTERS - 1).join("")}…` : line;
}

/** @param {Plan} plan @param {Date} date @param {Checked[]} checks @param {Host} host */
async function reported({ server, baseUrl, model, key, file }, date, checks, { versions, say, complain, harmless }) {
  const count = (/** @type {string} */ result) => checks.filter((check) => check.result === result).length;
  const sum = (/** @type {(usage: NonNullable<Verdict["usage"]>) => number} */ of) => checks.reduce((all, { usage }) => all + (usage ? of(usage) : 0), 0);
  const told = {
    date: date.toISOString(),
    turnwheel: versions.turnwheel,
    server,
    baseUrl: shownAddress(baseUrl),
    model,
    node: versions.node,
    checks: checks.map(({ name, result, ms, detail, usage }) => ({ name, result, ms, detail, usage: usage ?? null })),
  };
  // Within JSON, what is harmless says the same.
  const written = await writeFile(file, `${harmless(masked(JSON.stringify(told, undefined, 2), key))}\n`).then(() => undefined, (/** @type {any} */ error) => error);
  say(`\n${count("passed")} passed, ${count("failed")} failed, ${count("skipped")} skipped; ${sum((usage) => usage.input + usage.cacheRead + usage.cacheWrite)} tokens in, ${sum(({ output }) => output)} out`);
  if (written) return complain(`the result cannot be written to ${file} (${written.code ?? written})`);
  say(`${file} is written`);
  return count("failed") > 0 ? 1 : 0;
}
