// @ts-check
// What the events of a run add up to: its messages, the open turn, the results of its calls, and what has
// arrived of the answer. A local run reports each change as it happens; whoever has the events alone, a remote
// run or a store, lets `take` find the changes in them.

import { callsOf } from "./blocks.js";
import { PartialAnswer } from "./partial-answer.js";

/** @import { AgentEvent, AgentMessage, AssistantMessage, JsonValue, ToolCallBlock, ToolResultMessage } from "../index.js" */
/** @typedef {Extract<AgentEvent, { type: "agent_end" }>} AgentEnd */
/**
 * The open turn.
 * @typedef {{ turnIndex: number, messageStarted: boolean, answered: boolean }} Turn
 */

export class Fold {
  /** @param {AgentMessage[]} messages to which those of the run are appended */
  constructor(messages) {
    this.messages = messages;
    /** @type {Turn | undefined} */
    this.turn = undefined;
    /** How many turns have ended. */
    this.turns = 0;
    /** The last answer. @type {AssistantMessage | undefined} */
    this.answer = undefined;
    /** The answer that `calls` belongs to. @type {AssistantMessage | undefined} */
    this.callsAnswer = undefined;
    /** @type {Map<string, ToolCallBlock>} */
    this.calls = new Map();
    /** The results of this turn, by call id. @type {Map<string, ToolResultMessage>} */
    this.results = new Map();
    /** Whether an answer is streaming. */
    this.isAnswering = false;
    this.partial = new PartialAnswer();
    /** The event that ended the run. @type {AgentEnd | undefined} */
    this.end = undefined;
  }

  // ---- changes

  /** @param {number} turnIndex */
  beginTurn(turnIndex) {
    this.turn = { turnIndex, messageStarted: false, answered: false };
    this.isAnswering = false;
  }

  beginMessage() {
    if (this.turn) this.turn.messageStarted = true;
    this.isAnswering = true;
    this.partial.clear();
  }

  /** The next attempt starts its blocks anew. */
  resetMessage() {
    this.isAnswering = true;
    this.partial.clear();
  }

  /** The answer is complete. What has arrived of its arguments can be asked for until the turn ends. */
  endMessage() {
    if (this.turn) this.turn.answered = true;
    this.isAnswering = false;
  }

  endTurn() {
    this.turn = undefined;
    this.turns++;
    this.isAnswering = false;
    this.results.clear();
    this.partial.clear();
  }

  // ---- events

  /**
   * Takes an event of a run of which only the events are known.
   * @param {AgentEvent} event
   */
  take(event) {
    this.mark(event);
    switch (event.type) {
      case "run_resumed":
        if (event.partialMessage) this.resume(event.turnIndex, event.partialMessage.content);
        break;
      case "message_update":
        if (this.isAnswering) this.partial.grow(event.delta);
        break;
      case "message_end":
        this.answer = event.message;
        this.messages.push(event.message);
        break;
      case "turn_end":
        this.#addResults(event.toolResults);
        this.endTurn();
        break;
      case "agent_end":
        this.isAnswering = false;
        this.end = event;
    }
  }

  /**
   * Records what an event says of the open turn; its messages and pieces are known already.
   * @param {AgentEvent} event
   */
  mark(event) {
    switch (event.type) {
      case "turn_start":
        return this.beginTurn(event.turnIndex);
      case "message_start":
        return this.beginMessage();
      case "message_reset":
        return this.resetMessage();
      case "message_end":
        return this.endMessage();
      case "tool_execution_end":
        this.results.set(event.callId, event.result);
    }
  }

  /**
   * Continues an answer that had begun when the run was interrupted.
   * @param {number} turnIndex @param {AssistantMessage["content"]} content
   */
  resume(turnIndex, content) {
    this.turn ??= { turnIndex, messageStarted: true, answered: false };
    this.isAnswering = true;
    this.partial.restore(content);
  }

  /** Appends the results that the history does not have yet. @param {ToolResultMessage[]} results */
  #addResults(results) {
    const { messages, answer } = this;
    const known = new Set(messages.slice(answer ? messages.lastIndexOf(answer) : 0));
    for (const result of results) if (!known.has(result)) messages.push(result);
  }

  // ---- calls

  /**
   * The calls of the last answer by id, as they arrived, whatever a listener has done to the message since.
   */
  knownCalls() {
    if (this.callsAnswer !== this.answer) {
      this.callsAnswer = this.answer;
      this.calls = new Map();
      for (const call of callsOf(this.answer)) this.calls.set(call.callId, call);
    }
    return this.calls;
  }

  /** The arguments of a call as far as they have arrived: one live value. @param {string} callId @returns {JsonValue | undefined} */
  partialArguments(callId) {
    const args = this.partial.arguments.get(callId);
    return args ? args.parse().value : this.knownCalls().get(callId)?.arguments;
  }
}
