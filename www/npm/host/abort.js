// @ts-check
// Signals for host code.

import { complain } from "../errors/errors.js";

/** @typedef {EventListenerOrEventListenerObject} Listener */

/**
 * Makes an AbortController whose signal's listeners may throw: that is reported, where Node would end the process.
 */
export function abortController() {
  const controller = new AbortController();
  const { signal } = controller;
  /** What is registered in place of each listener. @type {WeakMap<object, EventListener>} */
  const guards = new WeakMap();
  const guardOf = (/** @type {Listener | null} */ listener) => {
    if (typeof listener !== "function" && (typeof listener !== "object" || listener === null)) return listener;
    let guard = guards.get(listener);
    if (!guard) guards.set(listener, (guard = (event) => callListener(signal, listener, event)));
    return guard;
  };
  /** @type {Listener | null} */
  let onabort = null;
  const { addEventListener, removeEventListener } = signal;
  Object.defineProperties(signal, {
    addEventListener: { value: (/** @type {string} */ type, /** @type {Listener | null} */ listener, /** @type {any} */ options) => addEventListener.call(signal, type, /** @type {any} */ (guardOf(listener)), options) },
    removeEventListener: { value: (/** @type {string} */ type, /** @type {Listener | null} */ listener, /** @type {any} */ options) => removeEventListener.call(signal, type, /** @type {any} */ (guardOf(listener)), options) },
    onabort: {
      get: () => onabort,
      set(listener) {
        signal.removeEventListener("abort", onabort);
        signal.addEventListener("abort", (onabort = typeof listener === "function" ? listener : null));
      },
    },
  });
  return controller;
}

/** @param {AbortSignal} signal @param {Listener} listener @param {Event} event */
function callListener(signal, listener, event) {
  const failed = (/** @type {unknown} */ error) => complain("turnwheel: a listener of an AbortSignal threw", error);
  try {
    const answer = /** @type {any} */ (typeof listener === "function" ? listener.call(signal, event) : listener.handleEvent(event));
    answer?.then?.(undefined, failed);
  } catch (error) {
    failed(error);
  }
}
