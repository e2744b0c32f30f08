// @ts-check
// Models: descriptions of where one is and how it is asked. Nothing here talks to anybody.

import { didYouMean, kindOf, misuse } from "./errors.js";

/** What the engine needs to know of a model, hidden from the user's view. */
export const SETUP = Symbol.for("turnwheel.model");

const OPTIONS = ["apiKey", "baseUrl", "headers", "fetch", "contextWindow", "price", "compat", "supportsTools"];

/** OpenAI Chat Completions. @param {string} id @param {any} [options] */
export function openai(id, options = {}) {
  return wire("openai", "openai-chat", id, options);
}

/** OpenAI Responses. @param {string} id @param {any} [options] */
export function openaiResponses(id, options = {}) {
  return wire("openai", "openai-responses", id, options);
}

/**
 * Anthropic Messages. In browsers it answers only with `dangerouslyAllowBrowser: true`: whoever opens the page can then
 * read the key. @param {string} id @param {any} [options]
 */
export function anthropic(id, options = {}) {
  return wire("anthropic", "anthropic", id, options, ["dangerouslyAllowBrowser"]);
}

/** Google Gemini. @param {string} id @param {any} [options] */
export function gemini(id, options = {}) {
  return wire("gemini", "gemini", id, options);
}

/** Any server that speaks Chat Completions: Ollama, llama.cpp, LM Studio, vLLM, OpenRouter, … @param {string} id @param {any} options */
export function openaiCompatible(id, options) {
  if (typeof options?.baseUrl !== "string" || options.baseUrl === "") {
    throw misuse(`openaiCompatible("${id}") needs the server's address, for example { baseUrl: "http://localhost:11434/v1" }`);
  }
  return wire("openai-compatible", "openai-chat", id, options);
}

/** @param {string} provider @param {string} kind @param {string} id @param {any} options @param {string[]} [more] options of this wire alone */
function wire(provider, kind, id, options, more = []) {
  const known = [...OPTIONS, ...more];
  if (typeof id !== "string" || id === "") throw misuse(`a model needs an id, got ${kindOf(id)}`);
  if (typeof options !== "object" || options === null) throw misuse(`model \`${id}\`: the options must be an object, got ${kindOf(options)}`);
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) throw misuse(`model \`${id}\`: unknown option \`${name}\`${didYouMean(name, known)}`);
  }
  const { apiKey, baseUrl } = options;
  if (apiKey !== undefined && typeof apiKey !== "string" && typeof apiKey !== "function") {
    throw misuse(`model \`${id}\`: \`apiKey\` must be a text or a function, got ${kindOf(apiKey)}`);
  }
  if (baseUrl !== undefined && !/^https?:\/\//.test(baseUrl)) {
    throw misuse(`model \`${id}\`: \`baseUrl\` must begin with http:// or https://, got ${JSON.stringify(baseUrl)}`);
  }
  return hide({ provider, id }, { wire: kind, ...options });
}

/**
 * A model that you stream yourself: an async generator of events.
 * @param {string} id @param {any} streamFn @param {{ provider?: string, supportsTools?: boolean }} [options]
 */
export function custom(id, streamFn, { provider = "custom", supportsTools } = {}) {
  if (typeof streamFn !== "function") throw misuse(`custom("${id}") needs a streamFn, got ${kindOf(streamFn)}`);
  return hide({ provider, id, streamFn }, { supportsTools });
}

/** @param {any} model @param {any} setup */
function hide(model, setup) {
  Object.defineProperty(model, SETUP, { value: setup });
  return Object.freeze(model);
}

/** For tests and demos: the n-th model call gives the n-th item. @param {any[]} items */
export function scripted(items) {
  if (!Array.isArray(items)) throw misuse(`scripted needs an array of items, got ${kindOf(items)}`);
  let next = 0;
  return hide(
    {
      provider: "scripted",
      id: "scripted",
      /** @param {any} request @param {any} context */
      async *streamFn(request, context) {
        const item = items[next++];
        if (item === undefined) {
          const error = { code: "invalid_request", message: `the script is exhausted: it has ${items.length} items` };
          return yield { type: "error", error };
        }
        yield* play(typeof item === "function" ? item(request) : item, context);
      },
    },
    {},
  );
}

/** @param {any} item @param {any} context */
async function* play(item, context) {
  if (Array.isArray(item)) return yield* item;
  const { thinking, text, toolCalls = [], stopReason, usage, delayMs, error } = typeof item === "string" ? { text: item } : item;
  if (delayMs) await context.sleep(delayMs);
  yield { type: "start" };
  let contentIndex = 0;
  if (thinking) {
    yield { type: "thinking_start", contentIndex };
    yield { type: "thinking_delta", contentIndex, delta: thinking };
    yield { type: "thinking_end", contentIndex: contentIndex++ };
  }
  if (text !== undefined) {
    yield { type: "text_start", contentIndex };
    for (const delta of [text].flat()) yield { type: "text_delta", contentIndex, delta };
    yield { type: "text_end", contentIndex: contentIndex++ };
  }
  for (const [n, call] of toolCalls.entries()) {
    const { callId = `call_${n + 1}`, toolName, chunks = [JSON.stringify(call.arguments ?? {})] } = call;
    yield { type: "tool_call_start", contentIndex, callId, toolName };
    for (const delta of chunks) yield { type: "tool_call_delta", contentIndex, delta };
    yield { type: "tool_call_end", contentIndex: contentIndex++ };
  }
  if (error) yield { type: "error", error };
  else yield { type: "done", stopReason: stopReason ?? (toolCalls.length > 0 ? "tool_use" : "stop"), ...(usage && { usage }) };
}

/** A model as the settings tell of it. @param {any} model */
export function modelSettings(model) {
  if (typeof model !== "object" || model === null) {
    throw misuse(`\`model\` must be a model such as openai("gpt-5-mini", { apiKey }), got ${kindOf(model)}`);
  }
  const { wire, baseUrl, headers, compat, apiKey, supportsTools, dangerouslyAllowBrowser } = model[SETUP] ?? {};
  if (!wire && typeof model.streamFn !== "function") {
    throw misuse(`model \`${model.id}\` has neither a wire nor a streamFn; make it with openai(…), openaiCompatible(…) or custom(…)`);
  }
  return {
    provider: model.provider ?? "custom", id: model.id,
    ...(wire && { wire }), ...(baseUrl && { baseUrl }), ...(headers && { headers }), ...(compat && { compat }),
    ...(typeof apiKey === "string" && { apiKey }), ...(supportsTools === false && { supportsTools }),
    ...(dangerouslyAllowBrowser === true && { dangerouslyAllowBrowser }),
  };
}
