// @ts-check
// 240 schedules of a Durable Object that is evicted from memory at random moments;
// the everyday tests play 40.

import assert from "node:assert/strict";
import { test } from "node:test";
import { schedules } from "../js/durable/lives.mjs";

test("240 schedules of lives come to the same end", { timeout: 800_000 }, async () => {
  const deaths = await schedules(1, 240);
  console.log(`# ${deaths} deaths`);
  assert.ok(deaths > 300, `${deaths} deaths`);
});
