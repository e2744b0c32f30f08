// @ts-check
// What a failed call of a provider means, whoever made the call: the engine's own rules for a status, headers and a body,
// applied to responses and to what other libraries throw. Loaded with the first failure.

import { infoOf, textOf } from "../core.js";

/** @import { ErrorInfo } from "../index.js" */
/** @import { Engine } from "../boundary/engine.js" */
/** @typedef {{ status: number, headers: Record<string, string>, body: string | Uint8Array }} Failure */

/** How much of a body is looked at. */
const LONGEST_BODY = 1 << 18;
const TRANSIENT = ["throttled", "overloaded", "network", "server"];
/** How runtimes word a dead network, and the codes of Node's errors. */
const NETWORK = /^(fetch failed|failed to fetch|load failed|networkerror|network error|terminated|socket hang up|network connection lost)/i;
const NETWORK_CODES = /^(ECONN|ENOTFOUND|ETIMEDOUT|EAI_|EPIPE|ENETUNREACH|EHOSTUNREACH|UND_ERR_)/;
/** How deep an error is looked for inside another. */
const DEPTH = 4;

/** @param {Engine} engine @param {Failure} failure @param {number} now @returns {ErrorInfo} */
export function classify(engine, { status, headers, body }, now) {
  const bytes = (typeof body === "string" ? new TextEncoder().encode(body.slice(0, LONGEST_BODY)) : body).subarray(0, LONGEST_BODY);
  return JSON.parse(engine.call((glue) => glue.error_of(status, JSON.stringify(headers), bytes, now)));
}

/** Headers by their names in lower case. @param {any} given @returns {Record<string, string>} */
export function headersOf(given) {
  const entries = typeof given?.entries === "function" ? [...given.entries()] : Object.entries(given ?? {});
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined && value !== null).map(([name, value]) => [String(name).toLowerCase(), String(value)]));
}

/** What a host's stream threw or gave as its error. @param {Engine} engine @param {unknown} thrown @param {number} now @returns {Partial<ErrorInfo>} */
export function thrownInfo(engine, thrown, now) {
  const info = infoOf(thrown);
  try {
    const found = failureIn(thrown, 0);
    if (!found) return isNetwork(thrown, 0) ? { ...info, code: "network", retryable: info.retryable ?? true } : withRetryable(info, /** @type {any} */ (thrown)?.isRetryable);
    const { status, isRetryable, retryAfterMs } = found;
    const told = withRetryable(classify(engine, { ...found, status }, now), isRetryable);
    return { ...told, ...(retryAfterMs !== undefined && { retryAfterMs }) };
  } catch {
    return info;
  }
}

/** Whoever threw it knows whether a retry may help, but not better than the words of the provider. @param {Partial<ErrorInfo>} info @param {unknown} isRetryable @returns {Partial<ErrorInfo>} */
function withRetryable(info, isRetryable) {
  if (isRetryable === false) return { ...info, retryable: false };
  if (isRetryable !== true || info.retryable === false && info.provider?.status !== undefined) return info;
  return { ...info, code: TRANSIENT.includes(String(info.code)) ? info.code : "server", retryable: true };
}

/**
 * The failed call that an error tells of: one of the AI SDK or of a provider's own library, or one that wraps it.
 * @param {any} error @param {number} depth @returns {(Failure & { isRetryable: unknown, retryAfterMs: number | undefined }) | undefined}
 */
function failureIn(error, depth) {
  if (typeof error !== "object" || error === null || depth > DEPTH) return;
  const status = [error.status, error.statusCode, error.response?.status].find((each) => Number.isInteger(each) && each >= 300 && each < 600);
  if (status === undefined) return failureIn(error.lastError, depth + 1) ?? failureIn(error.cause, depth + 1) ?? failureIn(error.data?.error, depth + 1);
  const { retryAfterMs, isRetryable = error.retryable } = error;
  return {
    status, body: bodyOf(error), isRetryable,
    headers: headersOf(error.responseHeaders ?? error.headers ?? error.response?.headers),
    retryAfterMs: typeof retryAfterMs === "number" ? retryAfterMs : undefined,
  };
}

/** @param {any} error @returns {string} */
function bodyOf(error) {
  const { responseBody, body, error: inner, data, type, code } = error;
  for (const text of [responseBody, body]) if (typeof text === "string" && text !== "") return text;
  for (const value of [inner, data]) if (typeof value === "object" && value !== null) return JSON.stringify(value);
  const message = textOf(error);
  return JSON.stringify({ error: { message, ...(typeof type === "string" && { type }), ...(["string", "number"].includes(typeof code) && { code }) } });
}

/** @param {any} error @param {number} depth @returns {boolean} */
function isNetwork(error, depth) {
  if (typeof error !== "object" || error === null || depth > DEPTH) return false;
  return (error instanceof Error && NETWORK.test(error.message)) || NETWORK_CODES.test(String(error.code)) || isNetwork(error.lastError ?? error.cause, depth + 1);
}
