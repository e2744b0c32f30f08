// @ts-check
// What every store does whose agents are claimed: save, load and delete, each under a lease or beside one.

import { kindOf, misuse } from "../shared.js";
import { whole } from "./kept.js";
import { leaseError } from "./lease.js";
import { store, WriteQueue } from "./place.js";

/** @import { Checkpoint } from "../index.js" */
/** @import { KeptShelf, Lease } from "./lease.js" */

/**
 * @param {KeptShelf & { others?: string }} shelf @param {(id: string) => Promise<Lease | undefined>} claim
 * @param {(checkpoint: any, id: string) => any} [open] unseals a checkpoint, if there is one
 */
export function byLease(shelf, claim, open = (checkpoint) => checkpoint) {
  const { place, others = "another process" } = shelf;
  const queue = new WriteQueue(place);
  const methods = store({
    place,
    async write(id, checkpoint) {
      const lease = await claim(id);
      if (!lease) throw leaseError(`\`${id}\` belongs to ${others} at present; save by its lease, or wait: claim(id, { waitMs })`);
      try {
        await lease.save(/** @type {Checkpoint} */ (checkpoint));
      } finally {
        await lease.release();
      }
    },
    read: async (id) => (checkId(id), open(whole(await shelf.read(id)), id)),
    remove: async (id) => (checkId(id), shelf.remove(id)),
  }, queue);
  return { ...methods, ...queue.lister((query) => shelf.list(query)) };
}

/** Of two ids with half a letter in them a store would make one, and some store no zero. */
const UNSTORABLE = /\0|\p{Surrogate}/u;

/** @param {unknown} id */
export function checkId(id) {
  if (typeof id !== "string" || id === "" || id.length > 500) throw misuse(`the id of an agent must be a text of 500 characters at most, got ${typeof id === "string" ? `one of ${id.length}` : kindOf(id)}`);
  if (UNSTORABLE.test(id)) throw misuse("the id of an agent must be a text without zeros (U+0000) and without halves of surrogate pairs");
}
