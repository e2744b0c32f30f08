// @ts-check
// One agent in all tabs: in each of them a RemoteAgent, whose requests go to the tab that owns the agent.

import { RemoteAgent } from "../remote/agent.js";
import { checkFunctions, checkNames, complain, kindOf, misuse, numbersWithDefaults, sleep } from "../shared.js";
import { CLAIMS, DATABASE, hasLocks } from "../stores/locks.js";
import { Tab } from "./tab.js";

/** @import { Claims } from "../stores/locked.js" */
/** @import { MakeAgent, SharedOptions } from "../tabs.js" */
/** @import { TabOptions } from "./tab.js" */

const RULES = ["authorize", "customMessages", "runOptions", "answers"];
const OPTIONS = ["store", "stealMs", "onRole", "onError", "worker", "limits", ...RULES];
const LIMITS = { events: 2_000, logBytes: 4_000_000, messageBytes: 1_000_000, waiting: 64 };
const STEAL_MS = 10_000;
/** A new owner is there in a moment, and until then a request waits. */
const RECONNECTS = { maxAttempts: Infinity, initialMs: 20, maxMs: 1000 };
/** As often as this, an attempt waits for no timer: a tab in the background has one in a second. */
const AT_ONCE_MS = 250;

/**
 * What a connection to the owner needs of a host. A new owner is asked at once, however soon after the one before.
 * @param {() => number} epoch that of the owner
 */
function hostOf(epoch) {
  /** Who asked without a timer before: which owner, and when. @type {WeakMap<object, { of: number, at: number }>} */
  const asked = new WeakMap();
  return {
    /** @param {number} ms @param {AbortSignal} [signal] */
    async sleep(ms, signal) {
      const who = signal ?? asked;
      const [before, of, at] = [asked.get(who), epoch(), performance.now()];
      const isPause = ms < 2 * RECONNECTS.maxMs;
      if (!isPause || (before?.of === of && at - before.at < AT_ONCE_MS)) return sleep({}, ms, signal);
      asked.set(who, { of, at });
    },
  };
}

const DISPOSE = Symbol.dispose ?? Symbol.for("Symbol.dispose");

/** The agent of all tabs, as this one sees it. */
export class SharedAgent extends RemoteAgent {
  /** @type {Tab} */ #tab;

  /** @param {Tab} tab @param {(error: unknown) => void} onError */
  constructor(tab, onError) {
    super({ url: "http://localhost", fetch: (address, init) => tab.asks.fetch(String(address), init ?? {}), reconnects: RECONNECTS, host: hostOf(() => tab.asks.epoch), onError });
    this.#tab = tab;
  }

  /** @returns {import("../tabs.js").TabRole} */
  get role() {
    return this.#tab.role ?? "follower";
  }

  handOver() {
    return this.#tab.handOver();
  }

  [DISPOSE]() {
    this.#leave().catch((error) => complain("turnwheel/tabs: what was not stored is lost", error));
  }

  [Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")]() {
    return this.#leave();
  }

  async #leave() {
    /** @type {any} */ (RemoteAgent.prototype)[DISPOSE].call(this);
    await this.#tab.close();
  }
}

/** @param {string} id @param {MakeAgent} make @param {SharedOptions} [options] */
export async function shared(id, make, options = {}) {
  const tab = new Tab(read(id, make, options));
  const agent = new SharedAgent(tab, tab.options.onError);
  try {
    await tab.begin();
    return agent;
  } catch (error) {
    agent[DISPOSE]();
    throw error;
  }
}

/** @param {string} id @param {MakeAgent} make @param {SharedOptions} options @returns {TabOptions} */
function read(id, make, options) {
  if (typeof id !== "string" || id === "" || id.length > 500) throw misuse(`the id of a shared agent must be a text of 500 characters at most, got ${typeof id === "string" ? `one of ${id.length}` : kindOf(id)}`);
  if (typeof make !== "function") throw misuse(`shared(id, make) takes a function that makes the agent, such as (lease) => openAgent(lease, { model }), got ${kindOf(make)}`);
  checkNames("unknown option", options, OPTIONS);
  checkFunctions(options, ["onRole", "onError", "worker", "authorize"]);
  const { stealMs = STEAL_MS, onRole = () => {}, onError = (error) => complain("turnwheel/tabs:", error), worker } = options;
  if (stealMs !== false && !(stealMs >= 100)) throw misuse(`\`stealMs\` must be false, or a number of milliseconds from 100 on, got ${kindOf(stealMs)}`);
  const { waiting, messageBytes, events, logBytes } = numbersWithDefaults("limits", options.limits, LIMITS);
  const rules = Object.fromEntries(Object.entries(options).filter(([name]) => RULES.includes(name)));
  const handler = { ...rules, limits: { bodyBytes: messageBytes, events, logBytes } };
  return { id, make, ...placeOf(options.store), handler, waiting, messageBytes, stealMs: stealMs === false ? Infinity : stealMs, worker, onRole, onError };
}

/** Where the agent is kept; nowhere, if tabs cannot agree on one owner. @param {unknown} store @returns {Pick<TabOptions, "claims" | "scope">} */
function placeOf(store) {
  const claims = /** @type {{ [CLAIMS]?: Claims } | undefined} */ (store)?.[CLAIMS];
  if (store !== undefined && !claims) throw misuse(`\`store\` must be what indexedDBStore() or extensionStore(area) gives, got ${kindOf(store)}`);
  const isShared = hasLocks() && typeof BroadcastChannel !== "undefined" && (claims || typeof indexedDB !== "undefined");
  return { claims, scope: isShared ? (claims?.scope ?? DATABASE) : undefined };
}
