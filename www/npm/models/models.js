// @ts-check
// Models: descriptions of where a model is and how it is called. Nothing here makes a request.

import { checkNames, didYouMean, kindOf, misuse, shownOf, sleep } from "../shared.js";
import { checkShape, SERVED } from "../options/options.js";

/** The key of what the engine needs to know about a model, hidden from the user. */
export const SETUP = Symbol.for("turnwheel.model");

/** Names only: which of them each wire has, and their values, is the engine's business. */
const SWITCHES = [
  "server", "maxTokensField", "developerRole", "streamOptions", "store", "parallelToolCalls", "strict", "reasoning", "toolIds", "replayReasoning",
  "toolResultName", "assistantAfterTool", "cacheControl", "cacheTtl", "promptCacheKey",
];

/**
 * The base URLs of servers that speak OpenAI's wire formats. Capitals are placeholders for a user's own part.
 * @type {Record<string, string>}
 */
const SERVERS = {
  ollama: "http://localhost:11434/v1",
  "llama.cpp": "http://localhost:8080/v1",
  lmstudio: "http://localhost:1234/v1",
  vllm: "http://localhost:8000/v1",
  openrouter: "https://openrouter.ai/api/v1",
  groq: "https://api.groq.com/openai/v1",
  mistral: "https://api.mistral.ai/v1",
  deepseek: "https://api.deepseek.com",
  xai: "https://api.x.ai/v1",
  together: "https://api.together.xyz/v1",
  azure: "https://RESOURCE.openai.azure.com",
  "workers-ai": "https://api.cloudflare.com/client/v4/accounts/ACCOUNT/ai/v1",
  "ai-gateway": "https://gateway.ai.cloudflare.com/v1/ACCOUNT/GATEWAY/PROVIDER",
};

/** A model behind OpenAI Chat Completions. @param {string} id @param {any} [options] */
export function openai(id, options = {}) {
  return wire("openai", "openai-chat", id, options);
}

/** A model behind OpenAI Responses. @param {string} id @param {any} [options] */
export function openaiResponses(id, options = {}) {
  return wire("openai", "openai-responses", id, resolveServer(id, options));
}

/**
 * A model behind Anthropic Messages. Browsers need `dangerouslyAllowBrowser: true`: anyone who opens the
 * page can then read the key.
 * @param {string} id @param {any} [options]
 */
export function anthropic(id, options = {}) {
  return wire("anthropic", "anthropic", id, options, Object.keys(SERVED));
}

/** A model of Google Gemini. @param {string} id @param {any} [options] */
export function gemini(id, options = {}) {
  return wire("gemini", "gemini", id, options);
}

/**
 * A model on any server that speaks Chat Completions: Ollama, llama.cpp, LM Studio, vLLM, OpenRouter, …
 * @param {string} id @param {any} options
 */
export function openaiCompatible(id, options) {
  const known = resolveServer(id, options);
  if (typeof known?.baseUrl !== "string" || known.baseUrl === "") {
    throw misuse(`openaiCompatible("${id}") needs the server's address, for example { baseUrl: "http://localhost:11434/v1" }, or its name: { server: "ollama" }`);
  }
  return wire(options.server ?? "openai-compatible", "openai-chat", id, known);
}

/**
 * Adds the base URL and the switches of the server that the options name.
 * @param {string} id @param {any} options
 */
function resolveServer(id, options) {
  const { server, ...rest } = options ?? {};
  if (server === undefined) return Object(options) === options ? rest : options;
  const address = Object.hasOwn(SERVERS, server) ? SERVERS[server] : undefined;
  const names = Object.keys(SERVERS);
  if (!address) throw misuse(`model \`${id}\`: unknown server ${JSON.stringify(server)}${didYouMean(String(server), names)}; known: ${names.join(", ")}`);
  if (/[A-Z]{4}/.test(address) && !rest.baseUrl) throw misuse(`model \`${id}\`: of the server \`${server}\` a part of the address is your own: { baseUrl: "${address}" }`);
  // Behind the gateway, the address tells which server answers.
  const compat = server === "ai-gateway" ? rest.compat : { server, ...rest.compat };
  return { ...rest, baseUrl: rest.baseUrl || address, ...(compat && { compat }) };
}

/** The options that every wire takes. */
const COMMON_OPTIONS = Object.keys(SERVED).filter((name) => name !== "dangerouslyAllowBrowser");

/** @param {string} provider @param {string} kind @param {string} id @param {any} options */
function wire(provider, kind, id, options, known = COMMON_OPTIONS) {
  if (typeof id !== "string" || id === "") throw misuse(`a model needs an id, got ${kindOf(id)}`);
  if (typeof options !== "object" || options === null) throw misuse(`model \`${id}\`: the options must be an object, got ${kindOf(options)}`);
  const owner = `model \`${id}\`: `;
  checkNames(`${owner}unknown option`, options, known);
  for (const [name, shape] of Object.entries(SERVED)) checkShape(name, options[name], shape, owner);
  const { baseUrl, price, compat } = options;
  checkNames(`${owner}unknown \`compat\` switch`, compat ?? {}, SWITCHES);
  if (baseUrl !== undefined && !/^https?:\/\//.test(baseUrl)) {
    throw misuse(`model \`${id}\`: \`baseUrl\` must begin with http:// or https://, got ${shownOf(baseUrl)}`);
  }
  try {
    if (baseUrl !== undefined) new URL(baseUrl);
  } catch {
    throw misuse(`model \`${id}\`: \`baseUrl\` must be an address, got ${shownOf(baseUrl)}`);
  }
  if (price !== undefined) {
    const parts = typeof price === "object" && price !== null ? [price.input, price.output, price.cacheRead ?? 0, price.cacheWrite ?? 0] : [];
    // High enough for any price, and low enough for sums of whole numbers to stay exact.
    if (parts.length === 0 || parts.some((part) => typeof part !== "number" || !(part >= 0 && part < 1e9))) {
      throw misuse(`model \`${id}\`: \`price\` must be { input, output, cacheRead?, cacheWrite? }, numbers for a million tokens`);
    }
  }
  return withSetup({ provider, id }, { wire: kind, ...options });
}

/**
 * A model that the host streams itself: an async generator of events.
 * @param {string} id @param {any} streamFn
 * @param {{ provider?: string, supportsTools?: boolean, contextWindow?: number }} [options]
 */
export function custom(id, streamFn, options = {}) {
  checkNames(`model \`${id}\`: unknown option`, options, ["provider", "supportsTools", "contextWindow"]);
  const { provider = "custom", supportsTools, contextWindow } = options;
  checkShape("contextWindow", contextWindow, SERVED.contextWindow, `model \`${id}\`: `);
  if (typeof streamFn !== "function") throw misuse(`custom("${id}") needs a streamFn, got ${kindOf(streamFn)}`);
  return withSetup({ provider, id, streamFn }, { supportsTools, contextWindow });
}

/** @param {any} model @param {any} setup */
function withSetup(model, setup) {
  Object.defineProperty(model, SETUP, { value: setup });
  return Object.freeze(model);
}

/** A model for tests and demos: the n-th call returns the n-th item. @param {any[]} items */
export function scripted(items) {
  if (!Array.isArray(items)) throw misuse(`scripted needs an array of items, got ${kindOf(items)}`);
  items.forEach((item, i) => checkItem(item, `scripted: item ${i}`));
  let next = 0;
  return withSetup(
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
        yield* play(typeof item === "function" ? checkItem(await item(request), `scripted: what item ${next - 1} gives`) : item, context);
      },
    },
    {},
  );
}

/** Checks an item: a misspelt one would be a silent answer. @param {any} item @param {string} where */
function checkItem(item, where) {
  if (typeof item === "string" || typeof item === "function" || Array.isArray(item)) return item;
  if (typeof item !== "object" || item === null) throw misuse(`${where} must be a text, an array of events, or { text, toolCalls, … }, got ${kindOf(item)}`);
  checkNames(`${where}: unknown member`, item, ["thinking", "text", "toolCalls", "stopReason", "usage", "delayMs", "error"]);
  for (const call of item.toolCalls ?? []) {
    checkNames(`${where}: unknown member of a call`, call, ["callId", "toolName", "arguments", "chunks"]);
    if (typeof call.toolName !== "string") throw misuse(`${where}: a call needs a \`toolName\`, got ${kindOf(call.toolName)}`);
  }
  return item;
}

/** @param {any} item @param {any} context */
async function* play(item, context) {
  if (Array.isArray(item)) return yield* item;
  const { thinking, text, toolCalls = [], stopReason, usage, delayMs, error } = typeof item === "string" ? { text: item } : item;
  // Somebody may call this streamFn with only the context that the contract promises.
  if (delayMs) await (context.sleep?.(delayMs) ?? sleep({}, delayMs, context.signal));
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
  for (const [index, call] of toolCalls.entries()) {
    const { callId = `call_${index + 1}`, toolName, chunks = [JSON.stringify(call.arguments ?? {})] } = call;
    yield { type: "tool_call_start", contentIndex, callId, toolName };
    for (const delta of chunks) yield { type: "tool_call_delta", contentIndex, delta };
    yield { type: "tool_call_end", contentIndex: contentIndex++ };
  }
  if (error) yield { type: "error", error };
  else yield { type: "done", stopReason: stopReason ?? (toolCalls.length > 0 ? "tool_use" : "stop"), ...(usage && { usage }) };
}

/** The settings of a model as JSON, which leaves out functions and what is not set. @param {any} model */
export function modelSettings(model) {
  if (typeof model !== "object" || model === null) {
    throw misuse(`\`model\` must be a model such as openai("gpt-5-mini", { apiKey }), got ${kindOf(model)}`);
  }
  const { wire, baseUrl, headers, compat, limits, apiKey, price, supportsTools, contextWindow, dangerouslyAllowBrowser } = model[SETUP] ?? {};
  if (!wire && typeof model.streamFn !== "function") {
    throw misuse(`model \`${model.id ?? model.modelId}\` has neither a wire nor a streamFn; make it with openai(…), openaiCompatible(…) or custom(…)`);
  }
  return {
    provider: model.provider ?? "custom", id: model.id, wire, baseUrl, headers, compat: compat ?? undefined, price, limits,
    apiKey, supportsTools: supportsTools !== false, contextWindow, dangerouslyAllowBrowser,
  };
}
