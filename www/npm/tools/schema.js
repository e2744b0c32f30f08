// @ts-check
// Schemas: JSON Schema, or those of a library that implements Standard Schema.

import { misuse, textOf } from "../shared.js";
import { fromJsonSchema } from "./json-schema.js";

/** @import { JsonSchema } from "../index.js" */
/** @typedef {{ value: unknown } | { error: string }} Checked */
/** @typedef {(args: unknown) => Checked | Promise<Checked>} Check */
/** A prepared schema; `load` loads what its check needs, if that is not there yet. @typedef {{ schema: JsonSchema, check: Check, load?(): Promise<void> | undefined }} PreparedSchema */

/**
 * Prepares a schema: its form for the model, and its check.
 * @param {string} owner @param {any} schema @returns {PreparedSchema}
 */
export function prepareSchema(owner, schema) {
  return schema?.["~standard"] ? fromStandard(owner, schema) : fromJsonSchema(owner, schema);
}

/** Vendors whose schemas can be converted to JSON Schema in some way. */
const CONVERTIBLE_VENDORS = new Set(["zod", "valibot"]);

/** @param {string} owner @param {any} schema @returns {PreparedSchema} */
function fromStandard(owner, schema) {
  const standard = schema["~standard"];
  let jsonSchema;
  let failed = false;
  // The small form of zod 4 has the function beside its schemas.
  let hint = schema._zod ? "one of zod/mini gives it by `z.toJSONSchema(schema)`: pass that" : "zod 4 and ArkType can, valibot through @valibot/to-json-schema; or pass plain JSON Schema";
  try {
    jsonSchema = jsonSchemaOf(schema, standard);
  } catch (error) {
    failed = true;
    hint = textOf(error);
    if (standard.vendor === "zod") hint += "; take a form that JSON has, such as `z.iso.datetime()` for `z.date()`, or pass `z.toJSONSchema(schema, { unrepresentable: \"any\" })`";
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
