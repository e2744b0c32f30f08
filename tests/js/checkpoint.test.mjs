// @ts-check
// A run is put to sleep after every single event and goes on elsewhere: the history comes out the same, and no tool
// runs oftener than it may.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, approve, options, world } from "./checkpoint/world.mjs";
import { checkTrace } from "./grammar.mjs";
import { settle } from "./kit.mjs";

/** A history without what tells of time. @param {readonly any[]} messages */
const plain = (messages) => JSON.parse(JSON.stringify(messages, (key, value) => (key === "timestamp" ? undefined : value)));

/** Runs to the end, or to an event, from the beginning or a checkpoint. @param {any} own @param {{ from?: string, until?: number, iterates?: boolean }} [how] */
async function live(own, { from, until = Infinity, iterates = false } = {}) {
  /** @type {any[]} */
  const events = [];
  const agent = from === undefined ? new Agent(options(own)) : Agent.restore(from, options(own));
  /** @type {(saved: string) => void} */
  let sleep = () => {};
  const asleep = new Promise((resolve) => (sleep = resolve));
  const hear = (/** @type {any} */ event) => {
    if (own.dead) return;
    events.push(event);
    if (events.length !== until) return;
    sleep(JSON.stringify(agent.checkpoint()));
    own.dead = true;
  };
  if (!iterates) agent.subscribe(hear);
  approve(agent, own);
  const run = from === undefined ? agent.prompt("Go") : agent.continue();
  const iterate = async () => {
    for await (const event of run) hear(event);
    return run.result;
  };
  const saved = await Promise.race([asleep, iterates ? iterate() : run.result]);
  const result = typeof saved === "string" ? undefined : saved;
  return { events, saved: /** @type {string} */ (saved), result, agent };
}

const whole = await live(world());

test("the undisturbed run is what the tests suppose", () => {
  assert.equal(whole.result.stopReason, "completed");
  assert.equal(whole.result.turns, 5);
  assert.equal(whole.agent.messages.length, 1 + 5 + 8);
});

for (const iterates of [false, true]) {
  test(`after every single event another agent goes on${iterates ? ", for who iterates" : ""}`, async () => {
    for (let until = 1; until < whole.events.length; until++) {
      const first = world();
      const slept = await live(first, { until, iterates });
      const second = { ...world(), failed: first.failed };
      const woken = await live(second, { from: slept.saved, iterates });
      const where = `after event ${until}, ${slept.events.at(-1).type}`;
      assert.equal(woken.result.stopReason, "completed", where);
      const [resumed, ...after] = woken.events;
      assert.equal(resumed.type, "run_resumed", where);
      assert.equal(resumed.runId, slept.events[0].runId);
      checkTrace([...slept.events, ...after]);
      const ran = [...first.ran, ...second.ran];
      const twice = ran.filter((id, i) => ran.indexOf(id) !== i);
      assert.ok(twice.every((id) => !/^[bd]1/.test(id)), `${where}: ${twice} ran twice`);
      // What was running and must not run twice has a result that says so.
      const running = resumed.runningTools.filter((/** @type {any} */ { toolName }) => toolName === "pay").map((/** @type {any} */ { callId }) => callId);
      const expected = plain(whole.agent.messages);
      for (const message of expected) {
        if (!running.includes(message.callId)) continue;
        Object.assign(message, { isError: true, cause: "interrupted", content: [{ type: "text", text: "tool call interrupted: the process ended while the tool ran" }] });
      }
      assert.deepEqual(plain(woken.agent.messages), expected, where);
      assert.deepEqual(plain(woken.result.messages), expected, where);
    }
  });
}
