// @ts-check
// JSON Schema: the check of the schema itself. What checks arguments against it (judge.js) is loaded with the first run that
// has such a schema; the request does not wait for it.

import { isOfClass, jsonOf, kindOf, misuse, textOf } from "../shared.js";
import { Patterns } from "./patterns.js";

/** @import { Check, PreparedSchema } from "./schema.js" */
/** @typedef {typeof import("./judge.js")} Judging */

/** @type {Judging | undefined} */
let judging;
/** @type {Promise<void> | undefined} */
let loading;

/** @param {Judging} module */
export function useJudge(module) {
  judging = module;
}

/** Loads what checks arguments, if it is not there yet. @returns {Promise<void> | undefined} */
function loadJudge() {
  if (judging) return;
  const failed = (/** @type {unknown} */ error) => {
    loading = undefined;
    throw new Error(`the part of turnwheel that checks arguments cannot be loaded: ${textOf(error)}`, { cause: error });
  };
  return (loading ??= import("./judge.js").then(useJudge, failed));
}

/** @param {string} owner @param {any} given @returns {PreparedSchema} */
export function fromJsonSchema(owner, given) {
  const where = `the parameters of ${owner}`;
  // The AI SDK wraps JSON Schema: { jsonSchema, validate? }.
  const schema = given?.jsonSchema ?? given;
  checkJsonSchema(where, schema);
  const own = JSON.parse(jsonOf(`${where} are`, schema));
  const patterns = new Patterns(`${where} are`, own);
  const load = () => {
    const parts = [loadJudge(), patterns.load()].filter((part) => part !== undefined);
    return parts.length > 0 ? Promise.all(parts).then(() => {}) : undefined;
  };
  /** @type {Check | undefined} */
  let made;
  return {
    schema: own,
    load,
    check(/** @type {unknown} */ args) {
      const check = () => (made ??= /** @type {Judging} */ (judging).checkOf(`${where} are`, own, patterns))(args);
      const loading = made ? undefined : load();
      return loading ? loading.then(check) : check();
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
export const TYPES = {
  null: (value) => value === null,
  boolean: (value) => typeof value === "boolean",
  object: (value) => typeof value === "object" && value !== null && !Array.isArray(value),
  array: Array.isArray,
  number: (value) => typeof value === "number",
  string: (value) => typeof value === "string",
  integer: Number.isInteger,
};
