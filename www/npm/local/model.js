// @ts-check
// What a page has of an on-device model before the first answer: its options, whether it is there, whose turn it is, errors
// that the loop understands. What asks and reads answers (answers.js) is loaded with the model, or by the first request.

import { AgentError, checkFunctions, checkNames, misuse, textOf } from "../shared.js";

/** @import { AssistantMessageEvent, ErrorKind, LlmMessage, ModelRequest, Usage } from "../index.js" */
/** @import { LocalModel, LocalOptions, ToolMode } from "../local.js" */
/** @import { ChatMessage } from "./prompt.js" */
/** @import { Form } from "./shape.js" */

/**
 * What an engine is asked: with `constraint`, the answer has to have its form; with `tools`, it may call them its own way, and has
 * the conversation as `messages`.
 * @typedef {{ chat: ChatMessage[], messages?: object[], constraint: any, tools: ModelRequest["tools"], options: ModelRequest["options"], signal: AbortSignal }} Asked
 */
/** @typedef {{ text?: string, thinking?: string, call?: { index: number, id?: string, name?: string, json?: string }, usage?: Partial<Usage>, reason?: "stop" | "length" }} Chunk */
/**
 * An engine: `constrain` makes of a form what holds it to that, `native` loads what reads its own calls.
 * @typedef {{
 *   name: string,
 *   native?(): Promise<{ native: Answering }>,
 *   availability(): Promise<"unavailable" | "downloadable" | "downloading" | "available">,
 *   prepare(signal: AbortSignal | undefined): Promise<void>,
 *   constrain(form: Form): Promise<unknown>,
 *   answer(asked: Asked): AsyncIterable<Chunk>,
 *   said?(answer: string): void,
 *   failure?(error: any): { code: ErrorKind, retryable?: boolean } | "constraint" | undefined,
 *   dispose(): Promise<void>,
 * }} Adapter
 */
/** An engine and how it is asked; `mode` changes if it refuses the constraint. @typedef {{ adapter: Adapter, mode: ToolMode, maxCalls: number, afterResults: string | undefined }} Asking */
/** @typedef {(asking: Asking, request: ModelRequest, signal: AbortSignal) => AsyncGenerator<AssistantMessageEvent>} Answering */

const OPTIONS = ["id", "tools", "maxCalls", "contextWindow", "afterResults", "onProgress"];
const MODES = ["constrained", "native", "prompted"];

/** @param {string} name @param {LocalOptions} options @param {string[]} [others] of this engine */
export function checkLocal(name, options, others = []) {
  checkNames(`${name}: unknown option`, options, [...OPTIONS, ...others]);
  checkFunctions(options, ["onProgress"]);
  const { tools = "constrained", maxCalls = 4, contextWindow = 1, afterResults = "" } = options;
  if (!MODES.includes(tools)) throw misuse(`${name}: \`tools\` must be "constrained", "native" or "prompted", got ${JSON.stringify(tools)}`);
  const isCount = (/** @type {unknown} */ count, most = Infinity) => Number.isSafeInteger(count) && Number(count) > 0 && Number(count) <= most;
  if (!isCount(maxCalls, 64)) throw misuse(`${name}: \`maxCalls\` must be a whole number from 1 to 64, got ${String(maxCalls)}`);
  if (!isCount(contextWindow)) throw misuse(`${name}: \`contextWindow\` must be a number of tokens, got ${String(contextWindow)}`);
  if (typeof afterResults !== "string") throw misuse(`${name}: \`afterResults\` must be a text, "" for none`);
}

/** @param {string} code @param {string} message @param {unknown} [cause] @param {boolean} [retryable] */
export function failure(code, message, cause, retryable = false) {
  return new AgentError({ code: /** @type {ErrorKind} */ (code), message, retryable }, cause);
}

/** What is loaded when it is needed. @template T @param {Promise<T>} part @returns {Promise<T>} */
export async function loaded(part) {
  try {
    return await part;
  } catch (error) {
    throw failure("network", `a part of turnwheel/local cannot be loaded: ${textOf(error)}`, error, true);
  }
}

/** The text of a message. @param {LlmMessage} message */
export function wordsOf({ content }) {
  return content.map((block) => (block.type === "text" ? block.text : block.type === "image" ? "[an image, which this model cannot see]" : "")).join("");
}

const loadAnswers = () => loaded(import("./answers.js"));

/** Makes a model of an engine. @param {Adapter} adapter @param {LocalOptions} options @returns {LocalModel} */
export function localModel(adapter, options) {
  const { id = adapter.name, tools: mode = "constrained", maxCalls = 4, contextWindow, afterResults } = options;
  if (mode === "native" && !adapter.native) throw misuse(`${adapter.name}: it has no tool calls of its own; leave \`tools\` out`);
  const asking = { adapter, mode, maxCalls, afterResults };
  const enter = oneAtATime(adapter.name);

  /** @param {ModelRequest} request @param {{ signal: AbortSignal }} context @returns {AsyncGenerator<AssistantMessageEvent>} */
  async function* streamFn(request, { signal }) {
    const leave = await enter(signal);
    try {
      const answer = mode === "native" && adapter.native ? (await loaded(adapter.native())).native : (await loadAnswers()).formed;
      yield* answer(asking, request, signal);
    } catch (error) {
      throw signal.aborted ? error : explained(adapter, error);
    } finally {
      leave();
    }
  }

  const model = {
    provider: "local",
    id,
    streamFn,
    availability: () => adapter.availability().catch(() => /** @type {"unavailable"} */ ("unavailable")),
    async prepare({ signal } = /** @type {{ signal?: AbortSignal }} */ ({})) {
      try {
        // The engine first: a click allows a download for a moment.
        await Promise.all([adapter.prepare(signal), loadAnswers()]);
      } catch (error) {
        throw signal?.aborted ? error : explained(adapter, error);
      }
    },
    [Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")]: () => adapter.dispose(),
  };
  // What `custom` does too, without the rest of the engine.
  Object.defineProperty(model, Symbol.for("turnwheel.model"), { value: () => ({ contextWindow }) });
  return /** @type {any} */ (Object.freeze(model));
}

/** How long an engine may write on after its answer was stopped: while it reads a long question, some cannot be stopped. */
const STOP_MS = 60_000;

/**
 * Every engine writes one answer at a time: who enters waits for its turn, and lets the next one in by what it gets. An engine that
 * does not stop keeps nobody waiting for ever.
 * @param {string} name
 */
function oneAtATime(name) {
  let queue = Promise.resolve();
  /** The one inside was stopped long ago. */
  let stuck = new AbortController();
  return async (/** @type {AbortSignal} */ signal) => {
    const before = queue;
    /** @type {() => void} */
    let leave = () => {};
    queue = new Promise((done) => (leave = () => void before.then(done)));
    try {
      await abortable(before, [signal, stuck.signal]);
    } catch (error) {
      leave();
      throw error;
    }
    /** @type {any} */
    let timer;
    const giveUp = () => stuck.abort(failure("server", `${name}: the engine still writes an answer that was stopped a minute ago; make engine and model anew`));
    const stop = () => {
      timer = setTimeout(giveUp, STOP_MS);
      // No process waits for it.
      timer.unref?.();
    };
    signal.addEventListener("abort", stop, { once: true });
    return () => {
      signal.removeEventListener("abort", stop);
      clearTimeout(timer);
      if (stuck.signal.aborted) stuck = new AbortController();
      leave();
    };
  };
}

/** Rejects as soon as one of the signals aborts, with its reason. @param {Promise<void>} promise @param {AbortSignal[]} signals @returns {Promise<void>} */
function abortable(promise, signals) {
  return new Promise((resolve, reject) => {
    for (const signal of signals) {
      const stop = () => reject(signal.reason);
      if (signal.aborted) stop();
      signal.addEventListener("abort", stop, { once: true });
      void promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
    }
  });
}

/** @param {Adapter} adapter @param {any} error @param {ReturnType<NonNullable<Adapter["failure"]>>} [known] what the adapter says of it: it is asked once, for it lets go of an engine that died */
export function explained(adapter, error, known) {
  if (AgentError.isInstance(error)) return error;
  known ??= adapter.failure?.(error);
  // A blocked worker rejects with an event, which says nothing.
  const text = typeof Event === "function" && error instanceof Event ? `a worker could not be started (${error.type})` : textOf(error);
  const { code = "server", retryable = false } = typeof known === "object" ? known : {};
  return failure(code, `${adapter.name}: ${text}`, error, retryable);
}
