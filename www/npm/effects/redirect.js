// @ts-check
// What becomes of a request that a server redirects. Loaded with the first redirect.

import { AgentError } from "../shared.js";

/** @import { ModelRequest } from "./request.js" */

/** How often a request is sent on within its origin. */
const MAX_REDIRECTS = 5;

/**
 * Says whether to send the request again, to where the server points. If not, the engine makes the error from the
 * status and the headers, or it is made here.
 * @param {ModelRequest} request @param {Response} response
 */
export function follows(request, response) {
  const { status, type, redirected } = response;
  // A `fetch` of the host may follow redirects although it was told not to.
  if (redirected) {
    const to = addressOf(response.url, request.url);
    if (to && to.origin !== new URL(request.url).origin) throw refused(`\`fetch\` has followed a redirect to ${to.origin}, and sent the prompt and the key there; it must do as \`redirect: "manual"\` says, or \`baseUrl\` must be that address`);
  }
  if (type === "opaqueredirect") throw refused("the server redirects, and a page is not told where to; the request is not sent there, because it holds the prompt and the key: set `baseUrl` to the address behind the redirect");
  // Other redirects would turn POST into GET.
  if ((status !== 307 && status !== 308) || !isServer() || ++request.redirects > MAX_REDIRECTS) return false;
  const to = addressOf(response.headers.get("location"), request.url);
  if (to?.origin !== new URL(request.url).origin || to.username || to.password) return false;
  request.url = to.href;
  return true;
}

/** Node, Deno and Bun. Pages and Workers refuse every redirect: a page cannot see where it points. */
function isServer() {
  const { process, location, navigator } = /** @type {{ process?: { versions?: { node?: string } }, location?: unknown, navigator?: { userAgent?: string } }} */ (globalThis);
  return !!process?.versions?.node && !location && navigator?.userAgent !== "Cloudflare-Workers";
}

/** @param {string | null} text @param {string} base */
function addressOf(text, base) {
  try {
    return text ? new URL(text, base) : undefined;
  } catch {
    // Then nobody can follow it.
  }
}

/** @param {string} message */
function refused(message) {
  return new AgentError({ code: "invalid_request", message, retryable: false, phase: "model" });
}
