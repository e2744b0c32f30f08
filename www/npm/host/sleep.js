// @ts-check
// Timers.

/** A timer with a longer delay fires at once. */
const MAX_DELAY = 2 ** 31 - 1;

/**
 * Waits, with the host's `sleep` if there is one. Ends early if the signal aborts.
 * @param {{ sleep?(ms: number, signal: AbortSignal, name?: string): Promise<void> }} host @param {number} ms @param {AbortSignal} [signal]
 * @param {string} [name] what it is for @returns {Promise<void>}
 */
export async function sleep(host, ms, signal = new AbortController().signal, name = undefined) {
  if (host.sleep) return host.sleep(ms, signal, name);
  if (signal.aborted) return;
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, Math.min(ms, MAX_DELAY));
    signal.addEventListener("abort", end);
  });
}
