// @ts-check
// `store.follow` saves an agent at its events.

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { Agent, scripted } from "../kit.mjs";
import { fileStore } from "../../../pkg/stores-node.js";

const folder = await mkdtemp(join(tmpdir(), "follow-"));
after(() => rm(folder, { recursive: true }));

/** A store that counts its writes, and in which some of them fail. @param {any} store @param {(count: number) => boolean} [fails] */
function counted(store, fails = () => false) {
  const counts = { writes: 0 };
  const agentOf = (/** @type {any} */ agent) => ({
    subscribe: agent.subscribe.bind(agent),
    checkpoint() {
      if (fails(++counts.writes)) throw new Error("the disk is full");
      return agent.checkpoint();
    },
  });
  return { counts, follow: (/** @type {string} */ id, /** @type {any} */ agent) => store.follow(id, agentOf(agent)) };
}

test("a run is stored as it goes, with fewer writes than events", async () => {
  const store = fileStore(folder);
  const agent = new Agent({ model: scripted(["One two three four five six seven."]) });
  const { follow, counts } = counted(store);
  const stop = follow("chat", agent);
  let events = 0;
  agent.subscribe(() => void events++);
  await agent.prompt("Count").orThrow();
  await stop();
  assert.equal((await store.load("chat")).messages.length, 2);
  assert.ok(counts.writes < events, `${counts.writes} writes for ${events} events`);
  await agent.prompt("Again");
  assert.equal((await store.load("chat")).messages.length, 2, "it was stopped");
});

test("a write that fails is reported once, and the next event tries again", async () => {
  const store = fileStore(join(folder, "failing"));
  /** @type {string[]} */
  const failures = [];
  const agent = new Agent({ model: scripted(["One.", "Two."]), hooks: { onError: ({ error }) => void failures.push(error.message) } });
  const stop = counted(store, (count) => count === 1).follow("chat", agent);
  await agent.prompt("Hi").orThrow();
  await stop();
  assert.equal(failures.length, 1);
  assert.match(failures[0] ?? "", /the disk is full/);
  assert.equal((await store.load("chat")).messages.length, 2);
});

test("what is no agent is refused", () => {
  assert.throws(() => fileStore(folder).follow("chat", /** @type {any} */ ({})), /`follow` takes an agent/);
  assert.throws(() => fileStore(folder).follow("", new Agent({ model: scripted([]) })), /the id of a checkpoint must be a text/);
});
