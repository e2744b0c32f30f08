// @ts-check
// Calls of the host's functions from inside a step of the engine.

import { limitError, quiet, textOf } from "../shared.js";

/** @import { Core } from "../agent/core.js" */

/**
 * Runs host code: an exception becomes a text, and its object is kept.
 * @template T @param {Core} core @param {() => T} work
 */
export function callHost(core, work) {
  try {
    return work();
  } catch (error) {
    core.thrown.note(error);
    throw limitError(textOf(error));
  }
}

/**
 * Marks a promise, and those inside an answer, as handled: it may reject while nobody waits for it, because the rule's answer
 * must not be one, or because it is awaited only later.
 * @template T @param {T} answer @returns {T}
 */
export function handled(answer) {
  const promise = /** @type {{ then?: unknown } | undefined | null} */ (answer);
  if (typeof promise?.then === "function") promise.then(undefined, () => {});
  else quiet(answer);
  return answer;
}
