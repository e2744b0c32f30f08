// @ts-check
// A clock that is set back or forth: what takes a time is measured by one that nobody sets, and what happened has the time of day.

import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { agentHandler } from "../../../pkg/server.js";
import { Agent, custom, scripted } from "../kit.mjs";

const clock = Date.now;
const HOUR = 3_600_000;
const set = (/** @type {number} */ hours) => void (Date.now = () => clock() + hours * HOUR);
afterEach(() => set(0));

/** A model whose clock is set between the pieces of its answer. @param {number} hours */
const model = (hours) => custom("m", async function* () {
  yield { type: "start" };
  yield { type: "text_start", contentIndex: 0 };
  for (const delta of ["It ", "goes ", "on."]) {
    yield { type: "text_delta", contentIndex: 0, delta };
    await new Promise((resolve) => setTimeout(resolve, 2));
    set(hours);
  }
  yield { type: "text_end", contentIndex: 0 };
  yield { type: "done", stopReason: "stop", usage: { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, total: 2 } };
});

for (const hours of [5, -5]) {
  test(`an answer goes on when the clock is set ${hours} hours, its events are in order, and the next run has the new time`, async () => {
    const agent = new Agent({ model: model(hours), timeouts: { modelMs: 600_000, totalMs: 600_000, chunkMs: 600_000 } });
    /** @type {number[]} */
    const times = [];
    agent.subscribe((event) => void ("at" in event && typeof event.at === "number" && times.push(event.at)));
    const begun = clock();
    const { stopReason, text, error } = await agent.prompt("Go");
    assert.deepEqual([stopReason, text], ["completed", "It goes on."], error?.message);
    assert.ok(times.length >= 2 && times.every((at, i) => Number.isInteger(at) && at >= begun - 1 && at <= clock() + 1 && at >= (times[i - 1] ?? 0)), `${times.map((at) => at - begun)}`);
    await agent.prompt("Again");
    const { timestamp } = /** @type {any} */ (agent.messages.at(-1));
    assert.ok(Math.abs(timestamp - clock() - hours * HOUR) < 60_000, `${timestamp - clock()}`);
  });
}

test("an hour that the clock is set forth lets no more commands pass", async () => {
  const handler = agentHandler(new Agent({ model: scripted([]) }), { authorize: () => true, limits: { commandsPerMinute: 1 } });
  const reset = async (/** @type {string} */ id) => (await handler(new Request("http://localhost/reset", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ id }) }))).status;
  const [first] = [await reset("1")];
  set(1);
  assert.deepEqual([first, await reset("2")], [202, 429]);
});
