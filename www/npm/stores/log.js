// @ts-check
// The events of an agent that several processes share, for `agentHandler`: each write stores those that are new together with
// the checkpoint that belongs to them, under the fence, and no listener hears what is not stored. So whoever has the agent
// next goes on with the next number.

/** @import { EventLogEntry } from "../server.js" */
/**
 * What is known of a log when its agent is claimed: the events above `first` up to `last` are kept. Of an agent that is new both
 * are the same number, above all those of an agent with its id that was deleted. `commands` are those entries that a later
 * instance must know.
 * @typedef {{ first: number, last: number, bytes: number, commands: EventLogEntry[] }} KeptLog
 */
/** What a write says of the log: where it is now, and what is new. @typedef {{ first: number, last: number, bytes: number, rows: LogRow[] }} LogChange */
/** Some entries that were stored together; `at` is the number of the last one. @typedef {{ at: number, json: string, hasCommands: boolean }} LogRow */

/** How many entries stay in memory for listeners after they were stored. */
const KEPT_ENTRIES = 256;
/** How many a row may have: whoever reads one entry reads its row. */
const PER_ROW = 256;

const isCommand = (/** @type {EventLogEntry} */ { type }) => type === "command" || type === "receipt";
const bytesOf = (/** @type {EventLogEntry} */ { data, history = "" }) => 2 * (data.length + history.length);

export class LeaseLog {
  /** The entries above `#before`: all that are not stored, and the newest that are. @type {EventLogEntry[]} */
  #tail = [];
  #before;
  /** Up to where it is stored. */
  #stored;
  #first;
  #bytes;
  #kept;
  #read;
  #isTrimmed = false;
  /** Whether anybody tells what happens here. */
  #isUsed = false;
  #isClosed = false;

  /** @param {KeptLog} kept @param {(after: number, limit: number) => Promise<EventLogEntry[]>} read what is stored */
  constructor(kept, read) {
    this.#kept = kept;
    this.#first = kept.first;
    this.#before = this.#stored = kept.last;
    this.#bytes = kept.bytes;
    this.#read = read;
    /** Stores what is new. @type {() => Promise<void>} */
    this.store = async () => {};
    /** Rejects if the lease is lost, by the clock of this process. */
    this.checkHeld = () => {};
    /** Rejects if it is lost by what the store says. @type {() => Promise<void>} */
    this.verify = async () => {};
    /** Whether something is new that changes the agent: it is stored together with a checkpoint. */
    this.needsCheckpoint = false;
  }

  get first() {
    return this.#first;
  }

  get last() {
    return this.#before + this.#tail.length;
  }

  get bytes() {
    return this.#bytes;
  }

  /** @param {EventLogEntry} entry */
  append(entry) {
    // What a process says that gave the agent away is not part of its story.
    if (this.#isClosed) return;
    this.#isUsed = true;
    this.#tail.push(entry);
    this.#bytes += bytesOf(entry);
    if (entry.type !== "message") this.needsCheckpoint = true;
  }

  /** @param {number} after @param {number} limit @returns {EventLogEntry[] | Promise<EventLogEntry[]>} */
  read(after, limit) {
    if (after < this.#first) return [];
    if (after >= this.#before) return this.#tail.slice(after - this.#before, after - this.#before + limit);
    return this.#readStored(after, limit);
  }

  /** @param {number} after @param {number} limit */
  async #readStored(after, limit) {
    const found = await this.#read(after, limit);
    if (found[0]?.id === after + 1) return found.filter(({ id }) => id <= this.last);
    // Who has lost the lease finds nothing. Whoever waits for an entry that is there must hear of it, or would ask for ever.
    await this.verify();
    // What was trimmed meanwhile leaves a gap, and what is missing for another reason is of no use: whoever asked begins anew.
    if (after >= this.#first) this.trim(this.#before);
    return [];
  }

  /** @param {number} upTo */
  trim(upTo) {
    const { last } = this;
    const count = Math.max(0, Math.min(upTo, last) - this.#before);
    const gone = this.#tail.splice(0, count);
    const goneBytes = gone.reduce((sum, entry) => sum + bytesOf(entry), 0);
    // Of those that another process wrote only the sum is known.
    const earlier = this.#before - this.#first;
    const earlierBytes = this.#bytes - goneBytes - this.#tail.reduce((sum, entry) => sum + bytesOf(entry), 0);
    const share = earlier > 0 ? Math.min(1, (Math.min(upTo, this.#before) - this.#first) / earlier) : 0;
    this.#bytes -= goneBytes + Math.max(0, Math.round(earlierBytes * share));
    this.#before += count;
    this.#first = upTo;
    this.#isTrimmed = true;
  }

  commands() {
    this.#isUsed = true;
    return this.#kept.commands;
  }

  /** A checkpoint is stored, together with what is here. Without a log, what listeners have heard does not lead to it: they begin anew. */
  noteCheckpoint() {
    this.needsCheckpoint = false;
    if (this.#isUsed) return;
    this.#isUsed = this.#isTrimmed = true;
    this.#first = this.#before = this.#stored = this.last + 1;
    this.#bytes = 0;
    this.#kept = { ...this.#kept, commands: [] };
  }

  /** Resolves when all that was appended is stored, and rejects if the lease is lost. */
  async sync() {
    if (this.#stored >= this.last) this.checkHeld();
    else await this.store();
  }

  /** No more is accepted: the agent is given back. */
  close() {
    this.#isClosed = true;
  }

  /** What a write has to store, if it stores everything up to this number. @param {number} upTo @returns {LogChange | undefined} */
  change(upTo) {
    const from = Math.max(this.#stored, this.#before);
    const fresh = this.#tail.slice(from - this.#before, upTo - this.#before);
    if (fresh.length === 0 && !this.#isTrimmed) return;
    const rows = [];
    for (let i = 0; i < fresh.length; i += PER_ROW) {
      const entries = fresh.slice(i, i + PER_ROW);
      rows.push({ at: from + i + entries.length, json: JSON.stringify(entries), hasCommands: entries.some(isCommand) });
    }
    return { first: this.#first, last: Math.max(upTo, this.#first), bytes: this.#bytes, rows };
  }

  /** That change is stored. @param {LogChange} change */
  noteStored({ first, last }) {
    this.#stored = Math.max(this.#stored, last);
    if (first === this.#first) this.#isTrimmed = false;
    const spare = Math.min(this.#stored - this.#before, this.#tail.length - KEPT_ENTRIES);
    if (spare <= KEPT_ENTRIES) return;
    this.#tail.splice(0, spare);
    this.#before += spare;
  }
}
