// @ts-check
// Answers to questions of every kind. Loaded where other questions may be asked than those about calls.

import { checkNames, jsonOf, misuse, others, toDecision } from "../core.js";

/** @import { Answer, Question } from "../index.js" */

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

/** From now on other questions may be answered than those about calls. */
export function allowOthers() {
  others.convert = toAnswer;
  others.check = checkAnswer;
}
