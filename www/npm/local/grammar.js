// @ts-check
// The form of an answer as a grammar: GBNF of llama.cpp, which XGrammar of web-llm reads as EBNF. An answer is `{"say": "…"}` or
// `{"calls": [{"name": …, "arguments": …}, …]}`: the first key decides, so that text streams at once and the name of a call is
// known before its arguments. No white space can be chosen: a small model that may choose it writes nothing else in the end.

/** @import { Form, Member, Shape } from "./shape.js" */

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

/** The grammar of an answer. @param {Form} form */
export function grammarOf({ tools, calls, output, mustCall }) {
  const rules = new Rules();
  // An answer without a word is no answer.
  const say = output ? rules.of(output) : `"\\"" ${rules.use("char")}+ "\\""`;
  const kinds = [];
  if (tools.length > 0 && calls > 0) {
    const each = tools.map(({ name, shape }) => rules.add(`${literal(`{"name": ${JSON.stringify(name)}, "arguments": `)} ${rules.of(shape)} "}"`));
    const call = rules.add(each.join(" | "));
    kinds.push(rules.add(`${literal('{"calls": [')} ${call} ${calls > 1 ? `(", " ${call}){0,${calls - 1}} ` : ""}"]}"`));
  }
  if (!mustCall || kinds.length === 0) kinds.push(rules.add(`${literal('{"say": ')} ${say} "}"`));
  return rules.toText(kinds.join(" | "));
}

class Rules {
  constructor() {
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
        if (shape.min === 0 && shape.max === 0) return '"\\"\\""';
        return this.add(`"\\"" ${this.use("char")}{${shape.min},${Math.max(shape.max ?? LONGEST_TEXT, shape.min)}} "\\""`);
      }
      case "integer":
        return this.use(shape.signed ? "integer" : "natural");
      case "number":
        return this.use(shape.signed ? "number" : "size");
      case "literal":
        return this.add(shape.texts.map(literal).join(" | "));
      case "either":
        return this.add(shape.of.map((each) => this.of(each)).join(" | "));
      case "boolean":
      case "any":
        return this.use(shape.kind);
    }
  }

  /** @param {Member[]} members */
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
