// @ts-check
// There is one lease and one `openAgent`, of tabs and of processes: the same story over IndexedDB, the storage of an extension and
// files, with the `openAgent` of either entry.

import assert from "node:assert/strict";
import { test } from "node:test";
import "../docs/tabs-page.mjs";
import { agentHandler } from "../../../pkg/server.js";
import { extensionStore, indexedDBStore } from "../../../pkg/stores.js";
import * as node from "../../../pkg/stores-node.js";
import * as tabs from "../../../pkg/tabs.js";
import { folder, hasSqlite, storeOf } from "../fleet/stores.mjs";
import { Agent, call, deferred, misusedLater, scripted, testTool } from "../kit.mjs";

/** @type {Map<string, string>} */
const items = new Map();
const area = {
  get: async (/** @type {string[]} */ keys) => Object.fromEntries(keys.flatMap((key) => (items.has(key) ? [[key, JSON.parse(items.get(key) ?? "")]] : []))),
  set: async (/** @type {any} */ added) => void Object.entries(added).forEach(([key, value]) => items.set(key, JSON.stringify(value))),
  remove: async (/** @type {string[]} */ keys) => void keys.forEach((key) => items.delete(key)),
};
/** @type {[string, (t: any) => any][]} */
const STORES = [
  ["IndexedDB", () => indexedDBStore({ name: "leases" })],
  ["the storage of an extension", () => extensionStore(area)],
  ["files", (t) => node.fileStore(folder(t))],
  ...(hasSqlite ? [/** @type {[string, (t: any) => any]} */ (["SQLite", async (t) => (await storeOf("sqlite", folder(t))).store])] : []),
];
const checkpointOf = (/** @type {string[]} */ ...texts) => new Agent({ model: scripted([]), messages: texts.map((text) => ({ role: "user", content: text, timestamp: 1 })) }).checkpoint();
const entry = (/** @type {number} */ id, type = "message") => ({ id, type, data: JSON.stringify({ n: id }) });
const model = () => scripted(Array.from({ length: 9 }, () => (/** @type {any} */ { messages }) => (messages.at(-1).role === "tool_result" ? "done" : call("work"))));

for (const [kind, open] of STORES) {
  for (const [entry, { openAgent }] of /** @type {[string, { openAgent: typeof node.openAgent }][]} */ ([["tabs", tabs], ["stores/node", node]])) {
    test(`${kind}, openAgent of turnwheel/${entry}: stored at every step, handed over in the middle, and pages hear one story`, async (t) => {
      const store = await open(t);
      const id = `run of ${entry}`;
      const [isOn, mayEnd] = [deferred(), deferred()];
      /** @type {number[]} */
      const fences = [];
      const tools = [testTool("work", async (/** @type {any} */ _, /** @type {any} */ { fence }) => (fences.push(fence), isOn.resolve(), await mayEnd.promise, "worked"))];
      const lease = await store.claim(id);
      assert.deepEqual([lease.wasRunning, lease.isHeld, lease.checkpoint], [false, true, undefined]);
      const agent = await openAgent(lease, { model: model(), tools });
      const handler = agentHandler(agent, { events: lease.events });
      const run = agent.prompt("Go");
      await isOn.promise;
      assert.match(JSON.stringify(await store.load(id)), /"work"/, "its announcement is stored before it starts");
      const left = lease.handOver({ graceMs: 60_000 });
      mayEnd.resolve();
      await left;
      assert.equal((await run).stopReason, "aborted", "here it is over");
      const { last } = lease.events;
      const next = await store.claim(id);
      assert.deepEqual([next.wasRunning, next.fence, next.events.last], [true, 2, last]);
      const second = await openAgent(next, { model: model(), tools });
      const other = agentHandler(second, { events: next.events });
      assert.equal((await second.continue()).stopReason, "completed");
      assert.deepEqual(fences, [1], "the tool ended, and ran once");
      await (await other(new Request("http://localhost/state"))).text();
      const { first } = next.events;
      const heard = [];
      for (let at = first; at < next.events.last; at = heard.at(-1)?.id ?? Infinity) heard.push(...(await next.events.read(at, 64)));
      assert.deepEqual(heard.map(({ id }) => id), Array.from({ length: next.events.last - first }, (_, i) => first + i + 1));
      await next.release();
      for (const each of [handler, other]) each[Symbol.dispose ?? Symbol.for("Symbol.dispose")]();
    });
  }

  test(`${kind}: a log goes on, is trimmed, tells its commands, and is forgotten by who stores without it`, async (t) => {
    const store = await open(t);
    const one = await store.claim("log");
    const { first } = one.events;
    for (let i = 1; i <= 600; i++) one.events.append(entry(first + i, i === 300 || i === 590 ? "command" : "message"));
    await one.events.sync();
    for (let i = 601; i <= 610; i++) one.events.append(entry(first + i));
    await one.save(checkpointOf("x"));
    await one.release();
    const two = await store.claim("log");
    assert.deepEqual([two.events.first, two.events.last, two.events.bytes], [first, first + 610, one.events.bytes]);
    assert.deepEqual(two.events.commands().filter(({ type }) => type === "command").map(({ id }) => id - first), [300, 590]);
    for (const after of [0, 255, 256, 600]) assert.equal((await two.events.read(first + after, 5))[0]?.id, first + after + 1, `after ${after}`);
    two.events.trim(first + 550);
    await two.events.sync();
    two.events.append(entry(first + 611));
    await two.events.sync();
    await two.release();
    const three = await store.claim("log");
    assert.deepEqual([three.events.first, three.events.last], [first + 550, first + 611]);
    assert.deepEqual(await three.events.read(first + 5, 5), [], "a gap is no answer");
    await three.release();
    const without = await store.claim("log");
    await without.save(checkpointOf("x", "y"));
    await without.release();
    const four = await store.claim("log");
    assert.deepEqual([four.events.first, four.events.last, four.events.bytes, four.events.commands()], [first + 612, first + 612, 0, []]);
    await four.release();
    await store.delete("log");
    const five = await store.claim("log");
    assert.ok(five.events.first > first + 612, "no number comes again");
    await five.release();
  });

  test(`${kind}: saves of one agent that overlap are stored one after the other, and one that fails holds nothing`, async (t) => {
    const store = await open(t);
    const saved = Array.from({ length: 5 }, (_, i) => store.save("often", checkpointOf(...Array.from({ length: i + 1 }, (_, n) => `${n}`))));
    await Promise.all([...saved, store.save("other", checkpointOf("x"))]);
    assert.deepEqual([(await store.load("often")).messages.length, (await store.load("other")).messages.length], [5, 1]);
    await Promise.all([store.save("often", checkpointOf("last")), store.delete("often")]);
    assert.equal(await store.load("often"), undefined);
    const broken = /** @type {any} */ ({ ...checkpointOf("x"), toJSON() { throw new Error("no JSON"); }, odd: 1n });
    await assert.rejects(store.save("broken", broken));
    const lease = await store.claim("broken");
    assert.equal(lease?.isHeld, true);
    await lease.release();
  });
}

test("what is no lease is named", async () => {
  for (const { openAgent } of [node, tabs]) await misusedLater(() => openAgent(/** @type {any} */ ({ save() {} }), { model: scripted([]) }), /openAgent takes a lease, as store\.claim gives it, got an object/);
});
