// @ts-check
// When a steering message acts.

import { misuse } from "../errors/errors.js";
import { checkNames, shownOf } from "../errors/names.js";

/** @import { SteerOptions } from "../index.js" */

/** @type {NonNullable<SteerOptions["when"]>[]} */
export const STEERING_TIMES = ["after_tool", "immediate", "after_batch", "now"];

/** When a message acts by its options, or nothing if they leave it to the agent's. @param {SteerOptions} [options] */
export function steeringTime(options) {
  if (options === undefined) return;
  checkNames("`steer` has no option", options, ["when"]);
  const { when } = options;
  if (when !== undefined && !STEERING_TIMES.includes(when)) throw misuse(`\`when\` must be ${STEERING_TIMES.map((time) => `"${time}"`).join(" or ")}, got ${shownOf(when)}`);
  return when;
}
