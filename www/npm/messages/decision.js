// @ts-check
// Converts decisions about calls.

import { jsonOf, misuse } from "../errors/errors.js";
import { checkNames, kindOf } from "../errors/names.js";
import { common } from "../host/copies.js";
import { flawOf, toResult } from "./tool-result.js";

/** @import { Answer, Question, ToolDecision } from "../index.js" */

/**
 * How other questions are answered than those about calls. Such a question is asked only where answer.js is loaded, which
 * puts its functions here.
 * @type {{ convert?: (answer: any) => Answer, check?: (id: string, answer: Answer, question?: Question) => void }}
 */
export const others = (common.others ??= {});

/**
 * Converts an approver's decision for the engine. Each member is read once.
 * @param {any} decision @param {string} [callId] the call that it is about, for the errors @returns {ToolDecision}
 */
export function toDecision(decision, callId) {
  if (decision === "approve" || decision === "reject") return decision;
  const action = decision?.action;
  // With a misspelt `arguments`, the model's own arguments would be approved.
  if (typeof action === "string") checkNames("unknown member of a decision", decision, ["action", "arguments", "reason", "content", "isError"]);
  if (action === "result") {
    const { content, details, isError } = toResult(decision.content);
    return { action, content: { content, ...(details !== undefined && { details }) }, isError: decision.isError ?? isError ?? false };
  }
  if (action === "approve") return "arguments" in decision ? { action, arguments: checkArguments(decision.arguments, callId === undefined ? "" : `the decision about \`${callId}\`: `) } : { action };
  if (action === "reject") return { ...decision, action };
  throw misuse(`a decision must be "approve", "reject" or { action: "approve" | "reject" | "result" }, got ${kindOf(decision)}`);
}

/**
 * Returns a copy of arguments, or throws: what is no object approves nothing, not even the model's own arguments. Nor
 * does what JSON makes another value of, such as a Map.
 * @param {any} given @param {string} owner
 */
function checkArguments(given, owner) {
  const isObject = typeof given === "object" && given !== null && !Array.isArray(given);
  if (!isObject) throw misuse(`${owner}the \`arguments\` of a decision must be an object, got ${Number.isNaN(given) ? "NaN" : kindOf(given)}; leave them out to approve those of the model`);
  const copy = JSON.parse(jsonOf(`${owner}the decision is`, given) ?? "null");
  const flaw = flawOf(given, "`arguments`") ?? (kindOf(copy) === "an object (Object)" ? undefined : `\`arguments\` become ${kindOf(copy)}`);
  if (flaw) throw misuse(`${owner}the decision is no JSON: ${flaw}`);
  return copy;
}
