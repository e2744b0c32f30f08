// @ts-check
// What stands around execution: `wrapTool` and `wrapModel` of the host, and whoever observes. Loaded once one of them is set.

import { misuse } from "../core.js";

/** @import { AssistantMessage, LlmMessage } from "../index.js" */
/** @import { Driver } from "../run/driver.js" */
/** @import { Slot } from "./slot.js" */

/**
 * Runs a tool inside `wrapTool`. Nothing starts once nobody wants the result any more.
 * @param {Driver} run @param {Slot} state @param {{ callId: string, toolName: string, arguments: unknown }} call
 * @param {() => unknown} execute @param {object} context of the tool: what `next` is given is added to it @returns {unknown}
 */
export function aroundTool(run, state, call, execute, context) {
  const { wrapTool, within } = run.around;
  const work = wrapTool ? () => wrapTool(/** @type {any} */ (new WrappedCall(run, state, call)), nextOf(state, execute, context)) : execute;
  return within ? within(run.runId, call, work) : work();
}

/** What `wrapTool` is given to run the tool. @param {Slot} state @param {() => unknown} execute @param {object} context */
function nextOf(state, execute, context) {
  let isAsked = false;
  if (state.aborted) throw state.signal.reason;
  return async (/** @type {object | undefined} */ more) => {
    if (isAsked) throw misuse("`next` of `wrapTool` may be called once");
    isAsked = true;
    if (state.aborted) throw state.signal.reason;
    if (more) Object.assign(context, more);
    return execute();
  };
}

/** The key under which a wrapped call holds its slot. @type {unique symbol} */
const SLOT = Symbol("turnwheel.slot");

/** Made when it is first read. All calls share this getter: V8 takes long for each one that is written in an object literal. */
const SIGNAL = {
  enumerable: true,
  configurable: true,
  /** @this {{ [SLOT]: Slot }} */
  get() {
    return this[SLOT].signal;
  },
};

/** What `wrapTool` is told. */
class WrappedCall {
  /** @param {Driver} run @param {Slot} state @param {{ callId: string, toolName: string, arguments: unknown }} call */
  constructor(run, state, { callId, toolName, arguments: args }) {
    /** @type {{ [SLOT]?: Slot }} */ (this)[SLOT] = state;
    const { runId, sessionId, turnIndex, metadata } = run.about();
    this.runId = runId;
    this.sessionId = sessionId;
    this.turnIndex = turnIndex;
    if (metadata !== undefined) this.metadata = metadata;
    this.path = run.around.path;
    this.callId = callId;
    this.toolName = toolName;
    this.arguments = args;
    Object.defineProperty(this, "signal", SIGNAL);
  }
}

/** An attempt inside `wrapModel`. The request is made where `next` was called, so it sees what is set there. */
export class Attempt {
  constructor() {
    this.isAsked = false;
    /** The request of the attempt. @type {Deferred<() => void>} */
    this.work = new Deferred();
    /** What became of it. @type {Deferred<AssistantMessage | undefined>} */
    this.ended = new Deferred();
    /** @type {Promise<unknown>} */
    this.wrapped = Promise.resolve();
  }

  /**
   * Calls `wrapModel`, and waits until it wants the model to be called.
   * @param {Driver} run @param {{ attempt: number, model: string, messages: readonly LlmMessage[] }} call @param {AbortSignal} signal
   */
  async begin(run, call, signal) {
    /** @type {Deferred<void>} */
    const begun = new Deferred();
    const next = () => {
      if (this.isAsked) throw misuse("`next` of `wrapModel` may be called once");
      this.isAsked = true;
      // A promise calls back in the context that is current here.
      this.work.promise.then((work) => work());
      begun.resolve();
      return this.ended.promise;
    };
    const wrap = async () => run.around.wrapModel?.({ ...run.about(), path: run.around.path, ...call, signal }, next);
    this.wrapped = wrap();
    this.wrapped.catch(() => {});
    await Promise.race([begun.promise, this.wrapped]);
    if (!this.isAsked) throw misuse("`wrapModel` has returned and not called `next`; it cannot answer in place of the model");
  }

  /** Makes the request. @param {() => void} work */
  start(work) {
    this.work.resolve(work);
  }

  /** The attempt is over; the run goes on when the wrapper has returned. @param {AssistantMessage | undefined} message */
  async end(message) {
    this.ended.resolve(message);
    await this.wrapped;
  }
}

/** A promise that is settled from outside. @template T */
class Deferred {
  constructor() {
    /** @type {(value: T) => void} */
    this.resolve = () => {};
    /** @type {Promise<T>} */
    this.promise = new Promise((resolve) => (this.resolve = resolve));
  }
}
