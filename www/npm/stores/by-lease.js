// @ts-check
// What every store does whose agents are claimed: save, load and delete, each under a lease or beside one.

import { kindOf, misuse } from "../shared.js";
import { attempt, whole } from "./kept.js";
import { leaseError } from "./lease.js";
import { checkSave } from "./place.js";

/** @import { Checkpoint } from "../index.js" */
/** @import { Lease, Shelf } from "./lease.js" */
/** @import { StoreOptions } from "../stores-node.js" */

/**
 * @param {Pick<Shelf, "place" | "others" | "read" | "remove">} shelf
 * @param {(id: string) => Promise<Lease | undefined>} claim @param {StoreOptions["seal"]} [sealing]
 */
export function byLease(shelf, claim, sealing) {
  return {
    /** @param {string} id @param {Checkpoint} checkpoint */
    async save(id, checkpoint) {
      checkSave("save", id, checkpoint);
      const lease = await claim(id);
      if (!lease) throw leaseError(`\`${id}\` belongs to ${shelf.others ?? "another process"} at present; save by its lease, or wait: claim(id, { waitMs })`);
      await lease.save(checkpoint);
      await lease.release();
    },
    /** @param {string} id */
    load: async (id) => (checkId(id), whole(await attempt(shelf, "loaded from", id, () => shelf.read(id)), id, sealing)),
    /** @param {string} id */
    delete: async (id) => (checkId(id), void (await attempt(shelf, "deleted from", id, () => shelf.remove(id)))),
  };
}

/** @param {unknown} id */
export function checkId(id) {
  if (typeof id !== "string" || id === "" || id.length > 500) throw misuse(`the id of an agent must be a text of 500 characters at most, got ${typeof id === "string" ? `one of ${id.length}` : kindOf(id)}`);
}
