// @ts-check
// Suggestions of what to ask, to click.

/** @typedef {import("./trace.js").Call} Call */

/** The question that stands in the box when the page opens, and that the recorded run answers. */
export const OPENING = "What is 17*23, what time is it in Oslo, and convert 26.2 miles to km";

/** Maps a tool to what one could ask next. @type {Map<string, string[]>} */
const NEXT = new Map([
  ["calculator", ["Take the square root of that"]],
  ["clock", ["And in Reykjavik?"]],
  ["convert_units", ["And in feet?", "Multiply that by 2"]],
  ["search_library", ["What does the library say about coffee?"]],
  ["count_primes", ["And below 100,000?"]],
]);

/**
 * Returns up to three things to say that fit the situation.
 *
 * @param {boolean} isRunning
 * @param {readonly Call[]} calls of the last run
 * @param {boolean} [hasTools] whether whoever answers can use tools
 * @returns {string[]}
 */
export function suggestionsFor(isRunning, calls, hasTools = true) {
  if (!hasTools) return isRunning ? ["Shorter, please."] : ["Tell me a very short story", "Say it in other words"];
  if (isRunning) return ["Stop that. What time is it in Lima?", "Also: what is 2^16?"];
  const cut = calls.some(({ state }) => state === "cut") ? ["Go on"] : [];
  const next = [...new Set(calls.map(({ toolName }) => toolName))].reverse().flatMap((name) => NEXT.get(name) ?? []);
  return [...cut, ...next, "Count the primes below 5 million", "What can you do?"].slice(0, 3);
}
