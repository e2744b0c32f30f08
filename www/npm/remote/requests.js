// @ts-check
// The requests to an agent elsewhere: its commands, one after the other, and the request for its events.

import { abortController, jsonOf, misuse } from "../shared.js";
import { withTimeout } from "./eventsource.js";
import { backOff, networkError, remoteLimits, replyOf, responseError, responseOf, STALL_MS } from "./http.js";
import { fetchHere } from "./redirect.js";
import { Secrets } from "./secrets.js";

/** @import { RemoteAgentOptions } from "../remote.js" */
/** @import { AgentError } from "../shared.js" */
/** @import { Host } from "../shared.js" */
/** @import { Reconnects } from "./http.js" */

/**
 * The body of a command. It carries an id, so that the server executes it once even if it is sent again.
 * @param {string} id @param {object} fields
 */
export const bodyFor = (id, fields) => jsonOf("the command is", { id, ...fields });

export class Requests {
  /** @param {RemoteAgentOptions} options @param {Host} host @param {Reconnects} limits */
  constructor(options, host, limits) {
    this.options = options;
    this.url = String(options.url).replace(/\/+$/, "");
    this.host = host;
    this.limits = limits;
    this.sizes = remoteLimits(options.limits);
    this.stallMs = options.stallMs ?? STALL_MS;
    /** The command that is being sent, and those behind it. */
    this.posting = Promise.resolve();
    this.secrets = new Secrets();
    this.isClosed = false;
    this.isReached = true;
    /** Hears of the first failure to reach the server, until it is reached again. @type {(error: AgentError) => void} */
    this.onUnreached = () => {};
  }

  /** The server was not reached, and is tried again. @param {AgentError} error */
  noteUnreached(error) {
    if (this.isReached) this.onUnreached(error);
    this.isReached = false;
  }

  /**
   * Sends a command, once those before it were sent. Resolves to what the server answered.
   * @param {string} name @param {string} body @param {() => unknown} [before] awaited first
   * @returns {Promise<any>}
   */
  post(name, body, before) {
    const done = this.posting.then(before).then(() => this.#send(name, body));
    this.posting = done.catch(() => {});
    return done;
  }

  /** @param {string} name @param {string} body @returns {Promise<any>} */
  async #send(name, body) {
    for (let attempt = 1; ; attempt++) {
      if (this.isClosed) throw misuse("the agent was disposed of");
      let error;
      let isUnreached = false;
      try {
        const response = await this.fetch(name, { method: "POST", body, headers: { "content-type": "application/json" } });
        this.isReached = true;
        if (response.ok) return await replyOf(response);
        error = await responseError(response);
      } catch (thrown) {
        error = networkError(thrown, `no answer from ${this.url}`);
        isUnreached = error.info.code === "network";
      }
      error = this.secrets.hideIn(error);
      if (!error.info.retryable || attempt > this.limits.maxAttempts) throw error;
      if (isUnreached) this.noteUnreached(error);
      await backOff(attempt, error, this.limits, this.host);
    }
  }

  /** @param {string} path @param {{ method?: string, body?: string, headers: Record<string, string>, signal?: AbortSignal }} init */
  async fetch(path, { headers, signal, ...init }) {
    const merged = await this.#headers();
    for (const [name, value] of Object.entries(headers)) merged.set(name, value);
    // A server that accepts a connection and never answers counts as unreachable.
    const stop = abortController();
    const abort = () => stop.abort(signal?.reason);
    signal?.addEventListener("abort", abort);
    const { fetch: send = fetch } = this.options;
    const response = fetchHere((input, init) => send(input, init), `${this.url}/${path}`, { ...init, headers: merged, signal: stop.signal });
    try {
      return responseOf(await withTimeout(response, this.stallMs, this.host.sleep));
    } catch (error) {
      stop.abort(error);
      throw error;
    } finally {
      // From here on the reader of the body handles the signal.
      signal?.removeEventListener("abort", abort);
    }
  }
  async #headers() {
    const given = this.options.headers;
    const headers = typeof given === "function" ? await given() : given;
    try {
      const merged = new Headers(headers);
      this.secrets.know(merged);
      return merged;
    } catch {
      // The host's own words show the value.
      throw misuse("a header of `headers` cannot be sent, for it holds a line break or a letter that is not Latin");
    }
  }
}
