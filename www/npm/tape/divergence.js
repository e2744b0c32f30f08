// @ts-check
// A replay that differs.

import { fromEngine } from "../shared.js";

/** @import { JsonValue } from "../index.js" */

/** The engine, or something live, does not do what the tape says. */
export class TapeDivergence extends Error {
  /** @param {{ input: number, expected: JsonValue, got: JsonValue }} difference @param {string} [message] */
  constructor({ input, expected, got }, message) {
    super(message ?? `the replay differs from the tape at input ${input}: expected ${shown(expected)}, got ${shown(got)}`);
    this.name = "TapeDivergence";
    /** @type {"tape_divergence"} */
    this.code = "tape_divergence";
    this.input = input;
    this.expected = expected;
    this.got = got;
  }
}

/** @param {JsonValue} value */
function shown(value) {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}

/** What the module throws as an error of ours. @param {unknown} thrown */
export function thrownBy(thrown) {
  if (typeof thrown === "string" && thrown.includes('"divergence"')) {
    const { divergence, message } = JSON.parse(thrown);
    return new TapeDivergence(divergence, message);
  }
  return fromEngine(thrown);
}
