// @ts-check
// An instance of which parts are still missing. What is called in it may enter what is not there; nobody can know before.
// Then the call is undone (the memory is put back as it was) and made again when the next part is there. So a missing part
// costs time and nothing else. Until everything is there, the only thing that happens is that a run begins, sends its first
// request and reads the pieces of the answer: everything else is held back, in its order. For whoever asks meanwhile (a
// checkpoint, a letter, a setting), the run has not begun yet.

import { AgentError, complain, fromEngine } from "../shared.js";

/** @import { Engine } from "./engine.js" */
/** @import { Bound, Calls } from "./glue.js" */

/** What a call throws that was undone. */
export const MISSING = new AgentError({ code: "internal", message: "a part of the engine is not there yet", retryable: true });

export class Gaps {
  /** @param {Engine} engine @param {Bound} bound */
  constructor(engine, bound) {
    this.engine = engine;
    this.bound = bound;
    /** The calls, each of which may be undone. */
    this.calls = /** @type {Calls} */ (/** @type {unknown} */ (Object.fromEntries(Object.entries(bound.calls).map(([name, call]) => [name, this.#undoable(/** @type {(...given: any[]) => unknown} */ (call))]))));
    /** How many parts the instance has. */
    this.added = this.begun = engine.parts.others.length;
    /** What waits, in its order. @type {(() => void)[]} */
    this.held = [];
    /** What the piece of work in progress wants to do later. @type {(() => void)[] | undefined} */
    this.again = undefined;
    /** Whether the call in progress asked the host for what only a whole engine may have. */
    this.missed = false;
    /** How much must be there beside the parts. */
    this.loads = 0;
    /** Loads it, behind the part that comes next. @type {(() => void)[]} */
    this.needs = [];
    this.stack = /** @type {WebAssembly.Global<"i32">} */ (bound.stack);
    /** What the memory held before the call in progress, from this address on: the end of the stack. */
    this.saved = 0;
    this.memory = new Uint8Array();
    /** @type {Promise<void> | undefined} */
    this.loading = undefined;
    /** @type {(() => void)[]} */
    this.waiting = [];
    /** Who waits for the next part, whichever that is. @type {(() => void)[]} */
    this.arriving = [];
    /** Who waits until nothing else does. @type {(() => void)[]} */
    this.flowing = [];
  }

  // ---- calls

  /** @template {(...given: any[]) => unknown} F @param {F} call */
  #undoable(call) {
    return (/** @type {Parameters<F>} */ ...given) => {
      this.#save();
      this.missed = false;
      try {
        const result = call(...given);
        if (!this.missed) return result;
      } catch (error) {
        // A call of what is not there is a trap.
        if (!this.missed && !(error instanceof WebAssembly.RuntimeError)) throw error;
      }
      this.#putBack();
      throw MISSING;
    };
  }

  /** Copies what a call may change. The stack is below everything else and grows down: what is below its end is nobody's. */
  #save() {
    this.saved = this.stack.value;
    const now = new Uint8Array(this.bound.memory.buffer, this.saved);
    if (this.memory.length !== now.length) this.memory = new Uint8Array(now.length);
    this.memory.set(now);
  }

  #putBack() {
    new Uint8Array(this.bound.memory.buffer).set(this.memory, this.saved);
    this.stack.value = this.saved;
  }

  /** Refuses what the engine asks the host for. @returns {undefined} */
  refuse() {
    this.missed = true;
  }

  // ---- what waits

  /** Whether something waits that must come first. */
  get isHeld() {
    return this.again === undefined && this.held.length > 0;
  }

  /** Does something once more is there. @param {() => void} work */
  hold(work) {
    (this.again ?? this.held).push(work);
    this.load();
  }

  /** Everything is there only when this is, too; what comes next is more urgent. @param {() => Promise<unknown>} load */
  alsoNeeds(load) {
    this.loads++;
    this.needs.push(() => void load().then(() => (this.loads--, this.#goOn()), (error) => this.engine.discard(fromEngine(error))));
    this.#loadNeeds();
  }

  #loadNeeds() {
    if (this.added > this.begun || this.engine.gaps !== this) for (const load of this.needs.splice(0)) load();
  }

  /** Waits until everything is there. @returns {Promise<void>} */
  whole() {
    return this.#until(this.waiting);
  }

  /** Waits until more is there. @returns {Promise<void>} */
  more() {
    return this.#until(this.arriving);
  }

  /** @param {(() => void)[]} list of those who wait for the same @returns {Promise<void>} */
  #until(list) {
    return new Promise((resolve, reject) => {
      if (this.engine.gaps !== this) return resolve();
      list.push(() => (this.engine.dead ? reject(this.engine.failure) : resolve()));
      this.load();
    });
  }

  /** Waits until nothing else waits. @returns {Promise<void>} */
  flows() {
    return new Promise((resolve) => void this.flowing.push(resolve));
  }

  /** Lets those go on that would only add to what waits. */
  #flow() {
    if (!this.isHeld) for (const resolve of this.flowing.splice(0)) resolve();
  }

  /** Loads everything. What nobody has waited for may fail: it is loaded again as soon as somebody does. */
  load() {
    this.loading ??= this.#load();
  }

  async #load() {
    const { parts } = this.engine;
    try {
      await undefined;
      while (!this.engine.dead && this.engine.gaps === this) {
        const isMore = this.added < parts.others.length;
        for (; this.added < parts.others.length; this.added++) this.bound.add(/** @type {WebAssembly.Module} */ (parts.others[this.added]));
        this.#goOn();
        this.#loadNeeds();
        if (isMore) for (const settle of this.arriving.splice(0)) settle();
        if (parts.isWhole) return;
        await parts.more();
      }
    } catch (error) {
      if (this.held.length + this.waiting.length + this.arriving.length > 0) this.engine.discard(fromEngine(error));
    } finally {
      this.loading = undefined;
    }
  }

  /** Does what waits, as far as it can be done now. */
  #goOn() {
    const { engine } = this;
    const isWhole = engine.parts.isWhole && this.added === engine.parts.others.length && this.loads === 0;
    // What was asked meanwhile is told first: it came before the end of the answer, which has not been read yet.
    if (isWhole) engine.complete();
    for (let work; !engine.dead && (work = this.held.shift()); ) {
      this.again = [];
      try {
        work();
      } catch (error) {
        complain("turnwheel: what waited for the engine failed", error);
      }
      const { again } = this;
      this.again = undefined;
      if (again.length === 0) continue;
      this.held.unshift(...again);
      return;
    }
    engine.pollAll();
    if (isWhole) this.end();
    else this.#flow();
  }

  /** Everything is there, or the instance is dead. */
  end() {
    this.held = [];
    for (const settle of [...this.waiting.splice(0), ...this.arriving.splice(0)]) settle();
    this.#flow();
  }
}
