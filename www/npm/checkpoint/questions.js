// @ts-check
// The open questions of a checkpoint. What they show is taken from where the engine takes what it would run.

/** @import { AgentEvent, AgentMessage, Question } from "../index.js" */
/** @import { EngineRunState } from "./format.js" */

/** @param {any} value @returns {any[]} */
const listOf = (value) => (Array.isArray(value) ? value : []);

/** The calls that wait for an answer. @param {EngineRunState | undefined} run @returns {any[]} */
function waiting(run) {
  const pending = new Set(listOf(run?.table?.entries).filter((entry) => entry?.state === "pending").map((entry) => entry.call?.callId));
  return listOf(run?.phase?.calls).filter((call) => pending.has(call?.callId) && call.status !== "done");
}

/**
 * Gives ids to the questions of a checkpoint that was written before questions had any.
 * @param {EngineRunState | undefined} run @param {() => string} newId
 */
export function nameQuestions(run, newId) {
  for (const call of waiting(run)) call.question ??= { id: newId(), askedAt: 0 };
}

/** @param {EngineRunState | undefined} run @param {readonly AgentMessage[]} messages @returns {Question[]} */
export function openQuestions(run, messages) {
  const answer = messages[run?.phase?.place ?? -1];
  const blocks = answer?.role === "assistant" ? answer.content : [];
  return waiting(run).flatMap(({ callId, question, arguments: changed }) => {
    const block = blocks.find((each) => each.type === "tool_call" && each.callId === callId);
    if (block?.type !== "tool_call" || typeof question?.id !== "string") return [];
    return [{ ...block, arguments: changed ?? block.arguments, id: question.id, kind: "tool", path: [], askedAt: Number(question.askedAt) || 0 }];
  });
}

/**
 * Leaves out the events of a checkpoint that would show an open question otherwise than it is, or as closed.
 * @param {AgentEvent[]} events @param {readonly Question[]} open @returns {AgentEvent[]}
 */
export function believable(events, open) {
  const byId = new Map(open.map((question) => [question.id, question]));
  const closed = new Set(events.map((event) => event.type === "tool_approval_resolved" && event.id));
  return events.filter((event) => {
    if (event.type === "tool_approval_resolved") return !byId.has(event.id);
    if (event.type !== "tool_approval_requested") return true;
    const question = byId.get(event.id);
    return question ? ["callId", "toolName", "arguments"].every((key) => JSON.stringify(event[/** @type {"callId"} */ (key)]) === JSON.stringify(question[/** @type {"callId"} */ (key)])) : closed.has(event.id);
  });
}
