// @ts-check
// The example www/examples/restate on a server of Restate's: the process with the agent is killed at each point, and the server at
// some.   node --test tests/e2e/durable-restate.mjs

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { compare } from "../js/durable/orders-lives.mjs";
import { freePort } from "../js/fleet/stores.mjs";
import { answers, ask, costOf, example, opened, program } from "./durable/office.mjs";
import { POINTS } from "./durable/points.mjs";
import { packagesOf } from "./npm.mjs";

const VERSIONS = ["@restatedev/restate-server@1.7.12", "@restatedev/restate-sdk@1.17.2"];
const platform = `${process.platform}-${process.arch}`;
const packages = packagesOf("durable-restate", VERSIONS);
// The SDK needs Node 22.
const own = Number(process.versions.node.split(".")[0]) >= 22;
const newer = own ? undefined : packagesOf("node-22", [`node-${platform}@22`]);
const node = newer?.folder ? join(newer.folder, "node_modules", `node-${platform}`, "bin/node") : process.execPath;
const skip = packages.missing ?? newer?.missing;
const HOOK = fileURLToPath(new URL("durable/hook.mjs", import.meta.url));

/** @param {string} office @returns {Promise<import("./durable/office.mjs").Engine>} */
async function engineOf(office) {
  const home = mkdtempSync(join(tmpdir(), "turnwheel-restate-"));
  after(() => rmSync(home, { recursive: true, force: true }));
  const modules = join(String(packages.folder), "node_modules/@restatedev");
  const folder = await example("restate", packages.folder, "@restatedev");
  const [ingress, admin, fabric, port] = await Promise.all([freePort(), freePort(), freePort(), freePort()]);
  const at = (/** @type {number} */ number) => `http://127.0.0.1:${number}`;
  const env = {
    ...process.env, RESTATE_INGRESS__BIND_ADDRESS: `127.0.0.1:${ingress}`, RESTATE_ADMIN__BIND_ADDRESS: `127.0.0.1:${admin}`,
    RESTATE_BIND_ADDRESS: `127.0.0.1:${fabric}`, RESTATE_ADVERTISED_ADDRESS: at(fabric), RESTATE_LISTEN_MODE: "tcp",
  };
  /** @type {Record<string, ReturnType<typeof program> | undefined>} */
  const running = {};
  let isRegistered = false;
  let orders = 0;
  return {
    async open() {
      if (!running["server"]) {
        // Not its starter in .bin: that could be killed, and the server live on.
        running["server"] = program(join(modules, `restate-server-${platform}/bin/restate-server`), ["--no-logo", "--node-name", "n1", "--base-dir", home], { env });
        await answers(`${at(admin)}/health`, running["server"]);
        await answers(`${at(ingress)}/restate/health`, running["server"]);
      }
      if (!running["service"]) {
        running["service"] = program(node, ["--import", HOOK, "server.js"], { cwd: folder, env: { ...process.env, PORT: String(port), OFFICE: office } });
        await new Promise((go) => setTimeout(go, isRegistered ? 0 : 500));
        while (!isRegistered) isRegistered = (await ask(`${at(admin)}/deployments`, { uri: at(port), force: true })) !== undefined;
      }
    },
    async kill(what = "service") {
      const gone = running[what || "service"];
      running[what || "service"] = undefined;
      await gone?.kill();
    },
    async begin(customer) {
      const id = String(++orders);
      assert.ok(await ask(`${at(ingress)}/orders/${id}/run/send`, { customer }), "it has begun");
      return id;
    },
    decide: (id, name) => ask(`${at(ingress)}/orders/${id}/decide`, { name, decision: "approve" }),
    output: (id) => ask(`${at(ingress)}/restate/workflow/orders/${id}/output`),
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

for (const killAt of ["begin t0/model", "end t0/tool/1-payment", "stored t1/approve/0/tell", "end t2/model"]) {
  test(`Restate's server is killed at \`${killAt}\``, LIMIT, async () => {
    const story = await office.order(killAt, "server");
    // The process lives: what had ended is stored when the server is there again, or is run again by it.
    compare(story, unbroken, killAt);
  });
}

test("what a step costs", LIMIT, async (t) => t.diagnostic(await costOf("Restate", office)));
