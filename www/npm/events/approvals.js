// @ts-check
// The open questions of a run, as far as its listeners were told.

import { misuse } from "../errors/errors.js";
import { common } from "../host/copies.js";

/** @import { AgentEvent, Question, ToolQuestion } from "../index.js" */

/** What waits for a decision anywhere in this process: the names of the tools by the ids of the questions. @type {Map<string, string>} */
export const undecided = (common.undecided ??= new Map());

export class PendingApprovals {
  constructor() {
    /** By id, in the order asked. @type {Map<string, Question>} */
    this.questions = new Map();
    /** The id of the last question about each call. @type {Map<string, string>} */
    this.byCall = new Map();
    /** How many of them are those of agents inside calls. */
    this.inside = 0;
    /** The questions to which an answer was posted. @type {Set<string | undefined>} */
    this.answered = new Set();
  }

  /** @param {AgentEvent} event */
  take(event) {
    if (event.type === "tool_approval_requested") {
      const { id, callId, toolName, askedAt, path = [] } = event;
      this.add({ type: "tool_call", callId, toolName, arguments: event.arguments, id, kind: "tool", path, askedAt });
    } else if (event.type === "question_asked") {
      const { type: _, runId: __, ...question } = event;
      this.add(/** @type {Question} */ (question));
    } else if (event.type === "tool_approval_resolved" || event.type === "question_resolved") this.#remove(idOf(event));
    else if (event.type === "tool_execution_end") this.endCall(event.callId);
    else if (event.type === "subagent_event" && event.event.type === "tool_execution_end") this.endCall(event.event.callId, event.path);
    else if (event.type === "run_resumed") {
      const all = [...event.pendingApprovals, ...(event.pendingQuestions ?? [])];
      const open = new Set(all.map(idOf));
      for (const id of this.questions.keys()) if (!open.has(id)) this.#remove(id);
      all.forEach((question) => this.add(question));
    }
  }

  /** @param {Question} question */
  add(question) {
    const id = idOf(question);
    if (this.questions.get(id)?.path?.length) this.inside--;
    this.questions.set(id, { ...question, id });
    undecided.set(id, question.toolName ?? question.kind);
    if (question.path?.length) this.inside++;
    else if (isAboutCall(question) || question.kind === "tool_call") this.byCall.set(question.callId, id);
  }

  /** Nothing inside a call that has its result is open. @param {string} callId @param {string[]} [around] the calls around it */
  endCall(callId, around = []) {
    if (this.inside === 0) return;
    const calls = [...around, callId];
    for (const [id, { path = [] }] of this.questions) if (calls.every((call, depth) => path[depth] === call)) this.#remove(id);
  }

  /** @param {string} id */
  #remove(id) {
    const question = this.questions.get(id);
    if (question?.path?.length) this.inside--;
    else if (question?.callId && this.byCall.get(question.callId) === id) this.byCall.delete(question.callId);
    this.questions.delete(id);
    this.answered.delete(id);
    undecided.delete(id);
  }

  /** Replaces all. @param {readonly Question[]} questions */
  replace(questions) {
    for (const id of this.questions.keys()) undecided.delete(id);
    this.inside = 0;
    for (const list of [this.questions, this.byCall, this.answered]) list.clear();
    questions.forEach((question) => this.add(question));
  }

  /**
   * The id of the open question with this id, or about the call with this id: one of the agent itself, or else the only one inside.
   * @param {string} key @param {boolean} [byId] only the former
   */
  idOf(key, byId) {
    if (this.questions.has(key) || byId) return this.questions.has(key) ? key : undefined;
    const own = this.byCall.get(key);
    if (own !== undefined || this.inside === 0) return own;
    const [first, second] = this.list().filter((question) => question.callId === key && (isAboutCall(question) || question.kind === "tool_call"));
    if (second) throw misuse(`several agents ask about a call \`${key}\`; answer by the id of the question: agent.resolve(id, …)`);
    return first?.id;
  }

  /** Notes that answers are posted together. Returns whether each is the first one; otherwise none counts. @param {(string | undefined)[]} ids */
  answer(ids) {
    if (ids.some((id) => this.answered.has(id))) return false;
    for (const id of ids) this.answered.add(id);
    return ids.length > 0;
  }

  list() {
    return [...this.questions.values()];
  }

  /** Those about calls. @returns {ToolQuestion[]} */
  calls() {
    return this.list().filter((question) => isAboutCall(question));
  }
}

/** A server of before names no kinds. @param {Question} question @returns {question is ToolQuestion} */
const isAboutCall = (question) => (question.kind ?? "tool") === "tool";

/** A server of before names no questions; then the call stands for its question. @param {{ id?: string, callId?: string }} question */
const idOf = ({ id, callId }) => id ?? callId ?? "";
