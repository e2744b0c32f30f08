// @ts-check
// An effect in progress: what cancels it, and what it gives to the host.

import { abortController } from "../shared.js";
import { keepShape } from "../v8.js";

/** @import { AgentMessage } from "../index.js" */

/** Most effects never read their signal, so it is created on first access. */
export class Slot {
  constructor() {
    /** @type {AbortController | undefined} */
    this.controller = undefined;
    this.aborted = false;
    /** An error, or its text. @type {unknown} */
    this.reason = undefined;
    /** Whether a response is being read. */
    this.reading = false;
    /** The reader of the response. @type {ReadableStreamDefaultReader<Uint8Array> | undefined} */
    this.reader = undefined;
    /** Whether the response was read to its end. */
    this.complete = false;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    /** The history, if the slot is that of a tool. @type {AgentMessage[]} */
    this.log = NOTHING;
  }

  get signal() {
    if (!this.controller) {
      this.controller = abortController();
      if (this.aborted) this.abort(this.reason);
    }
    return this.controller.signal;
  }

  /** @param {unknown} reason */
  abort(reason) {
    const { reader } = this;
    this.aborted = true;
    this.reason = reason;
    this.controller?.abort(typeof reason === "string" ? new DOMException(reason, "AbortError") : reason);
    // A host's `fetch` may not have passed the signal on to the body.
    if (reader) quietly(() => reader.cancel(reason));
  }
}

/** @type {AgentMessage[]} */
const NOTHING = [];
keepShape(new Slot());

/** The key under which objects given to the host hold their slot. @type {unique symbol} */
const SLOT = Symbol.for("turnwheel.slot");

/**
 * Lets an object hold its slot; it must be the first of its properties.
 * @param {object} object @param {Slot} slot
 */
export function holdSlot(object, slot) {
  /** @type {{ [SLOT]?: Slot }} */ (object)[SLOT] = slot;
}

/**
 * The signal of a slot, created on first access. It is an own property, so that copies of the
 * object have it too, and all objects share this one getter: V8 takes a microsecond for each getter
 * written in an object literal.
 */
export const SIGNAL = {
  enumerable: true,
  configurable: true,
  /** @this {{ [SLOT]: Slot }} */
  get() {
    return this[SLOT].signal;
  },
};

/** The history so far, copied on first access: what a tool does to its list changes nothing else. */
export const MESSAGES = {
  enumerable: true,
  configurable: true,
  /** @this {{ [SLOT]: Slot }} */
  get() {
    const value = this[SLOT].log.slice();
    Object.defineProperty(this, "messages", { value, enumerable: true, configurable: true, writable: true });
    return value;
  },
};

/** Runs work that nobody waits for, and whose failure must not end the process. @param {() => unknown} work */
export function quietly(work) {
  try {
    const answer = /** @type {PromiseLike<unknown> | undefined} */ (work());
    answer?.then?.(undefined, () => {});
  } catch {
    // Deliberately ignored.
  }
}
