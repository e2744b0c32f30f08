// @ts-check
// Posted messages that nobody has read yet.

/** @import { Receipt } from "../index.js" */
/** @typedef {Awaited<Receipt>} Fate */

/** The fates of how many messages a snapshot tells. */
const MAX_SETTLED = 100;
const encoder = new TextEncoder();

/** The length of a text in UTF-8. @param {string} text */
export const bytesOf = (text) => encoder.encode(text).length;

export class Letters {
  constructor() {
    /** By id; with their text if another instance posted them. @type {Map<string, { text: string | undefined, bytes: number, from: number }>} */
    this.waiting = new Map();
    this.bytes = 0;
    /** What became of the newest of those that wait no more, by id. @type {Map<string, Fate>} */
    this.settled = new Map();
  }

  /** Notes what became of a message: a listener may come when the event that told it is forgotten. @param {string} id @param {Fate} fate */
  settle(id, fate) {
    this.settled.set(id, fate);
    if (this.settled.size > MAX_SETTLED) this.settled.delete(/** @type {string} */ (this.settled.keys().next().value));
  }

  /** What a snapshot says of them. @returns {{ openLetters: string[], receipts?: { [id: string]: Fate } }} */
  told() {
    return { openLetters: this.ids(), ...(this.settled.size > 0 && { receipts: Object.fromEntries(this.settled) }) };
  }

  /** @param {string} id @param {number} bytes @param {string} [text] @param {number} [from] the length of the history before it */
  add(id, bytes, text, from = Infinity) {
    this.waiting.set(id, { text, bytes, from });
    this.bytes += bytes;
  }

  /** Forgets a message. Returns whether it was waiting. @param {string} id */
  remove(id) {
    this.bytes -= this.waiting.get(id)?.bytes ?? 0;
    return this.waiting.delete(id);
  }

  ids() {
    return [...this.waiting.keys()];
  }

  /** The messages that another instance posted: nobody here has their receipts. */
  foreign() {
    return [...this.waiting].flatMap(([id, { text, from }]) => (text === undefined ? [] : { id, text, from }));
  }
}
