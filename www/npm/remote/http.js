// @ts-check
// What a connection to an agent elsewhere needs: responses, the errors they mean, waits between attempts.

import { AgentError, isMistake, kindOf, misuse, numbersWithDefaults, textOf } from "../shared.js";
import { parseJson } from "./json.js";

/** @import { ErrorKind } from "../index.js" */
/** @import { Host } from "../shared.js" */
/** @typedef {ReturnType<typeof reconnectLimits>} Reconnects */

/** Long enough to miss six keep-alives. */
export const STALL_MS = 45_000;

/** A server that wants to be left alone for longer is asked again all the same. */
const MAX_RETRY_AFTER_MS = 120_000;
/** What is read of an error, and shown of it. */
const ERROR_BYTES = 65_536;
const MAX_MESSAGE = 2000;

/** @type {ErrorKind[]} */
const CODES = ["throttled", "overloaded", "network", "server", "auth", "invalid_request", "content_filtered", "context_overflow", "aborted", "timeout", "tool", "hook", "misuse", "internal", "unknown"];

/** @param {object | undefined} given */
export const remoteLimits = (given) => numbersWithDefaults("limits", given, { eventBytes: 64_000_000, runBytes: 256_000_000, historyBytes: 256_000_000 });

/** @param {object | undefined} given */
export const reconnectLimits = (given) => numbersWithDefaults("reconnects", given, { maxAttempts: 10, initialMs: 250, maxMs: 15_000 });

/** The error code for an HTTP status. @param {number} status @returns {ErrorKind} */
const codeOf = (status) => (status === 401 || status === 403 ? "auth" : status === 409 ? "misuse" : status === 429 ? "throttled" : status === 503 ? "overloaded" : status >= 500 ? "server" : "invalid_request");

/** Whether a retry may help. @param {number} status */
const isRetryable = (status) => status === 408 || status === 429 || (status >= 500 && status !== 501);

/** Reads the error that a server sent instead of a result. @param {Response} response */
export async function responseError(response) {
  const text = await readStart(response).catch(() => "");
  /** @type {any} */
  let reported;
  try {
    reported = parseJson(text)?.error;
  } catch {
    // Not a turnwheel server, or something in between answered.
  }
  const { status } = response;
  const after = Number(response.headers.get("retry-after"));
  const message = typeof reported?.message === "string" ? reported.message.slice(0, MAX_MESSAGE) : `the server answered ${status}${text ? `: ${text.slice(0, 200)}` : ""}`;
  const code = CODES.find((one) => one === reported?.code) ?? codeOf(status);
  return new AgentError({ code, message, retryable: isRetryable(status), ...(after > 0 && { retryAfterMs: after * 1000 }), provider: { status } });
}

/** Reads the answer to a command; one that broke off is none, for the command was executed. @param {Response} response @returns {Promise<any>} */
export async function replyOf(response) {
  try {
    return parseJson(await readStart(response)) ?? {};
  } catch {
    return {};
  }
}

/** Reads the beginning of a body as text. @param {Response} response */
async function readStart(response) {
  const reader = response.body?.getReader();
  if (!reader) return "";
  const decoder = new TextDecoder();
  let text = "";
  while (text.length < ERROR_BYTES) {
    const { done, value } = await reader.read();
    if (done) return text;
    text += decoder.decode(value.subarray(0, ERROR_BYTES), { stream: true });
  }
  reader.cancel().catch(() => {});
  return text;
}

/**
 * Checks a response: a wrapper of `fetch` may have forgotten its `return`.
 * @param {Response} given
 */
export function responseOf(given) {
  if (typeof given?.ok !== "boolean") throw misuse(`\`fetch\` and \`reconnect\` must give a Response, got ${kindOf(given)}`);
  return given;
}

/** Returns the body of an event stream. @param {Response} given */
export async function bodyOf(given) {
  const response = responseOf(given);
  if (!response.ok) throw await responseError(response);
  const type = response.headers.get("content-type") ?? "nothing";
  if (!response.body || !type.toLowerCase().startsWith("text/event-stream")) {
    throw new AgentError({ code: "invalid_request", message: `the response is no stream of events: its content-type is ${type}`, retryable: false });
  }
  return response.body;
}

/** @param {unknown} error @param {string} what @returns {AgentError} */
export const networkError = (error, what) => {
  if (AgentError.isInstance(error)) return error;
  const isWrong = isMistake(error);
  return new AgentError({ code: isWrong ? "misuse" : "network", message: `${what}: ${isWrong ? "`fetch` or `headers` failed, " : ""}${textOf(error)}`, retryable: !isWrong }, error);
};

/** @param {unknown} reason */
export const abortError = (reason) => new AgentError({ code: "aborted", message: textOf(reason), retryable: false }, reason);

/**
 * Waits before the given attempt, counted from 1: as long as the server wants, but neither for ever nor without a pause.
 * @param {number} attempt @param {AgentError} error @param {Reconnects} reconnects
 * @param {Host} host @param {AbortSignal} [signal]
 */
export function backOff(attempt, error, { initialMs, maxMs }, host, signal) {
  const wanted = error.info.retryAfterMs;
  const own = Math.min(maxMs, initialMs * 2 ** (attempt - 1));
  return host.sleep(wanted === undefined ? own * (0.5 + host.random()) : Math.max(Math.min(wanted, Math.max(MAX_RETRY_AFTER_MS, maxMs)), own / 2), signal);
}

/** @param {AbortSignal | undefined} signal */
export function checkSignal(signal) {
  if (signal !== undefined && typeof signal?.addEventListener !== "function") throw misuse(`\`signal\` must be an AbortSignal, got ${kindOf(signal)}`);
}

/**
 * Lets a signal abort a run until the run is over; the listener is removed then, as
 * the signal may outlive it.
 * @param {AbortSignal | undefined} signal @param {Promise<unknown>} result
 * @param {(reason: unknown) => void} abort
 */
export function abortWith(signal, result, abort) {
  if (!signal) return;
  const listener = () => abort(signal.reason);
  if (signal.aborted) return queueMicrotask(listener);
  signal.addEventListener("abort", listener, { once: true });
  result.then(() => signal.removeEventListener("abort", listener));
}
