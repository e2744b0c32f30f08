// @ts-check
// Virtual time: it stands still while anything is left to do, and nothing here ever sleeps.

/** The time that the engine sees when the clock shows 0. */
const BEGINNING = 1_700_000_000_000;

/** A clock that is advanced by {@link Clock.watch}. */
export class Clock {
  /** Milliseconds since the beginning. */
  elapsed = 0;
  /**
   * The alarms by time, older ones first if the time is the same.
   * @type {{ ms: number, ring: () => void }[]}
   */
  #alarms = [];

  now() {
    return BEGINNING + this.elapsed;
  }

  /**
   * Calls `ring` when the clock shows `ms`. Returns a function that removes the alarm.
   * @param {number} ms @param {() => void} ring
   */
  at(ms, ring) {
    const alarm = { ms, ring };
    const later = this.#alarms.findIndex((other) => other.ms > ms);
    this.#alarms.splice(later < 0 ? this.#alarms.length : later, 0, alarm);
    return () => {
      this.#alarms = this.#alarms.filter((other) => other !== alarm);
    };
  }

  /**
   * Resolves after `ms`, but never once the signal is aborted: whoever waits is not needed any more.
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
   * Takes some work to its end: whenever everything waits, time advances to the next alarm.
   * @param {PromiseLike<any>} work @param {() => boolean} [act] what goes before that; returns whether it did something
   * @returns {Promise<boolean>} `false` when nobody is left to wait for
   */
  async watch(work, act) {
    let over = false;
    const ended = () => void (over = true);
    work.then(ended, ended);
    for (;;) {
      await quiet();
      if (over) return true;
      if (act?.()) continue;
      const alarm = this.#alarms.shift();
      if (!alarm) return false;
      this.elapsed = Math.max(this.elapsed, alarm.ms);
      alarm.ring();
    }
  }
}

/** Two rounds of the event loop: every promise that could settle has done so. */
export async function quiet() {
  for (let round = 0; round < 2; round++) await new Promise((resolve) => setImmediate(resolve));
}
