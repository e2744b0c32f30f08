// @ts-check
// The one alarm of a Durable Object, shared: whatever is to happen at some time is a row of a table, and the alarm is set to
// the earliest of them.

/**
 * `watch`: a run is in progress, and the object must wake if it is thrown out. `sleep`: a back-off ends. `prompt`: an input is
 * due. `retry`: the agent could not be made.
 * @typedef {"watch" | "sleep" | "prompt" | "retry"} Kind
 * @typedef {{ id: string, kind: Kind, at: number, data: string }} Row
 * @typedef {{ sql: { exec(statement: string, ...values: any[]): { toArray(): any[] } }, getAlarm(): Promise<number | null>, setAlarm(at: number): Promise<void>, deleteAlarm(): Promise<void> }} Storage
 */

/** An alarm may ring so many milliseconds too early. */
const EARLY_MS = 50;

export class Alarms {
  /** @param {Storage} storage */
  constructor(storage) {
    this.storage = storage;
    /** What the alarm is set to; 0 if it is not. */
    this.at = 0;
  }

  async open() {
    this.at = (await this.storage.getAlarm()) ?? 0;
  }

  /** @param {string} statement @param {(string | number)[]} values @returns {any[]} */
  #sql(statement, ...values) {
    // Before every statement: deleteAll() removes the table too.
    this.storage.sql.exec("CREATE TABLE IF NOT EXISTS turnwheel_alarms (id TEXT PRIMARY KEY, kind TEXT NOT NULL, at INTEGER NOT NULL, data TEXT NOT NULL)");
    return this.storage.sql.exec(statement, ...values).toArray();
  }

  /** @param {string} id @param {Kind} kind @param {number} at @param {string} [data] */
  set(id, kind, at, data = "") {
    this.#sql("INSERT OR REPLACE INTO turnwheel_alarms VALUES (?, ?, ?, ?)", id, kind, Math.round(at), data);
    this.arm();
  }

  /** Returns whether it was there. @param {string} id @returns {boolean} */
  delete(id) {
    const isThere = this.#sql("DELETE FROM turnwheel_alarms WHERE id = ? RETURNING id", id).length > 0;
    if (isThere) this.arm();
    return isThere;
  }

  /** @param {Kind} kind */
  deleteAll(kind) {
    this.#sql("DELETE FROM turnwheel_alarms WHERE kind = ?", kind);
    this.arm();
  }

  /** @param {string} id @returns {Row | undefined} */
  find(id) {
    return this.#sql("SELECT * FROM turnwheel_alarms WHERE id = ?", id)[0];
  }

  /** @param {Kind} kind @returns {number} */
  count(kind) {
    return this.#sql("SELECT count(*) AS n FROM turnwheel_alarms WHERE kind = ?", kind)[0].n;
  }

  /** The rows whose time has come, the earliest first. @param {number} now @returns {Row[]} */
  due(now) {
    return this.#sql("SELECT * FROM turnwheel_alarms WHERE at <= ? ORDER BY at, id", now + EARLY_MS);
  }

  /** The alarm rang: it is not set any more. */
  rang() {
    this.at = 0;
  }

  /** Sets the alarm to the earliest row, or to none. */
  arm() {
    // As long as the agent cannot be made, nothing that is due can happen.
    const [first] = this.#sql("SELECT at FROM turnwheel_alarms ORDER BY kind = 'retry' DESC, at LIMIT 1");
    const at = first?.at ?? 0;
    if (at === this.at) return;
    this.at = at;
    // It is stored together with all writes of the same task.
    const done = at === 0 ? this.storage.deleteAlarm() : this.storage.setAlarm(at);
    done.catch(() => {});
  }
}
