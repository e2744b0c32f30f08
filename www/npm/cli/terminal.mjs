// @ts-check
// What the commands say in the terminal, and what stands on their command line.

import { parseArgs } from "node:util";

/** @param {string} text */
export function say(text) {
  console.log(harmless(text));
  return 0;
}

/** @param {string} text */
export function complain(text) {
  console.error(harmless(text));
  return 1;
}

/** The same where the command was called in a wrong way. @param {string} text */
export function refuse(text) {
  complain(text);
  return 2;
}

/**
 * A text of which the terminal makes nothing but letters: somebody else has written what is on a tape. An escape sequence would
 * change what stands above it, or the clipboard. Within JSON it says the same.
 * @param {string} text
 */
export function harmless(text) {
  return text.replace(/[\0-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** @param {unknown} error */
export const textOf = (error) => (error instanceof Error ? error.message : String(error));

/** One line of a text. @param {string} text @param {number} [most] letters */
export function short(text, most = 120) {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > most ? `${line.slice(0, most - 1)}…` : line;
}

/**
 * What stands on the command line; an unknown option is an error, which names it.
 * @param {string[]} args @param {string[]} texts options with a value @param {string[]} [flags] options without one
 * @returns {{ values: Record<string, any>, positionals: string[] }}
 */
export function parsed(args, texts, flags = []) {
  const options = [...texts.map((name) => [name, { type: "string" }]), ...flags.map((name) => [name, { type: "boolean" }]), ["help", { type: "boolean", short: "h" }]];
  try {
    return /** @type {any} */ (parseArgs({ args, allowPositionals: true, options: Object.fromEntries(options) }));
  } catch (error) {
    // The rest is about arguments that begin with a hyphen.
    throw new Error(textOf(error).split(/\. |\n/)[0]);
  }
}
