// @ts-check
// The wasm module in two halves, for pages: a run's first request leaves as soon as the first half is there
// (run/ahead.js), and the rest is fetched while the model thinks. No run begins before both are there.

/** @typedef {() => Promise<WebAssembly.Module>} Fetch */
/** The module, or both of its halves; another module has a script of its own. @typedef {{ module: WebAssembly.Module, rest?: WebAssembly.Module, bind?: typeof import("./glue.js").bind }} Parts */
/** Gets the first half once it is there. @typedef {(first: WebAssembly.Module) => void} Waiting */

/** @type {Set<Waiting>} */
const waiting = new Set();

/**
 * Makes the loader of a module in two halves. A server that has neither may have the whole.
 * @param {Fetch} first @param {Fetch} rest @param {Fetch} whole @returns {() => Promise<Parts>}
 */
export function inHalves(first, rest, whole) {
  return async () => {
    let module;
    try {
      module = await first();
    } catch (error) {
      return { module: await whole().catch(() => Promise.reject(error)) };
    }
    for (const work of waiting) work(module);
    return { module, rest: await rest() };
  };
}

/**
 * Waits for the first half, if one is being fetched. Returns a function that ends the waiting.
 * @param {Waiting} work
 */
export function whenFirst(work) {
  waiting.add(work);
  return () => void waiting.delete(work);
}
