// @ts-check
// One of the tabs that share an agent: it owns the agent, or follows the tab that does. Every tab waits for the lock of the
// agent, so when the owner goes, the next one has it at once.

import { abortController, complain, misuse, uuid } from "../shared.js";
import { CLAIMS, lockOf, onLeave } from "../stores/locks.js";
import { Asks } from "./asks.js";
import { Channels } from "./channel.js";

/** @import { AgentHandlerOptions } from "../server.js" */
/** @import { Claim, Claims } from "../stores/locked.js" */
/** @import { How } from "../stores/hold.js" */
/** @import { MakeAgent, TabRole } from "../tabs.js" */
/** @import { Message } from "./messages.js" */
/** @import { Owned } from "./owner.js" */
/** @import { Watch } from "./watch.js" */
/**
 * @typedef {object} TabOptions
 * @property {string} id
 * @property {MakeAgent} make
 * @property {Claims | undefined} claims where the agent is kept, if that was chosen
 * @property {string | undefined} scope of the store; none where tabs cannot share an agent
 * @property {AgentHandlerOptions} handler
 * @property {number} waiting
 * @property {number} messageBytes
 * @property {number} stealMs
 * @property {(() => SharedWorker) | undefined} worker
 * @property {(role: TabRole, info: { tookMs: number }) => void} onRole
 * @property {(error: unknown) => void} onError
 */

/** A tab that follows gets ready to own when it has nothing else to do, at the latest then. */
const IDLE_MS = 2000;
/** How long a tab waits before it tries again to own an agent that could not be made; doubled each time. */
const RETRY_MS = 1000;
const MAX_RETRY_MS = 30_000;
/** How long a tab waits at most until it asks the store again who the owner is, when the store knew of no newer one. */
const CHECK_MS = 1000;
/** So many messages wait for what the store says. */
const MAX_UNCHECKED = 100;

export class Tab {
  /** @param {TabOptions} options */
  constructor(options) {
    this.options = options;
    this.tab = uuid();
    /** @type {TabRole | undefined} */
    this.role = undefined;
    /** @type {Owned | undefined} */
    this.owned = undefined;
    this.isGone = false;
    this.isAway = false;
    this.failures = 0;
    /** Ends the wait for the lock. @type {AbortController | undefined} */
    this.waiting = undefined;
    /** When the owner said that it leaves. */
    this.leftAt = 0;
    this.isWarm = false;
    /** While this tab makes the agent. @type {Claim["lease"] | undefined} */
    this.making = undefined;
    /** What belongs to the owner, which is loaded meanwhile. */
    this.ownerHalf = import("./owner.js");
    this.ownerHalf.catch(() => {});
    /** Where the agent is kept. @type {Promise<Claims>} */
    this.claims = options.claims ? Promise.resolve(options.claims) : import("../stores/indexed-db.js").then(({ indexedDBStore }) => indexedDBStore()[CLAIMS]);
    this.claims.catch(() => {});
    /** The highest epoch that the store knows of, as far as this tab knows. */
    this.known = 0;
    /** Messages with a higher one. @type {Message[]} */
    this.unchecked = [];
    this.isChecking = false;
    const name = lockOf(options.scope ?? "", options.id);
    this.channels = new Channels(name, this.tab, options.messageBytes, (message) => this.#take(message));
    this.asks = new Asks(this.tab, (message) => this.channels.post(message), () => this.owned?.answer, options.messageBytes);
    /** Loaded with what belongs to the owner. @type {Watch | undefined} */
    this.watch = undefined;
    this.settle = () => {};
    this.refuse = (/** @type {unknown} */ _) => {};
    /** Resolves when it is known whether this tab owns the agent. @type {Promise<void>} */
    this.settled = new Promise((resolve, reject) => {
      this.settle = resolve;
      this.refuse = reject;
    });
    this.settled.catch(() => {});
    this.stopListening = () => {};
  }

  /** Whether it neither owns nor follows at present. */
  get isOff() {
    return this.isAway || this.isGone;
  }

  /** Begins; resolves when it is known who owns the agent. */
  async begin() {
    const { scope, id } = this.options;
    if (scope === undefined) {
      const { alone } = await this.ownerHalf;
      await this.#own(alone(id), "alone");
      return;
    }
    const stopLeaving = onLeave(() => this.#leave());
    const back = (/** @type {Event} */ event) => {
      if (event.type === "resume" || /** @type {PageTransitionEvent} */ (event).persisted) this.#join();
    };
    globalThis.addEventListener?.("pageshow", back);
    globalThis.document?.addEventListener?.("resume", back);
    this.stopListening = () => {
      stopLeaving();
      globalThis.removeEventListener?.("pageshow", back);
      globalThis.document?.removeEventListener?.("resume", back);
    };
    this.#enter();
    await this.settled;
  }

  #enter() {
    this.channels.join();
    this.ping();
    // If it cannot be loaded, whoever waits for the lock says so.
    this.#watchOwner().catch(() => {});
    const { worker, onError } = this.options;
    if (!worker) return void this.wait();
    import("./worker.js").then(({ followWorker }) => followWorker(this, worker)).catch(onError);
  }

  /** The page came back. */
  #join() {
    if (!this.isAway || this.isGone) return;
    this.isAway = false;
    this.#enter();
    this.asks.repeat();
  }

  /** The page goes, perhaps to come back: another tab must not wait for it. */
  #leave() {
    if (this.isOff) return;
    this.isAway = true;
    this.waiting?.abort();
    this.owned?.lease.lose();
    this.#stepDown();
    this.channels.leave();
    this.watch?.stop();
    this.asks.pause();
  }

  /** @param {TabRole} role @param {number} tookMs */
  #setRole(role, tookMs = 0) {
    this.settle();
    if (this.role === role) return;
    this.role = role;
    if (role === "follower" && !this.options.worker) this.#warmUp();
    try {
      this.options.onRole(role, { tookMs });
    } catch (error) {
      complain("turnwheel/tabs: onRole threw", error);
    }
  }

  ping() {
    this.channels.post({ v: 1, type: "ping", from: this.tab });
  }

  /** @param {Message} message */
  #take(message) {
    if (!("epoch" in message)) {
      if (message.type === "ping" && this.making) this.channels.post({ v: 1, type: "soon", epoch: this.making.fence });
      return this.owned?.answers.take(message);
    }
    if (message.epoch > this.known) return void this.#check(message);
    if (!this.asks.take(message)) return;
    if (message.type === "bye") this.leftAt = performance.now();
    else if (message.type !== "soon" && !this.owned) this.#setRole("follower");
  }

  /** Somebody speaks of a newer owner. Any script of this origin can do so, and only the store knows. @param {Message} message */
  async #check(message) {
    if (this.unchecked.length < MAX_UNCHECKED) this.unchecked.push(message);
    if (this.isChecking) return;
    this.isChecking = true;
    try {
      while (this.unchecked.length > 0 && !this.isOff) {
        const fence = await (await this.claims).fence(this.options.id);
        const isNewer = fence > this.known;
        this.known = Math.max(fence, this.known);
        // Another tab has taken over while this one slept; its lease says so too, only later.
        if (this.owned && fence > this.owned.lease.fence) this.owned.lease.lose();
        for (const message of this.unchecked.splice(0)) if ("epoch" in message && message.epoch <= this.known) this.#take(message);
        // The owner may have said so while nothing more could wait here.
        if (isNewer) this.ping();
        else await new Promise((resolve) => setTimeout(resolve, Math.min(CHECK_MS, this.options.stealMs / 10)));
      }
    } catch (error) {
      this.unchecked = [];
      this.options.onError(error);
    } finally {
      this.isChecking = false;
    }
  }

  // ---- owning

  /** Loads ahead what an owner needs: whoever takes over must not wait for it. */
  #warmUp() {
    if (this.isWarm) return;
    this.isWarm = true;
    const work = async () => {
      const [{ warmUp }, claims] = await Promise.all([this.ownerHalf, this.claims]);
      if (!this.isOff) await warmUp(claims, this.options.id);
    };
    // What fails here is tried again, and told, when it is needed.
    const begin = () => void work().catch(() => {});
    if (typeof requestIdleCallback === "function") requestIdleCallback(begin, { timeout: IDLE_MS });
    else setTimeout(begin);
  }

  /** Waits for the lock, and owns the agent when it has it. @param {How} [how] */
  async wait(how) {
    const { id } = this.options;
    this.waiting?.abort();
    const waiting = (this.waiting = abortController());
    const isWanted = () => !this.isOff && this.waiting === waiting;
    try {
      const claimed = await (await this.claims).claim(id, how ?? { waitMs: Infinity, signal: waiting.signal });
      if (!claimed) return;
      if (!isWanted()) return void claimed.lease.release();
      await this.#own(claimed, "owner");
      this.failures = 0;
    } catch (error) {
      if (!this.role) return this.refuse(error);
      this.options.onError(error);
      this.asks.fail(error);
      const pause = Math.min(MAX_RETRY_MS, RETRY_MS * 2 ** this.failures++);
      setTimeout(() => isWanted() && void this.wait(), pause);
    }
  }

  /** @param {Claim} claimed @param {TabRole} role */
  async #own(claimed, role) {
    const { lease } = claimed;
    const { channels, options } = this;
    lease.signal.addEventListener("abort", () => this.#lost(lease));
    this.making = lease;
    this.known = Math.max(lease.fence, this.known);
    try {
      const { own } = await this.ownerHalf;
      this.owned = await own(claimed, options, channels);
    } catch (error) {
      await lease.release();
      throw error;
    } finally {
      this.making = undefined;
    }
    // Much may have happened while it was made.
    if (this.isGone) return void this.close();
    if (lease.signal.aborted) return this.#lost(lease);
    channels.post({ v: 1, type: "owner", epoch: lease.fence });
    this.asks.ownerIs(lease.fence, true);
    const since = this.leftAt || claimed.at;
    this.leftAt = 0;
    this.#setRole(role, performance.now() - since);
  }

  /** @param {Claim["lease"]} lease */
  #lost(lease) {
    if (this.owned?.lease !== lease) return;
    this.#stepDown();
    if (this.isOff) return;
    this.#setRole("follower");
    this.ping();
    void this.wait();
  }

  /** Answers nobody any more. What the agent still says is told to nobody, and stored nowhere. */
  #stepDown() {
    const { owned } = this;
    if (!owned) return;
    this.owned = undefined;
    owned.answers.close();
    this.channels.post({ v: 1, type: "bye", epoch: owned.lease.fence });
    owned.handler[Symbol.dispose ?? Symbol.for("Symbol.dispose")]();
    owned.agent.abort("another tab has the agent now");
  }

  /** Gives the agent to the tab that has waited longest. */
  async handOver() {
    const { owned } = this;
    if (!owned || this.role === "alone") return;
    // What was told is stored, and what comes after it is not told.
    await owned.lease.release();
    if (this.owned !== owned) return;
    this.#stepDown();
    this.#setRole("follower");
    void this.wait();
  }

  async #watchOwner() {
    const { Watch } = await this.ownerHalf;
    this.watch ??= new Watch(this.asks, this.options.stealMs, () => this.ping(), () => void this.#steal());
    if (!this.isOff) this.watch.start();
  }

  async #steal() {
    if (this.owned || this.isOff) return;
    // Of several tabs that have lost patience, one takes it.
    await navigator.locks.request(`${this.channels.name}:steal`, { ifAvailable: true }, async (lock) => {
      if (lock && this.watch?.isSilent) await this.wait({ steal: true });
    });
  }

  // ---- the end

  async close() {
    this.isGone = true;
    this.waiting?.abort();
    this.watch?.stop();
    this.stopListening();
    await this.owned?.lease.release();
    this.#stepDown();
    this.channels.leave();
    this.asks.fail(misuse("the agent was disposed of"));
  }
}
