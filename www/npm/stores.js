// @ts-check
// Stores for checkpoints: adapters with the same three methods. They are not part of the main bundle.

import { AgentError, checkNames, kindOf, misuse, textOf } from "./shared.js";

/** SQLite values there are limited to 2 MB, and a UTF-16 unit takes at most three bytes. */
const PART = 600_000;

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
  let opened;
  const forget = () => (opened = undefined);

  const open = () => {
    if (typeof indexedDB === "undefined") throw misuse("there is no IndexedDB here; it is a browser's");
    const asked = indexedDB.open(name, 1);
    asked.onupgradeneeded = () => asked.result.createObjectStore(TABLE);
    const ready = told(asked).then((database) => {
      // Somebody wants to delete the database, or the browser closed it: the next access opens it again.
      database.onversionchange = () => (database.close(), forget());
      database.onclose = forget;
      return database;
    });
    ready.catch(forget);
    return ready;
  };

  /** @param {IDBTransactionMode} mode @param {(table: IDBObjectStore) => IDBRequest} work */
  const within = async (mode, work) => {
    const connection = (opened ??= open());
    let database = await connection;
    const begin = () => database.transaction(TABLE, mode);
    let transaction;
    try {
      transaction = begin();
    } catch {
      // The connection was lost without notice, as Safari does to pages in the background.
      if (opened === connection) forget();
      database = await (opened ??= open());
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

  const { overtake, ...methods } = store({
    place: `IndexedDB \`${name}\``,
    write: (id, checkpoint) => within("readwrite", (table) => table.put(checkpoint, id)),
    read: (id) => within("readonly", (table) => table.get(id)),
    remove: (id) => within("readwrite", (table) => table.delete(id)),
  });
  return methods;
}

const TABLE = "checkpoints";

/** @template T @param {IDBRequest<T>} request @returns {Promise<T>} */
function told(request) {
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
  const { overtake, ...lanes } = store({
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
    ...lanes,
    /** @param {string} id @param {any} checkpoint */
    saveNow(id, checkpoint) {
      checkSave("saveNow", id, checkpoint);
      write(id, checkpoint);
      overtake(id, () => storage.sync?.());
    },
  };
}

/** No part ends inside a surrogate pair. @param {string} json */
function partsOf(json) {
  const parts = [];
  for (let at = 0; at < json.length; ) {
    let end = at + PART;
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
   * @type {Map<string, { waits?: { work: () => unknown, done: Promise<void> }, done: Promise<void> }>}
   */
  const lanes = new Map();

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
    const doing = async () => void (await attempt(what, id, work));
    const lane = lanes.get(id);
    if (lane?.waits) {
      // The older checkpoint need not be written any more: it counts as stored when this one is.
      lane.waits.work = doing;
      return lane.waits.done;
    }
    if (lane) {
      const waits = { work: doing, done: /** @type {any} */ (undefined) };
      lane.waits = waits;
      waits.done = lane.done.catch(() => {}).then(() => begin(id, waits.work));
      return waits.done;
    }
    return begin(id, doing);
  };

  /** @param {string} id @param {() => any} work @returns {Promise<void>} */
  const begin = (id, work) => {
    const done = work();
    const lane = { done };
    lanes.set(id, lane);
    const leave = () => void (lanes.get(id) === lane && !("waits" in lane) && lanes.delete(id));
    done.then(leave, leave);
    return done;
  };

  return {
    /**
     * Replaces the write that waits for an id: it is older than what was written meanwhile.
     * @param {string} id @param {() => unknown} work what remains to be done
     */
    overtake(id, work) {
      const lane = lanes.get(id);
      if (lane?.waits) lane.waits.work = async () => void (await attempt("saved in", id, work));
    },
    /** @param {string} id @param {any} checkpoint */
    async save(id, checkpoint) {
      checkSave("save", id, checkpoint);
      return put("saved in", id, () => write(id, checkpoint));
    },
    /** @param {string} id */
    async load(id) {
      check(id);
      const lane = lanes.get(id);
      await (lane?.waits ?? lane)?.done.catch(() => {});
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
