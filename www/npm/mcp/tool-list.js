// @ts-check
// A list of tools that somebody else changes: a server of MCP, or the page. It is read again when it changes, by one reading at a
// time, and whoever listens hears of what it has become.

/** @import { ToolDefinition } from "../index.js" */

/** How often in a row a list is read that changes again and again. */
const MOST_READINGS = 5;
/** What comes after that waits: then the list is read once in this time. */
const PAUSE_MS = 1_000;

export class ToolList {
  constructor() {
    /** @type {ToolDefinition[]} */
    this.tools = [];
    /** @type {boolean} */
    this.isDisposed = false;
    /** @type {Set<(tools: ToolDefinition[]) => void>} */
    this.listeners = new Set();
    this.isStale = false;
    /** How many readings may begin at once, and when that was counted. */
    this.room = MOST_READINGS;
    this.countedAt = 0;
    /** @type {Promise<void> | undefined} */
    this.refreshing = undefined;
    /** While a list that changes whenever it is read is not read again. @type {ReturnType<typeof setTimeout> | undefined} */
    this.pause = undefined;
    /** Hears why a list that has changed could not be read. @type {(error: unknown) => void} */
    this.unread = () => {};
  }

  [Symbol.iterator]() {
    return this.tools[Symbol.iterator]();
  }

  /** @param {(tools: ToolDefinition[]) => void} listener */
  onChange(listener) {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }

  /** Reads the list. A call during a reading waits for another one, so that it sees the latest list. @returns {Promise<void>} */
  refresh() {
    this.isStale = true;
    return (this.refreshing ??= this.#readAll());
  }

  /** The list has changed, as its owner says. @param {(error: unknown) => void} report hears why it could not be read */
  changed(report) {
    this.isStale = true;
    this.unread = report;
    if (this.pause) return;
    if (!this.refreshing && this.#isTooOften()) this.#readLater();
    else this.refresh().catch(report);
  }

  /** Whether the list was read so often of late that the next reading waits. */
  #isTooOften() {
    const now = performance.now();
    this.room = Math.min(MOST_READINGS, this.room + (now - this.countedAt) / PAUSE_MS);
    this.countedAt = now;
    return this.room < 1;
  }

  #readLater() {
    if (this.isDisposed) return;
    clearTimeout(this.pause);
    this.pause = setTimeout(() => {
      this.pause = undefined;
      if (this.isStale && !this.isDisposed) this.refresh().catch(this.unread);
    }, PAUSE_MS);
    /** @type {any} */ (this.pause).unref?.();
  }

  async #readAll() {
    try {
      for (let reading = 1; this.isStale; reading++) {
        // What has been read counts; the owner's next change is heard of later.
        const isTooOften = this.#isTooOften();
        if (isTooOften && reading > 1) return this.#readLater();
        this.room = Math.max(0, this.room - 1);
        this.isStale = false;
        try {
          await this.readOnce();
        } catch (error) {
          // The list changed once more while this reading failed: the next one may be good.
          if (!this.isStale || !this.isConnected || this.#isTooOften()) throw error;
        }
      }
    } finally {
      this.refreshing = undefined;
    }
  }

  /** Nobody hears of the list any more. Returns whether it was open until now. */
  close() {
    const wasOpen = !this.isDisposed;
    this.isDisposed = true;
    clearTimeout(this.pause);
    this.listeners.clear();
    return wasOpen;
  }

  /** Whether another reading may succeed. */
  get isConnected() {
    return true;
  }

  /** Reads the list, and takes it over. @returns {Promise<void>} */
  async readOnce() {}

  /** Takes tools over, if they are others than before. @param {ToolDefinition[]} tools @param {(error: unknown) => void} report hears of listeners that fail */
  replace(tools, report) {
    if (tools.length === this.tools.length && tools.every((definition, i) => definition === this.tools[i])) return;
    this.tools = tools;
    for (const listener of [...this.listeners]) (async () => listener(tools))().catch(report);
  }
}
