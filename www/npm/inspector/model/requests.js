// @ts-check
// The requests as they were sent. Each repeats the conversation: what it shares with the one before is kept once.

/** @import { AgentEvent, LlmMessage } from "../../index.js" */
/** @typedef {Extract<AgentEvent, { type: "before_llm_call" }>} BeforeCall */
/** A request without its messages. @typedef {{ model: string, systemPrompt: string, tools?: { name: string }[], options?: object }} About */
/** A request whose first `shared` messages are those of the one before. @typedef {{ n: number, about: About, shared: number, rest: LlmMessage[] }} Kept */
/** @typedef {About & { n?: number, messages: LlmMessage[] }} Request */

/** Every so many requests, one is kept whole. */
const WHOLE = 64;

export class Requests {
  constructor() {
    /** @type {Kept[]} */
    this.kept = [];
    /** The messages of the last one. @type {LlmMessage[]} */
    this.last = [];
  }

  /** Takes a request out of its event. @param {number} n @param {BeforeCall} event @returns {BeforeCall} the event without what it repeats */
  take(n, event) {
    const { messages, systemPrompt, model } = event;
    this.push(n, { messages, systemPrompt, model });
    return { ...event, systemPrompt: "", messages: /** @type {LlmMessage[]} */ (new Array(messages.length)) };
  }

  /** @param {number} n @param {Request} request */
  push(n, { messages, ...about }) {
    let shared = 0;
    while (shared < this.last.length && shared < messages.length && isSame(this.last[shared], messages[shared])) shared++;
    // The messages of the one before stand for those that are the same.
    const list = [...this.last.slice(0, shared), ...messages.slice(shared)];
    const isWhole = this.kept.length % WHOLE === 0;
    this.kept.push(isWhole ? { n, about, shared: 0, rest: list } : { n, about, shared, rest: list.slice(shared) });
    this.last = list;
  }

  /** The last request that was sent up to an event. @param {number} n @returns {Request | undefined} */
  at(n) {
    let index = this.kept.findLastIndex((kept) => kept.n <= n);
    const found = this.kept[index];
    if (!found) return undefined;
    /** @type {LlmMessage[][]} */
    const parts = [];
    for (let length = Infinity; ; ) {
      const { shared, rest } = /** @type {Kept} */ (this.kept[index]);
      parts.push(rest.slice(0, Math.max(0, length - shared)));
      length = Math.min(length, shared);
      if (shared === 0 || index === 0) break;
      index--;
    }
    return { ...found.about, n: found.n, messages: parts.reverse().flat() };
  }
}

/** Whether two values are equal as JSON. @param {any} a @param {any} b @returns {boolean} */
export function isSame(a, b) {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || !a || !b || Array.isArray(a) !== Array.isArray(b)) return false;
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => isSame(a[key], b[key]));
}
