// @ts-check
// The listeners of an agent. One that throws is removed and reported; the others hear the event all the same.

/** @import { AgentEvent } from "../index.js" */
/** @typedef {(event: AgentEvent) => unknown} Listener */

export class Subscribers {
  constructor() {
    /** By number, so that the same function subscribed twice is two listeners. @type {Map<number, Listener>} */
    this.listeners = new Map();
    this.next = 1;
    /** The listeners in order, cached until the set changes. @type {{ id: number, listener: Listener }[] | undefined} */
    this.list = undefined;
    /** How many events are being dispatched right now. */
    this.dispatching = 0;
  }

  get size() {
    return this.listeners.size;
  }

  /** Adds a listener; returns the function that removes it. @param {Listener} listener */
  add(listener) {
    const id = this.next++;
    this.listeners.set(id, listener);
    this.list = undefined;
    return () => this.#remove(id);
  }

  clear() {
    this.listeners.clear();
    this.list = undefined;
  }

  /** @param {number} id */
  #remove(id) {
    this.listeners.delete(id);
    this.list = undefined;
  }

  /** Calls every listener. @param {AgentEvent} event */
  dispatch(event) {
    if (this.listeners.size === 0) return;
    const list = (this.list ??= Array.from(this.listeners, ([id, listener]) => ({ id, listener })));
    this.dispatching++;
    for (let i = 0; i < list.length; i++) {
      const { id, listener } = /** @type {{ id: number, listener: Listener }} */ (list[i]);
      try {
        const returned = /** @type {PromiseLike<unknown> | undefined} */ (listener.call(undefined, event));
        if (typeof returned?.then === "function") returned.then(undefined, (error) => this.#dismiss(id, error));
      } catch (error) {
        this.#dismiss(id, error);
      }
    }
    this.dispatching--;
  }

  /** @param {number} id @param {unknown} error */
  #dismiss(id, error) {
    this.#remove(id);
    console.error("turnwheel: a subscriber threw and was removed", error);
  }
}
