// @ts-check
// The structured answer of an agent: its schema, and the last answer that fits it.

import { handled } from "../rules/host-call.js";
import { prepareSchema } from "../tools/schema.js";

/** @import { JsonSchema, StandardSchema } from "../index.js" */
/** @import { Check } from "../tools/schema.js" */

export class StructuredOutput {
  /** @param {JsonSchema | StandardSchema | undefined} schema */
  constructor(schema) {
    /** As the host passed it in. @type {JsonSchema | StandardSchema | undefined} */
    this.given = undefined;
    /** @type {JsonSchema | undefined} */
    this.schema = undefined;
    /** @type {Check | undefined} */
    this.check = undefined;
    /** @type {(() => Promise<void> | undefined) | undefined} */
    this.load = undefined;
    /** The last answer that fits. @type {unknown} */
    this.answer = undefined;
    this.set(schema);
  }

  /** @param {JsonSchema | StandardSchema | undefined} given */
  set(given) {
    const prepared = given === undefined ? undefined : prepareSchema("`output`", given);
    this.given = given;
    this.schema = prepared?.schema;
    this.check = prepared?.check;
    this.load = prepared?.load;
  }

  /** Takes an answer of the model. Returns what is wrong with it. @param {unknown} value @returns {string | undefined} */
  take(value) {
    const answer = this.check?.(value) ?? { value };
    if (handled(answer) instanceof Promise) return "the schema of `output` must validate at once, without a promise";
    if ("error" in answer) return answer.error;
    this.answer = /** @type {{ value: unknown }} */ (answer).value;
  }

  /**
   * Returns the value of a structured answer, as the schema returned it. A checkpoint keeps only its JSON, so in a
   * restored run it is checked again.
   * @param {string} json
   */
  valueOf(json) {
    if (this.answer !== undefined) return this.answer;
    const value = JSON.parse(json);
    try {
      const answer = handled(this.check?.(value));
      return answer && "value" in answer ? answer.value : value;
    } catch {
      return value;
    }
  }
}
