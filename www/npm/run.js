// @ts-check
// One run: reads what the engine says, tells the listeners, begins effects, brings their answers back.

import { begin } from "./effects.js";
import { KIND } from "./engine.js";
import { AgentError, fromEngine, infoOf, misuse, textOf } from "./errors.js";
import { PartialJson } from "./partial.js";

/** So many events may wait for a slow iterator before pieces of one block are joined. */
const WAITING = 1024;

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
    const run = this;
    return {
      async *[Symbol.asyncIterator]() {
        for await (const event of run) {
          if (event.type === "message_update" && event.delta.type === "text") yield event.delta.delta;
        }
      },
    };
  }

  /** The whole conversation as it stands. */
  get messages() {
    return this.#driver.core.messages;
  }

  /** The arguments of a call as far as they have arrived: one live value. @param {string} callId */
  partialArguments(callId) {
    return this.#driver.partialArguments(callId);
  }

  /** Stops the run. @param {unknown} [reason] */
  abort(reason) {
    this.#driver.abort(reason);
  }
}

/** The working half of a run; the agent holds it while it goes on. */
export class Driver {
  /**
   * @param {any} core @param {any[] | null} prompts @param {{ signal?: AbortSignal, runId?: string }} options
   */
  constructor(core, prompts, { signal, runId }) {
    this.core = core;
    this.runId = runId ?? core.newId();
    this.handle = 0;
    this.ended = false;
    /** @type {Map<number, AbortController>} */
    this.slots = new Map();
    /** Events for the iterator, while there is one. @type {any[] | undefined} */
    this.queue = undefined;
    /** @type {(() => void) | undefined} */
    this.wakeIterator = undefined;
    this.messages = [];
    /** Results of this turn, by call. @type {Map<string, any>} */
    this.results = new Map();
    /** The calls that stream, by block. @type {Map<number, [string, string]>} */
    this.streaming = new Map();
    /** Pieces of arguments, by call. @type {Map<string, { pieces: string[], json?: PartialJson }>} */
    this.arguments = new Map();
    /** @type {any} */
    this.answer = undefined;
    /** @type {any} */
    this.before = undefined;
    /** Held back for `coalesceMs`. @type {any} */
    this.held = undefined;
    /** @type {any} */
    this.error = undefined;
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
    queueMicrotask(() => this.#start(prompts));
  }

  /** @param {any[] | null} prompts */
  async #start(prompts) {
    try {
      const ready = this.core.ready();
      const engine = ready instanceof Promise ? await ready : ready;
      this.engine = engine;
      const text = prompts === null ? undefined : JSON.stringify(prompts);
      this.handle = engine.glue.run_new(this.core.handle, text, this.runId, this.core.sessionId, this.now());
      this.core.byHandle.set(this.handle, this);
      if (this.stopping !== undefined) engine.glue.run_abort(this.handle, this.stopping);
      this.poll();
    } catch (error) {
      this.#fail(fromEngine(error));
    }
  }

  now() {
    return this.core.now();
  }

  /** Tells what the engine has to say, and goes on until it waits for an answer. */
  poll() {
    // Whoever calls in while a batch is told is heard as soon as it is told: the loop below asks again.
    if (this.draining || this.ended || this.handle === 0) return;
    this.draining = true;
    try {
      while (!this.ended && this.#call((glue) => glue.run_poll(this.handle, this.now()))) {
        this.engine.read();
        this.#tell(this.engine.table.slice(0, this.engine.length), this.engine.text);
      }
    } finally {
      this.draining = false;
    }
  }

  /** A call into the engine. A panic there ends every run: the instance is gone. @param {(glue: any) => any} work */
  #call(work) {
    try {
      return work(this.engine.glue);
    } catch (error) {
      this.core.crashed(error);
      return false;
    }
  }

  /** Leaves something at the run's desk, and goes on. @param {(glue: any) => any} leave */
  #leave(leave) {
    if (this.ended) return;
    this.#call(leave);
    this.poll();
  }

  /** One batch, entry by entry. @param {Uint32Array} table @param {string} text */
  #tell(table, text) {
    let at = 0;
    for (let i = 0; i < table.length; i += 3) {
      const kind = table[i];
      const number = table[i + 1];
      const piece = text.substring(at, (at += table[i + 2]));
      if (kind <= KIND.ARGUMENTS) this.#delta(kind, number, piece);
      else this.#entry(kind, number, piece);
    }
  }

  /** @param {number} kind @param {number} contentIndex @param {string} delta */
  #delta(kind, contentIndex, delta) {
    if (kind === KIND.ARGUMENTS) {
      const [callId, toolName] = this.streaming.get(contentIndex) ?? ["", ""];
      const kept = this.arguments.get(callId);
      if (kept?.json) kept.json.feed(delta);
      else kept?.pieces.push(delta);
      if (!this.#isHeard()) return;
      return this.emit({ type: "message_update", runId: this.runId, delta: { type: "tool_call", contentIndex, callId, toolName, delta } });
    }
    if (!this.#isHeard()) return;
    const type = kind === KIND.TEXT ? "text" : "thinking";
    this.emit({ type: "message_update", runId: this.runId, delta: { type, contentIndex, delta } });
  }

  #isHeard() {
    return this.queue !== undefined || this.core.listeners.size > 0;
  }

  /** @param {number} kind @param {number} number @param {string} piece */
  #entry(kind, number, piece) {
    const { core, runId } = this;
    switch (kind) {
      case KIND.CALL: {
        const call = JSON.parse(piece);
        this.streaming.set(number, call);
        if (!this.arguments.has(call[0])) this.arguments.set(call[0], { pieces: [] });
        return;
      }
      case KIND.EVENT: {
        const event = JSON.parse(piece);
        event.runId = runId;
        if (number === 1) event.messages = core.resolveRefs(event.messages);
        if (event.type === "tool_execution_end") this.results.set(event.callId, event.result);
        core.note(event);
        return this.emit(event);
      }
      case KIND.APPEND: {
        const message = JSON.parse(piece);
        if (message.role === "assistant") this.answer = message;
        if (message.role === "tool_result") this.results.set(message.callId, message);
        return void core.messages.push(message);
      }
      case KIND.APPEND_ANSWER:
        return void core.messages.push(this.answer);
      case KIND.APPEND_RESULT:
        return void core.messages.push(this.results.get(piece));
      case KIND.TRUNCATE:
        this.before = core.messages;
        return void (core.messages = core.messages.slice(0, number));
      case KIND.COPY:
        return void core.messages.push(this.before[number]);
      case KIND.EFFECT:
        return begin(this, number, JSON.parse(piece));
      case KIND.CANCEL:
        return this.#cancel(number);
      case KIND.RECEIPT:
        return core.settleReceipt(number, piece === "" ? { delivered: false, reason: "cleared" } : { delivered: true, turnIndex: Number(piece) });
      case KIND.MESSAGE_END:
        return this.emit({ type: "message_end", runId, message: this.answer });
      case KIND.PROPOSED:
        return this.emit({ type: "tool_calls_proposed", runId, calls: callsOf(this.answer) });
      case KIND.TOOL_START: {
        const call = callsOf(this.answer).find((candidate) => candidate.callId === piece);
        return this.emit({ type: "tool_execution_start", runId, callId: piece, toolName: call.toolName, arguments: call.arguments });
      }
      case KIND.TOOL_END: {
        const result = this.results.get(piece);
        return this.emit({ type: "tool_execution_end", runId, callId: piece, toolName: result.toolName, result, isError: result.isError });
      }
      case KIND.TURN_END: {
        const { turnIndex, reason, message, results } = JSON.parse(piece);
        const toolResults = results.map((/** @type {string} */ id) => this.results.get(id));
        this.results.clear();
        this.streaming.clear();
        this.arguments.clear();
        return this.emit({ type: "turn_end", runId, turnIndex, message: number === 1 ? this.answer : message, toolResults, reason });
      }
      case KIND.AGENT_END: {
        const { messages, ...end } = JSON.parse(piece);
        this.end = { type: "agent_end", runId, messages: [...messages, ...core.messages.slice(core.messages.length - number)], ...end };
        core.addUsage(end.usage);
        return this.emit(this.end);
      }
      case KIND.END:
        return this.#finish();
    }
  }

  /** Tells one event to everybody. @param {any} event */
  emit(event) {
    const { coalesceMs } = this.core.options;
    if (coalesceMs > 0 && this.#hold(event, coalesceMs)) return;
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
      this.#release();
      const timer = setTimeout(() => this.#release(), ms);
      this.held = { event, timer };
      return true;
    }
    this.#release();
    return false;
  }

  #release() {
    const held = this.held;
    if (!held) return;
    this.held = undefined;
    clearTimeout(held.timer);
    this.#send(held.event);
  }

  /** @param {any} event */
  #send(event) {
    this.core.dispatch(event);
    const queue = this.queue;
    if (queue === undefined) return;
    const last = queue.length > WAITING ? queue[queue.length - 1] : undefined;
    if (last?.type === "message_update" && event.type === "message_update" && sameBlock(last.delta, event.delta)) {
      queue[queue.length - 1] = { ...last, delta: { ...last.delta, delta: last.delta.delta + event.delta.delta } };
    } else queue.push(event);
    this.wakeIterator?.();
  }

  /** The one iterator of the run. Leaving it early stops the run. */
  iterate() {
    if (this.queue !== undefined) throw misuse("a run can be iterated once; use agent.subscribe for more listeners");
    const queue = (this.queue = /** @type {any[]} */ ([]));
    let head = 0;
    const next = async () => {
      for (;;) {
        if (head < queue.length) {
          const value = queue[head];
          queue[head++] = undefined;
          if (head > 512 && head * 2 > queue.length) head = queue.splice(0, head).length * 0;
          return { done: false, value };
        }
        if (this.ended) return { done: true, value: undefined };
        await new Promise((resolve) => (this.wakeIterator = () => resolve(undefined)));
      }
    };
    return {
      next,
      return: async () => {
        if (!this.ended) this.abort("the iteration was left");
        return { done: true, value: undefined };
      },
      [Symbol.asyncIterator]() {
        return this;
      },
    };
  }

  /** @param {string} callId */
  partialArguments(callId) {
    const kept = this.arguments.get(callId);
    if (!kept) {
      const call = callsOf(this.answer).find((candidate) => candidate.callId === callId);
      return call?.arguments;
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
    if (this.handle) {
      this.engine.glue.run_abort(this.handle, this.stopping);
      queueMicrotask(() => this.poll());
    }
  }

  /**
   * An effect is not wanted any more. A request whose answer is whole may read its last bytes, so that the connection
   * can be used again.
   * @param {number} slot
   */
  #cancel(slot) {
    const controller = /** @type {any} */ (this.slots.get(slot));
    this.slots.delete(slot);
    if (controller?.reading && this.stopping === undefined) return void (controller.timer = later(() => controller.abort(), 200));
    controller?.abort(this.abortReason instanceof Error ? this.abortReason : new DOMException(this.stopping ?? "not wanted any more", "AbortError"));
  }

  // ---- answers of effects; what comes for a slot that is gone changes nothing

  /** @param {number} slot @param {any} answer */
  resolve(slot, answer) {
    if (!this.slots.delete(slot)) return;
    this.#leave((glue) => glue.resolve(this.handle, slot, JSON.stringify(answer ?? null)));
  }

  /** @param {number} slot @param {any} error */
  reject(slot, error) {
    if (!this.slots.delete(slot)) return;
    this.core.noteThrown(error);
    const plain = error !== null && typeof error === "object" && !(error instanceof Error) ? JSON.stringify(error) : textOf(error);
    this.#leave((glue) => glue.reject(this.handle, slot, plain));
  }

  /** @param {number} slot @param {string} update */
  update(slot, update) {
    if (this.slots.has(slot)) this.#leave((glue) => glue.update(this.handle, slot, update));
  }

  /** A tool changes the session state; without a value the key is deleted. @param {number} slot @param {string} key @param {string | undefined} value */
  setState(slot, key, value) {
    if (!this.slots.has(slot)) return;
    if (value === undefined) this.core.state.delete(key);
    else this.core.state.set(key, JSON.parse(value));
    this.engine.glue.set_state(this.handle, slot, key, value);
  }

  /** @param {number} slot */
  takeBody(slot) {
    return this.engine.glue.take_body(this.handle, slot);
  }

  /** @param {number} slot @param {Uint8Array} bytes */
  feed(slot, bytes) {
    this.engine.write(bytes);
    this.#leave((glue) => glue.feed(this.handle, slot, bytes.length));
  }

  /** @param {number} slot */
  feedEnd(slot) {
    this.#leave((glue) => glue.feed_end(this.handle, slot));
  }

  /** @param {number} slot @param {number} status @param {Record<string, string>} headers @param {Uint8Array} body */
  refuse(slot, status, headers, body) {
    this.#leave((glue) => glue.feed_refusal(this.handle, slot, status, JSON.stringify(headers), body, this.now()));
  }

  /** @param {number} slot @param {string} event */
  streamEvent(slot, event) {
    if (this.slots.has(slot)) this.#leave((glue) => glue.stream_event(this.handle, slot, event));
  }

  /** @param {number} slot @param {number} kind @param {number} index @param {string} delta */
  streamDelta(slot, kind, index, delta) {
    if (this.slots.has(slot)) this.#leave((glue) => glue.stream_delta(this.handle, slot, kind, index, delta));
  }

  // ---- the end

  #finish() {
    const { messages, stopReason, usage, turns, error } = this.end;
    const answers = messages.filter((/** @type {any} */ message) => message.role === "assistant");
    const text = textOfMessage(answers.at(-1));
    this.#close({
      runId: this.runId, text, messages, usage, turns, stopReason,
      ...(error && { error: new AgentError(error, this.core.causeOf(error, this.abortReason)) }),
    });
  }

  /** The run never began, or the instance died. @param {AgentError} error */
  #fail(error) {
    const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
    const { info } = error;
    if (!this.end) {
      this.end = { type: "agent_end", runId: this.runId, messages: [], stopReason: "error", usage, turns: 0, error: info };
      if (this.handle === 0) this.#send({ type: "agent_start", runId: this.runId });
      this.#send(this.end);
    }
    this.#close({ runId: this.runId, text: "", messages: [], usage, turns: 0, stopReason: "error", error });
  }

  /** @param {AgentError} error */
  crash(error) {
    if (!this.ended) this.#fail(error);
  }

  /** @param {any} result */
  #close(result) {
    this.#release();
    this.ended = true;
    this.unlisten();
    for (const slot of [...this.slots.keys()]) this.#cancel(slot);
    this.core.byHandle.delete(this.handle);
    this.core.runEnded(this);
    this.wakeIterator?.();
    this.settle(result);
  }
}

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

/** @param {any} message */
function callsOf(message) {
  return (message?.content ?? []).filter((/** @type {any} */ block) => block.type === "tool_call");
}

/** @param {any} message */
function textOfMessage(message) {
  return (message?.content ?? []).filter((/** @type {any} */ block) => block.type === "text").map((/** @type {any} */ block) => block.text).join("");
}
