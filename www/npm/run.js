// @ts-check
// One run: reads what the engine says, tells the listeners, begins effects, brings their answers back.

import { buryKilled } from "./engine.js";
import { callsOf, ENTRIES, LATER, note, toolStart } from "./entries.js";
import { AgentError, fromEngine, jsonOf, kindOf, LATE, misuse, PartialJson, respond, textOf, textsOf } from "./shared.js";
import { emptyList } from "./list.js";

/** So many events may wait for a slow iterator before pieces of one block are joined. */
const WAITING = 1024;

/** Turns of the microtask queue in which a tool that is done gets to say so, through a few layers of promises. */
const SOON = 8;

/** A run: iterate it, await it, or both. */
export class AgentRun {
  /** @type {any} */ #driver;

  /** @param {any} driver */
  constructor(driver) {
    this.#driver = driver;
    /** The run's id. */
    this.runId = driver.runId;
    /** How it ends; never rejects for what happens in the run. @type {Promise<any>} */
    this.result = driver.result;
  }

  /** @param {any} [done] @param {any} [failed] */
  then(done, failed) {
    return this.result.then(done, failed);
  }

  [Symbol.asyncIterator]() {
    return this.#driver.iterate();
  }

  /** The text of all answers, as it comes. */
  get textStream() {
    return { [Symbol.asyncIterator]: () => textsOf(this[Symbol.asyncIterator]()) };
  }

  /** The whole conversation as it stands. */
  get messages() {
    return this.#driver.log;
  }

  /** The arguments of a call as far as they have arrived: one live value. @param {string} callId */
  partialArguments(callId) {
    return this.#driver.partialArguments(callId);
  }

  /** The run as it stands, to be gone on with elsewhere: see `Agent.restore`. */
  checkpoint() {
    return this.#driver.checkpoint();
  }

  /** Stops the run. @param {unknown} [reason] */
  abort(reason) {
    this.#driver.abort(reason);
  }

  /** Its events as server-sent events. @param {any} [init] */
  toResponse(init) {
    return respond(this.#driver, "events", init);
  }

  /** As the AI SDK's useChat reads it. @param {any} [init] */
  toUIMessageStreamResponse(init) {
    return respond(this.#driver, "uiMessages", init);
  }
}

/** The working half of a run; the agent holds it while it goes on. */
export class Driver {
  /**
   * @param {any} core @param {any[] | null} prompts @param {{ signal?: AbortSignal, runId?: string }} options
   */
  constructor(core, prompts, { signal, runId }) {
    this.core = core;
    this.ref = new WeakRef(this);
    this.prompts = prompts;
    const text = prompts === null ? undefined : jsonOf("the prompt is", prompts);
    /** The run that a checkpoint tells of, until it goes on. */
    this.restored = core.restored;
    this.runId = runId ?? this.restored?.runId ?? core.newId();
    this.handle = 0;
    this.ended = false;
    /** The history: the agent's own, as long as the agent is not reset. @type {any[]} */
    this.log = core.messages;
    /** How long the history was before it. */
    this.begun = this.log.length;
    /** The turn that is open, as far as a crash would have to end it. @type {{ turnIndex: number, message: boolean, answered: boolean } | undefined} */
    this.turn = undefined;
    /** The keys of the turn, by provider. @type {{ turn: any, known: Map<string, any> | undefined }} */
    this.keys = { turn: null, known: undefined };
    /** Whether somebody iterates, or has. */
    this.iterated = false;
    /** @type {Map<number, import("./effects.js").Slot>} */
    this.slots = new Map();
    /** Events for the iterator, while there is one. @type {any[] | undefined} */
    this.queue = undefined;
    /** What was told before anybody iterated, until the first piece of an answer. @type {any[] | undefined} */
    this.early = emptyList();
    /** Where the queue begins: what is before it was taken. */
    this.head = 0;
    /** Who asked for an event that was not there yet. @type {((step: { done: boolean, value: any }) => void)[]} */
    this.waiting = [];
    /** Results of this turn, by call. @type {Map<string, any>} */
    this.results = new Map();
    /** The calls that stream, by block. @type {Map<number, { callId: string, toolName: string, kept: Kept }>} */
    this.streaming = new Map();
    /** What there is of their arguments, by call. @type {Map<string, Kept>} */
    this.arguments = new Map();
    /** @type {any} */
    this.answer = undefined;
    /** The answer that `calls` are of. @type {any} */
    this.callsOf = undefined;
    /** @type {Map<string, any>} */
    this.calls = new Map();
    /** @type {any} */
    this.before = undefined;
    /** Texts for the next entry that is none. @type {string[]} */
    this.strings = emptyList();
    /** The last request, and what it was read from. */
    this.asked = "";
    /** @type {any} */
    this.request = undefined;
    /** Whether a batch is being told. */
    this.draining = false;
    /** Whether the engine has more to do when it is told. */
    this.again = false;
    /** @type {any} */
    this.engine = undefined;
    /** How many turns of the microtask queue until it polls; 0: it is not about to. */
    this.waking = 0;
    this.coalesceMs = core.options.coalesceMs ?? 0;
    /** Held back for so long. @type {any} */
    this.held = undefined;
    /** What is told right after it. @type {any} */
    this.next = undefined;
    /** The event that ends it. @type {any} */
    this.end = undefined;
    /** What the agent had used before it. @type {any} */
    this.usageBefore = undefined;
    /** @type {string | undefined} */
    this.stopping = undefined;
    /** @type {(result: any) => void} */
    this.settle = () => {};
    this.result = new Promise((resolve) => (this.settle = resolve));
    this.run = new AgentRun(this);
    const abort = () => this.abort(signal?.reason);
    if (signal?.aborted) abort();
    else signal?.addEventListener("abort", abort, { once: true });
    this.unlisten = () => signal?.removeEventListener("abort", abort);
    /** The batch that is told: its numbers, its text, and how far both are told. @type {{ table: number[], text: string, i: number, at: number } | undefined} */
    this.batch = undefined;
    /** What is left to do of it, once a checkpoint had to know all of it. @type {Later[] | undefined} */
    this.rest = undefined;
    this.endTold = false;
    /** How often somebody had posted something when the engine was at work last. */
    this.heard = 0;
    /** So many calls were announced that the engine does not know of yet. */
    this.announced = 0;
    queueMicrotask(() => this.#start(text));
  }

  /** @param {string | undefined} prompts */
  async #start(prompts) {
    try {
      buryKilled();
      const ready = this.core.ready();
      const engine = ready instanceof Promise ? await ready : ready;
      this.engine = engine;
      const { handle, sessionId } = this.core;
      this.handle = this.core.call(() => engine.glue.run_new(handle, prompts ?? "", this.runId, sessionId, this.now()));
      this.core.restored = undefined;
      this.core.byHandle.set(this.handle, this);
      if (this.restored?.run) this.#knowTurn();
      engine.runs.add(this.ref);
      if (this.stopping !== undefined) engine.glue.run_abort(this.handle, this.stopping);
      this.poll();
    } catch (error) {
      this.#fail(fromEngine(error));
    }
  }

  now() {
    return this.core.now();
  }

  /**
   * Tells what the engine has to say, and goes on until it waits for an answer.
   * @param {number} [slot] of a response @param {number} [size] so many of its bytes lie in the engine's memory
   */
  poll(slot = 0, size = 0) {
    // Whoever calls in while a batch is told is heard as soon as it is told: the loop below asks again.
    if (this.draining) return void (this.again = true);
    if (this.ended || this.handle === 0) return;
    const { engine } = this;
    // A rule called: the engine is at work, for this run or another.
    if (engine.busy) return queueMicrotask(() => (buryKilled(), this.poll()));
    this.draining = true;
    try {
      do {
        const more = this.#step(slot, size);
        if (more === 0) break;
        this.again = more === 2;
        size = 0;
        const table = engine.read();
        if (table) {
          this.#tell(table, engine.text);
          this.batch = undefined;
        } else this.#tellOne(engine.kind, engine.number, engine.text);
        if (this.rest) this.#tellRest();
      } while (this.again && !this.ended);
    } finally {
      this.draining = false;
    }
  }

  /** The engine asks to be polled. */
  wake() {
    if (this.draining) this.again = true;
    else this.pollSoon();
  }

  /**
   * Polls when the promises that are settling now have settled. Tools that end at the same moment have all ended by
   * then, also one that steers or aborts and then returns: what they answer counts.
   */
  async pollSoon() {
    const isWaking = this.waking > 0;
    this.waking = SOON;
    if (isWaking) return;
    for (; this.waking > 0; this.waking--) await undefined;
    this.poll();
  }

  /**
   * Goes on in the engine, as far as it goes. 0: there is nothing to tell; 1: there is; 2: there is, and it goes on when
   * that was told.
   * @param {number} slot @param {number} size
   */
  #step(slot, size) {
    const { core, engine } = this;
    engine.busy = true;
    core.speaking = this;
    this.heard = core.posts;
    try {
      return engine.glue.run_poll(this.handle, slot, size, this.now());
    } catch (error) {
      core.crashed(error);
      return 0;
    } finally {
      engine.busy = false;
      core.speaking = undefined;
    }
  }

  /**
   * Leaves something at the run's desk, and goes on. A panic there ends every run: the instance is gone.
   * @param {(glue: any) => any} leave @param {"now" | "soon"} [wakes]
   */
  #leave(leave, wakes) {
    if (this.ended) return;
    try {
      leave(this.engine.glue);
    } catch (error) {
      return this.core.crashed(error);
    }
    if (wakes === "soon") this.pollSoon();
    else this.poll();
  }

  /** One batch, entry by entry. @param {number[]} table @param {string} text */
  #tell(table, text) {
    const batch = (this.batch = { table, text, i: 0, at: 0 });
    while (batch.i < table.length && !this.rest) {
      const { i, at } = batch;
      const kind = table[i];
      const number = table[i + 1];
      const piece = text.substring(at, (batch.at = at + table[i + 2]));
      batch.i += 3;
      this.#tellOne(kind, number, piece);
    }
  }

  /** @param {number} kind @param {number} number @param {string} piece */
  #tellOne(kind, number, piece) {
    const event = ENTRIES[kind](this, number, piece);
    if (event) this.emit(event);
  }

  /** What was kept for later. */
  #tellRest() {
    for (let later; (later = this.rest?.shift()); ) {
      this.strings = later.strings ?? [];
      if (later.event) this.emit(later.event);
      else this.#tellOne(.../** @type {[number, number, string]} */ (later.entry));
    }
    this.rest = undefined;
  }

  /**
   * Takes what is left of the batch as far as it concerns this side, and keeps what concerns others for later: a
   * checkpoint is taken while it is told.
   */
  #takeRest() {
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

  /** What the engine supposes that this side knows of the turn in which a checkpoint was taken. */
  #knowTurn() {
    const { turnIndex, turn } = this.restored.run;
    const last = this.log.findLastIndex((message) => message.role === "assistant");
    const [answer, ...results] = last < 0 ? [] : this.log.slice(last);
    this.answer = answer;
    for (const message of results) if (message.role === "tool_result") this.results.set(message.callId, message);
    for (const { result } of this.restored.run.phase.calls ?? []) if (result) this.results.set(result.callId, result);
    if (turn.open) this.turn = { turnIndex, message: turn.messageOpen, answered: !turn.messageOpen && this.restored.run.phase.kind === "dispatching" };
  }

  /** The run goes on: first is told what nobody was told of. @param {any} event */
  resume(event) {
    const untold = (this.restored?.untold ?? []).map((/** @type {any} */ told) => ({ ...told, runId: this.runId }));
    this.restored = undefined;
    const first = untold.find((/** @type {any} */ told) => told.turnIndex !== undefined);
    if (first) event.turnIndex = first.turnIndex;
    if (untold.some((/** @type {any} */ told) => told.type === "message_start" || told.type === "message_update")) delete event.partialMessage;
    for (const told of untold) note(this, told);
    this.#takeRest();
    this.rest = [...[event, ...untold].map((event) => ({ event })), ...(this.rest ?? [])];
  }

  /** The run as it stands. */
  checkpoint() {
    const { core, engine, handle, runId } = this;
    if (handle === 0) {
      const begin = this.restored || this.ended ? {} : { prompts: this.prompts };
      return core.envelope({ ...core.unentered(), ...begin }, this.restored?.run && runId);
    }
    if (engine.busy) throw misuse("no checkpoint can be taken inside a policy or transformer; take it in a listener");
    if (engine.dead || (this.ended && core.lagging !== this)) return core.checkpoint();
    core.posts++;
    this.#tellAnnounced();
    this.release();
    this.#takeRest();
    // Who iterates may be behind: what was not taken yet is not told.
    const queued = core.dispatching > 0 ? [] : (this.queue?.slice(this.head) ?? []);
    const waiting = [this.next, ...(this.rest ?? []).map(({ event }) => event)].filter((event) => event);
    const endTold = this.endTold && !queued.some(({ type }) => type === "agent_end");
    const state = JSON.parse(core.call(() => engine.glue.checkpoint(core.handle, handle, endTold, this.now())));
    // It has heard of tools that are done.
    this.wake();
    // The end that is told again counts again.
    if (state.run && this.end) state.usage = this.usageBefore;
    if (state.run) state.untold = [...queued, ...waiting, ...state.untold].filter(({ type }) => type !== "agent_end");
    return core.envelope(state, state.run && runId);
  }

  /** Nobody will ask any more where the run is. */
  letGo() {
    const { core, engine, handle } = this;
    if (core.lagging === this) core.lagging = undefined;
    if (engine && !engine.dead) engine.glue.run_drop(handle);
  }

  /** The texts before an entry. */
  takeStrings() {
    const { strings } = this;
    this.strings = emptyList();
    return strings;
  }

  /** The calls of the last answer, by their ids: as they came, whatever a listener has done to the message since. */
  knownCalls() {
    if (this.callsOf !== this.answer) {
      this.callsOf = this.answer;
      this.calls = new Map(callsOf(this.answer).map((call) => [call.callId, call]));
    }
    return this.calls;
  }

  /** A call of the last answer. @param {string} callId */
  callOf(callId) {
    return this.knownCalls().get(callId);
  }

  /**
   * Calls start together: each is announced, until somebody posts something that counts before the next one.
   * @param {any[]} calls
   */
  announce(calls) {
    const { core } = this;
    for (const call of calls) {
      if (core.posts !== this.heard) break;
      this.announced++;
      this.emit(typeof call === "string" ? toolStart(this, call) : { ...call, runId: this.runId });
    }
    this.#tellAnnounced();
  }

  /** The engine hears how many calls were announced. */
  #tellAnnounced() {
    const { announced, engine, handle } = this;
    this.announced = 0;
    if (announced > 0 && !engine.dead) engine.glue.run_started(handle, announced);
  }

  /** A pair of numbers is the messages from one place to before the other. @param {any[]} refs */
  resolveRefs(refs) {
    const list = (/** @type {any} */ ref) => (Array.isArray(ref) ? this.log.slice(...ref) : ref);
    // Mostly it is one run: a copy is ten times as fast as a list of lists made flat.
    return refs.length === 1 && Array.isArray(refs[0]) ? list(refs[0]) : refs.flatMap(list);
  }

  /** Tells one event to everybody. @param {any} event */
  emit(event) {
    if (this.coalesceMs > 0 && this.#hold(event, this.coalesceMs)) return;
    this.#send(event);
  }

  /** Holds pieces of one block back and joins them. @param {any} event @param {number} ms */
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

  /** @param {any} [next] waits until it is told; a checkpoint that is taken in there has to know of it */
  release(next) {
    const held = this.held;
    if (!held) return;
    this.held = undefined;
    held.timer.abort();
    this.next = next;
    this.#send(held.event);
    this.next = undefined;
  }

  /** @param {any} event */
  #send(event) {
    this.core.dispatch(event);
    if (this.queue !== undefined) this.#keep(this.queue, event);
    else if (this.early !== undefined) this.#keepEarly(this.early, event);
  }

  /** For who may iterate yet. A run in which nobody does keeps no pieces. @param {any[]} early @param {any} event */
  #keepEarly(early, event) {
    if (event.type === "message_update" || early.length === WAITING) this.early = undefined;
    else early.push(event);
  }

  /** For who iterates. @param {any[]} queue @param {any} event */
  #keep(queue, event) {
    const next = this.waiting.shift();
    if (next) return next({ done: false, value: event });
    const last = queue.length - this.head > WAITING ? queue[queue.length - 1] : undefined;
    if (last?.type === "message_update" && event.type === "message_update" && sameBlock(last.delta, event.delta)) {
      queue[queue.length - 1] = { ...last, delta: { ...last.delta, delta: last.delta.delta + event.delta.delta } };
    } else queue.push(event);
  }

  /** The one iterator of the run. Leaving it early stops the run. */
  iterate() {
    if (this.iterated) throw misuse("a run can be iterated once; use agent.subscribe for more listeners");
    if (!this.early) throw misuse(LATE);
    this.iterated = true;
    this.queue = this.early;
    this.early = undefined;
    const leave = (/** @type {unknown} */ value) => {
      this.queue = undefined;
      this.#dismissWaiting();
      if (this.ended) this.letGo();
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
      if (this.core.lagging === this) this.letGo();
      return Promise.resolve({ done: true, value: undefined });
    }
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  #dismissWaiting() {
    for (const next of this.waiting.splice(0)) next({ done: true, value: undefined });
  }

  /** @param {string} callId */
  partialArguments(callId) {
    const kept = this.arguments.get(callId);
    if (!kept) {
      return this.callOf(callId)?.arguments;
    }
    if (!kept.json) {
      kept.json = new PartialJson();
      for (const piece of kept.pieces) kept.json.feed(piece);
      kept.pieces.length = 0;
    }
    return kept.json.value;
  }

  /** @param {unknown} [reason] */
  abort(reason) {
    if (this.ended || this.stopping !== undefined) return;
    this.stopping = reason === undefined ? "the run was aborted" : textOf(reason);
    this.abortReason = reason;
    if (this.handle === 0) return;
    this.core.posts++;
    this.#leave((glue) => glue.run_abort(this.handle, this.stopping), "soon");
  }

  /**
   * An effect is not wanted any more. A request whose answer is whole may read its last bytes, so that the connection
   * can be used again.
   * @param {number} slot
   */
  cancel(slot) {
    const effect = this.slots.get(slot);
    this.slots.delete(slot);
    if (!effect || effect.whole) return;
    const stop = () => effect.abort(this.abortReason instanceof Error ? this.abortReason : (this.stopping ?? "not wanted any more"));
    if (effect.reading && this.stopping === undefined) effect.timer = later(stop, 200);
    else stop();
  }

  // ---- answers of effects; what comes for a slot that is gone changes nothing

  /** @param {number} slot @param {any} answer @param {"now" | "soon"} wakes */
  resolve(slot, answer, wakes) {
    if (!this.slots.has(slot)) return;
    // Most tools answer with a text.
    const isText = typeof answer === "string";
    const text = isText ? answer : (JSON.stringify(answer) ?? "null");
    this.slots.delete(slot);
    this.#leave((glue) => glue.resolve(this.handle, slot, text, isText), wakes);
  }

  /** @param {number} slot @param {unknown} error */
  reject(slot, error) {
    if (!this.slots.delete(slot)) return;
    this.core.noteThrown(error);
    this.#leave((glue) => glue.reject(this.handle, slot, textOf(error)));
  }

  /** A model call failed. @param {number} slot @param {unknown} error @param {any} info its plain form */
  fail(slot, error, info) {
    if (!this.slots.delete(slot)) return;
    this.core.noteThrown(error);
    this.#leave((glue) => glue.reject(this.handle, slot, JSON.stringify(info)));
  }

  /** @param {number} slot @param {string} event */
  subagentEvent(slot, event) {
    if (this.slots.has(slot)) this.#leave((glue) => glue.subagent_event(this.handle, slot, event));
  }

  /** @param {number} slot @param {string} update */
  update(slot, update) {
    // What is about to be heard is heard together.
    if (this.slots.has(slot)) this.#leave((glue) => glue.update(this.handle, slot, update), this.waking > 0 ? "soon" : "now");
  }

  /** A tool changes the session state; without a value the key is deleted. @param {number} slot @param {string} key @param {string | undefined} value */
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

  /** @param {number} slot @param {Uint8Array[]} chunks @param {number} size of all of them */
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
    if (this.slots.delete(slot)) this.#leave((glue) => glue.feed_end(this.handle, slot));
  }

  /** @param {number} slot @param {number} status @param {Record<string, string>} headers @param {Uint8Array} body */
  refuse(slot, status, headers, body) {
    if (!this.slots.delete(slot)) return;
    this.#leave((glue) => glue.feed_refusal(this.handle, slot, status, JSON.stringify(headers), body, this.now()));
  }

  /** @param {number} slot @param {string} event */
  streamEvent(slot, event) {
    if (this.slots.has(slot)) this.#leave((glue) => glue.stream_event(this.handle, slot, event));
  }

  /** @param {number} slot */
  streamEnd(slot) {
    if (this.slots.delete(slot)) this.#leave((glue) => glue.stream_event(this.handle, slot, "null"));
  }

  /** @param {number} slot @param {number} kind @param {number} index @param {string} delta */
  streamDelta(slot, kind, index, delta) {
    if (this.slots.has(slot)) this.#leave((glue) => glue.stream_delta(this.handle, slot, kind, index, delta));
  }

  // ---- the end

  /** @param {string} output the structured answer, or nothing */
  finish(output) {
    const { messages, stopReason, usage, turns, error } = this.end;
    this.#close({
      runId: this.runId, text: output || textOfLast(messages), messages, usage, turns, stopReason,
      ...(output && { output: this.core.answer }),
      ...(error && { error: new AgentError(error, this.core.causeOf(error, this.abortReason)) }),
    });
  }

  /** The run never began, or the instance died: what is open is ended here. @param {AgentError} error */
  #fail(error) {
    const { runId, core } = this;
    const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
    if (!this.end) {
      if (this.handle === 0) this.emit({ type: "agent_start", runId });
      if (this.turn !== undefined) this.#endTurn(error.info, usage);
      const messages = this.log.slice(this.begun);
      this.end = { type: "agent_end", runId, messages, stopReason: "error", usage, turns: 0, error: error.info };
      core.runEnds(this);
      this.endTold = true;
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
      if (!turn.message) this.emit({ type: "message_start", runId });
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
    if (this.queue && this.head < this.queue.length) this.core.lagging = this;
    else this.letGo();
    this.engine?.runs.delete(this.ref);
    this.core.runEnded(this);
    this.#dismissWaiting();
    this.settle(result);
  }
}

/**
 * The arguments of a call as far as they have come: the pieces, or what they make when somebody asked for that.
 * @typedef {{ pieces: string[], json: PartialJson | undefined }} Kept
 */

/**
 * An event to be told, or an entry of a batch to be taken, later.
 * @typedef {{ event?: any, entry?: [number, number, string], strings?: string[] }} Later
 */

/** A timer that keeps no process alive. @param {() => void} work @param {number} ms */
function later(work, ms) {
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
