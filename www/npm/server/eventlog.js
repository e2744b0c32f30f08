// @ts-check
// Stores an agent's events for listeners that reconnect. Ids increase by one; the oldest
// events are dropped first.

import { kindOf, misuse } from "../shared.js";

/**
 * A stored event. `history` is the change that the event made to the conversation.
 * @typedef {{ id: number, type: string, data: string, history?: string }} Entry
 */

/**
 * Stores events in memory. Ids begin right after `start`: a later process begins above all ids of an earlier one.
 * @param {{ start?: number }} [options]
 */
export function memoryEvents({ start = Date.now() * 1000 } = {}) {
  /** @type {Entry[]} */
  let entries = [];
  let first = start;
  return {
    get first() {
      return first;
    },
    get last() {
      return first + entries.length;
    },
    /** @param {Entry} entry */
    append(entry) {
      entries.push(entry);
    },
    /** @param {number} after @param {number} limit */
    read: (after, limit) => entries.slice(after - first, after - first + limit),
    /** @param {number} upTo */
    trim(upTo) {
      entries = entries.slice(upTo - first);
      first = upTo;
    },
  };
}

/**
 * Stores events in the SQLite database of a Durable Object; pass `ctx.storage`. What `also` writes is written
 * in the same transaction as the event.
 * @param {any} storage @param {{ also?(entry: Entry): void }} [options]
 */
export function durableObjectEvents(storage, { also } = {}) {
  if (typeof storage?.transactionSync !== "function") throw misuse(`durableObjectEvents takes the storage of a Durable Object, \`ctx.storage\`, got ${kindOf(storage)}`);
  const { sql } = storage;
  sql.exec("CREATE TABLE IF NOT EXISTS turnwheel_events (id INTEGER PRIMARY KEY, type TEXT NOT NULL, data TEXT NOT NULL, history TEXT)");
  const [found] = sql.exec("SELECT min(id) AS oldest, max(id) AS newest, sum(length(data) + length(coalesce(history, ''))) AS letters FROM turnwheel_events").toArray();
  let first = found.oldest === null ? 0 : found.oldest - 1;
  let last = found.newest ?? 0;
  return {
    bytes: 2 * (found.letters ?? 0),
    get first() {
      return first;
    },
    get last() {
      return last;
    },
    /** @param {Entry} entry */
    append(entry) {
      storage.transactionSync(() => {
        sql.exec("INSERT INTO turnwheel_events VALUES (?, ?, ?, ?)", entry.id, entry.type, entry.data, entry.history ?? null);
        last = entry.id;
        also?.(entry);
      });
    },
    /** @param {number} after @param {number} limit @returns {Entry[]} */
    read: (after, limit) => sql.exec("SELECT * FROM turnwheel_events WHERE id > ? ORDER BY id LIMIT ?", after, limit).toArray(),
    /** @param {number} upTo */
    trim(upTo) {
      sql.exec("DELETE FROM turnwheel_events WHERE id <= ?", upTo);
      first = upTo;
    },
    /** @returns {Entry[]} */
    commands: () => sql.exec("SELECT * FROM turnwheel_events WHERE type IN ('command', 'receipt') ORDER BY id").toArray(),
    sync: () => storage.sync(),
  };
}
