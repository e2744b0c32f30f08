// @ts-check
// Which part of a list of conversations is asked for. Loaded with the first list.

import { checkNames, kindOf, misuse } from "../shared.js";

/** @import { StoredAgent } from "../stores.js" */
/** What is asked for, checked. @typedef {{ limit: number, prefix: string, before: Pick<StoredAgent, "id" | "updatedAt"> }} Query */

const [DEFAULT_LIMIT, MAX_LIMIT] = [100, 1_000];

/** @param {unknown} [options] @returns {Query} */
export function queryOf(options = {}) {
  if (typeof options !== "object" || options === null) throw misuse(`list takes { limit, before, prefix }, got ${kindOf(options)}`);
  checkNames("unknown option", options, ["limit", "before", "prefix"]);
  const { limit = DEFAULT_LIMIT, prefix = "", before = { updatedAt: Number.MAX_SAFE_INTEGER, id: "" } } = /** @type {any} */ (options);
  if (!(Number.isInteger(limit) && limit >= 1 && limit <= MAX_LIMIT)) throw misuse(`\`limit\` must be a whole number from 1 to ${MAX_LIMIT}, got ${typeof limit === "number" ? limit : kindOf(limit)}`);
  if (typeof prefix !== "string") throw misuse(`\`prefix\` must be the text that the ids begin with, got ${kindOf(prefix)}`);
  if (!Number.isSafeInteger(before?.updatedAt) || typeof before.id !== "string") throw misuse(`\`before\` must be the last entry of the page before, got ${kindOf(before)}`);
  return { limit, prefix, before };
}

/** A page of the list, for stores that have no database to sort it. @param {StoredAgent[]} entries @param {Query} query @returns {StoredAgent[]} */
export function pageOf(entries, { limit, prefix, before }) {
  const order = (/** @type {Query["before"]} */ a, /** @type {Query["before"]} */ b) => b.updatedAt - a.updatedAt || (a.id < b.id ? 1 : -Number(a.id > b.id));
  return entries.filter((entry) => entry.id.startsWith(prefix) && order(entry, before) > 0).sort(order).slice(0, limit);
}
