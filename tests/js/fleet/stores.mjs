// @ts-check
// The stores that the tests of turnwheel/stores/node use, by name: files everywhere, SQLite where Node has it, PostgreSQL
// where it is installed.

import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileStore, postgresStore, sqliteStore } from "../../../pkg/stores-node.js";

export const hasSqlite = /** @type {any} */ (process).getBuiltinModule?.("node:sqlite") !== undefined;

const VERSIONS = "/usr/lib/postgresql";
const bin = existsSync(VERSIONS) ? join(VERSIONS, readdirSync(VERSIONS).at(-1) ?? "", "bin") : undefined;
/** `initdb` refuses to work for root. */
const isRoot = process.getuid?.() === 0;
export const hasPostgres = bin !== undefined && (!isRoot || hasUser("postgres"));

/** @param {string} name */
function hasUser(name) {
  try {
    execFileSync("id", ["-u", name], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

/** A folder that is removed at the end. @param {{ after(end: () => void): void }} t @param {string} [inside] */
export function folder(t, inside = tmpdir()) {
  const made = mkdtempSync(join(inside, "turnwheel-fleet-"));
  t.after(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

/** A PostgreSQL of its own; returns its address. @param {{ after(end: () => void): void }} t */
export const postgres = async (t) => (await postgresServer(t)).address;

/** A PostgreSQL of its own, which can be restarted as if its machine had been switched off. @param {{ after(end: () => void): void }} t */
export async function postgresServer(t) {
  /** @type {(() => void)[]} */
  const ends = [];
  t.after(() => ends.reverse().forEach((end) => end()));
  const home = folder({ after: (end) => void ends.push(end) });
  const data = join(home, "data");
  mkdirSync(data);
  if (isRoot) {
    chmodSync(home, 0o777);
    execFileSync("chown", ["postgres", data]);
  }
  const as = (/** @type {string} */ program, /** @type {string[]} */ args) => {
    const [file, rest] = isRoot ? ["setpriv", ["--reuid=postgres", "--regid=postgres", "--clear-groups", join(bin ?? "", program), ...args]] : [join(bin ?? "", program), args];
    execFileSync(/** @type {string} */ (file), /** @type {string[]} */ (rest), { stdio: "ignore", cwd: tmpdir() });
  };
  const port = await freePort();
  as("initdb", ["-D", data, "-U", "postgres", "--auth=trust", "--no-sync", "-E", "UTF8", "--no-locale"]);
  const start = () => as("pg_ctl", ["-D", data, "-w", "-l", join(data, "log"), "-o", `-p ${port} -k ${data} -c listen_addresses=127.0.0.1 -c max_connections=200`, "start"]);
  const stop = () => as("pg_ctl", ["-D", data, "-m", "immediate", "stop"]);
  start();
  ends.push(stop);
  return { address: `postgres://postgres@127.0.0.1:${port}/postgres`, stop, start };
}

/** @returns {Promise<number>} */
export const freePort = () => new Promise((resolve) => {
  const server = createServer().listen(0, "127.0.0.1", () => {
    const { port } = /** @type {any} */ (server.address());
    server.close(() => resolve(port));
  });
});

/**
 * A store by its kind and place; `end` closes what was opened for it.
 * @param {string} kind @param {string} place @param {any} [options]
 */
export async function storeOf(kind, place, options) {
  if (kind === "files") return { store: fileStore(place, options), end: async () => {} };
  if (kind === "sqlite") {
    const { DatabaseSync } = /** @type {any} */ (process).getBuiltinModule("node:sqlite");
    const database = new DatabaseSync(join(place, "agents.db"));
    return { store: sqliteStore(database, options), end: async () => database.close() };
  }
  const pg = (await import("pg")).default;
  const pool = new pg.Pool({ connectionString: place, max: 4 });
  pool.on("error", () => {});
  return { store: postgresStore(pool, options), end: () => pool.end() };
}
