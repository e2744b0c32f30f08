// @ts-check
// The lease of a tab: for a while an agent belongs to it alone. Every claim gets a higher number, its fence, and every write
// names it: what is written by one that lost the lease changes nothing. Where it is kept is a shelf's business. That of
// processes is node/lease.js: it ends by a clock, and keeps its events in rows.

import { complain, isSealed } from "../shared.js";
import { attempt, contextOf, isInProgress, split } from "./kept.js";
import { checkSave } from "./place.js";
import { seal } from "./seal.js";

/** @import { Checkpoint } from "../index.js" */
/** @import { EventLogEntry } from "../server.js" */
/** @import { StoreOptions } from "../stores-node.js" */

/** @typedef {import("./kept.js").Kept} Kept */
/**
 * A change of it: `messages` are those from the place `from` on, and the last ones.
 * @typedef {{ state: string, isRunning: boolean, from: number, messages: string[] }} Change
 */
/** What is new in a log of events, and up to where it is forgotten. @typedef {{ entries: EventLogEntry[], first: number, last: number }} LogChange */
/**
 * Events that are stored together with the checkpoint that goes with them, where a shelf can do that.
 * @typedef {object} Log
 * @property {number} last the newest one
 * @property {(upTo: number) => LogChange} take what is not stored yet, up to there
 * @property {(change: LogChange, hasCheckpoint: boolean) => void} stored
 */
/**
 * Where agents are kept. Times are those of the shelf's own clock, and each method is done as a whole or not at all. `save`
 * and `renew` give false if the fence is not the newest.
 * @typedef {object} Shelf
 * @property {string} place its name in errors
 * @property {string} [others] who else may have the agent; default: another process
 * @property {(id: string, owner: string, ttlMs: number) => Promise<(Kept & { fence: number }) | undefined>} claim
 * @property {(id: string, fence: number, ttlMs: number, change: Change) => Promise<boolean>} save
 * @property {(id: string, fence: number, change: Change | undefined, log: LogChange) => Promise<boolean>} [saveLog] the same with what is new in a log
 * @property {(id: string, fence: number, ttlMs: number) => Promise<boolean>} renew
 * @property {(id: string, fence: number) => Promise<unknown>} release
 * @property {(id: string) => Promise<Kept | undefined>} read
 * @property {(id: string) => Promise<unknown>} remove
 * @property {(id: string) => Promise<string | undefined>} owner
 * @property {(limit: number) => Promise<string[]>} abandoned
 */
/** @typedef {{ shelf: Pick<Shelf, "place" | "others" | "save" | "saveLog" | "renew" | "release">, ttlMs: number, sealing?: StoreOptions["seal"] }} Terms */

/** A lease counts as lost here this much of its time before it is over there: what was begun must have an end. */
const SAFETY = 0.8;

/** @param {string} message */
export const leaseError = (message) => Object.assign(new Error(message), { name: "LeaseError", code: "lost_lease" });

export class Lease {
  #terms;
  /** What is on the shelf. @type {string[]} */
  #stored;
  #controller = new AbortController();
  #deadline = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #end;
  /** Without one where a lease has no end. @type {ReturnType<typeof setInterval> | undefined} */
  #renewal;
  #isReleased = false;
  /** @type {Promise<void> | undefined} */
  #releasing;
  /** What is to be stored before it is given back. @type {(() => Promise<unknown> | undefined)[]} */
  #before = [];
  /** One write after the other. @type {Promise<unknown>} */
  #last = Promise.resolve();
  /** Is stored together with every checkpoint. @type {Log | undefined} */
  log;

  /** @param {Terms} terms @param {string} id @param {number} fence @param {string[]} stored @param {Checkpoint | undefined} checkpoint @param {number} since when it was asked for */
  constructor(terms, id, fence, stored, checkpoint, since) {
    this.#terms = terms;
    this.#stored = stored;
    this.id = id;
    this.fence = fence;
    this.checkpoint = checkpoint;
    this.signal = this.#controller.signal;
    this.#prolong(since);
    if (terms.ttlMs === Infinity) return;
    this.#renewal = setInterval(() => void this.#renew(), terms.ttlMs / 3);
    /** @type {any} */ (this.#renewal).unref?.();
  }

  /** Whether the lease holds, by the clock of this process: one that was stopped for long learns it here. */
  get isHeld() {
    if (!this.#isReleased && !this.signal.aborted && performance.now() >= this.#deadline) this.lose();
    return !this.#isReleased && !this.signal.aborted;
  }

  /** Stores a checkpoint, and renews the lease. @param {Checkpoint} checkpoint @returns {Promise<void>} */
  save(checkpoint) {
    checkSave("save", this.id, checkpoint);
    return this.#write(checkpoint);
  }

  /** Stores what is new in the log, and nothing else. @returns {Promise<void>} */
  saveLog() {
    return this.#write();
  }

  /** Stores nothing for a while: whoever is about to leave must not store what leaving does. @param {number} ms */
  pause(ms) {
    this.#last = this.#last.then(() => new Promise((resolve) => setTimeout(resolve, ms)));
  }

  /** Resolves when what is being written is written, or has failed. @returns {Promise<unknown>} */
  written() {
    return this.#last;
  }

  /** @param {Checkpoint} [checkpoint] @returns {Promise<void>} */
  #write(checkpoint) {
    // A later event would not be one that the checkpoint knows.
    const upTo = this.log?.last;
    const saved = this.#last.then(() => this.#save(checkpoint, upTo));
    this.#last = saved.catch(() => {});
    return saved;
  }

  /** `openAgent` has something to store before the agent is given back. @param {() => Promise<unknown> | undefined} work */
  beforeRelease(work) {
    this.#before.push(work);
  }

  /** Whether `openAgent` has made an agent of it. */
  get isOpened() {
    return this.#before.length > 0;
  }

  /** Gives the agent back, once what is being stored is stored. */
  release() {
    return (this.#releasing ??= this.#release());
  }

  async #release() {
    for (const work of this.#before) await work()?.catch(() => {});
    this.#isReleased = true;
    clearInterval(this.#renewal);
    clearTimeout(this.#end);
    await this.#last;
    if (!this.signal.aborted) await this.#attempt("given back to", () => this.#terms.shelf.release(this.id, this.fence));
  }

  [Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")]() {
    return this.release();
  }

  /** @param {Checkpoint | undefined} checkpoint @param {number | undefined} upTo */
  async #save(checkpoint, upTo) {
    if (this.signal.aborted || this.#isReleased) throw this.#lost();
    const since = performance.now();
    const log = upTo === undefined ? undefined : this.log?.take(upTo);
    const change = checkpoint && (await this.#changeOf(checkpoint));
    const isStored = await this.#attempt("saved in", () => this.#put(change, log));
    if (!isStored) throw this.lose();
    if (change) this.#stored = [...this.#stored.slice(0, change.from), ...change.messages];
    if (log) this.log?.stored(log, change !== undefined);
    this.#prolong(since);
  }

  /** @param {Change | undefined} change @param {LogChange | undefined} log */
  async #put(change, log) {
    const { shelf, ttlMs } = this.#terms;
    if (log && shelf.saveLog) return shelf.saveLog(this.id, this.fence, change, log);
    return change ? shelf.save(this.id, this.fence, ttlMs, change) : true;
  }

  /** What a checkpoint changes in what is stored. @param {Checkpoint} checkpoint @returns {Promise<Change>} */
  async #changeOf(checkpoint) {
    const { sealing } = this.#terms;
    const isRunning = isInProgress(checkpoint);
    const whole = sealing && !isSealed(checkpoint) ? await seal(checkpoint, sealing.key, { context: contextOf(sealing, this.id) }) : checkpoint;
    const { state, messages } = split(whole);
    let from = 0;
    while (from < messages.length && messages[from] === this.#stored[from]) from++;
    return { state, isRunning, from, messages: messages.slice(from) };
  }

  async #renew() {
    const since = performance.now();
    try {
      if (await this.#terms.shelf.renew(this.id, this.fence, this.#terms.ttlMs)) this.#prolong(since);
      else this.lose();
    } catch (error) {
      // The next one may be good; if none is, the time runs out.
      if (!this.signal.aborted) complain(`turnwheel: the lease of \`${this.id}\` could not be renewed`, error);
    }
  }

  /** @param {number} since */
  #prolong(since) {
    if (this.#isReleased || this.signal.aborted) return;
    clearTimeout(this.#end);
    if (this.#terms.ttlMs === Infinity) return void (this.#deadline = Infinity);
    this.#deadline = since + this.#terms.ttlMs * SAFETY;
    this.#end = setTimeout(() => void this.isHeld, Math.max(0, this.#deadline - performance.now()));
    /** @type {any} */ (this.#end).unref?.();
  }

  #lost() {
    const { others = "another process" } = this.#terms.shelf;
    return leaseError(`the lease of \`${this.id}\` is lost (fence ${this.fence}): ${others} may have the agent now; claim it again to go on`);
  }

  /** The lease holds no more. */
  lose() {
    const error = this.#lost();
    clearInterval(this.#renewal);
    clearTimeout(this.#end);
    if (!this.#isReleased) this.#controller.abort(error);
    return error;
  }

  /** @template T @param {string} what @param {() => Promise<T>} work */
  #attempt(what, work) {
    return attempt(this.#terms.shelf, what, this.id, work);
  }
}
