// @ts-check
// An agent in a Workflow of Cloudflare's: workerd and the process around it are killed with SIGKILL, at the beginning and at the
// end of steps, after they were stored, and while a person is awaited.   node --test tests/e2e/durable-cloudflare.mjs

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { compare, office } from "../js/durable/orders-lives.mjs";
import { POINTS } from "./durable/points.mjs";

const own = await office();
after(() => own.close());
const unbroken = await own.order();

test("an unbroken order passes every point", () => {
  assert.deepEqual(POINTS.filter((point) => !unbroken.told.includes(point)), []);
});

for (const killAt of POINTS) {
  test(`killed at \`${killAt}\`, an order comes to the same end`, { timeout: 120_000 }, async () => compare(await own.order(killAt), unbroken, killAt));
}
