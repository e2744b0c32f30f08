// @ts-check
// The example of an agent in a Workflow: unbroken, and killed at two points; `cargo xtask e2e durable-cloudflare` has the others.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { decisionType, workflowHost } from "../../../pkg/cloudflare-elsewhere.js";
import { compare, office } from "../durable/orders-lives.mjs";

const own = await office();
after(() => own.close());

test("an order looks up three things at once, asks, and pays; killed, it comes to the same end", { timeout: 120_000 }, async () => {
  const unbroken = await own.order();
  assert.deepEqual(unbroken.messages.map(({ role }) => role), ["user", "assistant", "tool_result", "tool_result", "tool_result", "assistant", "tool_result", "assistant"]);
  assert.deepEqual([unbroken.refunds, unbroken.messages.at(-1).content[0].text], [1, "Done."]);
  compare(await own.order("end t1/tool/0-refund"), unbroken, "end t1/tool/0-refund");
});

test("the host of a Workflow says what it needs, and which event answers", async () => {
  assert.throws(() => workflowHost(/** @type {any} */ ({})), /takes the `step` that a Workflow's run\(event, step\) gets, got an object/);
  assert.equal(decisionType("r2/t1/tool/0-a.b/t0/approve/0"), "r2-t1-tool-0-a-b-t0-approve-0");
  const long = ["a", "b"].map((letter) => decisionType(`${"t0/tool/0-x/".repeat(12)}${letter}`));
  assert.deepEqual(long.map((type) => [type.length, /^[\w-]+$/.test(type)]), [[100, true], [100, true]]);
  assert.notEqual(long[0], long[1]);
});

test("its steps are those of the Workflow, and a wait without a name is a timer", async () => {
  /** @type {any[]} */
  const asked = [];
  const host = workflowHost({
    do: async (name, config, work) => (asked.push(["do", name, config.retries.limit]), work({ attempt: 2 })),
    sleep: async (name, ms) => void asked.push(["sleep", name, ms]),
    waitForEvent: async (name, { type, timeout }) => (asked.push(["wait", name, type, timeout]), { payload: "approve" }),
  });
  assert.equal(await host.step("t0/model", async (info) => /** @type {any} */ (info?.attempt), { kind: "begin" }), 2);
  const { signal } = new AbortController();
  await host.sleep(5000, signal, "t0/sleep/1");
  await host.sleep(1, signal);
  assert.equal(await host.wait("t0/approve/0", /** @type {any} */ ({})), "approve");
  assert.deepEqual(asked, [["do", "t0/model", 3], ["sleep", "t0/sleep/1", 5000], ["wait", "t0/approve/0", "t0-approve-0", "30 days"]]);
  assert.deepEqual(host.steps, { maxBytes: 1_000_000 });
});
