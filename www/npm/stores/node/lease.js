// @ts-check
// A lease: for a while an agent belongs to one process. Every claim gets a higher number, its fence, and every write names
// it: what a process writes that lost the lease changes nothing. Where it is kept is a shelf's business.

import { complain, isSealed, misuse, textOf } from "../../shared.js";
import { attempt, contextOf, isInProgress, split } from "../kept.js";
import { checkSave } from "../place.js";
import { seal, unseal } from "../seal.js";
import { LeaseLog } from "../log.js";

/** @import { Checkpoint } from "../../index.js" */
/** @import { EventLogEntry } from "../../server.js" */
/** @import { StoreOptions } from "../../stores-node.js" */
/** @import { LogChange } from "../log.js" */

/** @typedef {import("../kept.js").Kept} Kept */
/**
 * What a claim finds: also where its log is, and the rows of the log that have commands.
 * @typedef {Kept & { fence: number, first: number, last: number, bytes: number, commands: string[] }} Claimed
 */
/**
 * A change of it: `messages` are those from the place `from` on, and the last ones. Without a `state` only events are new.
 * @typedef {{ state?: string | undefined, isRunning: boolean, from: number, messages: string[], log?: LogChange | undefined }} Change
 */
/**
 * Where agents are kept. Times are those of the shelf's own clock, and each method is done as a whole or not at all. `save`
 * and `renew` give false if the fence is not the newest. `events` gives the rows of the log with entries above `after`, so
 * many at most.
 * @typedef {object} Shelf
 * @property {string} place its name in errors
 * @property {(id: string, owner: string, ttlMs: number) => Promise<Claimed | undefined>} claim
 * @property {(id: string, fence: number, ttlMs: number, change: Change) => Promise<boolean>} save
 * @property {(id: string, fence: number, ttlMs: number) => Promise<boolean>} renew
 * @property {(id: string, fence: number) => Promise<unknown>} release
 * @property {(id: string) => Promise<Kept | undefined>} read
 * @property {(id: string, fence: number, after: number, limit: number) => Promise<string[]>} events
 * @property {(id: string) => Promise<unknown>} remove
 * @property {(id: string) => Promise<string | undefined>} owner
 * @property {(limit: number) => Promise<string[]>} abandoned
 */
/** @typedef {{ shelf: Shelf, ttlMs: number, sealing: StoreOptions["seal"] }} Terms */
/**
 * What the agent of a lease does when it is given back: begin nothing more and end what has begun, store what is not stored
 * yet, and stop.
 * @typedef {{ pause(): Promise<void>, stored(): Promise<unknown> | undefined, stop(): void }} Holder
 */

/** What a claim found, opened if it was sealed. @typedef {{ checkpoint: Checkpoint | undefined, commands: EventLogEntry[] }} Opened */

/** A lease counts as lost here this much of its time before it is over there: what was begun must have an end. */
const SAFETY = 0.8;
/** How long a write that failed waits before it is tried again, and at most. */
const [RETRY_MS, MAX_RETRY_MS] = [50, 1_000];
const GRACE_MS = 10_000;
/** The longest time that a timer can count. */
const MAX_TIMER_MS = 2 ** 31 - 1;
/** How many rows of the log are read at once. */
const ROWS = 8;

/** @param {string} id @param {number} fence */
export const lostLease = (id, fence) => Object.assign(new Error(`the lease of \`${id}\` is lost (fence ${fence}): another process may have the agent now; claim it again to go on`), { name: "LeaseError", code: "lost_lease" });

export class Lease {
  #terms;
  /** What is on the shelf. @type {string[]} */
  #stored;
  #controller = new AbortController();
  #deadline = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #end;
  /** @type {ReturnType<typeof setInterval>} */
  #renewal;
  #isReleased = false;
  /** @type {Promise<void> | undefined} */
  #releasing;
  /** @type {Holder[]} */
  #holders = [];
  /** One write after the other. @type {Promise<unknown>} */
  #last = Promise.resolve();

  /** @param {Terms} terms @param {string} id @param {Claimed} claimed @param {Opened} opened @param {number} since when it was asked for */
  constructor(terms, id, { fence, messages, first, last, bytes }, { checkpoint, commands }, since) {
    this.#terms = terms;
    this.#stored = messages;
    this.id = id;
    this.fence = fence;
    this.checkpoint = checkpoint;
    this.wasRunning = isInProgress(checkpoint);
    this.signal = this.#controller.signal;
    this.events = new LeaseLog({ first, last, bytes, commands }, (after, limit) => this.#events(after, limit));
    this.events.store = () => this.#write();
    this.events.verify = () => this.#verify();
    this.events.checkHeld = () => {
      if (!this.isHeld) throw lostLease(id, fence);
    };
    this.#prolong(since);
    this.#renewal = setInterval(() => void this.#renew(), terms.ttlMs / 3);
    /** @type {any} */ (this.#renewal).unref?.();
  }

  /** Whether the lease holds, by the clock of this process: one that was stopped for long learns it here. */
  get isHeld() {
    if (!this.#isReleased && !this.signal.aborted && performance.now() >= this.#deadline) this.#lose();
    return !this.#isReleased && !this.signal.aborted;
  }

  /** Stores a checkpoint and the events so far, and renews the lease. @param {Checkpoint} checkpoint @returns {Promise<void>} */
  save(checkpoint) {
    checkSave("save", this.id, checkpoint);
    this.events.needsCheckpoint = false;
    return this.#write(checkpoint);
  }

  /** The agent of this lease says what is to be done when it is given back. @param {Holder} holder */
  hold(holder) {
    this.#holders.push(holder);
  }

  /**
   * Gives the agent back in the middle of a run: what has begun may end, nothing else begins, and whoever claims it goes on.
   * @param {{ graceMs?: number }} [options]
   */
  async handOver({ graceMs = GRACE_MS } = {}) {
    if (!(graceMs >= 0)) throw misuse(`\`graceMs\` must be a number of milliseconds, got ${graceMs}`);
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    const patience = new Promise((resolve) => (timer = setTimeout(resolve, Math.min(graceMs, MAX_TIMER_MS))));
    await Promise.race([Promise.all(this.#holders.map((holder) => holder.pause())), patience]);
    clearTimeout(timer);
    await this.release();
  }

  /** Gives the agent back, once what is being stored is stored. */
  release() {
    return (this.#releasing ??= this.#release());
  }

  async #release() {
    for (const holder of this.#holders) await holder.stored()?.catch(() => {});
    this.#isReleased = true;
    this.events.close();
    clearInterval(this.#renewal);
    clearTimeout(this.#end);
    for (const holder of this.#holders) holder.stop();
    await this.#last;
    if (!this.signal.aborted) await attempt(this.#terms.shelf, "given back to", this.id, () => this.#terms.shelf.release(this.id, this.fence));
  }

  [Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")]() {
    return this.release();
  }

  /** Stores what is new: the events up to now, and the checkpoint that belongs to them, if there is one. @param {Checkpoint} [checkpoint] */
  #write(checkpoint) {
    const upTo = this.events.last;
    const saved = this.#last.then(() => this.#save(upTo, checkpoint));
    this.#last = saved.catch(() => {});
    return saved;
  }

  /** @param {number} upTo @param {Checkpoint} [checkpoint] */
  async #save(upTo, checkpoint) {
    if (this.signal.aborted || this.#isReleased) throw lostLease(this.id, this.fence);
    const { shelf, ttlMs, sealing } = this.#terms;
    const log = this.events.change(upTo);
    if (log && sealing) for (const row of log.rows) row.json = await this.#sealRow(row, sealing);
    /** @type {Change} */
    const change = { isRunning: false, from: 0, messages: [], log };
    let messages = this.#stored;
    if (checkpoint) {
      const whole = sealing && !isSealed(checkpoint) ? await seal(checkpoint, sealing.key, { context: contextOf(sealing, this.id) }) : checkpoint;
      const parts = split(whole);
      messages = parts.messages;
      let from = 0;
      while (from < messages.length && messages[from] === this.#stored[from]) from++;
      Object.assign(change, { state: parts.state, isRunning: isInProgress(checkpoint), from, messages: messages.slice(from) });
    } else if (!log) return;
    const since = await this.#insist((since) => shelf.save(this.id, this.fence, ttlMs, change).then((isStored) => (isStored ? since : undefined)));
    if (since === undefined) throw this.#lose();
    this.#stored = messages;
    if (log) this.events.noteStored(log);
    this.#prolong(since);
  }

  /**
   * Tries a write again that failed, as long as the lease holds: a database that restarts ends no run.
   * @template T @param {(since: number) => Promise<T>} write @returns {Promise<T>}
   */
  async #insist(write) {
    const begun = performance.now();
    for (let pause = RETRY_MS; ; pause = Math.min(2 * pause, MAX_RETRY_MS)) {
      try {
        return await attempt(this.#terms.shelf, "saved in", this.id, () => write(performance.now()));
      } catch (error) {
        if (this.#isReleased || performance.now() - begun > this.#terms.ttlMs) throw error;
        if (!this.isHeld) throw this.signal.reason;
        await new Promise((resolve) => setTimeout(resolve, pause));
      }
    }
  }

  /** @param {number} after @param {number} limit */
  async #events(after, limit) {
    const rows = await attempt(this.#terms.shelf, "read from", this.id, () => this.#terms.shelf.events(this.id, this.fence, after, ROWS));
    const entries = (await Promise.all(rows.map((row) => entriesOf(row, this.id, this.#terms.sealing)))).flat();
    return entries.filter(({ id }) => id > after).slice(0, limit);
  }

  /** @param {{ json: string }} row @param {NonNullable<StoreOptions["seal"]>} sealing */
  async #sealRow({ json }, sealing) {
    const sealed = await seal(/** @type {any} */ ({ messages: [], events: json }), sealing.key, { context: `${contextOf(sealing, this.id)}#events` });
    return JSON.stringify(sealed);
  }

  /** Asks the store: the clock of a machine that was suspended does not know of that time. */
  async #verify() {
    this.events.checkHeld();
    const since = performance.now();
    const { shelf, ttlMs } = this.#terms;
    if (!(await attempt(shelf, "renewed in", this.id, () => shelf.renew(this.id, this.fence, ttlMs)))) throw this.#lose();
    this.#prolong(since);
  }

  async #renew() {
    const since = performance.now();
    try {
      if (await this.#terms.shelf.renew(this.id, this.fence, this.#terms.ttlMs)) this.#prolong(since);
      else this.#lose();
    } catch (error) {
      // The next one may be good; if none is, the time runs out.
      if (!this.signal.aborted) complain(`turnwheel/stores/node: the lease of \`${this.id}\` could not be renewed`, textOf(error));
    }
  }

  /** @param {number} since */
  #prolong(since) {
    if (this.#isReleased || this.signal.aborted) return;
    clearTimeout(this.#end);
    this.#deadline = since + this.#terms.ttlMs * SAFETY;
    this.#end = setTimeout(() => void this.isHeld, Math.max(0, this.#deadline - performance.now()));
    /** @type {any} */ (this.#end).unref?.();
  }

  #lose() {
    const error = lostLease(this.id, this.fence);
    clearInterval(this.#renewal);
    clearTimeout(this.#end);
    if (!this.#isReleased) this.#controller.abort(error);
    return error;
  }
}

/** The entries of a row of the log. @param {string} row @param {string} id @param {StoreOptions["seal"]} sealing @returns {Promise<EventLogEntry[]>} */
export async function entriesOf(row, id, sealing) {
  const read = JSON.parse(row);
  if (!isSealed(read)) {
    if (sealing) throw misuse(`the events of \`${id}\` are not sealed: anybody may have written them`);
    return read;
  }
  if (!sealing) throw misuse(`the events of \`${id}\` are sealed; give the store the key: { seal: { key } }`);
  const opened = /** @type {any} */ (await unseal(read, sealing.key, { context: `${contextOf(sealing, id)}#events` }));
  return JSON.parse(opened.events);
}
