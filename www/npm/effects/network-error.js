// @ts-check
// Explains a request that failed: what the host says of it, and what it may mean.

import { AgentError, isMistake, textOf } from "../core.js";

/** @import { ErrorInfo } from "../index.js" */

/** What hosts say of a request that never left: Node, Bun, and Deno in words. */
const UNSENT = /^(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|ENETUNREACH|EHOSTUNREACH|UND_ERR_CONNECT_TIMEOUT|ConnectionRefused)$/;
const UNSENT_WORDS = /client error \(Connect\)/;

/** Whether no byte of a request can have reached a server. @param {any} error */
function isUnsent(error) {
  // There are several causes if a name has several addresses.
  const causes = [error?.cause?.errors ?? error?.cause ?? error].flat();
  return causes.length > 0 && causes.every((cause) => UNSENT.test(cause?.code ?? "") || UNSENT_WORDS.test(textOf(cause)));
}

/**
 * Handles a failed fetch or a failed read: no response, or one that was cut off. In a browser a dead network
 * and a CORS refusal look the same, so the text names both, and the CORS setting of the servers we know.
 * @param {any} error @param {string} url @param {boolean} [reading] @returns {ErrorInfo}
 */
export function networkError(error, url, reading) {
  if (AgentError.isInstance(error)) return error.info;
  const { host, hostname, origin } = new URL(url);
  const detail = textOf(error);
  if (reading) return { code: "network", message: `the answer of ${host} was cut: ${detail}`, retryable: true, phase: "model" };
  if (isMistake(error)) return { code: "misuse", message: `\`fetch\` failed before it asked ${host}: ${detail}`, retryable: false, phase: "connect" };
  const page = /** @type {{ location?: Location }} */ (globalThis).location?.origin;
  const local = hostname === "localhost" || hostname === "127.0.0.1" || hostname === "[::1]";
  let message = `no answer from ${host}: ${detail}`;
  if (page && page !== "null" && page !== origin) {
    message += `. Either nothing is reachable there, or the server refuses calls from ${page} (CORS), or the page's Content-Security-Policy does not list it under connect-src. ${corsHint(url, local, page)}`;
  } else if (local) message += ". Is the server running?";
  // The engine estimates no usage for what nobody has read.
  return { code: "network", message, retryable: true, phase: isUnsent(error) ? "connect" : "model" };
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
