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
    const [first = "", ...rest] = message.split("[key]");
    return this.errors.findLast((error) => {
      const text = textOf(error);
      const isMasked = () => rest.length > 0 && rest.every((part) => text.includes(part)) && (text.includes(first) || isBegun(first, text));
      return text !== "" && (message.includes(text) || isMasked());
    });
  }
}

/** How much of a text is compared. */
const LONGEST = 200;

/** Whether words of the package's own, which end in a colon, are followed by the beginning of a text. @param {string} words @param {string} text */
function isBegun(words, text) {
  for (let length = Math.min(text.length, LONGEST); length > 1; length--) if (words.endsWith(`: ${text.slice(0, length)}`)) return true;
  return false;
}
