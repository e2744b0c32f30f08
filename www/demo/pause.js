// @ts-check
// The demo's only way to wait: abortable, and replaceable in tests.

/**
 * Waits `ms` milliseconds. Rejects with the signal's reason as soon as it aborts.
 *
 * @param {number} ms
 * @param {AbortSignal} [signal]
 * @returns {Promise<void>}
 */
export function pause(ms, signal) {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal?.addEventListener("abort", stop, { once: true });
  });
}

/** @typedef {(ms: number, signal?: AbortSignal) => Promise<void>} Pause */
