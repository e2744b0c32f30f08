// @ts-check
// JSON Schema: the check of the schema itself, and of arguments against it. The validator is loaded with the first run
// that has such a schema; the request does not wait for it.

import { isOfClass, jsonOf, kindOf, misuse, textOf } from "../shared.js";
import { Patterns } from "./patterns.js";

/** @import { Lookup } from "../validator.js" */
/** @import { PreparedSchema } from "./schema.js" */

/** How many steps a check may take: schemas that are asked about a value, turns of their loops. Some take a millisecond for a thousand. */
const MAX_STEPS = 2_000_000;
/** How many errors are told. */
const MAX_LINES = 50;

/** @typedef {typeof import("../validator.js")} Validator */

/** @type {Validator | undefined} */
let validator;
/** @type {Promise<void> | undefined} */
let loading;

/** @param {Validator} module */
export function useValidator(module) {
  validator = module;
}

/** Loads the validator, if it is not there yet. @returns {Promise<void> | undefined} */
function loadValidator() {
  if (validator) return;
  const failed = (/** @type {unknown} */ error) => {
    loading = undefined;
    throw new Error(`the part of turnwheel that checks arguments cannot be loaded: ${textOf(error)}`, { cause: error });
  };
  return (loading ??= import("../validator.js").then(useValidator, failed));
}

/** @param {string} owner @param {any} given @returns {PreparedSchema} */
export function fromJsonSchema(owner, given) {
  const where = `the parameters of ${owner}`;
  // The AI SDK wraps JSON Schema: { jsonSchema, validate? }.
  const schema = given?.jsonSchema ?? given;
  checkJsonSchema(where, schema);
  const own = JSON.parse(jsonOf(`${where} are`, schema));
  const passesQuickCheck = quickCheck(own);
  const judge = new Judge(`${where} are`, own);
  const check = (/** @type {any} */ args) => {
    if (passesQuickCheck?.(args)) return { value: args };
    const errors = judge.errorsOf(args);
    if (errors.length === 0) return { value: args };
    const more = errors.length - MAX_LINES;
    return { error: errors.slice(0, MAX_LINES).join("\n") + (more > 0 ? `\nand ${more} more` : "") };
  };
  const load = () => {
    const parts = [loadValidator(), judge.patterns.load()].filter((part) => part !== undefined);
    return parts.length > 0 ? Promise.all(parts).then(() => {}) : undefined;
  };
  return {
    schema: own,
    load,
    check(/** @type {any} */ args) {
      const loading = load();
      return loading ? loading.then(() => check(args)) : check(args);
    },
  };
}

/** Checks values against a schema, with an end to the work. */
export class Judge {
  /** @param {string} where the start of an error: "the parameters of tool `x` are" @param {object} schema */
  constructor(where, schema) {
    this.where = where;
    this.schema = schema;
    this.patterns = new Patterns(where, schema);
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
    if (!validator) throw new Error("the validator is not there yet; try again");
    const { dereference, validate } = validator;
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

/** Throws if this is no JSON Schema. @param {string} where @param {any} schema */
function checkJsonSchema(where, schema) {
  // Instances of classes without Standard Schema, such as those of old zod versions, have no JSON Schema
  // keyword and would accept anything.
  if (!TYPES.object(schema) || isOfClass(schema)) {
    throw misuse(`${where} must be a JSON Schema object or a Standard Schema (zod 4, valibot, …), got ${kindOf(schema)}`);
  }
  const types = schema.type === undefined ? [] : [schema.type].flat();
  for (const type of types) if (!Object.hasOwn(TYPES, type)) throw misuse(`${where} are no JSON Schema: \`type\` is ${JSON.stringify(type)}`);
  const isBare = (/** @type {any} */ value) => typeof value?.type === "string" || value?.enum;
  if (Object.keys(schema).length > 0 && Object.values(schema).every(isBare)) {
    throw misuse(`${where} are properties, no JSON Schema; write { type: "object", properties: { ${Object.keys(schema)[0]}: … } }`);
  }
  for (const [word, type] of [["properties", "object"], ["required", "array"]]) {
    const value = schema[word];
    if (value !== undefined && !TYPES[type](value)) throw misuse(`${where} are no JSON Schema: \`${word}\` must be an ${type}, got ${kindOf(value)}`);
  }
}

/** A test for each type. @type {Record<string, (value: any) => boolean>} */
const TYPES = {
  null: (value) => value === null,
  boolean: (value) => typeof value === "boolean",
  object: (value) => typeof value === "object" && value !== null && !Array.isArray(value),
  array: Array.isArray,
  number: (value) => typeof value === "number",
  string: (value) => typeof value === "string",
  integer: Number.isInteger,
};

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
