// @ts-check
// A model that never stops, and one that calls all there is: with no option set, a run comes to an end, and what it costs has a
// bound that docs/security.md names.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, custom, subagent, testTool, textOf } from "../kit.mjs";

/** A timer that does not wait. */
const host = { sleep: () => Promise.resolve() };

/**
 * A model that calls a tool this often in every answer, and fails before it answers as often as that may be tried again.
 * @param {string} name @param {number} calls @param {{ asked: number }} counted @param {number} [failures]
 */
function restless(name, calls, counted, failures = 0) {
  let failed = 0;
  return custom("restless", async function* () {
    counted.asked++;
    if (failed++ < failures) throw Object.assign(new Error("down"), { code: "server", retryable: true });
    failed = 0;
    yield { type: "start" };
    for (let i = 0; i < calls; i++) {
      yield { type: "tool_call_start", contentIndex: i, callId: `c${counted.asked}-${i}`, toolName: name };
      yield { type: "tool_call_delta", contentIndex: i, delta: '{"prompt":"more"}' };
      yield { type: "tool_call_end", contentIndex: i };
    }
    yield { type: "done", stopReason: "tool_use" };
  });
}

test("a model that never stops, at a provider that fails as often as it may, is asked 300 times", async () => {
  const counted = { asked: 0 };
  const { stopReason, turns } = await new Agent({ model: restless("look", 1, counted, 2), tools: [testTool("look", () => "x")], host }).prompt("Go.").result;
  assert.deepEqual([stopReason, turns, counted.asked], ["max_turns", 100, 300]);
});

test("of a thousand calls in one answer as many run at once as the host says, or all", async () => {
  for (const [maxConcurrentTools, most] of /** @type {[number | undefined, number][]} */ ([[undefined, 1_000], [3, 3], [Infinity, 1_000]])) {
    let running = 0;
    let highest = 0;
    let ran = 0;
    const look = testTool("look", async () => {
      ran++;
      highest = Math.max(highest, ++running);
      await new Promise((resolve) => setImmediate(resolve));
      running--;
      return "x";
    });
    const options = maxConcurrentTools === undefined ? {} : { maxConcurrentTools };
    await new Agent({ model: restless("look", 1_000, { asked: 0 }), tools: [look], maxTurns: 1, host, ...options }).prompt("Go.").result;
    assert.deepEqual([ran, highest], [1_000, most]);
  }
});

test("sub-agents that call sub-agents are a thousand in all, and every call beyond that has an answer that says so", async () => {
  const counted = { asked: 0, calls: 6 };
  const agentOf = () => new Agent({ model: restless("delegate", counted.calls, counted), tools: [delegate], maxTurns: 1, host });
  const delegate = subagent({ name: "delegate", description: "", agent: agentOf });
  const agent = agentOf();
  /** @type {Set<string>} */
  const answers = new Set();
  agent.subscribe((event) => {
    const inner = event.type === "subagent_event" ? event.event : event;
    if (inner.type === "tool_execution_end" && inner.result.isError) answers.add(textOf(inner.result));
  });
  const { stopReason } = await agent.prompt("Go.").result;
  assert.equal(stopReason, "max_turns");
  // One of them is the outermost.
  assert.equal(counted.asked, 1_001);
  assert.ok([...answers].some((text) => /1000 sub-agents have run inside this run/.test(text)), [...answers].join("\n"));
  // The next run of the same agent begins with none.
  counted.asked = 0;
  counted.calls = 1;
  await agent.prompt("Go on.").result;
  assert.ok(counted.asked > 1);
});
