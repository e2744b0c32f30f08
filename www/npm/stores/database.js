// @ts-check
// A database of IndexedDB: checkpoints that were saved as a whole, and agents that are claimed, with their messages and events, and what a
// list shows of both.

import { misuse } from "../shared.js";

const VERSION = 4;
const TABLES = /** @type {const} */ (["checkpoints", "agents", "messages", "rows", "list"]);

/** How long another tab may keep the database of an earlier version open: until then it may only be slow. */
const BLOCKED_MS = 5000;

/** The tables of a transaction. @typedef {Record<typeof TABLES[number], IDBObjectStore>} Tables */

/** A database that is opened when it is needed, and again when the connection to it was lost. */
export class Database {
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
    const request = indexedDB.open(this.name, VERSION);
    request.onupgradeneeded = () => {
      for (const table of TABLES) if (!request.result.objectStoreNames.contains(table)) request.result.createObjectStore(table);
    };
    const ready = this.#within(request).then((database) => {
      // Somebody wants to delete the database, or the browser closed it: the next access opens it again.
      database.onversionchange = () => (database.close(), this.#forget());
      database.onclose = () => this.#forget();
      return database;
    });
    ready.catch(() => this.#forget());
    return ready;
  }

  /** What is opened; it says why if that cannot be. @param {IDBOpenDBRequest} request @returns {Promise<IDBDatabase>} */
  #within(request) {
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    const blocked = new Promise((/** @type {(opened: never) => void} */ _, reject) => {
      request.onblocked = () => (timer = setTimeout(() => reject(misuse(`another tab keeps an earlier version of the database \`${this.name}\` open: close or reload it`)), BLOCKED_MS));
    });
    const opened = resultOf(request).catch((error) => {
      throw error?.name === "VersionError" ? misuse(`the database \`${this.name}\` is of a later version than this page: reload it, or give \`indexedDBStore\` another \`name\``, error) : error;
    }).finally(() => clearTimeout(timer));
    // One that is given up, and opens after all, must not be in the way of others.
    blocked.catch(() => opened.then((database) => database.close(), () => {}));
    return Promise.race([opened, blocked]);
  }

  /**
   * Does something as a whole or not at all. Nothing may be awaited in it but requests.
   * @template T @param {IDBTransactionMode} mode @param {(tables: Tables) => T | Promise<T>} work @returns {Promise<T>}
   */
  async transact(mode, work) {
    try {
      return await this.#attempt(mode, work);
    } catch (error) {
      // A dialog, or a request that blocks the page, ends a transaction that waits. Nothing of it was done.
      if (/** @type {any} */ (error)?.name !== "TransactionInactiveError") throw error;
      return this.#attempt(mode, work);
    }
  }

  /** @template T @param {IDBTransactionMode} mode @param {(tables: Tables) => T | Promise<T>} work @returns {Promise<T>} */
  async #attempt(mode, work) {
    const transaction = await this.#begin(mode);
    const done = new Promise((resolve, reject) => {
      transaction.oncomplete = resolve;
      transaction.onabort = () => reject(transaction.error ?? new Error("the transaction was aborted"));
    });
    done.catch(() => {});
    try {
      const result = await work(/** @type {Tables} */ (Object.fromEntries(TABLES.map((table) => [table, transaction.objectStore(table)]))));
      await done;
      return result;
    } catch (error) {
      try {
        transaction.abort();
      } catch {
        // It failed by itself.
      }
      throw error;
    }
  }

  /** @param {IDBTransactionMode} mode */
  async #begin(mode) {
    const connection = (this.connecting ??= this.#open());
    const database = await connection;
    try {
      return database.transaction(TABLES, mode);
    } catch {
      // The connection was lost without notice, as Safari does to pages in the background.
      if (this.connecting === connection) this.#forget();
      return (await (this.connecting ??= this.#open())).transaction(TABLES, mode);
    }
  }
}

/** @template T @param {IDBRequest<T>} request @returns {Promise<T>} */
export function resultOf(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}
