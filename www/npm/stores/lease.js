// @ts-check
// A lease: for a while an agent belongs to one process, or to one tab. Every claim gets a higher number, its fence, and every
// write names it: what is written by one that lost the lease changes nothing. Where it is kept is a shelf's business, and how
// long: that of a process ends by a clock, that of a tab with its lock.

import { complain, misuse, textOf } from "../shared.js";
import { Drafts } from "./drafts.js";
import { Gate } from "./gate.js";
import { Keeper } from "./keeper.js";
import { attempt, isInProgress, isLasting, split } from "./kept.js";
import { LeaseLog } from "./log.js";
import { checkSave } from "./place.js";
import { Title } from "./title.js";

/** @import { Agent, AgentEvent, AgentOptions, Checkpoint, WrappedModelCall, WrappedToolCall } from "../index.js" */
/** @import { EventLogEntry } from "../server.js" */
/** @import { Query } from "./list.js" */
/** @import { LogChange } from "./log.js" */
/** @import { StoredAgent } from "../stores.js" */

/** @typedef {import("./kept.js").Kept} Kept */
/**
 * What a claim finds: also where its log is, and the rows of the log that have commands.
 * @typedef {Kept & { fence: number, first: number, last: number, bytes: number, commands: string[] }} Claimed
 */
/**
 * A change of it: `messages` are those from the place `from` on, and the last ones. Without a `state` only events are new.
 * @typedef {{ state?: string | undefined, title: string, isRunning: boolean, from: number, messages: string[], log?: LogChange | undefined }} Change
 */
/**
 * What a lease needs of the place where its agent is kept. Times are those of its own clock, and each method is done as a whole or
 * not at all. `save` and `renew` give false if the fence is not the newest. `events` gives the rows of the log with entries above
 * `after`, so many at most.
 * @typedef {object} LeaseShelf
 * @property {string} place its name in errors
 * @property {string} [others] who else may have the agent; default: another process
 * @property {(id: string, fence: number, ttlMs: number, change: Change) => Promise<boolean>} save
 * @property {(id: string, fence: number, ttlMs: number) => Promise<boolean>} renew
 * @property {(id: string, fence: number) => Promise<unknown>} release
 * @property {(id: string, fence: number, after: number, limit: number) => Promise<string[]>} events
 */
/** What a store needs of it beside that. @typedef {{ place: string, read(id: string): Promise<Kept | undefined>, remove(id: string): Promise<unknown>, list(query: Query): Promise<StoredAgent[]> }} KeptShelf */
/**
 * `ttlMs`: Infinity if the lease does not end by itself. `pack` says what is kept of a checkpoint.
 * @typedef {{ shelf: LeaseShelf, ttlMs: number, pack?: (checkpoint: Checkpoint) => Kept | Promise<Kept> }} Terms
 */
/**
 * What the agent of a lease does when it is given back: begin nothing more and end what has begun, store what is not stored
 * yet, and stop.
 * @typedef {{ pause(): Promise<void>, stored(): Promise<unknown> | undefined, stop(): void }} Holder
 */

/** A lease counts as lost here this much of its time before it is over there: what was begun must have an end. */
const SAFETY = 0.8;
/** How long a write that failed waits before it is tried again, and at most. */
const [RETRY_MS, MAX_RETRY_MS] = [50, 1_000];
const GRACE_MS = 10_000;
/** The longest time that a timer can count. */
const MAX_TIMER_MS = 2 ** 31 - 1;
/** How many rows of the log are read at once. */
const ROWS = 8;

/** @param {string} message */
export const leaseError = (message) => Object.assign(new Error(message), { name: "LeaseError", code: "lost_lease" });

export class Lease {
  #terms;
  /** What is on the shelf. @type {string[]} */
  #stored;
  #title = new Title();
  #controller = new AbortController();
  #deadline = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #end;
  /** Without one where a lease has no end. @type {ReturnType<typeof setInterval> | undefined} */
  #renewal;
  #isReleased = false;
  /** @type {Promise<void> | undefined} */
  #releasing;
  /** @type {Holder[]} */
  #holders = [];
  /** One write after the other. @type {Promise<unknown>} */
  #last = Promise.resolve();

  /** @param {Terms} terms @param {string} id @param {Omit<Claimed, "state" | "commands">} claimed @param {EventLogEntry[]} commands @param {Checkpoint | undefined} checkpoint @param {number} since when it was asked for */
  constructor(terms, id, { fence, messages, first, last, bytes }, commands, checkpoint, since) {
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
      if (!this.isHeld) throw this.#lost();
    };
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

  /** Whether `openAgent` has made an agent of it. */
  get isOpened() {
    return this.#holders.length > 0;
  }

  /** Stores a checkpoint and the events so far, and renews the lease. @param {Checkpoint} checkpoint @returns {Promise<void>} */
  save(checkpoint) {
    checkSave("save", this.id, checkpoint);
    this.events.noteCheckpoint();
    return this.#write(checkpoint);
  }

  /**
   * What `openAgent` puts around an agent: it is stored at every step, a tool starts only when its announcement is stored and the
   * lease still holds, and it is stopped when the agent is given back or lost.
   * @param {AgentOptions} options @param {() => Agent | undefined} agent its own, once it is there
   */
  hold({ wrapTool, wrapModel }, agent) {
    const { fence } = this;
    const gate = new Gate();
    const drafts = new Drafts();
    /** The messages as they are kept: what was stored once is not written again. */
    const written = new WeakMap();
    const keeper = new Keeper(this, () => /** @type {any} */ (agent()).checkpoint(written));
    const stop = () => agent()?.abort(this.signal.reason?.message ?? "the agent was given back");
    this.#holders.push({ pause: () => gate.close(), stored: () => keeper.pending, stop });
    return {
      around: {
        /** @param {WrappedToolCall} call @param {(more?: object) => Promise<unknown>} next */
        wrapTool: (call, next) => gate.enter([...call.path, call.callId], async () => {
          await keeper.change();
          if (!this.isHeld) throw this.signal.reason;
          const run = (/** @type {object | undefined} */ more) => next({ fence, ...more });
          return wrapTool ? wrapTool(call, run) : run(undefined);
        }),
        /** @param {WrappedModelCall} call @param {() => Promise<any>} next */
        wrapModel: (call, next) => gate.pass([...call.path, "model"], call.signal, () => (wrapModel ? wrapModel(call, next) : next())),
      },
      /** @param {AgentEvent} event */
      hear: (event) => {
        if (!drafts.isChange(event) || !this.isHeld) return;
        // Nobody waits for this one; the tools and the end of the run wait for theirs.
        return keeper.change().catch((error) => {
          if (!this.isHeld) return;
          if (event.type === "agent_end") throw error;
          complain(`turnwheel: \`${this.id}\` could not be stored`, textOf(error));
        });
      },
      stop,
    };
  }

  /** Stores nothing for a while: whoever is about to leave must not store what leaving does. @param {number} ms */
  pause(ms) {
    this.#last = this.#last.then(() => new Promise((resolve) => setTimeout(resolve, ms)));
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
    if (!this.signal.aborted) await this.#attempt("given back to", (shelf) => shelf.release(this.id, this.fence));
  }

  [Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")]() {
    return this.release();
  }

  /** Stores what is new: the events up to now, and the checkpoint that belongs to them, if there is one. @param {Checkpoint} [checkpoint] @returns {Promise<void>} */
  #write(checkpoint) {
    const upTo = this.events.last;
    const saved = this.#last.then(() => this.#save(upTo, checkpoint));
    this.#last = saved.catch(() => {});
    return saved;
  }

  /** @param {number} upTo @param {Checkpoint} [checkpoint] */
  async #save(upTo, checkpoint) {
    if (this.signal.aborted || this.#isReleased) throw this.#lost();
    const { ttlMs, pack = split } = this.#terms;
    const log = this.events.change(upTo);
    /** @type {Change} */
    const change = { title: "", isRunning: false, from: 0, messages: [], log };
    let messages = this.#stored;
    if (checkpoint) {
      const isRunning = isInProgress(checkpoint);
      const parts = await pack(checkpoint);
      messages = parts.messages;
      let from = 0;
      while (from < messages.length && messages[from] === this.#stored[from]) from++;
      // Of one that is sealed no message is seen: it has no title.
      Object.assign(change, { state: parts.state, title: this.#title.of(messages, from), isRunning, from, messages: messages.slice(from) });
    } else if (!log) return;
    const since = await this.#insist((shelf, since) => shelf.save(this.id, this.fence, ttlMs, change).then((isStored) => (isStored ? since : undefined)));
    if (since === undefined) throw this.lose();
    this.#stored = messages;
    if (log) this.events.noteStored(log);
    this.#prolong(since);
  }

  /**
   * Tries a write again that failed, as long as the lease holds: a database that restarts ends no run. Where a lease has no end,
   * nobody would hear that it fails.
   * @template T @param {(shelf: LeaseShelf, since: number) => Promise<T>} write @returns {Promise<T>}
   */
  async #insist(write) {
    const { ttlMs } = this.#terms;
    const begun = performance.now();
    for (let pause = RETRY_MS; ; pause = Math.min(2 * pause, MAX_RETRY_MS)) {
      try {
        return await this.#attempt("saved in", (shelf) => write(shelf, performance.now()));
      } catch (error) {
        if (ttlMs === Infinity || this.#isReleased || performance.now() - begun > ttlMs) throw error;
        if (!this.isHeld) throw this.signal.reason;
        if (isLasting(error)) throw this.#fail(error);
        await new Promise((resolve) => setTimeout(resolve, pause));
      }
    }
  }

  /** @param {number} after @param {number} limit */
  async #events(after, limit) {
    const rows = await this.#attempt("read from", (shelf) => shelf.events(this.id, this.fence, after, ROWS));
    /** @type {EventLogEntry[]} */
    const entries = rows.flatMap((row) => JSON.parse(row));
    return entries.filter(({ id }) => id > after).slice(0, limit);
  }

  /** Asks the store: the clock of a machine that was suspended does not know of that time. */
  async #verify() {
    this.events.checkHeld();
    if (!(await this.#renewed())) throw this.lose();
  }

  async #renew() {
    try {
      if (!(await this.#renewed())) this.lose();
    } catch (error) {
      if (isLasting(error)) return void this.#fail(error);
      // The next one may be good; if none is, the time runs out.
      if (!this.signal.aborted) complain(`turnwheel: the lease of \`${this.id}\` could not be renewed`, textOf(error));
    }
  }

  async #renewed() {
    const since = performance.now();
    const isRenewed = await this.#attempt("renewed in", (shelf) => shelf.renew(this.id, this.fence, this.#terms.ttlMs));
    if (isRenewed) this.#prolong(since);
    return isRenewed;
  }

  /** @param {number} since */
  #prolong(since) {
    if (this.#isReleased || this.signal.aborted) return;
    clearTimeout(this.#end);
    this.#deadline = since + this.#terms.ttlMs * SAFETY;
    if (this.#deadline === Infinity) return;
    this.#end = setTimeout(() => void this.isHeld, Math.max(0, this.#deadline - performance.now()));
    /** @type {any} */ (this.#end).unref?.();
  }

  /** Nothing can be stored any more: whose agent it is does not matter then. @param {unknown} error */
  #fail(error) {
    if (!this.signal.aborted) complain(`turnwheel: the lease of \`${this.id}\` ends`, textOf(error));
    return this.lose(error);
  }

  #lost() {
    if (this.signal.aborted) return this.signal.reason;
    const { others = "another process" } = this.#terms.shelf;
    return leaseError(`the lease of \`${this.id}\` is lost (fence ${this.fence}): ${others} may have the agent now; claim it again to go on`);
  }

  /** The lease holds no more. */
  lose(error = this.#lost()) {
    clearInterval(this.#renewal);
    clearTimeout(this.#end);
    if (!this.#isReleased) this.#controller.abort(error);
    return error;
  }

  /** @template T @param {string} what @param {(shelf: LeaseShelf) => Promise<T>} work */
  #attempt(what, work) {
    const { shelf } = this.#terms;
    return attempt(shelf, what, this.id, () => work(shelf));
  }
}
