// @ts-check
// Waiting, the one way this demo waits: abortable, and replaceable in tests.

/**
 * Waits `ms` milliseconds, or rejects with the signal's reason as soon as it is aborted.
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
