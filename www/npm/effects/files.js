// @ts-check
// Fetches an image or a file for a request: over https alone, or from this machine if that is what its address says; with
// a limit, without cookies or a referrer, and with a look at every redirect.

import { AgentError } from "../shared.js";

/**
 * What was fetched. `text` is there if it is a text.
 * @typedef {{ type: string, bytes: Uint8Array, text: string | undefined, base64(): string }} Fetched
 */

/** How many redirects are followed. */
const MAX_REDIRECTS = 5;

/** Addresses of this machine. @param {URL} address */
export const isLocal = ({ hostname }) => /^(localhost|.*\.localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);

/** Addresses of networks that nobody outside sees. */
const PRIVATE = /^(10\.|192\.168\.|169\.254\.|172\.(1[6-9]|2\d|3[01])\.|0\.|\[(::|f[cde]))/;

/**
 * @param {URL} address
 * @param {{ room: number, limit: number, isImage: boolean, signal: AbortSignal }} options `room` is what is left of the limit
 * @returns {Promise<Fetched>}
 */
export async function fetchFile(address, { room, limit, isImage, signal }) {
  const shown = `${address.origin}${address.pathname}`;
  check(address, address, shown);
  const response = await follow(address, shown, signal);
  if (!response.ok) throw refused(`${shown} cannot be fetched for the model: it answered ${response.status}`, response.status >= 500);
  const bytes = await read(response, room, shown, limit);
  const told = (response.headers.get("content-type") ?? "").split(";")[0]?.trim().toLowerCase() ?? "";
  const type = /^(|application\/octet-stream|binary\/octet-stream)$/.test(told) ? typeOf(bytes) : told;
  if (isImage && !type.startsWith("image/")) throw refused(`${shown} is no image, but ${type}`);
  const isText = type.startsWith("text/") || type === "application/json";
  return { type, bytes, text: isText ? new TextDecoder().decode(bytes) : undefined, base64: () => base64Of(bytes) };
}

/** @param {URL} to @param {URL} first where the address began @param {string} shown */
function check(to, first, shown) {
  const via = to === first ? "" : ` redirects to ${to.origin}, which`;
  const isHere = isLocal(to);
  if (to.protocol !== "https:" && !(to.protocol === "http:" && isHere)) throw refused(`${shown}${via} is not encrypted; an image or a file must be at an address that begins with https://`);
  if (to !== first && ((isHere && !isLocal(first)) || (PRIVATE.test(to.hostname) && to.hostname !== first.hostname))) throw refused(`${shown}${via} is an address of a private network; it is not followed there`);
}

/** @param {URL} first @param {string} shown @param {AbortSignal} signal @returns {Promise<Response>} */
async function follow(first, shown, signal) {
  let to = first;
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
    const response = await ask(to, "manual", shown, signal);
    if (response.type === "opaqueredirect") {
      // A page is not shown where it leads, only where it has led.
      const followed = await ask(to, "follow", shown, signal);
      check(new URL(followed.url || to), first, shown);
      return followed;
    }
    const location = response.status >= 300 && response.status < 400 ? response.headers.get("location") : null;
    if (!location) return response;
    response.body?.cancel().catch(() => {});
    to = new URL(location, to);
    check(to, first, shown);
  }
  throw refused(`${shown} redirects more than ${MAX_REDIRECTS} times`);
}

/** @param {URL} address @param {RequestRedirect} redirect @param {string} shown @param {AbortSignal} signal */
async function ask(address, redirect, shown, signal) {
  try {
    return await fetch(address, { redirect, signal, credentials: "omit", referrerPolicy: "no-referrer" });
  } catch (cause) {
    if (signal.aborted) throw cause;
    throw new AgentError({ code: "network", message: `${shown} cannot be fetched for the model; in a page, its server must allow this by CORS`, retryable: true, phase: "model" }, cause);
  }
}

/** @param {Response} response @param {number} room @param {string} shown @param {number} limit */
async function read({ body, headers }, room, shown, limit) {
  const tooLong = () => refused(`${shown} is too long: the images and files of a request may have ${limit} bytes together; see \`limits.files\` of the model`);
  if (Number(headers.get("content-length")) > room) {
    body?.cancel().catch(() => {});
    throw tooLong();
  }
  /** @type {Uint8Array[]} */
  const pieces = [];
  let length = 0;
  const reader = body?.getReader();
  for (;;) {
    const { done, value } = (await reader?.read()) ?? { done: true, value: undefined };
    if (done) break;
    length += value.length;
    if (length > room) {
      reader?.cancel().catch(() => {});
      throw tooLong();
    }
    pieces.push(value);
  }
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}

/** What a file is by its first bytes, if its server does not say. @type {[string, RegExp][]} */
const SIGNS = [
  ["image/png", /^\x89PNG/], ["image/jpeg", /^\xff\xd8\xff/], ["image/gif", /^GIF8/], ["image/webp", /^RIFF....WEBP/s], ["application/pdf", /^%PDF/],
];

/** @param {Uint8Array} bytes */
function typeOf(bytes) {
  const start = String.fromCharCode(...bytes.subarray(0, 16));
  return SIGNS.find(([, sign]) => sign.test(start))?.[0] ?? "application/octet-stream";
}

/** @param {Uint8Array} bytes */
function base64Of(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text);
}

/** @param {string} message @param {boolean} [retryable] */
function refused(message, retryable = false) {
  return new AgentError({ code: retryable ? "server" : "invalid_request", message, retryable, phase: "model" });
}
