// @ts-check
// A fleet of four processes behind their router, for some seconds: processes are killed, stopped and replaced, clocks jump, and
// the database goes away. `cargo xtask e2e fleet` does it for a minute with every store.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { folder as folderOf, hasPostgres, postgresServer } from "../js/fleet/stores.mjs";
import { besiege, NEVER, table } from "../js/fleet/siege.mjs";
import { clean, install, ROOT } from "./kit.mjs";

after(clean);

test("nothing is lost and nothing comes twice, whatever happens to the processes", { timeout: 150_000 }, async (t) => {
  const folder = await install("fleet", { pg: `${ROOT}/node_modules/pg` });
  const server = hasPostgres ? await postgresServer(t) : undefined;
  const database = server && { database: async () => (server.stop(), server.start()) };
  const ledger = await besiege({ folder, store: server?.address ?? `${folderOf(t)}/agents`, seconds: 12, ...database });
  t.diagnostic(table(server ? "PostgreSQL" : "files", ledger));
  for (const name of NEVER) assert.equal(/** @type {any} */ (ledger)[name], 0, name);
  assert.ok(ledger["runs ended"] >= 6 && ledger["tools begun"] >= 18, table("too little happened", ledger));
});
