// @ts-check
// Carries out what the engine asks for: model calls, tools, approvals, timers. Each effect has a slot, and
// its answer goes back to that slot. The Rust half is src/wasm/ports.rs.

import { AgentError, infoOf, kindOf, misuse, stateText, textOf, toDecision, toResult, updateText } from "../shared.js";
import { emptyList } from "../v8.js";
import { SETUP } from "../models/models.js";
import { transformAnswer } from "../rules/rules.js";
import { SUBAGENT_EVENT } from "../tools/subagent.js";
import { CANCELLED } from "../tools/tools.js";

/** An effect in progress. Most effects never read their signal, so it is created on first access. */
export class Slot {
  /**
   * Keeps one instance for ever: when the last object of a shape dies, V8 discards the shape and the
   * code it compiled for it.
   */
  static kept = new this();

  constructor() {
    /** @type {AbortController | undefined} */
    this.controller = undefined;
    this.aborted = false;
    /** An error, or its text. @type {any} */
    this.reason = undefined;
    /** Whether a response is being read. */
    this.reading = false;
    /** The reader of the response. @type {any} */
    this.reader = undefined;
    /** Whether the response was read to its end. */
    this.complete = false;
    /** @type {any} */
    this.timer = undefined;
    /** The history, if the slot is that of a tool. @type {any[] | undefined} */
    this.log = undefined;
  }

  get signal() {
    if (!this.controller) {
      this.controller = new AbortController();
      if (this.aborted) this.abort(this.reason);
    }
    return this.controller.signal;
  }

  /** @param {any} reason */
  abort(reason) {
    this.aborted = true;
    this.reason = reason;
    this.controller?.abort(typeof reason === "string" ? new DOMException(reason, "AbortError") : reason);
    // A host's `fetch` may not have passed the signal on to the body.
    if (this.reader) quietly(() => this.reader.cancel(this.reason));
  }
}

/** Starts an effect. @param {any} run @param {number} slot @param {any} effect */
export function startEffect(run, slot, effect) {
  const state = new Slot();
  run.slots.set(slot, state);
  const work = EFFECTS[effect.kind](run, slot, effect, state);
  // A value that is not JSON counts as a failure like any other.
  const when = effect.kind === "tool" ? "soon" : "now";
  if (work) work.then((answer) => run.resolve(slot, answer, when)).catch((error) => run.reject(slot, error));
}

/** @type {Record<string, (run: any, slot: number, effect: any, state: Slot) => Promise<any> | void>} */
const EFFECTS = {
  http(run, slot, effect, state) {
    pump(run, slot, effect, state)
      .catch((error) => run.fail(slot, error, networkError(error, effect.url, state.reading)))
      .finally(() => clearTimeout(state.timer));
  },

  stream(run, slot, effect, { signal }) {
    readStream(run, slot, effect, signal).catch((error) => run.fail(slot, error, infoOf(error)));
  },

  tool: execute,

  async key(run, slot, { provider, model }) {
    const { core, keys } = run;
    const { getApiKey } = core.options;
    // The model's own key function; another model's key must not reach this model's server. A key given as
    // a string is known to the engine.
    const modelKey = core.knownModels[model]?.[SETUP]?.apiKey;
    // Called once per turn, however many models of the provider are tried.
    if (keys.turn !== run.turn) {
      keys.turn = run.turn;
      keys.byProvider = new Map();
    }
    const { byProvider } = keys;
    const key = byProvider.has(provider) ? byProvider.get(provider) : await getApiKey?.(provider);
    byProvider.set(provider, key);
    return key ?? (typeof modelKey === "function" && run.abortText === undefined ? await modelKey() : null) ?? null;
  },

  async approve(run, slot, { callId, toolName, arguments: args, requiresApproval }, { signal }) {
    const request = { callId, toolName, arguments: args, requiresApproval, runId: run.runId };
    return toDecision(await run.core.options.approveTool(request, { signal }));
  },

  async hook(run, slot, { stage, kind, ...details }) {
    const context = { runId: run.runId, ...details };
    if (context.messages) context.messages = run.resolveRefs(context.messages);
    for (const hooks of [run.core.options.hooks].flat()) {
      // The previous hook may have stopped the run; then the others are not called.
      if (run.abortText !== undefined) break;
      try {
        await hooks[stage]?.(context);
      } catch (error) {
        // A failing onError hook changes nothing.
        if (stage !== "onError") throw error;
      }
    }
    return null;
  },

  async transform({ core, log }, slot, { overflow, cached }, { signal }) {
    return transformAnswer(await core.options.asyncTransformContext(log.slice(), overflow, signal, { cachedMessages: cached }), log);
  },

  async compact({ core, log }, slot, effect, { signal }) {
    const { messages, report } = await core.options.compaction.engine(log.slice(), core.models[0], signal);
    const answer = transformAnswer({ messages, report: report ?? {} }, log);
    return { messages: answer?.replace, report: answer?.report };
  },

  steering: awaitHostQueue,
  followUp: awaitHostQueue,

  async sleep({ core }, slot, { ms }, { signal }) {
    const until = core.now() + ms;
    await core.options.host.sleep(ms, signal);
    // If the timer fired too early, the engine sleeps again; other tasks must get to run in between.
    if (core.now() < until) await new Promise((wake) => setTimeout(wake));
    return null;
  },
};

/**
 * Awaits a host queue that answers asynchronously; see `fromHostQueue` in rules.js.
 * @param {any} run @param {number} slot @param {any} effect
 */
async function awaitHostQueue({ core }, slot, { promise }) {
  const answer = core.queueAnswers.get(promise);
  core.queueAnswers.delete(promise);
  return answer;
}

/**
 * Runs one tool call; the engine always gets a result. Starts once all calls that start with it
 * have been announced.
 * @param {any} run @param {number} slot @param {any} effect @param {Slot} state
 */
async function execute(run, slot, effect, state) {
  const { core } = run;
  const { name, callId } = effect;
  const prepared = core.toolOf(name);
  await undefined;
  if (state.aborted) return;
  try {
    if (!prepared) return { failed: `the tool \`${name}\` is not there any more` };
    const check = core.checkedArguments.get(callId);
    core.checkedArguments.delete(callId);
    const checked = check instanceof Promise ? await check : check;
    if (checked.error) return { invalid: checked.error };
    const { definition, self } = prepared;
    const output = await definition.execute.call(self, checked.value, new ToolContext(run, slot, effect, state));
    if (output === CANCELLED) return { cancelled: true };
    return typeof output === "string" ? output : toResult(output);
  } catch (error) {
    // The error of any other tool is not an error of the run.
    if (prepared?.definition.fatal) core.noteThrown(error);
    return { failed: textOf(error) };
  }
}

/** The key under which objects given to the host hold their slot. */
const SLOT = Symbol("turnwheel.slot");

/**
 * The signal of a slot, created on first access. It is an own property, so that copies of the
 * object have it too, and all objects share this one getter: V8 takes a microsecond for each getter
 * written in an object literal.
 */
const SIGNAL = {
  enumerable: true,
  configurable: true,
  /** @this {any} */
  get() {
    return this[SLOT].signal;
  },
};

/** The history so far, copied on first access: what a tool does to its list changes nothing else. */
const MESSAGES = {
  enumerable: true,
  configurable: true,
  /** @this {any} */
  get() {
    const value = this[SLOT].log.slice();
    Object.defineProperty(this, "messages", { value, enumerable: true, configurable: true, writable: true });
    return value;
  },
};

/** What a tool receives besides its arguments. */
class ToolContext {
  /** As in `Slot`. */
  static kept = new this({ core: {} }, 0, {}, Slot.kept);

  /** @param {any} run @param {number} slot @param {any} effect @param {Slot} state */
  constructor(run, slot, { name, callId }, state) {
    const { core } = run;
    this[SLOT] = state;
    this.callId = callId;
    this.toolName = name;
    this.runId = run.runId;
    this.sessionId = core.sessionId;
    Object.defineProperty(this, "signal", SIGNAL);
    // The same under the AI SDK's names.
    this.toolCallId = callId;
    Object.defineProperty(this, "abortSignal", SIGNAL);
    state.log = run.log;
    Object.defineProperty(this, "messages", MESSAGES);
    // Belongs to this call: it has no effect after the call ends.
    this.state = {
      get: (/** @type {string} */ key) => core.state.get(key),
      set: (/** @type {string} */ key, /** @type {any} */ value) => run.setState(slot, key, stateText(value)),
      delete: (/** @type {string} */ key) => run.setState(slot, key, undefined),
    };
    this[SUBAGENT_EVENT] = (/** @type {any} */ event) => run.subagentEvent(slot, JSON.stringify(event));
    this.update = (/** @type {unknown} */ partial) => {
      if (!state.aborted) run.update(slot, updateText(partial));
    };
  }
}

/** The options passed to `fetch`. */
class RequestInit {
  /** As in `Slot`. */
  static kept = new this(undefined, new Uint8Array(), Slot.kept);

  /** @param {any} headers @param {Uint8Array} body @param {Slot} state */
  constructor(headers, body, state) {
    this[SLOT] = state;
    this.method = "POST";
    this.headers = headers;
    this.body = body;
    Object.defineProperty(this, "signal", SIGNAL);
  }
}

/**
 * Reads a model that the host streams itself.
 * @param {any} run @param {number} slot @param {any} effect @param {AbortSignal} signal
 */
async function readStream(run, slot, effect, signal) {
  const { core } = run;
  const model = core.knownModels[effect.model];
  const request = { ...effect.request, messages: run.resolveRefs(effect.request.messages) };
  const context = { signal, runId: run.runId, sleep: (/** @type {number} */ ms) => core.sleep(ms, signal) };
  const events = await model.streamFn(request, context);
  const iterator = events?.[Symbol.asyncIterator]?.() ?? events?.[Symbol.iterator]?.();
  if (!iterator) throw new TypeError(`the streamFn of model \`${model.id}\` must give an async iterable of events`);
  signal.addEventListener("abort", () => quietly(() => iterator.return?.()), { once: true });
  // By block: a leading surrogate that waits for its other half; the engine takes whole characters only.
  const halves = new Map();
  for (;;) {
    const { done, value } = await iterator.next();
    if (signal.aborted) return;
    if (done) return run.streamEnd(slot);
    const kind = DELTAS[value?.type];
    if (kind && typeof value.delta === "string" && value.contentIndex >= 0) {
      const { contentIndex, delta } = value;
      const isWhole = halves.size === 0 && !endsInHalf(delta);
      run.streamDelta(slot, kind, contentIndex, isWhole ? delta : joinHalves(halves, contentIndex * 4 + kind, delta));
      continue;
    }
    for (const [block, half] of halves) run.streamDelta(slot, block % 4, Math.floor(block / 4), half);
    halves.clear();
    // JSON.stringify would leave nothing of an Error.
    run.streamEvent(slot, JSON.stringify(value?.error instanceof Error ? { ...value, error: infoOf(value.error) } : value) ?? "0");
  }
}

/** Whether a text ends in the first half of a surrogate pair. @param {string} text */
function endsInHalf(text) {
  return (text.charCodeAt(text.length - 1) & 0xfc00) === 0xd800;
}

/**
 * Joins a delta with the half that waited for it, and holds back a half at its end.
 * @param {Map<number, string>} halves @param {number} block @param {string} delta
 */
function joinHalves(halves, block, delta) {
  const text = (halves.get(block) ?? "") + delta;
  if (!endsInHalf(text)) return halves.delete(block), text;
  halves.set(block, text.slice(-1));
  return text.slice(0, -1);
}

/** @type {Record<string, number>} */
const DELTAS = { text_delta: 1, thinking_delta: 2, tool_call_delta: 3 };

/** Runs work that nobody waits for, and whose failure must not end the process. @param {() => any} work */
function quietly(work) {
  try {
    work()?.then?.(undefined, () => {});
  } catch {
    // Deliberately ignored.
  }
}

/**
 * Sends an HTTP request and passes the response to the engine as it arrives.
 * @param {any} run @param {number} slot @param {any} effect @param {Slot} state
 */
async function pump(run, slot, { url, headers, model }, state) {
  const hostFetch = run.core.knownModels[model]?.[SETUP]?.fetch ?? globalThis.fetch;
  const body = run.takeBody(slot);
  // Every host words this error differently, and each wording would be taken for a dead network.
  if (/[^\t -\xff]/.test(Object.values(headers).join(""))) throw misuse("a header cannot be sent, for it holds a line break or a letter that is not Latin; is the key whole?");
  const response = Promise.resolve(hostFetch(url, new RequestInit({ ...headers }, body, state)));
  const intake = await response.then((answer) => openResponse(run, slot, answer, state));
  if (!intake) return;
  try {
    if (!(await drain(intake))) return quietly(() => intake.reader.cancel());
  } catch (error) {
    // The bytes that arrived before the error count.
    intake.flush();
    throw error;
  }
  state.complete = true;
  intake.flush();
  run.feedEnd(slot);
}

/**
 * Starts to read a response, if it succeeded and is still wanted. A separate function, called by the
 * promise, to keep it out of the compiled request: V8 discards the shapes of the host's objects with the
 * last such object, and all code compiled for them.
 * @param {any} run @param {number} slot @param {Response} response @param {Slot} state
 */
function openResponse(run, slot, response, state) {
  if (typeof response?.ok !== "boolean") throw misuse(`\`fetch\` must give a Response, got ${kindOf(response)}`);
  const { body } = response;
  if (state.aborted) return quietly(() => body?.cancel());
  if (!response.ok) return readRefusal(run, slot, response);
  if (!body) return run.feedEnd(slot);
  state.reading = true;
  const { getReader } = body;
  // node-fetch returns a stream of Node's instead.
  if (typeof getReader !== "function") throw misuse(`the body of an answer must be a ReadableStream; \`fetch\` gave ${kindOf(body)}`);
  state.reader = getReader.call(body);
  return new Intake(run, slot, state.reader);
}

/** @param {any} run @param {number} slot @param {Response} response @returns {Promise<undefined>} */
async function readRefusal(run, slot, response) {
  const bytes = await readErrorBody(response);
  run.refuse(slot, Number(response.status), Object.fromEntries(response.headers), bytes);
}

/**
 * Reads to the end, or until nobody wants more. Returns whether it got to the end. A separate function,
 * because V8 compiles the loop that waits here.
 * @param {Intake} intake
 */
async function drain(intake) {
  const { reader, read } = intake;
  for (;;) {
    const { done, value } = await read.call(reader);
    if (done) return true;
    if (!intake.take(value)) return false;
  }
}

/** How many microtasks bytes that have already arrived need to pass through the stream's layers. */
const FLUSH_TICKS = 4;
/**
 * Enough bytes for one call into the engine. Events decoded together are all delivered, even if a
 * listener aborts at the first.
 */
const FLUSH_BYTES = 1 << 12;

/** Bytes on their way to the engine. Reads that arrive together become one call. */
class Intake {
  /** As in `Slot`. */
  static kept = new this(undefined, 0, {});

  /** @param {any} run @param {number} slot @param {any} reader */
  constructor(run, slot, reader) {
    this.run = run;
    this.slot = slot;
    this.reader = reader;
    this.read = reader.read;
    /** @type {Uint8Array[]} */
    this.chunks = emptyList();
    this.size = 0;
    /** How many microtasks until the bytes are passed on; 0 if none are waiting. */
    this.flushTicks = 0;
  }

  /**
   * Takes one read. Returns whether more is wanted: once an answer is complete, a single
   * further read is allowed.
   * @param {Uint8Array} bytes
   */
  take(bytes) {
    const { run } = this;
    if (!run.slots.has(this.slot)) return false;
    if (!ArrayBuffer.isView(bytes)) throw misuse(`the body of an answer must give bytes, as Uint8Array; \`fetch\` gave ${kindOf(bytes)}`);
    this.chunks.push(bytes);
    this.size += bytes.length;
    // While the run is iterated nothing is batched: an iterator sees an event only after everything
    // delivered along with it.
    if (this.size >= FLUSH_BYTES || run.queue !== undefined) this.flush();
    else if (this.flushTicks === 0) this.flushSoon();
    else this.flushTicks = FLUSH_TICKS;
    return true;
  }

  /** Waits as long as more bytes keep arriving. */
  async flushSoon() {
    for (this.flushTicks = FLUSH_TICKS; this.flushTicks > 0; this.flushTicks--) await undefined;
    this.flush();
  }

  flush() {
    const { chunks, size } = this;
    if (size === 0) return;
    this.chunks = emptyList();
    this.size = 0;
    this.run.feed(this.slot, chunks, size);
  }
}

/** Reads the body of an error response, at most 256 KiB of it. @param {Response} response */
async function readErrorBody(response) {
  const body = new Uint8Array(1 << 18);
  let length = 0;
  try {
    const reader = response.body?.getReader();
    while (reader && length < body.length) {
      const { done, value } = await reader.read();
      if (done) break;
      body.set(value.subarray(0, body.length - length), length);
      length = Math.min(body.length, length + value.length);
    }
    if (length === body.length) quietly(() => reader?.cancel());
  } catch {
    // The status says enough.
  }
  return body.subarray(0, length);
}

/**
 * Handles a failed fetch or a failed read: no response, or one that was cut off. In a browser a dead network
 * and a CORS refusal look the same, so the text names both, and the CORS setting of the servers we know.
 * @param {any} error @param {string} url @param {boolean} [reading]
 */
function networkError(error, url, reading) {
  if (AgentError.isInstance(error)) return error.info;
  const { host, hostname, origin } = new URL(url);
  const detail = `${textOf(error)}${error?.cause ? ` (${causeText(error.cause)})` : ""}`;
  if (reading) return { code: "network", message: `the answer of ${host} was cut: ${detail}`, retryable: true, phase: "model" };
  const page = /** @type {any} */ (globalThis).location?.origin;
  const local = hostname === "localhost" || hostname === "127.0.0.1" || hostname === "[::1]";
  let message = `no answer from ${host}: ${detail}`;
  if (page && page !== "null" && page !== origin) {
    message += `. Either nothing is reachable there, or the server refuses calls from ${page} (CORS). ${corsHint(url, local, page)}`;
  } else if (local) message += ". Is the server running?";
  return { code: "network", message, retryable: true, phase: "model" };
}

/**
 * Node hides the reason in the causes; there are several if a name has several addresses.
 * @param {any} cause
 */
function causeText(cause) {
  return [cause.errors ?? cause].flat().map(textOf).join(", ");
}

/** @param {string} url @param {boolean} local @param {string} page */
function corsHint(url, local, page) {
  if (url.includes("generativelanguage.googleapis.com/v1beta/openai")) return "Google's OpenAI-compatible address takes no calls from browsers; put a proxy in between.";
  if (url.includes("api.anthropic.com")) return "Anthropic answers browsers only with `dangerouslyAllowBrowser: true`; or put a proxy of yours in between (`baseUrl`).";
  if (url.includes(":11434")) return `For Ollama start it with OLLAMA_ORIGINS=${page}.`;
  if (url.includes(":1234")) return "For LM Studio switch CORS on (`lms server start --cors`).";
  if (local) return `Start the server with CORS allowed for ${page} (llama.cpp: --cors-origins, vLLM: --allowed-origins).`;
  return "If the provider takes no calls from browsers, put a proxy of yours in between (`baseUrl`).";
}
