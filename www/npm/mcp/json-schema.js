// @ts-check
// How the SDK's client checks values.

import { dereference, validate } from "../core.js";

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
    const own = JSON.parse(JSON.stringify(schema), dropForeignPatterns);
    const lookup = dereference(own);
    return (input) => {
      const { valid, errors } = validate(input, own, lookup);
      return valid ? { valid, data: /** @type {T} */ (input), errorMessage: undefined } : { valid, data: undefined, errorMessage: errors.map(({ error }) => error).join("\n") };
    };
  },
};

/**
 * Drops patterns that are no JavaScript regular expressions: servers write them in their own language.
 * The server checks those.
 * @param {string} key @param {unknown} value
 */
export function dropForeignPatterns(key, value) {
  if (key !== "pattern" || typeof value !== "string") return value;
  try {
    new RegExp(value, "u");
    return value;
  } catch {
    return undefined;
  }
}
