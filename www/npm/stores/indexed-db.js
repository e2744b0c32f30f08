// @ts-check
// Checkpoints in the browser's IndexedDB.

import { checkNames, kindOf, misuse } from "../shared.js";
import { store, WriteQueue } from "./place.js";

const TABLE = "checkpoints";

/** Stores checkpoints in the browser's IndexedDB. @param {{ name?: string }} [options] */
export function indexedDBStore(options = {}) {
  if (typeof options !== "object" || options === null) throw misuse(`indexedDBStore takes { name }, got ${kindOf(options)}`);
  checkNames("unknown option", options, ["name"]);
  const { name = "turnwheel" } = options;
  if (typeof name !== "string" || name === "") throw misuse(`\`name\` must be the name of a database, got ${kindOf(name)}`);
  const database = new Database(name);
  const place = `IndexedDB \`${name}\``;
  return store({
    place,
    write: (id, checkpoint) => database.transact("readwrite", (table) => table.put(checkpoint, id)),
    read: (id) => database.transact("readonly", (table) => table.get(id)),
    remove: (id) => database.transact("readwrite", (table) => table.delete(id)),
  }, new WriteQueue(place));
}

/** A database that is opened when it is needed, and again when the connection to it was lost. */
class Database {
  /** @param {string} name */
  constructor(name) {
    this.name = name;
    /** @type {Promise<IDBDatabase> | undefined} */
    this.connecting = undefined;
  }

  #forget() {
    this.connecting = undefined;
  }

  #open() {
    if (typeof indexedDB === "undefined") throw misuse("there is no IndexedDB here; it is a browser's");
    const request = indexedDB.open(this.name, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(TABLE);
    const ready = promisify(request).then((database) => {
      // Somebody wants to delete the database, or the browser closed it: the next access opens it again.
      database.onversionchange = () => (database.close(), this.#forget());
      database.onclose = () => this.#forget();
      return database;
    });
    ready.catch(() => this.#forget());
    return ready;
  }

  /** @template T @param {IDBTransactionMode} mode @param {(table: IDBObjectStore) => IDBRequest<T>} work */
  async transact(mode, work) {
    const connection = (this.connecting ??= this.#open());
    let database = await connection;
    const begin = () => database.transaction(TABLE, mode);
    /** @type {IDBTransaction} */
    let transaction;
    try {
      transaction = begin();
    } catch {
      // The connection was lost without notice, as Safari does to pages in the background.
      if (this.connecting === connection) this.#forget();
      database = await (this.connecting ??= this.#open());
      transaction = begin();
    }
    const done = new Promise((resolve, reject) => {
      transaction.oncomplete = resolve;
      transaction.onabort = () => reject(transaction.error ?? new Error("the transaction was aborted"));
    });
    const request = work(transaction.objectStore(TABLE));
    await done;
    return request.result;
  }
}

/** @template T @param {IDBRequest<T>} request @returns {Promise<T>} */
function promisify(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}
