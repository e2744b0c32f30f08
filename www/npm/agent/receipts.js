// @ts-check
// The receipts of posted messages, until it is known what became of them.

/** @import { Receipt } from "../index.js" */
/** @typedef {Awaited<Receipt>} Fate */
/** @typedef {(fate: Fate) => void} Settle */

export class Receipts {
  constructor() {
    /** @type {Set<Settle>} */
    this.open = new Set();
    /** The same, by their number in the engine. @type {Map<number, Settle>} */
    this.byNumber = new Map();
  }

  /**
   * Makes a receipt. `post` gets what the engine must be told; if it throws, there is no receipt.
   * @param {(receipt: { posted(id: number): void, refused(): void }) => void} post @returns {Receipt}
   */
  make(post) {
    /** @type {Settle} */
    let settle = () => {};
    const receipt = new Promise((/** @type {Settle} */ resolve) => (settle = resolve));
    post({
      posted: (id) => void this.byNumber.set(id, settle),
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
    const settle = this.byNumber.get(id);
    if (!settle) return;
    this.byNumber.delete(id);
    this.open.delete(settle);
    settle(fate);
  }

  /** Settles all open receipts in the same way. @param {Fate} fate */
  settleAll(fate) {
    for (const settle of this.open) settle(fate);
    this.open.clear();
    this.byNumber.clear();
  }
}
