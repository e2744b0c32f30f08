// @ts-check
// The bank: another party, which knows nothing of agents. It keeps every request and every payment in a database of its own, adds
// and never changes, and takes a key with each order, as payment services do: a second order with a known key pays nothing.

/** @typedef {import("./invoices.js").Payment} Payment */
/** A request as it came. @typedef {{ key: string, invoice: string, at: number }} Asked */

const NAME = "turnwheel-demo-bank";

/** @template T @param {IDBRequest<T>} request @returns {Promise<T>} */
export const done = (request) => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});

/** Waits until what was written will be there after a crash. @param {IDBTransaction} transaction */
export const committed = (transaction) => new Promise((resolve, reject) => {
  transaction.oncomplete = resolve;
  transaction.onabort = () => reject(transaction.error);
});

/** Opens a database of the page. @param {string} name @param {(database: IDBDatabase) => void} make @returns {Promise<IDBDatabase>} */
export async function openDatabase(name, make) {
  if (!globalThis.indexedDB) throw new Error("this browser gives the page no IndexedDB, and without it nothing outlives a crash");
  const request = indexedDB.open(name, 1);
  request.onupgradeneeded = () => make(request.result);
  return done(request);
}

/** The bank of the page's own run. */
export class Bank {
  /** @param {IDBDatabase} database */
  constructor(database) {
    this.database = database;
  }

  static async open() {
    return new Bank(await openDatabase(NAME, (database) => {
      database.createObjectStore("requests", { autoIncrement: true });
      database.createObjectStore("payments", { autoIncrement: true }).createIndex("key", "key", { unique: true });
    }));
  }

  /** Takes an order, in one transaction. @param {Payment} order @returns {Promise<Payment>} what was paid with its key, now or before */
  async pay(order) {
    const transaction = this.database.transaction(["requests", "payments"], "readwrite", { durability: "strict" });
    const payments = transaction.objectStore("payments");
    const { key, invoice, at } = order;
    transaction.objectStore("requests").add({ key, invoice, at });
    const known = await done(payments.index("key").get(key));
    if (!known) payments.add(order);
    await committed(transaction);
    return known ?? order;
  }

  /** @returns {Promise<Payment[]>} */
  all() {
    return done(this.database.transaction("payments").objectStore("payments").getAll());
  }

  /** @returns {Promise<Asked[]>} */
  requests() {
    return done(this.database.transaction("requests").objectStore("requests").getAll());
  }

  /** Only "Start over" opens new books. */
  async clear() {
    const transaction = this.database.transaction(["requests", "payments"], "readwrite");
    transaction.objectStore("requests").clear();
    await done(transaction.objectStore("payments").clear());
  }
}

/** The bank of a fork: books in memory, which begin with what was paid by then. */
export class PlayBank {
  /** @param {Payment[]} payments */
  constructor(payments) {
    this.payments = [...payments];
    /** @type {Asked[]} */
    this.asked = payments.map(({ key, invoice, at }) => ({ key, invoice, at }));
  }

  /** @param {Payment} order */
  async pay(order) {
    this.asked.push({ key: order.key, invoice: order.invoice, at: order.at });
    const known = this.payments.find(({ key }) => key === order.key);
    if (!known) this.payments.push(order);
    return known ?? order;
  }

  async all() {
    return this.payments;
  }

  async requests() {
    return this.asked;
  }
}
