// @ts-check
// What a listener does to its agent in the middle of an event: every deed at every event. The run ends, nothing of it
// is left behind, and the agent says afterwards what it would say if nothing had happened.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, call, clock, scripted, settle, testTool } from "../kit.mjs";

const EVENTS = ["agent_start", "turn_start", "message_start", "message_update", "message_end", "tool_calls_proposed", "tool_approval_requested", "tool_approval_resolved", "tool_execution_start", "tool_execution_update", "tool_execution_end", "turn_end", "agent_end"];

/** @type {Record<string, (agent: any, run: any, options: any) => void>} */
const DEEDS = {
  reset: (agent) => agent.reset(),
  "reset twice": (agent) => (agent.reset(), agent.reset()),
  dispose: (agent) => agent[Symbol.dispose](),
  "reset and dispose": (agent) => (agent.reset(), agent[Symbol.dispose]()),
  abort: (agent) => agent.abort("enough"),
  "abort and reset": (agent) => (agent.abort("enough"), agent.reset()),
  "reset and prompt": (agent) => (agent.reset(), void agent.prompt("Again.")),
  prompt: (agent) => void agent.prompt("Again."),
  continue: (agent) => void agent.continue(),
  restore: (agent, _run, options) => void Agent.restore(agent.checkpoint(), options),
  "checkpoint, reset, restore": async (agent, _run, options) => {
    const saved = agent.checkpoint();
    agent.reset();
    await Agent.restore(saved, options);
  },
  steer: (agent) => void agent.steer("Wait."),
  "leave the iterator": (_agent, run) => void run[Symbol.asyncIterator]().return?.(),
};

/** An agent whose run has every one of the events. @param {number} runs */
function made(runs = 6) {
  const answers = Array.from({ length: runs }, () => [{ ...call("pay", "look"), text: "Let me see." }, "Done."]).flat();
  /** @type {any} */
  const options = {
    host: clock().host, model: scripted(/** @type {any} */ (answers)), maxTurns: 4,
    tools: [testTool("pay", (/** @type {any} */ _, /** @type {any} */ { update }) => (update("half"), "paid"), { requiresApproval: true }), testTool("look", () => "seen")],
    approveTool: () => "approve",
  };
  return { agent: new Agent(options), options };
}

/** Lets everything happen. */
const calm = async () => {
  for (let i = 0; i < 8; i++) await settle();
};

for (const [deed, act] of Object.entries(DEEDS)) {
  test(`${deed}, in a listener of each event`, async () => {
    for (const at of EVENTS) {
      for (const iterated of [false, true]) {
        const { agent, options } = made();
        const what = `${deed} at ${at}${iterated ? ", iterated" : ""}`;
        let done = false;
        /** @type {any} */
        let run;
        agent.subscribe(({ type }) => {
          if (type !== at || done) return;
          done = true;
          try {
            act(agent, run, options);
          } catch (/** @type {any} */ error) {
            // Not everything may be done at any moment; then it is said.
            assert.equal(error.code, "misuse", `${what}: ${error}`);
          }
        });
        run = agent.prompt("Go.");
        let ended = false;
        run.result.then(() => (ended = true));
        const read = [];
        const iterator = iterated && !deed.startsWith("leave") ? run[Symbol.asyncIterator]() : undefined;
        // A slow reader: it has taken one event when everything else is over.
        if (iterator) read.push(await iterator.next());
        await calm();
        assert.ok(done && ended, `${what}: ended`);
        await agent.waitForIdle();
        assert.equal(agent.isRunning, false, what);
        if (iterator) while (!(read.at(-1)?.done ?? true)) read.push(await iterator.next());
        if (deed.includes("dispose")) {
          assert.throws(() => agent.prompt("More?"), /disposed/, what);
          continue;
        }
        if (/reset$|reset twice/.test(deed)) {
          assert.deepEqual(agent.messages, [], what);
          assert.deepEqual([agent.canContinue, agent.pendingApprovals.length, agent.usage.total], [false, 0, 0], what);
          const { messages, metadata } = /** @type {any} */ (agent.checkpoint());
          assert.deepEqual(messages, [], `${what}: the checkpoint`);
          assert.equal(metadata.turnwheel.run, undefined, `${what}: the checkpoint has no run`);
        }
        const next = await agent.prompt("More.").result;
        assert.equal(next.stopReason, "completed", `${what}: ${next.error}`);
      }
    }
  });
}

test("what a reset in a listener of the end leaves is not the old run: neither in a checkpoint nor in the next run", async () => {
  const { agent } = made();
  agent.subscribe(({ type }) => void (type === "agent_end" && agent.messages.length > 2 && agent.reset()));
  const run = agent.prompt("The old question.");
  const iterator = run[Symbol.asyncIterator]();
  await iterator.next();
  const result = await run.result;
  assert.equal(result.stopReason, "completed");
  const text = JSON.stringify(agent.checkpoint());
  assert.doesNotMatch(text, /old question/);
  assert.deepEqual(agent.messages, []);
  // The iterator still gets to the end of what it was promised.
  const types = [];
  for (let step = await iterator.next(); !step.done; step = await iterator.next()) types.push(step.value.type);
  assert.equal(types.at(-1), "agent_end");
});
