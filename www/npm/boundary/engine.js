// @ts-check
// The wasm instance: how it is created, and how its outbox is read. The layout is that of ../engine/src/outbox/mod.rs.

import { AgentError, broken, kindOf, misuse, textOf } from "../shared.js";
import { NAME, bind } from "./glue.js";

/** @import { Parts } from "./halves.js" */
/** @typedef {BufferSource | WebAssembly.Module} Source */
/** @typedef {() => Source | Promise<Source | Parts>} Loader */

/** @type {Loader | undefined} */
let loader;
/** @type {Engine | undefined} */
let engine;
/** @type {Promise<Engine> | undefined} */
let loading;

/**
 * Sets where the wasm file comes from. Nothing is loaded before the first run.
 * @param {Loader} load
 * @param {boolean} [isEntry] whether an entry file calls; it does not override a loader that was set already
 */
export function use(load, isEntry) {
  if (typeof load !== "function") throw wrong(load);
  if (!isEntry || !loader) loader = load;
}

/** @param {unknown} given */
function wrong(given) {
  return misuse(`\`use\` wants a function that gives the wasm file, as bytes or as a compiled module; got ${kindOf(given)}`);
}

/**
 * Returns the engine: at once if its bytes are available synchronously, otherwise as a promise.
 * @returns {Engine | Promise<Engine>}
 */
export function getEngine() {
  if (engine) return engine;
  if (loading) return loading;
  if (!loader) throw new Error("turnwheel/slim has no wasm file yet: call use(() => bytes) first");
  const source = /** @type {any} */ (loader());
  if (!source?.then) return (engine = new Engine(source));
  const promise = (loading = /** @type {Promise<Engine>} */ (source.then(begin)));
  const loaded = () => void (loading = undefined);
  promise.then(loaded, loaded);
  return promise;
}

/** @param {any} loaded the whole, or both halves */
function begin(loaded) {
  engine = loaded?.module ? new Engine(loaded.module, loaded.rest) : new Engine(loaded);
  return engine;
}

/**
 * Gives up an instance in which something panicked: all of its runs end, and the next run
 * creates a fresh instance.
 * @param {Engine} instance @param {unknown} error
 */
export function discardInstance(instance, error) {
  instance.dead = true;
  if (engine === instance) engine = undefined;
  const failure = AgentError.isInstance(error) ? error : broken(`the engine failed: ${textOf(error)}`, error);
  for (const run of [...instance.runs]) run.deref()?.crash(failure);
}

/**
 * Detects an instance that was killed while it worked. Called when no frame of ours is on the stack, so a
 * busy instance must have been terminated mid-call, as Workers do to an object that aborts itself inside a
 * rule. Other runs share the instance, so it is given up.
 */
export function discardIfKilled() {
  if (!engine?.busy) return;
  discardInstance(engine, new AgentError({ code: "internal", message: "the host stopped the engine in the middle of its work", retryable: false }));
}

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** One wasm instance and its memory. */
export class Engine {
  /** @param {any} source bytes, or a compiled module @param {WebAssembly.Module} [rest] if the source is the first half */
  constructor(source, rest) {
    const { Module } = WebAssembly;
    // The host may have created it in another realm, as Next.js does for its edge runtime.
    const isModule = source?.[Symbol.toStringTag] === "WebAssembly.Module";
    if (!isModule && !source?.byteLength) throw wrong(source);
    const module = isModule ? Object.setPrototypeOf(source, Module.prototype) : new Module(source);
    for (const part of rest ? [module, rest] : [module]) {
      if (Module.imports(part)[0]?.module !== NAME) throw misuse("the wasm file is not turnwheel.wasm, or that of another version");
    }
    /**
     * The runs in progress, held weakly: a run that waits for somebody may be collected.
     * @type {Set<WeakRef<{ crash(error: unknown): void }>>}
     */
    this.runs = new Set();
    /** Whether something panicked in it. */
    this.dead = false;
    /** Whether it is working right now: a rule that it calls must not start anything else in it. */
    this.busy = false;
    this.words = new Uint32Array();
    this.bytes = new Uint8Array();
    this.decode = decoder.decode;
    /** How many bytes may be written at `room`. */
    this.size = 0;
    this.room = 0;
    /** The text of the batch; `kind` and `number` are those of its first entry. */
    this.text = "";
    this.kind = 0;
    this.number = 0;
    this.glue = bind(module, rest);
    this.memory = this.glue.memory;
    this.control = this.glue.control() >>> 2;
  }

  /** Views are detached when the memory grows. */
  refresh() {
    if (this.bytes.length === 0) {
      this.words = new Uint32Array(this.memory.buffer);
      this.bytes = new Uint8Array(this.memory.buffer);
    }
  }

  /**
   * Copies the outbox, because a listener may call back into the engine and change the memory. Returns the
   * table, three numbers per entry; or nothing if there is a single entry, which is common.
   * @returns {number[] | undefined}
   */
  read() {
    this.refresh();
    const { words, control } = this;
    const at = words[control] >>> 2;
    const length = words[control + 1];
    this.text = this.textAt(words[control + 2], words[control + 3]);
    this.kind = words[at];
    this.number = words[at + 1];
    if (length === 3) return;
    // Most tables hold a dozen or two numbers: an array is faster to create than a typed array, whose memory
    // burdens the garbage collector.
    const table = [];
    for (let i = at; i < at + length; i++) table.push(words[i]);
    return table;
  }

  /**
   * Decodes a text. Short ASCII texts are decoded by hand, which is cheaper than the decoder.
   * @param {number} at @param {number} length
   */
  textAt(at, length) {
    if (length === 0) return "";
    const { bytes } = this;
    if (length <= 12) {
      let text = "";
      let i = at;
      for (; i < at + length; i++) {
        const byte = bytes[i];
        if (byte > 127) break;
        text += String.fromCharCode(byte);
      }
      if (i === at + length) return text;
    }
    return this.decode.call(decoder, bytes.subarray(at, at + length));
  }

  /**
   * Writes bytes of a response where the engine expects them.
   * @param {Uint8Array[]} chunks @param {number} size their total length
   */
  write(chunks, size) {
    if (size > this.size) {
      this.size = Math.max(size, 1 << 16);
      this.room = this.glue.input(this.size) >>> 0;
    }
    this.refresh();
    let at = this.room;
    for (const bytes of chunks) {
      this.bytes.set(bytes, at);
      at += bytes.length;
    }
  }
}
