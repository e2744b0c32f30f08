// @ts-check
// Agents in SQLite, through `node:sqlite`: for the processes of one machine.

import { kindOf, misuse } from "../../shared.js";
import { fleetStore } from "./fleet.js";

/** @import { DatabaseLike, StoreOptions } from "../../stores-node.js" */
/** @import { Shelf } from "../lease.js" */

const NOW = "(unixepoch('subsec') * 1000)";

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

/** @param {DatabaseLike} database @returns {Shelf} */
function shelfOf(database) {
  // A process that writes holds the others up for some microseconds; a killed one leaves no lock.
  database.exec("PRAGMA busy_timeout = 10000; PRAGMA journal_mode = WAL");
  database.exec("CREATE TABLE IF NOT EXISTS turnwheel_agents (id TEXT PRIMARY KEY, fence INTEGER NOT NULL, owner TEXT, until REAL, state TEXT, running INTEGER NOT NULL DEFAULT 0, count INTEGER NOT NULL DEFAULT 0)");
  database.exec("CREATE TABLE IF NOT EXISTS turnwheel_agents_messages (id TEXT, at INTEGER, json TEXT NOT NULL, PRIMARY KEY (id, at)) WITHOUT ROWID");
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
  const messagesOf = (/** @type {string} */ id, /** @type {number} */ count) => all("SELECT json FROM turnwheel_agents_messages WHERE id = ? AND at < ? ORDER BY at", id, count).map((row) => row.json);
  return {
    place: "SQLite",
    claim: async (id, owner, ttlMs) => together(() => {
      const [row] = all(`INSERT INTO turnwheel_agents (id, owner, until, fence) VALUES (?, ?, ${NOW} + ?, 1)
        ON CONFLICT (id) DO UPDATE SET fence = fence + 1, owner = excluded.owner, until = excluded.until WHERE until IS NULL OR until <= ${NOW}
        RETURNING fence, state, count`, id, owner, ttlMs);
      return row && { fence: row.fence, state: row.state ?? undefined, messages: messagesOf(id, row.count) };
    }),
    save: async (id, fence, ttlMs, { state, isRunning, from, messages }) => together(() => {
      const isHeld = changes(`UPDATE turnwheel_agents SET until = ${NOW} + ?, state = ?, running = ?, count = ? WHERE id = ? AND fence = ?`, ttlMs, state, Number(isRunning), from + messages.length, id, fence) === 1;
      if (!isHeld) return false;
      changes("DELETE FROM turnwheel_agents_messages WHERE id = ? AND at >= ?", id, from);
      messages.forEach((json, i) => changes("INSERT INTO turnwheel_agents_messages VALUES (?, ?, ?)", id, from + i, json));
      return true;
    }),
    renew: async (id, fence, ttlMs) => changes(`UPDATE turnwheel_agents SET until = ${NOW} + ? WHERE id = ? AND fence = ?`, ttlMs, id, fence) === 1,
    release: async (id, fence) => changes("UPDATE turnwheel_agents SET until = NULL, owner = NULL WHERE id = ? AND fence = ?", id, fence),
    read: async (id) => together(() => {
      const [row] = all("SELECT state, count FROM turnwheel_agents WHERE id = ?", id);
      return row && { state: row.state ?? undefined, messages: messagesOf(id, row.count) };
    }),
    remove: async (id) => together(() => (changes("DELETE FROM turnwheel_agents WHERE id = ?", id), changes("DELETE FROM turnwheel_agents_messages WHERE id = ?", id))),
    owner: async (id) => all(`SELECT owner FROM turnwheel_agents WHERE id = ? AND until > ${NOW}`, id)[0]?.owner,
    abandoned: async (limit) => all(`SELECT id FROM turnwheel_agents WHERE running = 1 AND (until IS NULL OR until <= ${NOW}) ORDER BY until LIMIT ?`, limit).map((row) => row.id),
  };
}
