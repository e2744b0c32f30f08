// @ts-check
// What an agent is in the middle of, after each of its events.

import { addUsage, callsOf, Fold, noUsage } from "../../shared.js";

/** @import { AgentEvent, ErrorInfo, JsonValue, Question, RunStopReason, ToolOutput, ToolResultMessage } from "../../index.js" */
/** @typedef {"idle" | "preparing" | "waiting for the model" | "answering" | "waiting for approval" | "running tools" | "waiting to retry" | "between turns"} Phase */
/**
 * A call of the open turn.
 * @typedef {{ callId: string, toolName: string, arguments: { [key: string]: JsonValue }, state: "proposed" | "asked" | "running" | "done" | "failed", update?: ToolOutput, result?: ToolResultMessage }} Call
 */

export class AgentState {
  /** @param {AgentState} [before] what is known of an agent that has just begun a turn */
  constructor(before) {
    this.fold = new Fold([]);
    this.runId = "";
    this.isRunning = false;
    /** @type {Phase} */
    this.phase = "idle";
    this.turnIndex = 0;
    /** @type {Map<string, Call>} */
    this.calls = new Map();
    /** The open questions by id, those of agents inside calls too. @type {Map<string, Question>} */
    this.questions = new Map();
    /** Of all runs that have ended, and of the open one. */
    this.usageBefore = noUsage();
    this.usageOfRun = noUsage();
    /** @type {RunStopReason | undefined} */
    this.stopReason = undefined;
    /** @type {ErrorInfo | undefined} */
    this.error = undefined;
    /** The agents inside the open calls, by the ids of the calls that lead to them. @type {Map<string, AgentState>} */
    this.inside = new Map();
    if (!before) return;
    const { runId, isRunning, phase, turnIndex, questions, usageBefore, usageOfRun, stopReason, error } = before;
    Object.assign(this, { runId, isRunning, phase, turnIndex, questions: new Map(questions), usageBefore, usageOfRun, stopReason, error });
  }

  get usage() {
    return addUsage(this.usageBefore, this.usageOfRun);
  }

  /** @param {AgentEvent} event */
  take(event) {
    const { fold } = this;
    fold.mark(event);
    switch (event.type) {
      case "agent_start":
      case "run_resumed":
        return this.#begin(event);
      case "agent_end":
        fold.isAnswering = false;
        fold.turn = undefined;
        this.isRunning = false;
        this.phase = "idle";
        this.stopReason = event.stopReason;
        this.error = event.error;
        this.usageBefore = addUsage(this.usageBefore, event.usage);
        this.usageOfRun = noUsage();
        this.#forgetTurn();
        this.questions.clear();
        return;
      case "turn_start":
        this.turnIndex = event.turnIndex;
        this.phase = "preparing";
        return this.#forgetTurn();
      case "message_start":
      case "message_reset":
        this.phase = "waiting for the model";
        return;
      case "message_update":
        if (fold.isAnswering) fold.partial.grow(event.delta);
        this.phase = "answering";
        return;
      case "message_end":
        fold.answer = event.message;
        this.usageOfRun = addUsage(this.usageOfRun, event.message.usage);
        this.phase = "preparing";
        for (const call of callsOf(event.message)) this.#change(call, { state: "proposed" });
        return;
      case "retry_attempt":
        this.phase = "waiting to retry";
        return;
      case "turn_end":
        fold.endTurn();
        this.phase = "between turns";
        return;
      default:
        this.#takeCall(event);
    }
  }

  /** @param {Extract<AgentEvent, { type: "agent_start" | "run_resumed" }>} event */
  #begin(event) {
    this.runId = event.runId;
    this.isRunning = true;
    this.stopReason = this.error = undefined;
    this.phase = "preparing";
    if (event.type === "agent_start") return;
    this.turnIndex = event.turnIndex;
    this.fold.isAnswering = false;
    this.#forgetTurn();
    if (event.partialMessage) {
      this.fold.resume(event.turnIndex, event.partialMessage.content);
      this.phase = "answering";
    }
    this.questions = new Map(event.pendingApprovals.map((question) => [question.id, question]));
    for (const call of event.runningTools) this.#change(call, { state: "running" });
    if (this.questions.size > 0) this.phase = "waiting for approval";
  }

  #forgetTurn() {
    this.calls.clear();
    this.inside.clear();
  }

  /** @param {AgentEvent} event */
  #takeCall(event) {
    switch (event.type) {
      case "tool_approval_requested": {
        const { id = event.callId, callId, toolName, askedAt, path = [] } = event;
        this.questions.set(id, { type: "tool_call", callId, toolName, arguments: event.arguments, id, kind: "tool", path, askedAt });
        if (path.length === 0) this.#change(event, { state: "asked" });
        break;
      }
      case "tool_approval_resolved":
        this.questions.delete(event.id ?? event.callId);
        if (!event.path?.length) this.#change(event, { state: "proposed" });
        break;
      case "tool_execution_start":
        this.#change(event, { state: "running", arguments: event.arguments });
        break;
      case "tool_execution_update":
        this.#change(event, { update: event.update });
        break;
      case "tool_execution_end":
        this.#change(event, { state: event.isError ? "failed" : "done", result: event.result });
        this.#leave(event.callId);
        break;
      case "subagent_event":
        return this.#insideOf(event.path ?? [event.callId]).take(event.event);
      default:
        return;
    }
    const states = [...this.calls.values()].map(({ state }) => state);
    if (states.includes("running")) this.phase = "running tools";
    else if (this.questions.size > 0) this.phase = "waiting for approval";
  }

  /** @param {{ callId: string, toolName: string }} call @param {Partial<Call>} change */
  #change({ callId, toolName, ...given }, change) {
    const before = this.calls.get(callId) ?? { callId, toolName, arguments: /** @type {any} */ (given).arguments ?? {}, state: "proposed" };
    this.calls.set(callId, /** @type {Call} */ ({ ...before, ...change }));
  }

  /** @param {string[]} path */
  #insideOf(path) {
    const key = path.join("\n");
    const known = this.inside.get(key) ?? new AgentState();
    this.inside.set(key, known);
    return known;
  }

  /** Nothing is open inside a call that is over. @param {string} callId */
  #leave(callId) {
    for (const key of this.inside.keys()) if (key === callId || key.startsWith(`${callId}\n`)) this.inside.delete(key);
    for (const [id, { path }] of this.questions) if (path?.[0] === callId) this.questions.delete(id);
  }
}
