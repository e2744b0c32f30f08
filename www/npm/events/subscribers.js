// @ts-check
// The listeners of an agent. One that throws is reported, and removed unless it asked to be kept; the others hear the
// event all the same.

import { AgentError, complain, misuse, textOf } from "../errors/errors.js";
import { checkNames, kindOf } from "../errors/names.js";

/** @import { AgentEvent } from "../index.js" */
/** @typedef {(event: AgentEvent, info: { readonly replaying: boolean }) => unknown} Listener */
/** @typedef {{ id: number, listener: Listener, keep: boolean }} Subscriber */
/** @typedef {{ keep?: boolean }} SubscribeOptions */
/** Hears of a listener that threw; returns whether somebody was told. @typedef {(error: AgentError, runId: string) => boolean} Report */

/** @type {{ readonly replaying: boolean }} */
const LIVE = Object.freeze({ replaying: false });

export class Subscribers {
  /** @param {Report} [report] what nobody is told goes to the console */
  constructor(report = () => false) {
    this.report = report;
    /** By number, so that the same function subscribed twice is two listeners. @type {Map<number, Subscriber>} */
    this.listeners = new Map();
    this.next = 1;
    /** The listeners in order, cached until the set changes. @type {Subscriber[] | undefined} */
    this.list = undefined;
    /** Hears everything first: the run around this one. @type {((event: AgentEvent) => void) | undefined} */
    this.around = undefined;
    /** What listeners are told besides. */
    this.info = LIVE;
    /** How many events are being dispatched right now. */
    this.dispatching = 0;
  }

  get size() {
    return this.listeners.size + (this.around ? 1 : 0);
  }

  /** Adds a listener; returns the function that removes it. @param {Listener} listener @param {SubscribeOptions} [options] */
  add(listener, options = {}) {
    if (typeof listener !== "function") throw misuse(`a subscriber must be a function, got ${kindOf(listener)}`);
    checkNames("unknown option of subscribe", options, ["keep"]);
    const { keep = false } = options;
    if (typeof keep !== "boolean") throw misuse(`\`keep\` must be true or false, got ${kindOf(keep)}`);
    const id = this.next++;
    this.listeners.set(id, { id, listener, keep });
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
    if (this.listeners.size === 0 && this.around === undefined) return;
    const list = (this.list ??= [...this.listeners.values()]);
    this.dispatching++;
    this.around?.(event);
    for (let i = 0; i < list.length; i++) {
      const subscriber = /** @type {Subscriber} */ (list[i]);
      const { listener } = subscriber;
      try {
        const returned = /** @type {PromiseLike<unknown> | undefined} */ (listener.call(undefined, event, this.info));
        if (typeof returned?.then === "function") returned.then(undefined, (error) => this.#failed(subscriber, event, error));
      } catch (error) {
        this.#failed(subscriber, event, error);
      }
    }
    this.dispatching--;
  }

  /** @param {Subscriber} subscriber @param {AgentEvent} event @param {unknown} thrown */
  #failed({ id, keep }, { runId, type }, thrown) {
    if (!keep) this.#remove(id);
    const outcome = keep ? "threw" : "threw and was removed";
    const error = new AgentError({ code: "hook", message: `a subscriber ${outcome} at \`${type}\`: ${textOf(thrown)}`, retryable: false, phase: "subscriber" }, thrown);
    let isTold = false;
    try {
      isTold = this.report(error, runId);
    } catch (failure) {
      complain("turnwheel: onError threw", failure);
    }
    if (!isTold) complain(`turnwheel: a subscriber ${outcome}`, thrown);
  }
}
