// @ts-check
// What the host threw becomes the `cause` of an error: the very object, or, if a secret of the call stands anywhere in
// it, an error that says the same with the secret masked.

import { textOf } from "../core.js";

/** How much of an object is searched; libraries hang whole requests on their errors. */
const DEPTH = 6;
const PLACES = 1_000;

/** A longer text is not searched, and counts as one that holds a secret. */
const LONGEST = 1 << 20;

/** @param {any} thrown @param {(text: string) => string} masked */
export function withoutSecrets(thrown, masked) {
  const mask = (/** @type {string} */ text) => (text.length > LONGEST ? "[key]" : masked(text));
  try {
    if (!holds(thrown, (text) => mask(text) !== text)) return thrown;
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

/**
 * Whether anything that is shown of a value is a secret: by a console, as JSON, or to whoever reads its members.
 * @param {unknown} value @param {(text: string) => boolean} isSecret @param {number} [depth] @param {Set<unknown>} [seen] @returns {boolean}
 */
export function holds(value, isSecret, depth = 0, seen = new Set()) {
  if (typeof value === "symbol") return isSecret(value.description ?? "");
  if (typeof value === "string") return isSecret(value);
  if ((typeof value !== "object" && typeof value !== "function") || value === null || seen.has(value)) return false;
  // A console shows what a promise was kept with, and nothing else does.
  if (depth > DEPTH || seen.add(value).size > PLACES || value instanceof Promise) return true;
  for (const part of partsOf(value)) if (holds(part, isSecret, depth + 1, seen)) return true;
  return false;
}

const ITERABLES = ["Map", "Set", "Headers", "URLSearchParams", "FormData"];
const PLAIN = new Set([Object, Function, Array, Error].map(({ prototype }) => prototype));
const INSPECT = Symbol.for("nodejs.util.inspect.custom");

/**
 * The names and the values of an object. An address, a request or a class of the host has its own behind accessors.
 * @param {any} value @returns {Generator<unknown>}
 */
function* partsOf(value) {
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return yield new TextDecoder("latin1").decode(value);
  if (value instanceof String) yield String(value);
  if (ITERABLES.includes(value[Symbol.toStringTag])) yield [...value];
  if (typeof value.toJSON === "function") yield value.toJSON();
  if (Object.hasOwn(value, INSPECT)) yield value[INSPECT]();
  for (let at = value; at !== null && !PLAIN.has(at); at = Object.getPrototypeOf(at)) {
    for (const [name, { get, value: held }] of entriesOf(at)) {
      // Of a class, its methods show nothing, and of what an object inherits, the accessors are asked about itself.
      if (at !== value && typeof held === "function") continue;
      if (typeof value === "function" && name === "prototype") continue;
      yield name;
      yield get ? Reflect.get(at, name, value) : held;
    }
  }
}

/** @param {object} object @returns {[string | symbol, PropertyDescriptor][]} */
const entriesOf = (object) => Reflect.ownKeys(object).map((name) => [name, Reflect.getOwnPropertyDescriptor(object, name) ?? {}]);
