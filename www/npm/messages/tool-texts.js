// @ts-check
// Converts what else tools give: updates and values of the session state.

import { flawOf, LONGEST_DETAILS, LONGEST_RESULT, misuse } from "../core.js";

/** @import { Result } from "./tool-result.js" */

/** The limit for one report of progress; up to 128 of them wait. */
const LONGEST_UPDATE = 1 << 20;

/** Whether a result is so long that it may have to be cut. @param {string | Result} result @param {number} [limit] in bytes */
export function isLong(result, limit = LONGEST_RESULT) {
  return typeof result === "string" ? result.length > limit : JSON.stringify(result).length > Math.min(limit, LONGEST_DETAILS);
}

/** Converts a value of the session state to JSON; `undefined` removes it. @param {unknown} value */
export function stateText(value) {
  const flaw = flawOf(value, "the value");
  if (flaw) throw misuse(`the session state takes JSON only: ${flaw}`);
  const json = JSON.stringify(value);
  if (json?.length > LONGEST_DETAILS) throw misuse(`a value of the session state may have ${LONGEST_DETAILS} characters, this one has ${json.length}`);
  return json;
}

/** Converts a progress update to JSON. @param {unknown} partial */
export function updateText(partial) {
  const flaw = flawOf(partial, "the update");
  const json = JSON.stringify(flaw ? `the tool's update is no JSON: ${flaw}` : partial) ?? '""';
  return json.length > LONGEST_UPDATE ? JSON.stringify(`the tool's update is left out: it has ${json.length} characters, and may have ${LONGEST_UPDATE}`) : json;
}
