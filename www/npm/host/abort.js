// @ts-check
// Signals for host code.

import { complain } from "../errors/errors.js";

/** @typedef {EventListenerOrEventListenerObject} SignalListener */

/**
 * Makes an AbortController whose signal's listeners may throw: that is reported, where Node would end the process.
 */
export function abortController() {
  const controller = new AbortController();
  const { signal } = controller;
  /** What is registered in place of each listener. @type {WeakMap<object, EventListener>} */
  const guards = new WeakMap();
  const guardOf = (/** @type {SignalListener | null} */ listener) => {
    if (typeof listener !== "function" && (typeof listener !== "object" || listener === null)) return listener;
    let guard = guards.get(listener);
    if (!guard) guards.set(listener, (guard = (event) => callListener(signal, listener, event)));
    return guard;
  };
  /** @type {SignalListener | null} */
  let onabort = null;
  const { addEventListener, removeEventListener } = signal;
  Object.defineProperties(signal, {
    addEventListener: { value: (/** @type {string} */ type, /** @type {SignalListener | null} */ listener, /** @type {any} */ options) => addEventListener.call(signal, type, /** @type {any} */ (guardOf(listener)), options) },
    removeEventListener: { value: (/** @type {string} */ type, /** @type {SignalListener | null} */ listener, /** @type {any} */ options) => removeEventListener.call(signal, type, /** @type {any} */ (guardOf(listener)), options) },
    onabort: {
      get: () => onabort,
      set(listener) {
        if (onabort) signal.removeEventListener("abort", onabort);
        onabort = typeof listener === "function" ? listener : null;
        if (onabort) signal.addEventListener("abort", onabort);
      },
    },
  });
  return controller;
}

/** @param {AbortSignal} signal @param {SignalListener} listener @param {Event} event */
function callListener(signal, listener, event) {
  const failed = (/** @type {unknown} */ error) => complain("turnwheel: a listener of an AbortSignal threw", error);
  try {
    const answer = /** @type {any} */ (typeof listener === "function" ? listener.call(signal, event) : listener.handleEvent(event));
    answer?.then?.(undefined, failed);
  } catch (error) {
    failed(error);
  }
}
