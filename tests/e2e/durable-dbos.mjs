// @ts-check
// The example www/examples/dbos on a PostgreSQL: the process is killed at each point.   node --test tests/e2e/durable-dbos.mjs

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { compare } from "../js/durable/orders-lives.mjs";
import { freePort, hasPostgres, postgresServer } from "../js/fleet/stores.mjs";
import { answers, ask, costOf, example, opened, program } from "./durable/office.mjs";
import { POINTS } from "./durable/points.mjs";
import { packagesOf } from "./npm.mjs";

const packages = packagesOf("durable-dbos", ["@dbos-inc/dbos-sdk@5.3.0"]);
const skip = packages.missing ?? (hasPostgres ? undefined : "there is no PostgreSQL here");
const HOOK = fileURLToPath(new URL("durable/hook.mjs", import.meta.url));

/** @param {string} office @returns {Promise<import("./durable/office.mjs").Engine>} */
async function engineOf(office) {
  const database = await postgresServer({ after });
  const folder = await example("dbos", packages.folder, "@dbos-inc");
  const port = await freePort();
  const address = `http://127.0.0.1:${port}/orders`;
  /** @type {ReturnType<typeof program> | undefined} */
  let service;
  return {
    async open() {
      if (service) return;
      const env = { ...process.env, PORT: String(port), HOST: "127.0.0.1", OFFICE: office, DATABASE_URL: database.address.replace(/postgres$/, "orders") };
      service = program(process.execPath, ["--import", HOOK, "server.js"], { cwd: folder, env });
      await answers(`${address}/none`, service);
    },
    async kill(what) {
      if (what === "server") return;
      const gone = service;
      service = undefined;
      await gone?.kill();
    },
    begin: async (customer) => (await ask(address, { customer })).id,
    decide: (id, name) => ask(`${address}/${id}/decision`, { name, decision: "approve" }),
    async output(id) {
      const found = await ask(`${address}/${id}`);
      assert.notEqual(found?.status, "ERROR", JSON.stringify(found));
      return found?.status === "SUCCESS" ? { ...found.output, messages: JSON.parse(found.output.messages) } : undefined;
    },
  };
}

const { office, unbroken } = await opened(skip, engineOf);
const LIMIT = { timeout: 120_000, skip };

test("an unbroken order passes every point", LIMIT, () => {
  assert.deepEqual(POINTS.filter((point) => !unbroken.told.includes(point)), []);
});

for (const killAt of POINTS) {
  test(`the process is killed at \`${killAt}\``, LIMIT, async () => compare(await office.order(killAt), unbroken, killAt));
}

test("what a step costs", LIMIT, async (t) => t.diagnostic(await costOf("DBOS", office)));
