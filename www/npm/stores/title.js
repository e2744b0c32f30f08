// @ts-check
// The title of a conversation: the first words that a user wrote. It is stored with the checkpoint, so a list reads no checkpoint.

/** @import { Checkpoint } from "../index.js" */
/** @import { SealedCheckpoint } from "../stores.js" */

const MAX_LENGTH = 80;
/** Below this share of the length a title is cut within a word: languages without blanks have few words. */
const MIN_SHARE = 0.5;
/** So much of a message is looked at: one may hold a file. */
const LOOKED_AT = 1_000;

/** The title of an agent that is stored again and again: its messages are read only if one of those that decide it has changed. */
export class Title {
  #found = { text: "", at: Infinity };

  /** @param {string[]} messages as JSON @param {number} from the first one that is new */
  of(messages, from) {
    if (from <= this.#found.at) this.#found = find(messages, JSON.parse);
    return this.#found.text;
  }
}

/** @param {Checkpoint | SealedCheckpoint} checkpoint one that is sealed shows no messages */
export const titleOf = (checkpoint) => find(/** @type {Partial<Checkpoint>} */ (checkpoint).messages ?? [], (message) => message).text;

/** @template T @param {readonly T[]} messages @param {(message: T) => unknown} read */
function find(messages, read) {
  for (const [at, message] of messages.entries()) {
    const text = shortened(textOf(read(message)));
    if (text !== "") return { text, at };
  }
  return { text: "", at: Infinity };
}

/** What a user has written in a message. @param {any} message @returns {string} */
function textOf(message) {
  if (message?.role !== "user") return "";
  const { content } = message;
  if (typeof content === "string") return content;
  return Array.isArray(content) ? content.map((block) => (typeof block?.text === "string" ? block.text : "")).join(" ") : "";
}

/** The first words, on one line. @param {string} text */
function shortened(text) {
  // Databases store no zeros and no halves of surrogate pairs.
  const line = text.trimStart().slice(0, LOOKED_AT).replace(/[\s\p{Cc}\p{Cs}]+/gu, " ").trim();
  if (line.length <= MAX_LENGTH) return line;
  const cut = line.slice(0, MAX_LENGTH);
  const end = cut.lastIndexOf(" ");
  const words = end > MIN_SHARE * MAX_LENGTH ? cut.slice(0, end) : cut.slice(0, -1).replace(/\p{Cs}$/u, "");
  return `${words}…`;
}
