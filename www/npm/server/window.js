// @ts-check
// How much of an agent's events is kept: so many, and so many bytes.

/** @import { EventLog } from "../server.js" */
/** @import { Entry } from "./eventlog.js" */

export class Window {
  /** @param {EventLog} log @param {{ events: number, logBytes: number }} limits */
  constructor(log, { events, logBytes }) {
    this.log = log;
    this.maxEvents = events;
    this.maxBytes = logBytes;
    /** The bytes of each entry that was appended here, from the entry after `before` on. @type {number[]} */
    this.sizes = [];
    this.before = log.last;
    /** The bytes of what is kept. What an earlier instance appended is known in sum. */
    this.earlier = log.bytes ?? 0;
    this.bytes = this.earlier;
    /** The bytes of all that was ever appended here. */
    this.appended = 0;
  }

  /** Counts an entry that was appended. @param {Entry} entry */
  count({ data, history = "" }) {
    // A character has one or two bytes in memory, and an entry its own overhead.
    const size = 2 * (data.length + history.length) + 100;
    this.sizes.push(size);
    this.bytes += size;
    this.appended += size;
  }

  /** Drops the oldest if there is too much. More than needed goes at once: each time, all that stay are moved. */
  trim() {
    const { log, maxEvents } = this;
    if (log.last - log.first > maxEvents * 1.25) this.trimTo(log.last - maxEvents);
    if (this.bytes <= this.maxBytes) return;
    let { bytes, before } = this;
    bytes -= this.earlier;
    for (let i = 0; bytes > 0.75 * this.maxBytes; i++, before++) bytes -= this.sizes[i] ?? 0;
    this.trimTo(before);
  }

  /** Drops everything up to an id. @param {number} upTo */
  trimTo(upTo) {
    this.log.trim(upTo);
    if (upTo < this.before) return;
    this.bytes -= this.earlier;
    this.earlier = 0;
    for (const size of this.sizes.splice(0, upTo - this.before)) this.bytes -= size;
    this.before = upTo;
  }
}
