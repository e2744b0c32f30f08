// @ts-check
// The wasm instance: how it is created, and how its outbox is read. The layout is that of ../engine/src/outbox/mod.rs.

import { AgentError, broken, common, complain, fromEngine, textOf } from "../shared.js";
import { lengthOf } from "./bytes.js";
import { Gaps, MISSING } from "./gaps.js";
import { bind } from "./glue.js";
import { Parts, wrong } from "./parts.js";
import { late, loadRest } from "./rest.js";

/** @import { Registration } from "./registration.js" */
/** @import { Driver } from "../run/driver.js" */
/** @typedef {BufferSource | WebAssembly.Module} WasmSource */
/** @typedef {() => WasmSource | Promise<WasmSource | Parts>} Loader */

/** An instance with more memory than this, and than what its agents brought along, has grown. */
const GROWN = 16 * 2 ** 20;

/** @type {Loader | undefined} */
let loader;
/** @type {Parts | undefined} */
let compiled;
/** @type {Promise<Parts> | undefined} */
let loading;

/**
 * Sets where the wasm file comes from. Nothing is loaded before the first run.
 * @param {Loader} load
 * @param {boolean} [isEntry] whether an entry file calls; it does not override a loader that was set already
 */
export function use(load, isEntry) {
  if (typeof load !== "function") throw wrong(load);
  if (isEntry && loader) return;
  loader = load;
  compiled = undefined;
}

/** @typedef {() => WasmSource | Promise<WasmSource>} ServerSource */

/** Says where the server engine comes from, where an entry knows better than to look beside the script. @param {ServerSource} load */
export function useServer(load) {
  common.serverSource = load;
}

/** Returns the compiled file, which all instances share. @returns {Parts | Promise<Parts>} */
function getModule() {
  if (compiled) return compiled;
  if (loading) return loading;
  if (!loader) throw new Error("turnwheel/slim has no wasm file yet: call use(() => bytes) first");
  const source = loader();
  if (!(/** @type {any} */ (source)?.then) && late.rest) return (compiled = new Parts(source));
  const promise = (loading = awaited(source));
  const loaded = () => void (loading = undefined);
  promise.then(loaded, loaded);
  return promise;
}

/** @param {ReturnType<Loader>} source @returns {Promise<Parts>} */
async function awaited(source) {
  const given = await source;
  const parts = given instanceof Parts ? given : new Parts(given);
  // Where parts are missing, it comes with the last of them.
  if (parts.isWhole) await loadRest();
  return (compiled = parts);
}

/** Agents that share an instance: one at a time, which is replaced when it dies, and when it has grown. */
export class Scope {
  constructor() {
    /** @type {Engine | undefined} */
    this.engine = undefined;
    /** Whether it is the server engine; see server.js. */
    this.isServer = false;
  }

  /** Returns the engine: at once if its bytes are available synchronously, otherwise as a promise. @returns {Engine | Promise<Engine>} */
  ready() {
    if (this.engine) return this.engine;
    const module = getModule();
    const start = (/** @type {Parts} */ parts) => (this.engine ??= new Engine(parts, this));
    return module instanceof Promise ? module.then(start) : start(module);
  }
}

/** The scope of all agents that are not isolated. */
export const shared = new Scope();

/** The engine of that scope. */
export const getEngine = () => shared.ready();

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** One wasm instance and its memory. */
export class Engine {
  /** @param {Parts} parts @param {Scope} scope whose agents live in it @param {typeof bind} own the script of the module, if it is another one */
  constructor(parts, scope, own = bind) {
    this.parts = parts;
    this.scope = scope;
    /**
     * The runs in progress, held weakly: a run that waits for somebody may be collected.
     * @type {Set<WeakRef<Driver>>}
     */
    this.runs = new Set();
    /**
     * The agents that are registered in it, by their numbers.
     * @type {Map<number, WeakRef<Registration>>}
     */
    this.agents = new Map();
    /** By how many bytes it grew when they were. */
    this.weight = 0;
    /** Whether something panicked in it. */
    this.dead = false;
    /** Why it is dead. @type {AgentError | undefined} */
    this.failure = undefined;
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
    const bound = own(parts.first, parts.others);
    this.memory = bound.memory;
    this.control = bound.calls.control() >>> 2;
    this.calls = bound.calls;
    /** What is missing, as long as parts are. Nobody else asks it. */
    this.gaps = parts.isWhole ? undefined : new Gaps(this, bound);
    this.glue = this.gaps?.calls ?? bound.calls;
  }

  // ---- parts that are not there yet: a whole engine does everything at once, and waits for nothing

  /** Whether all parts are there. */
  get isWhole() {
    return this.gaps === undefined;
  }

  /** Whether something waits for a part, and must come before everything else. */
  get isHeld() {
    return this.gaps?.isHeld === true;
  }

  /** Does something when more is there. Returns whether it does: a whole engine does not. @param {() => void} work */
  hold(work) {
    const { gaps } = this;
    gaps?.hold(work);
    return gaps !== undefined;
  }

  /** Does something that may need what is not there. Returns whether it could. @param {() => void} work */
  tries(work) {
    try {
      work();
      return true;
    } catch (error) {
      if (error !== MISSING) throw error;
      return false;
    }
  }

  /** A call failed: it is made again when more is there, or it is the end of the instance. @param {unknown} error @param {() => void} again */
  failed(error, again) {
    if (error === MISSING) this.hold(again);
    else this.discard(error);
  }

  /** Begins to load what is not there. */
  load() {
    this.gaps?.load();
  }

  /** Waits until all parts are there. @returns {Promise<void>} */
  async whole() {
    await this.gaps?.whole();
  }

  /** Waits until another part is there. @returns {Promise<void>} */
  async more() {
    await this.gaps?.more();
  }

  /** Waits until nothing else waits, if anything does. @returns {Promise<void> | undefined} */
  flows() {
    return this.isHeld ? this.gaps?.flows() : undefined;
  }

  /** Something else belongs to what is loaded. @param {() => Promise<unknown>} load */
  alsoNeeds(load) {
    this.gaps?.alsoNeeds(load);
  }

  /** Refuses what only a whole engine may ask the host for. @returns {undefined} */
  refuse() {
    this.gaps?.refuse();
  }

  // ---- calls

  /**
   * Calls into the instance. What it refuses becomes an AgentError; whatever else comes out of it is the end of it.
   * @template T @param {(glue: Engine["glue"]) => T} work @returns {T}
   */
  call(work) {
    try {
      return work(this.glue);
    } catch (error) {
      if (error === MISSING) throw error;
      // The engine reports a refusal as a string; anything else is a trap or a stack overflow.
      if (typeof error !== "string" && !AgentError.isInstance(error)) this.discard(error);
      throw fromEngine(error);
    }
  }

  /** The same, where nobody waits for an answer. @param {(glue: Engine["glue"]) => void} work */
  tell(work) {
    if (this.dead) return;
    if (this.isHeld) return void this.hold(() => this.tell(work));
    try {
      work(this.glue);
    } catch (error) {
      this.failed(error, () => this.tell(work));
    }
  }

  /**
   * Gives up an instance in which something panicked: all of its runs end, each for itself, and the next run creates a
   * fresh instance. They end in a microtask, where nothing of whoever caused it is on the stack.
   * @param {unknown} error
   */
  discard(error) {
    if (this.dead) return;
    this.dead = true;
    this.#leaveScope();
    const failure = AgentError.isInstance(error) ? error : broken(`the engine failed: ${textOf(error)}`, error);
    this.failure = failure;
    this.gaps?.end();
    queueMicrotask(() => {
      for (const run of [...this.runs]) alone(() => run.deref()?.crash(failure));
      for (const agent of [...this.agents.values()]) alone(() => agent.deref()?.lost(this));
    });
  }

  /**
   * Detects an instance that was killed while it worked. Called when no frame of ours is on the stack, so a
   * busy instance must have been terminated mid-call, as Workers do to an object that aborts itself inside a
   * rule. Other runs share the instance, so it is given up.
   */
  discardIfKilled() {
    if (this.busy) this.discard(new AgentError({ code: "internal", message: "the host stopped the engine in the middle of its work", retryable: false }));
  }

  /** All parts are there. */
  complete() {
    this.gaps = undefined;
    this.glue = this.calls;
    for (const agent of [...this.agents.values()]) alone(() => agent.deref()?.catchUp());
  }

  /** Lets all runs go on. */
  pollAll() {
    for (const run of [...this.runs]) alone(() => run.deref()?.poller.poll());
  }

  #leaveScope() {
    if (this.scope.engine === this) this.scope.engine = undefined;
  }

  /** Forgets an agent. @param {number} number @param {number} weight */
  drop(number, weight) {
    if (!this.agents.delete(number)) return;
    this.weight -= weight;
    this.tell((glue) => glue.agent_drop(number));
    for (const run of this.runs) if (!run.deref()) this.runs.delete(run);
    // That of an isolated agent goes with its last one.
    if (this.agents.size === 0 && this.scope !== shared) this.#leaveScope();
  }

  /**
   * Gives up an instance that grew and in which nothing is going on, for the memory of wasm never shrinks. Its agents
   * take their state with them, and enter a fresh one with their next run. What they bring along there does not count as
   * growth, so that a large conversation is not carried to and fro.
   */
  replaceIfGrown() {
    if (this.dead || this.runs.size > 0 || this.memory.buffer.byteLength <= GROWN + 2 * this.weight) return;
    this.#leaveScope();
    for (const agent of [...this.agents.values()]) alone(() => agent.deref()?.release());
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
   * Writes bytes of a response where the engine expects them. Returns how many there were.
   * @param {Uint8Array[]} chunks
   */
  write(chunks) {
    const lengths = [];
    let size = 0;
    for (const bytes of chunks) {
      const length = lengthOf(bytes) ?? 0;
      lengths.push(length);
      size += length;
    }
    if (size > this.size) {
      const room = Math.max(size, 1 << 16);
      this.room = this.glue.input(room) >>> 0;
      this.size = room;
    }
    this.refresh();
    let at = this.room;
    for (let i = 0; i < chunks.length; i++) {
      if (lengths[i] > 0) this.bytes.set(chunks[i], at);
      at += lengths[i];
    }
    return size;
  }
}

/** Does for one run or agent what must not keep the others from it. @param {() => void} work */
function alone(work) {
  try {
    work();
  } catch (error) {
    complain("turnwheel: an agent could not leave its engine", error);
  }
}
