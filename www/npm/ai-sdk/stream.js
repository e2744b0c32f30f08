// @ts-check
// The parts of a language model's stream as the events of an answer.

import { errorInfo } from "../core.js";
import { kindOf } from "../shared.js";
import { argumentsText } from "../messages/arguments-text.js";
import { endOf, usageOf, usageSoFar } from "./finish.js";
import { endIn, isHarmless, unreadOf } from "./unread.js";

/** @import { AssistantMessageEvent, ErrorInfo, JsonValue } from "../index.js" */
/** @import { LanguageModelLike } from "../ai-sdk.js" */
/** @import { Part } from "./call.js" */
/** @typedef {{ [provider: string]: { [name: string]: JsonValue } }} Metadata */
/** @typedef {{ kind: "text" | "thinking", contentIndex: number | undefined, metadata: Metadata | undefined, isOver: boolean, text: string }} Block */
/** @typedef {{ contentIndex: number, isText: boolean, hasDelta: boolean, metadata: Metadata | undefined }} Call */

/** @type {Record<string, "text" | "thinking">} */
const KINDS = { text: "text", reasoning: "thinking" };

/** Members of a block's metadata that say nothing about an empty text. */
const NAMES_ONLY = ["itemId", "annotations"];

/** Reads one answer. */
export class AnswerReader {
  /** @param {LanguageModelLike} model @param {((warning: unknown) => void) | undefined} onWarning */
  constructor(model, onWarning) {
    this.model = model;
    this.onWarning = onWarning;
    /** How many blocks have begun. */
    this.count = 0;
    /** The texts and thoughts, by kind and id. @type {Map<string, Block>} */
    this.blocks = new Map();
    /** The calls whose input streams, by id. @type {Map<string, Call>} */
    this.calls = new Map();
    /** Whether a call is whole that the client has to run. */
    this.hasCalls = false;
    /** What an `error` part said: the stream may go on after it. @type {{ error: unknown } | undefined} */
    this.failed = undefined;
    /** A thought in the last chunk that the package has not read so far. @type {{ id: string, thought: string } | undefined} */
    this.unread = undefined;
    /** Whether the package reads thoughts itself. */
    this.readsThoughts = false;
    /** What the chunks say of the end; `undefined` if there was none to look at. @type {ReturnType<typeof endIn>} */
    this.ending = undefined;
    /** Whether a chunk was refused in which nothing was said. */
    this.hasOverlooked = false;
    /** The characters of text that were read, and those that came once more. */
    this.words = { read: 0, repeated: 0 };
    this.isOver = false;
  }

  /** @param {Part} part @returns {AsyncGenerator<AssistantMessageEvent>} */
  async *take(part) {
    if (typeof part?.type !== "string") throw new Error(`the language model's stream has a part that is none: ${part === null || typeof part !== "object" ? kindOf(part) : "it has no type"}`);
    yield* this.#unread(part);
    const [, word, what] = /^(text|reasoning)-(start|delta|end)$/.exec(part.type) ?? [];
    if (word && what) return yield* this.#block(/** @type {"text" | "thinking"} */ (KINDS[word]), what, part);
    switch (part.type) {
      case "stream-start":
        for (const warning of part.warnings ?? []) this.onWarning?.(warning);
        return;
      case "tool-input-start":
        return yield* this.#callStart(part);
      case "tool-input-delta":
        return yield* this.#callDelta(part);
      case "tool-call":
        return part.providerExecuted ? yield this.#raw(callPart(part)) : yield* this.#call(part);
      case "tool-result":
        return part.preliminary ? undefined : yield this.#raw(resultPart(part));
      case "tool-approval-request":
        throw approvalRefused(part);
      case "custom":
        // Not a part of the answer, but the first that is known of its usage.
        if (part.kind === "anthropic.message_start") return yield* usageSoFar(part);
        return yield this.#raw(plain({ type: "custom", kind: part.kind }, part));
      case "file":
      case "reasoning-file":
        return yield this.#raw(plain({ type: part.type, mediaType: part.mediaType, data: dataOf(part.data) }, part));
      case "source": {
        const { type, providerMetadata, ...source } = part;
        return yield this.#raw(plain({ type, ...source }, part));
      }
      case "ping":
        return yield { type: "ping" };
      case "raw":
        return this.#chunk(part.rawValue);
      case "error":
        if (isHarmless(part.error, this.words)) this.hasOverlooked = true;
        else this.failed ??= { error: part.error };
        return;
      case "finish":
        return yield* this.#finish(part);
    }
  }

  /** The stream ended, and nobody said that the answer is whole. @returns {AsyncGenerator<AssistantMessageEvent>} */
  async *end() {
    if (this.failed) yield await failure(this.failed.error);
  }

  /** A chunk comes before the parts that the package makes of it. @param {unknown} chunk */
  #chunk(chunk) {
    if (!this.ending?.word) this.ending = endIn(chunk) ?? this.ending;
    const unread = unreadOf(chunk);
    if (!unread) return;
    if ("error" in unread) this.failed ??= unread;
    else if (!this.readsThoughts) this.unread = unread;
  }

  /** What follows a chunk tells whether the package has read its thought. @param {Part} part @returns {Generator<AssistantMessageEvent>} */
  *#unread({ type, delta }) {
    const { unread } = this;
    this.unread = undefined;
    if (unread && type.startsWith("reasoning-")) this.readsThoughts = true;
    else if (unread) yield* this.#block("thinking", "delta", { type, id: unread.id, delta: unread.thought });
    // A thought that no package began is over when something else begins.
    const own = this.blocks.get("thinking ");
    if (own && !own.isOver && (delta || type === "tool-call" || type === "tool-input-start") && !type.startsWith("reasoning")) yield* this.#close(own);
  }

  /** @param {"text" | "thinking"} kind @param {string} what @param {Part} part @returns {Generator<AssistantMessageEvent>} */
  *#block(kind, what, { id, delta, providerMetadata }) {
    const key = `${kind} ${id}`;
    let block = what === "start" ? undefined : this.blocks.get(key);
    if (!block || block.isOver) this.blocks.set(key, (block = { kind, contentIndex: undefined, metadata: undefined, isOver: false, text: "" }));
    block.metadata = merged(block.metadata, providerMetadata);
    if (isSummary(block)) {
      // The provider's own summary of the conversation: no words of the answer, but they must be sent back.
      block.text += delta ?? "";
      block.isOver = what === "end";
      if (block.isOver) yield this.#raw(plain({ type: "text", text: block.text }, { type: "", providerMetadata: block.metadata }));
      return;
    }
    if (what === "delta" && delta) {
      if (kind === "text") this.words.read += delta.length;
      yield* this.#open(block);
      yield { type: `${kind}_delta`, contentIndex: /** @type {number} */ (block.contentIndex), delta };
    }
    if (what === "end") yield* this.#close(block);
  }

  /** A block begins with its first words: an empty one may mean nothing. @param {Block} block @returns {Generator<AssistantMessageEvent>} */
  *#open(block) {
    if (block.contentIndex !== undefined) return;
    block.contentIndex = this.count++;
    yield { type: `${block.kind}_start`, contentIndex: block.contentIndex };
  }

  /** @param {Block} block @returns {Generator<AssistantMessageEvent>} */
  *#close(block) {
    const { kind, metadata } = block;
    block.isOver = true;
    const names = Object.values(metadata ?? {}).flatMap((each) => Object.keys(each ?? {}));
    if (block.contentIndex === undefined && !(kind === "thinking" ? metadata : names.some((name) => !NAMES_ONLY.includes(name)))) return;
    yield* this.#open(block);
    const contentIndex = /** @type {number} */ (block.contentIndex);
    const signature = metadata && { signature: JSON.stringify(metadata) };
    if (kind === "text") yield { type: "text_end", contentIndex, ...signature };
    else yield { type: "thinking_end", contentIndex, ...signature, ...(names.includes("redactedData") && { redacted: true }) };
  }

  /** @param {Part} part @returns {Generator<AssistantMessageEvent>} */
  *#callStart({ id: callId, toolName, inputEncoding, providerExecuted, providerMetadata }) {
    // A call that the provider runs itself is shown when it is whole.
    if (providerExecuted) return;
    const contentIndex = this.count++;
    this.calls.set(callId, { contentIndex, isText: inputEncoding === "text", hasDelta: false, metadata: providerMetadata });
    yield { type: "tool_call_start", contentIndex, callId, toolName };
  }

  /** @param {Part} part @returns {Generator<AssistantMessageEvent>} */
  *#callDelta({ id, delta, providerMetadata }) {
    const call = this.calls.get(id);
    if (!call) return;
    call.metadata = merged(call.metadata, providerMetadata);
    if (!delta) return;
    // An input that is a text is the only argument of its call.
    const json = call.isText ? `${call.hasDelta ? "" : '{"input":"'}${JSON.stringify(delta).slice(1, -1)}` : delta;
    call.hasDelta = true;
    yield { type: "tool_call_delta", contentIndex: call.contentIndex, delta: json };
  }

  /** @param {Part} part @returns {Generator<AssistantMessageEvent>} */
  *#call(part) {
    const { toolCallId, toolName, input, providerMetadata } = part;
    let call = this.calls.get(toolCallId);
    if (!call) {
      yield* this.#callStart({ type: "tool-input-start", id: toolCallId, toolName, inputEncoding: part.inputEncoding });
      call = /** @type {Call} */ (this.calls.get(toolCallId));
    }
    const { contentIndex } = call;
    if (call.isText && call.hasDelta) yield { type: "tool_call_delta", contentIndex, delta: '"}' };
    else if (!call.hasDelta) {
      const value = parsed(input);
      call.isText ||= typeof value === "string";
      const delta = call.isText ? JSON.stringify({ input: value }) : typeof input === "string" ? input : argumentsText(input ?? {});
      // No arguments are an empty object anyway.
      if (!/^\s*(\{\s*\})?\s*$/.test(delta)) yield { type: "tool_call_delta", contentIndex, delta };
    }
    this.calls.delete(toolCallId);
    this.hasCalls = true;
    const metadata = merged(call.metadata, providerMetadata);
    const kept = { ...metadata, ...(call.isText && { turnwheel: { inputEncoding: "text" } }) };
    yield { type: "tool_call_end", contentIndex, ...(Object.keys(kept).length > 0 && { metadata: kept }) };
  }

  /** @param {Part} part @returns {AsyncGenerator<AssistantMessageEvent>} */
  async *#finish(part) {
    this.isOver = true;
    const usage = usageOf(this.model, part);
    if (this.failed) {
      if (usage) yield { type: "usage", ...usage };
      return yield await failure(this.failed.error);
    }
    for (const block of this.blocks.values()) if (!block.isOver) yield* this.#close(block);
    const end = endOf(part, { hasCalls: this.hasCalls, isEmpty: this.count === 0, hasOverlooked: this.hasOverlooked, ending: this.ending });
    if (typeof end === "string") return yield { type: "done", stopReason: end, ...(usage && { usage }) };
    if (usage) yield { type: "usage", ...usage };
    yield { type: "error", error: end };
  }

  /** @param {JsonValue} data @returns {AssistantMessageEvent} */
  #raw(data) {
    return { type: "raw", contentIndex: this.count++, data };
  }
}

/** @param {Block} block */
const isSummary = ({ kind, metadata }) => kind === "text" && metadata?.anthropic?.type === "compaction";

/** What is known of a block, newest last. @param {Metadata | undefined} known @param {Metadata | undefined} more @returns {Metadata | undefined} */
function merged(known, more) {
  if (!more || !known) return more ?? known;
  const all = { ...known };
  for (const [name, members] of Object.entries(more)) all[name] = { ...known[name], ...members };
  return all;
}

/** A part that is kept as a prompt would hold it, so that it can be sent back. @param {object} part @param {Part} from @returns {JsonValue} */
const plain = (part, { providerMetadata }) => JSON.parse(JSON.stringify({ ...part, ...(providerMetadata && { providerOptions: providerMetadata }) }));

/** @param {Part} part */
const callPart = (part) => plain({ type: "tool-call", toolCallId: part.toolCallId, toolName: part.toolName, input: parsed(part.input) ?? {}, providerExecuted: true }, part);

/** @param {Part} part */
function resultPart(part) {
  const output = { type: part.isError ? "error-json" : "json", value: part.result ?? null };
  return plain({ type: "tool-result", toolCallId: part.toolCallId, toolName: part.toolName, output }, part);
}

/** Data of a file in base64; v4 says which kind of data it is. @param {any} data @returns {any} */
function dataOf(data) {
  if (data instanceof Uint8Array) {
    let text = "";
    // A call has room for so many arguments; one byte at a time would take seconds for a large file.
    for (let at = 0; at < data.length; at += 8_192) text += String.fromCharCode(...data.subarray(at, at + 8_192));
    return btoa(text);
  }
  return data?.data instanceof Uint8Array ? { ...data, data: dataOf(data.data) } : data;
}

/** @param {unknown} input @returns {any} */
function parsed(input) {
  if (typeof input !== "string") return input;
  try {
    return JSON.parse(input);
  } catch {
    // Cut arguments; the engine judges them.
  }
}

/** @param {Part} part */
function approvalRefused({ toolCallId }) {
  const message = `the provider asks whether it may run a tool itself (call \`${toolCallId}\`), which a run cannot answer; allow the tool in the provider's settings`;
  return Object.assign(new Error(message), { code: "invalid_request", retryable: false });
}

/**
 * What an `error` part means: an Error is judged as if it were thrown, anything else is what the provider said.
 * @param {any} error @returns {Promise<AssistantMessageEvent>}
 */
async function failure(error) {
  if (error instanceof Error || typeof error !== "object" || error === null) return { type: "error", error: error instanceof Error ? /** @type {any} */ (error) : { message: String(error) } };
  const said = error.data ?? error;
  const document = said.response?.error ? { error: said.response.error } : said.error ? said : { error: said };
  /** @type {ErrorInfo} */
  const info = await errorInfo({ status: 200, body: document });
  // What the words do not tell, the status may that the package has made of them.
  if (info.code !== "unknown" || !(error.statusCode >= 300)) return { type: "error", error: info };
  return { type: "error", error: await errorInfo({ status: error.statusCode, body: document }) };
}
