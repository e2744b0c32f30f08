// @ts-check
// `cancel`: an abort that waits for its turn behind what was posted before it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, call, deferred, scripted, settle, testTool } from "../kit.mjs";

for (const how of /** @type {const} */ (["abort", "cancel"])) {
  test(`${how}: a message that was steered right before is ${how === "abort" ? "overtaken" : "not overtaken"}`, async () => {
    const gate = deferred();
    const agent = new Agent({ model: scripted([call("wait"), "again"]), tools: [testTool("wait", () => gate.promise)] });
    const run = agent.prompt("Go.");
    while (agent.messages.length < 2) await settle();
    agent.steer("Somebody else goes on.", { when: "immediate" });
    const reason = new Error("the shift is over");
    agent[how](reason);
    const { stopReason, error, messages } = await run;
    assert.deepEqual([stopReason, error?.message, error?.cause], ["aborted", "the shift is over", reason]);
    assert.equal(/** @type {any} */ (messages.find(({ role }) => role === "tool_result")).cause, how === "abort" ? "aborted" : "steering");
    // The next run reads the message.
    const next = await agent.continue();
    assert.match(JSON.stringify(next.messages), /Somebody else goes on/);
  });
}

test("before a run has begun it ends it, and without one it does nothing", async () => {
  const agent = new Agent({ model: scripted(["a", "b"]) });
  agent.cancel();
  const run = agent.prompt("Go.");
  agent.cancel("early");
  const { stopReason, error } = await run;
  assert.deepEqual([stopReason, error?.message], ["aborted", "early"]);
  assert.equal((await agent.prompt("Again.")).stopReason, "completed");
});
