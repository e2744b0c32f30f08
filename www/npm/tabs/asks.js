// @ts-check
// The `fetch` of a tab: its requests go to the tab that owns the agent, and wait as long as there is none. A body comes piece
// by piece, as it is asked for: who asks no more is sent no more.

import { uuid } from "../shared.js";

/** @import { Answerer } from "./answers.js" */
/** @import { Head, Message } from "./messages.js" */
/**
 * A request and what came of it. `answered` is the epoch of the owner that has answered.
 * @typedef {{ path: string, init: RequestInit, answered: number, resolve(response: Response): void, reject(error: unknown): void, body?: ReadableStreamDefaultController<Uint8Array> }} Call
 */

export class Asks {
  /** @param {string} tab @param {(message: Message) => void} post @param {() => Answerer | undefined} own the owner, if it is this tab @param {number} messageBytes */
  constructor(tab, post, own, messageBytes) {
    this.tab = tab;
    this.post = post;
    this.own = own;
    this.messageBytes = messageBytes;
    /** @type {Map<string, Call>} */
    this.calls = new Map();
    /** That of the owner; 0 as long as none is known. */
    this.epoch = 0;
    /** When the owner was last heard. */
    this.heardAt = 0;
  }

  /** @param {string} address @param {RequestInit} init @returns {Promise<Response>} */
  fetch(address, init) {
    const { pathname, search } = new URL(address);
    const path = `${pathname.slice(pathname.lastIndexOf("/") + 1)}${search}`;
    const { signal } = init;
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      // The owner would drop it, and nobody would answer.
      if (String(init.body ?? "").length > this.messageBytes) return resolve(tooLong(this.messageBytes));
      const id = uuid();
      const call = { path, init, answered: 0, resolve, reject };
      this.calls.set(id, call);
      signal?.addEventListener("abort", () => this.#cancel(id, signal.reason), { once: true });
      this.#send(id, call);
    });
  }

  /**
   * There is a new owner, or this tab has become it: what waits is asked again, and streams of the one before are over.
   * @param {number} epoch @param {boolean} [isSure] whether it is known from the lock, and not from a message
   */
  ownerIs(epoch, isSure = false) {
    if (epoch <= this.epoch && !isSure) return;
    this.epoch = epoch;
    for (const [id, call] of [...this.calls]) {
      if (call.answered === 0) this.#send(id, call);
      else this.#end(id, new Error("another tab has the agent now"));
    }
  }

  /** @param {Message} message @returns {boolean} whether it is from the owner of now */
  take(message) {
    if (!("epoch" in message) || message.epoch < this.epoch) return false;
    this.heardAt = performance.now();
    if (message.type !== "bye" && message.type !== "soon") this.ownerIs(message.epoch);
    if (!("id" in message)) return true;
    const call = this.calls.get(message.id);
    if (message.type === "head" && call?.answered === 0) this.#takeHead(message, call);
    else if (message.type === "piece" && call?.answered === message.epoch) call.body?.enqueue(message.bytes);
    else if (message.type === "end" && call?.answered === message.epoch) this.#end(message.id);
    return true;
  }

  /** The page goes, perhaps to come back: nothing more comes of what was answered. */
  pause() {
    for (const [id, { answered }] of [...this.calls]) if (answered !== 0) this.#end(id, new Error("the page was put to sleep"));
  }

  /** Nobody will answer. @param {unknown} error */
  fail(error) {
    for (const [id, call] of [...this.calls]) {
      call.reject(error);
      this.#end(id, error);
    }
  }

  /** Asks again, what was not answered: there may have been nobody to hear it. */
  repeat() {
    for (const [id, call] of this.calls) if (call.answered === 0) this.#send(id, call);
  }

  /** @param {string} id @param {Call} call */
  #send(id, { path, init, resolve, reject }) {
    const own = this.own();
    const asked = { method: init.method === "POST" ? /** @type {const} */ ("POST") : /** @type {const} */ ("GET"), path, ...(typeof init.body === "string" && { body: init.body }) };
    if (own) {
      this.calls.delete(id);
      return void own({ ...asked, signal: init.signal }).then(resolve, reject);
    }
    this.post({ v: 1, type: "request", id, from: this.tab, ...asked });
  }

  /** @param {Head} head @param {Call} call */
  #takeHead({ id, epoch, status, headers, body }, call) {
    call.answered = epoch;
    if (body !== undefined) {
      this.calls.delete(id);
      return call.resolve(new Response(status === 204 ? null : body, { status, headers }));
    }
    const stream = new ReadableStream({
      start: (controller) => void (call.body = controller),
      pull: () => this.post({ v: 1, type: "more", id, from: this.tab }),
      cancel: () => this.#cancel(id),
    }, { highWaterMark: 0 });
    call.resolve(new Response(stream, { status, headers }));
  }

  /** @param {string} id @param {unknown} [reason] */
  #cancel(id, reason) {
    const call = this.calls.get(id);
    if (!call) return;
    this.post({ v: 1, type: "cancel", id, from: this.tab });
    call.reject(reason);
    this.#end(id, reason);
  }

  /** @param {string} id @param {unknown} [error] */
  #end(id, error) {
    const { body } = this.calls.get(id) ?? {};
    this.calls.delete(id);
    try {
      if (error === undefined) body?.close();
      else body?.error(error);
    } catch {
      // Whoever read it has left.
    }
  }
}

/** @param {number} messageBytes */
const tooLong = (messageBytes) => new Response(JSON.stringify({ error: { code: "invalid_request", message: `a command may have ${messageBytes} bytes; see the option \`limits.messageBytes\`` } }), { status: 413 });
