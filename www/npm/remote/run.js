// @ts-check
// A run that goes on elsewhere, rebuilt from its events, with the interface of a local run.

import { addUsage, closeTurn, EventQueue, Fold, noUsage, respond, resultOf, Subscribers, textsOf } from "../shared.js";
import { protocolError } from "./check-event.js";

/** @import { AgentEvent, AgentMessage, AgentResult, EventResponseInit, UIMessageResponseInit } from "../index.js" */
/** @import { AgentEnd, AgentError, Host } from "../shared.js" */
/**
 * @typedef {object} RemoteRunOptions
 * @property {string} runId empty if only the first event will tell
 * @property {Host} host
 * @property {(reason?: unknown) => void} abort
 * @property {() => readonly AgentMessage[]} [messages] the history, if it is known
 */

/** What the events have reported of a run, and its listeners. */
export class RemoteDriver {
  /** @param {RemoteRunOptions} options */
  constructor({ runId, host, abort, messages }) {
    this.runId = runId;
    this.host = host;
    this.abort = abort;
    this.readHistory = messages;
    this.fold = new Fold([]);
    this.queue = new EventQueue(this);
    this.subscribers = new Subscribers();
    this.hasBegun = false;
    /** The length of all its events. */
    this.size = 0;
    /** Why no more events will come. @type {AgentError | undefined} */
    this.failure = undefined;
    /** @type {(result: AgentResult) => void} */
    this.settle = () => {};
    this.result = new Promise((/** @type {(result: AgentResult) => void} */ resolve) => (this.settle = resolve));
    this.run = new RemoteRun(this);
  }

  // ---- what a response needs of a run

  get end() {
    return this.fold.end;
  }

  /** The server shows no others. */
  isForPeople() {
    return true;
  }

  get hasOutput() {
    return false;
  }

  /** @param {(event: AgentEvent) => void} listener */
  subscribe(listener) {
    return this.subscribers.add(listener);
  }

  /** @param {number} ms @param {AbortSignal} signal */
  sleep(ms, signal) {
    return this.host.sleep(ms, signal);
  }

  // ---- its iterator

  left() {
    if (!this.end) this.abort("the iteration was left");
  }

  drained() {}

  // ---- events

  /** Counts what was sent of the run, or throws if it is too much. @param {string} data @param {number} limit */
  measure(data, limit) {
    this.size += data.length;
    if (this.size > limit && !this.end) throw protocolError(`the events of the run have more than ${limit} bytes; see the option \`limits.runBytes\``);
  }

  /** Takes an event of the run. @param {AgentEvent} event */
  take(event) {
    if (this.end) return;
    if (this.runId === "") this.runId = event.runId;
    this.hasBegun = true;
    this.fold.take(event);
    this.subscribers.dispatch(event);
    this.queue.push(event);
    if (event.type === "agent_end") this.#finish(event);
  }

  /** @param {AgentEnd & { output?: unknown }} end the server adds the structured answer */
  #finish(end) {
    this.fold.messages = end.messages;
    this.queue.close();
    const { output } = end;
    this.settle(resultOf(end, { text: output === undefined ? undefined : JSON.stringify(output), output, error: this.failure }));
  }

  /**
   * Ends the run when no more events will come: everything open is closed, as in a local run that breaks.
   * @param {AgentError} error @param {(event: AgentEvent) => void} [emit]
   * @param {AgentEnd} [endEvent] the end event, if only events before it are missing
   */
  fail(error, emit = (event) => this.take(event), endEvent = undefined) {
    if (this.end) return;
    const { runId, fold, host } = this;
    if (!endEvent) this.failure = error;
    const reason = error.code === "aborted" ? "aborted" : "error";
    if (!this.hasBegun) emit({ type: "agent_start", runId, at: host.now() });
    closeTurn(fold, { runId, error: error.info, reason, timestamp: host.now() }, emit);
    emit(endEvent ?? { type: "agent_end", runId, messages: fold.messages, stopReason: reason, usage: this.#usage(), turns: fold.turns, error: error.info, at: host.now() });
  }

  #usage() {
    let usage = noUsage();
    for (const message of this.fold.messages) if (message.role === "assistant") usage = addUsage(usage, message.usage ?? {});
    return usage;
  }
}

/** A run that goes on elsewhere: iterate it, await it, or both. */
export class RemoteRun {
  /** @type {RemoteDriver} */ #driver;

  /** @param {RemoteDriver} driver */
  constructor(driver) {
    this.#driver = driver;
    /** Resolves to the outcome; never rejects for what happens in the run. */
    this.result = driver.result;
  }

  /** The run's id; empty until the first event. */
  get runId() {
    return this.#driver.runId;
  }

  /**
   * @template T, E @param {((result: AgentResult) => T | PromiseLike<T>) | null} [done]
   * @param {((reason: unknown) => E | PromiseLike<E>) | null} [failed]
   */
  then(done, failed) {
    return this.result.then(done, failed);
  }

  [Symbol.asyncIterator]() {
    return this.#driver.queue.iterate();
  }

  get textStream() {
    return {
      [Symbol.asyncIterator]: () => textsOf(this[Symbol.asyncIterator]()),
      orThrow: () => textsOrThrow(this),
    };
  }

  /** The result, or the error of a run that failed or was aborted. @returns {Promise<AgentResult>} */
  async orThrow() {
    const result = await this.result;
    if (result.error) throw result.error;
    return result;
  }

  get messages() {
    return this.#driver.readHistory?.() ?? this.#driver.fold.messages;
  }

  /** @param {string} callId */
  partialArguments(callId) {
    return this.#driver.fold.partialArguments(callId);
  }

  /** @param {unknown} [reason] */
  abort(reason) {
    if (!this.#driver.end) this.#driver.abort(reason);
  }

  /** @param {EventResponseInit} [init] */
  toResponse(init) {
    return respond(this.#driver, "events", init);
  }

  /** @param {UIMessageResponseInit} [init] */
  toUIMessageStreamResponse(init) {
    return respond(this.#driver, "uiMessages", init);
  }
}

/** The text of all answers, and at the end the error, if there is one. @param {RemoteRun} run */
async function* textsOrThrow(run) {
  yield* run.textStream;
  await run.orThrow();
}
