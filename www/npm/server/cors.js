// @ts-check
// Which pages may ask.

import { RequestError } from "./errors.js";
import { hostOf } from "./hosts.js";

/** @import { AgentHandlerOptions } from "../server.js" */

/**
 * Returns the headers that let a page of another origin read the answer, or throws if it may not ask.
 * @param {Request} request @param {AgentHandlerOptions["cors"]} cors @returns {Record<string, string>}
 */
export function corsHeaders(request, cors) {
  const origin = request.headers.get("origin");
  if (isOwn(request, origin)) return {};
  if (origin === null || !isAllowed(origin, cors)) throw new RequestError(403, "auth", `pages of ${origin === null ? "other sites" : shown(origin)} may not ask; see the option \`cors\``);
  return { "access-control-allow-origin": origin, vary: "origin", "access-control-expose-headers": "retry-after" };
}

/**
 * Whether no other site's page sent the request. Browsers of today say it themselves; the others send at least the
 * origin, with everything that changes something. What is no browser sends neither.
 * @param {Request} request @param {string | null} origin
 */
function isOwn(request, origin) {
  const site = request.headers.get("sec-fetch-site");
  // "none": a person typed the address, and no page had a part in it.
  if (site !== null) return site === "same-origin" || (site === "none" && origin === null);
  return origin === null || hostOfUrl(origin) === hostOf(request).toLowerCase();
}

/** An origin for a message; a client may have sent anything as one. @param {string} origin */
const shown = (origin) => origin.slice(0, 200);

/** @param {string} origin @param {unknown} cors */
function isAllowed(origin, cors) {
  return cors === "*" || cors === true || (Array.isArray(cors) && cors.includes(origin)) || (typeof cors === "function" && cors(origin) === true);
}

/** @param {Request} request */
export function preflight(request) {
  return new Response(null, { status: 204, headers: {
    "access-control-allow-methods": "GET, POST", "access-control-max-age": "600",
    "access-control-allow-headers": request.headers.get("access-control-request-headers") ?? "content-type",
  } });
}

/** @param {Response} response @param {Record<string, string>} headers */
export function withHeaders(response, headers) {
  if (Object.keys(headers).length === 0) return response;
  // A response made elsewhere may have immutable headers.
  const copy = new Response(response.body, response);
  for (const [name, value] of Object.entries(headers)) copy.headers.set(name, value);
  return copy;
}

/** @param {string} url */
function hostOfUrl(url) {
  try {
    return new URL(url).host;
  } catch {
    return undefined;
  }
}
