// @ts-check
// An agent in a Durable Object that survives its eviction: every event is stored in SQLite before any listener gets it,
// together with its checkpoint. An object that was evicted from memory continues where it was.

import { DurableObject } from "cloudflare:workers";
import { Agent } from "turnwheel";
import { agentHandler, durableObjectEvents } from "turnwheel/server";
import { durableObjectStore } from "turnwheel/stores";

/** During a run, an alarm wakes the object if it is evicted. */
const WATCH_MS = 30_000;
const ID = "agent";

/** Extend this class with `options()`, which returns the options of the agent. */
export class DurableAgent extends DurableObject {
  /** @param {any} ctx @param {any} env */
  constructor(ctx, env) {
    super(ctx, env);
    /** @type {any} */
    this.env = env;
    /** @type {any} */
    this.ctx = ctx;
    /** A back-off longer than this is an alarm, so that the object need not stay in memory. */
    this.longMs = 10_000;
    /** The interval of keep-alives to a silent listener. */
    this.keepAliveMs = 15_000;
    /** The time of the alarm; 0 if there is none. */
    this.alarmAt = 0;
    /** Whether the run waits before it calls the model again. */
    this.isBackingOff = false;
    /** Back-offs that wait for an alarm. @type {{ until: number, wake(): void }[]} */
    this.sleepers = [];
    /** Whether the checkpoint says that the streaming answer has begun; its pieces then need no checkpoint. */
    this.isDrafted = false;
    ctx.blockConcurrencyWhile(() => this.wake());
  }

  /**
   * The options of the agent: model, tools, prompts.
   * @returns {any}
   */
  options() {
    throw new Error("extend DurableAgent with options()");
  }

  /** The limits of one object. @returns {any} */
  limits() {
    return { historyBytes: 1_000_000, listeners: 50, commandsPerMinute: 120, events: 5000 };
  }

  /** Whether a request is allowed: authenticate in the Worker in front, or here. @param {Request} _request @returns {any} */
  authorize(_request) {
    return true;
  }

  async wake() {
    this.store = durableObjectStore(this.ctx.storage);
    this.alarmAt = (await this.ctx.storage.getAlarm()) ?? 0;
    const saved = await this.store.load(ID);
    const options = this.options();
    const agentOptions = { ...options, host: { ...options.host, sleep: (/** @type {number} */ ms, /** @type {AbortSignal} */ signal) => this.sleep(ms, signal) } };
    this.agent = saved ? Agent.restore(saved, agentOptions) : new Agent(agentOptions);
    const events = durableObjectEvents(this.ctx.storage, { also: (entry) => this.save(entry) });
    this.handler = agentHandler(this.agent, { events, limits: this.limits(), keepAliveMs: this.keepAliveMs, authorize: (request) => this.authorize(request), commit: () => this.saveNow() });
    this.agent.subscribe((event) => this.watch(event), { keep: true });
    /** @type {any} */
    const state = saved?.metadata["turnwheel"];
    if (!state?.run && state?.prompts === undefined) return;
    this.isBackingOff = state.run?.phase?.step === "backing_off";
    this.agent.continue();
  }

  /** @param {Request} request @returns {Promise<Response>} */
  fetch(request) {
    return this.handler(request);
  }

  /** Called inside the transaction that stores an event: both are stored, or neither. @param {{ type: string, data: string }} entry */
  save({ data }) {
    // An interrupted answer is requested again, so its pieces are stored in the log only; the checkpoint says that it has begun.
    const isPiece = data.startsWith('{"type":"message_update"');
    if (isPiece && this.isDrafted) return;
    this.isDrafted = isPiece;
    this.saveNow();
  }

  saveNow() {
    this.store?.saveNow(ID, this.agent.checkpoint());
  }

  /** @param {any} event */
  watch({ type }) {
    if (type === "retry_attempt") this.isBackingOff = true;
    else if (type === "message_update" || type === "message_end") this.isBackingOff = false;
    if (type === "agent_end") return this.ring(0);
    // An approval request may wait for days, and nothing else runs meanwhile; its answer wakes the object.
    if (type === "tool_approval_requested") return this.ring(0);
    if (this.agent.pendingApprovals.length === 0) this.ring(Date.now() + WATCH_MS);
  }

  /** @param {number} at @param {boolean} [isExact] */
  ring(at, isExact = false) {
    const now = Date.now();
    if (at === 0 ? this.alarmAt === 0 : !isExact && this.alarmAt > now + WATCH_MS / 3) return;
    this.alarmAt = at;
    // It is stored together with all writes of the same task.
    const done = at === 0 ? this.ctx.storage.deleteAlarm() : this.ctx.storage.setAlarm(at);
    done.catch(() => {});
  }

  /** @param {number} ms @param {AbortSignal} signal @returns {Promise<void>} */
  sleep(ms, signal) {
    return new Promise((resolve) => {
      if (ms < this.longMs || !this.isBackingOff) {
        const end = () => {
          clearTimeout(timer);
          signal.removeEventListener("abort", end);
          resolve();
        };
        const timer = setTimeout(end, ms);
        return signal.addEventListener("abort", end);
      }
      const until = Date.now() + ms;
      this.ring(until, true);
      const sleeper = { until, wake: resolve };
      this.sleepers.push(sleeper);
      signal.addEventListener("abort", () => (this.sleepers = this.sleepers.filter((other) => other !== sleeper), resolve()), { once: true });
    });
  }

  /** The run continues already: `wake` resumed it when the object woke. */
  async alarm() {
    this.alarmAt = 0;
    const now = Date.now();
    const due = this.sleepers.filter(({ until }) => until <= now + 50);
    this.sleepers = this.sleepers.filter((other) => !due.includes(other));
    for (const { wake } of due) wake();
    const [next] = this.sleepers.map(({ until }) => until).sort((a, b) => a - b);
    if (next !== undefined) this.ring(next, true);
    else if (this.agent.isRunning && this.agent.pendingApprovals.length === 0) this.ring(now + WATCH_MS);
  }
}
