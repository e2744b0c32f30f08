// @ts-check
// An agent in a Workflow of Cloudflare's: workerd and the process around it are killed with SIGKILL, at the beginning and at the
// end of steps, after they were stored, and while a person is awaited.   node --test tests/e2e/durable-cloudflare.mjs

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { compare, office } from "../js/durable/orders-lives.mjs";

const POINTS = [
  "begin begin", "begin t0/model", "end t0/model", "begin t0/tool/1-payment", "end t0/tool/1-payment", "stored t0/tool/2-delivery",
  "end t1/model", "end t1/approve/0/tell", "stored t1/approve/0/tell", "begin t1/tool/0-refund", "end t1/tool/0-refund", "begin t2/model", "end t2/model",
];
const own = await office();
after(() => own.close());
const unbroken = await own.order();

test("an unbroken order passes every point", () => {
  assert.deepEqual(POINTS.filter((point) => !unbroken.told.includes(point)), []);
});

for (const killAt of POINTS) {
  test(`killed at \`${killAt}\`, an order comes to the same end`, { timeout: 120_000 }, async () => compare(await own.order(killAt), unbroken, killAt));
}
