// @ts-check
// Which names this server goes by. A page can let its own name lead to this machine (DNS rebinding); its requests are
// then of the same origin for the browser, and only the name in them tells that they are not meant for this server.

import { kindOf, misuse } from "../shared.js";
import { RequestError } from "./errors.js";

/** @import { AgentHandlerOptions } from "../server.js" */

/** A host as a request names it: a name, an IPv4 or an IPv6 address, each with or without a port. */
const HOST = /^(?:[a-z0-9_.-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i;

/**
 * Returns the check of a request's host, or throws if the option is wrong. Without `authorize`, nothing but the name
 * tells who is meant, so only this machine's own names are answered to.
 * @param {AgentHandlerOptions} options @returns {(request: Request) => void}
 */
export function hostCheck({ allowedHosts, authorize }) {
  checkOption(allowedHosts);
  if (allowedHosts === true || (allowedHosts === undefined && authorize)) return () => {};
  const allowed = allowedHosts?.map((host) => normal(host));
  const isAllowed = (/** @type {string} */ host) => (allowed ? allowed.some((one) => one === host || one === nameOf(host)) : isLoopback(nameOf(host)));
  return (request) => {
    const given = hostOf(request);
    const host = HOST.test(given) ? normal(given) : "";
    if (host !== "" && isAllowed(host)) return;
    throw new RequestError(403, "auth", `requests to the host ${JSON.stringify(given.slice(0, 100))} are not answered; if this server goes by that name, put it into the option \`allowedHosts\``);
  };
}

/** @param {unknown} allowedHosts */
function checkOption(allowedHosts) {
  if (allowedHosts === undefined || allowedHosts === true) return;
  if (!Array.isArray(allowedHosts)) throw misuse(`\`allowedHosts\` must be true or a list of names, got ${kindOf(allowedHosts)}`);
  for (const host of allowedHosts) {
    if (typeof host !== "string" || !HOST.test(host) || normal(host) === "") throw misuse(`\`allowedHosts\` holds names such as "app.example" or "app.example:8443", got ${typeof host === "string" ? JSON.stringify(host) : kindOf(host)}`);
  }
}

/**
 * The host that a request was sent to. The address of a Request may have been made up by the code that received it; the
 * header comes from the client, and no page can set it.
 * @param {Request} request
 */
export const hostOf = (request) => request.headers.get("host") ?? new URL(request.url).host;

/** A host as it is compared: in one spelling, without the dot that may end a name. @param {string} host */
function normal(host) {
  try {
    return new URL(`http://${host}`).host.replace(/\.(?=:|$)/, "");
  } catch {
    return "";
  }
}

/** A host without its port. @param {string} host */
const nameOf = (host) => host.replace(/:\d+$/, "");

/** @param {string} name */
const isLoopback = (name) => name === "localhost" || name.endsWith(".localhost") || name === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(name) || /^\[::ffff:7f[0-9a-f]{2}:/.test(name);
