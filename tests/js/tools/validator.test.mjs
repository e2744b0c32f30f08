// @ts-check
// The build removes unused parts from the validator: on random schemas and values it must report
// what it reported before.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";
import { Validator } from "@cfworker/json-schema";
import { dereference, validate } from "../../../pkg/validator.js";
import { dice } from "../dice.mjs";

const KEYS = ["a", "b", "a/b", "c~d", "é"];
const TYPES = ["null", "boolean", "object", "array", "number", "string", "integer"];
const below = dice(20261123);
/** @template T @param {T[]} list @returns {T} */
const pick = (list) => list[below(list.length)];

const PLAIN = [null, true, false, 0, 1, 2, -1, 1.5, 0.3, "", "a", "ab", "😀x", "\ud83d"];

/** @param {number} deep @returns {any} */
function value(deep) {
  const kind = deep > 0 ? below(4) : 0;
  if (kind < 2) return pick(PLAIN);
  if (kind === 2) return Array.from({ length: below(4) }, () => value(deep - 1));
  return members(() => value(deep - 1));
}

/** @param {() => any} make */
function members(make) {
  return Object.fromEntries(KEYS.filter(() => below(3) === 0).map((key) => [key, make()]));
}

/** @param {number} deep @returns {any} */
function schema(deep) {
  if (below(20) === 0) return below(3) > 0;
  const sub = () => schema(deep - 1);
  const list = () => Array.from({ length: 1 + below(3) }, sub);
  const map = () => members(sub);
  const limit = () => pick([0, 1, 1.5, 2]);
  const size = () => below(3);
  const either = () => (below(2) === 0 ? ["b"] : sub());
  /** @type {[string[], () => any][]} */
  const words = [
    [["minProperties", "maxProperties", "minItems", "maxItems", "minLength", "maxLength", "minContains", "maxContains"], size],
    [["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"], limit],
    [["type"], () => (below(3) === 0 ? [pick(TYPES), pick(TYPES)] : pick(TYPES))],
    [["const"], () => value(2)],
    [["enum"], () => [value(2), value(1)]],
    [["multipleOf"], () => pick([0.1, 0.5, 2])],
    [["pattern"], () => pick(["^a", "b$"])],
    [["required"], () => [pick(KEYS)]],
    [["dependentRequired"], () => ({ a: ["b"] })],
    [["uniqueItems"], () => below(3) > 0],
  ];
  /** @type {[string[], () => any][]} */
  const schemas = [
    [["not", "if", "then", "else", "additionalProperties", "unevaluatedProperties", "propertyNames", "additionalItems", "unevaluatedItems", "contains"], sub],
    [["anyOf", "allOf", "oneOf", "prefixItems"], list],
    [["properties", "dependentSchemas", "$defs"], map],
    [["patternProperties"], () => ({ "^a": sub(), b: sub() })],
    [["dependencies"], () => ({ a: either(), b: sub() })],
    [["items"], () => (below(3) === 0 ? list() : sub())],
    [["$ref"], () => (below(4) === 0 ? pick(["#/$defs/a", "#/$defs/a~1b", "#"]) : undefined)],
  ];
  /** @type {any} */
  const made = {};
  for (const [names, make] of deep > 0 ? [...words, ...schemas] : words) for (const name of names) if (below(10) === 0) made[name] = make();
  return made;
}

/** @param {() => any} judge */
function outcomeOf(judge) {
  try {
    const { valid, errors } = judge();
    return { valid, errors: errors.map((/** @type {any} */ { instanceLocation, error }) => ({ instanceLocation, error })) };
  } catch (error) {
    // A schema that refers to itself.
    return error instanceof RangeError ? "too deep" : String(error);
  }
}

test("the validator judges as the one that it is made from", () => {
  const seen = { fine: 0, wrong: 0 };
  for (let i = 0; i < 3000; i++) {
    const own = schema(3);
    const whole = new Validator(structuredClone(own), "2020-12", false);
    const lookup = dereference(own);
    for (let j = 0; j < 4; j++) {
      const given = value(3);
      const outcome = outcomeOf(() => validate(given, own, lookup));
      assert.deepEqual(outcome, outcomeOf(() => whole.validate(given)), JSON.stringify([own, given]));
      seen[/** @type {any} */ (outcome).valid ? "fine" : "wrong"]++;
    }
  }
  assert.ok(seen.fine > 1000 && seen.wrong > 1000, JSON.stringify(seen));
});

test("a reference to nowhere does not tell the address of the page", async () => {
  const code = `
    globalThis.location = new URL("https://app.example/private?key=1");
    globalThis.self = globalThis;
    const { dereference, validate } = await import(${JSON.stringify(new URL("../../../pkg/validator.js", import.meta.url).href)});
    const schema = { $ref: "#/nowhere" };
    try { validate(1, schema, dereference(schema)); } catch (error) { console.log(error.message); }`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", code]);
  assert.match(stdout, /^Unresolved \$ref "#\/nowhere"/);
  assert.doesNotMatch(stdout, /app\.example/);
});
