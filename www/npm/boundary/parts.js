// @ts-check
// The wasm module in parts, for pages: a run begins as soon as the first is there, and the others are fetched while the
// request is on its way and the model thinks. What happens in between is in gaps.js.

import { kindOf, misuse } from "../shared.js";
import { NAME } from "./glue.js";
import { loadRest } from "./rest.js";

/** @typedef {() => Promise<WebAssembly.Module>} Fetch */

/** What has been loaded of the module, and how to load what is missing. All instances share it. */
export class Parts {
  /**
   * @param {unknown} first the part that the others need, or the whole @param {unknown[]} others what has been loaded beside it
   * @param {(() => Promise<WebAssembly.Module[]>)[]} later what is missing, in the order in which it is needed
   */
  constructor(first, others = [], later = []) {
    this.first = toModule(first);
    this.others = others.map(toModule);
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
    const modules = await this.later[0]?.();
    this.others.push(...(modules ?? []).map(toModule));
    this.later.shift();
  }
}

/**
 * Makes the loader of a module in parts. A server that does not have the first ones may have the whole.
 * @param {{ first: Fetch, wires: Record<string, Fetch>, answer: Fetch, rest: Fetch, whole: Fetch }} files
 * @returns {(wire: string | undefined) => Promise<Parts>} which begins with what a request on this wire takes
 */
export function inParts({ first, wires, answer, rest, whole }) {
  return async (wire = "") => {
    const { [wire]: own, ...others } = wires;
    try {
      const [begin, ...beside] = await Promise.all([first, own].flatMap((fetch) => fetch?.() ?? []));
      const together = (/** @type {Fetch[]} */ fetches) => Promise.all(fetches.map((fetch) => fetch()));
      const last = async () => (await Promise.all([together([rest, ...Object.values(others)]), loadRest()]))[0];
      return new Parts(begin, beside, [() => together([answer]), last]);
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
