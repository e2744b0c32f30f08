// @ts-check
// Requests that stay where they were sent. A server that redirects to another origin would otherwise be handed the
// headers and the prompt that were meant for this one.

import { addressOf, followedTo, isRedirect, MAX_REDIRECTS, nextAddress } from "../host/redirect.js";
import { AgentError } from "../shared.js";

/**
 * Sends a request and follows redirects within its origin. Where the host hides what a redirect says, as in pages, or is a
 * Worker, each of them is an error.
 * @param {typeof fetch} send @param {string} url @param {RequestInit} init @returns {Promise<Response>}
 */
export async function fetchHere(send, url, init) {
  for (let redirects = 0, at = url; ; redirects++) {
    const response = await send(at, { ...init, redirect: "manual" });
    if (typeof response?.ok !== "boolean") return response;
    const elsewhere = followedTo(response, at);
    if (!elsewhere && !isRedirect(response)) return response;
    response.body?.cancel().catch(() => {});
    const isGet = init.method === undefined || init.method === "GET";
    const next = elsewhere || redirects === MAX_REDIRECTS ? undefined : nextAddress(response, at, isGet);
    if (next === undefined) throw refusal(at, elsewhere ?? whereTo(response, at), response.status);
    at = next;
  }
}

/** The origin that a redirect names, if the host shows it. @param {Response} response @param {string} url */
function whereTo({ type, headers }, url) {
  const location = headers.get("location");
  return type === "opaqueredirect" || location === null ? undefined : (addressOf(location, url)?.origin ?? "no address");
}

/** Says where the redirect leads, without the path: that may hold secrets. @param {string} url @param {string | undefined} target @param {number} status */
function refusal(url, target, status) {
  const to = target === undefined ? "" : ` to ${target}`;
  const from = addressOf(url, url)?.origin ?? "the server";
  const message = `${from} answered with a redirect${status ? ` (${status})` : ""}${to}, which is not followed: what is sent to one address is sent nowhere else. If it is right, make it the \`url\``;
  return new AgentError({ code: "invalid_request", message, retryable: false });
}
