// @ts-check
// The form of an answer, as a grammar (GBNF of llama.cpp, which XGrammar of web-llm reads as EBNF) and as a JSON
// Schema. An answer is `{"say": "…"}` or `{"calls": [{"name": …, "arguments": …}, …]}`: the first key decides, so
// that text streams at once and the name of a call is known before its arguments. No white space can be chosen:
// a small model that may choose it writes nothing else in the end.

import { shapeOf, shapeOfArguments } from "./shape.js";

/** @import { JsonSchema, JsonValue, ModelRequest } from "../index.js" */
/** @import { Shape } from "./shape.js" */

/**
 * What an answer may be. `calls` is how many calls at most; `output` is the schema of what is said, if that is data; with
 * `mustCall` nothing can be said.
 * @typedef {{ tools: ModelRequest["tools"], calls: number, output: JsonSchema | undefined, mustCall: boolean }} Form
 */

/** Texts in arguments end here where the engine can count: a small model that repeats itself would never end one. */
const LONGEST_TEXT = 400;

/** Rules that others use; those of JSON stand for what a schema leaves open. */
const RULES = {
  char: String.raw`[^"\\\x00-\x1F] | "\\" ["\\/bfnrt] | "\\u" hex hex hex hex`,
  hex: "[0-9a-fA-F]",
  text: '"\\"" char* "\\""',
  natural: '"0" | [1-9] [0-9]{0,14}',
  integer: '"-"? natural',
  number: 'integer ("." [0-9]{1,9})?',
  size: 'natural ("." [0-9]{1,9})?',
  boolean: '"true" | "false"',
  any: 'text | number | boolean | "null" | list | map',
  list: '"[" (any (", " any)*)? "]"',
  map: '"{" (text ": " any (", " text ": " any)*)? "}"',
};
/** @type {{ [name: string]: (keyof typeof RULES)[] }} */
const USES = { char: ["hex"], text: ["char"], integer: ["natural"], number: ["integer"], size: ["natural"], any: ["text", "number", "boolean", "list", "map"], list: ["any"], map: ["any", "text"] };

/** @param {string} text */
const literal = (text) => `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n").replaceAll("\r", "\\r").replaceAll("\t", "\\t")}"`;
/** JSON with a blank after `:` and `,`, as everything else here is written. @param {JsonValue} value @returns {string} */
export function spaced(value) {
  if (Array.isArray(value)) return `[${value.map(spaced).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  return `{${Object.entries(value).filter(([, inner]) => inner !== undefined).map(([name, inner]) => `${JSON.stringify(name)}: ${spaced(inner)}`).join(", ")}}`;
}

/**
 * The grammar of an answer. With `bounded`, texts in arguments have a longest length; XGrammar would compile for minutes.
 * @param {Form} form @param {{ bounded: boolean }} options
 */
export function grammarOf({ tools, calls, output, mustCall }, { bounded }) {
  const rules = new Rules(bounded);
  // An answer without a word is no answer.
  const say = output ? rules.of(shapeOf(output)) : `"\\"" ${rules.use("char")}+ "\\""`;
  const kinds = [];
  if (tools.length > 0 && calls > 0) {
    const each = tools.map(({ name, parameters }) => rules.add(`${literal(`{"name": ${JSON.stringify(name)}, "arguments": `)} ${rules.of(shapeOfArguments(parameters))} "}"`));
    const call = rules.add(each.join(" | "));
    kinds.push(rules.add(`${literal('{"calls": [')} ${call} ${calls > 1 ? `(", " ${call}){0,${calls - 1}} ` : ""}"]}"`));
  }
  if (!mustCall || kinds.length === 0) kinds.push(rules.add(`${literal('{"say": ')} ${say} "}"`));
  return rules.toText(kinds.join(" | "));
}

class Rules {
  /** @param {boolean} bounded */
  constructor(bounded) {
    this.bounded = bounded;
    /** @type {string[]} */
    this.own = [];
    /** @type {Set<keyof typeof RULES>} */
    this.used = new Set();
  }

  /** @param {string} body */
  add(body) {
    // Alike rules are one.
    const known = this.own.indexOf(body);
    return `r${known < 0 ? this.own.push(body) - 1 : known}`;
  }

  /** @param {keyof typeof RULES} name */
  use(name) {
    if (!this.used.has(name)) {
      this.used.add(name);
      for (const other of USES[name] ?? []) this.use(other);
    }
    return name;
  }

  /** @param {Shape} shape @returns {string} */
  of(shape) {
    switch (shape.kind) {
      case "object":
        return this.add(this.object(shape.members));
      case "array": {
        const item = this.of(shape.items);
        if (shape.max === 0) return '"[]"';
        const more = `(", " ${item}){${Math.max(shape.min - 1, 0)},${shape.max - 1}}`;
        return this.add(shape.min === 0 ? `"[" (${item} ${more})? "]"` : `"[" ${item} ${more} "]"`);
      }
      case "string": {
        if (!this.bounded || (shape.min === 0 && shape.max === 0)) return shape.max === 0 ? '"\\"\\""' : this.use("text");
        return this.add(`"\\"" ${this.use("char")}{${shape.min},${Math.max(shape.max ?? LONGEST_TEXT, shape.min)}} "\\""`);
      }
      case "integer":
        return this.use(shape.signed ? "integer" : "natural");
      case "number":
        return this.use(shape.signed ? "number" : "size");
      case "literal":
        return this.add(shape.values.map((value) => literal(spaced(value))).join(" | "));
      case "either":
        return this.add(shape.of.map((each) => this.of(each)).join(" | "));
      case "boolean":
      case "any":
        return this.use(shape.kind);
    }
  }

  /** @param {import("./shape.js").Member[]} members */
  object(members) {
    const isOpen = members.length > 0 && !members[0]?.required;
    let rest = "";
    // From the last to the first: what follows a member is a rule, for it may be left out.
    for (const [i, { name, shape, required }] of [...members.entries()].reverse()) {
      const value = this.of(shape);
      const key = `${JSON.stringify(name)}: `;
      if (required) rest = `${literal(i === 0 ? `{${key}` : `, ${key}`)} ${value}${rest && ` ${rest}`}`;
      else if (!isOpen) rest = `(${literal(`, ${key}`)} ${value})?${rest && ` ${rest}`}`;
    }
    if (!isOpen) return members.length === 0 ? '"{}"' : `${rest} "}"`;
    // All may be left out: which one comes first decides where the first comma stands.
    const tails = members.map(({ name, shape }) => `(${literal(`, ${JSON.stringify(name)}: `)} ${this.of(shape)})?`);
    const heads = members.map(({ name, shape }, i) => [literal(`${JSON.stringify(name)}: `), this.of(shape), ...tails.slice(i + 1)].join(" "));
    return `"{" (${heads.join(" | ")})? "}"`;
  }

  /** @param {string} root */
  toText(root) {
    const used = [...this.used].map((name) => `${name} ::= ${RULES[name]}`);
    return [`root ::= ${root}`, ...this.own.map((body, i) => `r${i} ::= ${body}`), ...used].join("\n") + "\n";
  }
}

/** The same form as a JSON Schema, for engines without a grammar. @param {Form} form @returns {JsonSchema} */
export function schemaOf({ tools, calls, output, mustCall }) {
  const closed = (/** @type {{ [name: string]: JsonSchema }} */ properties) => ({ type: "object", properties, required: Object.keys(properties), additionalProperties: false });
  const say = closed({ say: output ? strict(shapeOf(output)) : { type: "string", minLength: 1 } });
  if (tools.length === 0 || calls === 0) return say;
  const items = { anyOf: tools.map(({ name, parameters }) => closed({ name: { const: name }, arguments: strict(shapeOfArguments(parameters)) })) };
  const called = closed({ calls: { type: "array", items, minItems: 1, maxItems: calls } });
  return mustCall ? called : { anyOf: [called, say] };
}

/** @param {Shape} shape @returns {JsonSchema} */
function strict(shape) {
  switch (shape.kind) {
    case "object":
      return {
        type: "object",
        properties: Object.fromEntries(shape.members.map((member) => [member.name, strict(member.shape)])),
        required: shape.members.filter((member) => member.required).map(({ name }) => name),
        additionalProperties: false,
      };
    case "array":
      return { type: "array", items: strict(shape.items), minItems: shape.min, maxItems: shape.max };
    case "string":
      return { type: "string", ...(shape.min > 0 && { minLength: shape.min }), ...(shape.max !== undefined && { maxLength: shape.max }) };
    case "integer":
    case "number":
      return { type: shape.kind, ...(!shape.signed && { minimum: 0 }) };
    case "boolean":
      return { type: "boolean" };
    case "literal":
      return { enum: shape.values };
    case "either":
      return { anyOf: shape.of.map(strict) };
    case "any":
      return {};
  }
}
