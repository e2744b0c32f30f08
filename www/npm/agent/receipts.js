// @ts-check
// The receipts of posted messages, until it is known what became of them.

/** @import { Receipt } from "../index.js" */
/** @typedef {Awaited<Receipt>} Fate */
/** @import { Waiting } from "../boundary/registration.js" */
/** @typedef {(fate: Fate) => void} Settle */

export class Receipts {
  constructor() {
    /** @type {Set<Settle>} */
    this.open = new Set();
    /** The same, by their number in the engine, with the letter. @type {Map<number, { settle: Settle, letter: Waiting }>} */
    this.byNumber = new Map();
    /** Those that waited for a run which was aborted. @type {Set<Settle>} */
    this.aborted = new Set();
  }

  /** A run was aborted: what waits stays in the queue, as long as somebody keeps it. */
  noteAbort() {
    this.aborted = new Set(this.open);
  }

  /**
   * Makes a receipt. `post` gets what the engine must be told; if it throws, there is no receipt.
   * @param {(receipt: { posted(id: number, letter: Waiting): void, refused(): void }) => void} post @returns {Receipt}
   */
  make(post) {
    /** @type {Settle} */
    let settle = () => {};
    const receipt = new Promise((/** @type {Settle} */ resolve) => (settle = resolve));
    post({
      posted: (id, letter) => void this.byNumber.set(id, { settle, letter }),
      refused: () => {
        this.open.delete(settle);
        settle({ delivered: false, reason: "run_ended" });
      },
    });
    this.open.add(settle);
    return receipt;
  }

  /** @param {number} id @param {Fate} fate */
  settle(id, fate) {
    const entry = this.byNumber.get(id);
    if (!entry) return;
    this.byNumber.delete(id);
    this.open.delete(entry.settle);
    entry.settle(fate);
  }

  /** Takes the letters back that were posted and not delivered: the engine that had them is gone. */
  takeLetters() {
    const letters = [...this.byNumber.values()].map(({ letter }) => letter);
    this.byNumber.clear();
    return letters;
  }

  /** Settles all open receipts. @param {Fate} fate @param {Fate} [ofAborted] of those that waited for a run which was aborted */
  settleAll(fate, ofAborted = fate) {
    for (const settle of this.open) settle(this.aborted.has(settle) ? ofAborted : fate);
    this.open.clear();
    this.byNumber.clear();
  }
}
