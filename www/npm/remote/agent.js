// @ts-check
// Agents and runs that live elsewhere, in a Worker or on a server, with the interface of local ones. The
// server half is server.js; the protocol between them is docs/remote.md.

import { AgentError, checkNames, jsonOf, kindOf, misuse, textOf, toDecision, toMessage, toMessages } from "../shared.js";
import { readEvents, withTimeout } from "./eventsource.js";
import { checkFunctions, hostWithDefaults, numbersWithDefaults, RemoteDriver } from "./run.js";

const NO_USAGE = Object.freeze({ input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 });
const RECONNECT = { maxAttempts: 10, initialMs: 250, maxMs: 15_000 };
/** Long enough to miss three keep-alives. */
const STALL = 45_000;

/** The error code for an HTTP status. @param {number} status */
const codeOf = (status) => (status === 401 || status === 403 ? "auth" : status === 409 ? "misuse" : status === 429 ? "throttled" : status === 503 ? "overloaded" : status >= 500 ? "server" : "invalid_request");

/** Whether a retry may help. @param {number} status */
const isRetryable = (status) => status === 408 || status === 429 || status >= 500;

/** Reads the error that a server sent instead of a result. @param {Response} response */
async function responseError(response) {
  const text = await response.text().catch(() => "");
  /** @type {any} */
  let reported;
  try {
    reported = JSON.parse(text).error;
  } catch {
    // Not a turnwheel server, or something in between answered.
  }
  const { status } = response;
  const after = Number(response.headers.get("retry-after"));
  const message = reported?.message ?? `the server answered ${status}${text ? `: ${text.slice(0, 200)}` : ""}`;
  return new AgentError({ code: reported?.code ?? codeOf(status), message, retryable: isRetryable(status), ...(after > 0 && { retryAfterMs: after * 1000 }), provider: { status } });
}

/**
 * Checks a response: a wrapper of `fetch` may have forgotten its `return`.
 * @param {any} given @returns {Response}
 */
function responseOf(given) {
  if (typeof given?.ok !== "boolean") throw misuse(`\`fetch\` and \`reconnect\` must give a Response, got ${kindOf(given)}`);
  return given;
}

/** Returns the body of an event stream. @param {any} given */
async function bodyOf(given) {
  const response = responseOf(given);
  if (!response.ok) throw await responseError(response);
  const type = response.headers.get("content-type") ?? "nothing";
  if (!response.body || !type.toLowerCase().startsWith("text/event-stream")) {
    throw new AgentError({ code: "invalid_request", message: `the response is no stream of events: its content-type is ${type}`, retryable: false });
  }
  return response.body;
}

/** @param {unknown} error @param {string} what */
const networkError = (error, what) => (AgentError.isInstance(error) ? error : new AgentError({ code: "network", message: `${what}: ${textOf(error)}`, retryable: true }, error));

/** @param {any} signal */
function checkSignal(signal) {
  if (signal !== undefined && typeof signal?.addEventListener !== "function") throw misuse(`\`signal\` must be an AbortSignal, got ${kindOf(signal)}`);
}

/** @param {unknown} reason */
const abortError = (reason) => new AgentError({ code: "aborted", message: textOf(reason), retryable: false }, reason);

/**
 * Waits before the given attempt, counted from 1.
 * @param {number} attempt @param {any} error @param {typeof RECONNECT} reconnect
 * @param {ReturnType<typeof hostWithDefaults>} host @param {AbortSignal} [signal]
 */
const backOff = (attempt, error, { initialMs, maxMs }, host, signal) => host.sleep(error?.info?.retryAfterMs ?? Math.min(maxMs, initialMs * 2 ** (attempt - 1)) * (0.5 + host.random()), signal);

/**
 * Makes a run from the response that streams its events.
 * @param {Response | Promise<Response>} response
 * @param {any} [options]
 */
export function fromResponse(response, options = {}) {
  checkNames("unknown option", options, ["reconnect", "reconnects", "abort", "signal", "stallMs", "host"]);
  const { reconnect, abort: abortThere, signal, stallMs = STALL } = options;
  if (typeof (/** @type {any} */ (response)?.then) !== "function" && typeof (/** @type {any} */ (response)?.headers?.get) !== "function") {
    throw misuse(`fromResponse takes a Response, got ${kindOf(response)}`);
  }
  if (reconnect !== undefined && typeof reconnect !== "function") throw misuse(`\`reconnect\` must be a function that gives a Response, got ${kindOf(reconnect)}`);
  checkSignal(signal);
  const host = hostWithDefaults(options.host);
  const limits = numbersWithDefaults("reconnects", options.reconnects, RECONNECT);
  const stopped = new AbortController();
  let last = 0;
  /** @type {any} */
  let reason;
  const abort = (/** @type {unknown} */ why) => {
    if (stopped.signal.aborted || reason !== undefined) return;
    reason = why ?? "the run was aborted";
    // With an `abort` function, the run is aborted there and reports its own end; without one, this
    // side just stops listening.
    if (abortThere) Promise.resolve().then(() => abortThere(why)).catch((error) => end(networkError(error, "the run could not be aborted")));
    else end(abortError(reason));
  };
  const driver = new RemoteDriver({ runId: (/** @type {any} */ (response)).headers?.get("x-turnwheel-run") ?? "", host, abort });
  const end = (/** @type {AgentError} */ error) => {
    stopped.abort();
    driver.fail(error);
  };

  /** Reads one response to its end. @param {Response} response */
  const read = async (response) => {
    for await (const { id, type, data } of readEvents(await bodyOf(response), { sleep: host.sleep, stallMs, signal: stopped.signal })) {
      if (stopped.signal.aborted) return;
      if (type !== "message" || (id !== undefined && Number(id) <= last)) continue;
      if (id !== undefined) last = Number(id);
      driver.take(JSON.parse(data));
    }
  };
  const listen = async () => {
    // Stopped before the first read: the server must learn that this reader has left.
    if (stopped.signal.aborted) return void Promise.resolve(response).then((answer) => answer.body?.cancel()).catch(() => {});
    for (let attempt = 0; !driver.end && !stopped.signal.aborted; ) {
      const before = last;
      let error;
      try {
        await read(await withTimeout(Promise.resolve(attempt === 0 ? response : reconnect(String(last))), stallMs, host.sleep));
        error = new Error("it ended before the run did");
      } catch (thrown) {
        error = thrown;
      }
      if (driver.end) return;
      attempt = last > before ? 1 : attempt + 1;
      const failure = networkError(error, "the connection to the run broke");
      if (!reconnect || !failure.info.retryable || attempt > limits.maxAttempts) return end(failure);
      await backOff(attempt, failure, limits, host, stopped.signal);
    }
  };
  abortWith(signal, driver.result, abort);
  queueMicrotask(listen);
  return driver.run;
}

/**
 * Lets a signal abort a run until the run is over; the listener is removed then, as
 * the signal may outlive it.
 * @param {AbortSignal | undefined} signal @param {Promise<any>} result
 * @param {(reason: unknown) => void} abort
 */
function abortWith(signal, result, abort) {
  if (!signal) return;
  const listener = () => abort(signal.reason);
  if (signal.aborted) return queueMicrotask(listener);
  signal.addEventListener("abort", listener, { once: true });
  result.then(() => signal.removeEventListener("abort", listener));
}

/** An agent that lives elsewhere. */
export class RemoteAgent {
  /** @type {Link} */ #link;

  /** @param {any} options */
  constructor(options) {
    this.#link = new Link(options);
  }

  /** @param {any} input @param {any} [options] */
  prompt(input, options) {
    return this.#link.run("prompt", { input: toMessages(input) }, options);
  }

  /** @param {any} [options] */
  continue(options) {
    return this.#link.run("continue", {}, options);
  }

  /** @param {(event: any) => void} listener */
  subscribe(listener) {
    if (typeof listener !== "function") throw misuse(`a subscriber must be a function, got ${kindOf(listener)}`);
    return this.#link.subscribe(listener);
  }

  /** @param {any} input */
  steer(input) {
    return this.#link.postMessage("steer", toMessage(input));
  }

  /** @param {any} input */
  followUp(input) {
    return this.#link.postMessage("follow-up", toMessage(input));
  }

  clearQueues() {
    return this.#link.command("clear-queues", {});
  }

  /** @param {string} callId @param {any} decision */
  resolveTool(callId, decision) {
    return this.#link.command("resolve", { callId, decision: toDecision(decision) });
  }

  /** @param {{ [callId: string]: any }} decisions */
  resolveTools(decisions) {
    return this.#link.command("resolve", { decisions: Object.fromEntries(Object.entries(decisions).map(([id, decision]) => [id, toDecision(decision)])) });
  }

  /** @param {unknown} [reason] */
  abort(reason) {
    return this.#link.command("abort", reason === undefined ? {} : { reason: textOf(reason) });
  }

  reset() {
    return this.#link.command("reset", {});
  }

  /** Resolves when the mirror of the agent is up to date. */
  ready() {
    return this.#link.ready();
  }

  async waitForIdle() {
    const link = this.#link;
    await link.ready();
    while (link.isRunning && !link.disposed) await link.nextEvent();
  }

  get messages() {
    return this.#link.messages;
  }

  get pendingApprovals() {
    return [...this.#link.pendingApprovals.values()];
  }

  get isRunning() {
    return this.#link.isRunning;
  }

  get usage() {
    return this.#link.usage;
  }

  /** The state of the connection: "idle" (nobody listens), "connecting" or "open". */
  get connection() {
    return this.#link.connection;
  }

  [Symbol.dispose ?? Symbol.for("Symbol.dispose")]() {
    this.#link.dispose();
  }
}

/**
 * Calls a function of the host without waiting for it; its failure must not stop anything.
 * @param {() => any} call @param {(error: unknown) => void} failed
 */
function guarded(call, failed) {
  try {
    const answer = call();
    if (typeof answer?.then === "function") answer.then(undefined, failed);
  } catch (error) {
    failed(error);
  }
}

/** @param {unknown} error */
const report = (error) => console.error("turnwheel: a callback of RemoteAgent's options failed", error);

const OPTIONS = ["url", "fetch", "headers", "reconnects", "stallMs", "host", "onConnection", "onError"];

/**
 * The body of a command. It carries an id, so that the server executes it once even if it is sent again.
 * @param {string} id @param {any} fields
 */
const bodyFor = (id, fields) => jsonOf("the command is", { id, ...fields });

/**
 * The connection to an agent, and a mirror of the agent's state. It stays open as long as somebody needs it.
 */
class Link {
  /** @param {any} options */
  constructor(options) {
    if (typeof options !== "object" || options === null) throw misuse(`RemoteAgent takes { url }, got ${kindOf(options)}`);
    checkNames("unknown option", options, OPTIONS);
    checkFunctions(options, ["fetch", "onConnection", "onError"]);
    const { url } = options;
    if (typeof url !== "string" && !(url instanceof URL)) throw misuse(`\`url\` must be the address of an agent, got ${kindOf(url)}`);
    if (/[?#]/.test(String(url))) throw misuse(`\`url\` is followed by the name of a command, so it may have no query: send that in \`headers\`, got ${JSON.stringify(String(url))}`);
    this.options = options;
    this.url = String(url).replace(/\/+$/, "");
    this.host = hostWithDefaults(options.host);
    this.limits = numbersWithDefaults("reconnects", options.reconnects, RECONNECT);
    this.connection = "idle";
    /** @type {readonly any[]} */
    this.messages = [];
    /** @type {Map<string, any>} */
    this.pendingApprovals = new Map();
    /** @type {any} */
    this.usage = { ...NO_USAGE };
    /** The id of the agent's current run. @type {string | undefined} */
    this.running = undefined;
    /** The id of a run that was started from here and has sent no event yet. @type {string | undefined} */
    this.starting = undefined;
    /** The id of the last event received; empty before the first. */
    this.last = "";
    /** The change to the history that belongs to the next event. @type {any} */
    this.historyChange = undefined;
    /**
     * The last answer, and results by call id: history changes may refer to these.
     * @type {{ answer: any, results: Map<string, any> }}
     */
    this.known = { answer: undefined, results: new Map() };
    /**
     * How many events of the current run were delivered; `repeats` is how many of them
     * will arrive a second time.
     */
    this.delivered = { runId: "", count: 0 };
    this.repeats = 0;
    /** The run whose events the subscribers got last. @type {RemoteDriver | undefined} */
    this.followed = undefined;
    /** The runs that somebody here holds. @type {Map<string, RemoteDriver>} */
    this.runs = new Map();
    /** @type {Set<(event: any) => void>} */
    this.listeners = new Set();
    /** Posted messages whose receipt is still open. @type {Map<string, (receipt: any) => void>} */
    this.openReceipts = new Map();
    /** Callbacks waiting for the next message from the server. @type {(() => void)[]} */
    this.waiting = [];
    /** Promises waiting for the mirror. @type {{ resolve(): void, reject(error: unknown): void }[]} */
    this.readyWaiters = [];
    this.isReady = false;
    /** Commands are sent one after the other. */
    this.posting = Promise.resolve();
    /** @type {AbortController | undefined} */
    this.controller = undefined;
    this.disposed = false;
  }

  get isRunning() {
    return this.running !== undefined || this.starting !== undefined;
  }

  get isWanted() {
    return !this.disposed && (this.listeners.size > 0 || this.runs.size > 0 || this.openReceipts.size > 0 || this.readyWaiters.length > 0 || this.waiting.length > 0);
  }

  // ---- commands

  /** @param {"prompt" | "continue"} name @param {any} fields @param {{ signal?: AbortSignal, runId?: string }} [options] */
  run(name, fields, options = {}) {
    checkNames("unknown option", options, ["signal", "runId"]);
    const { signal, runId = this.host.id() } = options;
    checkSignal(signal);
    if (this.disposed) throw misuse("the agent was disposed of");
    if (this.isRunning) throw misuse("the agent is already running; steer it, queue a follow-up, or wait for it");
    const body = bodyFor(runId, { ...fields, runId });
    this.starting = runId;
    /** The error if the run was aborted before it was sent. @type {AgentError | undefined} */
    let stopped;
    let isSent = false;
    const abort = (/** @type {unknown} */ reason) => {
      if (isSent) return void this.command("abort", { runId, ...(reason !== undefined && { reason: textOf(reason) }) });
      fail((stopped = abortError(reason ?? "the run was aborted")));
    };
    const driver = new RemoteDriver({ runId, host: this.host, abort, messages: () => this.messages });
    this.runs.set(runId, driver);
    this.connect();
    const fail = (/** @type {AgentError} */ error) => {
      // If it has begun after all, its own end will be reported.
      if (this.starting !== runId) return;
      this.starting = undefined;
      // Subscribers must not receive another run's events in the middle of the run in progress.
      driver.fail(error, this.running === undefined ? (event) => this.deliver(event) : undefined);
      this.runs.delete(runId);
      this.closeIfUnused();
    };
    // Sends only once the mirror is ready: a run that ended before anybody listened would be missed.
    const before = async () => {
      if (!stopped) await this.ready();
      if (stopped) throw stopped;
      isSent = true;
    };
    this.post(name, body, before).catch(fail);
    abortWith(signal, driver.result, (reason) => driver.run.abort(reason));
    return driver.run;
  }

  /** @param {"steer" | "follow-up"} name @param {any} message */
  postMessage(name, message) {
    if (this.disposed) throw misuse("the agent was disposed of");
    const id = this.host.id();
    const body = bodyFor(id, { input: message });
    const receipt = new Promise((resolve) => this.openReceipts.set(id, resolve));
    this.connect();
    // Waits for the mirror as well, or the receipt would be missed.
    this.post(name, body, () => this.ready()).catch((error) => this.postFailed(error, id));
    return receipt;
  }

  /** Handles a message that could not be delivered. @param {unknown} error @param {string} id */
  postFailed(error, id) {
    this.openReceipts.get(id)?.({ delivered: false, reason: "run_ended" });
    this.openReceipts.delete(id);
    this.reportError(error);
    this.closeIfUnused();
  }

  /** @param {string} name @param {any} fields @returns {Promise<void>} */
  command(name, fields) {
    if (this.disposed) throw misuse("the agent was disposed of");
    const done = this.post(name, bodyFor(this.host.id(), fields));
    // Whoever does not await the promise learns of the failure from `onError`.
    done.catch((error) => this.reportError(error));
    return done;
  }

  /** @param {unknown} error */
  reportError(error) {
    const { onError } = this.options;
    if (onError) guarded(() => onError(error), report);
    else if (!this.disposed) console.error("turnwheel:", error);
  }

  /**
   * @param {string} name @param {string} body @param {() => unknown} [before] awaited first
   * @returns {Promise<void>}
   */
  post(name, body, before) {
    const done = this.posting.then(before).then(() => this.send(name, body));
    this.posting = done.catch(() => {});
    return done;
  }

  /** @param {string} name @param {string} body */
  async send(name, body) {
    for (let attempt = 1; ; attempt++) {
      if (this.disposed) throw misuse("the agent was disposed of");
      let error;
      try {
        const response = await this.fetch(name, { method: "POST", body, headers: { "content-type": "application/json" } });
        if (response.ok) return void response.body?.cancel().catch(() => {});
        error = await responseError(response);
      } catch (thrown) {
        error = networkError(thrown, `no answer from ${this.url}`);
      }
      if (!error.info.retryable || attempt > this.limits.maxAttempts) throw error;
      await backOff(attempt, error, this.limits, this.host);
    }
  }

  /** @param {string} path @param {any} [init] */
  async fetch(path, { headers, ...init } = {}) {
    const ownHeaders = typeof this.options.headers === "function" ? await this.options.headers() : this.options.headers;
    const merged = new Headers(ownHeaders);
    for (const [name, value] of Object.entries(headers ?? {})) merged.set(name, /** @type {string} */ (value));
    // A server that accepts a connection and never answers counts as unreachable.
    const { sleep } = this.host;
    const stop = new AbortController();
    const abort = () => stop.abort(init.signal.reason);
    init.signal?.addEventListener("abort", abort);
    const response = (this.options.fetch ?? fetch)(`${this.url}/${path}`, { ...init, headers: merged, signal: stop.signal });
    try {
      return responseOf(await withTimeout(response, this.options.stallMs ?? STALL, sleep));
    } catch (error) {
      stop.abort(error);
      throw error;
    } finally {
      // From here on the reader of the body handles the signal.
      init.signal?.removeEventListener("abort", abort);
    }
  }

  // ---- events

  /** @param {(event: any) => void} listener */
  subscribe(listener) {
    if (this.disposed) throw misuse("the agent was disposed of");
    // Wrapped, so that the same function subscribed twice is two listeners.
    const wrapped = (/** @type {any} */ event) => listener(event);
    this.listeners.add(wrapped);
    this.connect();
    return () => {
      this.listeners.delete(wrapped);
      this.closeIfUnused();
    };
  }

  ready() {
    if (this.disposed) return Promise.reject(misuse("the agent was disposed of"));
    if (this.isReady && this.connection === "open") return Promise.resolve();
    return new Promise((resolve, reject) => {
      this.readyWaiters.push({ resolve: () => resolve(undefined), reject });
      this.connect();
    });
  }

  /** Resolves at the next message from the server. */
  nextEvent() {
    return new Promise((resolve) => {
      this.waiting.push(() => resolve(undefined));
      this.connect();
    });
  }

  connect() {
    if (this.controller || !this.isWanted) return;
    const controller = (this.controller = new AbortController());
    this.listen(controller).then((isReachable) => {
      if (this.controller !== controller) return;
      this.controller = undefined;
      this.setConnection("idle");
      // If the server was unreachable, the next command tries again.
      if (isReachable) this.connect();
    });
  }

  /** Closes the connection when nobody needs it any more. */
  closeIfUnused() {
    // Deferred, so that unsubscribing and subscribing again at once keeps the connection.
    queueMicrotask(() => {
      if (this.isWanted || !this.controller) return;
      this.controller.abort();
      this.controller = undefined;
      this.setConnection("idle");
    });
  }

  /** @param {"idle" | "connecting" | "open"} connection */
  setConnection(connection) {
    if (this.connection === connection) return;
    this.connection = connection;
    guarded(() => this.options.onConnection?.(connection), report);
  }

  /**
   * Listens until nobody needs the connection any more. Resolves to false if the server is unreachable.
   * @param {AbortController} open
   */
  async listen({ signal }) {
    for (let attempt = 0; this.isWanted && !signal.aborted; ) {
      this.setConnection("connecting");
      let error;
      let hasReceived = false;
      try {
        const response = await this.fetch(`events${this.last && `?lastEventId=${this.last}`}`, { signal, headers: { accept: "text/event-stream" } });
        const options = { sleep: this.host.sleep, stallMs: this.options.stallMs ?? STALL, onReceive: () => void (hasReceived = true), signal };
        for await (const event of readEvents(await bodyOf(response), options)) {
          if (signal.aborted) return true;
          this.take(event);
        }
        error = new Error("the server closed it");
      } catch (thrown) {
        error = thrown;
      }
      if (signal.aborted) return true;
      this.isReady = false;
      attempt = hasReceived ? 1 : attempt + 1;
      const failure = networkError(error, `the connection to ${this.url} broke`);
      if (!failure.info.retryable || attempt > this.limits.maxAttempts) return this.giveUp(failure);
      this.setConnection("connecting");
      await backOff(attempt, failure, this.limits, this.host, signal);
    }
    return true;
  }

  /** The server is unreachable: everything that waits for it fails. @param {AgentError} error */
  giveUp(error) {
    const runs = this.unendedRuns();
    const isHeld = this.runs.size > 0;
    this.runs.clear();
    this.starting = undefined;
    this.running = undefined;
    for (const run of runs) this.endRun(run, error);
    for (const settle of this.openReceipts.values()) settle({ delivered: false, reason: "run_ended" });
    this.openReceipts.clear();
    for (const { reject } of this.readyWaiters.splice(0)) reject(error);
    this.wake();
    if (!isHeld) this.reportError(error);
    return false;
  }

  /**
   * The runs whose end has not arrived here: those that are held, and the one that subscribers follow.
   * @returns {RemoteDriver[]}
   */
  unendedRuns() {
    const { followed } = this;
    return [...new Set([...this.runs.values(), ...(followed && !followed.end ? [followed] : [])])];
  }

  /** @param {RemoteDriver} run @param {AgentError} error @param {any} [endEvent] how it ended, if that is known */
  endRun(run, error, endEvent) {
    run.fail(error, (event) => (run.take(event), this.dispatch(event)), endEvent);
  }

  wake() {
    for (const waiting of this.waiting.splice(0)) waiting();
  }

  /** @param {{ id?: string, type: string, data: string }} event */
  take({ id, type, data }) {
    // Skips events that arrive a second time.
    if (type !== "state" && type !== "history" && id !== undefined && this.last !== "" && Number(id) <= Number(this.last)) return void (this.historyChange = undefined);
    const value = JSON.parse(data);
    if (type === "history") this.historyChange = value;
    else if (type === "state") this.applySnapshot(value);
    else if (type === "receipt") this.settleReceipt(value);
    else if (type === "ready") this.markReady();
    else if (type === "message") this.deliver(value);
    if (id !== undefined) this.last = id;
    this.wake();
    if (!this.isWanted) this.closeIfUnused();
  }

  markReady() {
    this.isReady = true;
    this.setConnection("open");
    for (const { resolve } of this.readyWaiters.splice(0)) resolve();
  }

  /** Replaces the mirror by a snapshot of the agent. @param {any} state */
  applySnapshot({ messages, pendingApprovals, usage, run, openLetters, ended }) {
    this.messages = messages;
    this.pendingApprovals = new Map(pendingApprovals.map((/** @type {any} */ call) => [call.callId, call]));
    this.usage = usage;
    this.running = run?.runId;
    this.known = { answer: undefined, results: new Map() };
    this.historyChange = undefined;
    for (const [id, settle] of this.openReceipts) {
      // It may still be on its way.
      if (openLetters.includes(id) || this.last === "") continue;
      settle({ delivered: false, reason: "run_ended" });
      this.openReceipts.delete(id);
    }
    for (const driver of this.unendedRuns()) {
      const { runId } = driver;
      if (runId === run?.runId || (runId === this.starting && runId !== ended?.runId)) continue;
      this.runs.delete(runId);
      if (runId === this.starting) this.starting = undefined;
      const isKnown = ended?.runId === runId;
      const error = new AgentError({ code: "network", message: "the run went on unheard, and its events are gone", retryable: false });
      this.endRun(driver, error, isKnown ? { ...ended, messages: messages.slice(messages.length - ended.messages) } : undefined);
    }
    this.repeats = 0;
    if (!run || run.told === null) return;
    const deliveredCount = this.delivered.runId === run.runId ? this.delivered.count : 0;
    this.delivered = { runId: run.runId, count: run.told };
    // Skips the events of the run that were delivered already. If some were missed, says so.
    this.repeats = Math.max(0, deliveredCount - run.told);
    if (run.told > deliveredCount) this.publish({ type: "run_resumed", runId: run.runId, turnIndex: run.turnIndex, pendingApprovals, runningTools: [] });
  }

  /** @param {any} value */
  settleReceipt({ id, receipt }) {
    this.openReceipts.get(id)?.(receipt);
    this.openReceipts.delete(id);
  }

  /** Delivers an event: first to the mirror, then to everybody else. @param {any} event */
  deliver(event) {
    const { runId } = event;
    this.note(event);
    this.applyHistory(event);
    if (this.delivered.runId !== runId) this.delivered = { runId, count: 0 };
    this.delivered.count += 1;
    if (this.repeats > 0) this.repeats -= 1;
    else this.publish(event);
  }

  /** @param {any} event */
  publish(event) {
    const { type, runId } = event;
    if (this.followed?.runId !== runId || this.followed.end) this.followed = this.runs.get(runId) ?? new RemoteDriver({ runId, host: this.host, abort() {} });
    if (type === "agent_end") this.runs.delete(runId);
    this.followed?.take(event);
    this.dispatch(event);
  }

  /** @param {any} event */
  dispatch(event) {
    for (const listener of [...this.listeners]) {
      guarded(() => listener(event), (error) => {
        this.listeners.delete(listener);
        console.error("turnwheel: a subscriber threw and was removed", error);
      });
    }
  }

  /** @param {any} event */
  note(event) {
    const { type, runId, callId } = event;
    if (type === "agent_start" || type === "run_resumed") {
      this.running = runId;
      if (this.starting === runId) this.starting = undefined;
      if (type === "run_resumed") this.pendingApprovals = new Map(event.pendingApprovals.map((/** @type {any} */ call) => [call.callId, call]));
    } else if (type === "tool_approval_requested") this.pendingApprovals.set(callId, { type: "tool_call", callId, toolName: event.toolName, arguments: event.arguments });
    else if (type === "tool_approval_resolved") this.pendingApprovals.delete(callId);
    else if (type === "message_end") this.known.answer = event.message;
    else if (type === "tool_execution_end") this.known.results.set(callId, event.result);
    else if (type === "agent_end") {
      if (this.running === runId) this.running = undefined;
      if (this.starting === runId) this.starting = undefined;
      this.pendingApprovals.clear();
      const sum = { ...this.usage };
      for (const [key, tokens] of Object.entries(event.usage)) sum[key] = (sum[key] ?? 0) + tokens;
      this.usage = sum;
    }
  }

  /** Applies to the history what the event changed. @param {any} event */
  applyHistory(event) {
    const { historyChange: change, known } = this;
    this.historyChange = undefined;
    if (change) {
      const added = change.add.map((/** @type {any} */ item) => (item === "answer" ? known.answer : typeof item === "string" ? known.results.get(item.slice(1)) : item));
      this.messages = [...this.messages.slice(0, change.at), ...added];
    }
    if (event.type === "turn_end") this.known.results.clear();
  }

  dispose() {
    if (this.disposed) return;
    this.disposed = true;
    this.controller?.abort();
    this.controller = undefined;
    this.setConnection("idle");
    const error = abortError("the agent was disposed of");
    for (const run of [...this.runs.values()]) run.fail(error);
    this.runs.clear();
    for (const settle of this.openReceipts.values()) settle({ delivered: false, reason: "disposed" });
    this.openReceipts.clear();
    for (const { reject } of this.readyWaiters.splice(0)) reject(error);
    this.listeners.clear();
    this.wake();
  }
}
