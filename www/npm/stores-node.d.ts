/**
 * @experimental A minor version may change this entry.
 * @module
 */

import type { Agent, AgentOptions } from "./index.js";
import type { AgentHandler } from "./server.js";
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
   * sealed checkpoint is stored as a whole, so a save costs what the conversation is long, and `list` has no title of it.
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
  /** Takes the agent, whether anything is stored of it or not. `undefined` if another process has it, and still has it after `waitMs`. */
  claim(id: string, options?: { ttlMs?: number; waitMs?: number }): Promise<Lease | undefined>;
  /** Agents with a run in progress that no process has: theirs was killed, or gave them back in the middle. Default: 100 at most. */
  abandoned(limit?: number): Promise<string[]>;
  /** The `owner` of the process that has the agent at present. */
  owner(id: string): Promise<string | undefined>;
}

/**
 * Keeps agents in PostgreSQL, in three tables, which are made when they are not there: `table` (default `turnwheel_agents`), and those
 * for messages and events, whose names begin with it.
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
 * lease stops the run. `lease.wasRunning` says whether a run was in progress. Tools have the `fence` in their context.
 *
 * @example
 * const agent = await openAgent(lease, { model, tools });
 * if (lease.wasRunning) await agent.continue();
 */
export function openAgent(lease: Lease, options: AgentOptions): Promise<Agent>;

/**
 * Joins a fleet: from now on this process claims agents when somebody asks for them, keeps those that have something to do, and
 * goes on with runs whose process is gone.
 *
 * @example
 * const fleet = joinFleet(store, {
 *   async open(lease) {
 *     const agent = await openAgent(lease, { model, tools });
 *     return { agent, handler: agentHandler(agent, { events: lease.events, authorize }) };
 *   },
 * });
 * process.on("SIGTERM", () => fleet.handOver().then(() => process.exit()));
 */
export function joinFleet(store: FleetStore, options: FleetOptions): Fleet;

/**
 * What is open of an agent: itself, and what answers requests for it.
 *
 * @example
 * const open: OpenAgent = { agent, handler: agentHandler(agent, { events: lease.events }) };
 */
export interface OpenAgent { agent: Agent; handler?: AgentHandler }

/**
 * Options of `joinFleet`.
 *
 * @example
 * const options: FleetOptions = { open: async (lease) => ({ agent: await openAgent(lease, { model }) }), agents: 500 };
 */
export interface FleetOptions {
  /** Opens an agent that was claimed. If a run was in progress, it goes on as soon as this has returned. */
  open(lease: Lease): OpenAgent | Promise<OpenAgent>;
  /** How many agents this process has at most; for more it answers 503. Default 1,000. */
  agents?: number;
  /** An agent without a run, listeners and requests is given back after so many milliseconds. Default 60,000. */
  idleMs?: number;
  /** How often runs are looked for whose process is gone, in milliseconds. Default 1,000; `Infinity`: never. */
  takeoverMs?: number;
  /** Hears what failed and nobody waits for. Default: the console. */
  onError?(error: unknown, id: string): void;
}

/**
 * What a process has of a fleet, in numbers; those with a past tense only grow.
 *
 * @example
 * const { agents, running }: FleetCounts = fleet.counts();
 */
export interface FleetCounts {
  /** How many agents it has at present, and how many of them have a run. */
  agents: number;
  running: number;
  /** How many event streams are open. */
  listeners: number;
  claimed: number;
  /** How many runs went on here that another process had begun. */
  takenOver: number;
  handedOver: number;
  /** How many leases were lost. */
  lost: number;
  /** How many requests were for agents of other processes. */
  passedOn: number;
}

/**
 * One process of a fleet.
 *
 * @example
 * const response = await fleet.answer("chat-7", request);
 */
export interface Fleet extends AsyncDisposable {
  /**
   * Answers a request for an agent, which is claimed if nobody has it. If another process has it, the answer is 409 and the header
   * `turnwheel-owner` has its `owner`; 503 means that it cannot be had at present.
   */
  answer(id: string, request: Request): Promise<Response>;
  /** Claims an agent, or gives the one that is open. `undefined` if another process has it, or if there is no room. */
  open(id: string): Promise<OpenAgent | undefined>;
  counts(): FleetCounts;
  /** Whether it is handing over, or has: it claims nothing any more. */
  readonly isLeaving: boolean;
  /** Gives all agents back for others to go on with; see `handOver` of a lease. */
  handOver(options?: { graceMs?: number }): Promise<void>;
}
