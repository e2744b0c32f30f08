// @ts-check
// Handlers for the entries of a batch that only a whole engine makes: what follows the pieces of an answer. Those that come
// before are in entries.js.

import * as KIND from "../boundary/protocol.js";
import { startEffect } from "../effects/effects.js";
import { now } from "./entries.js";

/** @import { AgentEvent, AssistantMessage, ToolCallBlock, ToolResultMessage } from "../index.js" */
/** @import { Driver } from "./driver.js" */
/** @import { Handler } from "./entries.js" */

/** The handlers by kind. @type {Record<number, Handler>} */
export const REST_ENTRIES = {
  [KIND.APPEND_TEXT](run, _number, piece) {
    const { fold } = run;
    const [callId, toolName, text] = /** @type {[string, string, string]} */ (run.batches.takeStrings());
    const { freeze } = /** @type {{ freeze<T>(value: T): T }} */ (Object);
    /** @type {ToolResultMessage} */
    const result = freeze({ role: "tool_result", callId, toolName, content: freeze([freeze({ type: "text", text })]), isError: false, timestamp: Number(piece) });
    fold.results.set(callId, result);
    fold.messages.push(result);
  },

  [KIND.TOOL](run, slot, callId) {
    startEffect(run, slot, { kind: "tool", name: run.batches.takeStrings()[0], callId });
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

  [KIND.TIME](run, _number, piece) {
    run.engineRun.time = Number(piece);
  },

  [KIND.END](run, _number, output) {
    run.finish(output);
  },
};

/**
 * Entries with effects beyond the listeners: they wait until everything before them has been delivered.
 * @type {Set<number>}
 */
export const LATER = new Set([KIND.STARTS, KIND.EFFECT, KIND.HTTP, KIND.TOOL, KIND.CANCEL, KIND.RECEIPT, KIND.END, KIND.AGENT_END]);

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
