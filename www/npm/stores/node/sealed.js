// @ts-check
// Agents that are sealed, so that nobody else who can write to the database can forge one: their checkpoints, each as a whole,
// and the rows of their events.

import { isSealed, misuse } from "../../shared.js";
import { split, whole } from "../kept.js";
import { seal, unseal } from "../seal.js";

/** @import { Checkpoint } from "../../index.js" */
/** @import { StoreOptions } from "../../stores-node.js" */
/** @import { LeaseShelf } from "../lease.js" */

/** @param {LeaseShelf} shelf @param {StoreOptions["seal"]} sealing */
export function sealed(shelf, sealing) {
  /** Nobody can put one agent's checkpoint in the place of another's. @param {string} id */
  const contextOf = (id) => (sealing?.context === undefined ? id : `${sealing.context}/${id}`);
  /** @param {string} json @param {string} id */
  async function openRow(json, id) {
    const read = JSON.parse(json);
    if (!isSealed(read)) {
      if (sealing) throw misuse(`the events of \`${id}\` are not sealed: anybody may have written them`);
      return json;
    }
    if (!sealing) throw misuse(`the events of \`${id}\` are sealed; give the store the key: { seal: { key } }`);
    const opened = /** @type {any} */ (await unseal(read, sealing.key, { context: `${contextOf(id)}#events` }));
    return /** @type {string} */ (opened.events);
  }
  const openRows = (/** @type {string[]} */ rows, /** @type {string} */ id) => Promise.all(rows.map((row) => openRow(row, id)));
  return {
    openRows,
    /** @param {any} checkpoint @param {string} id @returns {Promise<any>} */
    async open(checkpoint, id) {
      if (!checkpoint || !sealing) return checkpoint;
      // Otherwise whoever can write to the database could put one there that nobody sealed.
      if (!isSealed(checkpoint)) throw misuse(`the checkpoint \`${id}\` is not sealed: anybody may have written it`);
      return unseal(checkpoint, sealing.key, { context: contextOf(id) });
    },
    /** @param {string} id */
    pack: (id) => async (/** @type {Checkpoint} */ checkpoint) => split(sealing && !isSealed(checkpoint) ? await seal(whole(split(checkpoint)), sealing.key, { context: contextOf(id) }) : checkpoint),
    /** What a lease has of it. @type {LeaseShelf} */
    shelf: {
      place: shelf.place,
      renew: (id, fence, ttlMs) => shelf.renew(id, fence, ttlMs),
      release: (id, fence) => shelf.release(id, fence),
      async save(id, fence, ttlMs, change) {
        const { log } = change;
        if (!log || !sealing) return shelf.save(id, fence, ttlMs, change);
        const rows = await Promise.all(log.rows.map(async (row) => ({ ...row, json: JSON.stringify(await seal(/** @type {any} */ ({ messages: [], events: row.json }), sealing.key, { context: `${contextOf(id)}#events` })) })));
        return shelf.save(id, fence, ttlMs, { ...change, log: { ...log, rows } });
      },
      events: async (id, fence, after, limit) => openRows(await shelf.events(id, fence, after, limit), id),
    },
  };
}
