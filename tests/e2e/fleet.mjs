// @ts-check
// The example www/examples/fleet under siege, a minute with each store: four processes that are killed, stopped and replaced, whose
// clocks jump, and a database that goes away; then leases that are taken from owners that run. The ledger of each is printed.   SECONDS=10 node --test tests/e2e/fleet.mjs

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { clean, install, ROOT } from "../examples/kit.mjs";
import { folder as folderOf, hasPostgres, postgresServer } from "../js/fleet/stores.mjs";
import { besiege, NEVER, table } from "../js/fleet/siege.mjs";

after(clean);
const seconds = Number(process.env["SECONDS"] ?? 60);
const LIMIT = { timeout: (seconds + 180) * 1000 };

/** @param {{ diagnostic(text: string): void }} t @param {string} title @param {Omit<import("../js/fleet/siege.mjs").Siege, "folder" | "seconds">} how */
async function siege(t, title, how) {
  const folder = await install("fleet", { pg: `${ROOT}/node_modules/pg` });
  /** @type {any} */
  const ledger = await besiege({ folder, seconds, ...how });
  for (const line of table(`${title}, ${seconds} s`, ledger).split("\n")) t.diagnostic(line);
  for (const name of NEVER) assert.equal(ledger[name], 0, name);
  assert.ok(ledger["runs ended"] >= 6 && ledger["claims"] > 6, table("too little happened", ledger));
}

/** A Node that has SQLite: this one, or one from npm. @param {{ after(end: () => void): void, skip(why: string): void }} t */
async function nodeWithSqlite(t) {
  if (/** @type {any} */ (process).getBuiltinModule?.("node:sqlite")) return process.execPath;
  const folder = folderOf(t);
  try {
    await promisify(execFile)("npm", ["install", "--prefix", folder, "--no-audit", "--no-fund", "--loglevel=error", "node@24"]);
    return join(folder, "node_modules/.bin/node");
  } catch (error) {
    return t.skip(`there is no SQLite in Node ${process.version}, and npm could not install node@24: ${String(/** @type {any} */ (error).stderr).slice(0, 300)}`);
  }
}

/** @param {{ diagnostic(text: string): void }} t @param {string} kind @param {string} place @param {string} [node] */
async function takeovers(t, kind, place, node = process.execPath) {
  const script = fileURLToPath(new URL("../js/fleet/takeovers.mjs", import.meta.url));
  const { stdout } = await promisify(execFile)(node, ["--no-warnings", script, kind, place, String(Math.min(seconds, 20))], { timeout: LIMIT.timeout });
  t.diagnostic(`${kind}, leases taken from owners that run: ${stdout}`);
  const told = JSON.parse(stdout);
  assert.deepEqual(told["not completed"], []);
  assert.ok(told["runs ended"] >= 4 && told["taken from an owner that runs"] >= 4, stdout);
}

test("leases that are taken from owners that still run", { timeout: 3 * LIMIT.timeout }, async (t) => {
  const node = await nodeWithSqlite(t);
  await takeovers(t, "files", folderOf(t));
  if (hasPostgres) await takeovers(t, "postgres", (await postgresServer(t)).address);
  if (node) await takeovers(t, "sqlite", folderOf(t), node);
});

test("PostgreSQL, which is switched off and on", { ...LIMIT, skip: !hasPostgres && "there is no PostgreSQL here" }, async (t) => {
  const server = await postgresServer(t);
  await siege(t, "PostgreSQL", { store: server.address, database: async () => (server.stop(), server.start()) });
});

test("SQLite, which somebody locks for a while", LIMIT, async (t) => {
  const node = await nodeWithSqlite(t);
  if (!node) return;
  const file = join(folderOf(t), "agents.db");
  const lock = 'const { DatabaseSync } = require("node:sqlite"); const db = new DatabaseSync(process.argv[1], { timeout: 10000 }); db.exec("BEGIN EXCLUSIVE"); setTimeout(() => db.exec("COMMIT"), 1000);';
  await siege(t, "SQLite", { store: file, node, database: async () => void (await once(spawn(node, ["--no-warnings", "-e", lock, file], { stdio: "ignore" }), "exit")) });
});

test("files", LIMIT, async (t) => {
  const store = join(folderOf(t), "agents");
  mkdirSync(store);
  await siege(t, "files", { store });
});
