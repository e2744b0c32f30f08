// @ts-check
// Stores an agent and its events: one write after the other. What happens while one is on is stored together, by the next.

import { misuse } from "../shared.js";

/** @import { Checkpoint } from "../index.js" */
/** @import { Lease } from "./lease.js" */

export class Keeper {
  #lease;
  #checkpoint;
  #storeEvents;
  /** The write that is on, and the one that begins after it. @type {Promise<void> | undefined} */
  #current;
  /** @type {Promise<void> | undefined} */
  #next;
  /** Whether the agent has changed since the last checkpoint, other than by a piece of an answer. */
  #isChanged = false;

  /** @param {Lease} lease @param {() => Checkpoint} checkpoint of the agent as it is */
  constructor(lease, checkpoint) {
    this.#lease = lease;
    this.#checkpoint = checkpoint;
    this.#storeEvents = lease.events.store;
    lease.events.store = () => this.stored();
  }

  /** The write that is on, or will be. */
  get pending() {
    return this.#next ?? this.#current;
  }

  /** Resolves when what holds now is stored. @returns {Promise<void>} */
  stored() {
    const before = this.#current?.catch(() => {}) ?? Promise.resolve();
    return (this.#next ??= before.then(() => {
      this.#next = undefined;
      return (this.#current = this.#write());
    }));
  }

  /** The agent has changed; resolves when that is stored. */
  change() {
    this.#isChanged = true;
    return this.stored();
  }

  async #write() {
    const lease = this.#lease;
    if (!lease.isHeld) throw lease.signal.reason ?? misuse(`the lease of \`${lease.id}\` was given back`);
    if (!this.#isChanged && !lease.events.needsCheckpoint) return this.#storeEvents();
    this.#isChanged = false;
    try {
      await lease.save(this.#checkpoint());
    } catch (error) {
      this.#isChanged = true;
      throw error;
    }
  }
}
