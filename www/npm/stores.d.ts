import type { Checkpoint } from "./index.js";

/**
 * A store for checkpoints, under ids of your choice. While one is being written, only the newest of those that arrive meanwhile
 * is written next, so saving at every event is cheap. Errors name the checkpoint and the store; the store's own error is
 * their `cause`.
 *
 * @example
 * const store: CheckpointStore = indexedDBStore();
 * const saved = await store.load("chat-7");
 * const agent = saved ? Agent.restore(saved, options) : new Agent(options);
 * agent.subscribe(() => store.save("chat-7", agent.checkpoint()), { keep: true });
 * if (agent.canContinue) await agent.continue();
 */
export interface CheckpointStore {
  /** Resolves when this checkpoint, or a newer one of the same id, is stored. */
  save(id: string, checkpoint: Checkpoint): Promise<void>;
  /** Returns what was saved last, or `undefined` if there is nothing. */
  load(id: string): Promise<Checkpoint | undefined>;
  /** Deletes the checkpoint, including one that still waits to be written. */
  delete(id: string): Promise<void>;
}

/**
 * Keeps checkpoints in the browser's IndexedDB, in a database with the given name (default `turnwheel`).
 *
 * @example
 * import { indexedDBStore } from "turnwheel/stores";
 * const store = indexedDBStore({ name: "my-app" });
 */
export function indexedDBStore(options?: { name?: string }): CheckpointStore;

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
  saveNow(id: string, checkpoint: Checkpoint): void;
};
