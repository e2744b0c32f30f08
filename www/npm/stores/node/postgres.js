// @ts-check
// Agents in PostgreSQL. Every method is one statement, so that any pool will do, and every time is the database's.

import { kindOf, misuse } from "../../shared.js";
import { fleetStore } from "./fleet.js";

/** @import { PoolLike, StoreOptions } from "../../stores-node.js" */
/** @import { Shelf } from "../lease.js" */

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
  /** @type {Promise<void> | undefined} */
  let isReady;
  /** @param {string} text @param {unknown[]} values @returns {Promise<any[]>} */
  const query = async (text, ...values) => {
    await (isReady ??= create(pool, table, messages).catch((error) => {
      isReady = undefined;
      throw error;
    }));
    return (await pool.query(text, values)).rows;
  };
  const read = async (/** @type {string} */ id, /** @type {number} */ count) => (await query(`SELECT json FROM ${messages} WHERE id = $1 AND at < $2 ORDER BY at`, id, count)).map(({ json }) => json);
  return {
    place: "PostgreSQL",
    async claim(id, owner, ttlMs) {
      const [row] = await query(`INSERT INTO ${table} AS a (id, owner, until, fence) VALUES ($1, $2, ${TTL}, 1)
        ON CONFLICT (id) DO UPDATE SET fence = a.fence + 1, owner = excluded.owner, until = excluded.until WHERE a.until IS NULL OR a.until <= clock_timestamp()
        RETURNING fence, state, count`, id, owner, ttlMs);
      return row && { fence: Number(row.fence), state: row.state ?? undefined, messages: await read(id, row.count) };
    },
    async save(id, fence, ttlMs, { state, isRunning, from, messages: added }) {
      const [row] = await query(`WITH held AS (UPDATE ${table} SET until = ${TTL}, state = $4, running = $5, count = $6 + cardinality($7::text[]) WHERE id = $1 AND fence = $2 RETURNING id),
        gone AS (DELETE FROM ${messages} WHERE id IN (SELECT id FROM held) AND at >= $6 + cardinality($7::text[])),
        added AS (INSERT INTO ${messages} (id, at, json) SELECT held.id, $6 + n - 1, json FROM held, unnest($7::text[]) WITH ORDINALITY AS new(json, n) ON CONFLICT (id, at) DO UPDATE SET json = excluded.json)
        SELECT count(*)::int AS n FROM held`, id, fence, ttlMs, state, isRunning, from, added);
      return row.n === 1;
    },
    renew: async (id, fence, ttlMs) => (await query(`UPDATE ${table} SET until = ${TTL} WHERE id = $1 AND fence = $2 RETURNING id`, id, fence, ttlMs)).length === 1,
    release: (id, fence) => query(`UPDATE ${table} SET until = NULL, owner = NULL WHERE id = $1 AND fence = $2`, id, fence),
    async read(id) {
      // One statement: a save between two would give half of each.
      const [row] = await query(`SELECT state, ARRAY(SELECT json FROM ${messages} m WHERE m.id = a.id AND at < a.count ORDER BY at) AS messages FROM ${table} a WHERE id = $1`, id);
      return row && { state: row.state ?? undefined, messages: row.messages };
    },
    remove: (id) => query(`WITH gone AS (DELETE FROM ${table} WHERE id = $1) DELETE FROM ${messages} WHERE id = $1`, id),
    owner: async (id) => (await query(`SELECT owner FROM ${table} WHERE id = $1 AND until > clock_timestamp()`, id))[0]?.owner,
    abandoned: async (limit) => (await query(`SELECT id FROM ${table} WHERE running AND (until IS NULL OR until <= clock_timestamp()) ORDER BY until NULLS FIRST LIMIT $1`, limit)).map(({ id }) => id),
  };
}

/** @param {PoolLike} pool @param {string} table @param {string} messages */
async function create(pool, table, messages) {
  const statements = [
    `CREATE TABLE IF NOT EXISTS ${table} (id text PRIMARY KEY, fence bigint NOT NULL, owner text, until timestamptz, state text, running boolean NOT NULL DEFAULT false, count integer NOT NULL DEFAULT 0)`,
    `CREATE TABLE IF NOT EXISTS ${messages} (id text, at integer, json text NOT NULL, PRIMARY KEY (id, at))`,
  ];
  for (const statement of statements) {
    try {
      await pool.query(statement, []);
    } catch (error) {
      // Two processes that begin together both find nothing, and the database lets one of them fail.
      if (!["23505", "42P07"].includes(/** @type {any} */ (error)?.code)) throw error;
    }
  }
}
