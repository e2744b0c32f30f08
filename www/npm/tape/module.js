// @ts-check
// The module with the recorder and the replay: where it comes from, and the instances of it. Agents that are recorded live in
// one, tapes are played in another.

import { Engine, loadRest, Scope } from "../core.js";
import { complain, fromEngine, kindOf, misuse } from "../shared.js";
import { bind } from "../boundary/tape-glue.js";
import { fetched } from "../fetched.js";
import { tapeAddress } from "../tape-address.js";

/** @import { Calls } from "../boundary/tape-glue.js" */
/** @import { Parts } from "../boundary/parts.js" */
/** @typedef {BufferSource | WebAssembly.Module} Source */

/** @type {WebAssembly.Module | undefined} */
let module;
/** @type {Promise<void> | undefined} */
let loading;
/** @type {() => Source | Promise<Source>} */
let load = fromBesides;
/** The instance in which tapes are played. @type {Calls | undefined} */
let player;

/**
 * Says where `turnwheel-tape.wasm` comes from, for hosts without files and `fetch`, such as Workers.
 * @param {() => Source | Promise<Source>} source
 */
export function use(source) {
  if (typeof source !== "function") throw misuse(`\`use\` wants a function that gives the wasm file, as bytes or as a compiled module; got ${kindOf(source)}`);
  load = source;
  module = undefined;
  loading = undefined;
}

/** Loads the module. */
export async function ready() {
  if (module) return;
  try {
    await (loading ??= Promise.all([load(), loadRest()]).then(async ([source]) => {
      module = isModule(source) ? source : await WebAssembly.compile(/** @type {BufferSource} */ (source));
    }));
  } catch (error) {
    loading = undefined;
    throw fromEngine(error);
  }
}

/** @param {Source} source @returns {source is WebAssembly.Module} */
function isModule(source) {
  // The host may have created it in another realm.
  return /** @type {{ [Symbol.toStringTag]?: string }} */ (source)[Symbol.toStringTag] === "WebAssembly.Module";
}

/** @returns {Source | Promise<Source>} */
function fromBesides() {
  const fs = typeof process === "undefined" ? undefined : process.getBuiltinModule?.("node:fs");
  return fs ? fs.readFileSync(tapeAddress) : fetched(tapeAddress);
}

/** Whether the module is there. */
export const isReady = () => module !== undefined;

/** The calls that play tapes. @returns {Calls} */
export function calls() {
  if (!module) throw misuse("the module of turnwheel/tape is not loaded yet: `await ready()` first");
  return (player ??= bind(module, []).calls);
}

/** The instance broke: the next tape is played in a fresh one. */
export function forgetPlayer() {
  player = undefined;
}

/**
 * A recorder of an agent in an instance.
 * @typedef {{ glue: Calls, number: number, recorder: WeakRef<{ look(): void }> }} Attached
 */

/** Every so many calls it is looked how much the recorders have written: a listener of each event would cost more than they do. */
const OFTEN = 16;

/** Where agents live that are recorded. */
export class TapeScope extends Scope {
  /** The recorders in it, held weakly: an agent that nobody holds is forgotten, and its recorder with it. @type {Set<Attached>} */ attached = new Set();
  /** How many readers want each line as it comes. */
  readers = 0;
  #calls = 0;
  #looks = false;

  /** After each call in which something may have been written. */
  #called() {
    if (this.#looks || (this.readers === 0 && ++this.#calls % OFTEN !== 0)) return;
    this.#looks = true;
    queueMicrotask(() => {
      this.#looks = false;
      for (const attached of this.attached) {
        const recorder = attached.recorder.deref();
        try {
          if (recorder) recorder.look();
          else this.leave(attached);
        } catch (error) {
          complain("turnwheel: the tape may have a gap, because its engine broke", error);
        }
      }
    });
  }

  /** A recorder writes no more there. @param {Attached} attached */
  leave(attached) {
    if (this.attached.delete(attached)) attached.glue.record_end(attached.number);
  }

  /** @override @returns {Engine} */
  ready() {
    if (!module) throw misuse("the module of turnwheel/tape is not loaded yet: `await ready()` first");
    // It has no parts and no gaps, and its calls are those of the engine and some more.
    const whole = /** @type {Parts} */ ({ first: module, others: /** @type {WebAssembly.Module[]} */ ([]), isWhole: true });
    const watched = (/** @type {Parameters<typeof bind>} */ ...given) => {
      const bound = bind(...given);
      const { run_poll } = bound.calls;
      bound.calls.run_poll = (handle, slot, size, now) => {
        const control = run_poll(handle, slot, size, now);
        this.#called();
        return control;
      };
      return bound;
    };
    return (this.engine ??= new Engine(whole, this, watched));
  }
}
