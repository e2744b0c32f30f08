// @ts-check
// A list of tools that somebody else changes: a server of MCP, or the page. It is read again when it changes, by one reading at a
// time, and whoever listens hears of what it has become.

/** @import { ToolDefinition } from "../index.js" */

export class ToolList {
  constructor() {
    /** @type {ToolDefinition[]} */
    this.tools = [];
    /** @type {boolean} */
    this.isDisposed = false;
    /** @type {Set<(tools: ToolDefinition[]) => void>} */
    this.listeners = new Set();
    this.isStale = false;
    /** @type {Promise<void> | undefined} */
    this.refreshing = undefined;
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

  async #readAll() {
    try {
      while (this.isStale) {
        this.isStale = false;
        try {
          await this.readOnce();
        } catch (error) {
          // The list changed once more while this reading failed: the next one may be good.
          if (!this.isStale || !this.isConnected) throw error;
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
