/**
 * @experimental A minor version may change this entry.
 * @module
 */

import type { Agent, Checkpoint } from "./index.js";
import type { EventLog } from "./server.js";

/**
 * A store for checkpoints, under ids of your choice. While one is being written, only the newest of those that arrive meanwhile
 * is written next, so saving at every event is cheap. Errors name the checkpoint and the store; the store's own error is
 * their `cause`.
 *
 * @example
 * const store: CheckpointStore = indexedDBStore();
 * const saved = await store.load("chat-7");
 * const agent = saved ? await Agent.restore(saved, options) : new Agent(options);
 * const stop = store.follow("chat-7", agent);
 * if (agent.canContinue) await agent.continue();
 */
export interface CheckpointStore {
  /** Resolves when this checkpoint, or a newer one of the same id, is stored. A sealed one is stored as it is. */
  save(id: string, checkpoint: Checkpoint | SealedCheckpoint): Promise<void>;
  /**
   * Saves the agent from its next event on, also after a write that failed: that one is reported as what a subscriber throws (the
   * hook `onError`, or the console). Events that come while one checkpoint is written share the next one. The function that it
   * returns ends this, and resolves when the agent is stored as it is then.
   */
  follow(id: string, agent: Pick<Agent, "subscribe" | "checkpoint">): () => Promise<void>;
  /**
   * Returns what was saved last, or `undefined` if there is nothing. If that was sealed, it still is: `Agent.restore`
   * refuses it until it is {@link unseal}ed.
   */
  load(id: string): Promise<Checkpoint | undefined>;
  /** Deletes the checkpoint, including one that still waits to be written. */
  delete(id: string): Promise<void>;
  /**
   * Returns what is stored, the newest first, for a list of conversations: 100 at most without a `limit`. No checkpoint is read
   * for it. What was stored by a version without `list` appears when it is saved again.
   */
  list(options?: ListOptions): Promise<StoredAgent[]>;
}

/**
 * What a store says of an agent without reading its checkpoint.
 *
 * @example
 * const chats: StoredAgent[] = await store.list();
 * for (const { id, title, updatedAt } of chats) console.log(id, title || "New chat", new Date(updatedAt));
 */
export interface StoredAgent {
  id: string;
  /**
   * The first words of the first user message that has text: one line of 80 characters at most. Empty if there is none yet, and
   * if the checkpoint is sealed: a title beside it would carry no seal.
   */
  title: string;
  /** When it was saved last, in milliseconds since 1970, by the clock of the store. */
  updatedAt: number;
}

/**
 * Which part of the list {@link CheckpointStore.list} returns.
 *
 * @example
 * const options: ListOptions = { prefix: `${userId}/`, limit: 20 };
 * const page = await store.list(options);
 * const next = await store.list({ ...options, before: page.at(-1) });
 */
export interface ListOptions {
  /** How many at most, from 1 to 1,000. Default 100. */
  limit?: number | undefined;
  /** Only what comes after this entry: the last one of the page before. */
  before?: Pick<StoredAgent, "id" | "updatedAt"> | undefined;
  /**
   * Only ids that begin with this text, such as those of one user. End it with a separator: `user-1` is the beginning of `user-10`
   * too.
   */
  prefix?: string | undefined;
}

/**
 * An agent that belongs to this process or tab for a while: until it is released, or lost. One of a process is renewed until
 * then; one of a tab is lost when the page is left, even if it comes back.
 *
 * @example
 * await using lease: Lease | undefined = await indexedDBStore().claim("chat-7");
 * if (!lease) show("another tab has this conversation");
 */
export interface Lease extends AsyncDisposable {
  readonly id: string;
  /** Higher with every claim of this id: give it to servers that can check that they are not told something old. */
  readonly fence: number;
  /** What was stored when it was claimed. */
  readonly checkpoint?: Checkpoint | undefined;
  /** Whether a run was in progress then: it has to go on. */
  readonly wasRunning: boolean;
  /** Aborted when the lease is lost; one of a process before its time is over, by the clock of this process. */
  readonly signal: AbortSignal;
  readonly isHeld: boolean;
  /**
   * The events of the agent, for `agentHandler(agent, { events: lease.events })`: stored together with the checkpoints that
   * belong to them, before a listener hears of them. Whoever has the agent next goes on with the next number; if checkpoints
   * were stored without events, listeners begin anew.
   */
  readonly events: EventLog;
  /**
   * Stores a checkpoint and the events so far, and renews the lease. In the stores of processes, what fails is tried again while
   * the lease holds. Rejects with the code `lost_lease` if another process or tab may have the agent.
   */
  save(checkpoint: Checkpoint): Promise<void>;
  /** Gives the agent back at once, so that another process or tab need not wait. A run in progress stops here. */
  release(): Promise<void>;
  /**
   * Gives the agent back in the middle of a run, for another process or tab to go on with. From now on no model is called; an
   * answer that has begun may end, and so may the tools that it asks for, for `graceMs` at most (default 10,000). What is still on
   * then is cut off: an answer is requested again elsewhere, a tool runs again if it is `idempotent`, and otherwise its result says
   * that it was interrupted.
   */
  handOver(options?: { graceMs?: number }): Promise<void>;
}

/**
 * A store whose agents belong to one process or tab at a time.
 *
 * @example
 * const store: LeaseStore = indexedDBStore();
 * const lease = await store.claim("chat-7", { waitMs: 1000 });
 */
export interface LeaseStore extends CheckpointStore {
  /** Takes the agent, whether anything is stored of it or not. `undefined` if another has it, and still has it after `waitMs`. */
  claim(id: string, options?: { waitMs?: number }): Promise<Lease | undefined>;
}

/**
 * Keeps checkpoints in the browser's IndexedDB, in a database with the given name (default `turnwheel`). `claim` needs Web Locks:
 * HTTPS or localhost. An agent that was claimed once is saved by its lease, and no more by `save`.
 *
 * @example
 * import { indexedDBStore } from "turnwheel/stores";
 * const store = indexedDBStore({ name: "my-app" });
 */
export function indexedDBStore(options?: { name?: string }): LeaseStore;

/**
 * The part of a storage area of a browser extension that is used.
 *
 * @example
 * const area: ExtensionStorageArea = browser.storage.local;
 */
export interface ExtensionStorageArea {
  /** With `null`, all there is. */
  get(keys: string[] | null): Promise<{ [key: string]: any }>;
  set(items: { [key: string]: any }): Promise<void>;
  remove(keys: string[]): Promise<void>;
  /** Where the browser has it, `list` reads nothing but its own entries. */
  getKeys?(): Promise<string[]>;
}

/**
 * Keeps agents in the storage of a browser extension, for its pages. Its quota is the area's: 10 MB for `chrome.storage.local`
 * without the permission `unlimitedStorage`.
 *
 * @example
 * const store = extensionStore(browser.storage.local);      // chrome.storage.local
 */
export function extensionStore(area: ExtensionStorageArea): LeaseStore;

/**
 * Keeps checkpoints in the SQLite database of a Cloudflare Durable Object. A checkpoint that is larger than a value may be is
 * split into parts, of which all are written or none.
 *
 * @example
 * import { DurableObject } from "cloudflare:workers";
 * import { durableObjectStore } from "turnwheel/stores";
 * export class Chat extends DurableObject {
 *   store = durableObjectStore(this.ctx.storage);
 * }
 */
export function durableObjectStore(storage: {
  sql: { exec(statement: string, ...values: any[]): { toArray(): any[] } };
  transactionSync<T>(work: () => T): T;
  sync?(): Promise<void>;
}): CheckpointStore & {
  /** Writes at once, in the open transaction. If you use it for an id, use no other method to save that id. */
  saveNow(id: string, checkpoint: Checkpoint | SealedCheckpoint): void;
};

/**
 * A checkpoint with a seal: JSON that any store may keep. It is not encrypted, and its members are nobody's business but
 * {@link unseal}'s.
 *
 * @example
 * const sealed: SealedCheckpoint = await seal(agent.checkpoint(), key);
 */
export interface SealedCheckpoint {
  format: "turnwheel_sealed_checkpoint";
  version: 1;
  /** The checkpoint, as JSON. */
  checkpoint: string;
  /** The HMAC (SHA-256) of version, context and checkpoint, in hexadecimal digits. */
  mac: string;
}

/**
 * A key for sealing: at least 32 random bytes, or a `CryptoKey` for HMAC with SHA-256.
 *
 * @example
 * const key: SealKey = crypto.getRandomValues(new Uint8Array(32)); // once; keep it where the checkpoints are not
 */
export type SealKey = Uint8Array | ArrayBuffer | { readonly type: string; readonly extractable: boolean; readonly algorithm: object; readonly usages: readonly string[] };

/**
 * Options of {@link seal} and {@link unseal}.
 *
 * @example
 * const options: SealOptions = { context: `${userId}/chat-7` };
 */
export interface SealOptions {
  /**
   * Whose checkpoint it is: the id of a user, of a conversation. What was sealed for one context does not open for another,
   * so that nobody can put one user's checkpoint in the place of another's.
   */
  context?: string;
}

/**
 * Seals a checkpoint, so that whoever can write to the store cannot forge one: HMAC with SHA-256, by Web Crypto. Of several
 * keys the first one seals. The seal says who wrote a checkpoint, not that it is the newest.
 *
 * @example
 * await store.save("chat-7", await seal(agent.checkpoint(), key, { context: userId }));
 */
export function seal(checkpoint: Checkpoint, key: SealKey | readonly SealKey[], options?: SealOptions): Promise<SealedCheckpoint>;

/**
 * Returns the checkpoint that was sealed. Throws an `AgentError` if it was changed, if none of the keys fits, if it was sealed
 * for another context, or if it is not sealed at all.
 *
 * @example
 * const saved = await unseal(await store.load("chat-7"), [key, oldKey], { context: userId });
 * const agent = await Agent.restore(saved, options);
 */
export function unseal(sealed: SealedCheckpoint | Checkpoint | string | undefined, key: SealKey | readonly SealKey[], options?: SealOptions): Promise<Checkpoint>;
