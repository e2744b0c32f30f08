// @ts-check
// Requests that stay where they were sent. A server that redirects to another origin would otherwise be handed the
// headers and the prompt that were meant for this one.

import { AgentError } from "../shared.js";

const REDIRECTS = [301, 302, 303, 307, 308];
/** These send the same request again; the others would make a GET of a command, without its body. */
const SAME_REQUEST = [307, 308];
const MAX_HOPS = 5;

/**
 * Sends a request and follows redirects within its origin. Where the host hides what a redirect says, as in pages, or is a
 * Worker, each of them is an error.
 * @param {typeof fetch} send @param {string} url @param {RequestInit} init @returns {Promise<Response>}
 */
export async function fetchHere(send, url, init) {
  for (let hops = 0, at = url; ; hops++) {
    const response = await send(at, { ...init, redirect: "manual" });
    if (typeof response?.ok !== "boolean") return response;
    const { status } = response;
    const isHidden = response.type === "opaqueredirect";
    const isElsewhere = response.redirected && originOf(response.url, at) !== originOf(at);
    if (!isHidden && !isElsewhere && !REDIRECTS.includes(status)) return response;
    response.body?.cancel().catch(() => {});
    const location = response.headers.get("location");
    const target = isElsewhere ? response.url : location === null || isHidden ? undefined : targetOf(location, at);
    const isSame = !isElsewhere && target !== undefined && originOf(target) === originOf(at);
    const isRepeated = init.method === undefined || init.method === "GET" || SAME_REQUEST.includes(status);
    if (!isSame || !isRepeated || isWorker() || hops === MAX_HOPS) throw refusal(at, target, status);
    at = target;
  }
}

const isWorker = () => globalThis.navigator?.userAgent === "Cloudflare-Workers";

/** Says where the redirect leads, without the path: that may hold secrets. @param {string} url @param {string | undefined} target @param {number} status */
function refusal(url, target, status) {
  const to = target === undefined ? "" : ` to ${originOf(target) ?? "no address"}`;
  const message = `${originOf(url) ?? "the server"} answered with a redirect${status ? ` (${status})` : ""}${to}, which is not followed: what is sent to one address is sent nowhere else. If it is right, make it the \`url\``;
  return new AgentError({ code: "invalid_request", message, retryable: false });
}

/** @param {string} location @param {string} base @returns {string | undefined} */
function targetOf(location, base) {
  try {
    return new URL(location, base).href;
  } catch {
    return undefined;
  }
}

/** @param {string} url @param {string} [base] */
function originOf(url, base) {
  try {
    return new URL(url, base).origin;
  } catch {
    return undefined;
  }
}
