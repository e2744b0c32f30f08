// @ts-check
// Stores an agent's events for listeners that reconnect. Ids increase by one; the oldest
// events are dropped first.

import { kindOf, misuse } from "../shared.js";
import { MAX_PART_LENGTH, partsOf } from "../stores/rows.js";

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
  // What is too long for a row has none of its text there, and all of it here.
  sql.exec("CREATE TABLE IF NOT EXISTS turnwheel_event_parts (id INTEGER, part INTEGER, json TEXT NOT NULL, PRIMARY KEY (id, part))");
  const [long] = sql.exec("SELECT sum(length(json)) AS letters FROM turnwheel_event_parts").toArray();
  const [found] = sql.exec("SELECT min(id) AS oldest, max(id) AS newest, sum(length(data) + length(coalesce(history, ''))) AS letters FROM turnwheel_events").toArray();
  let first = found.oldest === null ? 0 : found.oldest - 1;
  let last = found.newest ?? 0;
  /** @param {Entry} entry @returns {Entry} */
  const whole = (entry) => (entry.data === "" ? JSON.parse(sql.exec("SELECT json FROM turnwheel_event_parts WHERE id = ? ORDER BY part", entry.id).toArray().map((/** @type {{ json: string }} */ { json }) => json).join("")) : entry);
  return {
    bytes: 2 * ((found.letters ?? 0) + (long.letters ?? 0)),
    get first() {
      return first;
    },
    get last() {
      return last;
    },
    /** @param {Entry} entry */
    append(entry) {
      storage.transactionSync(() => {
        const { id, type, data, history = null } = entry;
        const isLong = data.length + (history?.length ?? 0) > MAX_PART_LENGTH;
        sql.exec("INSERT INTO turnwheel_events VALUES (?, ?, ?, ?)", id, type, isLong ? "" : data, isLong ? null : history);
        if (isLong) partsOf(JSON.stringify(entry)).forEach((part, at) => sql.exec("INSERT INTO turnwheel_event_parts VALUES (?, ?, ?)", id, at, part));
        last = entry.id;
        also?.(entry);
      });
    },
    /** @param {number} after @param {number} limit @returns {Entry[]} */
    read: (after, limit) => sql.exec("SELECT * FROM turnwheel_events WHERE id > ? ORDER BY id LIMIT ?", after, limit).toArray().map(whole),
    /** @param {number} upTo */
    trim(upTo) {
      for (const table of ["events", "event_parts"]) sql.exec(`DELETE FROM turnwheel_${table} WHERE id <= ?`, upTo);
      first = upTo;
    },
    /** @returns {Entry[]} */
    commands: () => sql.exec("SELECT * FROM turnwheel_events WHERE type IN ('command', 'receipt') ORDER BY id").toArray().map(whole),
    sync: () => storage.sync(),
  };
}
