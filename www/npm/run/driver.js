// @ts-check
// One run: reads what the engine reports, notifies listeners, starts effects and returns their answers.

import { discardIfKilled } from "../engine.js";
import { callsOf, ENTRIES, LATER, note, toolStart } from "./entries.js";
import { AgentError, fromEngine, jsonOf, kindOf, LATE, misuse, PartialJson, respond, textOf, textsOf } from "../shared.js";
import { emptyList } from "../v8.js";
import { handled, outputOf } from "../rules/rules.js";

/** How many events may wait for a slow iterator before pieces of one block are joined. */
const MAX_WAITING_EVENTS = 1024;

/** How many microtasks a finished tool gets to report back through a few layers of promises. */
const POLL_TICKS = 8;

/** A run: iterate it, await it, or both. */
export class AgentRun {
  /** @type {any} */ #driver;

  /** @param {any} driver */
  constructor(driver) {
    this.#driver = driver;
    /** The run's id. */
    this.runId = driver.runId;
    /** Resolves to the outcome; never rejects for what happens in the run. @type {Promise<any>} */
    this.result = driver.result;
  }

  /** @param {any} [done] @param {any} [failed] */
  then(done, failed) {
    return this.result.then(done, failed);
  }

  [Symbol.asyncIterator]() {
    return this.#driver.iterate();
  }

  /** The text of all answers, as it arrives. */
  get textStream() {
    return { [Symbol.asyncIterator]: () => textsOf(this[Symbol.asyncIterator]()) };
  }

  /** The whole conversation so far. */
  get messages() {
    return this.#driver.log;
  }

  /** The arguments of a call as far as they have arrived: one live value. @param {string} callId */
  partialArguments(callId) {
    return this.#driver.partialArguments(callId);
  }

  /** The run as it stands, to be continued elsewhere; see `Agent.restore`. */
  checkpoint() {
    return this.#driver.checkpoint();
  }

  /** Stops the run. @param {unknown} [reason] */
  abort(reason) {
    this.#driver.abort(reason);
  }

  /** A response that streams the events as server-sent events. @param {any} [init] */
  toResponse(init) {
    return respond(this.#driver, "events", init);
  }

  /** A response that the AI SDK's useChat can read. @param {any} [init] */
  toUIMessageStreamResponse(init) {
    return respond(this.#driver, "uiMessages", init);
  }
}

/** The implementation of a run; the agent holds it while the run is in progress. */
export class Driver {
  /**
   * @param {any} core @param {any[] | null} prompts @param {{ signal?: AbortSignal, runId?: string }} options
   */
  constructor(core, prompts, { signal, runId }) {
    this.core = core;
    this.ref = new WeakRef(this);
    this.prompts = prompts;
    const promptJson = prompts === null ? undefined : jsonOf("the prompt is", prompts);
    /** The run of the checkpoint, until it resumes. */
    this.restoredRun = core.restoredRun;
    this.runId = runId ?? this.restoredRun?.runId ?? core.newId();
    this.handle = 0;
    this.ended = false;
    /** The history: the agent's own, unless the agent is reset. @type {any[]} */
    this.log = core.messages;
    /** The length of the history before the run. */
    this.lengthBefore = this.log.length;
    /**
     * The open turn, as far as it is needed to end it after a crash.
     * @type {{ turnIndex: number, messageStarted: boolean, answered: boolean } | undefined}
     */
    this.turn = undefined;
    /** The API keys of the turn, by provider. @type {{ turn: any, byProvider: Map<string, any> | undefined }} */
    this.keys = { turn: null, byProvider: undefined };
    /** Whether somebody iterates the run, or has done so. */
    this.iterated = false;
    /** @type {Map<number, import("../effects/effects.js").Slot>} */
    this.slots = new Map();
    /** Events for the iterator, while there is one. @type {any[] | undefined} */
    this.queue = undefined;
    /**
     * The events before anybody iterated; dropped at the first piece of an answer.
     * @type {any[] | undefined}
     */
    this.early = emptyList();
    /** The start of the queue: events before this index have been taken. */
    this.head = 0;
    /** Iterator calls that wait for an event. @type {((step: { done: boolean, value: any }) => void)[]} */
    this.waiting = [];
    /** The results of this turn, by call id. @type {Map<string, any>} */
    this.results = new Map();
    /**
     * The calls that are streaming, by block.
     * @type {Map<number, { callId: string, toolName: string, kept: PartialArguments }>}
     */
    this.streaming = new Map();
    /** What has arrived of their arguments, by call id. @type {Map<string, PartialArguments>} */
    this.arguments = new Map();
    /** @type {any} */
    this.answer = undefined;
    /** The answer that `calls` belongs to. @type {any} */
    this.callsAnswer = undefined;
    /** @type {Map<string, any>} */
    this.calls = new Map();
    /** @type {any} */
    this.previousLog = undefined;
    /** Texts for the next entry that is not itself a text. @type {string[]} */
    this.strings = emptyList();
    /** The last HTTP request, and the JSON it was parsed from. */
    this.requestJson = "";
    /** @type {any} */
    this.request = undefined;
    /** Whether a batch is being delivered. */
    this.draining = false;
    /** Whether the engine has more to do once the batch is delivered. */
    this.hasMore = false;
    /** @type {any} */
    this.engine = undefined;
    /** How many microtasks until the run polls; 0 if no poll is scheduled. */
    this.pollTicks = 0;
    this.coalesceMs = core.options.coalesceMs ?? 0;
    /** The event that is held back for `coalesceMs`. @type {any} */
    this.held = undefined;
    /** The event delivered right after it. @type {any} */
    this.afterHeld = undefined;
    /** The event that ends the run. @type {any} */
    this.end = undefined;
    /** The agent's usage before this run was added. @type {any} */
    this.usageBefore = undefined;
    /** @type {string | undefined} */
    this.abortText = undefined;
    /** @type {(result: any) => void} */
    this.settle = () => {};
    this.result = new Promise((resolve) => (this.settle = resolve));
    this.run = new AgentRun(this);
    const abort = () => this.abort(signal?.reason);
    if (signal?.aborted) abort();
    else signal?.addEventListener("abort", abort, { once: true });
    this.unlisten = () => signal?.removeEventListener("abort", abort);
    /**
     * The batch being delivered: its numbers, its text, and the position in both.
     * @type {{ table: number[], text: string, i: number, at: number } | undefined}
     */
    this.batch = undefined;
    /** What is left of the batch, after a checkpoint had to read all of it. @type {Later[] | undefined} */
    this.rest = undefined;
    this.endEmitted = false;
    /** The agent's count of posts when the engine last worked. */
    this.seenPosts = 0;
    /** How many announced calls the engine does not know of yet. */
    this.announced = 0;
    queueMicrotask(() => this.#start(promptJson));
  }

  /** @param {string | undefined} promptJson */
  async #start(promptJson) {
    try {
      discardIfKilled();
      const ready = this.core.ready();
      const engine = ready instanceof Promise ? await ready : ready;
      this.engine = engine;
      const { handle, sessionId } = this.core;
      this.handle = this.core.call(() => engine.glue.run_new(handle, promptJson ?? "", this.runId, sessionId, this.now()));
      this.core.restoredRun = undefined;
      this.core.byHandle.set(this.handle, this);
      if (this.restoredRun?.run) this.#restoreTurn();
      engine.runs.add(this.ref);
      if (this.abortText !== undefined) engine.glue.run_abort(this.handle, this.abortText);
      this.poll();
    } catch (error) {
      this.#fail(fromEngine(error));
    }
  }

  now() {
    return this.core.now();
  }

  /**
   * Delivers what the engine has to report, and continues until it waits for an answer.
   * @param {number} [slot] of a response
   * @param {number} [size] how many of its bytes are in the engine's memory
   */
  poll(slot = 0, size = 0) {
    // A call from a listener is handled after this batch: the loop below asks the engine again.
    if (this.draining) return void (this.hasMore = true);
    if (this.ended || this.handle === 0) return;
    const { engine } = this;
    // Called from a rule: the engine is in the middle of a step, of this run or another.
    if (engine.busy) return queueMicrotask(() => (discardIfKilled(), this.poll()));
    this.draining = true;
    try {
      do {
        const more = this.#step(slot, size);
        if (more === 0) break;
        this.hasMore = more === 2;
        size = 0;
        const table = engine.read();
        if (table) {
          this.#deliver(table, engine.text);
          this.batch = undefined;
        } else this.#deliverEntry(engine.kind, engine.number, engine.text);
        if (this.rest) this.#deliverRest();
      } while (this.hasMore && !this.ended);
    } finally {
      this.draining = false;
    }
  }

  /** Called when the engine asks to be polled. */
  wake() {
    if (this.draining) this.hasMore = true;
    else this.pollSoon();
  }

  /**
   * Polls once the promises that are settling now have settled. Tools that end at the same moment have all
   * reported by then, including one that steers or aborts before it returns.
   */
  async pollSoon() {
    const isWaking = this.pollTicks > 0;
    this.pollTicks = POLL_TICKS;
    if (isWaking) return;
    for (; this.pollTicks > 0; this.pollTicks--) await undefined;
    this.poll();
  }

  /**
   * Runs the engine as far as it can go. Returns 0 if there is nothing to deliver, 1 if there is, and 2 if
   * there is and the engine continues afterwards.
   * @param {number} slot @param {number} size
   */
  #step(slot, size) {
    const { core, engine } = this;
    engine.busy = true;
    core.activeRun = this;
    this.seenPosts = core.posts;
    try {
      return engine.glue.run_poll(this.handle, slot, size, this.now());
    } catch (error) {
      core.crashed(error);
      return 0;
    } finally {
      engine.busy = false;
      core.activeRun = undefined;
    }
  }

  /**
   * Posts something to the run's engine side, and continues the run. If the engine panics, the instance is
   * gone and every run ends.
   * @param {(glue: any) => any} post @param {"now" | "soon"} [when]
   */
  #post(post, when) {
    if (this.ended) return;
    try {
      post(this.engine.glue);
    } catch (error) {
      return this.core.crashed(error);
    }
    if (when === "soon") this.pollSoon();
    else this.poll();
  }

  /** Delivers one batch, entry by entry. @param {number[]} table @param {string} text */
  #deliver(table, text) {
    const batch = (this.batch = { table, text, i: 0, at: 0 });
    while (batch.i < table.length && !this.rest) {
      const { i, at } = batch;
      const kind = table[i];
      const number = table[i + 1];
      const piece = text.substring(at, (batch.at = at + table[i + 2]));
      batch.i += 3;
      this.#deliverEntry(kind, number, piece);
    }
  }

  /** @param {number} kind @param {number} number @param {string} piece */
  #deliverEntry(kind, number, piece) {
    const event = ENTRIES[kind](this, number, piece);
    if (event) this.emit(event);
  }

  /** Delivers what was kept for later. */
  #deliverRest() {
    for (let later; (later = this.rest?.shift()); ) {
      this.strings = later.strings ?? [];
      if (later.event) this.emit(later.event);
      else this.#deliverEntry(.../** @type {[number, number, string]} */ (later.entry));
    }
    this.rest = undefined;
  }

  /**
   * Reads the rest of the batch for a checkpoint taken during its delivery: updates this side's own state,
   * and keeps the rest for later.
   */
  #readRest() {
    const { batch } = this;
    if (!batch) return;
    /** @type {Later[]} */
    const rest = (this.rest ??= []);
    const { table, text } = batch;
    for (; batch.i < table.length; batch.i += 3) {
      const kind = table[batch.i];
      const number = table[batch.i + 1];
      const piece = text.substring(batch.at, (batch.at += table[batch.i + 2]));
      const isLater = LATER.has(kind);
      const event = isLater ? undefined : ENTRIES[kind](this, number, piece);
      if (event) rest.push({ event });
      else if (isLater) rest.push({ entry: [kind, number, piece], strings: this.takeStrings() });
    }
    this.batch = undefined;
  }

  /** Restores what this side must know of the turn in which the checkpoint was taken. */
  #restoreTurn() {
    const { turnIndex, turn } = this.restoredRun.run;
    const last = this.log.findLastIndex((message) => message.role === "assistant");
    const [answer, ...results] = last < 0 ? [] : this.log.slice(last);
    this.answer = answer;
    for (const message of results) if (message.role === "tool_result") this.results.set(message.callId, message);
    for (const { result } of this.restoredRun.run.phase.calls ?? []) if (result) this.results.set(result.callId, result);
    if (turn.open) this.turn = { turnIndex, messageStarted: turn.messageOpen, answered: !turn.messageOpen && this.restoredRun.run.phase.kind === "dispatching" };
  }

  /** Resumes the run. Events that were never delivered come first. @param {any} event */
  resume(event) {
    const undelivered = (this.restoredRun?.untold ?? []).map((/** @type {any} */ stored) => ({ ...stored, runId: this.runId }));
    this.restoredRun = undefined;
    const first = undelivered.find((/** @type {any} */ stored) => stored.turnIndex !== undefined);
    if (first) event.turnIndex = first.turnIndex;
    if (undelivered.some((/** @type {any} */ stored) => stored.type === "message_start" || stored.type === "message_update")) delete event.partialMessage;
    for (const stored of undelivered) note(this, stored);
    this.#readRest();
    this.rest = [...[event, ...undelivered].map((event) => ({ event })), ...(this.rest ?? [])];
  }

  /** The run as it stands. */
  checkpoint() {
    const { core, engine, handle, runId } = this;
    if (handle === 0) {
      const begin = this.restoredRun || this.ended ? {} : { prompts: this.prompts };
      return core.envelope({ ...core.unregisteredState(), ...begin }, this.restoredRun?.run && runId);
    }
    if (engine.busy) throw misuse("no checkpoint can be taken inside a policy or transformer; take it in a listener");
    if (engine.dead || (this.ended && core.unreadRun !== this)) return core.checkpoint();
    core.posts++;
    this.#reportStarted();
    this.release();
    this.#readRest();
    // A slow iterator is behind: events it has not taken yet count as undelivered.
    const unread = core.dispatching > 0 ? [] : (this.queue?.slice(this.head) ?? []);
    const pending = [this.afterHeld, ...(this.rest ?? []).map(({ event }) => event)].filter((event) => event);
    const endEmitted = this.endEmitted && !unread.some(({ type }) => type === "agent_end");
    const state = JSON.parse(core.call(() => engine.glue.checkpoint(core.handle, handle, endEmitted, this.now())));
    // Taking the checkpoint informed the engine of finished tools.
    this.wake();
    // The end will be announced again, and its usage counted again.
    if (state.run && this.end) state.usage = this.usageBefore;
    if (state.run) state.untold = [...unread, ...pending, ...state.untold].filter(({ type }) => type !== "agent_end");
    return core.envelope(state, state.run && runId);
  }

  /** Removes the run from the engine, once nobody can ask for its state any more. */
  drop() {
    const { core, engine, handle } = this;
    if (core.unreadRun === this) core.unreadRun = undefined;
    if (engine && !engine.dead) engine.glue.run_drop(handle);
  }

  /** Takes the texts that came before an entry. */
  takeStrings() {
    const { strings } = this;
    this.strings = emptyList();
    return strings;
  }

  /**
   * The calls of the last answer by id, as they arrived, whatever a listener has done to the message since.
   */
  knownCalls() {
    if (this.callsAnswer !== this.answer) {
      this.callsAnswer = this.answer;
      this.calls = new Map(callsOf(this.answer).map((call) => [call.callId, call]));
    }
    return this.calls;
  }

  /** Returns a call of the last answer. @param {string} callId */
  callOf(callId) {
    return this.knownCalls().get(callId);
  }

  /**
   * Announces calls that start together, one by one; stops if somebody posts something in between that
   * the engine must see first.
   * @param {any[]} calls
   */
  announce(calls) {
    const { core } = this;
    for (const call of calls) {
      if (core.posts !== this.seenPosts) break;
      this.announced++;
      this.emit(typeof call === "string" ? toolStart(this, call) : { ...call, runId: this.runId });
    }
    this.#reportStarted();
  }

  /** Tells the engine how many calls were announced. */
  #reportStarted() {
    const { announced, engine, handle } = this;
    this.announced = 0;
    if (announced > 0 && !engine.dead) engine.glue.run_started(handle, announced);
  }

  /** Resolves references: a pair of numbers is a range of messages, without its end. @param {any[]} refs */
  resolveRefs(refs) {
    const list = (/** @type {any} */ ref) => (Array.isArray(ref) ? this.log.slice(...ref) : ref);
    // Usually there is a single range: one copy is ten times as fast as flattening.
    return refs.length === 1 && Array.isArray(refs[0]) ? list(refs[0]) : refs.flatMap(list);
  }

  /** Delivers one event to everybody. @param {any} event */
  emit(event) {
    if (this.coalesceMs > 0 && this.#hold(event, this.coalesceMs)) return;
    this.#dispatch(event);
  }

  /** Holds back pieces of one block, and joins them. @param {any} event @param {number} ms */
  #hold(event, ms) {
    const held = this.held;
    if (event.type === "message_update") {
      if (held && sameBlock(held.event.delta, event.delta)) {
        held.event.delta.delta += event.delta.delta;
        return true;
      }
      this.release(event);
      const timer = new AbortController();
      const fresh = (this.held = { event, timer });
      const due = () => void (this.held === fresh && this.release());
      this.core.sleep(ms, timer.signal).then(due, due);
      return true;
    }
    this.release(event);
    return false;
  }

  /** @param {any} [next] the event that waits for this one; a checkpoint taken meanwhile must include it */
  release(next) {
    const held = this.held;
    if (!held) return;
    this.held = undefined;
    held.timer.abort();
    this.afterHeld = next;
    this.#dispatch(held.event);
    this.afterHeld = undefined;
  }

  /** @param {any} event */
  #dispatch(event) {
    this.core.dispatch(event);
    if (this.queue !== undefined) this.#enqueue(this.queue, event);
    else if (this.early !== undefined) this.#enqueueEarly(this.early, event);
  }

  /**
   * Keeps an event for a later iterator. Without one, no pieces are kept.
   * @param {any[]} early @param {any} event
   */
  #enqueueEarly(early, event) {
    if (event.type === "message_update" || early.length === MAX_WAITING_EVENTS) this.early = undefined;
    else early.push(event);
  }

  /** Queues an event for the iterator. @param {any[]} queue @param {any} event */
  #enqueue(queue, event) {
    const next = this.waiting.shift();
    if (next) return next({ done: false, value: event });
    const last = queue.length - this.head > MAX_WAITING_EVENTS ? queue[queue.length - 1] : undefined;
    if (last?.type === "message_update" && event.type === "message_update" && sameBlock(last.delta, event.delta)) {
      queue[queue.length - 1] = { ...last, delta: { ...last.delta, delta: last.delta.delta + event.delta.delta } };
    } else queue.push(event);
  }

  /** Returns the run's one iterator. Leaving it early stops the run. */
  iterate() {
    if (this.iterated) throw misuse("a run can be iterated once; use agent.subscribe for more listeners");
    if (!this.early) throw misuse(LATE);
    this.iterated = true;
    this.queue = this.early;
    this.early = undefined;
    const leave = (/** @type {unknown} */ value) => {
      this.queue = undefined;
      this.#dismissWaiting();
      if (this.ended) this.drop();
      this.abort("the iteration was left");
      return Promise.resolve({ done: true, value });
    };
    return {
      next: () => this.#next(),
      return: leave,
      [Symbol.asyncIterator]() {
        return this;
      },
    };
  }

  /** @returns {Promise<{ done: boolean, value: any }>} */
  #next() {
    const { queue } = this;
    if (queue && this.head < queue.length) {
      const value = queue[this.head];
      queue[this.head++] = undefined;
      if (this.head > 512 && this.head * 2 > queue.length) {
        queue.splice(0, this.head);
        this.head = 0;
      }
      return Promise.resolve({ done: false, value });
    }
    if (this.ended || !queue) {
      if (this.core.unreadRun === this) this.drop();
      return Promise.resolve({ done: true, value: undefined });
    }
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  #dismissWaiting() {
    for (const next of this.waiting.splice(0)) next({ done: true, value: undefined });
  }

  /** @param {string} callId */
  partialArguments(callId) {
    const soFar = this.arguments.get(callId);
    if (!soFar) {
      return this.callOf(callId)?.arguments;
    }
    if (!soFar.json) {
      soFar.json = new PartialJson();
      for (const piece of soFar.pieces) soFar.json.feed(piece);
      soFar.pieces.length = 0;
    }
    return soFar.json.value;
  }

  /** @param {unknown} [reason] */
  abort(reason) {
    if (this.ended || this.abortText !== undefined) return;
    this.abortText = reason === undefined ? "the run was aborted" : textOf(reason);
    this.abortReason = reason;
    if (this.handle === 0) return;
    this.core.posts++;
    this.#post((glue) => glue.run_abort(this.handle, this.abortText), "soon");
  }

  /**
   * Cancels an effect. If the answer of a request is complete, its last bytes may still be read, so that the
   * connection can be reused.
   * @param {number} slot
   */
  cancel(slot) {
    const effect = this.slots.get(slot);
    this.slots.delete(slot);
    if (!effect || effect.complete) return;
    const stop = () => effect.abort(this.abortReason instanceof Error ? this.abortReason : (this.abortText ?? "not wanted any more"));
    if (effect.reading && this.abortText === undefined) effect.timer = quietTimer(stop, 200);
    else stop();
  }

  // ---- answers of effects; an answer for a slot that is gone has no effect

  /** @param {number} slot @param {any} answer @param {"now" | "soon"} when */
  resolve(slot, answer, when) {
    if (!this.slots.has(slot)) return;
    // Most tools return text.
    const isText = typeof answer === "string";
    const text = isText ? answer : (JSON.stringify(answer) ?? "null");
    this.slots.delete(slot);
    this.#post((glue) => glue.resolve(this.handle, slot, text, isText), when);
  }

  /** @param {number} slot @param {unknown} error */
  reject(slot, error) {
    if (!this.slots.delete(slot)) return;
    this.core.noteThrown(error);
    this.#post((glue) => glue.reject(this.handle, slot, textOf(error)));
  }

  /**
   * Reports a failed model call.
   * @param {number} slot @param {unknown} error @param {any} info its plain form
   */
  fail(slot, error, info) {
    if (!this.slots.delete(slot)) return;
    this.core.noteThrown(error);
    this.#post((glue) => glue.reject(this.handle, slot, JSON.stringify(info)));
  }

  /** @param {number} slot @param {string} event */
  subagentEvent(slot, event) {
    if (this.slots.has(slot)) this.#post((glue) => glue.subagent_event(this.handle, slot, event));
  }

  /** @param {number} slot @param {string} update */
  update(slot, update) {
    // Updates that arrive together are delivered together.
    if (this.slots.has(slot)) this.#post((glue) => glue.update(this.handle, slot, update), this.pollTicks > 0 ? "soon" : "now");
  }

  /**
   * Changes the session state for a tool; without a value the key is deleted.
   * @param {number} slot @param {string} key @param {string | undefined} value
   */
  setState(slot, key, value) {
    if (typeof key !== "string") throw misuse(`a key of the session state must be a text, got ${kindOf(key)}`);
    if (!this.slots.has(slot)) return;
    if (value === undefined) this.core.state.delete(key);
    else this.core.state.set(key, JSON.parse(value));
    this.core.call(() => this.engine.glue.set_state(this.handle, slot, key, value ?? ""));
  }

  /** @param {number} slot */
  takeBody(slot) {
    return this.core.call(() => this.engine.glue.take_body(this.handle, slot));
  }

  /** @param {number} slot @param {Uint8Array[]} chunks @param {number} size their total length */
  feed(slot, chunks, size) {
    if (this.ended) return;
    try {
      this.engine.write(chunks, size);
    } catch (error) {
      return this.core.crashed(error);
    }
    this.poll(slot, size);
  }

  /** @param {number} slot */
  feedEnd(slot) {
    if (this.slots.delete(slot)) this.#post((glue) => glue.feed_end(this.handle, slot));
  }

  /** @param {number} slot @param {number} status @param {Record<string, string>} headers @param {Uint8Array} body */
  refuse(slot, status, headers, body) {
    if (!this.slots.delete(slot)) return;
    this.#post((glue) => glue.feed_refusal(this.handle, slot, status, JSON.stringify(headers), body, this.now()));
  }

  /** @param {number} slot @param {string} event */
  streamEvent(slot, event) {
    if (this.slots.has(slot)) this.#post((glue) => glue.stream_event(this.handle, slot, event));
  }

  /** @param {number} slot */
  streamEnd(slot) {
    if (this.slots.delete(slot)) this.#post((glue) => glue.stream_event(this.handle, slot, "null"));
  }

  /** @param {number} slot @param {number} kind @param {number} index @param {string} delta */
  streamDelta(slot, kind, index, delta) {
    if (this.slots.has(slot)) this.#post((glue) => glue.stream_delta(this.handle, slot, kind, index, delta));
  }

  // ---- the end

  /** @param {string} output the structured answer, or an empty text */
  finish(output) {
    const { messages, stopReason, usage, turns, error } = this.end;
    this.#close({
      runId: this.runId, text: output || textOfLast(messages), messages, usage, turns, stopReason,
      ...(output && { output: outputOf(this.core, output) }),
      ...(error && { error: new AgentError(error, this.core.causeOf(error, this.abortReason)) }),
    });
  }

  /**
   * Ends a run that never began, or whose instance died: everything open is closed here.
   * @param {AgentError} error
   */
  #fail(error) {
    const { runId, core } = this;
    const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
    if (!this.end) {
      if (this.handle === 0) this.emit({ type: "agent_start", runId });
      if (this.turn !== undefined) this.#endTurn(error.info, usage);
      // The engine, which calls the hooks otherwise, has no part in this end.
      for (const hooks of [core.options.hooks ?? []].flat()) {
        try {
          handled(hooks.onError?.({ runId, error: error.info }));
        } catch {
          // A failing onError hook changes nothing.
        }
      }
      const messages = this.log.slice(this.lengthBefore);
      this.end = { type: "agent_end", runId, messages, stopReason: "error", usage, turns: 0, error: error.info };
      core.beforeRunEnd(this);
      this.endEmitted = true;
      this.emit(this.end);
    }
    const { messages, turns } = this.end;
    this.#close({ runId, text: textOfLast(messages), messages, usage, turns, stopReason: "error", error });
  }

  /** @param {any} info @param {any} usage */
  #endTurn(info, usage) {
    const { runId, core, turn } = this;
    const timestamp = this.now();
    if (!turn.answered) {
      const { provider, id } = core.models[0];
      this.answer = { role: "assistant", content: [], provider, model: id, usage, stopReason: "error", error: info, timestamp };
      this.log.push(this.answer);
      if (!turn.messageStarted) this.emit({ type: "message_start", runId });
      this.emit({ type: "message_end", runId, message: this.answer });
    }
    const toolResults = callsOf(this.answer).map(({ callId, toolName }) => {
      let result = this.results.get(callId);
      if (!result) {
        const content = [{ type: "text", text: info.message }];
        result = { role: "tool_result", callId, toolName, content, isError: true, cause: "aborted", timestamp };
        this.emit({ type: "tool_execution_end", runId, callId, toolName, result, isError: true });
      }
      if (!this.log.includes(result)) this.log.push(result);
      return result;
    });
    this.emit({ type: "turn_end", runId, turnIndex: turn.turnIndex, message: this.answer, toolResults, reason: "error" });
  }

  /** @param {AgentError} error */
  crash(error) {
    if (this.ended) return;
    this.core.settleAll({ delivered: false, reason: "run_ended" });
    this.#fail(error);
  }

  /** @param {any} result */
  #close(result) {
    this.release();
    this.ended = true;
    this.unlisten();
    for (const slot of [...this.slots.keys()]) this.cancel(slot);
    this.core.byHandle.delete(this.handle);
    if (this.queue && this.head < this.queue.length) this.core.unreadRun = this;
    else this.drop();
    this.engine?.runs.delete(this.ref);
    this.core.afterRunEnd(this);
    this.#dismissWaiting();
    this.settle(result);
  }
}

/**
 * The arguments of a call so far: the pieces, or the value built from them once somebody has asked for it.
 * @typedef {{ pieces: string[], json: PartialJson | undefined }} PartialArguments
 */

/**
 * Something to deliver later: an event, or an entry of a batch.
 * @typedef {{ event?: any, entry?: [number, number, string], strings?: string[] }} Later
 */

/** A timer that does not keep the process alive. @param {() => void} work @param {number} ms */
function quietTimer(work, ms) {
  const timer = setTimeout(work, ms);
  /** @type {any} */ (timer).unref?.();
  return timer;
}

/** @param {any} a @param {any} b */
function sameBlock(a, b) {
  return a.type === b.type && a.contentIndex === b.contentIndex && a.callId === b.callId;
}

/** The text of the last answer. @param {any[]} messages */
function textOfLast(messages) {
  const answer = messages.findLast((message) => message.role === "assistant");
  return (answer?.content ?? []).filter((/** @type {any} */ block) => block.type === "text").map((/** @type {any} */ block) => block.text).join("");
}
