// @ts-check
// The runs of an agent: at most one is in progress.

/** @import { Driver } from "../run/driver.js" */
/** @import { RestoredRun } from "../checkpoint/format.js" */

const MAX_IDS = 10_000;

export class Runs {
  constructor() {
    /** The run in progress. @type {Driver | undefined} */
    this.current = undefined;
    /** The run that the engine is currently working on. @type {Driver | undefined} */
    this.active = undefined;
    /** A run that is over, but whose iterator has not reached the end yet. @type {Driver | undefined} */
    this.unread = undefined;
    /** How often the runs so far were given up, by a reset or for good: nobody asks for the state of those. */
    this.epoch = 0;
    /** A run from a checkpoint that has not been resumed yet. @type {RestoredRun | undefined} */
    this.restored = undefined;
    /** The runs by their number in the engine. @type {Map<number, Driver>} */
    this.byHandle = new Map();
    /** @type {(() => void)[]} */
    this.idleWaiters = [];
    /** The ids that the host has given to runs; of very many, the newest. @type {Set<string>} */
    this.ids = new Set();
  }

  /** Notes the id of a new run. Returns whether there was one with this id. @param {string} id */
  isRepeated(id) {
    if (this.ids.has(id)) return true;
    this.ids.add(id);
    if (this.ids.size > MAX_IDS) this.ids.delete(/** @type {string} */ (this.ids.values().next().value));
    return false;
  }

  wakeIdle() {
    for (const wake of this.idleWaiters.splice(0)) wake();
  }

  /** Resolves when no run is in progress. */
  async idle() {
    while (this.current) await new Promise((/** @type {(value?: undefined) => void} */ resolve) => this.idleWaiters.push(resolve));
  }
}
