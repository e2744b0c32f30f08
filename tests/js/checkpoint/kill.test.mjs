// @ts-check
// Kills a process after every single event of a run; another process continues. The history comes out the
// same, and no tool runs more often than it may.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { expected, interrupted, runLife, plain, tooOften } from "./lives.mjs";
import { world } from "./world.mjs";
import { checkTrace } from "../grammar.mjs";
import { isPlayed } from "../share.mjs";

const CHILD = fileURLToPath(new URL("child.mjs", import.meta.url));

/** @type {any[]} */
const events = [];
const agent = await runLife(world(), { onEvent: (event) => events.push(event), die() {} });
const whole = plain(agent.messages);

/**
 * Runs one process. Returns whether it was killed.
 * @param {string} folder @param {number} [until] @returns {Promise<boolean>}
 */
function child(folder, until = Infinity) {
  return new Promise((resolve, reject) => {
    const started = spawn(process.execPath, [CHILD, folder, String(until)], { stdio: ["ignore", "ignore", "pipe"] });
    let errorOutput = "";
    started.stderr.on("data", (piece) => (errorOutput += piece));
    started.on("close", (code, signal) => (signal === "SIGKILL" ? resolve(true) : code === 0 ? resolve(false) : reject(new Error(`the process ended with ${code ?? signal}: ${errorOutput}`))));
  });
}

/**
 * Runs lives, each in a process of its own and killed after this many events; the last one ends the run.
 * @param {Iterable<number>} deaths @param {string} what
 */
async function runLives(deaths, what) {
  const folder = mkdtempSync(join(tmpdir(), "turnwheel-kill-"));
  try {
    let killed = true;
    for (const until of deaths) if (killed) killed = await child(folder, until);
    if (killed) killed = await child(folder);
    const lines = (/** @type {string} */ name) => readFileSync(join(folder, name), "utf8").trim().split("\n");
    const allEvents = lines("events").map((line) => JSON.parse(line));
    const history = plain(JSON.parse(readFileSync(join(folder, "history.json"), "utf8")));
    assert.deepEqual(history, expected(whole, interrupted(allEvents)), what);
    assert.equal(tooOften(lines("ran"), allEvents, history), undefined, what);
    checkTrace(allEvents.filter(({ type }) => type !== "run_resumed"));
    return allEvents.filter(({ type }) => type === "run_resumed").length;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

test("a new process goes on after every single event", { timeout: 300_000 }, async () => {
  let next = 1;
  const work = async () => {
    while (next < events.length) {
      const until = next++;
      if (!isPlayed(until, 4)) continue;
      assert.equal(await runLives([until], `killed after event ${until}, ${events[until - 1].type}`), 1);
    }
  };
  await Promise.all(Array.from({ length: Math.min(4, availableParallelism() + 1) }, work));
});

test("a run is killed again and again", { timeout: 120_000 }, async () => {
  // The longest answer has about 15 events; a process with a shorter life would request it again for ever.
  for (const step of [19, 23, 31]) assert.ok((await runLives(Array.from({ length: 12 }, () => step), `killed every ${step} events`)) > 1);
});
