// @ts-check
// What arguments may look like, read from a JSON Schema: the part that a small model can be held to while it
// writes. Whatever else a schema says is checked by the loop when the call is there.

/** @import { JsonSchema, JsonValue, ModelRequest } from "../index.js" */

/**
 * @typedef {{ kind: "object", members: Member[] }
 *   | { kind: "array", items: Shape, min: number, max: number }
 *   | { kind: "string", min: number, max: number | undefined }
 *   | { kind: "integer" | "number", signed: boolean }
 *   | { kind: "boolean" | "any" }
 *   | { kind: "literal", values: JsonValue[], texts: string[] }
 *   | { kind: "either", of: Shape[] }} Shape
 */
/** Those that must be there come first. @typedef {{ name: string, shape: Shape, required: boolean }} Member */
/**
 * What an answer may be. `calls` is how many calls at most; `output` is what is said, if that is data; with `mustCall` nothing can
 * be said.
 * @typedef {{ tools: { name: string, shape: Shape }[], calls: number, output: Shape | undefined, mustCall: boolean }} Form
 */

/** Lists without a bound of their own end here: a small model that repeats itself would never end one. */
const LONGEST_LIST = 16;
/** So many members and alternatives are told apart; a schema of more is any JSON. */
const LARGEST = 200;
/** A schema that is nested deeper is any JSON from there on; so is one that contains itself. */
const DEEPEST = 8;

/** @type {Shape} */
const ANY = { kind: "any" };

/** What an answer to this request may be. @param {Pick<ModelRequest, "tools" | "options" | "output">} request @param {number} maxCalls @returns {Form} */
export function formOf({ tools, options: { toolChoice = "auto", parallelToolCalls }, output }, maxCalls) {
  const only = typeof toolChoice === "object" ? tools.filter(({ name }) => name === toolChoice.toolName) : tools;
  return {
    tools: only.map(({ name, parameters }) => ({ name, shape: shapeOfArguments(parameters) })),
    calls: toolChoice === "none" ? 0 : parallelToolCalls === false ? 1 : maxCalls,
    output: output && shapeOf(output),
    mustCall: typeof toolChoice === "object" || toolChoice === "required",
  };
}

/** JSON with a blank after `:` and `,`, as all of an answer is written. @param {JsonValue} value @returns {string} */
export function spaced(value) {
  if (Array.isArray(value)) return `[${value.map(spaced).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  return `{${Object.entries(value).filter(([, inner]) => inner !== undefined).map(([name, inner]) => `${JSON.stringify(name)}: ${spaced(inner)}`).join(", ")}}`;
}

/** @param {JsonValue[]} values @returns {Shape} */
const literal = (values) => ({ kind: "literal", values, texts: values.map(spaced) });

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
  if ("const" in schema) return literal([schema.const]);
  if (Array.isArray(schema.enum)) return schema.enum.length > 0 && schema.enum.length <= LARGEST ? literal(schema.enum) : ANY;
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
      return literal([null]);
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
