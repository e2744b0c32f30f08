// @ts-check
// Leases of tabs: a Web Lock says who is alive, the fence in the store keeps out who was asleep while another took over.

import { checkId } from "./by-lease.js";
import { hold } from "./hold.js";
import { attempt, whole } from "./kept.js";
import { Lease } from "./lease.js";
import { CLAIMS, lockOf } from "./locks.js";

/** @import { EventLogEntry } from "../server.js" */
/** @import { Change, Kept, LogChange, Shelf } from "./lease.js" */
/** @import { How } from "./hold.js" */
/** The log of events that was stored: those above `first`. @typedef {{ first: number, entries: EventLogEntry[] }} KeptLog */
/**
 * Where the agents of tabs are kept. A claim is made by the one that has the lock.
 * @typedef {Pick<Shelf, "place" | "read" | "remove"> & {
 *   claim(id: string, withLog: boolean): Promise<Kept & { fence: number, log: KeptLog }>,
 *   saveLog(id: string, fence: number, change: Change | undefined, log?: LogChange): Promise<boolean>,
 * }} TabShelf
 */
/** `at`: when the lock was given. @typedef {{ lease: Lease, log: KeptLog, at: number }} Claimed */
/** What `shared` of turnwheel/tabs needs of a store. @typedef {{ scope: string, claim(id: string, how: How): Promise<Claimed | undefined> }} Claims */

/** @param {TabShelf} shelf @param {string} scope names the store among all of this origin */
export function claimsOf(shelf, scope) {
  /** @param {string} id @param {How} how @param {boolean} withLog @returns {Promise<Claimed | undefined>} */
  async function claimed(id, how, withLog) {
    checkId(id);
    const held = await hold(lockOf(scope, id), how);
    if (!held) return;
    const at = performance.now();
    try {
      const { fence, messages, log, ...kept } = await attempt(shelf, "claimed in", id, () => shelf.claim(id, withLog));
      const checkpoint = await whole({ ...kept, messages }, id);
      const own = { place: shelf.place, others: "another tab", renew: async () => true, release: async () => held.release(), save: (/** @type {string} */ id, /** @type {number} */ fence, /** @type {number} */ _, /** @type {Change} */ change) => shelf.saveLog(id, fence, change), saveLog: shelf.saveLog };
      const lease = new Lease({ shelf: own, ttlMs: Infinity }, id, fence, messages, checkpoint, 0);
      lease.signal.addEventListener("abort", () => held.release());
      if (held.lost.aborted) lease.lose();
      else held.lost.addEventListener("abort", () => lease.lose());
      return { lease, log, at };
    } catch (error) {
      held.release();
      throw error;
    }
  }
  /** @type {Claims} */
  const claims = { scope, claim: (id, how) => claimed(id, how, true) };
  return {
    [CLAIMS]: claims,
    /** @param {string} id @param {{ waitMs?: number }} [how] */
    claim: async (id, { waitMs } = {}) => (await claimed(id, waitMs === undefined ? {} : { waitMs }, false))?.lease,
  };
}
