// @ts-check
// The first start of processes on a database: SQLite's by several at once, PostgreSQL's by a role that may make nothing.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { openAgent, postgresStore } from "../../../pkg/stores-node.js";
import { folder, hasPostgres, hasSqlite, postgres } from "../fleet/stores.mjs";
import { scripted } from "../kit.mjs";

const PKG = new URL("../../../pkg/", import.meta.url);

/** Runs a process to its end, and returns what it said. @param {string} code @param {...string} given @returns {Promise<string>} */
const child = (code, ...given) => new Promise((resolve) => {
  const process_ = spawn(process.execPath, ["--no-warnings", "--input-type=module", "--eval", code, ...given], { stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  for (const stream of [process_.stdout, process_.stderr]) stream.on("data", (piece) => void (said += piece));
  process_.on("close", () => resolve(said.trim()));
});
const OPENS = `const { scripted } = await import("${PKG}entry/node.js"); const { openAgent, sqliteStore } = await import("${PKG}stores-node.js");
  const [file, at] = process.argv.slice(1); while (Date.now() < Number(at));
  const lease = await sqliteStore(file).claim("a" + process.pid); await (await openAgent(lease, { model: scripted(["ok"]) })).prompt("x"); await lease.release(); console.log("ok");`;
const HOLDS = `const { DatabaseSync } = await import("node:sqlite"); const [file, at] = process.argv.slice(1); const database = new DatabaseSync(file);
  database.exec("CREATE TABLE other (x)"); while (Date.now() < Number(at)); database.exec("BEGIN IMMEDIATE; INSERT INTO other VALUES (1)"); setTimeout(() => database.exec("COMMIT"), 500);`;

test("SQLite: eight processes that begin at once begin, and one waits for another's transaction", { skip: !hasSqlite && "Node has no SQLite here", timeout: 60_000 }, async (t) => {
  for (let round = 0; round < 3; round++) {
    const file = join(folder(t), "agents.db");
    const at = String(Date.now() + 1500);
    assert.deepEqual(await Promise.all(Array.from({ length: 8 }, () => child(OPENS, file, at))), Array(8).fill("ok"));
  }
  const file = join(folder(t), "held.db");
  const at = Date.now() + 1500;
  const [, said] = await Promise.all([child(HOLDS, file, String(at)), child(OPENS, file, String(at + 150))]);
  assert.equal(said, "ok");
});

test("PostgreSQL: tables that are there need no right to make any; a replica is read", { skip: !hasPostgres && "there is no PostgreSQL here", timeout: 60_000 }, async (t) => {
  const pg = (await import("pg")).default;
  const address = await postgres(t);
  const pools = /** @type {any[]} */ ([]);
  t.after(() => Promise.all(pools.map((pool) => pool.end())));
  const poolOf = (/** @type {object} */ more) => {
    const pool = new pg.Pool(more);
    pool.on("error", () => {});
    pools.push(pool);
    return pool;
  };
  const table = "ours.agents";
  const cycle = async (/** @type {any} */ pool) => {
    const lease = await postgresStore(pool, { table }).claim("a");
    if (!lease) throw new Error("taken");
    const { text, error } = await (await openAgent(lease, { model: scripted(["ok"]) })).prompt("x");
    await lease.release();
    return text || error?.message;
  };
  const owner = poolOf({ connectionString: address });
  await owner.query("CREATE SCHEMA ours; CREATE ROLE clerk LOGIN; GRANT USAGE ON SCHEMA ours TO clerk");
  const clerk = poolOf({ connectionString: address.replace("postgres@", "clerk@") });
  await assert.rejects(cycle(clerk), /`a` could not be claimed in PostgreSQL: permission denied for schema ours/);
  assert.equal(await cycle(owner), "ok");
  await owner.query("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ours TO clerk");
  assert.equal(await cycle(clerk), "ok");
  await owner.query("GRANT CREATE ON SCHEMA ours TO clerk");
  assert.equal(await cycle(poolOf({ connectionString: address.replace("postgres@", "clerk@") })), "ok");
  const replica = postgresStore(poolOf({ connectionString: address, options: "-c default_transaction_read_only=on" }), { table });
  assert.equal((await replica.load("a"))?.messages.length, 6);
  assert.equal((await replica.list()).length, 1);
  await assert.rejects(replica.claim("a"), /read-only transaction/);
});
