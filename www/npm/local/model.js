// @ts-check
// What all on-device models share: one answer at a time, the form of an answer and how it is held to it, the guard
// against the same call for ever, errors that the loop understands. An engine is an adapter below it.

import { AgentError, checkNames, misuse, uuid } from "../shared.js";
import { nativeChat } from "./chunks.js";
import { Reader } from "./reader.js";
import { AFTER_RESULTS, chatOf, hasForm, replayOf } from "./prompt.js";

/** @import { AssistantMessageEvent, ErrorKind, LlmMessage, ModelRequest, Usage } from "../index.js" */
/** @import { LocalModel, LocalOptions } from "../local.js" */
/** @import { Form } from "./grammar.js" */
/** @import { ChatMessage } from "./prompt.js" */

/**
 * What an engine is asked: with `form`, the answer has to have it; with `tools`, it may call them its own way, and has the
 * conversation as `messages`.
 * @typedef {{ chat: ChatMessage[], messages?: object[], form: Form | undefined, tools: ModelRequest["tools"], options: ModelRequest["options"], signal: AbortSignal }} Asked
 */
/** @typedef {{ text?: string, thinking?: string, call?: { index: number, id?: string, name?: string, json?: string }, usage?: Partial<Usage>, reason?: "stop" | "length" }} Chunk */
/**
 * @typedef {{
 *   name: string,
 *   native: boolean,
 *   availability(): Promise<"unavailable" | "downloadable" | "downloading" | "available">,
 *   prepare(signal: AbortSignal | undefined): Promise<void>,
 *   answer(asked: Asked): AsyncIterable<Chunk>,
 *   said?(answer: string): void,
 *   failure?(error: any): { code: ErrorKind, retryable?: boolean } | "constraint" | undefined,
 *   dispose(): Promise<void>,
 * }} Adapter
 */

const OPTIONS = ["id", "tools", "maxCalls", "contextWindow", "afterResults", "onProgress"];
const MODES = ["constrained", "native", "prompted"];

/** @param {string} name @param {LocalOptions} options @param {string[]} [others] of this engine */
export function checkLocal(name, options, others = []) {
  checkNames(`${name}: unknown option`, options, [...OPTIONS, ...others]);
  const { tools = "constrained", maxCalls = 4, contextWindow = 1, afterResults = "", onProgress } = options;
  if (!MODES.includes(tools)) throw misuse(`${name}: \`tools\` must be "constrained", "native" or "prompted", got ${JSON.stringify(tools)}`);
  const isCount = (/** @type {unknown} */ count, most = Infinity) => Number.isSafeInteger(count) && Number(count) > 0 && Number(count) <= most;
  if (!isCount(maxCalls, 64)) throw misuse(`${name}: \`maxCalls\` must be a whole number from 1 to 64, got ${String(maxCalls)}`);
  if (!isCount(contextWindow)) throw misuse(`${name}: \`contextWindow\` must be a number of tokens, got ${String(contextWindow)}`);
  if (typeof afterResults !== "string") throw misuse(`${name}: \`afterResults\` must be a text, "" for none`);
  if (onProgress !== undefined && typeof onProgress !== "function") throw misuse(`${name}: \`onProgress\` must be a function`);
}

/** @param {string} code @param {string} message @param {unknown} [cause] @param {boolean} [retryable] */
export function failure(code, message, cause, retryable = false) {
  return new AgentError({ code: /** @type {ErrorKind} */ (code), message, retryable }, cause);
}

/** Makes a model of an engine. @param {Adapter} adapter @param {LocalOptions} options @returns {LocalModel} */
export function localModel(adapter, options) {
  const { id = adapter.name, maxCalls = 4, contextWindow, afterResults = AFTER_RESULTS } = options;
  if (options.tools === "native" && !adapter.native) throw misuse(`${adapter.name}: it has no tool calls of its own; leave \`tools\` out`);
  let mode = options.tools ?? "constrained";
  const enter = oneAtATime();

  /** @param {ModelRequest} request @param {{ signal: AbortSignal }} context @returns {AsyncGenerator<AssistantMessageEvent>} */
  async function* streamFn(request, { signal }) {
    const leave = await enter(signal);
    try {
      if (mode === "native") yield* native(adapter, request, signal);
      else yield* formed(request, signal);
    } catch (error) {
      throw signal.aborted ? error : explained(adapter, error);
    } finally {
      leave();
    }
  }

  /** @param {ModelRequest} request @param {AbortSignal} signal @returns {AsyncGenerator<AssistantMessageEvent>} */
  async function* formed(request, signal) {
    const chat = chatOf(request, afterResults);
    const form = hasForm(request) ? formOf(request, maxCalls) : undefined;
    try {
      yield* guarded(adapter, { chat, form: mode === "constrained" ? form : undefined, tools: [], options: request.options, signal }, request, form);
    } catch (error) {
      if (mode !== "constrained" || !form || signal.aborted || adapter.failure?.(error) !== "constraint") throw error;
      // Nothing was written yet. The engine knows no such constraint, and never will.
      mode = "prompted";
      console.warn(`turnwheel: ${adapter.name} refuses the constraint that keeps answers in form, so the model is only asked to keep to it; \`tools: "prompted"\` says so from the start`, error);
      yield* guarded(adapter, { chat, form: undefined, tools: [], options: request.options, signal }, request, form);
    }
  }

  const model = {
    provider: "local",
    id,
    streamFn,
    availability: () => adapter.availability().catch(() => /** @type {"unavailable"} */ ("unavailable")),
    async prepare({ signal } = /** @type {{ signal?: AbortSignal }} */ ({})) {
      try {
        await adapter.prepare(signal);
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

/** Every engine writes one answer at a time: who enters waits for its turn, and lets the next one in by what it gets. */
function oneAtATime() {
  let queue = Promise.resolve();
  return async (/** @type {AbortSignal} */ signal) => {
    const before = queue;
    /** @type {() => void} */
    let leave = () => {};
    queue = new Promise((done) => (leave = () => void before.then(done)));
    try {
      await abortable(before, signal);
    } catch (error) {
      leave();
      throw error;
    }
    return leave;
  };
}

/** Rejects as soon as the signal aborts, with its reason. @param {Promise<void>} promise @param {AbortSignal} signal @returns {Promise<void>} */
function abortable(promise, signal) {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    if (signal.aborted) return stop();
    signal.addEventListener("abort", stop, { once: true });
    void promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}

/** What an answer may be. @param {ModelRequest} request @param {number} maxCalls @returns {Form} */
function formOf({ tools, options, output }, maxCalls) {
  const { toolChoice = "auto" } = options;
  const only = typeof toolChoice === "object" ? tools.filter(({ name }) => name === toolChoice.toolName) : tools;
  const calls = toolChoice === "none" ? 0 : options.parallelToolCalls === false ? 1 : maxCalls;
  return { tools: only, calls, output, mustCall: typeof toolChoice === "object" || toolChoice === "required" };
}

/**
 * Asks, and reads the answer. After results, a call is held back until its arguments are there: if the very same was
 * made before in this exchange, the answer is dropped, and the model is asked again for words alone.
 * @param {Adapter} adapter @param {Asked} asked @param {ModelRequest} request @param {Form | undefined} form
 * @returns {AsyncGenerator<AssistantMessageEvent>}
 */
async function* guarded(adapter, asked, request, form) {
  const made = callsOfExchange(request.messages);
  const answer = new Answer(form !== undefined, request.output !== undefined && !request.tools.length, made);
  yield* answer.read(adapter, asked);
  if (!answer.isRepeated) return;
  const forced = { ...asked, chat: [...asked.chat], form: asked.form && { ...asked.form, tools: [], mustCall: false } };
  const last = forced.chat.at(-1);
  if (last) forced.chat[forced.chat.length - 1] = { ...last, suffix: `${last.suffix ?? ""}\n${SAY_ONLY}` };
  yield* new Answer(true, false, undefined, answer.index, answer.usage).read(adapter, forced);
}

const SAY_ONLY = 'You have this result already. Answer with {"say": "…"}.';

/** The calls since the user last spoke, if there are results already. @param {LlmMessage[]} messages */
function callsOfExchange(messages) {
  const since = messages.slice(messages.findLastIndex(({ role }) => role === "user") + 1);
  if (!since.some(({ role }) => role === "tool_result")) return;
  return new Set(since.flatMap((message) => (message.role === "assistant" ? message.content : []).flatMap((block) => (block.type === "tool_call" ? [callKey(block.toolName, block.arguments)] : []))));
}

/** @param {string} name @param {unknown} given */
const callKey = (name, given) => JSON.stringify([name, sorted(given)]);
/** @param {unknown} value @returns {unknown} */
const sorted = (value) => (Array.isArray(value) ? value.map(sorted) : typeof value === "object" && value !== null ? Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, inner]) => [name, sorted(inner)]) : value);

/** An answer as it comes, turned into events. */
class Answer {
  /**
   * @param {boolean} isFormed @param {boolean} isData @param {Set<string> | undefined} made calls that must not be made again
   * @param {number} [index] of the next block @param {Partial<Usage>} [usedBefore]
   */
  constructor(isFormed, isData, made, index = 0, usedBefore) {
    this.reader = isFormed ? new Reader(isData) : undefined;
    this.made = made;
    this.index = index;
    this.usedBefore = usedBefore;
    /** @type {"text" | "call" | undefined} */
    this.open = undefined;
    /** What a held call was to tell. @type {AssistantMessageEvent[]} */
    this.held = [];
    this.isRepeated = false;
    this.said = "";
    /** @type {{ name: string, arguments: any }[]} */
    this.calls = [];
    /** @type {Partial<Usage> | undefined} */
    this.usage = undefined;
  }

  /** @param {Adapter} adapter @param {Asked} asked @returns {AsyncGenerator<AssistantMessageEvent>} */
  async *read(adapter, asked) {
    const { reader } = this;
    let reason = "stop";
    for await (const { text = "", usage, reason: said } of adapter.answer(asked)) {
      if (usage) this.usage = summed(this.usedBefore, usage);
      reason = said ?? reason;
      if (text === "") continue;
      const events = reader ? reader.push(text).flatMap((piece) => this.eventsOf(piece)) : this.text(text);
      if (this.isRepeated) return;
      yield* events.length > 0 ? events : [/** @type {AssistantMessageEvent} */ ({ type: "ping" })];
    }
    if (reader) yield* reader.end().flatMap((piece) => this.eventsOf(piece));
    if (this.isRepeated) return;
    if (reader && !reader.isWhole && reason === "stop") reason = "length";
    // A call that was cut is told as far as it came; the loop does not run it.
    yield* this.held;
    if (this.open === "text") yield { type: "text_end", contentIndex: this.index++ };
    // As it will stand in the next request, which goes on from what the engine knows.
    if (reason === "stop") adapter.said?.(reader ? replayOf(this.said, this.calls, reader.isData) : this.said);
    const stopReason = reason === "length" ? "length" : reader?.hasCalls ? "tool_use" : "stop";
    yield { type: "done", stopReason, ...(this.usage && { usage: this.usage }) };
  }

  /** @param {import("./reader.js").Piece} piece @returns {AssistantMessageEvent[]} */
  eventsOf(piece) {
    if (this.isRepeated) return [];
    if (piece.kind === "text") return this.text(piece.text);
    const events = this.eventsOfCall(piece);
    if (!this.made) return events;
    this.held.push(...events);
    if (piece.kind !== "call_end") return [];
    const told = this.held;
    this.held = [];
    if (!this.made.has(callKey(piece.name, parsed(piece.json)))) return told;
    this.calls.pop();
    this.index--;
    // If it asked for something new as well, that will do.
    this.isRepeated = this.calls.length === 0;
    return [];
  }

  /** @param {Exclude<import("./reader.js").Piece, { kind: "text" }>} piece @returns {AssistantMessageEvent[]} */
  eventsOfCall(piece) {
    const contentIndex = this.index;
    switch (piece.kind) {
      case "call": {
        const before = this.endText();
        this.open = "call";
        return [...before, { type: "tool_call_start", contentIndex: this.index, callId: `call_${uuid()}`, toolName: piece.name }];
      }
      case "arguments":
        return [{ type: "tool_call_delta", contentIndex, delta: piece.json }];
      case "call_end":
        this.open = undefined;
        this.index++;
        this.calls.push({ name: piece.name, arguments: parsed(piece.json) });
        return [{ type: "tool_call_end", contentIndex }];
    }
  }

  /** @param {string} delta @returns {AssistantMessageEvent[]} */
  text(delta) {
    const contentIndex = this.index;
    this.said += delta;
    /** @type {AssistantMessageEvent[]} */
    const start = this.open === "text" ? [] : [{ type: "text_start", contentIndex }];
    this.open = "text";
    return [...start, { type: "text_delta", contentIndex, delta }];
  }

  /** @returns {AssistantMessageEvent[]} */
  endText() {
    return this.open === "text" ? [{ type: "text_end", contentIndex: this.index++ }] : [];
  }
}

/** Calls that the engine itself reads. @param {Adapter} adapter @param {ModelRequest} request @param {AbortSignal} signal @returns {AsyncGenerator<AssistantMessageEvent>} */
async function* native(adapter, request, signal) {
  const tools = request.options.toolChoice === "none" ? [] : request.tools;
  const asked = { chat: [], messages: nativeChat(request), form: undefined, tools, options: request.options, signal };
  let contentIndex = -1;
  /** The open block: a text, a thought, or the index of a call. @type {"text" | "thinking" | number | undefined} */
  let open;
  let hasCalls = false;
  let reason = "stop";
  /** @type {Partial<Usage> | undefined} */
  let usage;
  const end = () => (open === undefined ? [] : [/** @type {AssistantMessageEvent} */ ({ type: typeof open === "number" ? "tool_call_end" : `${open}_end`, contentIndex })]);
  for await (const { text, thinking, call, usage: used, reason: said } of adapter.answer(asked)) {
    usage = used ?? usage;
    reason = said ?? reason;
    for (const [kind, delta] of /** @type {["thinking" | "text", string | undefined][]} */ ([["thinking", thinking], ["text", text]])) {
      if (!delta) continue;
      if (open !== kind) yield* [...end(), /** @type {AssistantMessageEvent} */ ({ type: `${kind}_start`, contentIndex: ++contentIndex })];
      open = kind;
      yield { type: `${kind}_delta`, contentIndex, delta };
    }
    if (!call) continue;
    if (open !== call.index) yield* [...end(), /** @type {AssistantMessageEvent} */ ({ type: "tool_call_start", contentIndex: ++contentIndex, callId: call.id || `call_${uuid()}`, toolName: call.name ?? "" })];
    open = call.index;
    hasCalls = true;
    if (call.json) yield { type: "tool_call_delta", contentIndex, delta: call.json };
  }
  yield* end();
  yield { type: "done", stopReason: reason === "length" ? "length" : hasCalls ? "tool_use" : "stop", ...(usage && { usage }) };
}

/** @param {Adapter} adapter @param {any} error */
function explained(adapter, error) {
  if (AgentError.isInstance(error)) return error;
  const known = adapter.failure?.(error);
  // A blocked worker rejects with an event, which says nothing.
  const text = typeof error?.message === "string" && error.message !== "" ? error.message : typeof Event === "function" && error instanceof Event ? `a worker could not be started (${error.type})` : String(error);
  const { code = "server", retryable = false } = typeof known === "object" ? known : {};
  return failure(code, `${adapter.name}: ${text}`, error, retryable);
}

/** @param {Partial<Usage> | undefined} before @param {Partial<Usage>} usage */
function summed(before, usage) {
  if (!before) return usage;
  const sum = { ...usage };
  for (const name of /** @type {const} */ (["input", "output", "cacheRead", "total"])) sum[name] = (before[name] ?? 0) + (usage[name] ?? 0);
  return sum;
}

/** @param {string} json */
function parsed(json) {
  try {
    return JSON.parse(json);
  } catch {
    return json;
  }
}
