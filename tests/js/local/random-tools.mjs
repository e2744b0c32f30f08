// @ts-check
// Random tools, and answers that fit them, written as the form has it.

import { spaced } from "../../../www/npm/local/shape.js";

/** @param {number} seed */
export function dice(seed) {
  let state = seed >>> 0;
  const random = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (/** @type {number} */ most) => Math.floor(random() * most);
  return { random, below, pick: (/** @type {readonly any[]} */ of) => of[below(of.length)] };
}

const WORDS = ["city", "when", "count", "a b", 'quo"te', "ümlaut", "back\\slash", "日本", "line\nbreak", "x", "$ref", "__proto"];
const TEXTS = ["", "Oslo", 'say "hi"', "a\\b", "two\nlines\tand\ra tab", "日本 🙂 ok", "\u0001\u001f", "{\"say\": \"no\"}", "]}", "x".repeat(70)];

/** @param {ReturnType<typeof dice>} dice @param {number} depth @returns {{ schema: any, value(): any }} */
function kind({ random, below, pick }, depth) {
  const again = () => kind({ random, below, pick }, depth + 1);
  const kinds = [
    () => ({ schema: { type: "string" }, value: () => pick(TEXTS) }),
    () => ({ schema: { type: "integer", ...(random() < 0.3 && { minimum: 0 }) }, value: () => below(100_000) }),
    () => ({ schema: { type: "number" }, value: () => pick([0, -1, 2.5, -0.125, 1234567.25]) }),
    () => ({ schema: { type: "boolean" }, value: () => random() < 0.5 }),
    () => {
      const values = [...TEXTS.slice(0, 1 + below(TEXTS.length)), 7, null, { a: [1] }];
      return { schema: { enum: values }, value: () => pick(values) };
    },
    () => ({ schema: { const: "only" }, value: () => "only" }),
    () => ({ schema: {}, value: () => pick([null, "any", 1, [1, { a: "b" }], { deep: { er: [] } }]) }),
    () => ({ schema: { type: ["integer", "null"] }, value: () => pick([null, 12]) }),
  ];
  const nested = [
    () => {
      const item = again();
      const [minItems, more] = [below(3), below(4)];
      return { schema: { type: "array", items: item.schema, minItems, maxItems: minItems + more }, value: () => Array.from({ length: minItems + below(more + 1) }, () => item.value()) };
    },
    () => object({ random, below, pick }, depth + 1),
    () => {
      const [one, other] = [again(), again()];
      return { schema: { anyOf: [one.schema, other.schema] }, value: () => pick([one, other]).value() };
    },
  ];
  return pick(depth < 3 ? [...kinds, ...nested] : kinds)();
}

/** @param {ReturnType<typeof dice>} dice @param {number} depth @returns {{ schema: any, value(): any }} */
export function object(dice, depth) {
  const names = WORDS.filter(() => dice.random() < 0.35);
  const members = names.map((name) => ({ name, required: dice.random() < 0.6, ...kind(dice, depth) }));
  // The form writes what must be there first.
  const ordered = [...members.filter(({ required }) => required), ...members.filter(({ required }) => !required)];
  return {
    schema: { type: "object", properties: Object.fromEntries(members.map(({ name, schema }) => [name, schema])), required: members.filter(({ required }) => required).map(({ name }) => name), ...(depth > 0 && { additionalProperties: false }) },
    value: () => Object.fromEntries(ordered.filter(({ required }) => required || dice.random() < 0.5).map(({ name, value }) => [name, value()])),
  };
}

/** @param {ReturnType<typeof dice>} dice */
export function tools(dice) {
  return Array.from({ length: 1 + dice.below(4) }, (_, i) => ({ name: dice.pick([`tool_${i}`, `a.b-${i}`, `ns/${i}`]), description: "does it", ...object(dice, 0) }));
}

/** A text of the answer, and what has to be read from it. @param {ReturnType<typeof dice>} dice @param {ReturnType<typeof tools>} tools @param {number} most calls */
export function answer(dice, tools, most) {
  if (dice.random() < 0.3) {
    const text = TEXTS.filter((each) => each !== "" && dice.random() < 0.6).join("") || "x";
    return { text: spaced({ say: text }), said: text, calls: [] };
  }
  const calls = Array.from({ length: 1 + dice.below(most) }, () => {
    const tool = dice.pick(tools);
    return { name: tool.name, arguments: tool.value() };
  });
  return { text: spaced({ calls }), said: "", calls };
}
