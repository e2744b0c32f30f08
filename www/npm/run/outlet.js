// @ts-check
// Where the events of a run leave: to the subscribers of its agent, and to its iterator.

import { EventQueue } from "../shared.js";
import { Coalescer } from "./coalescer.js";

/** @import { AgentEvent } from "../index.js" */
/** @import { Subscribers } from "../shared.js" */
/** @import { Driver } from "./driver.js" */

/** The events that begin or end something say when. */
const STAMPED = /_start$|_end$|^run_resumed$/;

export class Outlet {
  /** @param {Driver} run */
  constructor(run) {
    const { core } = run;
    const { subscribers, options } = core;
    const { coalesceMs = 0 } = options;
    this.core = core;
    /** @type {Subscribers} */
    this.subscribers = subscribers;
    this.queue = new EventQueue(run);
    /** @type {Coalescer | undefined} */
    this.coalescer = coalesceMs > 0 ? new Coalescer(coalesceMs, (ms, signal) => core.host.sleep(ms, signal), (event) => this.#deliver(event)) : undefined;
  }

  /** Whether anybody receives a piece. Whoever comes later cannot get it any more. */
  isHeard() {
    if (this.queue.events !== undefined || this.subscribers.size > 0) return true;
    this.queue.dropEarly();
    return false;
  }

  /** Delivers one event to everybody. @param {AgentEvent} event @param {number} [at] when the engine said so; without it, now */
  emit(event, at) {
    const stamped = /** @type {{ at?: number }} */ (event);
    if (event.type !== "message_update" && stamped.at === undefined && STAMPED.test(event.type)) stamped.at = at ?? this.core.host.now();
    if (this.coalescer !== undefined) this.coalescer.take(event);
    else this.#deliver(event);
  }

  /** @param {AgentEvent} event */
  #deliver(event) {
    this.subscribers.dispatch(event);
    this.queue.push(event);
  }

  /** Delivers what is held back. */
  release() {
    this.coalescer?.release();
  }
}
