// @ts-check
// The journal of the run: each thing that the agent's steps have answered, under the step's name, in a database of the page. A new
// process replays the run from it, and nothing that is written there is done again.

import { committed, done, openDatabase } from "./bank.js";

const NAME = "turnwheel-demo-journal";

export class Journal {
  /** @param {IDBDatabase} database @param {string} run whose records these are */
  constructor(database, run) {
    this.database = database;
    this.run = run;
  }

  /** @param {string} run */
  static async open(run) {
    return new Journal(await openDatabase(NAME, (database) => void database.createObjectStore("records")), run);
  }

  /**
   * This is all that makes the agent durable: `host.step` of turnwheel.
   * @template T @param {string} name @param {() => Promise<T>} work @returns {Promise<T>}
   */
  async step(name, work) {
    const key = `${this.run}/${name}`;
    const stored = await done(this.database.transaction("records").objectStore("records").get(key));
    if (stored !== undefined) return stored;
    const record = await work();
    const transaction = this.database.transaction("records", "readwrite", { durability: "strict" });
    // `add`, not `put`: a record that is there already is not written over.
    transaction.objectStore("records").add(record, key);
    await committed(transaction);
    return record;
  }

  /** Forgets every run. */
  static async clear() {
    const { database } = await Journal.open("");
    await done(database.transaction("records", "readwrite").objectStore("records").clear());
    database.close();
  }
}
