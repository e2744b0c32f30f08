// @ts-check
// How the validator compares and measures values of JSON, in place of its own ways, which are longer, and how it counts
// its work: schemas and values come from strangers, and some of them would keep it busy for hours.

/**
 * What a check shares besides the schemas by their addresses: how many steps are left, and how a text is held against a
 * pattern.
 * @typedef {{ left?: number, matches?(lookup: Lookup, pattern: string, text: string): boolean }} Lookup
 */

/** How many errors of one place are kept: nobody reads more, and every level copies those of the levels below it. */
const MAX_ERRORS = 1000;
/** How much of a schema's own values is shown in an error. */
const MAX_SHOWN = 2000;

/** Counts a step. Without a limit there is none. @param {Lookup} lookup @param {number} [steps] */
export function visit(lookup, steps = 1) {
  if (lookup.left !== undefined && (lookup.left -= steps) < 0) throw new Error("checking them takes too many steps; send less at a time");
}

/** Adds the errors of a part to those of the whole. @param {Lookup} lookup @param {object[]} errors @param {object[]} more */
export function add(lookup, errors, ...more) {
  for (const error of more.flat()) {
    if (errors.length >= MAX_ERRORS) return;
    visit(lookup);
    errors.push(error);
  }
}

/** Adds the members that parts of a schema have judged. @param {Lookup} lookup @param {Record<string, true>} evaluated @param {Record<string, true>[]} parts */
export function merge(lookup, evaluated, parts) {
  for (const part of parts) {
    for (const key of Object.keys(part)) {
      visit(lookup);
      evaluated[key] = true;
    }
  }
}

/** @param {any} a @param {any} b @returns {boolean} */
export function deepCompareStrict(a, b) {
  if (Object(a) !== a || Object(b) !== b) return a === b;
  const keys = Object.keys(a);
  const isAlike = Array.isArray(a) === Array.isArray(b) && keys.length === Object.keys(b).length;
  return isAlike && keys.every((key) => Object.hasOwn(b, key) && deepCompareStrict(a[key], b[key]));
}

/** A text that two values share if they are equal. @param {Lookup} lookup @param {any} value @returns {string} */
function canonical(lookup, value) {
  visit(lookup);
  if (Array.isArray(value)) return `[${value.map((item) => canonical(lookup, item))}]`;
  if (Object(value) !== value) return JSON.stringify(value);
  return `{${Object.keys(value).sort().map((key) => `${JSON.stringify(key)}:${canonical(lookup, value[key])}`)}}`;
}

/** The first two places of a list that hold equal items. @param {Lookup} lookup @param {any[]} list */
export function equalPair(lookup, list) {
  /** The first place of each value. @type {Map<string, number>} */
  const places = new Map();
  /** @type {[number, number] | undefined} */
  let pair;
  list.forEach((item, k) => {
    const key = canonical(lookup, item);
    const j = places.get(key);
    if (j === undefined) places.set(key, k);
    else if (!pair || j < pair[0]) pair = [j, k];
  });
  return pair;
}

/** The values of each list in a schema, by their texts. @type {WeakMap<any[], Set<string>>} */
const choices = new WeakMap();

/** Whether a value is one of a list in a schema. @param {Lookup} lookup @param {any[]} list @param {any} value */
export function isAmong(lookup, list, value) {
  let known = choices.get(list);
  if (!known) choices.set(list, (known = new Set(list.map((choice) => canonical(lookup, choice)))));
  return known.has(canonical(lookup, value));
}

/** A value of a schema, for an error. @param {Lookup} lookup @param {any} value */
export function shown(lookup, value) {
  const text = JSON.stringify(value);
  visit(lookup, text.length >> 6);
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}

/** Whether a text matches a pattern. @param {Lookup} lookup @param {string} pattern @param {string} text */
export function isMatch(lookup, pattern, text) {
  return lookup.matches ? lookup.matches(lookup, pattern, text) : new RegExp(pattern, "u").test(text);
}

/** The characters of a text: two halves are one. @param {string} text */
export function ucs2length(text) {
  return text.length - (text.match(/[\ud800-\udbff][\udc00-\udfff]/g) ?? []).length;
}
