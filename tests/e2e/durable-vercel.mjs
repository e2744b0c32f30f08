// @ts-check
// The example www/examples/vercel-workflow in the SDK's local world: the process is killed at the beginning of each step, and while
// a person is awaited.   node --test tests/e2e/durable-vercel.mjs

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { plain } from "../js/durable/orders-lives.mjs";
import { freePort } from "../js/fleet/stores.mjs";
import { answers, ask, example, opened, program } from "./durable/office.mjs";
import { packagesOf } from "./npm.mjs";

const { folder: packages, missing: skip } = packagesOf("durable-workflow", ["workflow@4.8.9"]);
const HOOK = fileURLToPath(new URL("durable/steps-hook.mjs", import.meta.url));
const run = promisify(execFile);

/** @param {string} office @returns {Promise<import("./durable/office.mjs").Engine>} */
async function engineOf(office) {
  const folder = await example("vercel-workflow", packages);
  await run(process.execPath, ["wasm.mjs"], { cwd: folder });
  await run(process.execPath, ["node_modules/workflow/bin/run.js", "build", "--target", "standalone"], { cwd: folder });
  const port = await freePort();
  const address = `http://127.0.0.1:${port}/orders`;
  /** @type {ReturnType<typeof program> | undefined} */
  let service;
  return {
    async open() {
      if (service) return;
      const env = { ...process.env, PORT: String(port), OFFICE: office, WORKFLOW_NO_UPDATE_CHECK: "1" };
      service = program(process.execPath, ["--import", HOOK, "server.mjs"], { cwd: folder, env });
      await answers(`http://127.0.0.1:${port}/`, service);
    },
    async kill(what) {
      if (what === "server") return;
      const gone = service;
      service = undefined;
      await gone?.kill();
    },
    begin: async (customer) => (await ask(address, { customer })).id,
    decide: async (id, name) => {
      // The question is told before its hook is stored.
      for (let i = 0; i < 100 && !(await ask(`${address}/${id}/decision`, { name, decision: "approve" })); i++) await new Promise((go) => setTimeout(go, 50));
    },
    async output(id) {
      const found = await ask(`${address}/${id}`);
      assert.notEqual(found?.status, "failed", JSON.stringify(found));
      return found?.output && { ...found.output, messages: JSON.parse(found.output.messages) };
    },
  };
}

const { office, unbroken } = await opened(skip, engineOf);
const LIMIT = { timeout: 150_000, skip };
/** The model, three lookups, the model, the question, the refund, the model. */
const STEPS = 8;

test("an unbroken order has its steps", LIMIT, () => {
  assert.equal(unbroken.told.length, STEPS);
});

for (let step = 1; step <= STEPS; step++) {
  test(`the process is killed at the beginning of step ${step}`, LIMIT, async () => {
    await office.restart();
    const { kills, refunds, messages } = await office.order(`begin step ${step}`);
    assert.equal(kills, 1);
    const expected = plain(unbroken.messages);
    const result = messages.findIndex(({ callId, role }) => role === "tool_result" && callId === "refund");
    // That it had begun is not known: it was killed before the step said so.
    if (messages[result].cause === "interrupted") expected[result] = plain(messages)[result];
    assert.equal(refunds, messages[result].cause === "interrupted" ? 0 : 1);
    assert.deepEqual(plain(messages), expected);
  });
}
