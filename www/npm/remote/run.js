// @ts-check
// A run that goes on elsewhere, rebuilt from its events, with the interface of a local run.

import { AgentError, checkNames, kindOf, LATE, misuse, PartialJson, respond, shownOf, sleep, textsOf, uuid } from "../shared.js";

/** How many events may wait for a slow iterator before pieces of one block are joined. */
const MAX_WAITING_EVENTS = 1024;
const NO_USAGE = Object.freeze({ input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 });

/** @param {any} message @returns {any[]} */
const callsOf = (message) => (message?.content ?? []).filter((/** @type {any} */ { type }) => type === "tool_call");

/** Clock, randomness and ids, with defaults for what the host does not provide. @param {any} [host] */
export const hostWithDefaults = (host = {}) => ({
  now: () => host.now?.() ?? Date.now(),
  random: () => host.random?.() ?? Math.random(),
  id: () => host.id?.() ?? uuid(),
  /** @param {number} ms @param {AbortSignal} [signal] */
  sleep: (ms, signal) => sleep(host, ms, signal),
});

/**
 * Returns the given numbers, with defaults for the missing ones.
 * @template {Record<string, number>} T @param {string} where @param {any} given @param {T} defaults @returns {T}
 */
export function numbersWithDefaults(where, given, defaults) {
  const all = { ...defaults };
  checkNames(`unknown option \`${where}.`, given ?? {}, defaults);
  for (const [name, value] of Object.entries(given ?? {})) {
    if (value === undefined) continue;
    if (typeof value !== "number" || !(value >= 0)) throw misuse(`\`${where}.${name}\` must be a number from 0 on, got ${shownOf(value)}`);
    /** @type {any} */ (all)[name] = value;
  }
  return all;
}

/**
 * Throws if one of these options is given and is not a function.
 * @param {any} options @param {string[]} names
 */
export function checkFunctions(options, names) {
  for (const name of names) {
    if (options[name] !== undefined && typeof options[name] !== "function") throw misuse(`\`${name}\` must be a function, got ${kindOf(options[name])}`);
  }
}

/** What the events have reported of a run, and its listeners. */
export class RemoteDriver {
  /** @param {{ runId?: string, host: any, abort(reason?: unknown): void, messages?: () => readonly any[] }} options */
  constructor({ runId = "", host, abort, messages }) {
    this.runId = runId;
    this.abort = abort;
    this.readHistory = messages;
    /** The messages of the events so far. @type {any[]} */
    this.log = [];
    /** @type {any[] | undefined} */
    this.queue = undefined;
    /**
     * The events before anybody iterated; dropped at the first piece of an answer.
     * @type {any[] | undefined}
     */
    this.early = [];
    this.iterated = false;
    /** @type {((step: { done: boolean, value: any }) => void)[]} */
    this.waiting = [];
    /** @type {any} */
    this.end = undefined;
    this.hasBegun = false;
    this.turns = 0;
    /**
     * The open turn, and what has arrived of its answer.
     * @type {{ turnIndex: number, messageStarted: boolean, pieces: any[], answer: any, results: Map<string, any> } | undefined}
     */
    this.turn = undefined;
    /** @type {Map<string, PartialJson>} */
    this.arguments = new Map();
    /** @type {(result: any) => void} */
    this.settle = () => {};
    this.result = new Promise((resolve) => (this.settle = resolve));
    /** What responses need of a run; a local run has the same members. @type {any} */
    this.core = { subscribe: (/** @type {any} */ listener) => (this.listeners.add(listener), () => void this.listeners.delete(listener)), sleep: host.sleep };
    /** @type {Set<(event: any) => void>} */
    this.listeners = new Set();
    this.host = host;
    this.run = new RemoteRun(this);
  }

  /** Takes an event of the run. @param {any} event */
  take(event) {
    if (this.end) return;
    if (this.runId === "") this.runId = event.runId;
    this.hasBegun = true;
    this.#note(event);
    for (const listener of [...this.listeners]) listener(event);
    const next = this.waiting.shift();
    if (next) next({ done: false, value: event });
    else if (this.queue) this.#enqueue(this.queue, event);
    else if (event.type === "message_update" || this.early?.length === MAX_WAITING_EVENTS) this.early = undefined;
    else this.early?.push(event);
    if (event.type === "agent_end") this.#finish(event);
  }

  /** Queues an event for a slow iterator, as a local run does. @param {any[]} queue @param {any} event */
  #enqueue(queue, event) {
    const last = queue.length > MAX_WAITING_EVENTS ? queue.at(-1) : undefined;
    const isSame = last?.type === "message_update" && event.type === "message_update" && ["type", "contentIndex", "callId"].every((key) => last.delta[key] === event.delta[key]);
    if (isSame) queue[queue.length - 1] = { ...last, delta: { ...last.delta, delta: last.delta.delta + event.delta.delta } };
    else queue.push(event);
  }

  /** @param {any} event */
  #note(event) {
    const { turn } = this;
    switch (event.type) {
      case "run_resumed":
        if (event.partialMessage) this.turn ??= { turnIndex: event.turnIndex, messageStarted: true, pieces: [...event.partialMessage.content], answer: undefined, results: new Map() };
        return;
      case "turn_start":
        return void (this.turn = { turnIndex: event.turnIndex, messageStarted: false, pieces: [], answer: undefined, results: new Map() });
      case "message_start":
        return void (turn && (turn.messageStarted = true));
      case "message_update":
        return this.#feed(event.delta);
      case "message_reset":
        if (turn) turn.pieces = [];
        return this.arguments.clear();
      case "message_end":
        this.log.push(event.message);
        return void (turn && (turn.answer = event.message));
      case "tool_execution_end":
        return void turn?.results.set(event.callId, event.result);
      case "turn_end":
        this.turns += 1;
        this.log.push(...event.toolResults);
        this.arguments.clear();
        return void (this.turn = undefined);
      case "agent_end":
        this.end = event;
        this.log = event.messages;
    }
  }

  /** @param {any} delta */
  #feed({ type, contentIndex, callId, delta }) {
    if (type !== "tool_call") {
      const { pieces = [] } = this.turn ?? {};
      return void (pieces[contentIndex] = { type, [type]: (pieces[contentIndex]?.[type] ?? "") + delta });
    }
    const json = this.arguments.get(callId) ?? new PartialJson();
    this.arguments.set(callId, json);
    json.feed(delta);
  }

  /** @param {string} callId */
  partialArguments(callId) {
    const json = this.arguments.get(callId);
    return json ? json.value : callsOf(this.turn?.answer).find((call) => call.callId === callId)?.arguments;
  }

  /** @param {any} event */
  #finish({ runId, messages, usage, turns, stopReason, error, output }) {
    const answer = messages.findLast((/** @type {any} */ { role }) => role === "assistant");
    const text = (answer?.content ?? []).filter((/** @type {any} */ { type }) => type === "text").map((/** @type {any} */ block) => block.text).join("");
    for (const next of this.waiting.splice(0)) next({ done: true, value: undefined });
    this.settle({
      runId, text: output === undefined ? text : JSON.stringify(output), messages, usage, turns, stopReason,
      ...(output !== undefined && { output }), ...(error && { error: this.failure ?? new AgentError(error) }),
    });
  }

  /**
   * Ends the run when no more events will come: everything open is closed, as in a local run that breaks.
   * @param {AgentError} error @param {(event: any) => void} [emit]
   * @param {any} [endEvent] the end event, if only events before it are missing
   */
  fail(error, emit = (event) => this.take(event), endEvent = undefined) {
    if (this.end) return;
    const { runId, turn } = this;
    if (!endEvent) this.failure = error;
    const reason = error.code === "aborted" ? "aborted" : "error";
    if (!this.hasBegun) emit({ type: "agent_start", runId });
    if (turn) {
      const timestamp = this.host.now();
      let { answer } = turn;
      if (!answer) {
        answer = { role: "assistant", content: turn.pieces.filter(({ type }) => type !== "tool_call"), provider: "", model: "", usage: { ...NO_USAGE }, stopReason: reason, error: error.info, timestamp };
        if (!turn.messageStarted) emit({ type: "message_start", runId });
        emit({ type: "message_end", runId, message: answer });
      }
      const toolResults = callsOf(answer).map(({ callId, toolName }) => {
        const known = turn.results.get(callId);
        if (known) return known;
        const result = { role: "tool_result", callId, toolName, content: [{ type: "text", text: error.message }], isError: true, cause: "aborted", timestamp };
        emit({ type: "tool_execution_end", runId, callId, toolName, result, isError: true });
        return result;
      });
      emit({ type: "turn_end", runId, turnIndex: turn.turnIndex, message: answer, toolResults, reason });
    }
    if (endEvent) return emit(endEvent);
    /** @type {any} */
    const usage = { ...NO_USAGE };
    for (const message of this.log) for (const [key, tokens] of Object.entries(message.usage ?? {})) usage[key] = (usage[key] ?? 0) + tokens;
    emit({ type: "agent_end", runId, messages: this.log, stopReason: reason, usage, turns: this.turns, error: error.info });
  }

  iterate() {
    if (this.iterated) throw misuse("a run can be iterated once; use agent.subscribe for more listeners");
    if (!this.early) throw misuse(LATE);
    this.iterated = true;
    this.queue = this.early;
    this.early = undefined;
    return {
      next: () => this.#next(),
      return: (/** @type {unknown} */ value) => {
        this.queue = undefined;
        for (const next of this.waiting.splice(0)) next({ done: true, value: undefined });
        if (!this.end) this.abort("the iteration was left");
        return Promise.resolve({ done: true, value });
      },
      [Symbol.asyncIterator]() {
        return this;
      },
    };
  }

  /** @returns {Promise<{ done: boolean, value: any }>} */
  #next() {
    const { queue } = this;
    if (queue && queue.length > 0) return Promise.resolve({ done: false, value: queue.shift() });
    if (this.end || !queue) return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve) => this.waiting.push(resolve));
  }
}

/** A run that goes on elsewhere: iterate it, await it, or both. */
export class RemoteRun {
  /** @type {RemoteDriver} */ #driver;

  /** @param {RemoteDriver} driver */
  constructor(driver) {
    this.#driver = driver;
    /** Resolves to the outcome; never rejects for what happens in the run. @type {Promise<any>} */
    this.result = driver.result;
  }

  /** The run's id; empty until the first event. */
  get runId() {
    return this.#driver.runId;
  }

  /** @param {any} [done] @param {any} [failed] */
  then(done, failed) {
    return this.result.then(done, failed);
  }

  [Symbol.asyncIterator]() {
    return this.#driver.iterate();
  }

  get textStream() {
    return { [Symbol.asyncIterator]: () => textsOf(this[Symbol.asyncIterator]()) };
  }

  get messages() {
    return this.#driver.readHistory?.() ?? this.#driver.log;
  }

  /** @param {string} callId */
  partialArguments(callId) {
    return this.#driver.partialArguments(callId);
  }

  /** @param {unknown} [reason] */
  abort(reason) {
    if (!this.#driver.end) this.#driver.abort(reason);
  }

  /** @param {any} [init] */
  toResponse(init) {
    return respond(this.#driver, "events", init);
  }

  /** @param {any} [init] */
  toUIMessageStreamResponse(init) {
    return respond(this.#driver, "uiMessages", init);
  }
}
