// @ts-check
// Agents in the storage of a browser extension, for its pages. That storage has no transactions: the lock of the tabs, the
// fence, and one write for all that belongs together stand in for them.

import { kindOf, misuse } from "../shared.js";
import { byLease } from "./by-lease.js";
import { claimsOf } from "./locked.js";

/** @import { ExtensionStorageArea } from "../stores.js" */
/** @import { TabShelf } from "./locked.js" */
/** @import { Query } from "./list.js" */
/** @import { LogRow } from "./log.js" */
/** @import { Row } from "./indexed-db.js" */

/** A row of a log has so many events at most, and stands under the number of the last one. */
const PER_ROW = 256;

/** @param {ExtensionStorageArea} area */
export function extensionStore(area) {
  if (typeof area?.get !== "function" || typeof area.set !== "function" || typeof area.remove !== "function") throw misuse(`extensionStore takes a storage area, such as chrome.storage.local, got ${kindOf(area)}`);
  const shelf = shelfOf(area);
  const claims = claimsOf(shelf, "extension");
  return { ...byLease(shelf, claims.claim), ...claims };
}

/** In quotes, so that no id can be a part of another's. @param {string} id */
const keyOf = (id) => `turnwheel:${JSON.stringify(id)}`;
/** What a list shows of an agent is an item of its own, which is small. @param {string} id */
const keyOfEntry = (id) => `${keyOf(id)}:t`;
const ENTRY = /^turnwheel:(".*"):t$/s;
/** @param {string} id @param {"m" | "r"} kind @param {number} n */
const keyOfPart = (id, kind, n) => `${keyOf(id)}:${kind}:${n}`;
/** @param {string} id @param {"m" | "r"} kind @param {number} from @param {number} to the first that is not meant */
const keysOf = (id, kind, from, to) => Array.from({ length: Math.max(0, to - from) }, (_, at) => keyOfPart(id, kind, from + at));

/** @param {ExtensionStorageArea} area @returns {TabShelf} */
function shelfOf(area) {
  /** @param {string} id @returns {Promise<Row>} */
  async function rowOf(id) {
    const now = Date.now() * 1000;
    return { fence: 0, first: now, last: now, bytes: 0, ...(await area.get([keyOf(id)]))[keyOf(id)] };
  }
  /** @param {string} id @param {"m" | "r"} kind @param {number} from @param {number} to @returns {Promise<any[]>} */
  async function parts(id, kind, from, to) {
    const keys = keysOf(id, kind, from, to);
    const found = await area.get(keys);
    return keys.map((key) => found[key]).filter((part) => part !== undefined);
  }
  /** @param {string} id @param {Row} row */
  const kept = async (id, { state, count = 0 }) => ({ state, messages: state === undefined ? [] : await parts(id, "m", 0, count) });
  return {
    place: "the extension's storage",
    others: "another tab",
    async claim(id) {
      const row = await rowOf(id);
      row.fence += 1;
      await area.set({ [keyOf(id)]: row });
      /** @type {LogRow[]} */
      const rows = await parts(id, "r", row.first + 1, row.last + 1);
      return { ...row, ...(await kept(id, row)), commands: rows.filter(({ hasCommands }) => hasCommands).map(({ json }) => json) };
    },
    async save(id, fence, _, { state, title, isRunning, from, messages, log }) {
      const row = await rowOf(id);
      if (row.fence !== fence) return false;
      const items = /** @type {Record<string, unknown>} */ ({ [keyOf(id)]: row });
      const gone = /** @type {string[]} */ ([]);
      if (state !== undefined) {
        gone.push(...keysOf(id, "m", from + messages.length, row.count ?? 0));
        messages.forEach((json, at) => (items[keyOfPart(id, "m", from + at)] = json));
        Object.assign(row, { state, running: isRunning, count: from + messages.length });
        items[keyOfEntry(id)] = { id, title, updatedAt: Date.now() };
      }
      if (log) {
        const { rows, ...where } = log;
        gone.push(...keysOf(id, "r", row.first + 1, Math.min(where.first, row.last) + 1));
        for (const each of rows) items[keyOfPart(id, "r", each.at)] = each;
        Object.assign(row, where);
      }
      await area.set(items);
      if (gone.length > 0) await area.remove(gone);
      return true;
    },
    fence: async (id) => (await rowOf(id)).fence,
    async events(id, _, after, limit) {
      const end = Math.min(after + PER_ROW, (await rowOf(id)).last) + 1;
      return (await parts(id, "r", after + 1, end)).slice(0, limit).map(({ json }) => json);
    },
    read: async (id) => kept(id, await rowOf(id)),
    async remove(id) {
      const { fence, count = 0, first, last } = await rowOf(id);
      await area.set({ [keyOf(id)]: { fence: fence + 1, first: last + 1, last: last + 1, bytes: 0 } });
      await area.remove([keyOfEntry(id), ...keysOf(id, "m", 0, count), ...keysOf(id, "r", first + 1, last + 1)]);
    },
    list: (query) => listOf(area, query),
  };
}

/** @param {ExtensionStorageArea} area @param {Query} query */
async function listOf(area, query) {
  // Older browsers do not say which keys there are without all that is stored under them.
  const keys = await (area.getKeys?.() ?? area.get(null).then(Object.keys));
  const entries = keys.filter((key) => JSON.parse(ENTRY.exec(key)?.[1] ?? "null")?.startsWith(query.prefix));
  const found = entries.length === 0 ? {} : await area.get(entries);
  return (await import("./list.js")).pageOf(Object.values(found), query);
}
