// @ts-check
// Stores for checkpoints: adapters with the same three methods. They are not part of the main bundle.

import { AgentError, checkNames, kindOf, misuse, textOf } from "../shared.js";

/** SQLite values there are limited to 2 MB, and a UTF-16 unit takes at most three bytes. */
const MAX_PART_LENGTH = 600_000;

/**
 * Where one checkpoint is stored: written and removed as a whole.
 * @typedef {{ place: string, write(id: string, checkpoint: any): unknown, read(id: string): any, remove(id: string): unknown }} Place
 */

/** Stores checkpoints in the browser's IndexedDB. @param {{ name?: string }} [options] */
export function indexedDBStore(options = {}) {
  if (typeof options !== "object" || options === null) throw misuse(`indexedDBStore takes { name }, got ${kindOf(options)}`);
  checkNames("unknown option", options, ["name"]);
  const { name = "turnwheel" } = options;
  if (typeof name !== "string" || name === "") throw misuse(`\`name\` must be the name of a database, got ${kindOf(name)}`);
  /** @type {Promise<IDBDatabase> | undefined} */
  let connecting;
  const forget = () => (connecting = undefined);

  const open = () => {
    if (typeof indexedDB === "undefined") throw misuse("there is no IndexedDB here; it is a browser's");
    const request = indexedDB.open(name, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(TABLE);
    const ready = promisify(request).then((database) => {
      // Somebody wants to delete the database, or the browser closed it: the next access opens it again.
      database.onversionchange = () => (database.close(), forget());
      database.onclose = forget;
      return database;
    });
    ready.catch(forget);
    return ready;
  };

  /** @param {IDBTransactionMode} mode @param {(table: IDBObjectStore) => IDBRequest} work */
  const transact = async (mode, work) => {
    const connection = (connecting ??= open());
    let database = await connection;
    const begin = () => database.transaction(TABLE, mode);
    let transaction;
    try {
      transaction = begin();
    } catch {
      // The connection was lost without notice, as Safari does to pages in the background.
      if (connecting === connection) forget();
      database = await (connecting ??= open());
      transaction = begin();
    }
    const done = new Promise((resolve, reject) => {
      transaction.oncomplete = resolve;
      transaction.onabort = () => reject(transaction.error ?? new Error("the transaction was aborted"));
    });
    const request = work(transaction.objectStore(TABLE));
    await done;
    return request.result;
  };

  const { replaceWaiting: overtake, ...methods } = store({
    place: `IndexedDB \`${name}\``,
    write: (id, checkpoint) => transact("readwrite", (table) => table.put(checkpoint, id)),
    read: (id) => transact("readonly", (table) => table.get(id)),
    remove: (id) => transact("readwrite", (table) => table.delete(id)),
  });
  return methods;
}

const TABLE = "checkpoints";

/** @template T @param {IDBRequest<T>} request @returns {Promise<T>} */
function promisify(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

/** Stores checkpoints in the SQLite database of a Durable Object; pass `ctx.storage`. @param {any} storage */
export function durableObjectStore(storage) {
  if (typeof storage?.transactionSync !== "function") throw misuse(`durableObjectStore takes the storage of a Durable Object, \`ctx.storage\`, got ${kindOf(storage)}`);
  /** @param {string} statement @param {any[]} values @returns {any[]} */
  const sql = (statement, ...values) => {
    // Before every statement: deleteAll() removes the table too.
    storage.sql.exec("CREATE TABLE IF NOT EXISTS turnwheel_checkpoints (id TEXT, part INTEGER, json TEXT NOT NULL, PRIMARY KEY (id, part))");
    return storage.sql.exec(statement, ...values).toArray();
  };
  const remove = (/** @type {string} */ id) => sql("DELETE FROM turnwheel_checkpoints WHERE id = ?", id);

  /** @param {string} id @param {any} checkpoint */
  const write = (id, checkpoint) => {
    const json = JSON.stringify(checkpoint);
    storage.transactionSync(() => {
      remove(id);
      partsOf(json).forEach((part, at) => sql("INSERT INTO turnwheel_checkpoints VALUES (?, ?, ?)", id, at, part));
    });
  };
  const { replaceWaiting, ...methods } = store({
    place: "the Durable Object's SQLite",
    write(id, checkpoint) {
      write(id, checkpoint);
      return storage.sync?.();
    },
    read(id) {
      const parts = sql("SELECT json FROM turnwheel_checkpoints WHERE id = ? ORDER BY part", id);
      return parts.length > 0 ? JSON.parse(parts.map(({ json }) => json).join("")) : undefined;
    },
    remove(id) {
      remove(id);
      return storage.sync?.();
    },
  });
  return {
    ...methods,
    /** @param {string} id @param {any} checkpoint */
    saveNow(id, checkpoint) {
      checkSave("saveNow", id, checkpoint);
      write(id, checkpoint);
      replaceWaiting(id, () => storage.sync?.());
    },
  };
}

/** No part ends inside a surrogate pair. @param {string} json */
function partsOf(json) {
  const parts = [];
  for (let at = 0; at < json.length; ) {
    let end = at + MAX_PART_LENGTH;
    if (/[\ud800-\udbff]/.test(json.charAt(end - 1))) end -= 1;
    parts.push(json.slice(at, end));
    at = end;
  }
  return parts;
}

/**
 * The three methods. Writes for one id happen one after the other; of those that queue up meanwhile
 * only the newest is executed.
 * @param {Place} place
 */
function store({ place, write, read, remove }) {
  /**
   * For each id, what is being written and what waits.
   * @type {Map<string, { waiting?: { work: () => unknown, done: Promise<void> }, done: Promise<void> }>}
   */
  const queues = new Map();

  /** @param {string} what @param {string} id @param {() => unknown} work */
  const attempt = async (what, id, work) => {
    try {
      return await work();
    } catch (error) {
      if (AgentError.isInstance(error)) throw error;
      const { name } = /** @type {any} */ (error) ?? {};
      throw new AgentError({ code: "unknown", message: `the checkpoint \`${id}\` could not be ${what} ${place}: ${name ? `${name}: ` : ""}${textOf(error)}`, retryable: false }, error);
    }
  };

  /** @param {string} what @param {string} id @param {() => unknown} work @returns {Promise<void>} */
  const put = (what, id, work) => {
    const run = async () => void (await attempt(what, id, work));
    const queue = queues.get(id);
    if (queue?.waiting) {
      // The older checkpoint need not be written any more: it counts as stored when this one is.
      queue.waiting.work = run;
      return queue.waiting.done;
    }
    if (queue) {
      const waiting = { work: run, done: /** @type {any} */ (undefined) };
      queue.waiting = waiting;
      waiting.done = queue.done.catch(() => {}).then(() => begin(id, waiting.work));
      return waiting.done;
    }
    return begin(id, run);
  };

  /** @param {string} id @param {() => any} work @returns {Promise<void>} */
  const begin = (id, work) => {
    const done = work();
    const queue = { done };
    queues.set(id, queue);
    const removeQueue = () => void (queues.get(id) === queue && !("waiting" in queue) && queues.delete(id));
    done.then(removeQueue, removeQueue);
    return done;
  };

  return {
    /**
     * Replaces the write that waits for an id: it is older than what was written meanwhile.
     * @param {string} id @param {() => unknown} work what remains to be done
     */
    replaceWaiting(id, work) {
      const queue = queues.get(id);
      if (queue?.waiting) queue.waiting.work = async () => void (await attempt("saved in", id, work));
    },
    /** @param {string} id @param {any} checkpoint */
    async save(id, checkpoint) {
      checkSave("save", id, checkpoint);
      return put("saved in", id, () => write(id, checkpoint));
    },
    /** @param {string} id */
    async load(id) {
      check(id);
      const queue = queues.get(id);
      await (queue?.waiting ?? queue)?.done.catch(() => {});
      return attempt("loaded from", id, () => read(id));
    },
    /** @param {string} id */
    async delete(id) {
      check(id);
      return put("deleted from", id, () => remove(id));
    },
  };
}

/** @param {string} id */
function check(id) {
  if (typeof id !== "string" || id === "") throw misuse(`the id of a checkpoint must be a text, got ${id === "" ? "an empty one" : kindOf(id)}`);
}

/** @param {string} how @param {string} id @param {any} checkpoint */
function checkSave(how, id, checkpoint) {
  check(id);
  if (!Array.isArray(checkpoint?.messages)) throw misuse(`${how}(\`${id}\`, …) takes what checkpoint() gives, got ${kindOf(checkpoint)}`);
}
