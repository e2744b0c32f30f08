// @ts-check
// How the SDK's client checks values.

import { useJudge, useLinear } from "../core.js";
import { textOf } from "../shared.js";
import { compile, statesOf } from "../linear.js";
import { checkOf, excessOf, Judge } from "../tools/judge.js";

/** @import { JsonSchema } from "../index.js" */

/**
 * A validator that interprets schemas. The SDK's own compiles them to code, which a Content-Security-Policy
 * forbids and a Worker cannot do.
 */
export const jsonSchemaValidator = {
  /**
   * @template T @param {JsonSchema} schema
   * @returns {(input: unknown) => { valid: true, data: T, errorMessage: undefined } | { valid: false, data: undefined, errorMessage: string }}
   */
  getValidator(schema) {
    const errorsOf = errorsOfSchema(JSON.parse(JSON.stringify(schema), dropForeignPatterns));
    return (input) => {
      const errors = errorsOf(input);
      return errors.length === 0 ? { valid: true, data: /** @type {T} */ (input), errorMessage: undefined } : { valid: false, data: undefined, errorMessage: errors.join("\n") };
    };
  },
};

// Servers write all kinds of patterns, and the SDK does not wait for a check.
useLinear({ compile, statesOf });
useJudge({ checkOf, excessOf, Judge });

/** What is wrong with a value. With a schema that cannot be checked, every one is, for the SDK gives the whole server up otherwise. @param {JsonSchema} schema @returns {(value: unknown) => string[]} */
function errorsOfSchema(schema) {
  try {
    const judge = new Judge("the schema is", schema);
    return (value) => judge.errorsOf(value);
  } catch (error) {
    return () => [textOf(error)];
  }
}

/**
 * Drops patterns that are no JavaScript regular expressions: servers write them in their own language.
 * The server checks those.
 * @param {string} key @param {unknown} value
 */
export function dropForeignPatterns(key, value) {
  // One that is too large is refused by name.
  if (key !== "pattern" || typeof value !== "string" || excessOf(value)) return value;
  try {
    new RegExp(value, "u");
    return value;
  } catch {
    return undefined;
  }
}
