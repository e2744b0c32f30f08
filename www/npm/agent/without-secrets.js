// @ts-check
// What the host threw becomes the `cause` of an error: the very object, or, if a secret of the call stands anywhere in
// it, an error that says the same with the secret masked.

import { textOf } from "../shared.js";

/** How much of an object is searched; libraries hang whole requests on their errors. */
const DEPTH = 6;
const PLACES = 1_000;

/** @param {any} thrown @param {(text: string) => string} mask */
export function withoutSecrets(thrown, mask) {
  const seen = new Set();
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
  const masked = new Error(mask(textOf(thrown)));
  masked.name = mask(read(thrown, "name") ?? masked.name);
  masked.stack = mask(read(thrown, "stack") ?? String(masked));
  return masked;
}

/** A text of what was thrown, unless reading it throws. @param {any} thrown @param {string} name @returns {string | undefined} */
function read(thrown, name) {
  try {
    const text = thrown?.[name];
    return typeof text === "string" ? text : undefined;
  } catch {
    return undefined;
  }
}
