// @ts-check
// Tools: each definition is checked once, and its schema becomes JSON Schema for the model
// and a validation function.

import { adaptTool } from "./ai-sdk.js";
import { didYouMean, isOfClass, jsonOf, kindOf, misuse, textOf } from "../shared.js";
import { checkShape, TOOL } from "../options/options.js";
import { dereference, validate } from "../validator.js";

/** A tool returns this to end the run as if aborted. */
export const CANCELLED = Symbol.for("turnwheel.cancelled");

/** Defines a tool; the argument type of `execute` follows from `parameters`. @param {any} definition */
export function tool(definition) {
  prepare(definition);
  return definition;
}

/**
 * A checked tool. `self` is the very object that the host passed in.
 * @typedef {{ definition: any, self: any, schema: any, check(args: any): { value: any } | { error: string } | Promise<{ value: any } | { error: string }> }} Prepared
 */

/** The checked form of each definition. @type {WeakMap<object, Prepared>} */
const prepared = new WeakMap();

/** @param {any} definition @param {string} [name] @returns {Prepared} */
export function prepare(definition, name) {
  if (typeof definition !== "object" || definition === null) throw misuse(`a tool must be an object, got ${kindOf(definition)}`);
  const known = prepared.get(definition);
  if (known && (name === undefined || known.definition.name === name)) return known;
  const named = name === undefined ? definition : Object.setPrototypeOf({ ...definition, name }, Object.getPrototypeOf(definition));
  const adapted = adaptTool(named);
  if (typeof adapted.name !== "string" || adapted.name === "") {
    throw misuse(`a tool needs a \`name\`, got ${kindOf(adapted.name)}; those that have none go into a record: { get_weather: … }`);
  }
  const owner = `tool \`${adapted.name}\``;
  if (adapted === named) checkTypos(owner, adapted);
  if (typeof adapted.execute !== "function") throw misuse(`${owner} needs an \`execute\` function, got ${kindOf(adapted.execute)}`);
  for (const [key, shape] of Object.entries(TOOL)) checkShape(key, adapted[key], shape, `${owner}: `);
  const parameters = adapted.parameters ?? { type: "object", properties: {} };
  const result = { definition: adapted, self: known?.self ?? definition, ...prepareSchema(owner, parameters) };
  const { type = "object" } = result.schema;
  if (![type].flat().includes("object")) throw misuse(`the parameters of ${owner} must describe an object, they describe ${[type].flat().join(" or ")}`);
  // Also under the copy, for those who take it from `agent.tools` and pass it in again.
  prepared.set(definition, result).set(adapted, result);
  return result;
}

/** Names that other libraries use. */
const FOREIGN_NAMES = { params: "parameters", schema: "parameters", input_schema: "parameters", handler: "execute", run: "execute", func: "execute" };

/**
 * Unknown members are the host's own, unless they look like a typo.
 * @param {string} owner @param {any} definition
 */
function checkTypos(owner, definition) {
  for (const key of Object.keys(definition)) {
    const ownName = /** @type {any} */ (FOREIGN_NAMES)[key];
    const missing = ownName && definition[ownName] === undefined ? `; did you mean \`${ownName}\`?` : "";
    const suggestion = missing || (key === "name" || Object.hasOwn(TOOL, key) ? "" : didYouMean(key, Object.keys(TOOL)));
    if (suggestion) throw misuse(`${owner}: unknown option \`${key}\`${suggestion}`);
  }
}

/**
 * Prepares a schema: its form for the model, and its check.
 * @param {string} owner @param {any} schema @returns {{ schema: any, check: Prepared["check"] }}
 */
export function prepareSchema(owner, schema) {
  return schema?.["~standard"] ? fromStandard(owner, schema) : fromJsonSchema(owner, schema);
}

/** Vendors whose schemas can be converted to JSON Schema in some way. */
const CONVERTIBLE_VENDORS = new Set(["zod", "valibot"]);

/** @param {string} owner @param {any} schema */
function fromStandard(owner, schema) {
  const standard = schema["~standard"];
  let jsonSchema;
  let failed = false;
  let hint = "zod 4 and ArkType can, valibot through @valibot/to-json-schema; or pass plain JSON Schema";
  try {
    jsonSchema = jsonSchemaOf(schema, standard);
  } catch (error) {
    failed = true;
    hint = textOf(error);
  }
  if (!jsonSchema) {
    const message = `the schema of ${owner} (${standard.vendor}) cannot give its JSON Schema, which the model needs; ${hint}`;
    // Standard Schema does not require a conversion. Without one, the model learns what a tool
    // takes from the errors alone.
    if (failed || CONVERTIBLE_VENDORS.has(standard.vendor)) throw misuse(message);
    console.warn(`turnwheel: ${message}`);
    jsonSchema = {};
  }
  const toCheckResult = (/** @type {any} */ answer) => (answer.issues ? { error: answer.issues.map(issueText).join("\n") } : { value: answer.value });
  return {
    schema: jsonSchema,
    check(/** @type {any} */ args) {
      const answer = standard.validate(args);
      return typeof answer.then === "function" ? Promise.resolve(answer).then(toCheckResult) : toCheckResult(answer);
    },
  };
}

/** @param {any} schema @param {any} standard */
function jsonSchemaOf(schema, standard) {
  const target = { target: "draft-2020-12" };
  const converted = standard.jsonSchema?.input?.(target) ?? schema.toJSONSchema?.({ io: "input" }) ?? schema.toJsonSchema?.() ?? schema.jsonSchema;
  if (typeof converted !== "object" || converted === null) return;
  const { $schema, "~standard": own, ...rest } = converted;
  return rest;
}

/** @param {any} issue */
function issueText(issue) {
  const path = (issue.path ?? []).map((/** @type {any} */ step) => step?.key ?? step).join(".");
  return path ? `${path}: ${issue.message}` : issue.message;
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

/** @param {string} owner @param {any} given */
function fromJsonSchema(owner, given) {
  const where = `the parameters of ${owner}`;
  // The AI SDK wraps JSON Schema: { jsonSchema, validate? }.
  const schema = given?.jsonSchema ?? given;
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

/**
 * Converts an array or a record of tools.
 * @param {unknown} tools @param {boolean} namesMayRepeat @returns {Prepared[]}
 */
export function toTools(tools, namesMayRepeat) {
  if (tools === undefined || tools === null) return [];
  if (typeof tools !== "object") throw misuse(`\`tools\` must be an array of tools or a record by name, got ${kindOf(tools)}`);
  const list = Symbol.iterator in tools ? Array.from(/** @type {any} */ (tools), (given) => prepare(given)) : Object.entries(tools).map(([name, given]) => prepare(given, name));
  const names = new Set();
  for (const { definition } of list) {
    if (names.has(definition.name) && !namesMayRepeat) throw misuse(`two tools are named \`${definition.name}\`; names must be unique`);
    names.add(definition.name);
  }
  return list;
}
