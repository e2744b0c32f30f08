// @ts-check
// What arguments may look like, read from a JSON Schema: the part that a small model can be held to while it
// writes. Whatever else a schema says is checked by the loop when the call is there.

/** @import { JsonSchema, JsonValue } from "../index.js" */

/**
 * @typedef {{ kind: "object", members: Member[] }
 *   | { kind: "array", items: Shape, min: number, max: number }
 *   | { kind: "string", min: number, max: number | undefined }
 *   | { kind: "integer" | "number", signed: boolean }
 *   | { kind: "boolean" | "any" }
 *   | { kind: "literal", values: JsonValue[] }
 *   | { kind: "either", of: Shape[] }} Shape
 */
/** Those that must be there come first. @typedef {{ name: string, shape: Shape, required: boolean }} Member */

/** Lists without a bound of their own end here: a small model that repeats itself would never end one. */
const LONGEST_LIST = 16;
/** So many members and alternatives are told apart; a schema of more is any JSON. */
const LARGEST = 200;
/** A schema that is nested deeper is any JSON from there on; so is one that contains itself. */
const DEEPEST = 8;

/** @type {Shape} */
const ANY = { kind: "any" };

/** The shape of the arguments of a tool. @param {JsonSchema} schema @returns {Shape} */
export function shapeOfArguments(schema) {
  const shape = shapeOf(schema);
  // Arguments are an object in any case.
  return shape.kind === "object" || shape.kind === "either" ? shape : { kind: "object", members: [] };
}

/** @param {JsonSchema} schema @returns {Shape} */
export function shapeOf(schema) {
  return read(schema, schema, 0);
}

/** @param {any} schema @param {any} root @param {number} depth @returns {Shape} */
function read(schema, root, depth) {
  if (typeof schema !== "object" || schema === null || depth > DEEPEST) return ANY;
  const inner = (/** @type {any} */ of) => read(of, root, depth + 1);
  if (typeof schema.$ref === "string") return inner(target(schema.$ref, root));
  if ("const" in schema) return { kind: "literal", values: [schema.const] };
  if (Array.isArray(schema.enum)) return schema.enum.length > 0 && schema.enum.length <= LARGEST ? { kind: "literal", values: schema.enum } : ANY;
  const choices = schema.anyOf ?? schema.oneOf ?? (Array.isArray(schema.type) ? schema.type.map((/** @type {string} */ type) => ({ ...schema, type })) : undefined);
  if (Array.isArray(choices)) return either(choices.map(inner));
  if (Array.isArray(schema.allOf)) return schema.allOf.length === 1 && !schema.properties ? inner(schema.allOf[0]) : ANY;
  switch (schema.type ?? (schema.properties ? "object" : undefined)) {
    case "object":
      return object(schema, inner, depth);
    case "array": {
      const max = Math.min(countOr(schema.maxItems, LONGEST_LIST), Math.max(LONGEST_LIST, countOr(schema.minItems, 0)));
      const min = countOr(schema.minItems, 0);
      return min > max || min > LARGEST ? ANY : { kind: "array", items: inner(schema.items), min, max };
    }
    case "string":
      return { kind: "string", min: Math.min(countOr(schema.minLength, 0), 1000), max: typeof schema.maxLength === "number" ? Math.min(countOr(schema.maxLength, 0), 1000) : undefined };
    case "integer":
    case "number":
      return { kind: schema.type, signed: !(schema.minimum >= 0 || schema.exclusiveMinimum >= 0) };
    case "boolean":
      return { kind: "boolean" };
    case "null":
      return { kind: "literal", values: [null] };
    default:
      return ANY;
  }
}

/** @param {any} schema @param {(of: any) => Shape} inner @param {number} depth @returns {Shape} */
function object({ properties, required, additionalProperties }, inner, depth) {
  const names = Object.keys(properties ?? {});
  if (names.length > LARGEST) return ANY;
  // Only the arguments themselves are nothing if nothing is named; an object inside may be any then.
  if (names.length === 0) return depth > 0 && additionalProperties !== false ? ANY : { kind: "object", members: [] };
  const isRequired = (/** @type {string} */ name) => Array.isArray(required) && required.includes(name);
  const members = names.map((name) => ({ name, shape: inner(properties[name]), required: isRequired(name) }));
  return { kind: "object", members: [...members.filter((member) => member.required), ...members.filter((member) => !member.required)] };
}

/** @param {Shape[]} of @returns {Shape} */
function either(of) {
  const [only] = of;
  if (!only || of.length > LARGEST || of.some(({ kind }) => kind === "any")) return ANY;
  return of.length === 1 ? only : { kind: "either", of };
}

/** What `#/…` refers to. @param {string} ref @param {any} root */
function target(ref, root) {
  if (!ref.startsWith("#")) return undefined;
  const steps = ref.slice(1).split("/").slice(1).map((step) => decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~"));
  return steps.reduce((at, step) => (typeof at === "object" && at !== null && Object.hasOwn(at, step) ? at[step] : undefined), root);
}

/** @param {unknown} value @param {number} otherwise */
const countOr = (value, otherwise) => (Number.isSafeInteger(value) && Number(value) >= 0 ? Number(value) : otherwise);
