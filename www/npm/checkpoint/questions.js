// @ts-check
// The open questions of a checkpoint. What they show is taken from where the engine takes what it would run.

import { misuse } from "../shared.js";
import { callText } from "../messages/call-text.js";
import { fromCheckpoint } from "./read.js";

/** @import { AgentEvent, AgentMessage, Question } from "../index.js" */
/** @import { EngineRunState, EngineState } from "./format.js" */

/** @param {any} value @returns {any[]} */
const listOf = (value) => (Array.isArray(value) ? value : []);

/** Arguments as the engine reads them: without members `__proto__`. @param {any} args */
const asRun = (args) => (args === undefined ? args : JSON.parse(JSON.stringify(args), (key, item) => (key === "__proto__" ? undefined : item)));

/**
 * A question without an id, of a checkpoint that was written before questions had any, is asked anew when the run goes on.
 * @param {EngineRunState | undefined} run @param {readonly AgentMessage[]} messages @returns {Question[]}
 */
export function openQuestions(run, messages) {
  const asked = run?.phase?.kind === "budget" ? run.phase.question : undefined;
  if (asked?.id) return [{ id: asked.id, kind: "budget", path: [], message: asked.message, budget: asked.budget, askedAt: asked.askedAt ?? 0 }];
  const pending = new Set(listOf(run?.table?.entries).map((entry) => entry?.state === "pending" && entry.call?.callId));
  const blocks = listOf(/** @type {any} */ (messages[run?.phase?.place ?? -1])?.content);
  return listOf(run?.phase?.calls).flatMap((call) => {
    const { id, askedAt = 0 } = call?.question ?? {};
    const block = blocks.find(({ callId }) => callId === call?.callId);
    // Those that the engine will refuse are asked about no more.
    const isRefused = Object.hasOwn(/** @type {any} */ (run)?.phase?.faults ?? {}, call?.callId);
    if (!block || isRefused) return [];
    const shown = { ...block, arguments: asRun(call.arguments ?? block.arguments), path: [] };
    const { type: _, ...elsewhere } = shown;
    if (call.status === "elsewhere" && call.elsewhere?.id) return { ...elsewhere, id: call.elsewhere.id, kind: "tool_call", askedAt: call.elsewhere.askedAt ?? 0 };
    return id && call.status !== "done" && pending.has(block.callId) ? { ...shown, id, kind: "tool", askedAt } : [];
  });
}

/** How deep agents may be inside each other in a checkpoint. */
export const DEEPEST_NESTING = 16;

/**
 * The open questions of a run and of the agents inside its calls.
 * @param {EngineState} state @param {readonly AgentMessage[]} messages @param {(tool: string) => boolean} isSubAgent
 * @param {string[]} [path] @returns {Question[]}
 */
export function allQuestions({ run, children = {} }, messages, isSubAgent, path = []) {
  if (path.length > DEEPEST_NESTING) throw misuse("invalid checkpoint payload: its sub-agents are nested too deep");
  const blocks = listOf(/** @type {any} */ (messages[run?.phase?.place ?? -1])?.content);
  const own = openQuestions(run, messages).map((question) => ({ ...question, path }));
  const inside = listOf(run?.phase?.calls).flatMap(({ callId, status, announced, childKeepsQuestions }) => {
    const tool = blocks.find((block) => block.callId === callId)?.toolName;
    // It has begun, in the process that ended or in one before, and had not gone on again.
    const hasBegun = status === "running" || (announced === true && status !== "done");
    if (!hasBegun || childKeepsQuestions === true || !Object.hasOwn(children, callId) || !isSubAgent(tool)) return [];
    const { state, messages: said } = fromCheckpoint(children[callId]);
    // Which tools the agents inside have is known when they are made.
    return state ? allQuestions(state, said, () => true, [...path, callId]) : [];
  });
  return [...own, ...inside];
}

/** Whether an event says that a question is closed. @param {any} event */
const isClosed = ({ type }) => type === "tool_approval_resolved" || type === "question_resolved";

/**
 * The ids of the questions of which nobody was told yet that they are closed, in a run and in those inside its calls.
 * @param {any} state @param {number} [depth] @returns {string[]}
 */
const closing = ({ untold, children = {} }, depth = 0) => [
  ...listOf(untold).flatMap((event) => (isClosed(event) ? event.id : [])),
  ...(depth < DEEPEST_NESTING ? Object.values(children).flatMap((child) => closing(child?.metadata?.turnwheel ?? {}, depth + 1)) : []),
];

/**
 * The events of a checkpoint that nobody was told, without those that would show an open question otherwise than it is, or as
 * closed.
 * @param {EngineState | undefined} state @param {readonly Question[]} open @returns {AgentEvent[]}
 */
export function believable(state, open) {
  const byId = new Map(open.map((question) => [question.id, question]));
  const closed = new Set(closing(state ?? {}));
  return (state?.untold ?? []).filter((event) => {
    if (event.type === "tool_approval_resolved" || event.type === "question_resolved") return !byId.has(event.id);
    if (event.type !== "tool_approval_requested" && event.type !== "question_asked") return true;
    const question = byId.get(event.id);
    if (!question) return closed.has(event.id);
    const isSame = callText(event) === callText(question);
    return event.type === "question_asked" ? question.kind === event.kind && question.message === event.message && (question.kind !== "tool_call" || isSame) : question.kind === "tool" && isSame;
  });
}
