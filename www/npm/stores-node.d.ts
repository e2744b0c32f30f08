import type { Agent, AgentOptions, Checkpoint } from "./index.js";
import type { Lease, LeaseStore, SealKey } from "./stores.js";

export type { Lease } from "./stores.js";

/**
 * The part of a pool of PostgreSQL connections that is used: `pg`, `postgres` with a wrapper, PGlite, …
 *
 * @example
 * const pool: PoolLike = new pg.Pool({ connectionString });
 */
export interface PoolLike { query(text: string, values: any[]): Promise<{ rows: any[] }> }

/**
 * The part of a `DatabaseSync` of `node:sqlite` that is used.
 *
 * @example
 * const database: DatabaseLike = new DatabaseSync("agents.db");
 */
export interface DatabaseLike { exec(sql: string): void; prepare(sql: string): { all(...values: any[]): any[]; run(...values: any[]): { changes: number | bigint } } }

/**
 * Options of the stores that processes share.
 *
 * @example
 * const options: StoreOptions = { ttlMs: 10_000, owner: "http://10.0.0.7:3000" };
 */
export interface StoreOptions {
  /** How many milliseconds a claim holds without being renewed; it is renewed three times in that time. Default 30,000. */
  ttlMs?: number;
  /** Who this process is, for others: its address, so that they can pass requests on. Default: a random id. */
  owner?: string;
  /**
   * Seals what is stored, and refuses what is not sealed or was sealed for another id: see `seal` of turnwheel/stores. A
   * sealed checkpoint is stored as a whole, so a save costs what the conversation is long.
   */
  seal?: { key: SealKey | readonly SealKey[]; context?: string };
}

/**
 * A store that several processes share. `save` without a lease claims, stores and releases.
 *
 * @example
 * const store: FleetStore = sqliteStore("agents.db");
 * for (const id of await store.abandoned()) resume(await store.claim(id));
 */
export interface FleetStore extends LeaseStore {
  claim(id: string, options?: { ttlMs?: number; waitMs?: number }): Promise<Lease | undefined>;
  /** Agents with a run in progress that no process has: theirs was killed, or gave them back in the middle. Default: 100 at most. */
  abandoned(limit?: number): Promise<string[]>;
  /** The `owner` of the process that has the agent at present. */
  owner(id: string): Promise<string | undefined>;
}

/**
 * Keeps agents in PostgreSQL, in a table of this name and one for their messages, which are made when they are not there.
 * Takes anything with `query(text, values)`; times are the database's.
 *
 * @example
 * const store = postgresStore(new pg.Pool({ connectionString }), { owner: "http://10.0.0.7:3000" });
 */
export function postgresStore(pool: PoolLike, options?: StoreOptions & { table?: string }): FleetStore;

/**
 * Keeps agents in a file of SQLite, for the processes of one machine. Needs Node 22, or a database that has its methods.
 *
 * @example
 * const store = sqliteStore("agents.db");
 */
export function sqliteStore(file: string | DatabaseLike, options?: StoreOptions): FleetStore;

/**
 * Keeps agents in a folder of files, for the processes of one machine: where Node has no SQLite. Not for file systems of a
 * network.
 *
 * @example
 * const store = fileStore("./agents");
 */
export function fileStore(folder: string, options?: StoreOptions): FleetStore;

/**
 * The agent of a lease: restored from it, or new. Every step is stored, a tool starts only when its announcement is, and a lost
 * lease stops the run. `agent.canContinue` says whether a run was in progress.
 *
 * @example
 * const agent = openAgent(lease, { model, tools });
 * if (agent.canContinue) await agent.continue();
 */
export function openAgent(lease: Lease, options: AgentOptions): Agent;
