// @ts-check
// Converts decisions about calls.

import { jsonOf, misuse } from "../errors/errors.js";
import { checkNames, kindOf } from "../errors/names.js";
import { flawOf, toResult } from "./tool-result.js";

/** @import { Answer, Question, ToolDecision } from "../index.js" */

/**
 * Converts an answer to a question for the engine. Each member is read once.
 * @param {any} answer @returns {Answer}
 */
export function toAnswer(answer) {
  const { raise } = answer ?? {};
  if (raise !== undefined) {
    checkNames("unknown member of an answer", answer, ["raise"]);
    checkNames("unknown member of `raise`", raise ?? {}, ["usd", "tokens", "toolCalls", "turns", "ms"]);
    const more = Object.entries(raise ?? {});
    const isAmount = (/** @type {[string, unknown]} */ [name, amount]) => (name === "usd" ? Number.isFinite(amount) : Number.isInteger(amount)) && Number(amount) >= 0;
    if (!more.every(isAmount) || !more.some(([, amount]) => amount)) throw misuse("`raise` must say how much more may be used: `usd` in numbers, the others in whole numbers, such as { usd: 1 }");
    return { raise: Object.fromEntries(more) };
  }
  const action = answer?.action;
  if (action !== "accept" && action !== "decline" && action !== "cancel") return toDecision(answer);
  checkNames("unknown member of an answer", answer, ["action", "content"]);
  return action === "accept" ? { action, content: JSON.parse(jsonOf("the content of the answer is", answer.content ?? null)) } : { action };
}

/** Throws if an answer is to another kind of question. @param {string} id @param {any} answer @param {Question["kind"]} [kind] */
export function checkAnswer(id, answer, kind = "tool") {
  const { action = answer } = answer;
  const is = "raise" in Object(answer) ? "budget" : ["accept", "decline", "cancel"].includes(action) ? "elicitation" : action === "reject" ? kind : "tool";
  if (is !== kind) throw misuse(`question \`${id}\` is ${HOW[kind]}`);
}

/** How questions are answered. */
const HOW = {
  tool: 'whether a call may run: answer "approve", "reject" or { action }',
  budget: 'about a budget: answer { raise: { … } } or "reject"',
  elicitation: 'a tool\'s: answer { action: "accept", content }, { action: "decline" } or { action: "cancel" }',
};

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
  const flaw = flawOf(given, new Set(), "`arguments`") ?? (kindOf(copy) === "an object (Object)" ? undefined : `\`arguments\` become ${kindOf(copy)}`);
  if (flaw) throw misuse(`${owner}the decision is no JSON: ${flaw}`);
  return copy;
}
