// @ts-check
// What the host's functions threw in a run: an error that the engine reports as a text gets the very object back,
// as its cause.

import { textOf } from "../shared.js";

/** @import { ErrorInfo } from "../index.js" */

const MAX_KEPT = 64;

export class Thrown {
  constructor() {
    /** @type {unknown[]} */
    this.errors = [];
  }

  clear() {
    this.errors = [];
  }

  /** @param {unknown} error */
  note(error) {
    if (this.errors.push(error) > MAX_KEPT) this.errors.shift();
  }

  /**
   * Finds the object that was thrown, by comparing messages.
   * @param {ErrorInfo} info
   */
  causeOf({ message }) {
    // If the message contained the API key, it was replaced.
    const parts = message.split("[key]");
    return this.errors.findLast((error) => {
      const text = textOf(error);
      return text !== "" && (message.includes(text) || (parts.length > 1 && parts.every((part) => text.includes(part))));
    });
  }
}
