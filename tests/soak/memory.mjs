// @ts-check
// Whether memory is flat. A host is measured when all its lives have ended and everything was collected, so what is left is what
// the package keeps: nothing should depend on how many lives there were.
//
// Compared are the medians of two stretches of the time: the second fifth to the third, when every kind of life has been seen
// and every function compiled, and the last fifth. A median is not moved by a window in which V8 compiled something or put
// off a collection. The allowance is what such noise was measured to be. One kilobyte that each life leaves behind is more than that after
// a few seconds.

/** How much more may be held at the end, in bytes. */
export const ALLOWED = { heap: 1_500_000, wasm: 1_048_576 };


/** The fewest windows that can be compared. */
export const FEWEST = 5;

/** @param {number[]} numbers */
export const median = (numbers) => numbers.toSorted((a, b) => a - b)[numbers.length >> 1] ?? 0;

/**
 * @param {{ heap: number, wasm: number, lives: number }[]} windows
 * @returns {{ name: "heap" | "wasm", middle: number, end: number, lives: number, flat: boolean }[]} nothing if there are too few windows to tell
 */
export function flatness(windows) {
  if (windows.length < FEWEST) return [];
  const fifth = windows.length / 5;
  const middle = windows.slice(Math.floor(fifth), Math.ceil(3 * fifth));
  const end = windows.slice(Math.floor(-fifth));
  return /** @type {const} */ (["heap", "wasm"]).map((name) => {
    const of = (/** @type {any[]} */ list) => median(list.map((window) => window[name]));
    const lives = median(end.map((window) => window.lives)) - median(middle.map((window) => window.lives));
    const grown = of(end) - of(middle);
    return { name, middle: of(middle), end: of(end), lives, flat: grown <= ALLOWED[name] };
  });
}
