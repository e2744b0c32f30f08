// @ts-check
// The patterns of schemas. A schema may be a stranger's, and so may be the text: the host's own regular expressions are
// used only where they cannot take more steps than the text has characters; all others run on linear.js, which is loaded
// when the first of them is there.

import { misuse, textOf } from "../shared.js";

/** @import { Lookup } from "../validator.js" */
/** @typedef {typeof import("../linear.js")} Linear */
/** @typedef {(text: string, count: (steps: number) => void) => boolean} Test */

/** Characters, classes and fixed repetitions one after the other, behind `^` also with one open repetition at the end. */
const PLAIN = /^(?:\^(?:(?:[^\\^$.|?*+()[\]{}]|\\[dDsSwW./-]|\[(?:[^\\\]]|\\.)+\])(?:\{\d{1,3}\})?)+[+*]?|\^?[\w /:@-]{0,99})\$?$/u;
/** More turns than the fixed repetitions of such a pattern may have together: the host's engine writes out each of them. */
const MAX_TURNS = 5000;
/** The longest pattern: so much is soon read. */
const MAX_PATTERN = 50_000;
/** How many characters the patterns of a schema may have together. */
const MAX_SUM = 200_000;
/** How many different characters a class may have: the host's engine sorts them, and some orders take it quadratic time. */
const MAX_CLASS = 2_000;
/** How many sets of Unicode (`\p{L}`) the patterns of a schema may name: the host's engine takes long to compile each of them. */
const MAX_SETS = 250;
/** The longest text that is held against a pattern. */
const MAX_TEXT = 100_000;
/** How many states the patterns of a schema may have together: a character, class or turn of a repetition is one. */
const MAX_STATES = 50_000;
/** How many states are kept of all patterns that were used, those used last. A state takes some hundred bytes. */
const MAX_KEPT = 100_000;
/** How deep a schema may be nested; the engine reads no deeper. */
const MAX_DEPTH = 126;

/** Keywords whose members are schemas by name. */
const MAPS = new Set(["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"]);
/** Keywords that hold values. */
const VALUES = new Set(["default", "const", "enum", "examples"]);

/** @type {Linear | undefined} */
let linear;
/** @type {Promise<void> | undefined} */
let loading;

/** @param {Linear} module */
export function useLinear(module) {
  linear = module;
}

/** Why a pattern is too large for the host's engine to read, if it is. @param {string} pattern */
export function excessOf(pattern) {
  if (pattern.length > MAX_PATTERN) return `it has ${pattern.length} characters; the limit is ${MAX_PATTERN}`;
  /** @type {Set<string> | undefined} */
  let inClass;
  for (let i = 0; i < pattern.length; i++) {
    const char = /** @type {string} */ (pattern[i]);
    if (char === "\\") i++;
    else if (!inClass) inClass = char === "[" ? new Set() : undefined;
    else if (char === "]") inClass = undefined;
    else if (inClass.add(char).size > MAX_CLASS) return `a class in it has more than ${MAX_CLASS} characters`;
  }
}

/** How many turns the host's engine writes out for a pattern; `undefined` if it may take more than linear time. @param {string} pattern */
function turnsOf(pattern) {
  if (!PLAIN.test(pattern)) return;
  let turns = 1;
  for (const [, count] of pattern.matchAll(/\{(\d+)\}/g)) turns += Number(count);
  return turns <= MAX_TURNS ? turns : undefined;
}

/** The patterns that were used last. @type {Map<string, { test: Test, states: number }>} */
const kept = new Map();
let states = 0;

/** The test of a pattern, which is compiled when it is first used. @param {string} pattern @param {number} size @param {Parameters<Test>[1]} count */
function testOf(pattern, size, count) {
  let one = kept.get(pattern);
  if (!one) {
    count(4 * size);
    const own = turnsOf(pattern) ? new RegExp(pattern, "u") : undefined;
    one = { test: own ? (text) => own.test(text) : /** @type {Linear} */ (linear).compile(pattern), states: size };
    states += size;
  }
  kept.delete(pattern);
  kept.set(pattern, one);
  for (const [name, old] of kept) {
    if (states <= MAX_KEPT) break;
    states -= old.states;
    kept.delete(name);
  }
  return one.test;
}

/** The patterns of one schema. */
export class Patterns {
  /** @param {string} where the start of an error: "the parameters of tool `x` are" @param {object} schema */
  constructor(where, schema) {
    this.where = where;
    /** @type {Map<string, Test | undefined>} */
    this.tests = new Map();
    /** How many sets of Unicode they name. */
    this.sets = 0;
    /** How many characters they have together. */
    this.sum = 0;
    /** How many states they have together. */
    this.states = 0;
    this.#collect(schema, 0, true);
    for (const pattern of this.tests.keys()) {
      this.sum += pattern.length;
      this.sets += pattern.match(/\\[pP]\{/g)?.length ?? 0;
      this.#prepare(pattern);
    }
  }

  /** Loads what the patterns need that is not there yet. @returns {Promise<void> | undefined} */
  load() {
    if (linear || ![...this.tests.values()].includes(undefined)) return;
    const failed = (/** @type {unknown} */ error) => {
      loading = undefined;
      throw new Error(`the part of turnwheel that checks patterns cannot be loaded: ${textOf(error)}`, { cause: error });
    };
    return (loading ??= import("../linear.js").then(useLinear, failed));
  }

  /** @param {any} schema @param {number} depth @param {boolean} isSchema */
  #collect(schema, depth, isSchema) {
    if (Object(schema) !== schema) return;
    if (depth > MAX_DEPTH) throw misuse(`${this.where} nested deeper than ${MAX_DEPTH}`);
    for (const [key, value] of Object.entries(schema)) {
      if (isSchema && key === "pattern" && typeof value === "string") this.tests.set(value, undefined);
      const isMap = isSchema && MAPS.has(key);
      if (isMap && key === "patternProperties") for (const pattern of Object.keys(Object(value))) this.tests.set(pattern, undefined);
      if (isMap) for (const part of Object.values(Object(value))) this.#collect(part, depth + 2, true);
      else this.#collect(value, depth + 1, isSchema && !VALUES.has(key));
    }
  }

  /** Prepares a pattern, if all that it needs is there. @param {string} pattern @returns {Test | undefined} */
  #prepare(pattern) {
    try {
      const excess = excessOf(pattern);
      if (excess) throw new Error(excess);
      if (this.sum > MAX_SUM) throw new Error(`with it, the patterns of the schema have ${this.sum} characters; the limit is ${MAX_SUM}`);
      if (this.sets > MAX_SETS) throw new Error(`with it, the patterns of the schema name ${this.sets} sets such as \`\\p{L}\`; the limit is ${MAX_SETS}`);
      new RegExp(pattern, "u");
      // What a group has found cannot be looked for in linear time.
      if (/\\[1-9k]/.test(pattern.replace(/\\[^1-9k]/gsu, ""))) throw new Error("it refers back to one of its groups, which may take centuries; write out what it repeats, or check it in `execute`");
      const size = turnsOf(pattern) ?? linear?.statesOf(pattern);
      if (!size) return;
      this.states += size;
      if (this.states > MAX_STATES) throw new Error(`with it, the patterns of the schema come to ${this.states} states; the limit is ${MAX_STATES}`);
      /** @type {Test} */
      const test = (text, count) => testOf(pattern, size, count)(text, count);
      this.tests.set(pattern, test);
      return test;
    } catch (error) {
      throw misuse(`${this.where} no JSON Schema that can be checked: the pattern ${JSON.stringify(pattern).slice(0, 200)}: ${textOf(error)}`, error);
    }
  }

  /** Whether a text has a match. @param {Lookup} lookup @param {string} pattern @param {string} text */
  matches(lookup, pattern, text) {
    if (text.length > MAX_TEXT) {
      lookup.left = -1;
      throw new Error(`a text of ${text.length} characters is too long for its pattern; the limit is ${MAX_TEXT}`);
    }
    const test = this.tests.get(pattern) ?? this.#prepare(pattern);
    // A step here is a fraction of one of the validator's.
    const count = (/** @type {number} */ steps) => {
      if ((lookup.left -= steps / 8) < 0) throw new Error("its pattern takes too many steps; send less at a time");
    };
    count(text.length / 100 + 8);
    if (!test) throw new Error("its pattern cannot be checked yet; try again");
    return test(text, count);
  }
}
