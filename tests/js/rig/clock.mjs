// @ts-check
// Virtual time: it stands still while anybody has anything to do, and nothing here ever sleeps.

/** What the engine is told when the clock shows 0. */
const BEGINNING = 1_700_000_000_000;

/** A clock whose hands are moved by {@link Clock.watch}. */
export class Clock {
  /** Milliseconds since the beginning. */
  elapsed = 0;
  /** Those that are set, by time, and of one time the older first. @type {{ ms: number, ring: () => void }[]} */
  #alarms = [];

  now() {
    return BEGINNING + this.elapsed;
  }

  /** Calls `ring` when the clock shows `ms`; what comes back takes that back. @param {number} ms @param {() => void} ring */
  at(ms, ring) {
    const alarm = { ms, ring };
    const later = this.#alarms.findIndex((other) => other.ms > ms);
    this.#alarms.splice(later < 0 ? this.#alarms.length : later, 0, alarm);
    return () => {
      this.#alarms = this.#alarms.filter((other) => other !== alarm);
    };
  }

  /**
   * Resolves after `ms`. Once the signal is aborted it never does: whoever waits here is not wanted any more.
   * @param {number} ms @param {AbortSignal} [signal] @returns {Promise<void>}
   */
  pause(ms, signal) {
    return new Promise((resolve) => {
      if (signal?.aborted) return;
      const takeBack = this.at(this.elapsed + ms, resolve);
      signal?.addEventListener("abort", takeBack, { once: true });
    });
  }

  /**
   * Takes some work to its end: whenever everybody waits, time goes on to the next alarm.
   * @param {PromiseLike<any>} work @returns {Promise<boolean>} `false` when nobody is left to wait for
   */
  async watch(work) {
    let over = false;
    const ended = () => void (over = true);
    work.then(ended, ended);
    for (;;) {
      await quiet();
      if (over) return true;
      const alarm = this.#alarms.shift();
      if (!alarm) return false;
      this.elapsed = Math.max(this.elapsed, alarm.ms);
      alarm.ring();
    }
  }
}

/** Two rounds of the event loop: every promise that could settle has done so. */
async function quiet() {
  for (let round = 0; round < 2; round++) await new Promise((resolve) => setImmediate(resolve));
}
