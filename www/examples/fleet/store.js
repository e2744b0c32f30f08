// Where the fleet keeps its agents, by the environment variable STORE:
//   postgres://…        a database that all processes reach
//   ./agents.db         SQLite, for the processes of one machine; needs Node 22
//   ./agents            a folder of files, for the processes of one machine

import { mkdirSync } from "node:fs";
import { fileStore, postgresStore, sqliteStore } from "turnwheel/stores/node";

export async function openStore(place, options) {
  if (/^postgres(ql)?:/.test(place)) {
    const { default: pg } = await import("pg");
    const pool = new pg.Pool({ connectionString: place, max: 10, connectionTimeoutMillis: 5_000 });
    pool.on("error", (error) => console.error("a connection to the database broke:", error.message));
    return { store: postgresStore(pool, options), end: () => pool.end() };
  }
  if (/\.(db|sqlite)$/.test(place)) return { store: sqliteStore(place, options), end: async () => {} };
  mkdirSync(place, { recursive: true });
  return { store: fileStore(place, options), end: async () => {} };
}
