// @ts-check
// The events that wait for the iterator of a run, wherever the run is.

import { misuse } from "../errors/errors.js";
import { emptyList } from "../v8.js";
import { isSameBlock, joinUpdates } from "./blocks.js";

/** @import { AgentEvent } from "../index.js" */
/** @typedef {IteratorResult<AgentEvent, any>} Step */

/** How many events may wait for a slow iterator before pieces of one block are joined. */
const MAX_WAITING_EVENTS = 1024;

/** How far back an update of the same call is looked for. */
const REACH = 256;
/** Characters up to which texts are joined. */
const MAX_TEXT = 1 << 20;

const ONCE = "a run can be iterated once; use agent.subscribe for more listeners";
const LATE = "the run has begun to answer, and nobody kept the pieces; iterate it before anything else is awaited, or use agent.subscribe";

/** A queue for one iterator. */
export class EventQueue {
  /**
   * @param {{ left(): void, drained(): void }} owner `left` is called when the iterator is left early, `drained`
   * when it finds the queue closed and empty
   */
  constructor(owner) {
    this.owner = owner;
    /** The events before anybody iterated; dropped at the first piece of an answer. @type {AgentEvent[] | undefined} */
    this.early = emptyList();
    /** The events for the iterator, while there is one. @type {(AgentEvent | undefined)[] | undefined} */
    this.events = undefined;
    /** The start of the queue: events before this index have been taken. */
    this.head = 0;
    /** Calls of the iterator that wait for an event. @type {((step: Step) => void)[]} */
    this.waiting = [];
    this.isIterated = false;
    /** Whether no more events will come. */
    this.isOver = false;
  }

  /** Adds an event. @param {AgentEvent} event */
  push(event) {
    if (this.events !== undefined) this.#enqueue(this.events, event);
    else if (this.early !== undefined) this.#keepEarly(this.early, event);
  }

  /** Events are lost from here on, so nobody may begin to iterate. */
  dropEarly() {
    this.early = undefined;
  }

  /** Keeps an event for a later iterator. Without one, no pieces are kept. @param {AgentEvent[]} early @param {AgentEvent} event */
  #keepEarly(early, event) {
    if (event.type === "message_update" || early.length === MAX_WAITING_EVENTS) this.early = undefined;
    else early.push(event);
  }

  /** @param {(AgentEvent | undefined)[]} events @param {AgentEvent} event */
  #enqueue(events, event) {
    const next = this.waiting.shift();
    if (next) return next({ done: false, value: event });
    const isFull = events.length - this.head > MAX_WAITING_EVENTS;
    const last = isFull ? events[events.length - 1] : undefined;
    if (isFull && event.type === "tool_execution_update" && this.#joins(events, event)) return;
    if (last?.type === "message_update" && event.type === "message_update" && isSameBlock(last.delta, event.delta)) {
      events[events.length - 1] = joinUpdates(last, event);
    } else events.push(event);
  }

  /**
   * Joins a tool's update with the one of the same call that waits, if there is one near the end: tools that run at the
   * same time report in turns. Two short texts become one, of anything else the later one is kept.
   * @param {(AgentEvent | undefined)[]} events @param {Extract<AgentEvent, { type: "tool_execution_update" }>} event
   */
  #joins(events, event) {
    for (let i = events.length - 1; i >= Math.max(this.head, events.length - REACH); i--) {
      const earlier = events[i];
      if (earlier?.type !== "tool_execution_update" || earlier.callId !== event.callId) continue;
      const [before, update] = [earlier.update, event.update];
      const isShort = typeof before === "string" && typeof update === "string" && before.length + update.length <= MAX_TEXT;
      events[i] = { ...event, update: isShort ? before + update : update };
      return true;
    }
    return false;
  }

  /** The events that the iterator has not taken yet. @returns {AgentEvent[]} */
  unread() {
    return /** @type {AgentEvent[]} */ (this.events?.slice(this.head) ?? []);
  }

  /** Whether the iterator has events to take. */
  get hasUnread() {
    return this.events !== undefined && this.head < this.events.length;
  }

  /** Ends the queue; what waits in it can still be taken. */
  close() {
    this.isOver = true;
    this.#dismissWaiting();
  }

  #dismissWaiting() {
    for (const next of this.waiting.splice(0)) next({ done: true, value: undefined });
  }

  /** Returns the one iterator. @returns {AsyncIterableIterator<AgentEvent> & { return(value?: any): Promise<Step> }} */
  iterate() {
    if (this.isIterated) throw misuse(ONCE);
    if (!this.early) throw misuse(LATE);
    this.isIterated = true;
    this.events = this.early;
    this.early = undefined;
    return {
      next: () => this.#next(),
      return: (value) => this.#leave(value),
      [Symbol.asyncIterator]() {
        return this;
      },
    };
  }

  /** @returns {Promise<Step>} */
  #next() {
    const { events } = this;
    if (events && this.head < events.length) {
      const value = /** @type {AgentEvent} */ (events[this.head]);
      events[this.head++] = undefined;
      // Taking each from the front would move all others.
      if (this.head > 512 && this.head * 2 > events.length) {
        events.splice(0, this.head);
        this.head = 0;
      }
      return Promise.resolve({ done: false, value });
    }
    if (this.isOver || !events) {
      this.owner.drained();
      return Promise.resolve({ done: true, value: undefined });
    }
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  /** @param {any} value @returns {Promise<Step>} */
  #leave(value) {
    this.events = undefined;
    this.#dismissWaiting();
    this.owner.left();
    return Promise.resolve({ done: true, value });
  }
}
