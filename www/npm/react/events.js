// @ts-check
// The newest events, for those who show what happens.

import { isSameBlock, joinUpdates } from "../shared.js";

/** @import { AgentEvent } from "../index.js" */

export class NewestEvents {
  /** @param {number} limit consecutive pieces of one block count as one */
  constructor(limit) {
    this.limit = limit;
    /** @type {AgentEvent[]} */
    this.events = [];
    /** The list that is shown, until there is a new event. @type {readonly AgentEvent[] | undefined} */
    this.shown = undefined;
  }

  /** Keeps an event. When a long block is cut off, only its beginning is lost. @param {AgentEvent} event */
  take(event) {
    const { events, limit } = this;
    if (limit <= 0) return;
    const last = events.at(-1);
    this.shown = undefined;
    if (event.type === "message_update" && last?.type === "message_update" && isSameBlock(last.delta, event.delta)) {
      events[events.length - 1] = joinUpdates(last, event);
      return;
    }
    // Trimmed now and then, so that an event costs nothing extra.
    if (events.push(event) >= 2 * limit) events.splice(0, events.length - limit);
  }

  /** The same list until there is a new event. */
  list() {
    return (this.shown ??= Object.freeze(this.limit > 0 ? this.events.slice(-this.limit) : []));
  }
}
