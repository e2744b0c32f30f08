// @ts-check
// A subscriber that throws: nobody can miss it, and one that asked to be kept goes on, as what stores checkpoints must.

import assert from "node:assert/strict";
import { test } from "node:test";
import { durableObjectStore } from "../../../pkg/stores.js";
import { Agent, clock, misused, scripted, settle } from "../kit.mjs";

/** Runs work without the console, and returns what it would have shown. @param {() => Promise<unknown>} work */
async function shown(work) {
  const { error } = console;
  /** @type {any[]} */
  const lines = [];
  console.error = (/** @type {any[]} */ ...line) => void lines.push(line);
  try {
    await work();
    await settle();
  } finally {
    console.error = error;
  }
  return lines;
}
const agentOf = (/** @type {any} */ more = {}) => new Agent({ model: scripted(["one", "two", "three"]), host: clock().host, ...more });

test("onError hears of it, with what was thrown, and the run goes on; without one the console does", async () => {
  for (const how of ["throws", "rejects"]) {
    /** @type {any[]} */
    const heard = [];
    const fail = () => {
      if (how === "throws") throw new Error("the disk is full");
      return Promise.reject(new Error("the disk is full"));
    };
    const agent = agentOf({ hooks: { onError: (/** @type {any} */ context) => heard.push(context) } });
    agent.subscribe(fail);
    const lines = await shown(async () => assert.equal((await agent.prompt("Go.", { runId: "r1" })).stopReason, "completed"));
    assert.ok(heard.length >= 1 && lines.length === 0, how);
    const [{ runId, error }] = heard;
    assert.deepEqual([runId, error.phase, error.retryable], ["r1", "subscriber", false]);
    assert.match(error.message, /a subscriber threw and was removed at `agent_start`: the disk is full/);
    const silent = agentOf();
    silent.subscribe(fail);
    const [line] = await shown(() => silent.prompt("Go.").result);
    assert.match(line[0], /a subscriber threw and was removed/);
    // It is gone: the next run is not told.
    const before = heard.length;
    await agent.prompt("Again.");
    assert.equal(heard.length, before);
  }
});

test("one that is kept hears every event, and each failure is told; its neighbours hear everything", async () => {
  /** @type {any[]} */
  const heard = [];
  const agent = agentOf({ hooks: [{}, { onError: () => { throw new Error("me too"); } }, { onError: async () => { throw new Error("me three"); } }, { onError: (/** @type {any} */ { error }) => heard.push(error.message) }] });
  let kept = 0;
  let others = 0;
  const leave = agent.subscribe(() => {
    kept++;
    throw new Error("the disk is full");
  }, { keep: true });
  agent.subscribe(() => void others++);
  await shown(() => agent.prompt("Go.").result);
  assert.ok(kept > 4);
  assert.deepEqual([kept, heard.length], [others, others]);
  leave();
  await agent.prompt("Again.");
  assert.ok(others > kept);
  for (const wrong of [null, "keep", { kepp: true }, { keep: 1 }]) misused(() => agent.subscribe(() => {}, /** @type {any} */ (wrong)), /keep/);
});

test("a store whose disk was full once stores the next checkpoint", async () => {
  /** @type {Map<string, any[]>} */
  const rows = new Map();
  let fullFor = 3;
  const storage = {
    transactionSync: (/** @type {() => any} */ work) => work(),
    sql: { exec(/** @type {string} */ statement, /** @type {any[]} */ ...[id, , json]) {
      if (!statement.includes("turnwheel_checkpoints")) return { toArray: () => [] };
      if (statement.startsWith("INSERT") && fullFor-- > 0) throw Object.assign(new Error("no space left"), { name: "QuotaExceededError" });
      if (statement.startsWith("DELETE")) rows.delete(id);
      if (statement.startsWith("INSERT")) rows.set(id, [...(rows.get(id) ?? []), { json }]);
      return { toArray: () => (statement.startsWith("SELECT") ? rows.get(id) ?? [] : []) };
    } },
  };
  const store = durableObjectStore(/** @type {any} */ (storage));
  /** @type {string[]} */
  const heard = [];
  const agent = agentOf({ hooks: { onError: (/** @type {any} */ { error }) => heard.push(error.message) } });
  agent.subscribe(() => store.save("chat", agent.checkpoint()), { keep: true });
  await agent.prompt("Go.");
  await settle();
  assert.match(heard.join("\n"), /could not be saved in .*QuotaExceededError: no space left/);
  assert.equal(/** @type {any} */ (await store.load("chat")).messages.length, 2);
});
