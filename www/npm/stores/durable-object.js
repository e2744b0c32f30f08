// @ts-check
// Checkpoints in the SQLite database of a Durable Object. What lists them is in object-list.js: an object with one agent needs no list.

import { kindOf, misuse } from "../shared.js";
import { checkSave, store, WriteQueue } from "./place.js";
import { partsOf } from "./rows.js";

/** @import { Checkpoint } from "../index.js" */
/** @import { SealedCheckpoint } from "../stores.js" */
/** @typedef {Parameters<typeof import("../stores.js").durableObjectStore>[0]} Storage */

/**
 * What is done beside a write and a removal, in the same transaction.
 * @typedef {{ write(id: string, checkpoint: Checkpoint | SealedCheckpoint): void, remove(id: string): void, lister(queue: WriteQueue): object }} Beside
 */

/** @param {Storage} storage @param {Beside} [beside] */
export function objectStore(storage, beside) {
  if (typeof storage?.transactionSync !== "function") throw misuse(`durableObjectStore takes the storage of a Durable Object, \`ctx.storage\`, got ${kindOf(storage)}`);
  /** @param {string} statement @param {(string | number)[]} values */
  const sql = (statement, ...values) => {
    // Before every statement: deleteAll() removes the table too.
    storage.sql.exec("CREATE TABLE IF NOT EXISTS turnwheel_checkpoints (id TEXT, part INTEGER, json TEXT NOT NULL, PRIMARY KEY (id, part))");
    return storage.sql.exec(statement, ...values).toArray();
  };
  const remove = (/** @type {string} */ id) => sql("DELETE FROM turnwheel_checkpoints WHERE id = ?", id);
  const write = (/** @type {string} */ id, /** @type {Checkpoint | SealedCheckpoint} */ checkpoint) => {
    const json = JSON.stringify(checkpoint);
    storage.transactionSync(() => {
      remove(id);
      beside?.write(id, checkpoint);
      partsOf(json).forEach((part, at) => sql("INSERT INTO turnwheel_checkpoints VALUES (?, ?, ?)", id, at, part));
    });
  };
  const place = "the Durable Object's SQLite";
  const queue = new WriteQueue(place);
  const methods = store({
    place,
    write(id, checkpoint) {
      write(id, checkpoint);
      return storage.sync?.();
    },
    read(id) {
      const parts = sql("SELECT json FROM turnwheel_checkpoints WHERE id = ? ORDER BY part", id);
      return parts.length > 0 ? JSON.parse(parts.map(({ json }) => json).join("")) : undefined;
    },
    remove(id) {
      storage.transactionSync(() => (remove(id), beside?.remove(id)));
      return storage.sync?.();
    },
  }, queue);
  return {
    ...methods,
    ...beside?.lister(queue),
    /** @param {string} id @param {Checkpoint | SealedCheckpoint} checkpoint */
    saveNow(id, checkpoint) {
      checkSave("saveNow", id, checkpoint);
      write(id, checkpoint);
      queue.replaceWaiting(id, () => storage.sync?.());
    },
  };
}
