// @ts-check
// Leases of tabs: a Web Lock says who is alive, the fence in the store keeps out who was asleep while another took over.

import { checkId } from "./by-lease.js";
import { hold } from "./hold.js";
import { attempt, whole } from "./kept.js";
import { Lease } from "./lease.js";
import { CLAIMS, lockOf } from "./locks.js";

/** @import { Claimed, KeptShelf, LeaseShelf } from "./lease.js" */
/** @import { How } from "./hold.js" */
/**
 * Where the agents of tabs are kept. A claim is made by the one that has the lock, and holds as long as that.
 * @typedef {Pick<LeaseShelf, "others" | "save" | "events"> & KeptShelf & { claim(id: string): Promise<Claimed>, fence(id: string): Promise<number> }} TabShelf
 */
/** `at`: when the lock was given. @typedef {{ lease: Lease, at: number }} Claim */
/** What `shared` of turnwheel/tabs needs of a store; `open` gets it ready for a claim, and `fence` is that of the last claim. @typedef {{ scope: string, open(id: string): Promise<unknown>, fence(id: string): Promise<number>, claim(id: string, how: How): Promise<Claim | undefined> }} Claims */

/** @param {TabShelf} shelf @param {string} scope names the store among all of this origin */
export function claimsOf(shelf, scope) {
  /** @param {string} id @param {How} how @returns {Promise<Claim | undefined>} */
  async function claim(id, how) {
    checkId(id);
    const held = await hold(lockOf(scope, id), how);
    if (!held) return;
    const at = performance.now();
    try {
      const claimed = await attempt(shelf, "claimed in", id, () => shelf.claim(id));
      const own = { ...shelf, renew: async () => true, release: async () => held.release() };
      const lease = new Lease({ shelf: own, ttlMs: Infinity }, id, claimed, claimed.commands.flatMap((row) => JSON.parse(row)), whole(claimed), 0);
      lease.signal.addEventListener("abort", () => held.release());
      if (held.lost.aborted) lease.lose();
      else held.lost.addEventListener("abort", () => lease.lose());
      return { lease, at };
    } catch (error) {
      held.release();
      throw error;
    }
  }
  /** @type {Claims} */
  const claims = { scope, claim, fence: shelf.fence, open: (id) => shelf.events(id, 0, Number.MAX_SAFE_INTEGER, 1) };
  return {
    [CLAIMS]: claims,
    /** @param {string} id @param {{ waitMs?: number }} [how] */
    claim: async (id, { waitMs } = {}) => (await claim(id, waitMs === undefined ? {} : { waitMs }))?.lease,
  };
}
