// @ts-check
// An agent elsewhere, as its listeners and runs here need it: sends commands, delivers events, and keeps the mirror
// up to date.

import { AgentError, checkNames, complain, hostWithDefaults, misuse, Subscribers, textOf } from "../shared.js";
import { checkEvent, checkOther, readData } from "./check-event.js";
import { Connection } from "./connection.js";
import { abortError, abortWith, checkSignal, reconnectLimits } from "./http.js";
import { Mirror } from "./mirror.js";
import { bodyFor, Requests } from "./requests.js";
import { RemoteDriver } from "./run.js";

/** @import { AgentEvent, AgentMessage, Receipt } from "../index.js" */
/** @import { RemoteAgentOptions, RemoteRunOptions } from "../remote.js" */
/** @import { AgentEnd } from "../shared.js" */
/** @import { State } from "./connection.js" */
/** @import { ServerEvent } from "./eventsource.js" */
/** @import { Snapshot } from "./mirror.js" */
/** @typedef {Awaited<Receipt>} Fate */
/**
 * A posted message: its content as JSON, the length of the history before it, and the connection on which it was accepted.
 * @typedef {{ text: string, from: number, acceptedOn: number | undefined, settle(fate: Fate): void }} Letter
 */

/** As the server has it. */
const MAX_RUN_ID = 200;

export class Link {
  /** @param {RemoteAgentOptions} options */
  constructor(options) {
    this.options = options;
    this.host = hostWithDefaults(options.host);
    this.requests = new Requests(options, this.host, reconnectLimits(options.reconnects));
    // Whoever waits for an answer hears at once why there is none yet.
    this.requests.onUnreached = (error) => this.#reportError(new AgentError({ ...error.info, message: `${error.message}; it is tried again` }, error));
    this.connection = new Connection(this.requests, this);
    this.mirror = new Mirror();
    this.subscribers = new Subscribers((error) => this.#reportFailed(error));
    this.runs = new RemoteRuns();
    /** Posted messages whose receipt is still open. @type {Map<string, Letter>} */
    this.openReceipts = new Map();
    /** The connection on which the server accepted the run that is starting. @type {number | undefined} */
    this.startedOn = undefined;
    /** Callbacks waiting for the next message from the server. @type {(() => void)[]} */
    this.waiting = [];
    /** Promises waiting for the mirror. @type {{ resolve(): void, reject(error: unknown): void }[]} */
    this.readyWaiters = [];
    this.disposed = false;
  }

  get isWanted() {
    return !this.disposed && (this.subscribers.size > 0 || this.runs.held.size > 0 || this.openReceipts.size > 0 || this.readyWaiters.length > 0 || this.waiting.length > 0);
  }

  #checkUsable() {
    if (this.disposed) throw misuse("the agent was disposed of");
  }

  // ---- commands

  /** @param {"prompt" | "continue"} name @param {object} fields @param {RemoteRunOptions} [options] */
  run(name, fields, options = {}) {
    checkNames("unknown option", options, ["signal", "runId", "metadata", "streamOptions", "activeTools", "systemPrompt", "budget"]);
    const { signal, runId = this.host.id(), ...own } = options;
    const { mirror } = this;
    checkSignal(signal);
    this.#checkUsable();
    if (mirror.isRunning) throw misuse("the agent is already running; steer it, queue a follow-up, or wait for it");
    if (typeof runId !== "string" || runId === "" || runId.length > MAX_RUN_ID) throw misuse(`\`runId\` must be a text of at most ${MAX_RUN_ID} characters`);
    const body = bodyFor(this.host.id(), { ...fields, ...own, runId });
    mirror.starting = runId;
    this.startedOn = undefined;
    const start = { error: /** @type {AgentError | undefined} */ (undefined), isSent: false };
    const abort = (/** @type {unknown} */ reason) => {
      if (start.isSent) return void this.command("abort", { runId, ...(reason !== undefined && { reason: textOf(reason) }) });
      start.error = abortError(reason ?? "the run was aborted");
      this.#failStart(driver, start.error);
    };
    const driver = new RemoteDriver({ runId, host: this.host, abort, messages: () => mirror.messages });
    this.runs.held.set(runId, driver);
    this.connection.open();
    // Sends only once the mirror is ready: a run that ended before anybody listened would be missed.
    const before = async () => {
      if (!start.error) await this.ready();
      if (start.error) throw start.error;
      start.isSent = true;
    };
    this.requests.post(name, body, before).then(() => (this.startedOn = this.connection.requested), (error) => this.#failStart(driver, error));
    abortWith(signal, driver.result, (reason) => driver.run.abort(reason));
    return driver.run;
  }

  /** A run could not be started. @param {RemoteDriver} driver @param {AgentError} error */
  #failStart(driver, error) {
    const { mirror } = this;
    // If it has begun after all, its own end will be reported.
    if (mirror.starting !== driver.runId) return;
    mirror.starting = undefined;
    // Subscribers must not receive another run's events in the middle of the run in progress.
    driver.fail(error, mirror.running === undefined ? (event) => this.#deliver(event) : undefined);
    this.runs.held.delete(driver.runId);
    this.connection.closeIfUnused();
  }

  /** @param {"steer" | "follow-up"} name @param {AgentMessage} message @param {string} [when] @returns {Receipt} */
  postMessage(name, message, when) {
    this.#checkUsable();
    const id = this.host.id();
    const body = bodyFor(id, { input: message, when });
    const letter = { text: textOfLetter(message), from: this.mirror.messages.length, acceptedOn: /** @type {number | undefined} */ (undefined) };
    const receipt = new Promise((/** @type {(fate: Fate) => void} */ settle) => this.openReceipts.set(id, Object.assign(letter, { settle })));
    this.connection.open();
    // Waits for the mirror as well, or the receipt would be missed.
    this.requests.post(name, body, () => this.ready()).then((reply) => {
      letter.acceptedOn = this.connection.requested;
      // It was repeated, and had its receipt before anybody listened.
      if (isFate(reply.receipt)) this.#settleReceipt(id, reply.receipt);
    }, (error) => {
      this.#settleReceipt(id, { delivered: false, reason: "lost" });
      this.#reportError(error);
      this.connection.closeIfUnused();
    });
    return receipt;
  }

  /** @param {string} name @param {object} fields @returns {Promise<void>} */
  command(name, fields) {
    this.#checkUsable();
    const done = this.requests.post(name, bodyFor(this.host.id(), fields));
    // Whoever does not await the promise learns of the failure from `onError`.
    done.catch((error) => this.#reportError(error));
    return done;
  }

  /** @param {unknown} error */
  #reportError(error) {
    const { onError } = this.options;
    if (onError) guarded(() => onError(error));
    else if (!this.disposed) complain("turnwheel:", error);
  }

  /** A subscriber threw. @param {AgentError} error */
  #reportFailed(error) {
    const { onError } = this.options;
    if (onError) guarded(() => onError(error));
    return onError !== undefined;
  }

  // ---- listeners

  /** @param {(event: AgentEvent) => void} listener @param {{ keep?: boolean }} [options] */
  subscribe(listener, options) {
    this.#checkUsable();
    const remove = this.subscribers.add(listener, options);
    this.connection.open();
    return () => {
      remove();
      this.connection.closeIfUnused();
    };
  }

  /** Resolves when the mirror is up to date. @returns {Promise<void>} */
  ready() {
    if (this.disposed) return Promise.reject(misuse("the agent was disposed of"));
    const { connection } = this;
    if (connection.isReady && connection.state === "open") return Promise.resolve();
    return new Promise((resolve, reject) => {
      this.readyWaiters.push({ resolve, reject });
      connection.open();
    });
  }

  async waitForIdle() {
    await this.ready();
    while (this.mirror.isRunning && !this.disposed) await this.#nextMessage();
  }

  /** Resolves at the next message from the server. @returns {Promise<void>} */
  #nextMessage() {
    return new Promise((resolve) => {
      this.waiting.push(resolve);
      this.connection.open();
    });
  }

  #wake() {
    for (const waiting of this.waiting.splice(0)) waiting();
  }

  // ---- the connection

  /** @param {State} state */
  stateChanged(state) {
    guarded(() => this.options.onConnection?.(state));
  }

  /** The server is unreachable: everything that waits for it fails. @param {AgentError} error */
  giveUp(error) {
    const unended = this.runs.unended();
    const isHeld = this.runs.held.size > 0;
    this.runs.held.clear();
    this.mirror.stop();
    for (const run of unended) this.#endRun(run, error);
    this.#failWaiting(error, { delivered: false, reason: "lost" });
    if (!isHeld) this.#reportError(error);
  }

  /** @param {unknown} error @param {Fate} fate of posted messages */
  #failWaiting(error, fate) {
    for (const { settle } of this.openReceipts.values()) settle(fate);
    this.openReceipts.clear();
    for (const { reject } of this.readyWaiters.splice(0)) reject(error);
    this.#wake();
  }

  /** @param {RemoteDriver} run @param {AgentError} error @param {AgentEnd} [endEvent] how it ended, if that is known */
  #endRun(run, error, endEvent) {
    run.fail(error, (event) => (run.take(event), this.subscribers.dispatch(event)), endEvent);
  }

  /** @param {ServerEvent} event */
  take({ id, type, data }) {
    const { connection, mirror } = this;
    const { last } = connection;
    // Skips events that arrive a second time.
    if (type !== "state" && type !== "history" && id !== undefined && last !== "" && Number(id) <= Number(last)) return void (mirror.change = undefined);
    const value = checkOther(type, readData(data));
    if (type === "history") mirror.change = value;
    else if (type === "state") this.#takeSnapshot(value);
    else if (type === "receipt") this.#settleReceipt(value.id, value.receipt);
    else if (type === "ready") this.#markReady();
    else if (type === "message") this.#deliver(checkEvent(value), data);
    mirror.checkSize(this.requests.sizes.historyBytes);
    if (id !== undefined) connection.last = id;
    this.#wake();
    if (!this.isWanted) connection.closeIfUnused();
  }

  #markReady() {
    this.connection.ready();
    for (const { resolve } of this.readyWaiters.splice(0)) resolve();
  }

  /** @param {string} id @param {Fate} fate */
  #settleReceipt(id, fate) {
    this.openReceipts.get(id)?.settle(fate);
    this.openReceipts.delete(id);
  }

  /** Replaces the mirror by a snapshot of the agent. @param {Snapshot} snapshot */
  #takeSnapshot(snapshot) {
    const { run } = snapshot;
    this.mirror.replace(snapshot);
    this.#settleByHistory(snapshot);
    this.#endUnheardRuns(snapshot);
    const missed = this.runs.continueAt(run);
    if (run && missed) this.#publish({ type: "run_resumed", runId: run.runId, at: this.host.now(), turnIndex: run.turnIndex ?? 0, pendingApprovals: snapshot.pendingApprovals, ...(snapshot.pendingQuestions && { pendingQuestions: snapshot.pendingQuestions }), runningTools: [] });
  }

  /**
   * Settles the receipts of messages that the agent does not have any more: it has read them, or they are lost. One that
   * was not accepted yet is still on its way, and is sent again if need be.
   * @param {Snapshot} snapshot
   */
  #settleByHistory({ messages, openLetters, receipts = {}, run, ended }) {
    for (const [id, { text, from, acceptedOn }] of [...this.openReceipts]) {
      const told = Object.hasOwn(receipts, id) ? receipts[id] : undefined;
      if (told) this.#settleReceipt(id, told);
      if (told || openLetters.includes(id) || acceptedOn === undefined) continue;
      const isRead = messages.slice(from).some((message) => message.role === "user" && textOfLetter(message) === text);
      this.#settleReceipt(id, isRead ? { delivered: true, turnIndex: run?.turnIndex ?? ended?.turns ?? 0 } : { delivered: false, reason: "lost" });
    }
  }

  /** Ends the runs here that the agent is not running any more. @param {Snapshot} snapshot */
  #endUnheardRuns({ messages, run, ended }) {
    const { mirror, runs } = this;
    for (const driver of runs.unended()) {
      const { runId } = driver;
      // One that was accepted before this connection would be in the snapshot.
      const isComing = runId === mirror.starting && runId !== ended?.runId && !(this.startedOn !== undefined && this.startedOn < this.connection.requested);
      if (runId === run?.runId || isComing) continue;
      runs.held.delete(runId);
      if (runId === mirror.starting) mirror.starting = undefined;
      const end = ended?.runId === runId ? { ...ended, messages: messages.slice(messages.length - ended.messages) } : undefined;
      const error = new AgentError({ code: "network", message: "the run went on unheard, and its events are gone", retryable: false });
      this.#endRun(driver, error, end);
    }
  }

  /** Delivers an event: first to the mirror, then to everybody else. @param {AgentEvent} event @param {string} [data] its text */
  #deliver(event, data = "") {
    this.mirror.measure(event, data, this.requests.sizes.runBytes);
    this.mirror.take(event);
    if (!this.runs.isRepeat(event.runId)) this.#publish(event, data);
  }

  /** @param {AgentEvent} event @param {string} [data] */
  #publish(event, data = "") {
    const run = this.runs.follow(event.runId, this.host);
    run.measure(data, this.requests.sizes.runBytes);
    if (event.type === "agent_end") this.runs.held.delete(event.runId);
    run.take(event);
    this.subscribers.dispatch(event);
  }

  dispose() {
    if (this.disposed) return;
    this.disposed = true;
    this.requests.isClosed = true;
    this.connection.close();
    const error = abortError("the agent was disposed of");
    for (const run of [...this.runs.held.values()]) run.fail(error);
    this.runs.held.clear();
    this.subscribers.clear();
    this.#failWaiting(error, { delivered: false, reason: "disposed" });
  }
}

/** The runs of an agent elsewhere, as far as they were heard here. */
class RemoteRuns {
  constructor() {
    /** The runs that somebody here holds. @type {Map<string, RemoteDriver>} */
    this.held = new Map();
    /** The run whose events the subscribers got last. @type {RemoteDriver | undefined} */
    this.followed = undefined;
    /** How many events of the current run were delivered. */
    this.delivered = { runId: "", count: 0 };
    /** How many of them will arrive a second time. */
    this.repeats = 0;
  }

  /** The runs whose end has not arrived here: those that are held, and the one that subscribers follow. */
  unended() {
    const { followed } = this;
    return [...new Set([...this.held.values(), ...(followed && !followed.end ? [followed] : [])])];
  }

  /** Returns the run that an event belongs to. @param {string} runId @param {RemoteDriver["host"]} host */
  follow(runId, host) {
    if (!this.followed || this.followed.runId !== runId || this.followed.end) this.followed = this.held.get(runId) ?? new RemoteDriver({ runId, host, abort() {} });
    return this.followed;
  }

  /** Counts an event; returns whether it was delivered before. @param {string} runId */
  isRepeat(runId) {
    if (this.delivered.runId !== runId) this.delivered = { runId, count: 0 };
    this.delivered.count += 1;
    if (this.repeats === 0) return false;
    this.repeats -= 1;
    return true;
  }

  /**
   * The events go on at a place that a snapshot tells: those that were delivered already will be skipped.
   * Returns whether some were missed.
   * @param {Snapshot["run"]} run
   */
  continueAt(run) {
    this.repeats = 0;
    if (!run || run.told === null) return false;
    const { runId, told } = run;
    const delivered = this.delivered.runId === runId ? this.delivered.count : 0;
    this.delivered = { runId, count: told };
    this.repeats = Math.max(0, delivered - told);
    return told > delivered;
  }
}

/**
 * Calls a function of the host without waiting for it; its failure must not stop anything.
 * @param {() => unknown} call
 */
function guarded(call) {
  try {
    const answer = /** @type {PromiseLike<unknown> | undefined} */ (call());
    if (typeof answer?.then === "function") answer.then(undefined, report);
  } catch (error) {
    report(error);
  }
}

/** @param {unknown} error */
const report = (error) => complain("turnwheel: a callback of RemoteAgent's options failed", error);

/** What a message is recognised by. @param {AgentMessage} message */
const textOfLetter = (message) => JSON.stringify(message.role === "custom" ? [message.kind, message.data] : message.content);

/** @param {any} value @returns {value is Fate} */
const isFate = (value) => typeof value?.delivered === "boolean";
