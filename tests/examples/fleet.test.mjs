// @ts-check
// A fleet of four processes behind their router, for some seconds: processes are killed, stopped and replaced, clocks jump, and
// the database goes away. `cargo xtask e2e fleet` does it for a minute with every store. And what a process tells of itself.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { RemoteAgent } from "../../pkg/remote.js";
import { folder as folderOf, freePort, hasPostgres, postgresServer } from "../js/fleet/stores.mjs";
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

/** An agent whose model answers when a file is there. */
const PATIENT = `import { existsSync } from "node:fs";
import { scripted } from "turnwheel";
const answer = async () => { while (!existsSync(process.env.GATE)) await new Promise((resolve) => setTimeout(resolve, 10)); return "done"; };
export const agentOptions = () => ({ model: scripted([answer]) });
export const mayUse = () => true;
`;

test("a process tells its health and its numbers: in order, with a run, handing over, and without its store", { timeout: 60_000 }, async (t) => {
  const folder = await install("fleet", { pg: `${ROOT}/node_modules/pg` });
  writeFileSync(join(folder, "agent.js"), PATIENT);
  const gate = join(folder, "gate");
  rmSync(gate, { force: true });
  const database = hasPostgres ? await postgresServer(t) : undefined;
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const server = spawn(process.execPath, ["--no-warnings", "server.js"], { cwd: folder, env: { ...process.env, PORT: String(port), STORE: database?.address ?? folderOf(t), GATE: gate, GRACE_MS: "60000" }, stdio: ["ignore", "pipe", "inherit"] });
  t.after(() => void server.kill("SIGKILL"));
  await once(server.stdout, "data");
  const health = async () => {
    const response = await fetch(`${url}/health`);
    return { status: response.status, ...(await response.json()) };
  };
  /** @param {(told: any) => boolean} isSo */
  async function until(isSo) {
    for (;;) {
      const told = await health();
      if (isSo(told)) return told;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
  async function numbers() {
    const response = await fetch(`${url}/metrics`);
    assert.equal(response.headers.get("content-type"), "text/plain; version=0.0.4");
    const lines = (await response.text()).trimEnd().split("\n");
    for (let i = 0; i < lines.length; i += 3) {
      const [, name = ""] = /^# HELP (\w+) .+\.$/.exec(lines[i] ?? "") ?? [];
      assert.match(lines[i + 1] ?? "", new RegExp(`^# TYPE ${name} ${name.endsWith("_total") ? "counter" : "gauge"}$`));
      assert.match(lines[i + 2] ?? "", new RegExp(`^${name} [\\d.e+-]+$`));
    }
    return Object.fromEntries(lines.filter((line) => !line.startsWith("#")).map((line) => [line.split(" ")[0], Number(line.split(" ")[1])]));
  }
  const nothing = { agents: 0, running: 0, listeners: 0, claimed: 0, takenOver: 0, handedOver: 0, lost: 0, passedOn: 0 };
  assert.deepEqual(await health(), { status: "ok", address: url, ...nothing });
  assert.deepEqual([(await numbers())["turnwheel_agents"], (await fetch(`${url}/else`)).status, (await fetch(`${url}/agents/%E0%A4%A/state`)).status], [0, 404, 400]);

  const page = new RemoteAgent({ url: `${url}/agents/a`, onError() {}, reconnects: { maxAttempts: 1_000, initialMs: 20, maxMs: 100 } });
  t.after(() => page[Symbol.dispose ?? Symbol.for("Symbol.dispose")]());
  void page.prompt("Go").then(() => {}, () => {});
  assert.deepEqual(await until(({ running, listeners }) => running === 1 && listeners === 1), { status: "ok", address: url, ...nothing, agents: 1, running: 1, listeners: 1, claimed: 1 });
  const told = await numbers();
  assert.deepEqual(["turnwheel_agents", "turnwheel_agents_running", "turnwheel_listeners", "turnwheel_claims_total", "turnwheel_takeovers_total", "turnwheel_leases_lost_total"].map((name) => told[name]), [1, 1, 1, 1, 0, 0]);
  assert.ok(told["process_resident_memory_bytes"] > 1e7 && told["nodejs_eventloop_lag_p99_seconds"] >= 0);

  if (database) {
    database.stop();
    const gone = await until(({ status }) => status !== "ok");
    assert.deepEqual([gone.error.message, (await fetch(`${url}/health`)).status], ["the store does not answer", 503]);
    database.start();
    await until(({ status }) => status === "ok");
  }
  server.kill("SIGTERM");
  assert.equal((await until(({ status }) => status !== "ok")).error.message, "this process hands its agents over");
  page[Symbol.dispose ?? Symbol.for("Symbol.dispose")]();
  writeFileSync(gate, "");
  assert.deepEqual(await once(server, "exit"), [0, null]);
});
