// @ts-check
// The one place that knows where the built package is. `cargo xtask demo` serves this folder at `/` and the
// package at `/pkg/`; in the repository the package is built into `pkg/` at the root.

/** @typedef {typeof import("../npm/index.js")} Turnwheel */

/** @typedef {typeof import("../npm/stores.js")} Stores */

/** @returns {Promise<Stores>} */
export function loadStores() {
  // @ts-ignore: built, not checked in
  return import("./pkg/stores.js");
}

/** @returns {Promise<Turnwheel>} */
export function loadInPage() {
  // @ts-ignore: built, not checked in
  return import("./pkg/entry/web.js");
}

/** @returns {Promise<Turnwheel>} */
export function loadInNode() {
  // @ts-ignore: built, not checked in
  return import("../../pkg/entry/node.js");
}

/** What both demos tell every model. */
export const SYSTEM_PROMPT = "You are the agent of a small demonstration. Use the tools for everything they can do, several in one answer where they do not depend on each other, and answer from their results. Be short and plain.";
