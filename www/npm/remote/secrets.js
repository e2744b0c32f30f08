// @ts-check
// Keeps what is sent in headers out of error messages: a server may repeat it, and so may a `fetch` that throws.

import { AgentError } from "../shared.js";

/** Shorter values stand in every text. */
const MIN_LENGTH = 8;
/** Those that a key was in, when it changes from request to request. */
const MAX_KNOWN = 100;
const HIDDEN = "[hidden]";

export class Secrets {
  constructor() {
    /** @type {Set<string>} */
    this.known = new Set();
  }

  /** Takes note of what headers hold, and of the key in "Bearer KEY". @param {Headers} headers */
  know(headers) {
    headers.forEach((value) => {
      for (const secret of [value, ...value.split(/[\s;,=]+/)]) {
        if (secret.length < MIN_LENGTH) continue;
        this.known.delete(secret);
        this.known.add(secret);
        if (this.known.size > MAX_KNOWN) this.known.delete(/** @type {string} */ (this.known.values().next().value));
      }
    });
  }

  /** Returns the error without what the headers hold. @param {AgentError} error @returns {AgentError} */
  hideIn(error) {
    const { info } = error;
    const message = this.#hide(info.message);
    // A cause shows itself when an error is printed, with whatever it holds.
    const isSafe = error.cause === undefined || this.#isSafe(error.cause, 0);
    return message === info.message && isSafe ? error : new AgentError({ ...info, message }, isSafe ? error.cause : undefined);
  }

  /**
   * Whether nothing that an error says, or its causes say, is hidden. Headers, addresses, requests and instances of classes have
   * what they show behind accessors: they are not looked into, and count as unsafe. @param {unknown} thrown @param {number} depth @returns {boolean}
   */
  #isSafe(thrown, depth) {
    if (this.known.size === 0) return true;
    if ((typeof thrown !== "object" && typeof thrown !== "function") || thrown === null) return this.#hide(String(thrown)) === String(thrown);
    try {
      if (depth > 4 || !(Array.isArray(thrown) || thrown instanceof Error || isPlain(thrown))) return false;
      return Reflect.ownKeys(thrown).every((key) => this.#isSafe(key, depth + 1) && this.#isSafe(Reflect.get(thrown, key), depth + 1));
    } catch {
      return false;
    }
  }

  /** @param {string} text */
  #hide(text) {
    let hidden = text;
    // The longest first: it may begin with a shorter one.
    const secrets = [...this.known].sort((a, b) => b.length - a.length);
    for (const secret of secrets) for (const form of [secret, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1), ...base64(secret)]) hidden = replaced(hidden, form);
    // Of what is escaped letter by letter nobody can tell where it begins.
    const said = bare(hidden);
    return said !== hidden && secrets.some((secret) => said.toLowerCase().includes(secret.toLowerCase())) ? HIDDEN : hidden;
  }
}

/** Replaces every occurrence, in capital or small letters. @param {string} text @param {string} secret */
function replaced(text, secret) {
  const pattern = secret.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return text.replace(new RegExp(pattern, "gi"), HIDDEN);
}

/** The letters of a text in base64, wherever it stands in what was encoded; but for those that hold bits of something else. @param {string} text @returns {string[]} */
function base64(text) {
  try {
    return ["", " ", "  "].map((before, i) => btoa(before + text).slice([0, 2, 3][i]).replace(/.?=+$/, ""));
  } catch {
    return [];
  }
}

/** A text without escapes of JSON, of addresses and of HTML. @param {string} text */
function bare(text) {
  return text.replace(/%([0-9a-f]{2})|\\+u([0-9a-f]{4})|&(?:amp;)?#x([0-9a-f]{1,4});|&(?:amp;)?#(\d{1,5});/gi, (_, ...codes) => {
    const [percent, json, hex, decimal] = codes;
    return String.fromCharCode(decimal ? Number(decimal) : parseInt(percent ?? json ?? hex, 16));
  });
}

/** @param {object} value */
const isPlain = (value) => [null, Object.prototype].includes(Object.getPrototypeOf(value));
