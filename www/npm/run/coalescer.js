// @ts-check
// Holds back the pieces of a block for a while, and joins them (`coalesceMs`).

import { abortController, isSameBlock, joinUpdates } from "../shared.js";

/** @import { AgentEvent } from "../index.js" */
/** @import { MessageUpdate } from "../shared.js" */
/** @typedef {{ update: MessageUpdate, timer: AbortController }} Held */

export class Coalescer {
  /**
   * @param {number} ms @param {(ms: number, signal: AbortSignal) => Promise<unknown>} sleep
   * @param {(event: AgentEvent) => void} deliver
   */
  constructor(ms, sleep, deliver) {
    this.ms = ms;
    this.sleep = sleep;
    this.deliver = deliver;
    /** @type {Held | undefined} */
    this.held = undefined;
    /** The event delivered right after it. @type {AgentEvent | undefined} */
    this.afterHeld = undefined;
  }

  /** Takes an event. @param {AgentEvent} event */
  take(event) {
    const { held } = this;
    if (event.type !== "message_update") {
      this.release(event);
      return this.deliver(event);
    }
    if (held && isSameBlock(held.update.delta, event.delta)) held.update = joinUpdates(held.update, event);
    else {
      this.release(event);
      this.#hold(event);
    }
  }

  /** @param {MessageUpdate} update */
  #hold(update) {
    const timer = abortController();
    const fresh = (this.held = { update, timer });
    const due = () => void (this.held === fresh && this.release());
    this.sleep(this.ms, timer.signal).then(due, due);
  }

  /** @param {AgentEvent} [next] the event that waits for this one; a checkpoint taken meanwhile must include it */
  release(next) {
    const { held } = this;
    if (!held) return;
    this.held = undefined;
    held.timer.abort();
    this.afterHeld = next;
    this.deliver(held.update);
    this.afterHeld = undefined;
  }
}
