// @ts-check
// What the host threw becomes the `cause` of an error: the very object, or, if a secret of the call stands anywhere in
// it, an error that says the same with the secret masked.

import { textOf } from "../shared.js";

/** How much of an object is searched; libraries hang whole requests on their errors. */
const DEPTH = 6;
const PLACES = 1_000;

/** A longer text is not searched, and counts as one that holds a secret. */
const LONGEST = 1 << 20;

/** @param {any} thrown @param {(text: string) => string} masked */
export function withoutSecrets(thrown, masked) {
  const seen = new Set();
  const mask = (/** @type {string} */ text) => (text.length > LONGEST ? "[key]" : masked(text));
  /** @param {any} value @param {number} depth @returns {boolean} */
  const holds = (value, depth) => {
    if (typeof value === "string") return mask(value) !== value;
    if (typeof value !== "object" || value === null || seen.has(value)) return false;
    if (depth > DEPTH || seen.add(value).size > PLACES) return true;
    const entries = value instanceof Map || value instanceof Set || value instanceof Headers ? [...value] : [];
    return [...entries, ...Reflect.ownKeys(value).flatMap((name) => [name, value[name]])].some((each) => holds(each, depth + 1));
  };
  try {
    if (!holds(thrown, 0)) return thrown;
  } catch {
    // What cannot be searched may hold one.
  }
  const copy = new Error(mask(textOf(thrown)));
  try {
    copy.name = mask(String(thrown.name ?? copy.name));
    copy.stack = mask(String(thrown.stack ?? copy));
  } catch {
    copy.stack = String(copy);
  }
  return copy;
}
