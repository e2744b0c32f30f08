// @ts-check
// The connection on which an agent elsewhere tells its events. It stays open as long as somebody needs it.

import { abortController } from "../shared.js";
import { readEvents } from "./eventsource.js";
import { backOff, bodyOf, networkError } from "./http.js";

/** @import { AgentError } from "../shared.js" */
/** @import { ServerEvent } from "./eventsource.js" */
/** @import { Requests } from "./requests.js" */
/** @typedef {"idle" | "connecting" | "open"} State */
/**
 * Who needs the connection.
 * @typedef {object} Owner
 * @property {boolean} isWanted whether anybody does
 * @property {(event: ServerEvent) => void} take
 * @property {(error: AgentError) => void} giveUp the server is unreachable
 * @property {(state: State) => void} stateChanged
 */

export class Connection {
  /** @param {Requests} requests @param {Owner} owner */
  constructor(requests, owner) {
    this.requests = requests;
    this.owner = owner;
    /** @type {State} */
    this.state = "idle";
    /** Whether all that had happened before was told. */
    this.isReady = false;
    /** The id of the last event received; empty before the first. */
    this.last = "";
    /** @type {AbortController | undefined} */
    this.controller = undefined;
  }

  open() {
    if (this.controller || !this.owner.isWanted) return;
    const controller = (this.controller = abortController());
    this.#listen(controller).then((isReachable) => {
      if (this.controller !== controller) return;
      this.controller = undefined;
      this.#setState("idle");
      // If the server was unreachable, the next command tries again.
      if (isReachable) this.open();
    });
  }

  /** Everything that had happened before is known now. */
  ready() {
    this.isReady = true;
    this.#setState("open");
  }

  close() {
    this.controller?.abort();
    this.controller = undefined;
    this.#setState("idle");
  }

  /** Closes the connection when nobody needs it any more. */
  closeIfUnused() {
    // Deferred, so that unsubscribing and subscribing again at once keeps the connection.
    queueMicrotask(() => {
      if (!this.owner.isWanted && this.controller) this.close();
    });
  }

  /** @param {State} state */
  #setState(state) {
    if (this.state === state) return;
    this.state = state;
    this.owner.stateChanged(state);
  }

  /**
   * Listens until nobody needs the connection any more. Resolves to false if the server is unreachable.
   * @param {AbortController} open
   */
  async #listen({ signal }) {
    const { requests, owner } = this;
    const { host, limits, url } = requests;
    for (let attempt = 0; owner.isWanted && !signal.aborted; ) {
      this.#setState("connecting");
      const { error, hasReceived } = await this.#listenOnce(signal);
      if (signal.aborted) return true;
      this.isReady = false;
      attempt = hasReceived ? 1 : attempt + 1;
      const failure = networkError(error, `the connection to ${url} broke`);
      if (!failure.info.retryable || attempt > limits.maxAttempts) {
        owner.giveUp(failure);
        return false;
      }
      this.#setState("connecting");
      await backOff(attempt, failure, limits, host, signal);
    }
    return true;
  }

  /** Listens on one connection, and returns why it ended. @param {AbortSignal} signal */
  async #listenOnce(signal) {
    const { requests, owner } = this;
    let hasReceived = false;
    try {
      const response = await requests.fetch(`events${this.last && `?lastEventId=${this.last}`}`, { signal, headers: { accept: "text/event-stream" } });
      const options = { sleep: requests.host.sleep, stallMs: requests.stallMs, onReceive: () => void (hasReceived = true), signal };
      for await (const event of readEvents(await bodyOf(response), options)) {
        if (signal.aborted) break;
        owner.take(event);
      }
      return { error: new Error("the server closed it"), hasReceived };
    } catch (error) {
      return { error, hasReceived };
    }
  }
}
