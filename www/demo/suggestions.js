// @ts-check
// Suggestions of what to ask, to click.

/** @typedef {import("./trace.js").Call} Call */

/** @type {readonly { text: string, shows: string }[]} */
export const EXAMPLES = [
  { text: "What is 17*23, and what time is it in Oslo?", shows: "two tools at the same time" },
  { text: "Count the primes below 5 million", shows: "a slow tool: steer it, stop it" },
  { text: "Convert 26.2 miles to km, then divide that by 4.5", shows: "a second turn that needs the first" },
  { text: "What is 6*7? And rename this page to Turning", shows: "a tool that asks you first: reload while it waits" },
  { text: "How does steering work, and what is a checkpoint?", shows: "search in a small library" },
  { text: "What is 10 / (5 - 5), and what time is it in Olso?", shows: "tools that fail, in words" },
];

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
 * @returns {string[]}
 */
export function suggestionsFor(isRunning, calls) {
  if (isRunning) return ["Stop that. What time is it in Lima?", "Also: what is 2^16?"];
  const cut = calls.some(({ state }) => state === "cut") ? ["Go on"] : [];
  const next = [...new Set(calls.map(({ toolName }) => toolName))].reverse().flatMap((name) => NEXT.get(name) ?? []);
  return [...cut, ...next, "Count the primes below 5 million", "What can you do?"].slice(0, 3);
}
