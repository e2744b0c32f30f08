// @ts-check
// Token counts.

/** @import { Usage } from "../index.js" */

/** @returns {Usage} */
export function noUsage() {
  return { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
}

/** Returns the sum of two counts. @param {Usage} before @param {Partial<Usage>} usage @returns {Usage} */
export function addUsage(before, usage) {
  const { own: ownBefore, ...counted } = before;
  const { own, ...counts } = usage;
  /** @type {Record<string, any>} */
  const sum = { ...counted };
  for (const [key, tokens] of Object.entries(counts)) sum[key] = tokens === true || (sum[key] ?? 0) + tokens;
  if (own || ownBefore) sum.own = addUsage(ownBefore ?? counted, own ?? counts);
  return /** @type {Usage} */ (sum);
}
