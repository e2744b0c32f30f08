// @ts-check
// Agents in SQLite, through `node:sqlite`: for the processes of one machine.

import { kindOf, misuse, textOf } from "../../shared.js";
import { fleetStore } from "./fleet.js";

/** @import { DatabaseLike, StoreOptions } from "../../stores-node.js" */
/** @import { Shelf } from "./fleet.js" */

const NOW = "(unixepoch('subsec') * 1000)";
/** Where the numbers of events begin: by the time, in microseconds. */
const START = "CAST(unixepoch('subsec') * 1000000 AS INTEGER)";

/** @param {string | DatabaseLike} file @param {StoreOptions} [options] */
export function sqliteStore(file, options) {
  return fleetStore(shelfOf(typeof file === "string" ? open(file) : checked(file)), options);
}

/** @param {string} file @returns {DatabaseLike} */
function open(file) {
  const { process } = /** @type {any} */ (globalThis);
  const sqlite = process?.getBuiltinModule?.("node:sqlite");
  if (!sqlite) throw misuse("sqliteStore needs `node:sqlite`, which Node has from 22 on; here, use fileStore(folder)");
  return new sqlite.DatabaseSync(file);
}

/** @param {DatabaseLike} given */
function checked(given) {
  if (typeof given?.prepare !== "function" || typeof given.exec !== "function") throw misuse(`sqliteStore takes a file's name or a DatabaseSync, got ${kindOf(given)}`);
  return given;
}

/** What asks a database, with statements that are prepared once. @param {DatabaseLike} database */
function toolsOf(database) {
  /** @type {Map<string, any>} */
  const statements = new Map();
  const sql = (/** @type {string} */ text) => statements.get(text) ?? (statements.set(text, database.prepare(text)), statements.get(text));
  /** @param {string} text @param {any[]} values @returns {any[]} */
  const all = (text, ...values) => sql(text).all(...values);
  const changes = (/** @type {string} */ text, /** @type {any[]} */ ...values) => Number(sql(text).run(...values).changes);
  /** @template T @param {() => T} work */
  const together = (work) => {
    database.exec("BEGIN IMMEDIATE");
    try {
      const result = work();
      database.exec("COMMIT");
      return result;
    } catch (error) {
      database.exec("ROLLBACK");
      throw error;
    }
  };
  return { all, changes, together };
}

/** How long a process waits for others that write. */
const BUSY_MS = 10_000;

/** Several processes may begin at once: the switch to WAL needs the file alone, and does not wait for that by itself. @param {DatabaseLike} database */
function prepare(database) {
  for (const until = performance.now() + BUSY_MS; ; ) {
    try {
      return create(database);
    } catch (error) {
      if (performance.now() > until || !/locked|busy/i.test(textOf(error))) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20 * Math.random());
    }
  }
}

/** @param {DatabaseLike} database */
function create(database) {
  // A process that writes holds the others up for some microseconds; a killed one leaves no lock.
  database.exec(`PRAGMA busy_timeout = ${BUSY_MS}; PRAGMA journal_mode = WAL`);
  database.exec("CREATE TABLE IF NOT EXISTS turnwheel_agents (id TEXT PRIMARY KEY, fence INTEGER NOT NULL, owner TEXT, until REAL, title TEXT, updated_at INTEGER, state TEXT, running INTEGER NOT NULL DEFAULT 0, count INTEGER NOT NULL DEFAULT 0, first_event INTEGER NOT NULL, last_event INTEGER NOT NULL, log_bytes INTEGER NOT NULL DEFAULT 0)");
  database.exec("CREATE TABLE IF NOT EXISTS turnwheel_agents_messages (id TEXT, at INTEGER, json TEXT NOT NULL, PRIMARY KEY (id, at)) WITHOUT ROWID");
  database.exec("CREATE TABLE IF NOT EXISTS turnwheel_agents_events (id TEXT, at INTEGER, json TEXT NOT NULL, has_commands INTEGER NOT NULL, PRIMARY KEY (id, at)) WITHOUT ROWID");
  // A table of an earlier version has no columns for the list.
  const columns = database.prepare("SELECT name FROM pragma_table_info('turnwheel_agents')").all().map(({ name }) => name);
  for (const column of ["title TEXT", "updated_at INTEGER"]) if (!columns.includes(column.split(" ")[0])) database.exec(`ALTER TABLE turnwheel_agents ADD COLUMN ${column}`);
  database.exec("CREATE INDEX IF NOT EXISTS turnwheel_agents_newest ON turnwheel_agents (updated_at, id)");
  // What the process that takes over reads at once, and which agents have to be taken over.
  database.exec("CREATE INDEX IF NOT EXISTS turnwheel_agents_commands ON turnwheel_agents_events (id, at) WHERE has_commands = 1");
  database.exec("CREATE INDEX IF NOT EXISTS turnwheel_agents_running ON turnwheel_agents (until) WHERE running = 1");
}

/** @param {DatabaseLike} database @returns {Shelf} */
function shelfOf(database) {
  prepare(database);
  const { all, changes, together } = toolsOf(database);
  const messagesOf = (/** @type {string} */ id, /** @type {number} */ count) => all("SELECT json FROM turnwheel_agents_messages WHERE id = ? AND at < ? ORDER BY at", id, count).map((row) => row.json);
  return {
    place: "SQLite",
    claim: async (id, owner, ttlMs) => together(() => {
      const [row] = all(`INSERT INTO turnwheel_agents (id, owner, until, fence, first_event, last_event) VALUES (?, ?, ${NOW} + ?, 1, ${START}, ${START})
        ON CONFLICT (id) DO UPDATE SET fence = fence + 1, owner = excluded.owner, until = excluded.until WHERE until IS NULL OR until <= ${NOW}
        RETURNING fence, state, count, first_event, last_event, log_bytes`, id, owner, ttlMs);
      const commands = row && all("SELECT json FROM turnwheel_agents_events WHERE id = ? AND at > ? AND has_commands = 1 ORDER BY at", id, row.first_event).map(({ json }) => json);
      return row && { fence: row.fence, state: row.state ?? undefined, messages: messagesOf(id, row.count), first: row.first_event, last: row.last_event, bytes: row.log_bytes, commands };
    }),
    save: async (id, fence, ttlMs, { state, title, isRunning, from, messages, log }) => together(() => {
      const isHeld = changes(`UPDATE turnwheel_agents SET until = ${NOW} + ? WHERE id = ? AND fence = ?`, ttlMs, id, fence) === 1;
      if (!isHeld) return false;
      if (state !== undefined) {
        changes(`UPDATE turnwheel_agents SET state = ?, title = ?, updated_at = CAST(${NOW} AS INTEGER), running = ?, count = ? WHERE id = ?`, state, title, Number(isRunning), from + messages.length, id);
        changes("DELETE FROM turnwheel_agents_messages WHERE id = ? AND at >= ?", id, from);
        messages.forEach((json, i) => changes("INSERT INTO turnwheel_agents_messages VALUES (?, ?, ?)", id, from + i, json));
      }
      if (log) {
        changes("UPDATE turnwheel_agents SET first_event = ?, last_event = ?, log_bytes = ? WHERE id = ?", log.first, log.last, log.bytes, id);
        changes("DELETE FROM turnwheel_agents_events WHERE id = ? AND at <= ?", id, log.first);
        for (const { at, json, hasCommands } of log.rows) changes("INSERT OR REPLACE INTO turnwheel_agents_events VALUES (?, ?, ?, ?)", id, at, json, Number(hasCommands));
      }
      return true;
    }),
    // Written under a later fence, they belong to another process.
    events: async (id, fence, after, limit) => all("SELECT e.json FROM turnwheel_agents_events e JOIN turnwheel_agents a ON a.id = e.id AND a.fence = ? WHERE e.id = ? AND e.at > ? ORDER BY e.at LIMIT ?", fence, id, after, limit).map(({ json }) => json),
    renew: async (id, fence, ttlMs) => changes(`UPDATE turnwheel_agents SET until = ${NOW} + ? WHERE id = ? AND fence = ?`, ttlMs, id, fence) === 1,
    release: async (id, fence) => changes("UPDATE turnwheel_agents SET until = NULL, owner = NULL WHERE id = ? AND fence = ?", id, fence),
    read: async (id) => together(() => {
      const [row] = all("SELECT state, count FROM turnwheel_agents WHERE id = ?", id);
      return row && { state: row.state ?? undefined, messages: messagesOf(id, row.count) };
    }),
    // The row stays, for its fence: who still has a lease of before must not write again.
    remove: async (id) => together(() => {
      changes("UPDATE turnwheel_agents SET fence = fence + 1, owner = NULL, until = NULL, state = NULL, title = NULL, updated_at = NULL, running = 0, count = 0, first_event = last_event + 1, last_event = last_event + 1, log_bytes = 0 WHERE id = ?", id);
      ["messages", "events"].forEach((part) => changes(`DELETE FROM turnwheel_agents_${part} WHERE id = ?`, id));
    }),
    list: async ({ limit, prefix, before: { updatedAt, id } }) => all("SELECT id, title, updated_at FROM turnwheel_agents WHERE id >= ? AND id < ? AND (updated_at, id) < (?, ?) ORDER BY updated_at DESC, id DESC LIMIT ?", prefix, `${prefix}\u{10ffff}`, updatedAt, id, limit)
      .map(({ id, title, updated_at }) => ({ id, title, updatedAt: updated_at })),
    owner: async (id) => all(`SELECT owner FROM turnwheel_agents WHERE id = ? AND until > ${NOW}`, id)[0]?.owner,
    abandoned: async (limit) => all(`SELECT id FROM turnwheel_agents WHERE running = 1 AND (until IS NULL OR until <= ${NOW}) ORDER BY until LIMIT ?`, limit).map((row) => row.id),
  };
}
