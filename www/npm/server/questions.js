// @ts-check
// The open questions of an agent, as its listeners elsewhere are told of them, and who may answer which.

import { RequestError } from "./errors.js";

/** @import { Agent, Question } from "../index.js" */

/** What questions may be about. @type {Question["kind"][]} */
export const QUESTION_KINDS = ["tool", "budget", "elicitation"];

/** Those about calls, and the others, if there are any. @param {Agent} agent */
export function questionsOf({ pendingApprovals, pendingQuestions = [] }) {
  const others = /** @type {readonly Question[]} */ (pendingQuestions).filter(({ kind }) => kind !== "tool");
  return { pendingApprovals, ...(others.length > 0 && { pendingQuestions: others }) };
}

/**
 * Refuses an answer that clients may not give. Whoever may answer may say no.
 * @param {any} answer @param {readonly Question["kind"][]} [kinds] what clients may answer
 */
export function checkMayAnswer(answer, kinds = ["tool", "elicitation"]) {
  const kind = typeof answer === "object" && answer !== null && "raise" in answer ? "budget" : answer?.action === "accept" ? "elicitation" : "tool";
  const isNo = answer === "reject" || ["reject", "decline", "cancel"].includes(answer?.action);
  if (!isNo && !kinds.includes(kind)) throw new RequestError(403, "auth", `clients may not answer questions of the kind "${kind}"; see the option \`answers\``);
}
