// @ts-check
// Models that the host streams itself.

import { checkNames, kindOf, misuse } from "../shared.js";
import { SERVED } from "../options/options.js";
import { checkShape } from "../options/shape.js";
import { withSetup } from "./setup.js";

/** @import { Model, StreamFn } from "../index.js" */

/**
 * A model that the host streams itself: an async generator of events.
 * @param {string} id @param {StreamFn} streamFn
 * @param {{ provider?: string, supportsTools?: boolean, contextWindow?: number, limits?: { answer?: number } }} [options]
 * @returns {Model}
 */
export function custom(id, streamFn, options = {}) {
  checkNames(`model \`${id}\`: unknown option`, options, ["provider", "supportsTools", "contextWindow", "limits"]);
  const { provider = "custom", supportsTools, contextWindow, limits } = options;
  checkShape("contextWindow", contextWindow, SERVED.contextWindow, `model \`${id}\`: `);
  checkShape("limits", limits, { answer: "number" }, `model \`${id}\`: `);
  if (typeof streamFn !== "function") throw misuse(`custom("${id}") needs a streamFn, got ${kindOf(streamFn)}`);
  return withSetup({ provider, id, streamFn }, { supportsTools, contextWindow, ...(limits && { limits }) });
}
