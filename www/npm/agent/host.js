// @ts-check
// Time, randomness, ids and timers of an agent: the host's, or the platform's.

import { sleep, uuid } from "../shared.js";

/** @import { HostFunctions } from "../host/host.js" */

export class Host {
  /** @param {HostFunctions} given */
  constructor(given) {
    this.given = given;
  }

  id() {
    return String(this.given.id?.() ?? uuid());
  }

  now() {
    return this.#number("now", Date.now);
  }

  random() {
    return this.#number("random", Math.random);
  }

  /**
   * A number from the host. The engine calls this, and a call from the engine must neither throw nor return
   * anything but a number: that would end every run.
   * @param {"now" | "random"} name
   * @param {() => number} fallback used where the host has none, or its function throws
   */
  #number(name, fallback) {
    try {
      return Number(this.given[name]?.() ?? fallback());
    } catch (error) {
      console.error(`turnwheel: host.${name} failed`, error);
      return fallback();
    }
  }

  /** @param {number} ms @param {AbortSignal} signal */
  sleep(ms, signal) {
    return sleep(this.given, ms, signal);
  }
}
