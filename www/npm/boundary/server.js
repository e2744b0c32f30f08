// @ts-check
// The server engine: the whole, with tapes and steps. It is loaded for agents that are recorded or have `host.step`, and for
// tapes that are played; no page loads it otherwise.

import { Engine, fetched, loadRest, Scope } from "../core.js";
import { common, complain, fromEngine, kindOf, misuse, textOf } from "../shared.js";
import { serverAddress } from "../server-address.js";
import { bind } from "./server-glue.js";

/** @import { Calls } from "./server-glue.js" */
/** @import { Parts } from "./parts.js" */
/** @import { Registration } from "./registration.js" */
/** @typedef {import("./engine.js").ServerSource} ServerSource */

/** @type {WebAssembly.Module | undefined} */
let module;
/** @type {Promise<void> | undefined} */
let loading;
/** What the caller gave. @type {ServerSource | undefined} */
let given;

/**
 * Says where `turnwheel-server.wasm` comes from, for hosts without files and `fetch`.
 * @param {ServerSource} source
 */
export function use(source) {
  if (typeof source !== "function") throw misuse(`\`use\` wants a function that gives the wasm file, as bytes or as a compiled module; got ${kindOf(source)}`);
  given = source;
  module = undefined;
  loading = undefined;
}

/** Loads the module. @param {ServerSource} [fallback] where it comes from if neither the caller nor the entry has said so */
export async function ready(fallback = () => fetched(serverAddress())) {
  if (module) return;
  try {
    await (loading ??= Promise.all([bytes(fallback), loadRest()]).then(async ([source]) => {
      module = isModule(source) ? source : await WebAssembly.compile(/** @type {BufferSource} */ (source));
    }));
  } catch (error) {
    loading = undefined;
    throw fromEngine(error);
  }
}

/** @param {ServerSource} fallback */
async function bytes(fallback) {
  if (given) return given();
  try {
    return await (/** @type {ServerSource | undefined} */ (common.serverSource) ?? fallback)();
  } catch (cause) {
    throw new Error(`turnwheel-server.wasm, the engine of agents that are recorded or have \`host.step\`, cannot be read: ${textOf(cause)}; copy it there, or say with \`use\` of turnwheel/tape or turnwheel/durable where it is; on Cloudflare Workers that is what an import of turnwheel/turnwheel-server.wasm gives`, { cause });
  }
}

/** @param {unknown} source @returns {source is WebAssembly.Module} */
function isModule(source) {
  // The host may have created it in another realm.
  return /** @type {{ [Symbol.toStringTag]?: string }} */ (source)[Symbol.toStringTag] === "WebAssembly.Module";
}

/** Whether the module is there. */
export const isReady = () => module !== undefined;

/** The compiled module. @returns {WebAssembly.Module} */
export function serverModule() {
  if (!module) throw misuse("the module of turnwheel/tape is not loaded yet: `await ready()` first");
  return module;
}

/**
 * A recorder of an agent in an instance.
 * @typedef {{ glue: Calls, number: number, recorder: WeakRef<{ look(): void }> }} Attached
 */

/** Every so many calls it is looked how much the recorders have written: a listener of each event would cost more than they do. */
const OFTEN = 16;

/** Agents that share an instance of the server engine. */
export class ServerScope extends Scope {
  /** The recorders in it, held weakly: an agent that nobody holds is forgotten, and its recorder with it. @type {Set<Attached>} */ attached = new Set();
  /** How many readers want each line as it comes. */
  readers = 0;
  /** @override */ isServer = true;
  #calls = 0;
  #looks = false;

  /** After each call in which something may have been written. */
  #called() {
    if (this.attached.size === 0 || this.#looks || (this.readers === 0 && ++this.#calls % OFTEN !== 0)) return;
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
    // It has no parts and no gaps, and its calls are those of the engine and some more.
    const whole = /** @type {Parts} */ ({ first: serverModule(), others: /** @type {WebAssembly.Module[]} */ ([]), isWhole: true });
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

/** All agents in the server engine that are not isolated share an instance. */
const shared = new ServerScope();

/**
 * Chooses the server engine for an agent, unless it is in it. What an agent takes is chosen at its first run: one that has run in
 * the engine of pages stays there, and so does one that runs inside a call of such an agent.
 * @param {Registration} registration @param {string} why what needs it @param {string} wayOut
 * @returns {ServerScope}
 */
export function enterServer(registration, why, wayOut) {
  if (registration.scope.isServer) return /** @type {ServerScope} */ (registration.scope);
  if (registration.hasRun) throw misuse(`${why} needs the server engine, and an agent's engine is chosen at its first run: ${wayOut}`);
  if (registration.isInside) throw misuse(`${why} needs the server engine, and an agent that runs inside a call lives in the engine of the agent around it: do the same there, or set \`isolate: true\` here`);
  // A restored agent is in the engine of pages before its first run.
  registration.release();
  if (registration.handle !== 0) throw misuse(`${why} needs the server engine, and messages wait in the queue of this agent: do it before you post any`);
  return (registration.scope = registration.core.options.isolate ? new ServerScope() : shared);
}
