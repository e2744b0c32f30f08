// @ts-check
// Converts decisions about calls.

import { misuse } from "../errors/errors.js";
import { checkNames, kindOf } from "../errors/names.js";
import { toResult } from "./tool-result.js";

/** @import { ToolDecision } from "../index.js" */

/** Converts an approver's decision for the engine. @param {any} decision @returns {ToolDecision} */
export function toDecision(decision) {
  if (decision === "approve" || decision === "reject") return decision;
  // With a misspelt `arguments`, the model's own arguments would be approved.
  if (typeof decision?.action === "string") checkNames("unknown member of a decision", decision, ["action", "arguments", "reason", "content", "isError"]);
  if (decision?.action === "result") {
    const { content, details, isError } = toResult(decision.content);
    return { action: "result", content: { content, ...(details !== undefined && { details }) }, isError: decision.isError ?? isError ?? false };
  }
  if (decision?.action === "approve" || decision?.action === "reject") return decision;
  throw misuse(`a decision must be "approve", "reject" or { action: "approve" | "reject" | "result" }, got ${kindOf(decision)}`);
}
