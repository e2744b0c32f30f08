// @ts-check
// Web Locks: of all tabs, one has a lock. A tab that is closed, leaves its page or crashes has it no more. One that is put to
// sleep gives it back by itself: a page in the back/forward cache would keep it from all others.

import { misuse } from "../shared.js";
import { hasLocks, onLeave } from "./locks.js";

/** How a lock is asked for: it is waited for so long, or taken from whoever has it. @typedef {{ waitMs?: number, steal?: boolean, signal?: AbortSignal }} How */
/** @typedef {{ release(): void, lost: AbortSignal }} Held */

/**
 * Holds a lock until it is given back, taken by another tab, or the page is put to sleep.
 * @param {string} name @param {How} how @returns {Promise<Held | undefined>} nothing if another has it, and still has it after the wait
 */
export function hold(name, { waitMs = 0, steal = false, signal }) {
  if (!hasLocks()) return Promise.reject(misuse("there are no Web Locks here, so tabs cannot agree which of them has the agent; pages have them over HTTPS and on localhost"));
  const [waiting, lost] = [new AbortController(), new AbortController()];
  let release = () => {};
  const end = () => {
    stopListening();
    clearTimeout(timer);
    signal?.removeEventListener("abort", giveUp);
    release();
  };
  const giveUp = () => waiting.abort();
  const leave = () => {
    giveUp();
    end();
    lost.abort();
  };
  const stopListening = onLeave(leave);
  const timer = waitMs > 0 && waitMs < Infinity ? setTimeout(giveUp, waitMs) : undefined;
  signal?.addEventListener("abort", giveUp);
  if (signal?.aborted) giveUp();
  return new Promise((resolve, reject) => {
    const have = (/** @type {Lock | null} */ lock) => {
      if (!lock || waiting.signal.aborted) return void (end(), resolve(undefined));
      clearTimeout(timer);
      const until = new Promise((/** @type {(nothing: void) => void} */ done) => (release = done));
      resolve({ release: end, lost: lost.signal });
      return until;
    };
    const options = steal ? { steal } : waitMs > 0 ? { signal: waiting.signal } : { ifAvailable: true };
    navigator.locks.request(name, options, have).catch((error) => {
      end();
      lost.abort();
      if (error?.name === "AbortError") resolve(undefined);
      else reject(error);
    });
  });
}
