// @ts-check
// The history as it is shown: a copy, the same one until something is added, and what was sent and is not in it yet.

import { toMessages } from "../shared.js";

/** @import { AgentMessage, Input } from "../index.js" */

/** @type {readonly AgentMessage[]} */
const NONE = Object.freeze([]);

export class ShownHistory {
  constructor() {
    /** What the copy was made from. */
    this.source = NONE;
    this.length = 0;
    /** @type {AgentMessage | undefined} */
    this.last = undefined;
    this.copy = NONE;
    /** Messages that were sent, and how the history ended then. @type {{ messages: AgentMessage[], last: AgentMessage | undefined, length: number } | undefined} */
    this.outbox = undefined;
  }

  /**
   * Shows what is being sent.
   * @param {Input | Input[]} input @param {AgentMessage | undefined} last of the history before @param {number} length of the history before
   */
  send(input, last, length) {
    const timestamp = Date.now();
    this.outbox = { messages: toMessages(input).map((message) => ({ ...message, timestamp: message.timestamp || timestamp })), last, length };
  }

  /** What was sent is in the history, or never will be. */
  sent() {
    this.outbox = undefined;
  }

  /** Returns a copy of the history. @param {readonly AgentMessage[]} source */
  of(source) {
    const last = source.at(-1);
    const { outbox } = this;
    if (outbox && (outbox.last !== last || outbox.length !== source.length)) this.outbox = undefined;
    // Other agents may return a new array each time.
    const isSame = this.length === source.length && this.last === last && (this.source === source || source.every((message, i) => message === this.copy[i]));
    this.source = source;
    if (isSame) return this.copy;
    this.length = source.length;
    this.last = last;
    this.copy = Object.freeze([...source]);
    return this.copy;
  }

  waiting() {
    return this.outbox?.messages ?? NONE;
  }
}
