// @ts-check
// What the host may replace: time, timers, randomness, ids.

import { complain } from "../errors/errors.js";
import { sleep } from "./sleep.js";
import { uuid } from "./uuid.js";

/**
 * As the host gives it.
 * @typedef {{ now?(): number, sleep?(ms: number, signal: AbortSignal, name?: string): Promise<void>, random?(): number, id?(): string }} HostFunctions
 */
/** @typedef {ReturnType<typeof hostWithDefaults>} Host */

/**
 * The time of day. What is measured with it goes on like a clock that nobody sets: while `measured` gives the same thing, such as a
 * run, the time of day is not looked at again.
 * @param {() => unknown} measured
 */
function steady(measured) {
  /** @type {unknown} */
  let last = 0;
  let day = 0;
  return () => {
    const thing = measured();
    const at = globalThis.performance?.now() ?? 0;
    if (!thing || !at || thing !== last) day = Date.now() - at;
    last = thing;
    return Math.round(day + at);
  };
}

/** Adds what the host does not provide. @param {HostFunctions} [given] @param {() => unknown} [measured] */
export const hostWithDefaults = (given = {}, measured = () => 0, now = steady(measured)) => ({
  now: () => (given.now ? number(given, "now", now) : now()),
  random: () => number(given, "random", Math.random),
  id: () => String(given.id?.() ?? uuid()),
  /** @param {number} ms @param {AbortSignal} [signal] @param {string} [name] what it is for */
  sleep: (ms, signal, name) => sleep(given, ms, signal, name),
});

/**
 * A number from the host. The engine calls this, and a call from the engine must neither throw nor return
 * anything but a number: that would end every run.
 * @param {HostFunctions} given @param {"now" | "random"} name
 * @param {() => number} fallback used where the host has none, or its function throws
 */
function number(given, name, fallback) {
  try {
    return Number(given[name]?.() ?? fallback());
  } catch (error) {
    complain(`turnwheel: host.${name} failed`, error);
    return fallback();
  }
}
