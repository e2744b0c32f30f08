// @ts-check
// Agents in PostgreSQL. Every method is one statement, so that any pool will do, and every time is the database's.

import { kindOf, misuse } from "../../shared.js";
import { fleetStore } from "./fleet.js";

/** @import { PoolLike, StoreOptions } from "../../stores-node.js" */
/** @import { Shelf } from "./fleet.js" */

/** Where the numbers of events begin: by the time, in microseconds. */
const START = "floor(extract(epoch FROM now()) * 1000000)::bigint";
const COUNT = " SELECT count(*)::int AS n FROM held";
const NOW = "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
const TTL = "clock_timestamp() + $3 * interval '1 millisecond'";

/** @param {PoolLike} pool @param {StoreOptions & { table?: string }} [options] */
export function postgresStore(pool, options = {}) {
  if (typeof pool?.query !== "function") throw misuse(`postgresStore takes something with \`query(text, values)\`, such as a Pool of pg, got ${kindOf(pool)}`);
  const { table = "turnwheel_agents" } = options;
  if (!/^[a-z_][a-z0-9_]{0,40}(\.[a-z_][a-z0-9_]{0,40})?$/.test(table)) throw misuse(`\`table\` must be a name of lower-case letters, digits and _, got ${JSON.stringify(table)}`);
  return fleetStore(shelfOf(pool, table), options, ["table"]);
}

/** @param {PoolLike} pool @param {string} table @returns {Shelf} */
function shelfOf(pool, table) {
  const messages = `${table}_messages`;
  const events = `${table}_events`;
  /** @type {Promise<void> | undefined} */
  let isReady;
  /** @param {string} text @param {unknown[]} values @returns {Promise<any[]>} */
  const query = async (text, ...values) => {
    await (isReady ??= create(pool, table).catch((error) => {
      isReady = undefined;
      throw error;
    }));
    return (await pool.query(text, values)).rows;
  };
  const read = async (/** @type {string} */ id, /** @type {number} */ count) => (await query(`SELECT json FROM ${messages} WHERE id = $1 AND at < $2 ORDER BY at`, id, count)).map(({ json }) => json);
  /** The part of a write that every one has: the lease, and what is new in the log. @param {string} more */
  const tell = (more) => `WITH held AS (UPDATE ${table} SET until = ${TTL}, first_event = coalesce($4, first_event), last_event = coalesce($5, last_event), log_bytes = coalesce($6, log_bytes)${more} WHERE id = $1 AND fence = $2 RETURNING id),
        forgotten AS (DELETE FROM ${events} WHERE id IN (SELECT id FROM held) AND at <= $4),
        told AS (INSERT INTO ${events} (id, at, json, has_commands) SELECT held.id, new.* FROM held, unnest($7::bigint[], $8::text[], $9::boolean[]) AS new ON CONFLICT (id, at) DO UPDATE SET json = excluded.json, has_commands = excluded.has_commands)`;
  return {
    place: "PostgreSQL",
    async claim(id, owner, ttlMs) {
      const [row] = await query(`INSERT INTO ${table} AS a (id, owner, until, fence, first_event, last_event) VALUES ($1, $2, ${TTL}, 1, ${START}, ${START})
        ON CONFLICT (id) DO UPDATE SET fence = a.fence + 1, owner = excluded.owner, until = excluded.until WHERE a.until IS NULL OR a.until <= clock_timestamp()
        RETURNING fence, state, count, first_event, last_event, log_bytes`, id, owner, ttlMs);
      if (!row) return;
      const [first, last, bytes] = [row.first_event, row.last_event, row.log_bytes].map(Number);
      // Of an agent that is new there is nothing else.
      const [all, commands] = await Promise.all([row.count > 0 ? read(id, row.count) : [], last > first ? query(`SELECT json FROM ${events} WHERE id = $1 AND at > $2 AND has_commands ORDER BY at`, id, first) : []]);
      return { fence: Number(row.fence), state: row.state ?? undefined, messages: all, first, last, bytes, commands: commands.map(({ json }) => json) };
    },
    async save(id, fence, ttlMs, { state, title, isRunning, from, messages: added, log }) {
      const told = [log?.first ?? null, log?.last ?? null, log?.bytes ?? null, log?.rows.map(({ at }) => at) ?? [], log?.rows.map(({ json }) => json) ?? [], log?.rows.map(({ hasCommands }) => hasCommands) ?? []];
      const values = state === undefined ? [id, fence, ttlMs, ...told] : [id, fence, ttlMs, ...told, state, isRunning, from, added, title];
      const [row] = await query(state === undefined ? tell("") + COUNT : `${tell(`, state = $10, running = $11, count = $12 + cardinality($13::text[]), title = $14, updated_at = ${NOW}`)},
        gone AS (DELETE FROM ${messages} WHERE id IN (SELECT id FROM held) AND at >= $12 + cardinality($13::text[])),
        added AS (INSERT INTO ${messages} (id, at, json) SELECT held.id, $12 + n - 1, json FROM held, unnest($13::text[]) WITH ORDINALITY AS new(json, n) ON CONFLICT (id, at) DO UPDATE SET json = excluded.json)${COUNT}`, ...values);
      return row.n === 1;
    },
    // Written under a later fence, they belong to another process.
    events: async (id, fence, after, limit) => (await query(`SELECT e.json FROM ${events} e JOIN ${table} a ON a.id = e.id AND a.fence = $2 WHERE e.id = $1 AND e.at > $3 ORDER BY e.at LIMIT $4`, id, fence, after, limit)).map(({ json }) => json),
    renew: async (id, fence, ttlMs) => (await query(`UPDATE ${table} SET until = ${TTL} WHERE id = $1 AND fence = $2 RETURNING id`, id, fence, ttlMs)).length === 1,
    release: (id, fence) => query(`UPDATE ${table} SET until = NULL, owner = NULL WHERE id = $1 AND fence = $2`, id, fence),
    async read(id) {
      // One statement: a save between two would give half of each.
      const [row] = await query(`SELECT state, ARRAY(SELECT json FROM ${messages} m WHERE m.id = a.id AND at < a.count ORDER BY at) AS messages FROM ${table} a WHERE id = $1`, id);
      return row && { state: row.state ?? undefined, messages: row.messages };
    },
    // The row stays, for its fence: who still has a lease of before must not write again.
    remove: (id) => query(`WITH gone AS (UPDATE ${table} SET fence = fence + 1, owner = NULL, until = NULL, state = NULL, title = NULL, updated_at = NULL, running = false, count = 0, first_event = last_event + 1, last_event = last_event + 1, log_bytes = 0 WHERE id = $1), forgotten AS (DELETE FROM ${events} WHERE id = $1) DELETE FROM ${messages} WHERE id = $1`, id),
    // Ids by their letters, not as a language sorts them: only so a prefix is a range.
    list: async ({ limit, prefix, before: { updatedAt, id } }) => (await query(`SELECT id, title, updated_at FROM ${table} WHERE id COLLATE "C" >= $1 AND id COLLATE "C" < $2 AND (updated_at, id COLLATE "C") < ($3, $4) ORDER BY updated_at DESC, id COLLATE "C" DESC LIMIT $5`, prefix, `${prefix}\u{10ffff}`, updatedAt, id, limit))
      .map(({ id, title, updated_at }) => ({ id, title, updatedAt: Number(updated_at) })),
    owner: async (id) => (await query(`SELECT owner FROM ${table} WHERE id = $1 AND until > clock_timestamp()`, id))[0]?.owner,
    abandoned: async (limit) => (await query(`SELECT id FROM ${table} WHERE running AND (until IS NULL OR until <= clock_timestamp()) ORDER BY until NULLS FIRST LIMIT $1`, limit)).map(({ id }) => id),
  };
}

/** @param {PoolLike} pool @param {string} table */
async function create(pool, table) {
  const statements = [
    `CREATE TABLE IF NOT EXISTS ${table} (id text COLLATE "C" PRIMARY KEY, fence bigint NOT NULL, owner text, until timestamptz, title text, updated_at bigint, state text, running boolean NOT NULL DEFAULT false, count integer NOT NULL DEFAULT 0, first_event bigint NOT NULL, last_event bigint NOT NULL, log_bytes bigint NOT NULL DEFAULT 0)`,
    `CREATE TABLE IF NOT EXISTS ${table}_messages (id text, at integer, json text NOT NULL, PRIMARY KEY (id, at))`,
    `CREATE TABLE IF NOT EXISTS ${table}_events (id text, at bigint, json text NOT NULL, has_commands boolean NOT NULL, PRIMARY KEY (id, at))`,
    // A table of an earlier version has no columns for the list. Where they are, no lock is taken.
    `DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = '${table}'::regclass AND attname = 'updated_at') THEN ALTER TABLE ${table} ADD COLUMN IF NOT EXISTS title text, ADD COLUMN IF NOT EXISTS updated_at bigint; END IF; END $$`,
    `CREATE INDEX IF NOT EXISTS ${table.split(".").at(-1)}_newest ON ${table} (updated_at, id COLLATE "C")`,
    // What the process that takes over reads at once, and which agents have to be taken over.
    `CREATE INDEX IF NOT EXISTS ${table.split(".").at(-1)}_commands ON ${table}_events (id, at) WHERE has_commands`,
    `CREATE INDEX IF NOT EXISTS ${table.split(".").at(-1)}_running ON ${table} (until) WHERE running`,
  ];
  for (const statement of statements) {
    try {
      await pool.query(statement, []);
    } catch (error) {
      // Two processes that begin together both find nothing, and the database lets one of them fail: at the table, its name or its type.
      const { code } = /** @type {any} */ (error ?? {});
      if (["23505", "42P07", "42710"].includes(code)) continue;
      // A role that may only read and write, or a replica, is refused before the database looks what is there.
      const isRefused = code === "42501" || code === "25006";
      if (isRefused && (await isThere(pool, table))) return;
      throw error;
    }
  }
}

/** Whether the tables are there, with all columns. @param {PoolLike} pool @param {string} table */
const isThere = (pool, table) => pool.query(`SELECT a.updated_at FROM ${table} a, ${table}_messages m, ${table}_events e LIMIT 0`, []).then(() => true, () => false);
