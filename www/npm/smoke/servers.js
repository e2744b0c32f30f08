// @ts-check
// The servers that `npx turnwheel smoke` and `chat` know by name: where they are, which variable holds the key, and how a model there is made.

import { anthropic, gemini, openai, openaiCompatible, openaiResponses } from "../core.js";
import { SERVERS } from "../models/wires.js";
import { didYouMean, misuse } from "../shared.js";

/** @import { Model, ProviderOptions, ServerName } from "../index.js" */

/** Those that the package knows by their switches, and that the option `server` of a model does not name. @type {Record<string, string>} */
const BY_SWITCHES = {
  moonshot: "https://api.moonshot.ai/v1",
  zai: "https://api.z.ai/api/paas/v4",
  minimax: "https://api.minimax.io/v1",
  alibaba: "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
};

/** @type {Record<string, string>} */
const ADDRESSES = {
  openai: "https://api.openai.com/v1",
  "openai-responses": "https://api.openai.com/v1",
  anthropic: "https://api.anthropic.com",
  gemini: "https://generativelanguage.googleapis.com/v1beta",
  ...SERVERS,
  ...BY_SWITCHES,
  "openai-compatible": "https://YOUR.SERVER/v1",
};

const NAMES = Object.keys(ADDRESSES);

/** Variables whose name is not that of the server. @type {Record<string, string>} */
const VARIABLES = {
  "openai-responses": "OPENAI_API_KEY",
  azure: "AZURE_OPENAI_API_KEY",
  alibaba: "DASHSCOPE_API_KEY",
  "workers-ai": "CLOUDFLARE_API_TOKEN",
  "llama.cpp": "LLAMA_API_KEY",
};

/** Servers that most people run without a key. */
const KEYLESS = ["ollama", "llama.cpp", "lmstudio", "vllm", "openai-compatible"];

/** Where the ids of the models are asked for in another way. */
const LISTS_OTHERWISE = ["anthropic", "gemini", "azure", "workers-ai", "ai-gateway"];

/** @param {string | undefined} name */
export function checkServer(name) {
  if (name === undefined) throw misuse(`--server is missing: one of ${NAMES.join(", ")}`);
  if (!Object.hasOwn(ADDRESSES, name)) throw misuse(`there is no server ${JSON.stringify(name)}${didYouMean(name, NAMES)}\nKnown: ${NAMES.join(", ")}`);
  return name;
}

/** The address that is asked, without a slash at its end. @param {string} server @param {string | undefined} given */
export function addressOf(server, given) {
  const known = ADDRESSES[server] ?? "";
  if (given === undefined && /[A-Z]{4}/.test(known)) throw misuse(`a part of the address of ${server} is your own: --base-url ${known}`);
  // What is given may hold a password, so it is not repeated.
  const wrong = misuse("--base-url must be an address that begins with http:// or https://, without a name and a password in it");
  try {
    const { protocol, username, password } = new URL(given ?? known);
    if (!/^https?:$/.test(protocol) || username || password) throw wrong;
  } catch {
    throw wrong;
  }
  return (given ?? known).replace(/\/+$/, "");
}

/** An address as others may read it: a key in its query stays out. @param {string} address */
export function shownAddress(address) {
  const { origin, pathname, search } = new URL(address);
  return `${origin}${pathname.replace(/\/$/, "")}${search && "?…"}`;
}

/** Whether the server is one that a user runs, on this machine or beside it. @param {string} server @param {string} address */
export function isLocal(server, address) {
  return KEYLESS.includes(server) || /^(localhost|0\.0\.0\.0|127\.|10\.|192\.168\.|\[::1\]|host\.docker\.internal)/.test(new URL(address).hostname);
}

/**
 * The key, from the environment alone: the arguments of a program stand in the history of the shell and in the list of processes.
 * @param {string} server @param {string | undefined} variable that the user names @param {Record<string, string | undefined>} env
 */
export function keyOf(server, variable, env) {
  // Somebody may have written the key itself there.
  const isName = variable === undefined || /^[A-Z_][A-Z0-9_]*$/.test(variable);
  if (!isName && !env[variable]) throw misuse("--key-env takes the name of a variable of the environment that holds the key, such as OPENAI_API_KEY; there is none of the given name");
  // The key of another server must not go to an address that may be anybody's.
  const name = variable ?? (server === "openai-compatible" ? undefined : VARIABLES[server] ?? `${server.toUpperCase().replaceAll("-", "_")}_API_KEY`);
  const key = name === undefined ? undefined : env[name]?.trim();
  if (!key && (variable !== undefined || !KEYLESS.includes(server))) throw misuse(`${name} holds no key: set it (export ${name}=…), or name another variable with --key-env NAME`);
  return key || undefined;
}

/** A text without the key. The package masks keys itself; these are texts that it has not seen. @param {string} text @param {string | undefined} key */
export const masked = (text, key) => (key === undefined || key.length < 8 ? text : text.replaceAll(key, "[key]"));

/**
 * A model on the server. What the server is told besides is what its name says, at whatever address it is.
 * @param {string} server @param {string} id @param {ProviderOptions & { baseUrl: string }} options @param {boolean} isMoved whether the address is not the server's usual one
 * @returns {Model}
 */
export function modelAt(server, id, options, isMoved) {
  const { baseUrl, ...rest } = options;
  if (server === "openai") return openai(id, isMoved ? { ...options, compat: { server: "openai" } } : rest);
  if (server === "openai-responses") return openaiResponses(id, isMoved ? options : rest);
  if (server === "anthropic") return anthropic(id, isMoved ? options : rest);
  if (server === "gemini") return gemini(id, isMoved ? options : rest);
  if (server === "openai-compatible") return openaiCompatible(id, options);
  if (Object.hasOwn(BY_SWITCHES, server)) return openaiCompatible(id, { ...options, compat: { server: /** @type {"zai"} */ (server) } });
  return openaiCompatible(id, { ...options, server: /** @type {ServerName} */ (server) });
}

const LIST_MS = 10_000;

/** The only model that the server has. @param {string} server @param {string} baseUrl @param {string | undefined} key @returns {Promise<string>} */
export async function onlyModel(server, baseUrl, key) {
  if (LISTS_OTHERWISE.includes(server)) throw misuse("--model is missing: the id of the model to try");
  const { ids, why, isOff } = await listed(baseUrl, key);
  if (isOff) throw off(server, baseUrl, why);
  const [only, ...others] = ids;
  if (only === undefined) throw misuse(`--model is missing, and ${shownAddress(baseUrl)}/models does not tell which there are (${why})`);
  if (others.length === 0) return only;
  const shown = ids.slice(0, 20);
  throw misuse(`--model is missing; the server has ${shown.join(", ")}${ids.length > shown.length ? ` and ${ids.length - shown.length} more` : ""}`);
}

/** Refuses a server that nothing answers for. @param {string} server @param {string} baseUrl @param {string | undefined} key */
export async function checkThere(server, baseUrl, key) {
  const { isOff, why } = await listed(baseUrl, key);
  if (isOff) throw off(server, baseUrl, why);
}

/** @param {string} server @param {string} baseUrl @param {string} why */
const off = (server, baseUrl, why) => misuse(`${server} does not answer at ${shownAddress(baseUrl)} (${why}): start it, or say with --base-url where it is, or name another with --server`);

/** @param {string} baseUrl @param {string | undefined} key @returns {Promise<{ ids: string[], why: string, isOff?: boolean }>} */
async function listed(baseUrl, key) {
  const url = new URL(baseUrl);
  url.pathname = `${url.pathname.replace(/\/$/, "")}/models`;
  /** @type {Response} */
  let response;
  try {
    response = await fetch(url, { headers: key ? { authorization: `Bearer ${key}` } : {}, redirect: "manual", signal: AbortSignal.timeout(LIST_MS) });
  } catch (error) {
    return { ids: [], why: codeOf(error), isOff: true };
  }
  try {
    if (!response.ok) return { ids: [], why: `status ${response.status}` };
    const told = await response.json();
    const list = Array.isArray(told) ? told : told?.data;
    const ids = Array.isArray(list) ? list.map((model) => model?.id).filter((id) => typeof id === "string" && id !== "").map((id) => masked(id, key)) : [];
    return { ids, why: "it lists none" };
  } catch (error) {
    return { ids: [], why: codeOf(error) };
  }
}

/** @param {any} error */
const codeOf = (error) => `${error?.cause?.code ?? error?.name}`;
