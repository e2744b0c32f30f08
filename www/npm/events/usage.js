// @ts-check
// Token counts.

/** @import { Usage } from "../index.js" */

/** @returns {Usage} */
export function noUsage() {
  return { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
}

/** Returns the sum of two counts. @param {Usage} before @param {Partial<Usage>} usage @returns {Usage} */
export function addUsage(before, usage) {
  /** @type {Record<string, number | undefined>} */
  const sum = { ...before };
  for (const [key, tokens] of Object.entries(usage)) sum[key] = (sum[key] ?? 0) + tokens;
  return /** @type {Usage} */ (/** @type {unknown} */ (sum));
}
