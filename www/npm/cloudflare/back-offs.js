// @ts-check
// Long waits before a model is called again. They are alarms, so that the object need not stay in memory.

import { sleep } from "../shared.js";

/** @import { AgentEvent } from "../index.js" */
/** @import { Alarms } from "./alarms.js" */

export class BackOffs {
  /** @param {Alarms} alarms */
  constructor(alarms) {
    this.alarms = alarms;
    /** Whether the run waits before it calls the model again. */
    this.isBackingOff = false;
    /** Who waits for an alarm, by its row. @type {Map<string, () => void>} */
    this.sleepers = new Map();
    this.count = 0;
  }

  /** @param {AgentEvent["type"]} type */
  take(type) {
    if (type === "retry_attempt") this.isBackingOff = true;
    else if (type === "message_update" || type === "message_end") this.isBackingOff = false;
  }

  /** Forgets the rows of an earlier life: its run goes on, and asks again. @param {boolean} isBackingOff */
  restore(isBackingOff) {
    this.isBackingOff = isBackingOff;
    this.alarms.deleteAll("sleep");
  }

  /** Whether a sleep is a back-off; limits of time sleep too. The host is not told which, so the events have to tell. */
  #isBackOff() {
    return this.isBackingOff;
  }

  /** @param {number} ms @param {AbortSignal} signal @param {number} alarmAfterMs @returns {Promise<void>} */
  sleep(ms, signal, alarmAfterMs) {
    if (ms < alarmAfterMs || !this.#isBackOff() || signal.aborted) return sleep({}, ms, signal);
    return new Promise((resolve) => {
      const id = `sleep-${(this.count += 1)}`;
      const end = () => {
        signal.removeEventListener("abort", end);
        this.sleepers.delete(id);
        this.alarms.delete(id);
        resolve();
      };
      this.sleepers.set(id, end);
      this.alarms.set(id, "sleep", Date.now() + ms);
      signal.addEventListener("abort", end);
    });
  }

  /** @param {string} id of a row whose time has come */
  wake(id) {
    const end = this.sleepers.get(id);
    if (end) end();
    else this.alarms.delete(id);
  }
}
