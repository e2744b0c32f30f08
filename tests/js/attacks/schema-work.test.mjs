// @ts-check
// Schemas and arguments that would keep the validator busy for hours. Each check ends, the same way every time, and
// another agent's run goes on.

import assert from "node:assert/strict";
import { test } from "node:test";
import { jsonSchemaValidator } from "../../../pkg/mcp.js";
import { Agent, call, readRun, scripted, testTool, textOf, tool } from "../kit.mjs";

/** What becomes of a call, and how long it took. @param {any} parameters @param {any} args */
async function check(parameters, args) {
  const tools = [testTool("go", () => "gone", { parameters })];
  const agent = new Agent({ model: scripted([call(["go", args]), "done"]), tools });
  const begun = performance.now();
  const { result } = await readRun(agent.prompt("Go"));
  assert.equal(result.text, "done");
  return { text: textOf(result.messages[2]), ms: performance.now() - begun };
}

const object = (/** @type {any} */ list, /** @type {any} */ more = {}) => ({ type: "object", properties: { list }, ...more });
const TOO_MUCH = /too many steps/;

/** Nested applicators: each level asks the next one twice. @param {string} word @param {number} levels */
const doubling = (word, levels) => ({
  type: "object", properties: { list: { $ref: "#/$defs/s0" } },
  $defs: Object.fromEntries(Array.from({ length: levels + 1 }, (_, i) => [`s${i}`, i === levels ? { type: "number" } : { [word]: [{ $ref: `#/$defs/s${i + 1}` }, { $ref: `#/$defs/s${i + 1}` }] }])),
});

/** Addresses within addresses: each is gone through by itself, and once more by those around it. @param {number} levels */
const addresses = (levels) => {
  /** @type {any} */
  let schema = { type: "string" };
  for (let i = levels; i > 0; i--) schema = { $id: `http://a.example/${i}`, properties: { list: schema } };
  return { type: "object", ...schema };
};

const numbers = Array.from({ length: 100_000 }, (_, i) => i);
const objects = numbers.map((i) => ({ b: [i], a: i }));
const names = numbers.map((i) => `n${i}`);
const many = (/** @type {number} */ n) => Object.fromEntries(names.slice(0, n).map((name) => [name, 1]));

/** @type {Record<string, [any, any, RegExp]>} */
const CASES = {
  "uniqueItems of 100,000 numbers": [object({ type: "array", uniqueItems: true }), { list: numbers }, /^gone$/],
  "uniqueItems of 100,000 objects": [object({ type: "array", uniqueItems: true }), { list: objects }, /^gone$/],
  "uniqueItems with one pair at the far ends": [object({ type: "array", uniqueItems: true }), { list: [...objects, { a: 0, b: [0] }] }, /Duplicate items at indexes 0 and 100000/],
  "an enum of 20,000 for 20,000 values": [object({ type: "array", items: { enum: names.slice(0, 20_000) } }), { list: names.slice(0, 20_000).reverse() }, /^gone$/],
  "an enum of objects": [object({ type: "array", items: { enum: objects.slice(0, 20_000) } }), { list: objects.slice(0, 20_000).reverse() }, /^gone$/],
  "an enum that is told 20,000 times": [object({ type: "array", items: { minLength: 0, enum: names.slice(0, 20_000) } }), { list: names.map((name) => `${name}!`) }, TOO_MUCH],
  "100,000 errors": [object({ type: "array", items: { type: "string", minLength: 2 } }), { list: numbers }, /and \d+ more$/],
  "required names by the thousand": [object({ type: "array", items: { required: names.slice(0, 2_000) } }), { list: Array(5_000).fill({}) }, TOO_MUCH],
  "a reference to itself": [object({ $ref: "#/properties/list" }), { list: 1 }, /no JSON Schema|too many steps/],
  "anyOf within anyOf": [doubling("anyOf", 40), { list: "x" }, TOO_MUCH],
  "allOf within allOf": [doubling("allOf", 40), { list: 1 }, TOO_MUCH],
  "oneOf within oneOf": [doubling("oneOf", 40), { list: 1 }, TOO_MUCH],
  "addresses within addresses": [addresses(24), { list: "x" }, TOO_MUCH],
  "patternProperties on thousands of names": [object({ patternProperties: Object.fromEntries(names.slice(0, 300).map((name) => [`^${name}$`, {}])) }), { list: many(20_000) }, TOO_MUCH],
  "propertyNames": [object({ propertyNames: { anyOf: Array(300).fill({ maxLength: 1 }) } }), { list: many(20_000) }, TOO_MUCH],
  "dependentSchemas": [object({ dependentSchemas: Object.fromEntries(names.slice(0, 3_000).map((name) => [name, { $ref: "#/$defs/all" }])) }, { $defs: { all: { required: names.slice(0, 3_000) } } }), { list: many(3_000) }, TOO_MUCH],
  "contains": [object({ contains: { anyOf: Array(300).fill({ type: "string" }) } }), { list: numbers }, TOO_MUCH],
};

for (const [name, [parameters, args, expected]] of Object.entries(CASES)) {
  test(`a check has an end: ${name}`, async () => {
    const { text, ms } = await check(parameters, args);
    assert.match(text, expected);
    assert.ok(text.length < 500_000, `${text.length} characters`);
    assert.ok(ms < 15_000, `${ms} ms`);
  });
}

test("the SDK's client of MCP has the same validator", () => {
  const validator = jsonSchemaValidator.getValidator(/** @type {any} */ (doubling("oneOf", 40)));
  const { valid, errorMessage } = validator({ list: 1 });
  assert.equal(valid, false);
  assert.match(String(errorMessage), TOO_MUCH);
});

test("formats are checked in linear time, whatever the text", async () => {
  for (const format of ["date", "time", "date-time", "email", "uri", "uuid", "ipv4", "hostname", "idn-email", "regex", "json-pointer"]) {
    for (const piece of ["a", "@", "a@", "1", "1.", "0-", ":", "a:", "%", "00:00:00.0", " ", "é", "-", "a."]) {
      const begun = performance.now();
      const validator = jsonSchemaValidator.getValidator({ type: "string", format });
      validator(`${piece.repeat(300_000)}!`);
      validator(`2020-01-01T00:00:00.${piece.repeat(300_000)}`);
      assert.ok(performance.now() - begun < 3_000, `${format} of ${piece}`);
    }
  }
});

test("the number of steps is the same every time", async () => {
  // Right below the limit and right above it.
  const texts = [];
  for (let i = 0; i < 3; i++) for (const levels of [14, 21]) texts.push((await check(doubling("anyOf", levels), { list: "x" })).text);
  assert.deepEqual(texts.slice(0, 2), texts.slice(2, 4));
  assert.deepEqual(texts.slice(0, 2), texts.slice(4, 6));
  assert.match(texts[1] ?? "", TOO_MUCH);
  assert.doesNotMatch(texts[0] ?? "", TOO_MUCH);
});

test("a schema that is nested too deep for the engine is refused when the tool is made, and any other is taken", async () => {
  const nested = (/** @type {number} */ levels) => {
    /** @type {any} */
    let schema = { type: "object" };
    for (let i = 0; i < levels; i++) schema = { type: "object", properties: { list: schema } };
    return schema;
  };
  let levels = 1;
  for (; levels < 200; levels++) {
    try {
      tool({ name: "go", description: "", parameters: nested(levels), execute: () => "" });
    } catch (error) {
      assert.match(String(error), /the parameters of tool `go` are nested deeper than/);
      break;
    }
  }
  assert.ok(levels > 50 && levels < 100, `${levels}`);
  assert.equal((await check(nested(levels - 1), {})).text, "gone");
});
