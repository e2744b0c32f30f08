// @ts-check
// What is allowed in the global scope of a Worker.

import assert from "node:assert/strict";
import { test } from "node:test";
import { start } from "../durable/bundle.mjs";

test("an agent may be made where a Worker begins", { timeout: 60_000 }, async () => {
  const server = await start("global.mjs", { durableObjects: {} });
  try {
    assert.deepEqual(await (await server.dispatchFetch("http://worker.example/")).json(), { stopReason: "completed", hasSession: true });
  } finally {
    await server.dispose();
  }
});
