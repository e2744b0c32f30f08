// @ts-check
// The messages of an agent, and what the engine knows of them.

import { checkHistory, jsonOf } from "../shared.js";

/** @import { AgentMessage } from "../index.js" */

export class History {
  /** @param {unknown} messages */
  constructor(messages) {
    /** Runs append to it. @type {AgentMessage[]} */
    this.messages = checkHistory(messages);
    /** The history as the engine knows it: its length and its last message. @type {[number, AgentMessage | undefined]} */
    this.synced = [0, undefined];
  }

  noteSynced() {
    this.synced = [this.messages.length, this.messages.at(-1)];
  }

  /** Whether somebody changed the list behind the engine's back. */
  get isChanged() {
    const [length, last] = this.synced;
    return length !== this.messages.length || last !== this.messages.at(-1);
  }

  clear() {
    this.messages = [];
    this.noteSynced();
  }

  toJson() {
    return jsonOf("`messages` are", this.messages);
  }
}
