// @ts-check
// A run from the response that streams its events.

import { abortController, checkNames, hostWithDefaults, kindOf, misuse } from "../shared.js";
import { checkEvent, readData } from "./check-event.js";
import { checkEventId, LASTING_MS } from "./connection.js";
import { readEvents, withTimeout } from "./eventsource.js";
import { abortError, abortWith, backOff, bodyOf, checkSignal, networkError, reconnectLimits, remoteLimits, STALL_MS } from "./http.js";
import { RemoteDriver } from "./run.js";

/** @import { AgentError } from "../shared.js" */
/** @import { FromResponseOptions } from "../remote.js" */

/**
 * Makes a run from the response that streams its events.
 * @param {Response | Promise<Response>} response
 * @param {FromResponseOptions} [options]
 */
export function fromResponse(response, options = {}) {
  checkOptions(response, options);
  const reader = new ResponseReader(response, options);
  abortWith(options.signal, reader.driver.result, (reason) => reader.abort(reason));
  queueMicrotask(() => reader.listen().catch((error) => reader.end(networkError(error, "the run could not be read"))));
  return reader.driver.run;
}

/** @param {Response | Promise<Response>} response @param {FromResponseOptions} options */
function checkOptions(response, options) {
  checkNames("unknown option", options, ["reconnect", "reconnects", "abort", "signal", "limits", "stallMs", "host"]);
  const { then, headers } = /** @type {{ then?: unknown, headers?: Headers }} */ (response) ?? {};
  if (typeof then !== "function" && typeof headers?.get !== "function") throw misuse(`fromResponse takes a Response, got ${kindOf(response)}`);
  const { reconnect, signal } = options;
  if (reconnect !== undefined && typeof reconnect !== "function") throw misuse(`\`reconnect\` must be a function that gives a Response, got ${kindOf(reconnect)}`);
  checkSignal(signal);
}

/** Reads a run, from as many responses as it takes. */
class ResponseReader {
  /** @param {Response | Promise<Response>} response @param {FromResponseOptions} options */
  constructor(response, options) {
    this.response = response;
    this.options = options;
    this.stallMs = options.stallMs ?? STALL_MS;
    this.host = hostWithDefaults(options.host);
    this.limits = reconnectLimits(options.reconnects);
    this.sizes = remoteLimits(options.limits);
    this.stopped = abortController();
    /** The id of the last event. */
    this.last = 0;
    /** Why the run was aborted, if it was. @type {unknown} */
    this.reason = undefined;
    const { headers } = /** @type {{ headers?: Headers }} */ (response);
    this.driver = new RemoteDriver({ runId: runIdOf(headers), host: this.host, abort: (reason) => this.abort(reason) });
  }

  /** @param {unknown} [why] */
  abort(why) {
    if (this.stopped.signal.aborted || this.reason !== undefined) return;
    this.reason = why ?? "the run was aborted";
    const { abort } = this.options;
    // With an `abort` function, the run is aborted there and reports its own end; without one, this
    // side just stops listening.
    if (abort) Promise.resolve().then(() => abort(why)).catch((error) => this.end(networkError(error, "the run could not be aborted")));
    else this.end(abortError(this.reason));
  }

  /** @param {AgentError} error */
  end(error) {
    this.stopped.abort();
    this.driver.fail(error);
  }

  async listen() {
    const { response, driver, limits } = this;
    const { signal } = this.stopped;
    const { reconnect } = this.options;
    // Stopped before the first read: the server must learn that this reader has left.
    if (signal.aborted) return void Promise.resolve(response).then((answer) => answer.body?.cancel()).catch(() => {});
    // A server that ends every response after an event or two is asked less and less often.
    for (let attempt = 0, short = 0; !driver.end && !signal.aborted; ) {
      const [before, since] = [this.last, this.host.now()];
      let error;
      try {
        const next = attempt === 0 || !reconnect ? response : reconnect(String(this.last));
        await this.#read(await withTimeout(Promise.resolve(next), this.stallMs, this.host.sleep));
        error = new Error("it ended before the run did");
      } catch (thrown) {
        error = thrown;
      }
      if (driver.end) return;
      attempt = this.last > before ? 1 : attempt + 1;
      short = attempt === 1 && this.host.now() - since >= LASTING_MS ? 1 : short + 1;
      const failure = networkError(error, "the connection to the run broke");
      if (!reconnect || !failure.info.retryable || attempt > limits.maxAttempts) return this.end(failure);
      await backOff(short, failure, limits, this.host, signal);
    }
  }

  /** Reads one response to its end. @param {Response} response */
  async #read(response) {
    const { signal } = this.stopped;
    const { eventBytes, runBytes } = this.sizes;
    for await (const { id, type, data } of readEvents(await bodyOf(response), { sleep: this.host.sleep, stallMs: this.stallMs, eventBytes, signal })) {
      if (signal.aborted) return;
      checkEventId(id);
      if (type !== "message" || (id !== undefined && Number(id) <= this.last)) continue;
      this.driver.measure(data, runBytes);
      this.driver.take(checkEvent(readData(data)));
      if (id !== undefined) this.last = Number(id);
    }
  }
}

/** The id of the run, of which a header has only Latin letters. @param {Headers | undefined} headers */
function runIdOf(headers) {
  const id = headers?.get("x-turnwheel-run") ?? "";
  try {
    return decodeURIComponent(id);
  } catch {
    return id;
  }
}
