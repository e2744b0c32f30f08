// Durable engines in memory, one for each way in which real ones find a step again. A life ends where a plan says: what it was
// doing never comes back, and the next life has the records alone.

/** The end of a life. */
export class Killed extends Error {}

/** What outlives a life: records in the order in which they were stored. */
export class Records {
  constructor() {
    /** @type {Map<string, any>} */
    this.byName = new Map();
    /** The names in the order in which steps were called, for engines that count. @type {string[]} */
    this.calls = [];
    this.attempts = new Map();
  }

  store(name, record) {
    if (this.byName.has(name)) throw new Error(`the step ${name} was stored twice`);
    this.byName.set(name, JSON.stringify(record));
  }

  get(name) {
    return JSON.parse(this.byName.get(name));
  }
}

/**
 * A life. `pause(name, where)` waits as long as the schedule says; `kill(name, where)` says whether the life ends there, where
 * `where` is "begin", "end" (of the work, before it is stored), "wait" or "sleep".
 */
export class Life {
  constructor(records, { mode = "name", pause = async () => {}, kill = () => false, waits = false, decide = async () => undefined } = {}) {
    Object.assign(this, { records, mode, pause, kill, waits, decide });
    this.isOver = false;
    this.called = 0;
    /** The works that began in this life. */
    this.began = [];
    this.replayed = [];
    this.over = new Promise((resolve) => (this.end = () => ((this.isOver = true), resolve("killed"))));
    /** For engines that give results back in the order in which they came. */
    this.order = [...records.byName.keys()];
    this.given = 0;
    this.turn = Promise.resolve();
    /** Steps of an engine with one step per call of the body. */
    this.found = [];
    this.target = undefined;
  }

  get host() {
    const isOrdered = this.mode === "single" || this.mode === "per call";
    return {
      step: (name, work, effect) => this.step(name, work, effect),
      ...(this.waits && { wait: (name, request) => this.wait(name, request), sleep: (_ms, _signal, name) => this.sleep(name) }),
      ...(isOrdered && { steps: { ordered: true } }),
    };
  }

  async step(name, work, effect) {
    if (this.isOver) return new Promise(() => {});
    if (new TextEncoder().encode(name).length > 200) throw new Error(`the name ${name} is too long`);
    JSON.stringify(effect);
    this.#called(name);
    if (this.records.byName.has(name)) return this.#again(name);
    if (this.mode === "per call" && this.target !== name) {
      this.found.push(name);
      return new Promise(() => {});
    }
    await this.pause(name, "queue");
    return this.#live(name, work);
  }

  /** An engine that counts finds what is called by its place. */
  #called(name) {
    const at = this.called++;
    if (this.mode !== "order" && this.mode !== "single") return;
    const expected = this.records.calls[at];
    if (expected !== undefined && expected !== name) throw new Error(`the step ${expected} was recorded when ${name} was called`);
    this.records.calls[at] = name;
  }

  async #again(name) {
    this.replayed.push(name);
    if (this.mode === "single" || this.mode === "per call") {
      // In the order of the completions.
      while (this.order[this.given] !== name && !this.isOver) await undefined;
      await undefined;
      this.given++;
    } else await this.pause(name, "replay");
    if (this.isOver) return new Promise(() => {});
    return this.records.get(name);
  }

  async #live(name, work) {
    if (this.isOver || this.kill(name, "begin")) return this.die();
    this.began.push(name);
    const attempt = (this.records.attempts.get(name) ?? 0) + 1;
    this.records.attempts.set(name, attempt);
    const record = await work(this.mode === "per call" ? { attempt } : undefined);
    if (this.isOver || this.kill(name, "end")) return this.die();
    await this.pause(name, "store");
    if (this.isOver) return new Promise(() => {});
    this.records.store(name, record);
    if (this.target === name) return this.die();
    return this.#given(name, record);
  }

  /** Gives back what was stored just now. */
  async #given(name, record) {
    if (this.mode === "single") {
      // What was stored before comes first, and then one result at a time, in the order in which they were stored.
      const before = this.turn;
      let next = () => {};
      this.turn = new Promise((resolve) => (next = resolve));
      await before;
      while (this.given < this.order.length && !this.isOver) await new Promise((go) => setImmediate(go));
      this.pause(name, "give").then(next);
    }
    return JSON.parse(JSON.stringify(record));
  }

  /** Waits for a decision, which the engine keeps. */
  wait(name, request) {
    return this.#outside(name, "wait", () => this.decide(name, request));
  }

  /** Sleeps, which the engine keeps too. */
  sleep(name) {
    return this.#outside(name, "sleep", async () => (await this.pause(name, "sleep"), null));
  }

  /** What is no step and takes as long as others want. */
  async #outside(name, where, come) {
    if (this.isOver) return new Promise(() => {});
    this.#called(name);
    if (this.records.byName.has(name)) return this.#again(name);
    if (this.kill(name, where)) return this.die();
    const value = await come();
    if (this.isOver) return new Promise(() => {});
    this.records.store(name, value);
    return this.#given(name, value);
  }

  /** @returns {Promise<never>} */
  die() {
    this.end();
    return new Promise(() => {});
  }
}
