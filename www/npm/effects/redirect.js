// @ts-check
// What becomes of a request to a model that a server redirects. Loaded with the first redirect.

import { followedTo, MAX_REDIRECTS, nextAddress } from "../host/redirect.js";
import { AgentError } from "../core.js";

/** @import { ModelRequest } from "./request.js" */

/**
 * Says whether to send the request again, to where the server points. If not, the engine makes the error from the
 * status and the headers, or it is made here.
 * @param {ModelRequest} request @param {Response} response
 */
export function follows(request, response) {
  const elsewhere = followedTo(response, request.url);
  if (elsewhere) throw refused(`\`fetch\` has followed a redirect to ${elsewhere}, and sent the prompt and the key there; it must do as \`redirect: "manual"\` says, or \`baseUrl\` must be that address`);
  if (response.type === "opaqueredirect") throw refused("the server redirects, and a page is not told where to; the request is not sent there, because it holds the prompt and the key: set `baseUrl` to the address behind the redirect");
  const next = ++request.redirects > MAX_REDIRECTS ? undefined : nextAddress(response, request.url, false);
  if (next === undefined) return false;
  request.url = next;
  return true;
}

/** @param {string} message */
function refused(message) {
  return new AgentError({ code: "invalid_request", message, retryable: false, phase: "model" });
}
