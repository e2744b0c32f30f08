// @ts-check
// The history of an agent as it was after each event. It mostly grows: as long as it does, all its states are beginnings
// of one list. Where it changes otherwise, after a compaction for example, a new list begins.

/** @import { AgentMessage } from "../../index.js" */
/** From the event `n` on, the history was the beginning of `list`. @typedef {{ n: number, list: AgentMessage[], length: number }} Version */

export class HistoryVersions {
  constructor() {
    /** @type {Version[]} */
    this.versions = [{ n: 0, list: [], length: 0 }];
  }

  get last() {
    return /** @type {Version} */ (this.versions.at(-1));
  }

  /**
   * Notes how the history stands after an event. Returns the messages that were added at its end.
   * @param {number} n @param {readonly AgentMessage[]} messages
   * @param {boolean} isWhole whether all of it is compared, or only what changes when messages are appended
   * @returns {readonly AgentMessage[]}
   */
  note(n, messages, isWhole) {
    const { list, length } = this.last;
    const isKept = (/** @type {number} */ index) => messages[index] === list[index];
    const grows = messages.length >= length && (length === 0 || (isKept(length - 1) && isKept(0))) && !(isWhole && list.slice(0, length).some((_, index) => !isKept(index)));
    if (grows) return this.append(n, messages.slice(length));
    this.#set({ n, list: [...messages], length: messages.length });
    return [];
  }

  /** @param {number} n @param {readonly AgentMessage[]} added @returns {readonly AgentMessage[]} */
  append(n, added) {
    if (added.length === 0) return added;
    const { list, length } = this.last;
    const grown = list.length === length ? list : list.slice(0, length);
    for (const message of added) grown.push(message);
    this.#set({ n, list: grown, length: grown.length });
    return added;
  }

  /** @param {Version} version */
  #set(version) {
    if (this.last.n === version.n) this.versions.pop();
    this.versions.push(version);
  }

  /** The version that held after an event. @param {number} n @returns {Version} */
  at(n) {
    let [low, high] = [0, this.versions.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (/** @type {Version} */ (this.versions[middle]).n <= n) low = middle;
      else high = middle - 1;
    }
    return /** @type {Version} */ (this.versions[low]);
  }

  /** Forgets the versions before the one that held after an event. @param {number} n */
  forget(n) {
    this.versions.splice(0, this.versions.indexOf(this.at(n)));
  }
}
