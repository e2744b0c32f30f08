// @ts-check
// The wasm module in parts, for pages: a run begins as soon as the first is there, and the others are fetched while the
// request is on its way and the model thinks. What happens in between is in gaps.js.

import { kindOf, misuse } from "../shared.js";
import { NAME } from "./glue.js";
import { loadRest } from "./rest.js";

/** Loads a file; calls `begun` when it begins to arrive. @typedef {(begun?: () => void) => Promise<WebAssembly.Module>} Fetch */

/** What has been loaded of the module, and how to load what is missing. All instances share it. */
export class Parts {
  /** @param {unknown} first the part that the others need, or the whole @param {(() => Promise<WebAssembly.Module>)[]} later what is missing, in the order in which it is needed */
  constructor(first, later = []) {
    this.first = toModule(first);
    /** What has been loaded beside it. @type {WebAssembly.Module[]} */
    this.others = [];
    this.later = later;
    /** @type {Promise<void> | undefined} */
    this.loading = undefined;
  }

  get isWhole() {
    return this.later.length === 0;
  }

  /** Loads what is needed next. What could not be loaded is tried again when it is asked for again. */
  more() {
    return (this.loading ??= this.#next().finally(() => (this.loading = undefined)));
  }

  async #next() {
    const load = this.later[0];
    if (!load) return;
    this.others.push(toModule(await load()));
    this.later.shift();
  }
}

/**
 * Makes the loader of a module in parts. A server that does not have the first one may have the whole. What reads an answer
 * (and what requests of rarer kinds take) is asked for as soon as the first part begins to arrive: a round trip later there
 * is room for it on the network, and the first request is on its way. Everything else follows.
 * @param {{ first: Fetch, answer: Fetch, rest: Fetch, whole: Fetch }} files
 * @returns {() => Promise<Parts>}
 */
export function inParts({ first, answer, rest, whole }) {
  return async () => {
    /** @type {Promise<WebAssembly.Module> | undefined} */
    let ahead;
    // What fails now is told to whoever needs it.
    const begun = () => void (ahead ??= answer()).catch(() => {});
    const reading = () => {
      const loading = ahead ?? answer();
      ahead = undefined;
      return loading;
    };
    const last = async () => (await Promise.all([rest(), loadRest()]))[0];
    try {
      return new Parts(await first(begun), [reading, last]);
    } catch (error) {
      return new Parts(await whole().catch(() => Promise.reject(error)));
    }
  };
}

/** @param {any} source bytes, or a compiled module @returns {WebAssembly.Module} */
function toModule(source) {
  const { Module } = WebAssembly;
  // The host may have created it in another realm, as Next.js does for its edge runtime.
  const isModule = source?.[Symbol.toStringTag] === "WebAssembly.Module";
  if (!isModule && !source?.byteLength) throw wrong(source);
  const module = isModule ? Object.setPrototypeOf(source, Module.prototype) : new Module(source);
  if (Module.imports(module)[0]?.module !== NAME) throw misuse("the wasm file is not turnwheel.wasm, or that of another version");
  return module;
}

/** @param {unknown} given */
export function wrong(given) {
  return misuse(`\`use\` wants a function that gives the wasm file, as bytes or as a compiled module; got ${kindOf(given)}`);
}
