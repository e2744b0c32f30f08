// @ts-check
// The connection on which an agent elsewhere tells its events. It stays open as long as somebody needs it.

import { abortController } from "../shared.js";
import { protocolError } from "./check-event.js";
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

/** A connection that held for so long was a good one. */
export const LASTING_MS = 5000;
/** Throws unless an id is the number of an event. @param {string | undefined} id */
export function checkEventId(id) {
  if (id !== undefined && !(/^\d{1,16}$/.test(id) && Number.isSafeInteger(Number(id)))) throw protocolError("the server sent an event whose id is no number");
}

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
    /** How often it was requested. */
    this.requested = 0;
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
    }).catch((error) => console.error("turnwheel: the connection to the agent ended", error));
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
    // Connections that failed in a row, and those that did not last: a server that ends every connection as soon as
    // it has said something is not asked again at once each time.
    for (let attempt = 0, short = 0; owner.isWanted && !signal.aborted; ) {
      this.#setState("connecting");
      const since = host.now();
      const { error, hasReceived, isReached } = await this.#listenOnce(signal);
      if (signal.aborted) return true;
      this.isReady = false;
      attempt = hasReceived ? 1 : attempt + 1;
      short = hasReceived && host.now() - since >= LASTING_MS ? 1 : short + 1;
      const failure = this.requests.secrets.hideIn(networkError(error, `the connection to ${url} broke`));
      if (!failure.info.retryable || attempt > limits.maxAttempts) {
        owner.giveUp(failure);
        return false;
      }
      if (isReached) requests.isReached = true;
      else if (failure.info.code === "network") requests.noteUnreached(failure);
      this.#setState("connecting");
      await backOff(short, failure, limits, host, signal);
    }
    return true;
  }

  /** Listens on one connection, and returns why it ended. @param {AbortSignal} signal */
  async #listenOnce(signal) {
    const { requests, owner } = this;
    let [hasReceived, isReached] = [false, false];
    this.requested += 1;
    try {
      const response = await requests.fetch(`events${this.last && `?lastEventId=${this.last}`}`, { signal, headers: { accept: "text/event-stream" } });
      isReached = true;
      const options = { sleep: requests.host.sleep, stallMs: requests.stallMs, eventBytes: requests.sizes.eventBytes, onReceive: () => void (hasReceived = true), signal };
      for await (const event of readEvents(await bodyOf(response), options)) {
        if (signal.aborted) break;
        checkEventId(event.id);
        owner.take(event);
      }
      return { error: new Error("the server closed it"), hasReceived, isReached };
    } catch (error) {
      return { error, hasReceived, isReached };
    }
  }
}
