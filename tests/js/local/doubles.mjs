// @ts-check
// Doubles of on-device engines, which behave as the real ones were seen to: a `LanguageModel` with its sessions, its
// windows and its traps; wllama; web-llm, of an example. What they answer is a function of what they are asked.

/** @typedef {{ role: string, content: string }} Message */
/** @typedef {(messages: Message[], constraint: any) => string} Mind */

const tokens = (/** @type {string} */ text) => Math.ceil(text.length / 4);
const named = (/** @type {string} */ name, /** @type {string} */ message) => Object.assign(new Error(message), { name });
const pieces = (/** @type {string} */ text) => text.match(/[\s\S]{1,3}/gu) ?? [];

/**
 * `whole`: each chunk is the text so far, as old versions had it. `refuses`: the constraint is not supported.
 * @param {Mind} mind @param {{ window?: number, whole?: boolean, refuses?: boolean, state?: string, old?: boolean }} [options]
 */
export function languageModel(mind, { window = 1000, whole = false, refuses = false, state = "available", old = false } = {}) {
  /** @type {{ opened: Message[][], prompted: Message[][], destroyed: number, dropped: number, constraints: any[] }} */
  const log = { opened: [], prompted: [], destroyed: 0, dropped: 0, constraints: [] };
  class Session extends EventTarget {
    /** @param {Message[]} known */
    constructor(known) {
      super();
      this.known = known;
      this.isDestroyed = false;
    }

    get used() {
      return this.known.reduce((sum, { content }) => sum + tokens(content), 0);
    }

    /** @param {Message[]} messages */
    async measure(messages) {
      return messages.reduce((sum, { content }) => sum + tokens(content), 0);
    }

    /** @param {Message[]} messages @param {{ responseConstraint?: any, signal?: AbortSignal }} options */
    promptStreaming(messages, { responseConstraint, signal } = {}) {
      const session = this;
      return (async function* () {
        if (session.isDestroyed) throw named("InvalidStateError", "the session is destroyed");
        if (responseConstraint && refuses) throw named("NotSupportedError", "the responseConstraint has a keyword that is not supported");
        if (messages.some(({ role }) => role === "system")) throw named("TypeError", "a system prompt comes first");
        if ((await session.measure(messages)) > window) throw named("QuotaExceededError", "the input is too large");
        log.prompted.push(messages);
        log.constraints.push(responseConstraint);
        const all = [...session.known, ...messages];
        // What does not fit is dropped, and nobody is told but who listens.
        while (all.reduce((sum, { content }) => sum + tokens(content), 0) > window && all.length > 1) {
          all.splice(all[0]?.role === "system" ? 1 : 0, 1);
          log.dropped++;
        }
        const text = mind(all, responseConstraint);
        let sent = "";
        for (const piece of pieces(text)) {
          await Promise.resolve();
          signal?.throwIfAborted();
          sent += piece;
          yield whole ? sent : piece;
        }
        session.known = [...all, { role: "assistant", content: text }];
      })();
    }

    destroy() {
      this.isDestroyed = true;
      log.destroyed++;
    }
  }
  const names = old ? ["inputUsage", "inputQuota", "measureInputUsage"] : ["contextUsage", "contextWindow", "measureContextUsage"];
  Object.defineProperties(Session.prototype, {
    [String(names[0])]: { get() { return this.used; } },
    [String(names[1])]: { get: () => window },
    [String(names[2])]: { value: Session.prototype.measure },
  });
  const api = {
    availability: async () => state,
    /** @param {{ initialPrompts?: Message[], monitor?: (target: EventTarget) => void }} options */
    async create({ initialPrompts = [], monitor } = {}) {
      if (state === "unavailable") throw named("NotSupportedError", "the device is not eligible");
      if (initialPrompts.reduce((sum, { content }) => sum + tokens(content), 0) > window) throw named("QuotaExceededError", "the initial prompts are too large");
      const target = new EventTarget();
      monitor?.(target);
      for (const loaded of [0, 0.5, 1]) target.dispatchEvent(Object.assign(new Event("downloadprogress"), { loaded }));
      log.opened.push(initialPrompts);
      return new Session(initialPrompts);
    },
  };
  return { api, log };
}

/** Chunks as OpenAI's chat has them. @param {string} text @param {Message[]} messages */
async function* chunks(text, messages, /** @type {() => void} */ check = () => {}) {
  for (const piece of pieces(text)) {
    await Promise.resolve();
    check();
    yield { choices: [{ delta: { content: piece } }] };
  }
  const prompt_tokens = messages.reduce((sum, { content }) => sum + tokens(content), 0);
  yield { choices: [{ delta: {}, finish_reason: "stop" }] };
  yield { choices: [], usage: { prompt_tokens, completion_tokens: tokens(text), total_tokens: prompt_tokens + tokens(text), prompt_tokens_details: { cached_tokens: 3 } } };
}

/** @param {Mind} mind @param {{ window?: number }} [options] */
export function wllamaEngine(mind, { window = 4000 } = {}) {
  /** @type {any[]} */
  const asked = [];
  return {
    asked,
    isBusy: false,
    /** @param {any} request */
    async createChatCompletion(request) {
      if (request.grammar && request.tools) throw named("RuntimeError", "Invalid typed array length: -1");
      if (this.isBusy) throw named("Error", "another answer is being written");
      asked.push(request);
      const size = request.messages.reduce((/** @type {number} */ sum, /** @type {Message} */ { content }) => sum + tokens(content), 0);
      if (size > window) throw Object.assign(named("WllamaError", `request (${size} tokens) exceeds the available context size (${window} tokens)`), { type: "inference_error" });
      this.isBusy = true;
      const engine = this;
      return (async function* () {
        try {
          yield* chunks(mind(request.messages, request.grammar), request.messages, () => request.abortSignal?.throwIfAborted());
        } finally {
          engine.isBusy = false;
        }
      })();
    },
  };
}

/** @param {Mind} mind */
export function mlcEngine(mind) {
  /** @type {any[]} */
  const asked = [];
  const engine = {
    asked, interrupted: 0,
    interruptGenerate: async () => void engine.interrupted++,
    chat: {
      completions: {
        /** @param {any} request */
        async create(request) {
          asked.push(request);
          const before = engine.interrupted;
          return (async function* () {
            for await (const chunk of chunks(mind(request.messages, request.response_format), request.messages)) {
              if (engine.interrupted > before) return void (yield { choices: [{ delta: {}, finish_reason: "abort" }] });
              yield chunk;
            }
          })();
        },
      },
    },
  };
  return engine;
}
