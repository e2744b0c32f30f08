// @ts-check
// Checks values against JSON Schema. Loaded with the first run that has a schema; see json-schema.js.

import { dereference, validate } from "../validator.js";
import { misuse, textOf } from "../core.js";
import { TYPES } from "./json-schema.js";
import { Patterns } from "./patterns.js";

export { excessOf } from "./patterns.js";

/** @import { Lookup } from "../validator.js" */
/** @import { Check } from "./schema.js" */

/** How many steps a check may take: schemas that are asked about a value, turns of their loops. Some take a millisecond for a thousand. */
const MAX_STEPS = 2_000_000;
/** How many errors are told. */
const MAX_LINES = 50;

/** The check of a schema. @param {string} where @param {any} schema @param {Patterns} patterns @returns {Check} */
export function checkOf(where, schema, patterns) {
  const passesQuickCheck = quickCheck(schema);
  const judge = new Judge(where, schema, patterns);
  return (args) => {
    if (passesQuickCheck?.(args)) return { value: args };
    const errors = judge.errorsOf(args);
    if (errors.length === 0) return { value: args };
    const more = errors.length - MAX_LINES;
    return { error: errors.slice(0, MAX_LINES).join("\n") + (more > 0 ? `\nand ${more} more` : "") };
  };
}

/** Checks values against a schema, with an end to the work. */
export class Judge {
  /**
   * @param {string} where the start of an error: "the parameters of tool `x` are" @param {object} schema
   * @param {Patterns} [patterns] those of the schema
   */
  constructor(where, schema, patterns = new Patterns(where, schema)) {
    this.where = where;
    this.schema = schema;
    this.patterns = patterns;
    /** @type {Lookup | undefined} */
    this.lookup = undefined;
  }

  /** Beside the schemas, whose addresses an error lists. @returns {Lookup} */
  #newLookup() {
    const matches = this.patterns.matches.bind(this.patterns);
    return Object.create(null, { left: { value: 0, writable: true }, matches: { value: matches } });
  }

  /** What is wrong with a value. @param {unknown} value @returns {string[]} */
  errorsOf(value) {
    const lookup = this.lookup ?? this.#newLookup();
    lookup.left = MAX_STEPS;
    try {
      if (!this.lookup) this.lookup = dereference(this.schema, lookup);
      const { valid, errors } = validate(value, this.schema, lookup);
      if (valid) return [];
      // The last errors are the innermost; those before only say that something below is wrong.
      const lines = errors.filter((issue) => !/does not match schema|A subschema had errors/.test(issue.error)).map((issue) => `${issue.instanceLocation.replace(/^#\/?/, "")} ${issue.error}`.trim());
      return [...new Set(lines.length ? lines : errors.map((issue) => issue.error))];
    } catch (error) {
      if (lookup.left < 0) return [textOf(error)];
      // An invalid pattern or an unresolvable reference: no arguments could be checked.
      throw misuse(`${this.where} no JSON Schema: ${textOf(error).slice(0, 1000)}`, error);
    }
  }
}

/** Keywords that do not constrain the value. */
const NOTES = new Set(["title", "description", "default", "examples", "$schema"]);

/**
 * Compiles a fast check for schemas of the most common keywords; returns nothing for any other. What it
 * refuses must still go to the validator, which words the errors.
 * @param {any} schema @returns {((value: any) => boolean) | undefined}
 */
function quickCheck(schema) {
  const { type, properties = {}, required = [], additionalProperties = true, items, enum: choices, ...rest } = Object(schema);
  // Lists of types, even of one, are left to the validator.
  if (typeof type !== "string" || !Object.hasOwn(TYPES, type) || !Object.keys(rest).every((word) => NOTES.has(word))) return;
  if (typeof additionalProperties !== "boolean" || !Array.isArray(required) || !Array.isArray(choices ?? [])) return;
  const isType = TYPES[type];
  const known = choices && new Set(choices);
  const members = new Map(Object.entries(Object(properties)).map(([key, schema]) => [key, quickCheck(schema)]));
  const isItem = items === undefined ? () => true : quickCheck(items);
  if (!isItem || [...members.values()].includes(undefined)) return;
  return (value) => {
    if (!isType(value) || (known && !known.has(value))) return false;
    if (type === "array") return value.every((/** @type {any} */ item) => isItem(item));
    if (type !== "object") return true;
    return required.every((key) => Object.hasOwn(value, key)) && Object.keys(value).every((key) => members.get(key)?.(value[key]) ?? additionalProperties);
  };
}
