// @ts-check
// A request to a model. It holds the key and the prompt, so it never goes to an origin that the user did not name:
// redirect.js decides what becomes of a redirect.

import { keepShape } from "../v8.js";
import { holdSlot, SIGNAL, Slot } from "./slot.js";

export class ModelRequest {
  /** @param {typeof globalThis.fetch} fetch @param {string} url @param {Record<string, string>} headers @param {Uint8Array<ArrayBuffer>} body */
  constructor(fetch, url, headers, body) {
    this.fetch = fetch;
    this.url = url;
    this.headers = headers;
    this.body = body;
    this.redirects = 0;
  }

  /** @param {Slot} state @returns {Promise<Response>} */
  send(state) {
    const { fetch } = this;
    return Promise.resolve(fetch(this.url, new HttpInit({ ...this.headers }, this.body, state)));
  }
}

/** The options passed to `fetch`; the signal is made when it is first read. */
class HttpInit {
  /** @param {Record<string, string>} headers @param {Uint8Array<ArrayBuffer>} body @param {Slot} state */
  constructor(headers, body, state) {
    holdSlot(this, state);
    this.method = "POST";
    this.headers = headers;
    this.body = body;
    this.redirect = /** @type {const} */ ("manual");
    Object.defineProperty(this, "signal", SIGNAL);
  }
}
keepShape(new HttpInit({}, new Uint8Array(), new Slot()));
keepShape(new ModelRequest(fetch, "", {}, new Uint8Array()));
