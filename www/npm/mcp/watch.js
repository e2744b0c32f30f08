// @ts-check
// What happens on the connection of a client, for all lists of tools that were made from it: calls in flight, questions of
// the server, changes, the end. There is one of these per client, so that lists may come and go in any order.

import { isModern } from "./call.js";

/** @import { McpClient } from "../mcp.js" */
/** @import { Call } from "./call.js" */

/** How many requests a server may have open at once. More are refused: they would fill the page of whoever answers. */
const MAX_OPEN = 16;

/**
 * A request of the server that waits for its answer, with the calls that were in flight when it came: nothing in the
 * protocol says to which of them it belongs.
 * @typedef {{ id: Id, method: string, calls: Set<Call>, controller: AbortController, isAnswering: boolean }} OpenRequest
 */
/** A symbol is that of a request which did not come as a message of its own. @typedef {string | number | symbol} Id */
/** @typedef {{ onListChanged(): void }} Listener */

/** @type {WeakMap<McpClient, Watch>} */
const watches = new WeakMap();

export class Watch {
  /** The calls in flight. @type {Set<Call>} */
  calls = new Set();
  /** What is open, by its id. @type {Map<Id, OpenRequest>} */
  open = new Map();
  /** Who waits until the server says that what a person does elsewhere is done. @type {Map<string, () => void>} */
  completions = new Map();
  isClosed = false;
  /** What was answered in place of its handler, whose own answer would come too late. @type {Set<Id>} */
  #abandoned = new Set();
  /** What was taken back before its handler began: the SDK overlooks that for the id 0. @type {Set<Id>} */
  #takenBack = new Set();
  /** @type {Set<Listener>} */
  #listeners = new Set();
  /** @type {any} */
  #transport;
  /** What is undone when nobody listens any more. @type {(() => void)[]} */
  #undo = [];
  /** Ends the request that asks the server for changes. @type {AbortController | undefined} */
  #asking;
  /** Settles when the server tells of changes, if it does. @type {Promise<void> | undefined} */
  subscribed;

  /** @param {McpClient} client */
  constructor(client) {
    this.client = client;
  }

  /** @param {McpClient} client */
  static of(client) {
    let watch = watches.get(client);
    if (!watch) watches.set(client, (watch = new Watch(client)));
    return watch;
  }

  /** Returns a function that ends it. @param {Listener} listener */
  listen(listener) {
    this.#listeners.add(listener);
    this.attach();
    this.#subscribe();
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) this.#detach();
    };
  }

  /** Listens to the connection that the client has now: it may have been closed and made again. */
  attach() {
    const { client } = this;
    if (client.transport === undefined || client.transport === this.#transport) return;
    this.#detach();
    this.isClosed = false;
    const transport = (this.#transport = client.transport);
    const { onmessage, send } = transport;
    const { onclose } = client;
    const onMessage = (/** @type {any} */ message, /** @type {any} */ extra) => {
      const isRefused = this.#begins(message);
      if (!isRefused) onmessage?.(message, extra);
      this.#hear(message);
    };
    const onSend = (/** @type {any} */ message, /** @type {any} */ options) => {
      if (message?.method === undefined) {
        if (this.#abandoned.delete(message?.id)) return Promise.resolve();
        this.close(message?.id);
      }
      return send.call(transport, message, options);
    };
    const onClose = () => {
      this.isClosed = true;
      this.#asking?.abort();
      for (const { id } of [...this.open.values()]) this.abandon(id, "the connection is closed");
      onclose?.();
    };
    // The client's own handlers stay in place, and what others put there after us.
    this.#undo = [replace(transport, "onmessage", onMessage), replace(client, "onclose", onClose)];
    if (typeof send === "function") this.#undo.push(replace(transport, "send", onSend));
    this.#subscribe();
  }

  /** Since July 2026 a server announces changes only to clients that ask. */
  #subscribe() {
    if (this.#asking || this.#listeners.size === 0 || !isModern(this.client) || !this.client.getServerCapabilities?.()?.tools?.listChanged) return;
    const { signal } = (this.#asking = new AbortController());
    this.subscribed = import("./subscribe.js").then(({ subscribe }) => subscribe(this.client, signal, () => this.#changed())).catch(() => {});
  }

  #changed() {
    for (const listener of [...this.#listeners]) listener.onListChanged();
  }

  #detach() {
    for (const undo of this.#undo.splice(0)) undo();
    this.#asking?.abort();
    this.#asking = this.subscribed = undefined;
    this.#transport = undefined;
    this.#abandoned.clear();
    this.#takenBack.clear();
  }

  /** Takes note of a request of the server. Returns whether it was refused. @param {any} message */
  #begins(message) {
    if (typeof message?.method !== "string" || message.id === undefined || message.method === "ping") return false;
    if (this.open.size >= MAX_OPEN) {
      this.#transport?.send({ jsonrpc: "2.0", id: message.id, error: { code: -32000, message: `${MAX_OPEN} requests of this server are open; answer them first` } })?.catch?.(() => {});
      return true;
    }
    this.begin(message.id, message.method);
    return false;
  }

  /** @param {any} message */
  #hear(message) {
    if (message?.method === "notifications/cancelled") {
      const id = message.params?.requestId;
      const request = this.open.get(id);
      if (request && !request.isAnswering) this.#takenBack.add(id);
      request?.controller.abort(new Error(message.params?.reason ?? "the server took its question back"));
      this.close(id);
    }
    if (message?.method === "notifications/elicitation/complete") this.completions.get(message.params?.elicitationId)?.();
    if (message?.method === "notifications/tools/list_changed") this.#changed();
  }

  /** The server waits for us: its calls are not silent meanwhile. @param {Id} id @param {string} method @returns {OpenRequest} */
  begin(id, method) {
    const request = { id, method, calls: new Set(this.calls), controller: new AbortController(), isAnswering: false };
    this.open.set(id, request);
    for (const call of request.calls) call.clock.stop();
    return request;
  }

  /**
   * Answers a request. The successor of the SDK also asks for what stands inside a result, which did not come as a message.
   * @template T @param {Id | undefined} id @param {string} method @param {AbortSignal} signal the SDK's @param {(request: OpenRequest) => Promise<T>} answer
   */
  async during(id, method, signal, answer) {
    const request = this.open.get(id ?? "") ?? this.begin(Symbol(method), method);
    request.isAnswering = true;
    if (id !== undefined && this.#takenBack.delete(id)) request.controller.abort(new Error("the server took its question back"));
    const onAbort = () => request.controller.abort(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort);
    try {
      return await answer(request);
    } finally {
      signal.removeEventListener("abort", onAbort);
      if (typeof request.id === "symbol") this.close(request.id);
    }
  }

  /** @param {Id | undefined} id */
  close(id) {
    const request = id === undefined ? undefined : this.open.get(id);
    if (!request) return;
    this.open.delete(request.id);
    for (const call of request.calls) call.clock.go();
  }

  /** A call has ended. If it was aborted, so are the questions that came with no other. @param {Call} call @param {boolean} isAborted */
  end(call, isAborted) {
    this.calls.delete(call);
    for (const { id, calls } of [...this.open.values()]) {
      if (calls.delete(call) && calls.size === 0 && isAborted) this.abandon(id, "the call was aborted");
    }
  }

  /**
   * Nobody waits for this answer any more: the handler's signal is aborted, and the server is told.
   * @param {Id} id @param {string} reason
   */
  abandon(id, reason) {
    const request = this.open.get(id);
    this.close(id);
    request?.controller.abort(new Error(reason));
    if (!request || typeof id === "symbol") return;
    const transport = this.#transport;
    // For a handler that is not ours. The SDK overlooks this for the id 0.
    transport?.onmessage?.({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: id, reason } });
    if (this.isClosed) return;
    const answer = request.method === "elicitation/create" ? { result: { action: "cancel" } } : { error: { code: -32000, message: reason } };
    transport?.send({ jsonrpc: "2.0", id, ...answer })?.catch?.(() => {});
    this.#abandoned.add(id);
  }
}

/**
 * Puts something in the place of a member; the function that is returned puts back what was there, if it is still ours.
 * @param {any} object @param {string} name @param {unknown} value
 */
function replace(object, name, value) {
  const before = Object.getOwnPropertyDescriptor(object, name);
  object[name] = value;
  return () => {
    if (object[name] !== value) return;
    if (before) Object.defineProperty(object, name, before);
    else delete object[name];
  };
}
