// @ts-check
// The wasm module in parts, for pages: a run begins as soon as the first is there, and the others are fetched while the
// request is on its way and the model thinks. What happens in between is in gaps.js.

import { kindOf, misuse } from "../shared.js";
import { NAME } from "./glue.js";
import { loadRest } from "./rest.js";

/** Loads a file; calls `begun` when it begins to arrive. @typedef {(begun?: () => void) => Promise<WebAssembly.Module>} Fetch */

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
 * Makes the loader of a module in parts. A server that does not have the first ones may have the whole. What reads an answer
 * is asked for as soon as the first part begins to arrive: a round trip later there is room for it on the network, and the
 * first request is on its way. Then comes, in the same way, what requests of rarer kinds take; everything else follows.
 * @param {{ first: Fetch, wires: Record<string, Fetch>, answer: Fetch, answers: Record<string, Fetch>, requests: Fetch, rest: Fetch, whole: Fetch }} files
 * @returns {(wire: string | undefined) => Promise<Parts>} which begins with what a request on this wire takes
 */
export function inParts({ first, wires, answer, answers, requests, rest, whole }) {
  return async (wire = "") => {
    const { [wire]: own, ...others } = wires;
    const { [wire]: ownAnswer, ...otherAnswers } = answers;
    const rarer = stage([requests]);
    const reading = stage([answer, ownAnswer], rarer.begin);
    const all = stage([rest, ...Object.values(others), ...Object.values(otherAnswers)]);
    try {
      const [begin, ...beside] = await Promise.all([first(reading.begin), ...(own ? [own()] : [])]);
      const last = async () => (await Promise.all([all.take(), loadRest()]))[0];
      return new Parts(begin, beside, [reading.take, rarer.take, last]);
    } catch (error) {
      return new Parts(await whole().catch(() => Promise.reject(error)));
    }
  };
}

/**
 * Files that are needed together, and that may be asked for before they are.
 * @param {(Fetch | undefined)[]} fetches @param {() => void} [begun]
 */
function stage(fetches, begun) {
  /** @type {Promise<WebAssembly.Module[]> | undefined} */
  let ahead;
  const load = () => Promise.all(fetches.flatMap((fetch) => fetch?.(begun) ?? []));
  return {
    // What fails now is told to whoever needs it.
    begin: () => void (ahead ??= load()).catch(() => {}),
    take: () => {
      const loading = ahead ?? load();
      ahead = undefined;
      return loading;
    },
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
