// @ts-check
// The events of the agent that this tab owns. They are stored together with the checkpoint that goes with them, and nobody
// hears one before it is stored: so whoever takes over knows everything that any tab has heard.

/** @import { Agent } from "../index.js" */
/** @import { EventLogEntry } from "../server.js" */
/** @import { Lease, LogChange } from "../stores/lease.js" */
/** @import { KeptLog } from "../stores/locked.js" */

/** A piece of an answer. One that was interrupted is asked for again, so all but the first need no checkpoint. */
const DELTA = '{"type":"message_update"';
/** What a tool reports needs none either. */
const REPORT = '{"type":"tool_execution_update"';

export class StoredEvents {
  /** @param {Lease} lease @param {Agent} agent @param {KeptLog} kept */
  constructor(lease, agent, { first, entries }) {
    this.lease = lease;
    this.agent = agent;
    this.first = first;
    this.entries = entries;
    this.bytes = entries.reduce((sum, { data, history = "" }) => sum + 2 * (data.length + history.length), 0);
    /** The last event that is stored, and the last one that needs a checkpoint, or whose checkpoint is stored. */
    this.stored = this.needed = this.covered = this.last;
    this.isDrafted = false;
    /** @type {Promise<void> | undefined} */
    this.next = undefined;
    lease.log = { last: 0, take: (upTo) => this.#take(upTo), stored: (change, hasCheckpoint) => this.#noteStored(change, hasCheckpoint) };
    Object.defineProperty(lease.log, "last", { get: () => this.last });
  }

  get last() {
    return this.first + this.entries.length;
  }

  /** @param {EventLogEntry} entry */
  append(entry) {
    this.entries.push(entry);
    const isDelta = entry.data.startsWith(DELTA);
    if (isDelta ? !this.isDrafted : !entry.data.startsWith(REPORT)) this.needed = entry.id;
    this.isDrafted = isDelta;
  }

  /** @param {number} after @param {number} most */
  read(after, most) {
    return this.entries.slice(after - this.first, after - this.first + most);
  }

  /** @param {number} upTo */
  trim(upTo) {
    this.entries = this.entries.slice(upTo - this.first);
    this.first = upTo;
  }

  commands() {
    return this.entries.filter(({ type }) => type === "command" || type === "receipt");
  }

  /** Resolves when all of it is stored. What comes while something is being stored is stored together, after it. @returns {Promise<void>} */
  async sync() {
    if (this.stored >= this.last) return;
    return (this.next ??= this.lease.written().then(() => {
      this.next = undefined;
      if (this.stored >= this.last) return;
      return this.needed > this.covered ? this.lease.save(this.agent.checkpoint()) : this.lease.saveLog();
    }));
  }

  /** @param {number} upTo @returns {LogChange} */
  #take(upTo) {
    return { first: this.first, last: upTo, entries: this.read(Math.max(this.stored, this.first), Math.max(0, upTo - Math.max(this.stored, this.first))) };
  }

  /** @param {LogChange} change @param {boolean} hasCheckpoint */
  #noteStored({ last }, hasCheckpoint) {
    this.stored = Math.max(this.stored, last);
    if (hasCheckpoint) this.covered = Math.max(this.covered, last);
  }
}
