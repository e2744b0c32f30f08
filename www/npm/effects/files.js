// @ts-check
// Fetches an image or a file for a request: over https alone, or from this machine if that is what its address says; with
// a limit, without cookies or a referrer, and with a look at every redirect.

import { isInward, isLocal, isPrivate } from "../host/address.js";

/** @import { AgentError } from "../shared.js" */
/**
 * What was fetched. `text` is there if it is a text.
 * @typedef {{ type: string, bytes: Uint8Array, text: string | undefined, base64(): string }} Fetched
 */

/** How many redirects are followed. */
const MAX_REDIRECTS = 5;

/**
 * @param {URL} address
 * @param {{ room: number, limit: number, isImage: boolean, signal: AbortSignal, ErrorClass: typeof AgentError }} options `room` is what is left of the limit
 * @returns {Promise<Fetched>}
 */
export function fetchFile(address, options) {
  return new FileRequest(address, options).fetch();
}

class FileRequest {
  /** @param {URL} address @param {Parameters<typeof fetchFile>[1]} options */
  constructor(address, { room, limit, isImage, signal, ErrorClass }) {
    this.address = address;
    this.shown = `${address.origin}${address.pathname}`;
    this.room = room;
    this.limit = limit;
    this.isImage = isImage;
    this.signal = signal;
    this.ErrorClass = ErrorClass;
  }

  /** @returns {Promise<Fetched>} */
  async fetch() {
    const { address, shown } = this;
    this.#check(address);
    const response = await this.#follow();
    if (!response.ok) throw this.#refused(`${shown} cannot be fetched for the model: it answered ${response.status}`, response.status >= 500);
    const bytes = await this.#read(response);
    const told = (response.headers.get("content-type") ?? "").split(";")[0]?.trim().toLowerCase() ?? "";
    const type = /^(|application\/octet-stream|binary\/octet-stream)$/.test(told) ? typeOf(bytes) : told;
    if (this.isImage && !type.startsWith("image/")) throw this.#refused(`${shown} is no image, but ${type}`);
    const isText = type.startsWith("text/") || type === "application/json";
    return { type, bytes, text: isText ? new TextDecoder().decode(bytes) : undefined, base64: () => base64Of(bytes) };
  }

  /** Judges an address: that of the file, or one that it redirects to. @param {URL} to */
  #check(to) {
    const { address, shown } = this;
    const via = to === address ? "" : ` redirects to ${to.origin}, which`;
    const isHere = isLocal(to);
    if (to.protocol !== "https:" && !(to.protocol === "http:" && isHere)) throw this.#refused(`${shown}${via} is not encrypted; an image or a file must be at an address that begins with https://`);
    const leadsInward = (isHere && !isLocal(address)) || (isPrivate(to) && to.hostname !== address.hostname) || (isInward(to) && !isInward(address));
    if (to !== address && leadsInward) throw this.#refused(`${shown}${via} is an address of a private network; it is not followed there`);
  }

  /** @returns {Promise<Response>} */
  async #follow() {
    let to = this.address;
    for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
      const response = await this.#ask(to, "manual");
      if (response.type === "opaqueredirect") {
        // A page is not shown where it leads, only where it has led.
        const followed = await this.#ask(to, "follow");
        this.#check(new URL(followed.url || to));
        return followed;
      }
      const location = response.status >= 300 && response.status < 400 ? response.headers.get("location") : null;
      if (!location) return response;
      response.body?.cancel().catch(() => {});
      to = new URL(location, to);
      this.#check(to);
    }
    throw this.#refused(`${this.shown} redirects more than ${MAX_REDIRECTS} times`);
  }

  /** @param {URL} address @param {RequestRedirect} redirect */
  async #ask(address, redirect) {
    const { signal, shown } = this;
    try {
      return await fetch(address, { redirect, signal, credentials: "omit", referrerPolicy: "no-referrer" });
    } catch (cause) {
      if (signal.aborted) throw cause;
      throw new this.ErrorClass({ code: "network", message: `${shown} cannot be fetched for the model; in a page, its server must allow this by CORS`, retryable: true, phase: "model" }, cause);
    }
  }

  /** @param {Response} response */
  async #read({ body, headers }) {
    if (Number(headers.get("content-length")) > this.room) {
      body?.cancel().catch(() => {});
      throw this.#tooLong();
    }
    /** @type {Uint8Array[]} */
    const pieces = [];
    let length = 0;
    const reader = body?.getReader();
    for (;;) {
      const { done, value } = (await reader?.read()) ?? { done: true, value: undefined };
      if (done) break;
      length += value.length;
      if (length > this.room) {
        reader?.cancel().catch(() => {});
        throw this.#tooLong();
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

  #tooLong() {
    return this.#refused(`${this.shown} is too long: the images and files of a request may have ${this.limit} bytes together; see \`limits.files\` of the model`);
  }

  /** @param {string} message @param {boolean} [retryable] */
  #refused(message, retryable = false) {
    return new this.ErrorClass({ code: retryable ? "server" : "invalid_request", message, retryable, phase: "model" });
  }
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
