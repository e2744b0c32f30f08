// @ts-check
// The browser's own model: the Prompt API (`LanguageModel`). A session is kept as long as requests continue what it
// knows, so that only what is new is read.

import { misuse } from "../shared.js";
import { plain } from "./chunks.js";
import { checkLocal, failure, localModel } from "./model.js";

/** @import { LocalOptions } from "../local.js" */
/** @import { Asked, Chunk } from "./model.js" */
/** @import { ChatMessage } from "./prompt.js" */

const STATES = ["unavailable", "downloadable", "downloading", "available"];

/** @param {LocalOptions & { languages?: string[], samplingMode?: string, api?: unknown }} [options] */
export function promptApi(options = {}) {
  checkLocal("promptApi", options, ["languages", "samplingMode", "api"]);
  const { languages } = options;
  if (languages !== undefined && !(Array.isArray(languages) && languages.every((language) => typeof language === "string"))) throw misuse('promptApi: `languages` must be a list such as ["en", "de"]');
  const sessions = new Sessions(options);
  return localModel(
    {
      name: "promptApi",
      async availability() {
        const state = await sessions.api?.availability?.(sessions.settings);
        return STATES.includes(state) ? state : "unavailable";
      },
      prepare: async (signal) => void (sessions.held ??= await sessions.open([], signal)),
      constrain: async (form) => (await import("./schema.js")).schemaOf(form),
      answer: (asked) => sessions.answer(asked),
      said: (text) => void sessions.held?.chat.push({ role: "assistant", content: text }),
      failure: failureOf,
      dispose: async () => sessions.forget(),
    },
    options,
  );
}

/** @param {any} error */
function failureOf({ name, message } = {}) {
  if (name === "QuotaExceededError") return { code: /** @type {const} */ ("context_overflow") };
  if (name === "NotSupportedError" && /constraint|schema|regexp/i.test(String(message))) return /** @type {const} */ ("constraint");
  // No answer fits the constraint, or the session broke: another one may do.
  const retryable = ["SyntaxError", "UnknownError", "InvalidStateError"].includes(name);
  return { code: /** @type {const} */ ("server"), retryable };
}

class Sessions {
  /** @param {LocalOptions & { languages?: string[], samplingMode?: string, api?: unknown }} options */
  constructor(options) {
    const { languages, samplingMode } = options;
    const expected = languages && [{ type: "text", languages }];
    this.options = options;
    this.settings = { ...(expected && { expectedInputs: expected, expectedOutputs: expected }), ...(samplingMode && { samplingMode }) };
    /** The session, and the conversation that it knows. @type {{ session: any, chat: ChatMessage[] } | undefined} */
    this.held = undefined;
    this.hasWarned = false;
  }

  /** @returns {any} */
  get api() {
    return this.options.api ?? /** @type {any} */ (globalThis).LanguageModel;
  }

  forget() {
    this.held?.session.destroy?.();
    this.held = undefined;
  }

  /** @param {ChatMessage[]} chat that it begins with @param {AbortSignal | undefined} signal */
  async open(chat, signal) {
    const { api, settings, options: { onProgress } } = this;
    if (typeof api?.create !== "function") throw failure("server", "promptApi: this browser has no `LanguageModel`; give `fallback` a model that is elsewhere");
    const monitor = (/** @type {EventTarget} */ target) => target.addEventListener("downloadprogress", (event) => onProgress?.({ phase: "download", loaded: /** @type {any} */ (event).loaded, total: 1 }));
    const session = await api.create({ ...settings, ...(chat.length > 0 && { initialPrompts: plain(chat) }), ...(signal && { signal }), ...(onProgress && { monitor }) });
    return { session, chat };
  }

  /** What of a conversation the session has not read; nothing if it is another conversation. @param {ChatMessage[]} chat */
  rest(chat) {
    const known = this.held?.chat ?? [];
    const isKnown = this.held && known.length < chat.length && known.every(({ role, content }, i) => chat[i]?.role === role && chat[i]?.content === content);
    const news = isKnown ? chat.slice(known.length) : [];
    // A session takes a system text at its beginning alone.
    return news.some(({ role }) => role === "system") ? [] : news;
  }

  /** @param {Asked} asked @returns {AsyncGenerator<Chunk>} */
  async *answer({ chat, constraint: responseConstraint, options: { maxTokens, temperature, topP }, signal }) {
    this.warn({ maxTokens, temperature, topP });
    let news = this.rest(chat);
    if (news.length === 0) {
      this.forget();
      // The last message is what it answers.
      this.held = await this.open(chat.slice(0, -1), signal);
      news = chat.slice(-1);
    }
    const { session } = /** @type {{ session: any }} */ (this.held);
    // What the session knows is certain again when the answer is whole.
    this.held = undefined;
    try {
      const constraint = responseConstraint && { responseConstraint, omitResponseConstraintInput: true };
      const input = plain(news);
      await this.checkRoom(session, input, constraint);
      const before = used(session);
      let length = 0;
      for await (const text of deltas(session.promptStreaming(input, { ...constraint, signal }))) {
        length += text.length;
        yield { text };
      }
      signal.throwIfAborted();
      const total = Math.max(0, used(session) - before);
      // It does not say how much of it was written.
      const output = Math.min(total, Math.ceil(length / 4));
      yield { usage: { input: total - output, output, cacheRead: before, total: total + before } };
      this.held = { session, chat: chat.map(({ role, content }) => ({ role, content })) };
    } finally {
      if (!this.held) session.destroy?.();
    }
  }

  /** It drops old turns in silence when there is no room; the loop wants to know. @param {any} session @param {{ role: string, content: string }[]} input @param {object | undefined} constraint */
  async checkRoom(session, input, constraint) {
    const measure = session.measureContextUsage ?? session.measureInputUsage;
    const room = this.options.contextWindow ?? session.contextWindow ?? session.inputQuota;
    if (!measure || room === undefined) return;
    const wanted = used(session) + (await measure.call(session, input, constraint));
    if (wanted > room) throw failure("context_overflow", `promptApi: the conversation has ${wanted} tokens, and the model takes ${room}`);
  }

  /** @param {{ [option: string]: unknown }} given */
  warn(given) {
    const ignored = Object.keys(given).filter((name) => given[name] !== undefined);
    if (this.hasWarned || ignored.length === 0) return;
    this.hasWarned = true;
    console.warn(`turnwheel: the Prompt API takes no ${ignored.map((name) => `\`${name}\``).join(" and no ")}; \`samplingMode\` is what it knows`);
  }
}

/** The pieces of an answer. Old versions send the whole text so far each time. @param {AsyncIterable<unknown>} chunks */
async function* deltas(chunks) {
  let whole = "";
  let isWhole = false;
  let count = 0;
  for await (const chunk of chunks) {
    const text = String(chunk);
    if (count++ === 1) isWhole = text.length > whole.length && text.startsWith(whole);
    yield isWhole ? text.slice(whole.length) : text;
    whole = isWhole ? text : whole + text;
  }
}

/** The tokens that a session holds. @param {any} session */
const used = (session) => Number(session.contextUsage ?? session.inputUsage ?? 0);
