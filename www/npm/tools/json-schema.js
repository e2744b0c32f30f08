// @ts-check
// JSON Schema: the check of the schema itself, and of arguments against it.

import { isOfClass, jsonOf, kindOf, misuse, textOf } from "../shared.js";
import { dereference, validate } from "../validator.js";

/** @import { PreparedSchema } from "./schema.js" */

/** @param {string} owner @param {any} given @returns {PreparedSchema} */
export function fromJsonSchema(owner, given) {
  const where = `the parameters of ${owner}`;
  // The AI SDK wraps JSON Schema: { jsonSchema, validate? }.
  const schema = given?.jsonSchema ?? given;
  checkJsonSchema(where, schema);
  const own = JSON.parse(jsonOf(`${where} are`, schema));
  const passesQuickCheck = quickCheck(own);
  /** @type {any} */
  let lookup;
  return {
    schema: own,
    check(/** @type {any} */ args) {
      if (passesQuickCheck?.(args)) return { value: args };
      let outcome;
      try {
        outcome = validate(args, own, (lookup ??= dereference(own)));
      } catch (error) {
        // An invalid pattern or an unresolvable reference: no arguments could be checked.
        throw misuse(`${where} are no JSON Schema: ${textOf(error)}`, error);
      }
      const { valid, errors } = outcome;
      if (valid) return { value: args };
      // The last errors are the innermost; those before only say that something below is wrong.
      const lines = errors.filter((issue) => !/does not match schema|A subschema had errors/.test(issue.error)).map((issue) => `${issue.instanceLocation.replace(/^#\/?/, "")} ${issue.error}`.trim());
      return { error: [...new Set(lines.length ? lines : errors.map((issue) => issue.error))].join("\n") };
    },
  };
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
  const members = new Map(Object.entries(Object(properties)).map(([key, schema]) => [key, quickCheck(schema)]));
  const isItem = items === undefined ? () => true : quickCheck(items);
  if (!isItem || [...members.values()].includes(undefined)) return;
  return (value) => {
    if (!isType(value) || (choices && !choices.includes(value))) return false;
    if (type === "array") return value.every((/** @type {any} */ item) => isItem(item));
    if (type !== "object") return true;
    return required.every((key) => Object.hasOwn(value, key)) && Object.keys(value).every((key) => members.get(key)?.(value[key]) ?? additionalProperties);
  };
}
