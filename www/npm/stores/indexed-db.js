// @ts-check
// Checkpoints in the browser's IndexedDB, and agents that tabs hand from one to another.

import { checkNames, kindOf, misuse } from "../shared.js";
import { Database, resultOf } from "./database.js";
import { split, whole } from "./kept.js";
import { claimsOf } from "./locked.js";
import { DATABASE } from "./locks.js";
import { store, WriteQueue } from "./place.js";
import { titleOf } from "./title.js";

/** @import { StoredAgent } from "../stores.js" */
/** @import { Tables } from "./database.js" */
/** @import { Kept } from "./lease.js" */
/** @import { LogChange, LogRow } from "./log.js" */
/** @import { TabShelf } from "./locked.js" */
/** What is kept of an agent that was claimed; of its events, those above `first`. @typedef {{ fence: number, state?: string, running?: boolean, count?: number, first: number, last: number, bytes: number }} Row */

/** Stores checkpoints in the browser's IndexedDB. @param {{ name?: string }} [options] */
export function indexedDBStore(options = {}) {
  if (typeof options !== "object" || options === null) throw misuse(`indexedDBStore takes { name }, got ${kindOf(options)}`);
  checkNames("unknown option", options, ["name"]);
  const { name = DATABASE } = options;
  if (typeof name !== "string" || name === "") throw misuse(`\`name\` must be the name of a database, got ${kindOf(name)}`);
  const database = new Database(name);
  const shelf = shelfOf(database);
  const queue = new WriteQueue(shelf.place);
  const methods = store({
    place: shelf.place,
    write: (id, checkpoint) => database.transact("readwrite", async ({ agents, checkpoints, list }) => {
      const row = await rowOf(agents, id);
      if (row?.state !== undefined) throw misuse(`\`${id}\` is an agent that was claimed: save it by its lease, as store.claim(${JSON.stringify(id)}) gives one`);
      list.put(entryOf(id, titleOf(checkpoint)), id);
      await resultOf(checkpoints.put(checkpoint, id));
    }),
    read: async (id) => {
      const { kept, checkpoint } = await database.transact("readonly", async (tables) => ({ kept: await keptOf(tables, id, await rowOf(tables.agents, id)), checkpoint: await resultOf(tables.checkpoints.get(id)) }));
      return whole(kept) ?? checkpoint;
    },
    remove: shelf.remove,
  }, queue);
  return { ...methods, ...queue.lister((query) => shelf.list(query)), ...claimsOf(shelf, name) };
}

/** @param {IDBObjectStore} agents @param {string} id @returns {Promise<Row | undefined>} */
const rowOf = (agents, id) => resultOf(agents.get(id));

/** What the list says of an agent that is stored now. @param {string} id @param {string} title @returns {StoredAgent} */
const entryOf = (id, title) => ({ id, title, updatedAt: Date.now() });

/** The rows of an id from a number on; a list comes after all numbers. @param {string} id @param {number} [from] */
const rowsFrom = (id, from = 0) => IDBKeyRange.bound([id, from], [id, []]);

/** @param {Tables} tables @param {string} id @param {Row} [row] @returns {Promise<Kept>} */
async function keptOf({ messages }, id, row) {
  if (row?.state === undefined) return { state: undefined, messages: [] };
  return { state: row.state, messages: await resultOf(messages.getAll(rowsFrom(id))) };
}

/** @param {Database} database @returns {TabShelf} */
function shelfOf(database) {
  return {
    place: `IndexedDB \`${database.name}\``,
    others: "another tab",
    claim: (id) => database.transact("readwrite", async (tables) => {
      const now = Date.now() * 1000;
      const row = (await rowOf(tables.agents, id)) ?? { fence: 0, first: now, last: now, bytes: 0 };
      row.fence += 1;
      const earlier = row.state === undefined ? await resultOf(tables.checkpoints.get(id)) : undefined;
      // What was saved without a lease belongs to the lease from now on.
      if (earlier) {
        const { state, messages } = split(earlier);
        Object.assign(row, { state, count: messages.length });
        messages.forEach((json, at) => tables.messages.put(json, [id, at]));
        tables.checkpoints.delete(id);
      }
      await resultOf(tables.agents.put(row, id));
      const commands = (await logOf(tables, id, row.first)).filter(({ hasCommands }) => hasCommands).map(({ json }) => json);
      return { ...row, ...(await keptOf(tables, id, row)), commands };
    }),
    save: (id, fence, _, { state, title, isRunning, from, messages, log }) => database.transact("readwrite", async (tables) => {
      const row = await rowOf(tables.agents, id);
      if (row?.fence !== fence) return false;
      if (state !== undefined) {
        const count = from + messages.length;
        if ((row.count ?? 0) > count) tables.messages.delete(rowsFrom(id, count));
        Object.assign(row, { state, running: isRunning, count });
        messages.forEach((json, at) => tables.messages.put(json, [id, from + at]));
        tables.list.put(entryOf(id, title), id);
      }
      if (log) putLog(tables.rows, id, row, log);
      await resultOf(tables.agents.put(row, id));
      return true;
    }),
    fence: (id) => database.transact("readonly", async ({ agents }) => (await rowOf(agents, id))?.fence ?? 0),
    events: (id, _, after, limit) => database.transact("readonly", async (tables) => (await logOf(tables, id, after, limit)).map(({ json }) => json)),
    read: (id) => database.transact("readonly", async (tables) => keptOf(tables, id, await rowOf(tables.agents, id))),
    list: async (query) => {
      const entries = await database.transact("readonly", ({ list }) => resultOf(list.getAll()));
      return (await import("./list.js")).pageOf(entries, query);
    },
    remove: (id) => database.transact("readwrite", async ({ agents, checkpoints, list, messages, rows }) => {
      const row = await rowOf(agents, id);
      checkpoints.delete(id);
      list.delete(id);
      messages.delete(rowsFrom(id));
      rows.delete(rowsFrom(id));
      // A fence is never used again, nor is the number of an event.
      if (row) await resultOf(agents.put({ fence: row.fence + 1, first: row.last + 1, last: row.last + 1, bytes: 0 }, id));
    }),
  };
}

/** What is kept of the log, above a number. @param {Tables} tables @param {string} id @param {number} after @param {number} [limit] @returns {Promise<LogRow[]>} */
const logOf = ({ rows }, id, after, limit) => resultOf(rows.getAll(rowsFrom(id, after + 1), limit));

/** @param {IDBObjectStore} rows @param {string} id @param {Row} row @param {LogChange} log */
function putLog(rows, id, row, { first, last, bytes, rows: added }) {
  if (first > row.first) rows.delete(IDBKeyRange.bound([id, 0], [id, first]));
  for (const each of added) rows.put(each, [id, each.at]);
  Object.assign(row, { first, last, bytes });
}
