// @ts-check
// Where the built package is for what runs in Node: the demo in the terminal, and what records its opening.

/** @typedef {import("./engine.js").Turnwheel} Turnwheel */

/** @returns {Promise<Turnwheel>} */
export function loadInNode() {
  // @ts-ignore: built, not checked in
  return import("../../pkg/entry/node.js");
}

/** @returns {Promise<typeof import("../npm/tape.js")>} */
export function loadTapeInNode() {
  // @ts-ignore: built, not checked in
  return import("../../pkg/tape.js");
}
