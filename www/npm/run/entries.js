// @ts-check
// Handlers for the entries of a batch. Each takes a run, the entry's number and its piece of the text, and returns
// the event to emit, if there is one. The Rust half is outbox.rs of the engine. Those that only a whole engine makes are in
// rest-entries.js.

import * as KIND from "../boundary/protocol.js";
import { EFFECTS, startEffect } from "../effects/effects.js";

/** @import { AgentEvent, Delta } from "../index.js" */
/** @import { Driver } from "./driver.js" */
/** @typedef {(run: Driver, number: number, piece: string) => AgentEvent | void} Handler */

/**
 * The handlers by kind of what comes until the first answer ends, and often. A table, not a switch: V8 compiles a function
 * as a whole, with everything it inlines; with a table it compiles only the handlers that run often.
 * @type {Record<number, Handler>}
 */
export const ENTRIES = {
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

  [KIND.HTTP](run, slot, piece) {
    startEffect(run, slot, run.memory.requestOf(piece));
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
};

/**
 * What may be delivered before all parts of the engine are there: what comes before the end of the first answer, for up to
 * there a checkpoint may say that the run has not begun. Of the effects it is those that effects.js has itself.
 * @param {number} kind @param {string} piece
 */
export const isInFirst = (kind, piece) => kind in ENTRIES && (kind !== KIND.EFFECT || JSON.parse(piece).kind in EFFECTS);

/**
 * A message is the same object in its events and in the history: whoever changes it would change what the agent has said.
 * @template T @param {T} value @returns {T}
 */
export function frozen(value) {
  if (typeof value !== "object" || value === null) return value;
  for (const part of Object.values(value)) if (typeof part === "object") frozen(part);
  return Object.freeze(value);
}

/** What an event that begins or ends something says of the time: when the engine said so. @param {Driver} run */
export const now = (run) => run.engineRun.time;

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
