// @ts-check
// Converts the events of a run to chunks of the AI SDK's UI message stream, which useChat reads.

import { callsOf, joinTexts, kindOf, misuse, shownOf } from "../shared.js";
import { valueOf } from "./tool-value.js";

/** @import { AgentEvent, ErrorInfo, ToolResultMessage } from "../index.js" */
/** @import { AgentEnd } from "../events/fold.js" */
/**
 * A chunk of the UI message stream, as the AI SDK defines it.
 * @typedef {{ type: string } & Record<string, unknown>} Chunk
 */
/** @template {AgentEvent["type"]} T @typedef {Extract<AgentEvent, { type: T }>} EventOf */
/** @typedef {{ callId: string, toolName: string, arguments: object }} Call */
/**
 * @typedef {object} Options
 * @property {(id: string) => boolean} [isForPeople] whether a question about a call is one for a person
 * @property {string | undefined} [messageId]
 * @property {((event: AgentEnd) => unknown) | undefined} [messageMetadata]
 * @property {((error: ErrorInfo) => string) | undefined} [onError]
 * @property {((result: ToolResultMessage) => unknown) | undefined} [toolOutput]
 * @property {((event: AgentEvent) => unknown) | undefined} [dataParts]
 * @property {6 | 7 | undefined} [aiVersion]
 */

/** @type {Record<string, string>} */
const FINISH = { length: "length", content_filter: "content-filter", refusal: "content-filter", tool_use: "tool-calls" };

/** Converts the events of one response. */
export class UIMessages {
  /** @param {Options} options */
  constructor({ isForPeople = () => true, messageId, messageMetadata, onError, toolOutput, dataParts, aiVersion = 7 }) {
    if (aiVersion !== 6 && aiVersion !== 7) throw misuse(`\`aiVersion\` must be 6 or 7, got ${shownOf(aiVersion)}`);
    /** Whether the reader refuses what ai 7 has added. */
    this.isOlder = aiVersion === 6;
    this.isForPeople = isForPeople;
    this.messageId = messageId;
    this.metadataOf = messageMetadata ?? (({ runId, stopReason, turns, usage }) => ({ runId, stopReason, turns, usage }));
    this.errorText = onError ?? (({ message }) => message);
    this.outputOf = toolOutput ?? valueOf;
    this.dataOf = dataParts;
    this.isOver = false;
    /** Whether a step is open. */
    this.inStep = false;
    /**
     * The streaming blocks by index, with the kind and id of each.
     * @type {Map<number, ["text" | "reasoning", string]>}
     */
    this.openBlocks = new Map();
    this.blockCount = 0;
    this.calls = new CallStates();
    /** Why the last answer stopped. */
    this.lastStop = "";
  }

  /** Whether nothing can go on until a person decides. */
  get isWaiting() {
    const { pending, running, shown } = this.calls;
    if (this.isOver || pending.size === 0 || ![...pending].every((callId) => shown.has(callId))) return false;
    // A call around an agent that asks waits for the same.
    return [...running].every((callId) => [...pending].some((asked) => asked.startsWith(`${callId}/`)));
  }

  /** @param {string} runId @param {boolean} [isNew] whether the message begins with the run */
  begin(runId, isNew) {
    const { messageId = isNew ? `${runId}/0` : undefined } = this;
    return [{ type: "start", ...(messageId && { messageId }), messageMetadata: { runId } }];
  }

  /** Takes an event that another response has sent. @param {AgentEvent} event */
  replay(event) {
    this.#chunksOf(event);
    this.inStep = false;
  }

  /** Ends a response whose run waits, or goes on in another. */
  pause(finishReason = "tool-calls") {
    const chunks = this.#closeStep();
    return [...chunks, { type: "finish", finishReason }];
  }

  /** @param {AgentEvent} event @returns {Chunk[]} */
  take(event) {
    const parts = [this.dataOf?.(event) ?? []].flat().map(checkPart);
    const chunks = this.#chunksOf(event);
    // Nothing may come after the end.
    return event.type === "agent_end" ? [...parts, ...chunks] : [...chunks, ...parts];
  }

  /** @param {AgentEvent} event @returns {Chunk[]} */
  #chunksOf(event) {
    const handler = /** @type {Record<string, unknown>} */ (/** @type {unknown} */ (this))[`_${event.type}`];
    return typeof handler === "function" ? handler.call(this, event) : [];
  }

  _message_start() {
    this.inStep = true;
    return [{ type: "start-step" }];
  }

  /** @param {EventOf<"message_update">} event */
  _message_update({ delta: piece }) {
    const { type, contentIndex, delta } = piece;
    if (piece.type === "tool_call") {
      const { callId, toolName } = piece;
      const chunks = this.calls.streaming.has(callId) ? [] : [...this.#closeThoughts(), { type: "tool-input-start", toolCallId: callId, toolName }];
      this.calls.streaming.add(callId);
      return delta === "" ? chunks : [...chunks, { type: "tool-input-delta", toolCallId: callId, inputTextDelta: delta }];
    }
    const kind = type === "text" ? "text" : "reasoning";
    const known = this.openBlocks.get(contentIndex);
    if (known) return [{ type: `${kind}-delta`, id: known[1], delta }];
    const chunks = this.#closeThoughts();
    const id = `${kind}-${++this.blockCount}`;
    this.openBlocks.set(contentIndex, [kind, id]);
    return [...chunks, { type: `${kind}-start`, id }, { type: `${kind}-delta`, id, delta }];
  }

  _message_reset() {
    // Version 6 cannot take anything back: what comes is another step.
    if (this.isOlder) return [...this.#closeBlocks(), { type: "finish-step" }, { type: "start-step" }];
    this.calls.streaming.clear();
    // A reader that takes nothing back has ended texts at least.
    return [...this.#closeBlocks(), { type: "reset-step" }];
  }

  /** @param {EventOf<"message_end">} event */
  _message_end({ message }) {
    this.lastStop = message.stopReason;
    this.calls.streaming.clear();
    return [...this.#closeBlocks(), ...callsOf(message).map(inputOf)];
  }

  /** @param {EventOf<"run_resumed">} event */
  _run_resumed({ runId, pendingApprovals, pendingQuestions = [], runningTools, partialMessage }) {
    if (partialMessage) this.inStep = true;
    const asks = pendingApprovals.flatMap((call) => this._tool_approval_requested(call));
    const own = pendingApprovals.filter(({ path }) => !path?.length);
    const others = pendingQuestions.flatMap((question) => (question.kind === "tool" ? [] : this._question_asked({ type: "question_asked", runId, ...question })));
    return [...[...runningTools, ...own].map(inputOf), ...asks, ...others];
  }

  /** @param {{ id: string, callId: string, toolName: string, arguments: object, path?: readonly string[] }} event @returns {Chunk[]} */
  _tool_approval_requested(event) {
    const { id, toolName, path = [] } = event;
    const callId = [...path, event.callId].join("/");
    this.calls.pending.add(callId);
    if (!this.isForPeople(id)) return [];
    this.calls.shown.add(callId);
    // A call of an agent inside another call is shown only because somebody is asked about it.
    const call = path.length > 0 ? [inputOf({ callId, toolName, arguments: event.arguments })] : [];
    return [...call, { type: "tool-approval-request", approvalId: id, toolCallId: callId }];
  }

  /** @param {EventOf<"tool_approval_resolved">} event */
  _tool_approval_resolved({ id, callId: innermost, approved, path = [] }) {
    const callId = [...path, innermost].join("/");
    this.calls.pending.delete(callId);
    return this.calls.shown.has(callId) && !this.isOlder ? [{ type: "tool-approval-response", approvalId: id, approved }] : [];
  }

  /** @param {EventOf<"question_asked">} event @returns {Chunk[]} */
  _question_asked({ type, runId, ...question }) {
    if (question.kind === "tool_call") return this.#askElsewhere(question);
    return [{ type: "data-question", id: question.id, data: { ...question, state: "open" } }];
  }

  /**
   * A call whose result the client gives: `addToolOutput` of the AI SDK does, for a call that is shown and has none.
   * @param {{ callId: string, toolName: string, arguments: object, path: readonly string[] }} question @returns {Chunk[]}
   */
  #askElsewhere({ callId: innermost, toolName, arguments: args, path }) {
    const callId = [...path, innermost].join("/");
    this.calls.running.delete(callId);
    this.calls.pending.add(callId);
    this.calls.shown.add(callId);
    return path.length > 0 ? [inputOf({ callId, toolName, arguments: args })] : [];
  }

  /** @param {EventOf<"question_resolved">} event @returns {Chunk[]} */
  _question_resolved({ id, kind, accepted, callId = "", path }) {
    if (kind === "tool_call") {
      this.calls.pending.delete([...path, callId].join("/"));
      return [];
    }
    return [{ type: "data-question", id, data: { id, kind, state: accepted ? "accepted" : "closed" } }];
  }

  /** @param {EventOf<"tool_execution_start">} event @returns {Chunk[]} */
  _tool_execution_start({ callId }) {
    this.calls.running.add(callId);
    return [];
  }

  /** @param {EventOf<"tool_execution_update">} event */
  _tool_execution_update({ callId, update }) {
    return [{ type: "tool-output-available", toolCallId: callId, output: update, preliminary: true }];
  }

  /** @param {EventOf<"tool_execution_end">} event */
  _tool_execution_end({ callId, result, isError }) {
    this.calls.running.delete(callId);
    this.calls.pending.delete(callId);
    if (result.cause === "rejected" && this.calls.shown.has(callId)) return [{ type: "tool-output-denied", toolCallId: callId }];
    if (isError) return [{ type: "tool-output-error", toolCallId: callId, errorText: joinTexts(result.content) }];
    return [{ type: "tool-output-available", toolCallId: callId, output: this.outputOf(result) }];
  }

  /** @param {EventOf<"subagent_event">} event @returns {Chunk[]} */
  _subagent_event({ path, event }) {
    if (event.type !== "tool_execution_start" && event.type !== "tool_execution_end") return [];
    const callId = [...path, event.callId].join("/");
    if (event.type === "tool_execution_start") return this._tool_execution_start({ ...event, callId });
    this.calls.running.delete(callId);
    return this.calls.shown.has(callId) ? this._tool_execution_end({ ...event, callId }) : [];
  }

  /** @param {EventOf<"custom">} event */
  _custom({ name, payload }) {
    return [{ type: `data-${name}`, data: payload }];
  }

  _turn_end() {
    return this.#closeStep();
  }

  /** @param {EventOf<"agent_end">} event @returns {Chunk[]} */
  _agent_end(event) {
    this.isOver = true;
    const { stopReason, error } = event;
    const chunks = this.#closeStep();
    const messageMetadata = this.metadataOf(event);
    if (stopReason === "aborted") return [...chunks, ...metadata(messageMetadata), { type: "abort", ...(error && { reason: this.errorText(error) }) }];
    if (stopReason === "error") return [...chunks, ...metadata(messageMetadata), { type: "error", errorText: this.errorText(/** @type {ErrorInfo} */ (error)) }];
    const finishReason = stopReason === "completed" ? (FINISH[this.lastStop] ?? "stop") : "other";
    return [...chunks, { type: "finish", finishReason, ...(messageMetadata !== undefined && { messageMetadata }) }];
  }

  /**
   * Ends the thoughts, because something else has begun: a UI shows that the model no longer thinks. A text stays open until the
   * message ends, for more of it may come after another block has begun.
   * @returns {Chunk[]}
   */
  #closeThoughts() {
    const thoughts = [...this.openBlocks].filter(([, [kind]]) => kind === "reasoning");
    return thoughts.map(([index, [kind, id]]) => (this.openBlocks.delete(index), { type: `${kind}-end`, id }));
  }

  /** @returns {Chunk[]} */
  #closeBlocks() {
    const chunks = [...this.openBlocks.values()].map(([kind, id]) => ({ type: `${kind}-end`, id }));
    this.openBlocks.clear();
    return chunks;
  }

  /** @returns {Chunk[]} */
  #closeStep() {
    const chunks = this.#closeBlocks();
    if (this.inStep) chunks.push({ type: "finish-step" });
    this.inStep = false;
    return chunks;
  }
}

/** Checks what `dataParts` gave. @param {any} part @returns {Chunk} */
function checkPart(part) {
  const { type, id, data, transient } = part ?? {};
  if (typeof type !== "string" || !/^data-./.test(type) || data === undefined) {
    throw misuse(`\`dataParts\` must give { type: "data-…", data }, got ${typeof type === "string" ? `the type ${JSON.stringify(type)}${data === undefined ? " without `data`" : ""}` : kindOf(part)}`);
  }
  return { type, data, ...(id !== undefined && { id }), ...(transient !== undefined && { transient }) };
}

/** @param {Call} call @returns {Chunk} */
function inputOf({ callId, toolName, arguments: input }) {
  return { type: "tool-input-available", toolCallId: callId, toolName, input };
}

/** @param {unknown} messageMetadata @returns {Chunk[]} */
function metadata(messageMetadata) {
  return messageMetadata === undefined ? [] : [{ type: "message-metadata", messageMetadata }];
}

/** The ids of the calls, by how they stand. */
class CallStates {
  constructor() {
    /** Their arguments are streaming. @type {Set<string>} */
    this.streaming = new Set();
    /** The client was shown an approval request. @type {Set<string>} */
    this.shown = new Set();
    /** An approval request is open. @type {Set<string>} */
    this.pending = new Set();
    /** @type {Set<string>} */
    this.running = new Set();
  }
}
