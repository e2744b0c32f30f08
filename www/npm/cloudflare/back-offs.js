// @ts-check
// Long waits before a model is called again. They are alarms, so that the object need not stay in memory.

import { sleep } from "../shared.js";

/** @import { Alarms } from "./alarms.js" */

/** What a back-off is called: `t3/sleep/1`; limits of time sleep too. */
const BACK_OFF = /(^|\/)sleep\/\d+$/;

export class BackOffs {
  /** @param {Alarms} alarms */
  constructor(alarms) {
    this.alarms = alarms;
    /** Who waits for an alarm, by its row. @type {Map<string, () => void>} */
    this.sleepers = new Map();
    this.count = 0;
  }

  /** Forgets the rows of an earlier life: its run goes on, and asks again. */
  forget() {
    this.alarms.deleteAll("sleep");
  }

  /** @param {number} ms @param {AbortSignal} signal @param {string} name @param {number} alarmAfterMs @returns {Promise<void>} */
  sleep(ms, signal, name, alarmAfterMs) {
    if (ms < alarmAfterMs || !BACK_OFF.test(name) || signal.aborted) return sleep({}, ms, signal);
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
