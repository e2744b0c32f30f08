// @ts-check
// The commands that were executed, by the ids that their clients gave them: a command that comes again is not executed
// again. What is remembered reaches back as far as the log does, so whoever can still continue where a command was sent
// can also repeat it.

import { RequestError } from "./errors.js";

/** @import { Feed } from "./feed.js" */
/** @import { Reply } from "./commands.js" */
/**
 * What is known of a command. `reply` is unset until it was executed; `position` is the last event before it.
 * @typedef {{ name: string, position: number, at: number, reply?: Reply, done?: Promise<Reply> }} Executed
 */

/** No client repeats a command for longer than this. */
const REPEATED_MS = 600_000;
/** How many are stored in one entry of the log. */
const PER_ENTRY = 500;

/** Commands that end or decide something have room of their own: whoever fills the other must not keep a run from being stopped. */
export const URGENT = new Set(["abort", "reset", "resolve"]);

export class Replies {
  /** @param {Feed} feed @param {number} limit @param {() => number} now */
  constructor(feed, limit, now) {
    this.feed = feed;
    this.limit = limit;
    this.now = now;
    /** @type {Map<string, Executed>} */
    this.byId = new Map();
    /** The urgent ones. @type {Map<string, Executed>} */
    this.urgent = new Map();
  }

  /** Returns what is known of a command, or nothing if it is new. @param {string} id @param {string} name */
  find(id, name) {
    const known = this.#known(id);
    if (known && known.name !== name && known.name !== "") throw new RequestError(409, "misuse", `the id ${JSON.stringify(id)} was given to another command, \`${known.name}\`; every command needs an id of its own`);
    return known;
  }

  /** @param {string} id */
  #known(id) {
    return this.byId.get(id) ?? this.urgent.get(id);
  }

  /** Notes that a command is being executed. @param {string} id @param {string} name @returns {Executed} */
  begin(id, name) {
    const command = { name, position: this.feed.log.last, at: this.now() };
    if (!URGENT.has(name)) {
      this.#makeRoom();
      this.byId.set(id, command);
      return command;
    }
    // Rather than to be refused, the oldest may be executed again if it comes again.
    for (const oldest of this.urgent.keys()) if (this.urgent.size >= this.limit) this.urgent.delete(oldest);
    this.urgent.set(id, command);
    return command;
  }

  /** A command was not executed. @param {string} id */
  forget(id) {
    this.byId.delete(id);
    this.urgent.delete(id);
  }

  /** Adds what became of a posted message to the answer to it. @param {string} id @param {unknown} receipt */
  settle(id, receipt) {
    const known = this.#known(id);
    if (known?.reply) Object.assign(known.reply, { receipt });
  }

  /** Takes over what an earlier instance executed. @param {string} id @param {Reply} reply @param {string} [name] of the command */
  takeOver(id, reply, name = "") {
    (URGENT.has(name) ? this.urgent : this.byId).set(id, { name: URGENT.has(name) ? name : "", position: this.feed.log.last, at: this.now(), reply });
  }

  /**
   * Forgets the oldest if there are too many. A command that may still be repeated is not forgotten: rather, no others
   * are accepted until it cannot be.
   */
  #makeRoom() {
    while (this.byId.size >= this.limit) {
      const [id, { position, at }] = /** @type {[string, Executed]} */ (this.byId.entries().next().value ?? ["", { position: 0, at: this.now() }]);
      const age = this.now() - at;
      if (age < REPEATED_MS) throw new RequestError(429, "throttled", `${this.limit} commands are remembered, so that none is executed twice; this one has to wait, or the option \`limits.commandIds\` has to be raised`, { "retry-after": String(Math.ceil((REPEATED_MS - age) / 1000)) });
      // Nobody may go on from where it was sent any more.
      if (position >= this.feed.log.first) this.feed.forgetTo(position + 1);
      this.byId.delete(id);
    }
  }

  /** Stores all of them anew, when the entries of the log that told of them go. */
  store() {
    if (!this.feed.log.commands) return;
    const all = [...this.byId, ...this.urgent].flatMap(([id, { reply, name }]) => (reply ? [[id, reply, ...(URGENT.has(name) ? [name] : [])]] : []));
    for (let i = 0; i < all.length; i += PER_ENTRY) this.feed.append("command", { replies: all.slice(i, i + PER_ENTRY) });
  }
}
