// @ts-check
// What the server answers when it refuses, or fails.

import { NotAllowed } from "../messages/client.js";
import { AgentError } from "../shared.js";

/** @import { ErrorKind } from "../index.js" */

/** A request that is refused. */
export class RequestError extends Error {
  /** @param {number} status @param {ErrorKind} code @param {string} message @param {Record<string, string>} [headers] */
  constructor(status, code, message, headers) {
    super(message);
    this.status = status;
    this.code = code;
    this.headers = headers;
  }
}

/** @param {unknown} value @param {number} [status] @param {Record<string, string>} [headers] */
export const json = (value, status = 200, headers) => new Response(JSON.stringify(value), { status, headers: { "content-type": "application/json", "cache-control": "no-store", "x-content-type-options": "nosniff", ...headers } });

/** @param {unknown} error */
export function errorResponse(error) {
  if (error instanceof RequestError) return json({ error: { code: error.code, message: error.message } }, error.status, error.headers);
  if (error instanceof NotAllowed) return json({ error: { code: "auth", message: error.message } }, 403);
  if (AgentError.isInstance(error) && error.code === "misuse") return json({ error: { code: "misuse", message: error.message } }, 400);
  // Another process may have the agent now: whoever asks again finds it.
  if (/** @type {any} */ (error)?.code === "lost_lease") return json({ error: { code: "overloaded", message: "the agent goes on in another process" } }, 503, { "retry-after": "1" });
  console.error("turnwheel:", error);
  return json({ error: { code: "internal", message: "the server failed; its log says why" } }, 500);
}
