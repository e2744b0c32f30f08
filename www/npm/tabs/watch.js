// @ts-check
// Watches whether the owner is alive. One that is stopped, or busy for ever, keeps its lock, so it is asked, and whoever gets
// no answer takes the lock.

/** @import { Asks } from "./asks.js" */

export class Watch {
  /** @param {Asks} asks @param {number} stealMs @param {() => void} ping @param {() => void} steal */
  constructor(asks, stealMs, ping, steal) {
    this.asks = asks;
    this.stealMs = stealMs;
    this.ping = ping;
    this.steal = steal;
    this.pingedAt = 0;
    this.seenAt = 0;
    /** Nothing was expected of the owner before. */
    this.from = 0;
    /** @type {ReturnType<typeof setInterval> | undefined} */
    this.timer = undefined;
  }

  start() {
    if (this.stealMs === Infinity) return;
    this.seenAt = this.from = this.pingedAt = performance.now();
    this.timer ??= setInterval(() => this.#look(), this.stealMs / 5);
    /** @type {any} */ (this.timer).unref?.();
  }

  stop() {
    clearInterval(this.timer);
    this.timer = undefined;
  }

  /** Whether a question has had no answer for as long as an owner may take. */
  get isSilent() {
    return this.pingedAt >= this.#since && performance.now() - this.#since >= this.stealMs;
  }

  get #since() {
    return Math.max(this.from, this.asks.heardAt);
  }

  #look() {
    const { asks, stealMs } = this;
    const now = performance.now();
    // A tab that slept itself has missed what was said.
    const hasSlept = now - this.seenAt > stealMs / 2;
    this.seenAt = now;
    const isNeeded = asks.calls.size > 0 || asks.epoch === 0;
    if (hasSlept || !isNeeded) this.from = now;
    if (this.isSilent) return this.steal();
    if (isNeeded && now - this.#since >= stealMs / 2) {
      this.pingedAt = now;
      this.ping();
    }
  }
}
