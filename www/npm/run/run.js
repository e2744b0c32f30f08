// @ts-check
// A run as its caller sees it.

import { CORE, coreIn, hideCore, misuse, NOT_REACTIVE, PartialJson, respond, snapshotOf, textsOf } from "../shared.js";

/** @import { AgentEvent, AgentResult, EventResponseInit, JsonSchema, UIMessageResponseInit } from "../index.js" */
/** @import { Driver } from "./driver.js" */

/** What is behind a run, for other entries of the package. @type {(run: import("../index.js").AgentRun<any>) => Driver} */
export const driverOf = (run) => coreIn(run, "a run");

/** A run: iterate it, await it, or both. */
export class AgentRun {
  /** @type {Driver} */ [CORE];

  /** @param {Driver} driver @param {Promise<AgentResult>} result */
  constructor(driver, result) {
    this[CORE] = driver;
    hideCore(this);
    /** The run's id. */
    this.runId = driver.runId;
    /** Resolves to the outcome; never rejects for what happens in the run. */
    this.result = result;
  }

  /**
   * @template T, E @param {((result: AgentResult) => T | PromiseLike<T>) | null} [done]
   * @param {((reason: unknown) => E | PromiseLike<E>) | null} [failed]
   */
  then(done, failed) {
    return this.result.then(done, failed);
  }

  get [NOT_REACTIVE]() {
    return true;
  }

  [Symbol.asyncIterator]() {
    return this[CORE].outlet.queue.iterate();
  }

  /** The text of all answers, as it arrives. */
  get textStream() {
    return {
      [Symbol.asyncIterator]: () => textsOf(this[Symbol.asyncIterator]()),
      orThrow: () => textsOrThrow(this),
    };
  }

  /** The structured answer as far as it has arrived, again and again. */
  get partialOutput() {
    return { [Symbol.asyncIterator]: () => partialOutputs(this[Symbol.asyncIterator](), this[CORE].core.settings.output.schema) };
  }

  /** The result, or the error of a run that failed or was aborted. @returns {Promise<AgentResult>} */
  async orThrow() {
    const result = await this.result;
    if (result.error) throw result.error;
    return result;
  }

  /** The whole conversation so far. */
  get messages() {
    return this[CORE].fold.messages;
  }

  /** The arguments of a call as far as they have arrived: one live value. @param {string} callId */
  partialArguments(callId) {
    return this[CORE].fold.partialArguments(callId);
  }

  /** Whether the run is being lived again from what a durable engine has stored. */
  get replaying() {
    return this[CORE].isReplaying;
  }

  /** The run as it stands, to be continued elsewhere; see `Agent.restore`. */
  checkpoint() {
    return this[CORE].checkpoint();
  }

  /** Whether a question was one for a person when it was asked. @param {string} id */
  isForPeople(id) {
    return this[CORE].isForPeople(id);
  }

  /** Stops the run. @param {unknown} [reason] */
  abort(reason) {
    this[CORE].abort(reason);
  }

  /** A response that streams the events as server-sent events. @param {EventResponseInit} [init] */
  toResponse(init) {
    return respond(this[CORE], "events", init);
  }

  /** A response that the AI SDK's useChat can read. @param {UIMessageResponseInit} [init] */
  toUIMessageStreamResponse(init) {
    return respond(this[CORE], "uiMessages", init);
  }
}

/** @param {AsyncIterable<AgentEvent>} events @param {JsonSchema | undefined} schema */
async function* partialOutputs(events, schema) {
  if (!schema) throw misuse("`partialOutput` needs a schema: new Agent({ output })");
  yield* (await import("../events/partial-output.js")).outputsOf(events, schema, () => new PartialJson(), snapshotOf);
}

/** The text of all answers, and at the end the error, if there is one. @param {AgentRun} run */
async function* textsOrThrow(run) {
  yield* run.textStream;
  await run.orThrow();
}
