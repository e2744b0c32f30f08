// @ts-check
// How the history of an agent changes with an event, as the server tells it. A message that the events have said
// already is only referred to: `"answer"` is the last answer, `"=ID"` the result of that call.

/** @import { AgentEvent, AgentMessage, AssistantMessage, ToolResultMessage } from "../index.js" */
/** @typedef {AgentMessage | string} MessageRef */
/**
 * From the index `at` on, the history is what `add` holds.
 * @typedef {{ at: number, add: MessageRef[] }} HistoryChange
 */

/** The messages that the events of the turn have said. */
export class SaidMessages {
  constructor() {
    /** @type {AssistantMessage | undefined} */
    this.answer = undefined;
    /** @type {Map<string, ToolResultMessage>} */
    this.results = new Map();
  }

  /** @param {AgentEvent} event */
  take(event) {
    if (event.type === "message_end") this.answer = event.message;
    else if (event.type === "tool_execution_end") this.results.set(event.callId, event.result);
  }

  /** The turn is over: its results are not referred to any more. */
  endTurn() {
    this.results.clear();
  }

  clear() {
    this.answer = undefined;
    this.results.clear();
  }

  /** @param {AgentMessage} message @returns {MessageRef} */
  refTo(message) {
    if (message === this.answer) return "answer";
    return message.role === "tool_result" && this.results.get(message.callId) === message ? `=${message.callId}` : message;
  }

  /** @param {MessageRef} ref @returns {AgentMessage} */
  resolve(ref) {
    if (typeof ref !== "string") return ref;
    return /** @type {AgentMessage} */ (ref === "answer" ? this.answer : this.results.get(ref.slice(1)));
  }
}
