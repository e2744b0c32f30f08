// @ts-check
// A fleet under siege: the processes of www/examples/fleet behind their router, pages that ask, and everything that happens to
// processes and databases. Counts what became of it.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFile, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { freePort } from "./stores.mjs";
import { Story } from "./pages.mjs";

const HERE = fileURLToPath(new URL(".", import.meta.url));
/** A pause that keeps no process alive. @param {number} ms */
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms).unref());
/** How long a fleet that is left in peace may need to end its runs. */
const PATIENCE_MS = 60_000;

/**
 * @typedef {object} Siege
 * @property {string} folder the example, installed
 * @property {string} store
 * @property {string} [node] the program
 * @property {number} seconds
 * @property {number} [processes]
 * @property {number} [agents]
 * @property {number} [pages] for each agent
 * @property {number} [ttlMs]
 * @property {() => Promise<void>} [database] does something to the database
 */

/** Besieges a fleet. Returns the ledger. @param {Siege} how */
export async function besiege({ folder, store, node = process.execPath, seconds, processes = 4, agents = 6, pages = 2, ttlMs = 1_500, database }) {
  await copyFile(join(HERE, "siege-agent.js"), join(folder, "agent.js"));
  await copyFile(join(HERE, "clocks.mjs"), join(folder, "clocks.mjs"));
  const log = join(folder, "log.jsonl");
  await writeFile(log, "");
  /** @type {Record<string, number>} */
  const done = { killed: 0, stopped: 0, "handed over": 0, ...(database && { "database gone": 0 }) };
  let said = "";
  const start = (/** @type {string} */ script, /** @type {Record<string, string | number>} */ env) => {
    const args = script === "server.js" ? ["--import", "./clocks.mjs", script] : [script];
    const child = spawn(node, ["--no-warnings", ...args], { cwd: folder, env: { ...process.env, ...Object.fromEntries(Object.entries(env).map(([name, value]) => [name, String(value)])) }, stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => (said = (said + text).slice(-20_000)));
    return child;
  };
  const ports = await Promise.all(Array.from({ length: processes }, freePort));
  const serve = (/** @type {number} */ port) => start("server.js", { PORT: port, STORE: store, TTL_MS: ttlMs, KEEP_ALIVE_MS: 1_000, GRACE_MS: 1_000, IDLE_MS: 2_000, LOG: log });
  const running = ports.map(serve);
  const port = await freePort();
  const router = start("router.js", { PORT: port, SERVERS: ports.map((one) => `http://127.0.0.1:${one}`).join(), SILENCE_MS: ttlMs });
  await Promise.all([router, ...running].map(({ stdout }) => once(stdout, "data")));

  const until = Date.now() + seconds * 1000;
  const stories = Array.from({ length: agents }, (_, i) => new Story(`http://127.0.0.1:${port}/agents/agent-${i}`, pages));
  const telling = Promise.all(stories.map((story) => story.tell(() => Date.now() >= until)));
  const attack = async () => {
    for (let round = 0; Date.now() < until - 1_000; round++) {
      await pause(500 + Math.random() * 700);
      const at = Math.floor(Math.random() * processes);
      const child = /** @type {import("node:child_process").ChildProcess} */ (running[at]);
      const what = round % 4;
      if (what === 0 || what === 2) {
        child.kill(what === 0 ? "SIGKILL" : "SIGTERM");
        done[what === 0 ? "killed" : "handed over"] += 1;
        await Promise.race([once(child, "exit"), pause(10_000).then(() => child.kill("SIGKILL"))]);
        running[at] = serve(/** @type {number} */ (ports[at]));
      } else if (what === 1) {
        child.kill("SIGSTOP");
        setTimeout(() => child.kill("SIGCONT"), ttlMs * (0.5 + Math.random() * 1.5));
        done["stopped"] += 1;
      } else if (database && round % 8 === 3) {
        await database();
        done["database gone"] += 1;
      }
    }
  };
  try {
    await attack();
    const isLate = await Promise.race([telling, pause(PATIENCE_MS + Math.max(0, until - Date.now())).then(() => "late")]) === "late";
    const lines = (await readFile(log, "utf8")).split("\n").filter(Boolean).map((line) => JSON.parse(line));
    const counts = { ...judge(lines), ...done, "runs begun": stories.reduce((sum, { begun }) => sum + begun, 0), "runs ended": stories.flatMap(({ ended }) => ended).length };
    const endings = stories.flatMap(({ ended }) => ended).filter((end) => end !== "completed");
    assert.deepEqual(endings, [], `runs that did not complete: ${endings.join("\n")}\n${said.slice(-3_000)}`);
    assert.equal(isLate, false, `runs have not ended: ${JSON.stringify(counts)}\n${said.slice(-3_000)}`);
    let events = 0;
    for (const story of stories) events += await story.check();
    return { ...counts, "events that every page heard": events };
  } finally {
    for (const story of stories) story.end();
    for (const child of [router, ...running]) child.kill("SIGKILL");
  }
}

/** What the processes wrote down. @param {any[]} lines */
export function judge(lines) {
  /** The newest fence of each agent. @type {Map<string, number>} */
  const newest = new Map();
  /** Calls of the tool that may run once. @type {Map<string, number>} */
  const paid = new Map();
  /** A process that was stopped may write its claim down late. @type {Set<string>} */
  const claims = new Set();
  let [again, tools, without] = [0, 0, 0];
  for (const { type, id, fence, isHeld, name, callId } of lines) {
    const before = newest.get(id) ?? 0;
    if (type === "claim") {
      if (claims.has(`${id} ${fence}`)) again += 1;
      claims.add(`${id} ${fence}`);
      newest.set(id, Math.max(before, fence));
    }
    if (type !== "tool") continue;
    tools += 1;
    if (!isHeld || fence !== before) without += 1;
    if (name === "pay") paid.set(`${id} ${callId}`, (paid.get(`${id} ${callId}`) ?? 0) + 1);
  }
  return { claims: claims.size + again, "same fence twice": again, "tools begun": tools, "begun without a lease": without, "paid twice": [...paid.values()].filter((times) => times > 1).length };
}

/** What must be 0. */
export const NEVER = ["same fence twice", "begun without a lease", "paid twice"];

/** @param {string} title @param {Record<string, number>} ledger */
export function table(title, ledger) {
  const width = Math.max(...Object.keys(ledger).map((name) => name.length));
  return [title, ...Object.entries(ledger).map(([name, value]) => `  ${name.padEnd(width)}  ${value}`)].join("\n");
}
