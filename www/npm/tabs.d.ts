/**
 * @experimental A minor version may change this entry.
 * @module
 */

import type { Agent } from "./index.js";
import type { RemoteAgent } from "./remote.js";
import type { AgentHandlerOptions } from "./server.js";
import type { Lease, LeaseStore } from "./stores.js";

export { openAgent } from "./stores-node.js";

/**
 * What a tab is: the owner of the agent, a follower of the tab that owns it, or alone, where tabs cannot share one.
 *
 * @example
 * const word: { [role in TabRole]: string } = { owner: "this tab", follower: "another tab", alone: "only this tab" };
 */
export type TabRole = "owner" | "follower" | "alone";

/**
 * Makes the agent, in the tab that becomes its owner, with `openAgent(lease, options)`. It must not start a run: one that was in
 * progress is continued afterwards. `lease.checkpoint` is what is stored, if anything is.
 *
 * @example
 * const make: MakeAgent = (lease) => openAgent(lease, { model, tools });
 */
export type MakeAgent = (lease: Lease) => Agent | Promise<Agent>;

/**
 * How much is kept and taken. Defaults: `events` 2,000 and `logBytes` 4,000,000 (a character counts as two) of what tabs may have
 * missed; `messageBytes` 1,000,000 for one command of a tab; `waiting` 64 commands of all tabs that wait for the owner.
 *
 * @example
 * const limits: SharedLimits = { messageBytes: 10_000_000 };
 */
export interface SharedLimits { events?: number; logBytes?: number; messageBytes?: number; waiting?: number }

/**
 * Options of `shared`.
 *
 * @example
 * const options: SharedOptions = { onRole: (role, { tookMs }) => show(`${role}, after ${tookMs} ms`) };
 */
export interface SharedOptions extends Pick<AgentHandlerOptions, "authorize" | "customMessages" | "runOptions" | "answers"> {
  /**
   * Where the agent is kept: `indexedDBStore({ name })`, which is the default, or `extensionStore(chrome.storage.local)` in the
   * pages of an extension.
   */
  store?: LeaseStore;
  /**
   * An owner that has not answered for this many milliseconds loses the agent to a tab that asks for something. Default 10,000;
   * false: never.
   */
  stealMs?: number | false;
  /** Called when this tab's role is known, and when it changes. An owner `tookMs` to take over, from the moment that it could. */
  onRole?(role: TabRole, info: { tookMs: number }): void;
  /** Called when a command that nobody awaited failed, or this tab could not take over. Default: `console.error`. */
  onError?(error: unknown): void;
  /**
   * Starts a SharedWorker that owns the agent: its script calls `shared` with the same id. It is started again when it is gone,
   * and where it does not run, a tab owns the agent.
   */
  worker?(): SharedWorker;
  limits?: SharedLimits;
}

/**
 * The agent of all tabs, as this one sees it.
 *
 * @example
 * const agent: SharedAgent = await shared("chat-7", (lease) => openAgent(lease, { model }));
 * for await (const piece of agent.prompt("Hello").textStream) print(piece);
 */
export interface SharedAgent extends RemoteAgent, AsyncDisposable {
  readonly role: TabRole;
  /**
   * Gives the agent to the tab that has waited longest; without another one, this tab gets it back. A tool that runs and is not
   * `idempotent` is interrupted.
   */
  handOver(): Promise<void>;
  /** Leaves: another tab takes over. */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * One agent in all tabs of an origin. One tab owns it, as long as it lives: the others see the same run, and may send, steer,
 * approve and stop. When the owner is closed, leaves its page, crashes or sleeps, another tab continues what it did. Resolves
 * when it is known which tab owns the agent; rejects if this tab is to own it and cannot.
 *
 * Without Web Locks (plain HTTP), IndexedDB or BroadcastChannel every tab has an agent of its own, which is not stored, and its
 * `role` is "alone".
 *
 * @example
 * import { openAgent, shared } from "turnwheel/tabs";
 * const agent = await shared("chat-7", (lease) => openAgent(lease, { model, tools }));
 * agent.subscribe((event) => draw(event));
 * await agent.ready();
 */
export function shared(id: string, make: MakeAgent, options?: SharedOptions): Promise<SharedAgent>;
