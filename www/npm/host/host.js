// @ts-check
// What the host may replace: time, timers, randomness, ids.

import { sleep } from "./sleep.js";
import { uuid } from "./uuid.js";

/**
 * As the host gives it.
 * @typedef {{ now?(): number, sleep?(ms: number, signal: AbortSignal): Promise<void>, random?(): number, id?(): string }} HostFunctions
 */
/** @typedef {ReturnType<typeof hostWithDefaults>} FullHost */

/** Adds what the host does not provide. @param {HostFunctions} [host] */
export const hostWithDefaults = (host = {}) => ({
  now: () => host.now?.() ?? Date.now(),
  random: () => host.random?.() ?? Math.random(),
  id: () => host.id?.() ?? uuid(),
  /** @param {number} ms @param {AbortSignal} [signal] */
  sleep: (ms, signal) => sleep(host, ms, signal),
});
