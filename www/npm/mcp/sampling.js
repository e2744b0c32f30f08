// @ts-check
// What few servers ask for: an answer of a model, and where the work is. Loaded with the first such request.

import { kindOf, misuse } from "../shared.js";
import { until } from "./elicit.js";

/** @import { McpToolsOptions } from "../mcp.js" */

/** The protocol's code for a request that the person or the host does not want. */
const REJECTED = -1;

/** @param {NonNullable<McpToolsOptions["onSample"]>} onSample @param {any} params @param {AbortSignal} signal */
export async function sample(onSample, params, signal) {
  // It was taken back while this was loaded.
  if (signal.aborted) throw signal.reason;
  const answer = await until(signal, onSample(params, { signal }));
  if (answer === undefined || answer === null) throw Object.assign(new Error("the host does not answer this request"), { code: REJECTED });
  if (typeof answer === "string") return { role: "assistant", model: "unknown", stopReason: "endTurn", content: { type: "text", text: answer } };
  return { role: "assistant", model: "unknown", stopReason: "endTurn", ...answer };
}

/** @param {readonly (string | URL | { uri: string, name?: string })[]} given */
export function rootsOf(given) {
  if (!Array.isArray(given)) throw misuse(`\`roots\` must be a list of addresses, or a function that returns one, got ${kindOf(given)}`);
  return given.map((root) => (typeof root === "string" || root instanceof URL ? { uri: String(root) } : root));
}
