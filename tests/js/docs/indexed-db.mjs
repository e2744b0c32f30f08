// @ts-check
// As much of IndexedDB as the stores need, for docs and tests in Node: one transaction after the other, each as a whole or not
// at all. The real behaviour is tested in browsers: tests/js/browser/stores.test.mjs, tests/js/browser/shared.test.mjs.

/** @typedef {number | string | (number | string | never[])[]} Key */
/** @typedef {{ result: any, onsuccess?: () => void, onerror?: () => void, work(): any }} Request */

/** The tables of each database, each in the order of its keys. @type {Map<string, Map<string, [Key, any][]>>} */
const databases = new Map();
/** The transaction that is on. */
let current = Promise.resolve();

/** Numbers come before texts, and texts before lists. @param {any} a @param {any} b @returns {number} */
function compare(a, b) {
  const rank = (/** @type {any} */ key) => (Array.isArray(key) ? 2 : typeof key === "string" ? 1 : 0);
  if (rank(a) !== rank(b)) return rank(a) - rank(b);
  if (!Array.isArray(a)) return a < b ? -1 : Number(a > b);
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    const order = compare(a[i], b[i]);
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

/** @param {any} range @param {Key} key */
const isIn = (range, key) => range === undefined || (range.lower === undefined ? compare(range, key) === 0 : compare(range.lower, key) <= 0 && compare(key, range.upper) <= 0);

class Transaction {
  /** @type {(() => void) | undefined} */
  oncomplete;
  /** @type {(() => void) | undefined} */
  onabort;
  error = null;
  /** @type {Request[]} */
  #requests = [];
  #isOver = false;
  #tables;

  /** @param {Map<string, [Key, any][]>} tables */
  constructor(tables) {
    this.#tables = tables;
    current = current.then(() => this.#run());
  }

  async #run() {
    const before = new Map([...this.#tables].map(([name, rows]) => [name, [...rows]]));
    // Who is called back may ask for more.
    for (let idle = 0; idle < 2 && !this.#isOver; idle++) {
      for (let request = this.#requests.shift(); request; request = this.#requests.shift()) {
        idle = 0;
        request.result = request.work();
        request.onsuccess?.();
        await new Promise((resolve) => setTimeout(resolve));
      }
      await new Promise((resolve) => setTimeout(resolve));
    }
    if (this.#isOver) for (const [name, rows] of before) this.#tables.set(name, rows);
    this.#isOver = true;
    this.oncomplete?.();
  }

  abort() {
    if (this.#isOver) throw new Error("the transaction is over");
    this.#isOver = true;
    this.onabort?.();
    this.oncomplete = undefined;
  }

  /** @param {string} name */
  objectStore(name) {
    const rows = () => this.#tables.get(name) ?? [];
    const ask = (/** @type {() => any} */ work) => {
      const request = /** @type {Request} */ ({ result: undefined, work });
      this.#requests.push(request);
      return request;
    };
    const without = (/** @type {any} */ range) => this.#tables.set(name, rows().filter(([key]) => !isIn(range, key)));
    return {
      put: (/** @type {any} */ value, /** @type {Key} */ key) => {
        const copy = structuredClone(value);
        return ask(() => (without(key), rows().push([key, copy]), rows().sort(([a], [b]) => compare(a, b)), key));
      },
      get: (/** @type {Key} */ key) => ask(() => structuredClone(rows().find(([one]) => compare(one, key) === 0)?.[1])),
      getAll: (/** @type {any} */ range) => ask(() => rows().filter(([key]) => isIn(range, key)).map(([, value]) => structuredClone(value))),
      delete: (/** @type {any} */ range) => ask(() => void without(range)),
    };
  }
}

const browser = {
  IDBKeyRange: { bound: (/** @type {Key} */ lower, /** @type {Key} */ upper) => ({ lower, upper }) },
  indexedDB: {
    open(/** @type {string} */ name) {
      const isNew = !databases.has(name);
      const tables = databases.get(name) ?? new Map();
      databases.set(name, tables);
      const database = {
        objectStoreNames: { contains: (/** @type {string} */ table) => tables.has(table) },
        createObjectStore: (/** @type {string} */ table) => tables.set(table, []),
        transaction: () => new Transaction(tables),
        close() {},
      };
      const request = /** @type {any} */ ({ result: database });
      queueMicrotask(() => {
        if (isNew) request.onupgradeneeded?.();
        request.onsuccess?.();
      });
      return request;
    },
  },
};
// Defined, not assigned: in a Worker, where the site runs this, the names are those of getters.
for (const [name, value] of Object.entries(browser)) Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
