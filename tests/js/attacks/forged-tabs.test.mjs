// @ts-check
// A script of the same origin speaks on the channel of the tabs, as if it had the agent: the tabs believe the store.

import assert from "node:assert/strict";
import { test } from "node:test";
import "../docs/tabs-page.mjs";
import { openAgent, shared } from "../../../pkg/tabs.js";
import { scripted } from "../kit.mjs";

const DISPOSE = Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose");

test("an owner that there never was is forgotten, by followers and by the owner", { timeout: 20_000 }, async (t) => {
  t.mock.method(console, "error", () => {});
  t.mock.method(console, "warn", () => {});
  const id = "forged";
  const make = (/** @type {any} */ lease) => openAgent(lease, { model: scripted(["one", "two", "three"]) });
  const options = { stealMs: 400 };
  const first = await shared(id, make, options);
  const second = await shared(id, make, options);
  assert.equal((await second.prompt("Go")).text, "one");
  const channel = new BroadcastChannel(`turnwheel:${JSON.stringify(["turnwheel", id])}`);
  for (const type of ["owner", "bye", "soon"]) {
    channel.postMessage({ v: 1, type, epoch: Number.MAX_SAFE_INTEGER });
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  for (const agent of [second, first]) assert.equal((await agent.prompt("Go on")).stopReason, "completed");
  assert.deepEqual([first.role, second.role].sort(), ["follower", "owner"]);
  channel.close();
  await Promise.all([first, second].map((agent) => /** @type {any} */ (agent)[DISPOSE]()));
});

test("an owner that says so ten times a second changes nothing: one prompt is one call of the model, and a hand-over is noticed", { timeout: 30_000 }, async (t) => {
  t.mock.method(console, "error", () => {});
  t.mock.method(console, "warn", () => {});
  const id = "flooded";
  let calls = 0;
  const make = (/** @type {any} */ lease) => openAgent(lease, { model: scripted([() => (calls++, "one"), () => (calls++, "two"), () => (calls++, "three")]) });
  const options = { stealMs: 1_000, onError() {} };
  const first = await shared(id, make, options);
  const second = await shared(id, make, options);
  const channel = new BroadcastChannel(`turnwheel:${JSON.stringify(["turnwheel", id])}`);
  let epoch = Number.MAX_SAFE_INTEGER - 1_000;
  const timer = setInterval(() => {
    for (const type of ["owner", "soon", "bye"]) channel.postMessage({ v: 1, type, epoch: epoch++ });
    channel.postMessage({ v: 1, type: "head", id: "x", epoch, status: 200, headers: {}, body: "{}" });
  }, 100);
  try {
    assert.equal((await second.prompt("Go")).stopReason, "completed");
    assert.equal((await first.prompt("Go on")).stopReason, "completed");
    assert.equal(calls, 2);
    assert.deepEqual([first.role, second.role], ["owner", "follower"]);
    await first.handOver();
    assert.equal((await first.prompt("And on")).stopReason, "completed");
    assert.deepEqual([first.role, second.role], ["follower", "owner"]);
  } finally {
    clearInterval(timer);
    channel.close();
    await Promise.all([first, second].map((agent) => /** @type {any} */ (agent)[DISPOSE]()));
  }
});
