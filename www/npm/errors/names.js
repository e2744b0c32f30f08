// @ts-check
// How error messages name values, and the names that may have been meant.

import { misuse } from "./errors.js";

/** Names the type of a value for error messages. @param {unknown} value */
export function kindOf(value) {
  if (value === null) return "null";
  const kind = typeof value;
  try {
    if (Array.isArray(value)) return "an array";
    return kind === "undefined" ? "nothing" : kind === "object" ? `an object (${value?.constructor?.name ?? "no prototype"})` : `a ${kind}`;
  } catch {
    return "an object that cannot be read";
  }
}

/** Whether an object is an instance of a class rather than a plain object. @param {object} value */
export function isOfClass(value) {
  const prototype = Object.getPrototypeOf(value);
  return prototype !== null && Object.getPrototypeOf(prototype) !== null;
}

/**
 * Finds the most similar of some names, if one is close enough: by edit distance, or because one contains
 * the other. For a path, its last name counts.
 * @param {string} word @param {Iterable<string>} names
 */
export function didYouMean(word, names) {
  const given = word.toLowerCase();
  let best = "";
  // Most short words are two letters away from each other.
  let fewest = word.length < 5 ? 2 : Math.max(2, Math.floor(word.length / 3)) + 1;
  for (const path of names) {
    const name = path.slice(path.lastIndexOf(".") + 1).toLowerCase();
    const isPart = Math.min(given.length, name.length) > 3 && (name.includes(given) || given.includes(name));
    const edits = isPart ? Math.min(2, distance(given, name)) : distance(given, name);
    if (edits < fewest) [best, fewest] = [path, edits];
  }
  return best && `; did you mean \`${best}\`?`;
}

/**
 * Shows a value in an error message: strings, numbers and booleans literally, others by type.
 * @param {unknown} value
 */
export function shownOf(value) {
  return typeof value === "string" ? JSON.stringify(value) : typeof value === "number" || typeof value === "boolean" ? String(value) : kindOf(value);
}

/**
 * Throws if an object has a name that is not known.
 * @param {string} where what precedes the name in the message @param {object} given
 * @param {object} known an array of names, or an object with them
 * @param {Iterable<string>} [likely] names that may have been meant
 */
export function checkNames(where, given, known, likely = Array.isArray(known) ? known : Object.keys(known)) {
  if (typeof given !== "object" || given === null) throw misuse(`options { ${[...likely].slice(0, 9).join(", ")} } must be an object, got ${kindOf(given)}`);
  for (const name of Object.keys(given)) {
    if (!(Array.isArray(known) ? known.includes(name) : Object.hasOwn(known, name))) throw misuse(`${where}${where.endsWith(".") ? "" : " `"}${name}\`${didYouMean(name, likely) || thereAre([...likely])}`);
  }
}

/** The names that there are, if they fit into a sentence. @param {string[]} names */
const thereAre = (names) => (names.length > 20 ? "" : `; there ${names.length > 1 ? "are" : "is"} ${names.join(", ")}`);

/**
 * Throws if an object has a name that other libraries use, or that belongs elsewhere.
 * @param {string} where what precedes the name in the message @param {object} given
 * @param {Record<string, string>} table what to write instead: a name, or a sentence
 */
export function checkForeignNames(where, given, table) {
  for (const name of Object.keys(given)) {
    const hint = Object.hasOwn(table, name) ? table[name] : "";
    if (hint) throw misuse(`${where} \`${name}\`; ${hint.includes(" ") ? hint : `did you mean \`${hint}\`?`}`);
  }
}

/** @param {string} a @param {string} b */
function distance(a, b) {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      next[j] = Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1));
    }
    row = next;
  }
  return row[b.length];
}
