// @ts-check
// Models on servers: descriptions of where a model is and how it is called. Nothing here makes a request.

import { checkForeignNames, checkNames, didYouMean, kindOf, misuse, shownOf } from "../shared.js";
import { SERVED } from "../options/options.js";
import { checkShape } from "../options/shape.js";
import { withSetup } from "./setup.js";

/** @import { Model, ProviderOptions } from "../index.js" */
/** @typedef {ProviderOptions & { server?: string }} ServerOptions */

/** Names only: which of them each wire has, and their values, is the engine's business. */
const SWITCHES = [
  "server", "maxTokensField", "developerRole", "streamOptions", "store", "parallelToolCalls", "strict", "reasoning", "toolIds", "replayReasoning",
  "toolResultName", "assistantAfterTool", "cacheControl", "cacheTtl", "promptCacheKey",
];

/**
 * The base URLs of servers that speak OpenAI's wire formats. Capitals are placeholders for a user's own part.
 * @type {Record<string, string>}
 */
export const SERVERS = {
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

/** A model behind OpenAI Chat Completions. @param {string} id @param {ProviderOptions} [options] @returns {Model} */
export function openai(id, options = {}) {
  return wire("openai", "openai-chat", id, options);
}

/** A model behind OpenAI Responses. @param {string} id @param {ProviderOptions} [options] @returns {Model} */
export function openaiResponses(id, options = {}) {
  return wire("openai", "openai-responses", id, resolveServer(id, options));
}

/**
 * A model behind Anthropic Messages. Browsers need `dangerouslyAllowBrowser: true`: anyone who opens the
 * page can then read the key.
 * @param {string} id @param {ProviderOptions} [options] @returns {Model}
 */
export function anthropic(id, options = {}) {
  return wire("anthropic", "anthropic", id, options, Object.keys(SERVED));
}

/** A model of Google Gemini. @param {string} id @param {ProviderOptions} [options] @returns {Model} */
export function gemini(id, options = {}) {
  return wire("gemini", "gemini", id, options);
}

/**
 * A model on any server that speaks Chat Completions: Ollama, llama.cpp, LM Studio, vLLM, OpenRouter, …
 * @param {string} id @param {ServerOptions} options @returns {Model}
 */
export function openaiCompatible(id, options) {
  const known = resolveServer(id, options);
  // An address under another name is better answered by that name.
  const model = known && known.baseUrl !== "" && wire(options.server ?? "openai-compatible", "openai-chat", id, known);
  if (!model || !known?.baseUrl) {
    throw misuse(`openaiCompatible("${id}") needs the server's address, for example { baseUrl: "http://localhost:11434/v1" }, or its name: { server: "ollama" }`);
  }
  return model;
}

/**
 * Adds the base URL and the switches of the server that the options name.
 * @param {string} id @param {ServerOptions} options @returns {ProviderOptions}
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
  return { ...rest, baseUrl: rest.baseUrl || address, ...(compat && { compat: /** @type {ProviderOptions["compat"]} */ (compat) }) };
}

const ON_AGENT = "it is an option of the agent: new Agent({ model, streamOptions: { temperature, maxTokens, … }, retry, timeouts })";
/** Names that other libraries use, or that belong elsewhere. @type {Record<string, string>} */
const FOREIGN_NAMES = {
  key: "apiKey", token: "apiKey", baseURL: "baseUrl", url: "baseUrl", endpoint: "baseUrl", organization: "headers", project: "headers", defaultHeaders: "headers", server: "write openaiCompatible(id, { server })",
  temperature: ON_AGENT, maxTokens: ON_AGENT, maxRetries: ON_AGENT, timeout: ON_AGENT, retry: ON_AGENT, streamOptions: ON_AGENT,
};

/** The options that every wire takes. */
const COMMON_OPTIONS = Object.keys(SERVED).filter((name) => name !== "dangerouslyAllowBrowser");

/** @param {string} provider @param {string} kind @param {string} id @param {ProviderOptions} options @returns {Model} */
function wire(provider, kind, id, options, known = COMMON_OPTIONS) {
  if (typeof id !== "string" || id === "") throw misuse(`a model needs an id, got ${kindOf(id)}`);
  if (typeof options !== "object" || options === null) throw misuse(`model \`${id}\`: the options must be an object, got ${kindOf(options)}`);
  const owner = `model \`${id}\`: `;
  checkForeignNames(`${owner}unknown option`, options, FOREIGN_NAMES);
  checkNames(`${owner}unknown option`, options, known);
  for (const [name, shape] of Object.entries(SERVED)) checkShape(name, options[/** @type {keyof ProviderOptions} */ (name)], shape, owner);
  const { baseUrl, price, compat } = options;
  if (compat && typeof compat !== "object") throw misuse(`${owner}\`compat\` must be an object, such as { server: "vllm" }, got ${kindOf(compat)}`);
  checkNames(`${owner}unknown \`compat\` switch`, compat ?? {}, SWITCHES);
  if (baseUrl !== undefined) checkAddress(owner, baseUrl);
  if (price !== undefined) {
    const parts = typeof price === "object" && price !== null ? [price.input, price.output, price.cacheRead ?? 0, price.cacheWrite ?? 0] : [];
    // High enough for any price, and low enough for sums of whole numbers to stay exact.
    if (parts.length === 0 || parts.some((part) => typeof part !== "number" || !(part >= 0 && part < 1e9))) {
      throw misuse(`model \`${id}\`: \`price\` must be { input, output, cacheRead?, cacheWrite? }, numbers for a million tokens`);
    }
  }
  return withSetup({ provider, id }, { wire: kind, ...options });
}

/** Checks an address without repeating what it may hold of a password or a key. @param {string} owner @param {unknown} given */
function checkAddress(owner, given) {
  const shown = typeof given === "string" ? shownOf(given.replace(/^.*@/s, "…@").replace(/[?#].*$/s, "?…")) : kindOf(given);
  if (typeof given !== "string" || !/^https?:\/\//.test(given)) throw misuse(`${owner}\`baseUrl\` must begin with http:// or https://, got ${shown}`);
  /** @type {URL} */
  let address;
  try {
    address = new URL(given);
  } catch {
    throw misuse(`${owner}\`baseUrl\` must be an address, got ${shown}`);
  }
  if (address.username || address.password) {
    throw misuse(`${owner}\`baseUrl\` holds a name or a password, which \`fetch\` refuses; send them as a header: { headers: { authorization: \`Basic \${btoa("name:password")}\` } }`);
  }
}
