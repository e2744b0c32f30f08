// @ts-check
// One process of a fleet: it has the agents that somebody asks for or that have something to do, gives back those that
// sleep, goes on with the runs of processes that are gone, and hands over what it has when it has to go itself.

import { complain, kindOf, misuse, textOf } from "../../shared.js";
import { checkId } from "../by-lease.js";

/** @import { FleetCounts, FleetOptions, FleetStore, Lease, OpenAgent } from "../../stores-node.js" */
/** An agent that is open here. @typedef {OpenAgent & { lease: Lease, requests: number, usedAt: number }} Seat */

const AGENTS = 1_000;
const IDLE_MS = 60_000;
const TAKEOVER_MS = 1_000;
/** A run whose agent could not be opened is left to others for so long, and longer each time, up to that. */
const [SHUN_MS, MAX_SHUN_MS] = [5_000, 300_000];
const OPTIONS = ["open", "agents", "idleMs", "takeoverMs", "onError"];
const MAX_TIMER_MS = 2 ** 31 - 1;

/** @param {FleetStore} store @param {FleetOptions} options */
export function joinFleet(store, options) {
  if (typeof store?.claim !== "function" || typeof store.abandoned !== "function") throw misuse(`joinFleet takes a store that processes share, such as postgresStore(pool), got ${kindOf(store)}`);
  if (typeof options?.open !== "function") throw misuse(`joinFleet needs a function \`open\` that gives { agent, handler }, got ${kindOf(options?.open)}`);
  for (const name of Object.keys(options)) if (!OPTIONS.includes(name)) throw misuse(`unknown option \`${name}\` of joinFleet; there are ${OPTIONS.join(", ")}`);
  for (const name of /** @type {const} */ (["agents", "idleMs", "takeoverMs"])) if (options[name] !== undefined && !(options[name] > 0)) throw misuse(`\`${name}\` must be a number above 0, got ${options[name]}`);
  return new Fleet(store, options);
}

class Fleet {
  #store;
  #options;
  /** By id. @type {Map<string, Seat>} */
  #seats = new Map();
  /** Agents that are being claimed. @type {Map<string, Promise<Seat | undefined>>} */
  #claims = new Map();
  /** Agents that are being given back. @type {Map<string, Promise<void>>} */
  #returns = new Map();
  /** Runs that could not go on here: until when they are left to others, and how often they failed. @type {Map<string, { until: number, times: number }>} */
  #shunned = new Map();
  #counts = { claimed: 0, takenOver: 0, handedOver: 0, lost: 0, passedOn: 0 };
  /** @type {ReturnType<typeof setTimeout>[]} */
  #timers = [];
  #isTakingOver = false;
  /** @type {Promise<void> | undefined} */
  #leaving;

  /** @param {FleetStore} store @param {FleetOptions} options */
  constructor(store, options) {
    const { agents = AGENTS, idleMs = IDLE_MS, takeoverMs = TAKEOVER_MS, onError = (error, id) => complain(`turnwheel/stores/node: \`${id}\``, textOf(error)) } = options;
    this.#store = store;
    this.#options = { ...options, agents, idleMs, onError };
    this.#every(Math.min(idleMs / 4, 5_000), () => this.#giveBackIdle());
    if (takeoverMs < Infinity) this.#every(takeoverMs, () => void this.#takeOver());
  }

  get isLeaving() {
    return this.#leaving !== undefined;
  }

  /** @returns {FleetCounts} */
  counts() {
    const seats = [...this.#seats.values()];
    return { agents: seats.length, running: seats.filter(({ agent }) => agent.isRunning).length, listeners: seats.reduce((sum, { handler }) => sum + (handler?.listeners ?? 0), 0), ...this.#counts };
  }

  /** @param {string} id @param {Request} request @returns {Promise<Response>} */
  async answer(id, request) {
    let seat;
    try {
      checkId(id);
    } catch (error) {
      // Ids come from clients.
      return Response.json({ error: { code: "invalid_request", message: textOf(error) } }, { status: 400 });
    }
    try {
      seat = await this.#seatOf(id);
      if (!seat) return await this.#refusal(id);
    } catch (error) {
      this.#options.onError(error, id);
      return unavailable("the agent could not be opened; the server's log says why");
    }
    if (!seat.handler) return Response.json({ error: { code: "invalid_request", message: "the agent answers no requests: `open` gave no handler" } }, { status: 404 });
    seat.requests += 1;
    try {
      return await seat.handler(request);
    } finally {
      seat.requests -= 1;
      seat.usedAt = performance.now();
    }
  }

  /** @param {string} id @returns {Promise<OpenAgent | undefined>} */
  async open(id) {
    return this.#seatOf(id);
  }

  /** Somebody else has it, or nobody can have it now. @param {string} id */
  async #refusal(id) {
    const owner = await this.#store.owner(id);
    if (owner === undefined) return unavailable(this.isLeaving ? "this process is about to end" : "there are too many agents here, or another process has just given this one back");
    this.#counts.passedOn += 1;
    return Response.json({ error: { code: "misuse", message: `the agent belongs to another process at present: ${owner}` }, owner }, { status: 409, headers: { "turnwheel-owner": owner, "cache-control": "no-store" } });
  }

  /** @param {string} id @returns {Promise<Seat | undefined>} */
  #seatOf(id) {
    const seat = this.#seats.get(id);
    if (seat?.lease.isHeld) return Promise.resolve(seat);
    if (this.isLeaving || this.#seats.size + this.#claims.size >= this.#options.agents) return Promise.resolve(undefined);
    const claim = this.#claims.get(id) ?? this.#claim(id).finally(() => this.#claims.delete(id));
    this.#claims.set(id, claim);
    return claim;
  }

  /** @param {string} id @returns {Promise<Seat | undefined>} */
  async #claim(id) {
    await this.#returns.get(id);
    const lease = await this.#store.claim(id);
    if (!lease) return;
    this.#counts.claimed += 1;
    let seat;
    try {
      const { agent, handler } = await this.#options.open(lease);
      seat = { agent, ...(handler && { handler }), lease, requests: 0, usedAt: performance.now() };
      // The process began to hand over meanwhile.
      if (this.isLeaving || !lease.isHeld) {
        await this.#giveBack(id, seat);
        return;
      }
      this.#seats.set(id, seat);
      if (lease.wasRunning) {
        this.#counts.takenOver += 1;
        agent.continue();
      }
      this.#shunned.delete(id);
    } catch (error) {
      this.#seats.delete(id);
      this.#shun(id);
      seat?.handler?.[DISPOSE]();
      await lease.release().catch(() => {});
      throw error;
    }
    const held = seat;
    lease.signal.addEventListener("abort", () => this.#lose(id, held), { once: true });
    if (lease.signal.aborted) this.#lose(id, held);
    return held;
  }

  /** Otherwise it would be claimed, and fail, for ever. @param {string} id */
  #shun(id) {
    const times = (this.#shunned.get(id)?.times ?? 0) + 1;
    this.#shunned.set(id, { until: performance.now() + Math.min(SHUN_MS * 2 ** (times - 1), MAX_SHUN_MS), times });
  }

  /** @param {string} id @param {Seat} seat */
  #lose(id, seat) {
    this.#counts.lost += 1;
    // Nobody else has it: it cannot be stored.
    if (seat.lease.signal.reason?.code !== "lost_lease") this.#shun(id);
    if (this.#seats.get(id) === seat) this.#seats.delete(id);
    // Its listeners come back, and find who has it now.
    seat.handler?.[DISPOSE]();
  }

  /** @param {string} id @param {Seat} seat @param {() => Promise<void>} [how] */
  #giveBack(id, seat, how = () => seat.lease.release()) {
    const done = how().catch((error) => this.#options.onError(error, id)).finally(() => {
      if (this.#seats.get(id) === seat) this.#seats.delete(id);
      seat.handler?.[DISPOSE]();
      this.#returns.delete(id);
    });
    this.#returns.set(id, done);
    return done;
  }

  #giveBackIdle() {
    const since = performance.now() - this.#options.idleMs;
    for (const [id, seat] of this.#seats) {
      const isUsed = seat.agent.isRunning || seat.requests > 0 || (seat.handler?.listeners ?? 0) > 0;
      if (isUsed) seat.usedAt = performance.now();
      else if (seat.usedAt <= since) void this.#giveBack(id, seat);
    }
  }

  async #takeOver() {
    if (this.#isTakingOver || this.isLeaving) return;
    this.#isTakingOver = true;
    try {
      const ids = await this.#store.abandoned();
      // All processes look at the same list.
      for (const id of shuffled(ids)) {
        if (this.isLeaving || (this.#shunned.get(id)?.until ?? 0) > performance.now()) continue;
        await this.#seatOf(id).catch((error) => this.#options.onError(error, id));
      }
    } catch (error) {
      this.#options.onError(error, "*");
    } finally {
      this.#isTakingOver = false;
    }
  }

  /** @param {{ graceMs?: number }} [options] @returns {Promise<void>} */
  handOver(options) {
    return (this.#leaving ??= this.#leave(options));
  }

  /** @param {{ graceMs?: number } | undefined} options */
  async #leave(options) {
    for (const timer of this.#timers) clearTimeout(timer);
    await Promise.allSettled(this.#claims.values());
    await Promise.all([...this.#seats].map(([id, seat]) => this.#giveBack(id, seat, () => seat.lease.handOver(options).then(() => void this.#counts.handedOver++))));
  }

  [Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")]() {
    return this.handOver();
  }

  /** Does something again and again, not all processes at once. @param {number} ms @param {() => void} work */
  #every(ms, work) {
    const at = this.#timers.length;
    const next = () => {
      const timer = (this.#timers[at] = setTimeout(() => {
        work();
        if (!this.isLeaving) next();
      }, Math.min(ms * (0.75 + Math.random() / 2), MAX_TIMER_MS)));
      /** @type {any} */ (timer).unref?.();
    };
    next();
  }
}

/** @type {typeof Symbol.dispose} */
const DISPOSE = Symbol.dispose ?? Symbol.for("Symbol.dispose");

/** @param {string} message */
const unavailable = (message) => Response.json({ error: { code: "overloaded", message } }, { status: 503, headers: { "retry-after": "1", "cache-control": "no-store" } });

/** @template T @param {T[]} list @returns {T[]} */
const shuffled = (list) => list.map((value) => ({ value, at: Math.random() })).sort((a, b) => a.at - b.at).map(({ value }) => value);
