// @ts-check
// Work that may wait, but not for ever.

import { misuse } from "../shared.js";

/** @template T @param {() => Promise<T>} work @param {number} ms @param {string} what what takes too long @returns {Promise<T>} */
export async function within(work, ms, what) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const late = new Promise((_, failed) => {
    timer = setTimeout(() => failed(misuse(`${what} took longer than ${ms / 1000} s`)), ms);
  });
  try {
    return await Promise.race([work(), /** @type {Promise<never>} */ (late)]);
  } finally {
    clearTimeout(timer);
  }
}
