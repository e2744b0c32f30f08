// @ts-check
// Handlers for the entries of a batch. Each takes a run, the entry's number and its piece of the text, and returns
// the event to emit, if there is one. The Rust half is outbox.rs of the engine.

import * as KIND from "../boundary/protocol.js";
import { startEffect } from "../effects/effects.js";

/** @import { AgentEvent, AssistantMessage, Delta, ToolCallBlock, ToolResultMessage } from "../index.js" */
/** @import { Driver } from "./driver.js" */
/** @typedef {(run: Driver, number: number, piece: string) => AgentEvent | void} Handler */

/**
 * The handlers by kind. A table, not a switch: V8 compiles a function as a whole, with everything it inlines;
 * with a table it compiles only the handlers that run often.
 * @type {Record<number, Handler>}
 */
export const ENTRIES = {
  // ---- entries of every turn

  [KIND.TEXT]: pieceHandler("text"),

  [KIND.THINKING]: pieceHandler("thinking"),

  [KIND.ARGUMENTS](run, contentIndex, delta) {
    const block = run.fold.partial.blocks.get(contentIndex);
    if (!block) return;
    block.push(delta);
    const { callId, toolName } = block;
    return run.outlet.isHeard() ? update(run, { type: "tool_call", contentIndex, callId, toolName, delta }) : undefined;
  },

  [KIND.STRING](run, _number, piece) {
    run.batches.strings.push(piece);
  },

  [KIND.CALL](run, contentIndex, toolName) {
    const [callId] = run.batches.takeStrings();
    run.fold.partial.beginCall(contentIndex, String(callId), toolName);
  },

  [KIND.APPEND](run, _number, piece) {
    const { fold } = run;
    const message = frozen(JSON.parse(piece));
    if (message.role === "assistant") fold.answer = message;
    if (message.role === "tool_result") fold.results.set(message.callId, message);
    fold.messages.push(message);
  },

  [KIND.APPEND_TEXT](run, _number, piece) {
    const { fold } = run;
    const [callId, toolName, text] = /** @type {[string, string, string]} */ (run.batches.takeStrings());
    /** @type {ToolResultMessage} */
    const result = frozen({ role: "tool_result", callId, toolName, content: [{ type: "text", text }], isError: false, timestamp: Number(piece) });
    fold.results.set(callId, result);
    fold.messages.push(result);
  },

  [KIND.HTTP](run, slot, piece) {
    startEffect(run, slot, run.memory.requestOf(piece));
  },

  [KIND.TOOL](run, slot, callId) {
    startEffect(run, slot, { kind: "tool", name: run.batches.takeStrings()[0], callId });
  },

  [KIND.CANCEL](run, slot) {
    run.engineRun.cancel(slot);
  },

  [KIND.TURN_START](run, turnIndex) {
    run.fold.beginTurn(turnIndex);
    return { type: "turn_start", runId: run.runId, turnIndex, at: now(run) };
  },

  [KIND.MESSAGE_START](run) {
    run.fold.beginMessage();
    return { type: "message_start", runId: run.runId, at: now(run) };
  },

  [KIND.MESSAGE_END](run) {
    const { fold } = run;
    fold.endMessage();
    fold.knownCalls();
    return { type: "message_end", runId: run.runId, message: /** @type {AssistantMessage} */ (fold.answer), at: now(run) };
  },

  [KIND.PROPOSED]: (run) => ({ type: "tool_calls_proposed", runId: run.runId, calls: [...run.fold.knownCalls().values()] }),

  [KIND.TOOL_START]: (run, _number, callId) => toolStart(run, callId),

  [KIND.STARTS](run, number, piece) {
    announce(run, number === 0 ? run.batches.takeStrings() : JSON.parse(piece));
  },

  [KIND.TOOL_END](run, _number, callId) {
    const result = /** @type {ToolResultMessage} */ (run.fold.results.get(callId));
    run.core.approvals.endCall(callId);
    return { type: "tool_execution_end", runId: run.runId, callId, toolName: result.toolName, result, isError: result.isError, at: now(run) };
  },

  [KIND.TURN_ENDED]: (run, turnIndex, reason) => turnEnd(run, turnIndex, reason, run.fold.answer ?? null, run.batches.takeStrings()),

  // ---- entries that occur once or a few times per run

  [KIND.EVENT](run, number, piece) {
    const event = JSON.parse(piece);
    event.runId = run.runId;
    if (event.type === "run_resumed") return run.resume(event);
    if (number === 1) event.messages = run.resolveRefs(event.messages);
    run.mark(event);
    return event;
  },

  [KIND.EFFECT](run, slot, piece) {
    startEffect(run, slot, JSON.parse(piece));
  },

  [KIND.TURN_END](run, _number, piece) {
    const { turnIndex, reason, message, results } = JSON.parse(piece);
    return turnEnd(run, turnIndex, reason, message, results);
  },

  [KIND.APPEND_ANSWER]({ fold }) {
    if (fold.answer) fold.messages.push(fold.answer);
  },

  [KIND.APPEND_RESULT]({ fold }, _number, callId) {
    const result = fold.results.get(callId);
    if (result) fold.messages.push(result);
  },

  [KIND.TRUNCATE](run, length) {
    run.truncate(length);
  },

  [KIND.COPY](run, index) {
    const message = run.origin.messages[index];
    if (message) run.fold.messages.push(message);
  },

  [KIND.RECEIPT](run, number, piece) {
    run.core.receipts.settle(number, piece === "" ? { delivered: false, reason: "cleared" } : { delivered: true, turnIndex: Number(piece) });
  },

  [KIND.AGENT_END](run, number, piece) {
    const { messages, ...end } = JSON.parse(piece);
    const history = run.fold.messages;
    return run.announceEnd({ type: "agent_end", runId: run.runId, messages: [...messages, ...history.slice(history.length - number)], ...end, at: now(run) });
  },

  [KIND.END](run, _number, output) {
    run.finish(output);
  },
};

/**
 * A message is the same object in its events and in the history: whoever changes it would change what the agent has said.
 * @template T @param {T} value @returns {T}
 */
function frozen(value) {
  if (typeof value !== "object" || value === null) return value;
  for (const part of Object.values(value)) if (typeof part === "object") frozen(part);
  return Object.freeze(value);
}

/** What an event that begins or ends something says of the time. @param {Driver} run */
const now = (run) => run.core.host.now();

/**
 * Entries with effects beyond the listeners: they wait until everything before them has been delivered.
 * @type {Set<number>}
 */
export const LATER = new Set([KIND.STARTS, KIND.EFFECT, KIND.HTTP, KIND.TOOL, KIND.CANCEL, KIND.RECEIPT, KIND.END, KIND.AGENT_END]);

/**
 * What may be delivered before all parts of the engine are there: what comes before the end of the first answer, for up to
 * there a checkpoint may say that the run has not begun.
 */
const EARLY = new Set([KIND.TEXT, KIND.THINKING, KIND.ARGUMENTS, KIND.CALL, KIND.EVENT, KIND.APPEND, KIND.CANCEL, KIND.TURN_START, KIND.MESSAGE_START, KIND.STRING, KIND.HTTP]);

/** @param {number} kind @param {string} piece */
export const isEarly = (kind, piece) => EARLY.has(kind) || (kind === KIND.EFFECT && /^(sleep|key)$/.test(JSON.parse(piece).kind));

/**
 * Makes the handler for a piece of a block.
 * @param {"text" | "thinking"} type @returns {Handler}
 */
function pieceHandler(type) {
  return (run, contentIndex, delta) => (run.outlet.isHeard() ? update(run, { type, contentIndex, delta }) : undefined);
}

/** @param {Driver} run @param {Delta} delta @returns {AgentEvent} */
function update({ runId }, delta) {
  return { type: "message_update", runId, delta };
}

/**
 * Announces calls that start together, one by one; stops if somebody posts something in between that
 * the engine must see first.
 * @param {Driver} run @param {(string | AgentEvent)[]} calls
 */
function announce(run, calls) {
  const { engineRun, poller } = run;
  for (const call of calls) {
    if (poller.isBehind) break;
    engineRun.announced++;
    run.outlet.emit(typeof call === "string" ? toolStart(run, call) : { ...call, runId: run.runId });
  }
  engineRun.reportAnnounced();
}

/**
 * The event that announces a call, with the arguments as the model wrote them.
 * @param {Driver} run @param {string} callId @returns {AgentEvent}
 */
function toolStart(run, callId) {
  const { toolName, arguments: args } = /** @type {ToolCallBlock} */ (run.fold.knownCalls().get(callId));
  return { type: "tool_execution_start", runId: run.runId, callId, toolName, arguments: args, at: now(run) };
}

/**
 * @param {Driver} run @param {number} turnIndex @param {any} reason @param {AssistantMessage | null} message
 * @param {string[]} ids of the calls that have results @returns {AgentEvent}
 */
function turnEnd(run, turnIndex, reason, message, ids) {
  const { fold, runId } = run;
  const toolResults = ids.map((id) => /** @type {ToolResultMessage} */ (fold.results.get(id)));
  fold.endTurn();
  return { type: "turn_end", runId, turnIndex, message, toolResults, reason, at: now(run) };
}
