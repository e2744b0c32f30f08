// @ts-check
// A store that several processes share, over any shelf.

import { kindOf, misuse, uuid } from "../../shared.js";
import { checkSave } from "../place.js";
import { attempt, whole } from "../kept.js";
import { entriesOf, Lease } from "./lease.js";

/** @import { Checkpoint } from "../../index.js" */
/** @import { StoreOptions } from "../../stores-node.js" */
/** @import { Shelf } from "./lease.js" */

const TTL_MS = 30_000;
/** Nobody notices a shorter one. */
const POLL_MS = 200;
const OPTIONS = ["ttlMs", "owner", "seal"];

/** @param {Shelf} shelf @param {StoreOptions} [options] @param {string[]} [more] other options that there are */
export function fleetStore(shelf, options = {}, more = []) {
  const known = [...OPTIONS, ...more];
  if (typeof options !== "object" || options === null) throw misuse(`the options of a store must be an object with ${known.join(", ")}, got ${kindOf(options)}`);
  for (const name of Object.keys(options)) if (!known.includes(name)) throw misuse(`unknown option \`${name}\` of a store; there are ${known.join(", ")}`);
  const { ttlMs: usual = TTL_MS, owner = uuid(), seal: sealing } = options;
  // It is told to clients and routers, in a header.
  if (typeof owner !== "string" || !/^[!-~]{1,500}$/.test(owner)) throw misuse(`\`owner\` must be the address or the name of this process: 1 to 500 letters of ASCII without blanks, got ${typeof owner === "string" ? JSON.stringify(owner.slice(0, 60)) : kindOf(owner)}`);

  if (sealing !== undefined && (typeof sealing !== "object" || sealing === null || sealing.key === undefined)) throw misuse(`\`seal\` must be { key }, with 32 bytes or a CryptoKey, got ${kindOf(sealing)}`);

  /** @param {string} id @param {{ ttlMs?: number, waitMs?: number }} [how] @returns {Promise<Lease | undefined>} */
  async function claim(id, { ttlMs = usual, waitMs = 0 } = {}) {
    checkId(id);
    if (!(ttlMs >= 100 && ttlMs <= 86_400_000)) throw misuse(`\`ttlMs\` must be from 100 to 86,400,000 milliseconds, got ${ttlMs}`);
    const until = performance.now() + waitMs;
    for (;;) {
      const since = performance.now();
      const claimed = await attempt(shelf, "claimed in", id, () => shelf.claim(id, owner, ttlMs));
      if (claimed) {
        const open = async () => ({ checkpoint: await whole(claimed, id, sealing), commands: (await Promise.all(claimed.commands.map((row) => entriesOf(row, id, sealing)))).flat() });
        const opened = await open().catch(async (error) => {
          await shelf.release(id, claimed.fence);
          throw error;
        });
        return new Lease({ shelf, ttlMs, sealing }, id, claimed, opened, since);
      }
      if (performance.now() >= until) return undefined;
      const pause = Math.min(POLL_MS, Math.max(1, until - performance.now()));
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }

  return {
    claim,
    /** @param {number} [limit] */
    abandoned: (limit = 100) => attempt(shelf, "looked for in", "*", () => shelf.abandoned(limit)),
    /** @param {string} id */
    owner: (id) => (checkId(id), attempt(shelf, "looked for in", id, () => shelf.owner(id))),
    /** @param {string} id @param {Checkpoint} checkpoint */
    async save(id, checkpoint) {
      checkSave("save", id, checkpoint);
      const lease = await claim(id);
      if (!lease) throw Object.assign(new Error(`\`${id}\` belongs to another process at present; save by its lease, or wait: claim(id, { waitMs })`), { name: "LeaseError", code: "lost_lease" });
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
function checkId(id) {
  if (typeof id !== "string" || id === "" || id.length > 500) throw misuse(`the id of an agent must be a text of 500 characters at most, got ${typeof id === "string" ? `one of ${id.length}` : kindOf(id)}`);
}
