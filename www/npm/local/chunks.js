// @ts-check
// What an engine with the form of OpenAI's chat gives and takes, and when it is made.

/** @import { Usage } from "../index.js" */
/** @import { Asked, Chunk } from "./model.js" */

/** @param {import("./prompt.js").ChatMessage[]} chat */
export const plain = (chat) => chat.map(({ role, content, suffix = "" }) => ({ role, content: content + suffix }));

/** The request without its constraint. @param {Asked} asked */
export function chatRequest({ chat, messages = plain(chat), tools, options }) {
  const { maxTokens, temperature, topP, stop } = options;
  return {
    stream: true,
    stream_options: { include_usage: true },
    messages,
    ...(tools.length > 0 && { tools: tools.map(({ name, description, parameters }) => ({ type: "function", function: { name, description, parameters } })) }),
    ...(maxTokens !== undefined && { max_tokens: maxTokens }),
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { top_p: topP }),
    ...(stop && { stop }),
  };
}

/** @param {any} chunk @returns {Iterable<Chunk>} */
export function* chunksOf({ choices, usage }) {
  const [choice] = choices ?? [];
  const { content, reasoning_content: thinking, tool_calls: calls } = choice?.delta ?? {};
  if (thinking) yield { thinking };
  if (content) yield { text: content };
  for (const { index = 0, id, function: called } of calls ?? []) yield { call: { index, id, name: called?.name, json: called?.arguments } };
  if (choice?.finish_reason) yield { reason: choice.finish_reason === "length" ? "length" : "stop" };
  if (usage) yield { usage: usageOf(usage) };
}

/** @param {any} usage @returns {Partial<Usage>} */
function usageOf({ prompt_tokens = 0, completion_tokens = 0, total_tokens, prompt_tokens_details }) {
  const cacheRead = prompt_tokens_details?.cached_tokens ?? 0;
  return { input: prompt_tokens - cacheRead, cacheRead, output: completion_tokens, total: total_tokens ?? prompt_tokens + completion_tokens };
}

/** The engine, made at its first use: by one call, however many wait. A failed one is made again. @template T @param {any} given */
export function engineOf(given) {
  /** @type {Promise<T> | undefined} */
  let making = undefined;
  /** @type {T | undefined} */
  let engine = typeof given === "function" ? undefined : given;
  return {
    get ready() {
      return engine !== undefined;
    },
    get making() {
      return making !== undefined;
    },
    /** @param {unknown} options of the function that makes it @returns {Promise<T>} */
    async get(options) {
      if (engine !== undefined) return engine;
      making ??= (async () => given(options))();
      try {
        engine = await making;
      } finally {
        making = undefined;
      }
      return /** @type {T} */ (engine);
    },
    /** It is made anew, where that can be done; what it may still hold is let go. */
    lost() {
      if (typeof given !== "function") return;
      const before = /** @type {any} */ (engine);
      engine = undefined;
      Promise.resolve().then(() => before?.exit?.()).catch(() => {});
    },
  };
}
