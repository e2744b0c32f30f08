// @ts-check
// A run in the engine: where what becomes of its effects crosses to wasm. Calls only queue something; `run_poll`,
// in run/poller.js, does the work. An answer for a slot that is gone has no effect.

import { AgentError, kindOf, misuse, textOf } from "../shared.js";
import { blocksOf } from "./bytes.js";
import { late } from "./rest.js";
import { needStack } from "./stack.js";

/** @import { AgentEvent, ErrorInfo, JsonValue } from "../index.js" */
/** @import { Engine } from "./engine.js" */
/** @import { EngineState } from "../checkpoint/format.js" */
/** @import { Driver } from "../run/driver.js" */
/** @import { Slot } from "../effects/slot.js" */
/** @typedef {Engine["glue"]} Glue */

export class EngineRun {
  /** @param {Driver} run */
  constructor(run) {
    this.run = run;
    /** What the engine holds of the run: nothing that keeps it alive. */
    this.ref = new WeakRef(run);
    /** The instance, once the run has begun in it. */
    this.engine = NO_ENGINE;
    /** The run's number in the engine; 0 before it has begun. */
    this.handle = 0;
    /** The effects in progress. @type {Map<number, Slot>} */
    this.slots = new Map();
    /** What the engine was last told of the time: that of all that it then reports. */
    this.time = 0;
    /** How many announced calls the engine does not know of yet. */
    this.announced = 0;
  }

  /**
   * Begins the run. @param {Engine} engine @param {string | undefined} prompts JSON; without them, the run continues
   */
  begin(engine, prompts) {
    const { core, runId, options } = this.run;
    this.engine = engine;
    if (prompts !== undefined && !this.#fits(prompts)) throw new AgentError(NO_ROOM);
    const { registration, session, host } = core;
    const now = host.now();
    registration.posts++;
    registration.noteRun();
    this.handle = engine.call((glue) => glue.run_new(registration.handle, prompts ?? "", runId, /** @type {string} */ (session.id), options, this.#around(engine), now));
    engine.runs.add(this.ref);
  }

  /** The run around this one, if it lives in the same instance. @param {Engine} engine */
  #around(engine) {
    const around = this.run.around.run?.engineRun;
    return around?.engine === engine ? around.handle : 0;
  }

  /** Whether the instance is gone, or was never there. */
  get isGone() {
    return this.handle === 0 || this.engine.dead;
  }

  /**
   * Lets the engine work as far as it can. Returns 0 if there is nothing to deliver, 1 if there is, and 2 if
   * there is and the engine continues afterwards.
   * @param {number} slot of a response @param {number} size how many of its bytes are in the engine's memory
   * @returns {number}
   */
  poll(slot, size) {
    const { core, ports } = this.run;
    const now = core.host.now();
    // A durable run goes by the time of its journal.
    if (!ports) this.time = now;
    return this.engine.glue.run_poll(this.handle, slot, size, now);
  }

  /**
   * Posts something, and continues the run. If the engine panics, the instance is gone and every run ends.
   * @param {(glue: Glue) => void} post @param {"now" | "soon"} [when]
   */
  #post(post, when) {
    const { run } = this;
    if (run.isOver) return;
    this.engine.tell(post);
    if (this.engine.dead) return;
    if (when === "soon") run.poller.pollSoon();
    else run.poller.poll();
  }

  /** Whether a text may come in: an allocation that fails would end every run of the instance. @param {string} text */
  #fits(text) {
    return text.length < LONG || this.engine.dead || this.engine.glue.has_room(text.length * 3);
  }

  /** Calls into the engine for the host. @template T @param {(glue: Glue) => T} work @returns {T} */
  #call(work) {
    needStack();
    this.run.core.registration.posts++;
    return this.engine.call(work);
  }

  /** @param {string} reason */
  abort(reason) {
    if (this.engine.hold(() => this.abort(reason))) {
      // The engine says what is cancelled; a request need not wait for that.
      for (const effect of this.slots.values()) effect.abort(this.run.abortion.effectReason());
      return;
    }
    this.run.core.registration.posts++;
    this.#post((glue) => glue.run_abort(this.handle, reason), "soon");
  }

  /** Aborts a run that was aborted before it began. @param {string} reason */
  abortAtStart(reason) {
    this.engine.tell((glue) => glue.run_abort(this.handle, reason));
  }

  /** Tells the engine how many calls were announced. */
  reportAnnounced() {
    const { announced, engine } = this;
    this.announced = 0;
    if (announced > 0) engine.tell((glue) => glue.run_started(this.handle, announced));
  }

  /** The state of the run and its agent. @param {boolean} endEmitted @returns {EngineState} */
  checkpoint(endEmitted) {
    const { registration, host } = this.run.core;
    const now = host.now();
    return JSON.parse(this.#call((glue) => glue.checkpoint(registration.handle, this.handle, endEmitted, now)));
  }

  /**
   * Cancels an effect. If the answer of a request is complete, its last bytes may still be read, so that the
   * connection can be reused.
   * @param {number} slot
   */
  cancel(slot) {
    const { abortion, children } = this.run;
    children?.cancel(slot);
    const effect = this.slots.get(slot);
    this.slots.delete(slot);
    if (!effect || effect.complete) return;
    const stop = () => effect.abort(abortion.effectReason());
    if (effect.reading && !abortion.isAsked) effect.timer = quietTimer(stop, 200);
    else stop();
  }

  /** Cancels all effects. */
  cancelAll() {
    for (const slot of [...this.slots.keys()]) this.cancel(slot);
  }

  /** Removes the run, once nobody can ask for its state any more. Whoever keeps it holds no instance with it. */
  drop() {
    const { engine, handle } = this;
    if (this.isGone) return;
    // An iterator may be left in the depth of a recursion.
    queueMicrotask(() => engine.tell((glue) => glue.run_drop(handle)));
    this.engine = NO_ENGINE;
  }

  /** The run is over: a broken instance need not end it. */
  forget() {
    if (this.handle !== 0) this.engine.runs.delete(this.ref);
  }

  // ---- answers of effects

  /** @param {number} slot @param {unknown} answer @param {"now" | "soon"} when */
  resolve(slot, answer, when) {
    if (!this.slots.has(slot)) return;
    if (this.engine.isHeld) return void this.engine.hold(() => this.resolve(slot, answer, when));
    // Most tools return text.
    const isText = typeof answer === "string";
    const text = isText ? answer : (JSON.stringify(answer) ?? "null");
    if (!this.#fits(text)) return this.reject(slot, new AgentError(NO_ROOM), false);
    this.slots.delete(slot);
    this.run.children?.end(slot);
    this.#post((glue) => glue.resolve(this.handle, slot, text, isText), when);
  }

  /** @param {number} slot @param {unknown} error @param {boolean} [isKey] whether it was thrown instead of a key */
  reject(slot, error, isKey) {
    if (this.engine.hold(() => this.reject(slot, error, isKey))) return;
    if (!this.slots.delete(slot)) return;
    this.run.children?.end(slot);
    this.run.core.thrown.note(isKey ? this.shown(error, true) : error);
    this.#post((glue) => glue.reject(this.handle, slot, textOf(error)));
  }

  /**
   * Reports a failed model call.
   * @param {number} slot @param {unknown} error @param {Partial<ErrorInfo>} info its plain form
   */
  fail(slot, error, info) {
    if (this.engine.hold(() => this.fail(slot, error, info))) return;
    if (!this.slots.delete(slot)) return;
    this.run.core.thrown.note(error);
    this.#post((glue) => glue.reject(this.handle, slot, JSON.stringify(info)));
  }

  /** What was thrown, with the secrets masked in it. @param {unknown} error @param {boolean} [isKey] whether it was thrown instead of a key @returns {unknown} */
  shown(error, isKey = false) {
    // Without what searches it, nobody knows what it holds.
    if (this.isGone || !late.rest) return;
    return late.rest.withoutSecrets(error, (text) => {
      let masked = "[key]";
      this.engine.tell((glue) => void (masked = glue.without_secrets(this.handle, text, isKey)));
      return masked;
    });
  }

  // ---- tools

  /**
   * An agent inside a tool has emitted an event. The engine takes it when that agent has said what it has to say: it may be in
   * the middle of it, and then it could not be ended.
   * @param {number} slot @param {string} path the calls inside this one that led to it: JSON, or nothing @param {string} event JSON
   * @param {number} flags see `child_event` of the engine
   */
  subagentEvent(slot, path, event, flags) {
    if (this.slots.has(slot) && this.#fits(event)) this.#post((glue) => glue.subagent_event(this.handle, slot, path, event, flags), "soon");
  }

  /**
   * The same for a call that has its result already. Returns the events for the listeners.
   * @param {string} callId @param {string} path @param {string} event JSON @param {number} flags see `child_event` of the engine @returns {AgentEvent[]}
   */
  lateSubagentEvent(callId, path, event, flags) {
    const { runId } = this.run;
    const told = this.#call((glue) => glue.late_subagent_event(this.handle, callId, path, event, flags));
    return JSON.parse(told || "[]").map((/** @type {object} */ event) => ({ ...event, runId }));
  }

  /** @param {number} slot @param {string} update JSON */
  update(slot, update) {
    needStack();
    // Updates that arrive together are delivered together, and of very many the oldest are joined.
    if (this.slots.has(slot) && this.#fits(update)) this.#post((glue) => glue.update(this.handle, slot, update), "soon");
  }

  /** @param {number} slot @param {string} id @param {string} message @param {string} schema JSON, or empty */
  ask(slot, id, message, schema) {
    needStack();
    if (this.slots.has(slot)) this.#post((glue) => glue.ask(this.handle, slot, id, message, schema), this.run.poller.isWaiting ? "soon" : "now");
  }

  /**
   * Changes the session state for a tool; without a value the key is deleted.
   * @param {number} slot @param {string} key @param {string | undefined} value JSON
   */
  setState(slot, key, value) {
    const { core } = this.run;
    if (typeof key !== "string") throw misuse(`a key of the session state must be a text, got ${kindOf(key)}`);
    if (!this.slots.has(slot) || this.engine.dead) return;
    needStack();
    if (!this.#fits(key + (value ?? ""))) throw new AgentError(NO_ROOM);
    const known = value === undefined ? undefined : /** @type {JsonValue} */ (JSON.parse(value));
    this.#call((glue) => glue.set_state(this.handle, slot, key, value ?? ""));
    if (known === undefined) core.session.state.delete(key);
    else core.session.state.set(key, known);
  }

  // ---- responses

  /** @param {number} slot @returns {Uint8Array<ArrayBuffer>} */
  takeBody(slot) {
    this.run.core.registration.posts++;
    return this.engine.call((glue) => glue.take_body(this.handle, slot));
  }

  /** @param {number} slot @param {Uint8Array[]} chunks */
  feed(slot, chunks) {
    const { run } = this;
    if (run.isOver || this.engine.dead) return;
    const again = () => this.feed(slot, chunks);
    if (this.engine.isHeld) return void this.engine.hold(again);
    // What ends an answer takes all parts; a piece of text that came in the same read need not wait for them.
    const blocks = this.engine.isWhole ? [] : chunks.flatMap(blocksOf);
    if (blocks.length > 1) return blocks.forEach((block) => this.feed(slot, [block]));
    let size = 0;
    try {
      size = this.engine.write(chunks);
    } catch (error) {
      return this.engine.failed(error, again);
    }
    run.poller.poll(slot, size);
  }

  /** @param {number} slot @returns {undefined} */
  feedEnd(slot) {
    if (this.engine.hold(() => this.feedEnd(slot))) return;
    if (this.slots.delete(slot)) this.#post((glue) => glue.feed_end(this.handle, slot));
  }

  /** @param {number} slot @param {number} status @param {Record<string, string>} headers @param {Uint8Array} body */
  refuse(slot, status, headers, body) {
    if (this.engine.hold(() => this.refuse(slot, status, headers, body))) return;
    if (!this.slots.delete(slot)) return;
    this.#post((glue) => glue.feed_refusal(this.handle, slot, status, JSON.stringify(headers), body, this.run.core.host.now()));
  }

  // ---- models that the host streams

  /** @param {number} slot @param {string} event JSON */
  streamEvent(slot, event) {
    if (!this.#fits(event)) return this.fail(slot, new AgentError(NO_ROOM), NO_ROOM);
    if (this.slots.has(slot)) this.#post((glue) => glue.stream_event(this.handle, slot, event));
  }

  /** @param {number} slot */
  streamEnd(slot) {
    if (this.slots.delete(slot)) this.#post((glue) => glue.stream_event(this.handle, slot, "null"));
  }

  /** @param {number} slot @param {number} kind @param {number} index @param {string} delta */
  streamDelta(slot, kind, index, delta) {
    if (!this.#fits(delta)) return this.fail(slot, new AgentError(NO_ROOM), NO_ROOM);
    if (this.slots.has(slot)) this.#post((glue) => glue.stream_delta(this.handle, slot, kind, index, delta));
  }
}

/** Texts from this length on ask for room before they come in. */
const LONG = 1 << 16;

/** @type {ErrorInfo} */
const NO_ROOM = { code: "internal", message: "there is not enough memory in the engine", retryable: false };

/** In place of an instance, before a run has one: it counts as dead. */
const NO_ENGINE = /** @type {Engine} */ (/** @type {unknown} */ ({ dead: true, busy: false, isWhole: true, isHeld: false, tell() {}, load() {}, flows() {}, failed() {}, hold: () => false }));

/** A timer that does not keep the process alive. @param {() => void} work @param {number} ms */
function quietTimer(work, ms) {
  const timer = setTimeout(work, ms);
  /** @type {{ unref?(): void }} */ (/** @type {unknown} */ (timer)).unref?.();
  return timer;
}
