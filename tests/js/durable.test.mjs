// Runs inside durable engines: killed under random schedules, in each way in which engines find a step again. DURABLE_SCHEDULES sets
// how many schedules there are; `cargo xtask e2e durable` has the real engines.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { Agent, subagent, testTool, tool } from "./kit.mjs";
import { byData, dbos, perform, restate } from "../../pkg/durable.js";
import { record, ready } from "../../pkg/tape.js";
import { Life, Records } from "./steps/engines.mjs";
import { model, survive, whole, World } from "./steps/worlds.mjs";

const schedules = Number(process.env.DURABLE_SCHEDULES ?? 60);
const OBJECT = { type: "object" };
const calls = (...names) => names.map((name, i) => ({ id: `c${i}`, name, args: {} }));
/** Calls these tools, and then says that it is done. */
const calling = (...names) => model("m", ({ messages }) => (messages.some(({ role }) => role === "tool_result") ? { text: "done" } : { calls: calls(...names) }));

async function many(count, mode, features, from) {
  let kills = 0;
  for (let seed = from; seed < from + count; seed++) {
    const survived = await survive(seed, { mode, features }).catch((error) => assert.fail(`seed ${seed}, ${mode}: ${error.stack}`));
    kills += survived.kills;
  }
  assert.ok(kills >= count / 2, `only ${kills} lives were killed`);
}

test("a run that is killed anywhere goes on, and lives again to the same history, for an engine that goes by names", () => many(schedules, "name", undefined, 1));
test("the same for an engine that goes by the order of steps", () => many(schedules / 2, "order", undefined, 2001));
test("the same for an engine that gives results back one at a time, in its own order", () => many(schedules / 3, "single", undefined, 4001));
test("the same with letters from outside", () => many(schedules / 3, "name", { steering: true, approver: "always" }, 6001));
test("the same with an abort from outside", () => many(schedules / 3, "order", { aborts: true, approver: "always" }, 8001));
