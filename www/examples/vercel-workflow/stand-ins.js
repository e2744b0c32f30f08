// @ts-check
// What the VM of a workflow lacks and turnwheel uses.

export function standIns() {
  globalThis.queueMicrotask ??= (work) => void Promise.resolve().then(work);
  globalThis.AbortController ??= /** @type {any} */ (Controller);
}

class Signal {
  aborted = false;
  /** @type {unknown} */
  reason = undefined;
  onabort = null;
  /** @type {Set<any>} */
  listeners = new Set();

  /** @param {string} _type @param {any} listener */
  addEventListener(_type, listener) {
    this.listeners.add(listener);
  }

  /** @param {string} _type @param {any} listener */
  removeEventListener(_type, listener) {
    this.listeners.delete(listener);
  }

  throwIfAborted() {
    if (this.aborted) throw this.reason;
  }
}

class Controller {
  signal = new Signal();

  /** @param {unknown} reason */
  abort(reason = new DOMException("This operation was aborted", "AbortError")) {
    const { signal } = this;
    if (signal.aborted) return;
    Object.assign(signal, { aborted: true, reason });
    for (const listener of [...signal.listeners]) (listener.handleEvent ?? listener).call(signal, { type: "abort", target: signal });
  }
}
