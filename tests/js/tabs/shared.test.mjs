// @ts-check
// One agent in several tabs, as far as Node can have tabs: each call of `shared` is one. What a browser does to tabs is tested in
// browsers: tests/js/browser/shared.test.mjs.

import assert from "node:assert/strict";
import { test } from "node:test";
import "../docs/tabs-page.mjs";
import { AgentStore } from "../../../pkg/react-store.js";
import { extensionStore, indexedDBStore } from "../../../pkg/stores.js";
import { openAgent, shared } from "../../../pkg/tabs.js";
import { Agent, call, deferred, misused, scripted, testTool } from "../kit.mjs";

const DISPOSE = Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose");
/** @param {...any} agents */
const leave = async (...agents) => void (await Promise.all(agents.map((agent) => agent[DISPOSE]())));
let ids = 0;
const fresh = () => `agent-${++ids}`;
const says = (/** @type {any[]} */ ...steps) => (/** @type {any} */ lease) => openAgent(lease, { model: scripted(steps) });
const checkpointOf = (/** @type {string[]} */ ...texts) => new Agent({ model: scripted([]), messages: texts.map((text) => ({ role: "user", content: [{ type: "text", text }], timestamp: 1 })) }).checkpoint();
/** Waits for something, as long as it takes. @param {() => unknown} holds */
async function until(holds) {
  for (let tries = 0; !(await holds()); tries++) {
    assert.ok(tries < 2000, `waited in vain for ${holds}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** A storage area of an extension, in which `slow` writes may be looked at. */
function area() {
  /** @type {Map<string, string>} */
  const items = new Map();
  return {
    items,
    get: async (/** @type {string[]} */ keys) => Object.fromEntries(keys.flatMap((key) => (items.has(key) ? [[key, JSON.parse(items.get(key) ?? "")]] : []))),
    set: async (/** @type {any} */ added) => void Object.entries(added).forEach(([key, value]) => items.set(key, JSON.stringify(value))),
    remove: async (/** @type {string[]} */ keys) => void keys.forEach((key) => items.delete(key)),
  };
}

for (const [kind, open] of /** @type {[string, () => any][]} */ ([["IndexedDB", () => indexedDBStore({ name: fresh() })], ["the storage of an extension", () => extensionStore(area())]])) {
  test(`leases in ${kind}: one tab has it, each claim a higher fence, what comes late changes nothing`, async () => {
    const store = open();
    await store.save("a", checkpointOf("x"));
    const [lease, second] = await Promise.all([store.claim("a"), store.claim("a")]);
    assert.equal(second, undefined);
    assert.equal(lease.checkpoint.messages.length, 1);
    await lease.save(checkpointOf("x", "y", "z"));
    await lease.save(checkpointOf("x", "other"));
    assert.deepEqual((await store.load("a")).messages.map((/** @type {any} */ { content }) => content), ["x", "other"]);
    const waiting = store.claim("a", { waitMs: 10_000 });
    await lease.release();
    const next = await waiting;
    assert.ok(next.fence > lease.fence);
    assert.deepEqual(next.checkpoint.messages.map((/** @type {any} */ { content }) => content), ["x", "other"]);
    await assert.rejects(lease.save(checkpointOf("late")), { code: "lost_lease" });
    assert.equal(await store.claim("a", { waitMs: 5 }), undefined);
    // Whoever deletes it takes it from everybody, for ever.
    await store.delete("a");
    await assert.rejects(next.save(checkpointOf("late")), /the lease of `a` is lost \(fence \d+\): another tab may have the agent now/);
    assert.deepEqual([next.isHeld, next.signal.reason.code, await store.load("a")], [false, "lost_lease", undefined]);
    const last = await store.claim("a");
    assert.ok(last.fence > next.fence);
    await last.release();
  });

  test(`shared over ${kind}: a second tab sees the run, takes it over, and nothing is told twice`, async () => {
    const store = open();
    const gate = deferred();
    let ran = 0;
    const make = (/** @type {any} */ lease) => openAgent(lease, {
      model: scripted(Array.from({ length: 5 }, () => (/** @type {any} */ { messages }) => (messages.length === 1 ? { text: "Let me see.", ...call("pay") } : "done"))),
      tools: [testTool("pay", async () => (ran++, await gate.promise, "paid"), { requiresApproval: true })],
    });
    const one = await shared("a", make, { store });
    const two = await shared("a", make, { store });
    /** @type {any[][]} */
    const heard = [[], []];
    [one, two].forEach((agent, i) => agent.subscribe((event) => void heard[i]?.push(event)));
    await Promise.all([one.ready(), two.ready()]);
    assert.deepEqual([one.role, two.role], ["owner", "follower"]);
    const run = two.prompt("Pay");
    await until(() => one.pendingQuestions.length === 1 && two.pendingQuestions.length === 1);
    const decisions = await Promise.allSettled([one, two].map((agent) => agent.resolve(agent.pendingQuestions[0]?.id ?? "", "approve")));
    assert.equal(decisions.filter(({ status }) => status === "fulfilled").length, 1);
    await until(() => ran === 1);
    // The tool is not idempotent, so whoever takes over does not run it again.
    await one.handOver();
    gate.resolve();
    const { stopReason } = await run;
    assert.deepEqual([stopReason, one.role, two.role, ran], ["completed", "follower", "owner", 1]);
    await until(() => heard[0]?.length === heard[1]?.length);
    assert.deepEqual(heard[0], heard[1]);
    assert.equal(heard[0]?.filter(({ type }) => type === "tool_execution_start").length, 1);
    assert.equal(heard[0]?.find(({ type }) => type === "tool_execution_end").result.cause, "interrupted");
    assert.deepEqual(one.messages, two.messages);
    await leave(one, two);
    const later = await shared("a", make, { store });
    await later.ready();
    assert.equal(later.messages.length, 4);
    await leave(later);
  });
}

test("a checkpoint of a lease is saved by its lease only, and a log without one is forgotten", async () => {
  const name = fresh();
  const store = indexedDBStore({ name });
  const agent = await shared("a", says("one"), { store });
  await agent.prompt("Go");
  await leave(agent);
  await assert.rejects(store.save("a", checkpointOf("x")), /`a` is an agent that was claimed: save it by its lease/);
  const lease = await store.claim("a");
  await lease?.save(checkpointOf("else"));
  await lease?.release();
  const again = await shared("a", says("two"), { store });
  await again.ready();
  assert.equal(again.messages.length, 1);
  await leave(again);
});

test("where tabs cannot share, each has an agent of its own that is not stored", async () => {
  const { navigator } = globalThis;
  Object.defineProperty(globalThis, "navigator", { value: {}, configurable: true });
  try {
    /** @type {any[]} */
    const roles = [];
    const [one, two] = await Promise.all([shared("alone", says("one"), { onRole: (role) => roles.push(role) }), shared("alone", says("two"))]);
    assert.deepEqual([(await one.prompt("Go")).text, (await two.prompt("Go")).text, one.role, two.role, roles], ["one", "two", "alone", "alone", ["alone"]]);
    await one.handOver();
    await leave(one, two);
    await assert.rejects(indexedDBStore().claim("alone"), /there are no Web Locks here, so tabs cannot agree which of them has the agent/);
  } finally {
    Object.defineProperty(globalThis, "navigator", { value: navigator, configurable: true });
  }
});

test("other tabs may do what a client elsewhere may, and no more wait than the limit says", async () => {
  const id = fresh();
  const make = says("one");
  /** @type {any[]} */
  const asked = [];
  const gate = deferred();
  const authorize = async (/** @type {Request} */ request, /** @type {string} */ command) => {
    asked.push([new URL(request.url).hostname, command]);
    if (command === "abort") await gate.promise;
    return command !== "reset";
  };
  const options = { authorize, limits: { waiting: 1, messageBytes: 500 }, onError() {} };
  const one = await shared(id, make, options);
  const two = await shared(id, make, options);
  await assert.rejects(one.reset(), { code: "auth" });
  assert.deepEqual(asked, [["localhost", "reset"]]);
  // The owner's own requests do not wait.
  assert.equal((await one.prompt("Go")).stopReason, "completed");
  assert.deepEqual(await two.steer("x".repeat(500)), { delivered: false, reason: "lost" });
  const waiting = two.abort();
  await until(() => asked.some(([, command]) => command === "abort"));
  const channel = new BroadcastChannel(`turnwheel:${JSON.stringify(["turnwheel", id])}`);
  const answers = new BroadcastChannel(`turnwheel:${JSON.stringify(["turnwheel", id])}:me`);
  const answer = new Promise((/** @type {(data: any) => void} */ resolve) => (answers.onmessage = (/** @type {any} */ { data }) => resolve(data)));
  channel.postMessage({ v: 1, type: "request", id: "1", from: "me", method: "POST", path: "abort", body: "{}" });
  const { status, headers } = await answer;
  assert.deepEqual([status, headers["retry-after"]], [429, "1"]);
  gate.resolve();
  await waiting;
  channel.close();
  answers.close();
  await leave(one, two);
});

test("what is no message of a tab is dropped, with a notice", async (t) => {
  const id = fresh();
  const warn = t.mock.method(console, "warn", () => {});
  const agent = await shared(id, says("one"));
  const channel = new BroadcastChannel(`turnwheel:${JSON.stringify(["turnwheel", id])}`);
  const bad = [1, null, [], { v: 2, type: "ping", from: "x" }, { v: 1, type: "constructor" }, { v: 1, type: "owner", epoch: 1.5 }, { v: 1, type: "request", id: "", from: "x", method: "POST", path: "reset" }, { v: 1, type: "head", id: "x", epoch: 9, status: 1000, headers: {} }, { v: 1, type: "piece", id: "x", epoch: 9, bytes: "text" }];
  for (const message of bad) channel.postMessage(message);
  await until(() => warn.mock.callCount() >= bad.length);
  for (const { arguments: [text] } of warn.mock.calls) assert.match(text, /^turnwheel\/tabs: a message on the channel .* was dropped: (it is of another version|its type is not known|its members are not those of)/);
  for (let i = 0; i < 50; i++) channel.postMessage(i);
  assert.equal((await agent.prompt("Go")).text, "one");
  assert.equal(agent.role, "owner");
  assert.ok(warn.mock.callCount() <= 10, "so many notices are enough");
  channel.close();
  await leave(agent);
});

/** As if a tab had claimed the agent while this one slept. @param {string} id */
async function claimElsewhere(id) {
  const result = (/** @type {IDBRequest} */ request) => new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  const database = await result(indexedDB.open("turnwheel"));
  const agents = database.transaction("agents", "readwrite").objectStore("agents");
  const row = await result(agents.get(id));
  await result(agents.put({ ...row, fence: row.fence + 1 }, id));
  database.close();
}

test("an owner that hears of a later one gives way, if the store knows of it", async () => {
  const id = fresh();
  /** @type {string[]} */
  const roles = [];
  const agent = await shared(id, says("one", "two"), { onRole: (role) => void roles.push(role) });
  const channel = new BroadcastChannel(`turnwheel:${JSON.stringify(["turnwheel", id])}`);
  channel.postMessage({ v: 1, type: "owner", epoch: 2 });
  assert.equal((await agent.prompt("Go")).stopReason, "completed");
  assert.deepEqual(roles, ["owner"]);
  await claimElsewhere(id);
  channel.postMessage({ v: 1, type: "owner", epoch: 2 });
  // Nobody else has the lock, so it has the agent again.
  await until(() => roles.length === 3);
  assert.deepEqual(roles, ["owner", "follower", "owner"]);
  assert.equal((await agent.prompt("Go")).stopReason, "completed");
  channel.close();
  await leave(agent);
});

test("owners that follow each other at once are asked without a timer, which a tab in the background has once in a second", { timeout: 60_000 }, async (t) => {
  const id = fresh();
  const tabs = [];
  for (let i = 0; i < 5; i++) tabs.push(await shared(id, says("Hello.")));
  const last = /** @type {any} */ (tabs.at(-1));
  /** @type {string[]} */
  const heard = [];
  last.subscribe((/** @type {any} */ { type }) => void heard.push(type));
  await last.ready();
  const { setTimeout: inTime } = globalThis;
  t.after(async () => {
    globalThis.setTimeout = inTime;
    await leave(...tabs);
  });
  // The pauses of a connection, and not those of this test.
  globalThis.setTimeout = /** @type {any} */ ((/** @type {any} */ done, /** @type {number} */ ms = 0) => inTime(done, ms > 5 && ms < 2000 ? 60_000 : ms).unref());
  const until = async (/** @type {() => boolean} */ holds) => {
    for (let tries = 0; !holds(); tries++) {
      assert.ok(tries < 1000, `waited in vain for ${holds}`);
      await new Promise((resolve) => inTime(resolve, 1));
    }
  };
  for (const [n, tab] of tabs.slice(0, -1).entries()) {
    await tab.handOver();
    await until(() => tabs[n + 1]?.role === "owner" && last.connection === "open");
  }
  assert.equal((await last.prompt("Go")).text, "Hello.");
  assert.equal(heard.at(-1), "agent_end");
});

test("a tab that cannot make the agent says so, and the next one has it", async () => {
  const id = fresh();
  await assert.rejects(shared(id, () => Promise.reject(new Error("no key"))), /no key/);
  await assert.rejects(shared(id, () => new Agent({ model: scripted([]) })), /the agent of `shared` is made with openAgent\(lease, options\)/);
  await assert.rejects(shared(id, /** @type {any} */ (() => {})), /must return an Agent, got nothing/);
  await assert.rejects(shared(id, async (lease) => {
    const agent = await openAgent(lease, { model: scripted(["x"]) });
    agent.prompt("Go");
    return agent;
  }), /only makes the agent; a run in progress is continued afterwards/);
  const one = await shared(id, says("one"));
  /** @type {any[]} */
  const errors = [];
  const two = await shared(id, () => Promise.reject(new Error("no key here")), { onError: (error) => void errors.push(error) });
  await one.handOver();
  await until(() => errors.some((error) => /no key here/.test(String(error))) && one.role === "owner");
  assert.equal((await one.prompt("Go")).text, "one");
  await leave(one, two);
});

test("a component shows the agent of all tabs", async () => {
  const id = fresh();
  const one = await shared(id, says("Hello."));
  const two = await shared(id, says("Hello."));
  const store = new AgentStore(two, { schedule: (/** @type {() => void} */ work) => (work(), () => {}) });
  const stop = store.subscribe(() => {});
  await two.ready();
  await store.getSnapshot().send("Hi");
  await until(() => store.getSnapshot().messages.length === 2);
  const { messages, status, agent } = store.getSnapshot();
  assert.deepEqual([messages.map(({ role }) => role), status, agent], [["user", "assistant"], "idle", two]);
  stop();
  await leave(one, two);
});

test("misuse is named", async () => {
  const rejected = async (/** @type {Promise<any>} */ made, /** @type {RegExp} */ text) => assert.rejects(made, (error) => (misused(() => { throw error; }, text), true));
  await rejected(shared("", says("x")), /the id of a shared agent must be a text of 500 characters at most, got one of 0/);
  await rejected(shared("a", /** @type {any} */ ({})), /shared\(id, make\) takes a function that makes the agent/);
  await rejected(shared("a", says("x"), /** @type {any} */ ({ stealMS: 5 })), /unknown option `stealMS`; did you mean `stealMs`\?/);
  await rejected(shared("a", says("x"), { stealMs: 5 }), /`stealMs` must be false, or a number of milliseconds from 100 on/);
  await rejected(shared("a", says("x"), { store: /** @type {any} */ ({}) }), /`store` must be what indexedDBStore\(\) or extensionStore\(area\) gives/);
  await rejected(shared("a", says("x"), { limits: { waiting: -1 } }), /`limits.waiting` must be a number from 0 on/);
  misused(() => extensionStore(/** @type {any} */ ({})), /extensionStore takes a storage area, such as chrome.storage.local/);
});
