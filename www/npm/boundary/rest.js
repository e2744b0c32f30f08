// @ts-check
// The script that only a whole engine needs (../rest.js): what comes after the first answer, and the host's rules. It is a
// part like those of the wasm file: pages load it while the model thinks, others with the entry.

import { textOf } from "../shared.js";

/** @typedef {typeof import("../rest.js")} Rest */

/** There as soon as an engine is whole. @type {Rest} */
export let rest;

/** @param {Rest} module */
export function useRest(module) {
  rest = module;
}

/** Loads it, unless it is there. What could not be loaded is tried again when it is asked for again. @returns {Promise<void>} */
export async function loadRest() {
  if (rest) return;
  const module = await import("../rest.js").catch((cause) => {
    throw new Error(`the part of turnwheel that runs tools cannot be loaded: ${textOf(cause)}`, { cause });
  });
  useRest(module);
}
