// @ts-check
// Answers to questions of every kind. Loaded where other questions may be asked than those about calls.

import { checkNames, flawOf, jsonOf, kindOf, limitError, misuse, others, textOf, toDecision, toResult } from "../core.js";
import { limitResult } from "./limits.js";

/** @import { Answer, Question } from "../index.js" */

/**
 * Converts an answer to a question for the engine. Each member is read once.
 * @param {any} answer @returns {Answer}
 */
export function toAnswer(answer) {
  const { raise } = answer ?? {};
  if (raise !== undefined) {
    checkNames("unknown member of an answer", answer, ["raise"]);
    if (typeof raise !== "object" || raise === null) throw misuse(`\`raise\` must be an object, such as { usd: 1 }, got ${kindOf(raise)}`);
    checkNames("unknown member of `raise`", raise, ["usd", "tokens", "toolCalls", "turns", "ms"]);
    const more = Object.entries(raise);
    const isAmount = (/** @type {[string, unknown]} */ [name, amount]) => (name === "usd" ? Number.isFinite(amount) : Number.isInteger(amount)) && Number(amount) >= 0;
    if (!more.every(isAmount) || !more.some(([, amount]) => amount)) throw misuse("`raise` must say how much more may be used: `usd` as a number, the others as whole numbers, none below 0 and one above, such as { usd: 1 }");
    return { raise: Object.fromEntries(more) };
  }
  if (isOutput(answer)) return toOutput(answer);
  const action = answer?.action;
  if (action !== "accept" && action !== "decline" && action !== "cancel") return toDecision(answer);
  checkNames("unknown member of an answer", answer, ["action", "content"]);
  if (action !== "accept") return { action };
  const { content = null } = answer;
  const copy = JSON.parse(jsonOf("the content of the answer is", content));
  const flaw = flawOf(content, "`content`");
  if (flaw) throw misuse(`the content of the answer is no JSON: ${flaw}`);
  return { action, content: copy };
}

/** Whether it is the result of a call. @param {any} answer */
const isOutput = (answer) => "output" in Object(answer) || "error" in Object(answer);

/** The result of a call that is answered here, in place of a tool: as a tool returns it, or the text of a failure. @param {any} answer @returns {Answer} */
function toOutput(answer) {
  checkNames("unknown member of an answer", answer, ["output", "isError", "error"]);
  const { output, error, isError = false } = answer;
  if (typeof isError !== "boolean") throw misuse(`the \`isError\` of an answer must be a boolean, got ${kindOf(isError)}`);
  if (error !== undefined && output !== undefined) throw misuse("an answer has an `output` or an `error`, not both");
  if (error !== undefined) return { output: { content: [{ type: "text", text: limitError(textOf(error)) }] }, isError: true };
  const flaw = flawOf(output, "it");
  if (flaw) throw misuse(`the \`output\` of the answer is no JSON: ${flaw}`);
  const result = limitResult(toResult(output));
  if ("failed" in result) throw misuse(`the \`output\` of the answer is too long: ${result.failed}`);
  const { content, details, transfer } = result;
  if (transfer) throw misuse("a call that is answered elsewhere cannot hand over to another agent");
  return { output: { content, ...(details !== undefined && { details }) }, isError: result.isError === true || isError };
}

/** Throws if an answer is to another kind of question. @param {string} id @param {any} answer @param {Question} [question] */
export function checkAnswer(id, answer, question) {
  const { kind = "tool", budget } = /** @type {{ kind?: Question["kind"], budget?: { kind: string } }} */ (question ?? {});
  const { action = answer } = answer;
  const is = isOutput(answer) ? "tool_call" : "raise" in Object(answer) ? "budget" : ["accept", "decline", "cancel"].includes(action) ? "elicitation" : action === "reject" ? kind : "tool";
  if (is !== kind) throw misuse(`question \`${id}\` is ${HOW[kind]}`);
  // Otherwise the budget would ask again at once, and whoever answers by a rule would never get to an end.
  if (is === "budget" && budget && answer.raise && !answer.raise[budget.kind]) throw misuse(`question \`${id}\` is about the \`${budget.kind}\` of a budget: answer { raise: { ${budget.kind}: … } } or "reject"`);
}

/** How questions are answered. */
const HOW = {
  tool: 'whether a call may run: answer "approve", "reject" or { action }',
  budget: 'about a budget: answer { raise: { … } } or "reject"',
  elicitation: 'a tool\'s: answer { action: "accept", content }, { action: "decline" } or { action: "cancel" }',
  tool_call: 'for the result of a call: answer { output }, { error } or "reject"',
};

/**
 * From now on other questions may be answered than those about calls.
 * @param {typeof checkAnswer} [checkForm] what checks the forms of tools, where tools ask
 */
export function allowOthers(checkForm) {
  others.convert = toAnswer;
  if (!checkForm) others.check ??= checkAnswer;
  else others.check = (id, answer, question) => {
    checkAnswer(id, answer, question);
    checkForm(id, answer, question);
  };
}
