// @ts-check
// A write that fails for good (its types, its rights, its words) ends what depends on it at once, with its words; one that
// may go well the next time is tried again.

import assert from "node:assert/strict";
import { test } from "node:test";
import { RemoteAgent } from "../../../pkg/remote.js";
import { agentHandler, durableObjectEvents, memoryEvents } from "../../../pkg/server.js";
import { openAgent, postgresStore } from "../../../pkg/stores-node.js";
import { isLasting } from "../../../www/npm/stores/kept.js";
import { hasSqlite } from "../fleet/stores.mjs";
import { Agent, call, scripted, testTool } from "../kit.mjs";
import { AT, host, pair } from "../server/pair.mjs";

const failure = (/** @type {object} */ more, message = "no") => Object.assign(new Error(message), more);

/** A database that has one agent, and fails as it is told. @param {() => Error | undefined} failing */
function databaseOf(failing) {
  const queries = { saves: 0 };
  return { queries, query: async (/** @type {string} */ text) => {
    if (text.startsWith("INSERT")) return { rows: [{ fence: 1, state: null, count: 0, first_event: 10, last_event: 10, log_bytes: 0 }] };
    if (!text.startsWith("WITH held")) return { rows: [] };
    queries.saves += 1;
    const error = failing();
    if (error) throw error;
    return { rows: [{ n: 1 }] };
  } };
}

test("which failures last", () => {
  for (const code of ["42501", "42601", "42P01", "22P02", "22021", "23502", "28P01", "3D000", "54000", "EROFS", "ENOTDIR"]) assert.equal(isLasting({ cause: failure({ code }) }), true, code);
  for (const code of ["40001", "40P01", "53100", "53300", "57P01", "57P03", "08006", "25006", "23505", "42P05", "55P03", "ECONNRESET", "ENOSPC", "EBUSY", undefined]) assert.equal(isLasting(failure({ code })), false, String(code));
  for (const errcode of [1, 8, 18, 20, 1032]) assert.equal(isLasting(failure({ code: "ERR_SQLITE_ERROR", errcode })), true, String(errcode));
  for (const errcode of [5, 6, 10, 13, 261, 517]) assert.equal(isLasting(failure({ code: "ERR_SQLITE_ERROR", errcode })), false, String(errcode));
  assert.deepEqual([new TypeError("x is not a function"), new TypeError("fetch failed"), new TypeError("Load failed"), new RangeError("too long"), "text", undefined].map((error) => isLasting(error)), [true, false, false, true, false, false]);
});

test("a write that fails for good ends the run and the lease at once, with the database's words", { timeout: 20_000 }, async (t) => {
  const logged = t.mock.method(console, "error", () => {});
  let isRefused = false;
  const database = databaseOf(() => (isRefused ? failure({ code: "42501" }, "permission denied for table agents") : undefined));
  const lease = await postgresStore(database).claim("a");
  if (!lease) throw new Error("taken");
  let worked = 0;
  const agent = await openAgent(lease, { model: scripted([call("work"), call("more"), "never"]), tools: [testTool("work", () => ((isRefused = true), "worked")), testTool("more", () => void worked++)] });
  const since = performance.now();
  const { stopReason, error } = await agent.prompt("Go");
  assert.ok(performance.now() - since < 2000);
  assert.deepEqual([stopReason, worked, lease.isHeld], ["aborted", 0, false]);
  assert.equal(error?.message, "`a` could not be saved in PostgreSQL: permission denied for table agents");
  assert.match(lease.signal.reason.message, /permission denied/);
  await assert.rejects(lease.save(agent.checkpoint()), /permission denied/);
  assert.match(String(logged.mock.calls[0]?.arguments), /the lease of `a` ends.*permission denied/);
});

test("one that may pass is tried again, and the run goes on", { timeout: 20_000 }, async () => {
  let left = 3;
  const database = databaseOf(() => (left-- > 0 ? failure({ code: "57P01" }, "terminating connection") : undefined));
  const lease = await postgresStore(database).claim("a");
  if (!lease) throw new Error("taken");
  const agent = await openAgent(lease, { model: scripted([call("work"), "Done."]), tools: [testTool("work", () => "worked")] });
  assert.equal((await agent.prompt("Go")).text, "Done.");
  await lease.release();
});

test("a log that keeps nothing any more: listeners get the state, and their runs end", { timeout: 20_000 }, async (t) => {
  t.mock.method(console, "error", () => {});
  for (const left of [0, 3, 8]) {
    const log = memoryEvents();
    let n = left;
    const events = /** @type {any} */ ({
      get first() { return log.first; }, get last() { return log.last; }, read: log.read, trim: log.trim,
      append(/** @type {any} */ entry) {
        if (n-- <= 0) throw new TypeError("this type cannot be kept");
        log.append(entry);
      },
    });
    const { agent, mirror } = pair({ model: scripted([call("work"), "Said."]), tools: [testTool("work", () => "worked")] }, { events });
    const { stopReason } = await mirror.prompt("Go").result;
    assert.equal(stopReason, "completed", `${left} are kept`);
    assert.equal(mirror.messages.length, agent.messages.length);
    mirror[Symbol.dispose]();
  }
});

/** The storage of a Durable Object, with its limit of 2 MB for a value. */
function storage() {
  const { DatabaseSync } = /** @type {any} */ (process).getBuiltinModule("node:sqlite");
  const database = new DatabaseSync(":memory:");
  return {
    sync: async () => {},
    transactionSync: (/** @type {() => any} */ work) => work(),
    sql: { exec(/** @type {string} */ text, /** @type {any[]} */ ...values) {
      if (values.some((value) => typeof value === "string" && Buffer.byteLength(value) > 2_000_000)) throw new Error("string or blob too big: SQLITE_TOOBIG");
      const rows = database.prepare(text).all(...values);
      return { toArray: () => rows.map((/** @type {any} */ row) => ({ ...row })) };
    } },
  };
}

test("an event that is too large for a row of a Durable Object is cut into rows", { skip: !hasSqlite && "Node has no SQLite here" }, async () => {
  const kept = storage();
  const log = durableObjectEvents(/** @type {any} */ (kept));
  const long = JSON.stringify("\u{1f600}\u20ac".repeat(1_000_000));
  const entries = [{ id: 1, type: "message", data: '"short"' }, { id: 2, type: "message", data: long, history: '{"at":0}' }, { id: 3, type: "command", data: '{"id":"c"}', history: long }, { id: 4, type: "message", data: '"end"' }];
  for (const entry of entries) log.append(/** @type {any} */ (entry));
  const plain = (/** @type {any[]} */ list) => list.map(({ history, ...entry }) => (history == null ? entry : { ...entry, history }));
  assert.deepEqual(plain(/** @type {any} */ (await log.read(0, 10))), entries);
  assert.deepEqual(plain(/** @type {any} */ (await log.commands?.())), [entries[2]]);
  const later = durableObjectEvents(/** @type {any} */ (kept));
  assert.ok((later.bytes ?? 0) > 4 * 2_000_000);
  later.trim(3);
  assert.deepEqual([plain(/** @type {any} */ (await later.read(3, 10))), kept.sql.exec("SELECT count(*) AS n FROM turnwheel_event_parts").toArray()], [[entries[3]], [{ n: 0 }]]);
});

test("a run with a result of megabytes in a Durable Object ends for its listener", { skip: !hasSqlite && "Node has no SQLite here", timeout: 30_000 }, async () => {
  const agent = new Agent({ model: scripted([call("work"), "Done."]), tools: [testTool("work", () => "\u20ac".repeat(900_000))] });
  const handler = agentHandler(agent, { host, events: durableObjectEvents(/** @type {any} */ (storage())) });
  const remote = new RemoteAgent({ url: AT, host, fetch: (/** @type {any} */ url, /** @type {any} */ init) => handler(new Request(url, init)) });
  assert.equal((await remote.prompt("Go")).text, "Done.");
  assert.equal(remote.messages.length, 4);
  remote[Symbol.dispose]();
});
