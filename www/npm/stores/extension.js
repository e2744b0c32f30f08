// @ts-check
// Agents in the storage of a browser extension, for its pages. That storage has no transactions: the lock of the tabs, the
// fence, and one write for all that belongs together stand in for them.

import { kindOf, misuse } from "../shared.js";
import { byLease } from "./by-lease.js";
import { claimsOf } from "./locked.js";

/** @import { ExtensionStorageArea } from "../stores.js" */
/** @import { TabShelf } from "./locked.js" */
/** @import { Row } from "./indexed-db.js" */

/** @param {ExtensionStorageArea} area */
export function extensionStore(area) {
  if (typeof area?.get !== "function" || typeof area.set !== "function" || typeof area.remove !== "function") throw misuse(`extensionStore takes a storage area, such as chrome.storage.local, got ${kindOf(area)}`);
  const shelf = shelfOf(area);
  const claims = claimsOf(shelf, "extension");
  return { ...byLease({ ...shelf, others: "another tab" }, claims.claim), ...claims };
}

/** In quotes, so that no id can be a part of another's. @param {string} id */
const keyOf = (id) => `turnwheel:${JSON.stringify(id)}`;
/** @param {string} id @param {"m" | "e"} kind @param {number} n */
const keyOfPart = (id, kind, n) => `${keyOf(id)}:${kind}:${n}`;
/** @param {string} id @param {"m" | "e"} kind @param {number} from @param {number} to the first that is not meant */
const keysOf = (id, kind, from, to) => Array.from({ length: Math.max(0, to - from) }, (_, at) => keyOfPart(id, kind, from + at));

/** @param {ExtensionStorageArea} area @returns {TabShelf} */
function shelfOf(area) {
  /** @param {string} id @returns {Promise<Row>} */
  const rowOf = async (id) => ({ fence: 0, ...(await area.get([keyOf(id)]))[keyOf(id)] });
  /** @param {string} id @param {"m" | "e"} kind @param {number} from @param {number} to @returns {Promise<any[]>} */
  async function parts(id, kind, from, to) {
    const keys = keysOf(id, kind, from, to);
    const found = await area.get(keys);
    return keys.map((key) => found[key]).filter((part) => part !== undefined);
  }
  /** @param {string} id @param {Row} row */
  const kept = async (id, { state, count = 0 }) => ({ state, messages: state === undefined ? [] : await parts(id, "m", 0, count) });
  return {
    place: "the extension's storage",
    async claim(id, withLog) {
      const row = await rowOf(id);
      row.fence += 1;
      await area.set({ [keyOf(id)]: row });
      const { first = Date.now() * 1000, last = first } = row;
      const entries = withLog ? await parts(id, "e", first + 1, last + 1) : [];
      return { ...(await kept(id, row)), fence: row.fence, log: { first, entries } };
    },
    async saveLog(id, fence, change, log) {
      const row = await rowOf(id);
      if (row.fence !== fence) return false;
      const { count = 0, first = 0, last } = row;
      /** @type {Record<string, unknown>} */
      const items = { [keyOf(id)]: row };
      /** @type {string[]} */
      const gone = [];
      if (change) {
        const { state, isRunning, from, messages } = change;
        messages.forEach((json, at) => (items[keyOfPart(id, "m", from + at)] = json));
        Object.assign(row, { state, running: isRunning, count: from + messages.length });
        gone.push(...keysOf(id, "m", from + messages.length, count));
      }
      if (log) {
        for (const entry of log.entries) items[keyOfPart(id, "e", entry.id)] = entry;
        Object.assign(row, { first: log.first, last: log.last });
        if (last !== undefined) gone.push(...keysOf(id, "e", first + 1, log.first + 1));
      } else if (last !== undefined) {
        row.first = row.last = last + 1;
        gone.push(...keysOf(id, "e", first + 1, last + 1));
      }
      await area.set(items);
      if (gone.length > 0) await area.remove(gone);
      return true;
    },
    read: async (id) => kept(id, await rowOf(id)),
    async remove(id) {
      const { fence, count = 0, first, last } = await rowOf(id);
      await area.set({ [keyOf(id)]: { fence: fence + 1, ...(last !== undefined && { first: last + 1, last: last + 1 }) } });
      await area.remove([...keysOf(id, "m", 0, count), ...(first === undefined || last === undefined ? [] : keysOf(id, "e", first + 1, last + 1))]);
    },
  };
}
