// @ts-check
// A store that several processes share, over any shelf.

import { kindOf, misuse, uuid } from "../../shared.js";
import { byLease, checkId } from "../by-lease.js";
import { attempt, whole } from "../kept.js";
import { Lease } from "../lease.js";
import { sealed } from "./sealed.js";

/** @import { StoreOptions } from "../../stores-node.js" */
/** @import { Claimed, KeptShelf, LeaseShelf } from "../lease.js" */
/**
 * Where the agents of several processes are kept.
 * @typedef {LeaseShelf & KeptShelf & {
 *   claim(id: string, owner: string, ttlMs: number): Promise<Claimed | undefined>,
 *   owner(id: string): Promise<string | undefined>,
 *   abandoned(limit: number): Promise<string[]>,
 * }} Shelf
 */

const TTL_MS = 30_000;
/** Nobody notices a shorter one. */
const POLL_MS = 200;
const OPTIONS = ["ttlMs", "owner", "seal"];
/** The address or the name of a process. It is told to clients and routers, in a header, whoever wrote it into the store. */
const isOwner = (/** @type {unknown} */ owner) => typeof owner === "string" && /^[!-~]{1,500}$/.test(owner);

/** @param {Shelf} shelf @param {StoreOptions} [options] @param {string[]} [more] other options that there are */
export function fleetStore(shelf, options = {}, more = []) {
  const known = [...OPTIONS, ...more];
  if (typeof options !== "object" || options === null) throw misuse(`the options of a store must be an object with ${known.join(", ")}, got ${kindOf(options)}`);
  for (const name of Object.keys(options)) if (!known.includes(name)) throw misuse(`unknown option \`${name}\` of a store; there are ${known.join(", ")}`);
  const { ttlMs: usual = TTL_MS, owner = uuid(), seal: sealing } = options;
  if (!isOwner(owner)) throw misuse(`\`owner\` must be the address or the name of this process: 1 to 500 letters of ASCII without blanks, got ${typeof owner === "string" ? JSON.stringify(owner.slice(0, 60)) : kindOf(owner)}`);
  if (sealing !== undefined && (typeof sealing !== "object" || sealing === null || sealing.key === undefined)) throw misuse(`\`seal\` must be { key }, with 32 bytes or a CryptoKey, got ${kindOf(sealing)}`);
  const { shelf: own, open, openRows, pack } = sealed(shelf, sealing);

  /** @param {string} id @param {{ ttlMs?: number, waitMs?: number }} [how] @returns {Promise<Lease | undefined>} */
  async function claim(id, { ttlMs = usual, waitMs = 0 } = {}) {
    checkId(id);
    if (!(ttlMs >= 100 && ttlMs <= 86_400_000)) throw misuse(`\`ttlMs\` must be from 100 to 86,400,000 milliseconds, got ${ttlMs}`);
    const until = performance.now() + waitMs;
    for (;;) {
      const since = performance.now();
      const claimed = await attempt(shelf, "claimed in", id, () => shelf.claim(id, owner, ttlMs));
      if (claimed) {
        try {
          const commands = (await openRows(claimed.commands, id)).flatMap((row) => JSON.parse(row));
          return new Lease({ shelf: own, ttlMs, pack: pack(id) }, id, claimed, commands, await open(whole(claimed), id), since);
        } catch (error) {
          await shelf.release(id, claimed.fence);
          throw error;
        }
      }
      if (performance.now() >= until) return undefined;
      const pause = Math.min(POLL_MS, Math.max(1, until - performance.now()));
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }

  return {
    ...byLease(shelf, claim, open),
    claim,
    /** @param {number} [limit] */
    abandoned: (limit = 100) => attempt(shelf, "looked for in", "*", () => shelf.abandoned(limit)),
    /** @param {string} id */
    async owner(id) {
      checkId(id);
      const found = await attempt(shelf, "looked for in", id, () => shelf.owner(id));
      return isOwner(found) ? found : undefined;
    },
  };
}
