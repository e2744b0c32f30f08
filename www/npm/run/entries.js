// @ts-check
// Handlers for the engine's outbox entries; see src/wasm/outbox.rs. Each takes a run, the entry's number and
// its piece of the text, and returns the event to emit, if there is one.

import { startEffect } from "../effects/effects.js";
import { emptyList } from "../v8.js";
import * as KIND from "../boundary/protocol.js";

/**
 * The handlers by kind. A table, not a switch: V8 compiles a function as a whole, with everything it inlines;
 * with a table it compiles only the handlers that run often.
 * @type {Record<number, (run: any, number, piece: string) => any>}
 */
export const ENTRIES = {
  // ---- entries of every turn

  [KIND.TEXT]: pieceHandler("text"),

  [KIND.THINKING]: pieceHandler("thinking"),

  [KIND.ARGUMENTS](run, contentIndex, delta) {
    const { callId, toolName, kept } = run.streaming.get(contentIndex);
    if (kept.json) kept.json.feed(delta);
    else kept.pieces.push(delta);
    return hasListener(run) ? update(run, { type: "tool_call", contentIndex, callId, toolName, delta }) : undefined;
  },

  [KIND.STRING](run, number, piece) {
    run.strings.push(piece);
  },

  [KIND.CALL](run, number, toolName) {
    const [callId] = run.takeStrings();
    const kept = run.arguments.get(callId) ?? { pieces: emptyList(), json: undefined };
    run.arguments.set(callId, kept);
    run.streaming.set(number, { callId, toolName, kept });
  },

  [KIND.APPEND](run, number, piece) {
    const message = JSON.parse(piece);
    if (message.role === "assistant") run.answer = message;
    if (message.role === "tool_result") run.results.set(message.callId, message);
    run.log.push(message);
  },

  [KIND.APPEND_TEXT](run, number, piece) {
    const [callId, toolName, text] = run.takeStrings();
    const result = { role: "tool_result", callId, toolName, content: [{ type: "text", text }], isError: false, timestamp: Number(piece) };
    run.results.set(callId, result);
    run.log.push(result);
  },

  [KIND.HTTP](run, slot, piece) {
    if (piece !== run.requestJson) [run.requestJson, run.request] = [piece, JSON.parse(piece)];
    startEffect(run, slot, run.request);
  },

  [KIND.TOOL](run, slot, callId) {
    startEffect(run, slot, { kind: "tool", name: run.takeStrings()[0], callId });
  },

  [KIND.CANCEL](run, slot) {
    run.cancel(slot);
  },

  [KIND.TURN_START](run, turnIndex) {
    run.turn = { turnIndex, messageStarted: false, answered: false };
    return { type: "turn_start", runId: run.runId, turnIndex };
  },

  [KIND.MESSAGE_START](run) {
    if (run.turn) run.turn.messageStarted = true;
    return { type: "message_start", runId: run.runId };
  },

  [KIND.MESSAGE_END](run) {
    if (run.turn) run.turn.answered = true;
    run.knownCalls();
    return { type: "message_end", runId: run.runId, message: run.answer };
  },

  [KIND.PROPOSED]: (run) => ({ type: "tool_calls_proposed", runId: run.runId, calls: [...run.knownCalls().values()] }),

  [KIND.TOOL_START]: (run, number, callId) => toolStart(run, callId),

  [KIND.STARTS](run, number, piece) {
    run.announce(number === 0 ? run.takeStrings() : JSON.parse(piece));
  },

  [KIND.TOOL_END](run, number, callId) {
    const result = run.results.get(callId);
    return { type: "tool_execution_end", runId: run.runId, callId, toolName: result.toolName, result, isError: result.isError };
  },

  [KIND.TURN_ENDED]: (run, turnIndex, reason) => turnEnd(run, turnIndex, reason, run.answer, run.takeStrings()),

  // ---- entries that occur once or a few times per run

  [KIND.EVENT](run, number, piece) {
    const event = JSON.parse(piece);
    event.runId = run.runId;
    if (event.type === "run_resumed") return run.resume(event);
    if (number === 1) event.messages = run.resolveRefs(event.messages);
    note(run, event);
    return event;
  },

  [KIND.EFFECT](run, slot, piece) {
    startEffect(run, slot, JSON.parse(piece));
  },

  [KIND.TURN_END](run, number, piece) {
    const { turnIndex, reason, message, results } = JSON.parse(piece);
    return turnEnd(run, turnIndex, reason, message, results);
  },

  [KIND.APPEND_ANSWER](run) {
    run.log.push(run.answer);
  },

  [KIND.APPEND_RESULT](run, number, callId) {
    run.log.push(run.results.get(callId));
  },

  [KIND.TRUNCATE](run, length) {
    const before = (run.previousLog = run.log);
    run.log = before.slice(0, length);
    if (run.core.messages === before) run.core.messages = run.log;
  },

  [KIND.COPY](run, index) {
    run.log.push(run.previousLog[index]);
  },

  [KIND.RECEIPT](run, number, piece) {
    run.core.settleReceipt(number, piece === "" ? { delivered: false, reason: "cleared" } : { delivered: true, turnIndex: Number(piece) });
  },

  [KIND.AGENT_END](run, number, piece) {
    const { core, runId } = run;
    const { messages, ...end } = JSON.parse(piece);
    run.end = { type: "agent_end", runId, messages: [...messages, ...run.log.slice(run.log.length - number)], ...end };
    run.usageBefore = core.usage;
    // Not after a listener has reset the agent: its usage was set to zero then.
    if (core.driver === run) core.addUsage(end.usage);
    run.release();
    core.beforeRunEnd(run);
    run.endEmitted = true;
    return run.end;
  },

  [KIND.END](run, number, output) {
    run.finish(output);
  },
};

/**
 * Entries with effects beyond the listeners: they wait until everything before them has been delivered.
 * @type {Set<number>}
 */
export const LATER = new Set([KIND.STARTS, KIND.EFFECT, KIND.HTTP, KIND.TOOL, KIND.CANCEL, KIND.RECEIPT, KIND.END, KIND.AGENT_END]);

/** Whether anybody receives this piece. Whoever comes later cannot get it; see `early`. @param {any} run */
function hasListener(run) {
  if (run.queue !== undefined || run.core.listeners.size > 0) return true;
  run.early = undefined;
  return false;
}

/**
 * Makes the handler for a piece of a block.
 * @param {string} type @returns {(run: any, contentIndex: number, delta: string) => any}
 */
function pieceHandler(type) {
  return (run, contentIndex, delta) => (hasListener(run) ? update(run, { type, contentIndex, delta }) : undefined);
}

/** @param {any} run @param {any} delta */
function update({ runId }, delta) {
  return { type: "message_update", runId, delta };
}

/**
 * The event that announces a call, with the arguments as the model wrote them.
 * @param {any} run @param {string} callId
 */
export function toolStart(run, callId) {
  const { toolName, arguments: args } = run.callOf(callId);
  return { type: "tool_execution_start", runId: run.runId, callId, toolName, arguments: args };
}

/**
 * @param {any} run @param {number} turnIndex @param {string} reason @param {any} message
 * @param {string[]} ids of the calls that have results
 */
function turnEnd(run, turnIndex, reason, message, ids) {
  const toolResults = ids.map((id) => run.results.get(id));
  run.results.clear();
  forgetCalls(run);
  run.turn = undefined;
  return { type: "turn_end", runId: run.runId, turnIndex, message, toolResults, reason };
}

/** Records what a run and its agent keep of an event. @param {any} run @param {any} event */
export function note(run, event) {
  switch (event.type) {
    case "turn_start":
      run.turn = { turnIndex: event.turnIndex, messageStarted: false, answered: false };
      break;
    case "message_start":
      if (run.turn) run.turn.messageStarted = true;
      break;
    case "message_end":
      if (run.turn) run.turn.answered = true;
      break;
    case "message_reset":
      // The next attempt starts its calls anew.
      forgetCalls(run);
      break;
    case "tool_execution_end":
      run.results.set(event.callId, event.result);
  }
  run.core.note(event);
}

/** @param {any} run */
function forgetCalls(run) {
  run.streaming.clear();
  run.arguments.clear();
}

/** @param {any} message @returns {any[]} */
export function callsOf(message) {
  return (message?.content ?? []).filter((/** @type {any} */ block) => block.type === "tool_call");
}
