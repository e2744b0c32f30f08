// @ts-check
// Virtual time and reproducible chance, also in place of the globals: the package reads them where no `host` says otherwise.

/** The time that is shown at the beginning. */
const BEGINNING = 1_700_000_000_000;
/** How many alarms may ring in one go: something that always sets another one is not waited for. */
const RINGS = 400;

/** Goes on when its player says so. */
export class Clock {
  elapsed = 0;
  /** By time; older ones first if it is the same. @type {{ ms: number, ring: () => void }[]} */
  #alarms = [];

  now() {
    return BEGINNING + this.elapsed;
  }

  /** @param {number} ms from now @param {() => void} ring */
  after(ms, ring) {
    const alarm = { ms: this.elapsed + Math.max(0, Number(ms) || 0), ring };
    const later = this.#alarms.findIndex((other) => other.ms > alarm.ms);
    this.#alarms.splice(later < 0 ? this.#alarms.length : later, 0, alarm);
    return alarm;
  }

  /** @param {unknown} alarm */
  forget(alarm) {
    this.#alarms = this.#alarms.filter((other) => other !== alarm);
  }

  /** Resolves after `ms`, or as soon as the signal aborts. @param {number} ms @param {AbortSignal} [signal] @returns {Promise<void>} */
  sleep(ms, signal) {
    return new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const end = () => {
        this.forget(alarm);
        signal?.removeEventListener("abort", end);
        resolve();
      };
      const alarm = this.after(ms, end);
      signal?.addEventListener("abort", end);
    });
  }

  /** Lets `ms` go by. Between two alarms, everything happens that need not wait. @param {number} ms */
  async advance(ms) {
    const until = this.elapsed + ms;
    await quiet();
    for (let rings = 0; rings < RINGS; rings++) {
      const [alarm] = this.#alarms;
      if (!alarm || alarm.ms > until) break;
      this.forget(alarm);
      this.elapsed = Math.max(this.elapsed, alarm.ms);
      alarm.ring();
      await quiet();
    }
    this.elapsed = Math.max(this.elapsed, until);
  }
}

/** Two rounds of the event loop: every promise that could settle has done so. */
export async function quiet() {
  for (let round = 0; round < 2; round++) await new Promise((resolve) => setImmediate(resolve));
}

/**
 * Puts the world of now in place of the host's own time, timers, chance, network and console.
 * @param {() => { clock: Clock, roll: (sides: number) => number, say(label: string, ...values: unknown[]): void, fetchFile(url: unknown): Promise<Response> }} world
 */
export function takeOver(world) {
  const own = /** @type {any} */ (globalThis);
  const alarmOf = (/** @type {any} */ timer) => timer?.alarm;
  own.setTimeout = (/** @type {any} */ work, /** @type {number} */ ms, /** @type {any[]} */ ...rest) => {
    const timer = { alarm: world().clock.after(ms, () => work(...rest)), ref: () => timer, unref: () => timer, hasRef: () => false };
    return timer;
  };
  own.clearTimeout = (/** @type {unknown} */ timer) => world().clock.forget(alarmOf(timer));
  own.fetch = (/** @type {unknown} */ url) => world().fetchFile(url);
  Date.now = () => world().clock.now();
  performance.now = () => world().clock.elapsed + 1;
  Math.random = () => world().roll(1_000_000) / 1_000_000;
  crypto.randomUUID = () => `00000000-0000-4000-8000-${String(world().roll(1_000_000)).padStart(12, "0")}`;
  for (const name of /** @type {const} */ (["error", "warn", "log", "info"])) console[name] = (...words) => world().say(`console.${name}`, ...words);
  process.on("unhandledRejection", (error) => world().say("unhandled rejection", error));
  process.on("uncaughtException", (error) => world().say("uncaught exception", error));
}
