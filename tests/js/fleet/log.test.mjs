// @ts-check
// The events of agents that processes share: a page that listened to one process goes on with another, an agent is handed over
// in the middle of a run, tools know their fence, and a process that joins a fleet takes over what others left.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { RemoteAgent } from "../../../pkg/remote.js";
import { agentHandler } from "../../../pkg/server.js";
import { joinFleet, openAgent } from "../../../pkg/stores-node.js";
import { folder, hasPostgres, hasSqlite, postgres, storeOf } from "./stores.mjs";
import { checkTexts } from "./pages.mjs";
import { checkTrace } from "../grammar.mjs";
import { call, deferred, misused, scripted, testTool } from "../kit.mjs";
import { Agent, subagent } from "../../../pkg/entry/node.js";

const KINDS = [["files", true], ["sqlite", hasSqlite], ["postgres", hasPostgres]];
/** A condition comes true. @param {() => unknown} isTrue */
async function until(isTrue) {
  while (!(await isTrue())) await new Promise((resolve) => setTimeout(resolve, 5));
}
/** A model that answers by what was said last, so that it goes on the same way in any process. @param {(request: any) => any} answer */
const by = (answer) => scripted(Array.from({ length: 50 }, () => answer));
const resultsIn = (/** @type {any} */ { messages }) => messages.filter((/** @type {any} */ { role }) => role === "tool_result").length;
const DISPOSE = Symbol.dispose ?? Symbol.for("Symbol.dispose");

for (const [kind, isHere] of /** @type {[string, boolean][]} */ (KINDS)) {
  test(`shared events: ${kind}`, { skip: !isHere && `there is no ${kind} here` }, async (t) => {
    const place = kind === "postgres" ? await postgres(t) : folder(t);
    /** @type {(() => Promise<void>)[]} */
    const ends = [];
    const open = async (/** @type {any} */ options) => {
      const { store, end } = await storeOf(kind, place, options);
      ends.push(end);
      return store;
    };
    const one = await open({ owner: "one" });
    const two = await open({ owner: "two" });
    /** An entry of a log. @param {number} id @param {any} [more] */
    const entry = (id, more) => ({ id, type: "message", data: JSON.stringify({ n: id, text: "ünïcode 𝒳 \u0000 \ud800" }), ...more });

    await t.test("a log goes on with the next number, is trimmed, and tells the commands", async () => {
      const first = await one.claim("log");
      if (!first) throw new Error("taken");
      const log = first.events;
      const start = log.last;
      assert.deepEqual([log.first, log.commands?.()], [start, []]);
      for (let i = 1; i <= 700; i++) log.append(entry(start + i, i === 300 && { type: "command", data: '{"id":"c"}' }));
      await log.sync?.();
      for (let i = 701; i <= 710; i++) log.append(entry(start + i, { history: "{}" }));
      await log.sync?.();
      // What is long stored is read from the store, the newest from memory.
      for (const after of [0, 5, 255, 256, 699, 705]) {
        const found = await log.read(start + after, 64);
        assert.deepEqual(found.map(({ id }) => id - start - after), Array.from({ length: Math.min(64, 710 - after) }, (_, i) => i + 1).slice(0, found.length), `after ${after}`);
        assert.ok(found.length > 0);
        assert.deepEqual(JSON.parse(found[0]?.data ?? ""), JSON.parse(entry(start + after + 1).data));
      }
      await first.release();
      log.append(entry(start + 711));
      assert.equal(log.last, start + 710, "what is said after that is not part of it");

      const second = await two.claim("log");
      if (!second) throw new Error("taken");
      assert.deepEqual([second.events.first, second.events.last], [start, start + 710]);
      assert.deepEqual(second.events.commands?.().filter(({ type }) => type === "command"), [{ id: start + 300, type: "command", data: '{"id":"c"}' }]);
      second.events.trim(start + 600);
      assert.deepEqual(await second.events.read(start + 5, 10), [], "a gap is no answer");
      second.events.append(entry(start + 711));
      await second.events.sync?.();
      assert.deepEqual((await second.events.read(start + 600, 200)).slice(0, 1).map(({ id }) => id), [start + 601]);
      await second.release();
      const third = await one.claim("log");
      assert.deepEqual([third?.events.first, third?.events.last], [start + 600, start + 711]);
      assert.ok((third?.events.bytes ?? 0) > 0 && (third?.events.bytes ?? 0) < 111 * 250);
      await third?.release();
      await one.delete("log");
      const fresh = await one.claim("log");
      assert.ok((fresh?.events.first ?? 0) > start + 711, "no number comes again");
      await fresh?.release();
    });

    await t.test("whoever has lost the lease stores no event, and tells none", async () => {
      const lease = await one.claim("stale");
      if (!lease) throw new Error("taken");
      lease.events.append(entry(lease.events.last + 1));
      await two.delete("stale");
      await assert.rejects(Promise.resolve(lease.events.sync?.()), { code: "lost_lease" });
      await assert.rejects(Promise.resolve(lease.events.sync?.()), { code: "lost_lease" });
      const handler = agentHandler(await openAgent(lease, { model: scripted([]) }), { events: lease.events });
      const { status, headers } = await handler(new Request("http://localhost/state"));
      assert.deepEqual([status, headers.get("retry-after")], [503, "1"]);
    });

    await t.test("whoever has lost the lease and does not know it shows nobody what was", async () => {
      const lease = await one.claim("unaware");
      if (!lease) throw new Error("taken");
      const handler = agentHandler(await openAgent(lease, { model: scripted([]) }), { events: lease.events });
      assert.equal((await handler(new Request("http://localhost/state"))).status, 200);
      await two.delete("unaware");
      assert.equal(lease.isHeld, true, "by its own clock");
      const stream = (await handler(new Request("http://localhost/events"))).body?.getReader();
      await assert.rejects(Promise.resolve(stream?.read()), { code: "lost_lease" });
      assert.equal((await handler(new Request("http://localhost/state"))).status, 503);
      assert.equal(lease.isHeld, false);
    });

    await t.test("whoever waits for what is stored hears that the lease is lost, and does not ask for ever", async () => {
      const lease = await one.claim("waiting");
      if (!lease) throw new Error("taken");
      const start = lease.events.last;
      for (let i = 1; i <= 700; i++) lease.events.append(entry(start + i));
      await lease.events.sync?.();
      const handler = agentHandler(await openAgent(lease, { model: scripted([]) }), { events: lease.events });
      await two.delete("waiting");
      assert.equal(lease.isHeld, true, "by its own clock");
      const stream = (await handler(new Request(`http://localhost/events?lastEventId=${start}`))).body?.getReader();
      await assert.rejects(Promise.resolve(stream?.read()), { code: "lost_lease" });
    });

    await t.test("tools know their fence, those of sub-agents too; with seals the events are sealed", async () => {
      const key = new Uint8Array(32).map((_, i) => i * 5 + 3);
      const sealing = await open({ seal: { key } });
      await (await sealing.claim("fence"))?.release();
      const lease = await sealing.claim("fence");
      if (!lease) throw new Error("taken");
      /** @type {any[]} */
      const fences = [];
      const look = testTool("look", (/** @type {any} */ _, /** @type {any} */ { fence }) => (fences.push(fence), "seen"));
      const helper = subagent({ name: "helper", description: "Helps", agent: () => new Agent({ model: scripted([call("look"), "done"]), tools: [look] }) });
      const agent = await openAgent(lease, { model: scripted([call("look"), call(["helper", { prompt: "Go" }]), "done"]), tools: [look, helper], wrapTool: (_, next) => next() });
      const handler = agentHandler(agent, { events: lease.events });
      assert.equal((await agent.prompt("Go")).stopReason, "completed");
      await (await handler(new Request("http://localhost/state"))).text();
      assert.deepEqual(fences, [2, 2]);
      const { last } = lease.events;
      await lease.release();
      const unsealed = await two.claim("fence");
      await assert.rejects(Promise.resolve(unsealed?.events.read(unsealed.events.first, 1)), /the events of `fence` are sealed; give the store the key/);
      await unsealed?.release();
      const again = await sealing.claim("fence", { waitMs: 20_000 });
      assert.deepEqual([again?.events.last, (await again?.events.read(again.events.first, 1))?.[0]?.id], [last, (again?.events.first ?? 0) + 1]);
      await again?.release();
    });

    await t.test("handed over in the middle: what has begun ends, nothing runs twice, and pages hear one story", { timeout: 60_000 }, async () => {
      /** @type {string[]} */
      const ran = [];
      const started = deferred();
      const mayEnd = deferred();
      const tools = [
        testTool("slow", async (/** @type {any} */ _, /** @type {any} */ { fence }) => (ran.push(`slow ${fence}`), started.resolve(), await mayEnd.promise, "done")),
        testTool("next", (/** @type {any} */ _, /** @type {any} */ { fence }) => (ran.push(`next ${fence}`), "done")),
      ];
      const model = () => by((request) => [call("slow"), call("next"), { text: ["It ", "is ", "done."] }][resultsIn(request)]);
      /** @type {any[]} */
      const fleets = [];
      const join = (/** @type {any} */ store) => {
        const fleet = joinFleet(store, { takeoverMs: 50, open: async (lease) => {
          const agent = await openAgent(lease, { model: model(), tools });
          return { agent, handler: agentHandler(agent, { events: lease.events }) };
        } });
        fleets.push(fleet);
        return fleet;
      };
      const [first, second] = [join(one), join(two)];
      assert.equal((await first.answer("moved", new Request("http://localhost/agents/moved/state"))).status, 200);
      const elsewhere = await second.answer("moved", new Request("http://localhost/agents/moved/state"));
      assert.deepEqual([elsewhere.status, elsewhere.headers.get("turnwheel-owner")], [409, "one"]);
      // A router: the first that has it answers.
      const fetch = async (/** @type {any} */ url, /** @type {any} */ init) => {
        for (const fleet of [first, second]) {
          const response = await fleet.answer("moved", new Request(url, init));
          if (response.status !== 409 && response.status !== 503) return response;
        }
        return Response.json({}, { status: 503 });
      };
      const page = new RemoteAgent({ url: "http://localhost/agents/moved", fetch: /** @type {any} */ (fetch), reconnects: { maxAttempts: 1_000, initialMs: 5, maxMs: 50 }, onError() {} });
      /** @type {any[]} */
      const heard = [];
      page.subscribe((event) => void heard.push(event));
      const run = page.prompt("Go");
      await started.promise;
      assert.deepEqual([first.counts().running, first.counts().listeners], [1, 1]);
      const left = first.handOver({ graceMs: 30_000 });
      assert.equal(first.isLeaving, true);
      mayEnd.resolve();
      await left;
      const { stopReason, text } = await run;
      assert.deepEqual([stopReason, text, ran], ["completed", "It is done.", ["slow 1", "next 2"]]);
      assert.deepEqual(heard.filter(({ type }) => type === "run_resumed").length, 1);
      checkTrace(heard.filter(({ type }) => type !== "run_resumed"));
      checkTexts(heard);
      assert.deepEqual([first.counts().handedOver, second.counts().takenOver, second.counts().claimed], [1, 1, 1]);
      page[DISPOSE]();
      for (const fleet of fleets) await fleet.handOver({ graceMs: 0 });
      assert.equal(await one.owner("moved"), undefined);
    });

    await t.test("what does not end in time is cut off; a sub-agent is not waited for; the model is told", { timeout: 60_000 }, async () => {
      const started = deferred();
      const tools = (/** @type {boolean} */ isFirst) => [testTool("pay", async (/** @type {any} */ _, /** @type {any} */ { signal }) => {
        started.resolve();
        if (isFirst) await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
        return "paid twice";
      })];
      const model = () => by((request) => (resultsIn(request) === 0 ? call("pay") : "done"));
      const lease = await one.claim("cut");
      if (!lease) throw new Error("taken");
      const run = (await openAgent(lease, { model: model(), tools: tools(true) })).prompt("Go");
      await started.promise;
      await lease.handOver({ graceMs: 20 });
      assert.equal((await run).stopReason, "aborted", "here it is over");
      const next = await two.claim("cut");
      if (!next) throw new Error("taken");
      assert.equal(next.wasRunning, true);
      const agent = await openAgent(next, { model: model(), tools: tools(false) });
      assert.equal((await agent.continue()).stopReason, "completed");
      assert.equal(/** @type {any} */ (agent.messages[2]).cause, "interrupted");
      await next.release();

      // The call with a sub-agent in it has not to end: only what the sub-agent has begun.
      const asked = deferred();
      const mayAnswer = deferred();
      /** @type {number[]} */
      const looks = [];
      const look = testTool("look", (/** @type {any} */ _, /** @type {any} */ { fence }) => (looks.push(fence), "seen"));
      const helper = subagent({ name: "helper", description: "Helps", idempotent: true, agent: () => new Agent({ model: by(async (request) => (asked.resolve(), await mayAnswer.promise, resultsIn(request) === 0 ? call("look") : "seen it")), tools: [look] }) });
      const options = () => ({ model: by((request) => (resultsIn(request) === 0 ? call(["helper", { prompt: "Look" }]) : "done")), tools: [helper] });
      const held = await one.claim("inside");
      if (!held) throw new Error("taken");
      const outer = (await openAgent(held, options())).prompt("Go");
      await asked.promise;
      const over = held.handOver({ graceMs: 30_000 });
      mayAnswer.resolve();
      await over;
      await outer;
      const taken = await two.claim("inside");
      if (!taken) throw new Error("taken");
      assert.equal((await (await openAgent(taken, options())).continue()).stopReason, "completed");
      assert.deepEqual(looks, [1], "its tool was announced, so it ran, and once");
      await taken.release();
    });

    for (const end of ends) await end();
  });
}

test("a write that fails is tried again while the lease holds, and a fleet gives back what sleeps", { skip: !hasPostgres && "there is no postgres here" }, async (t) => {
  const address = await postgres(t);
  const pg = (await import("pg")).default;
  const pool = new pg.Pool({ connectionString: address });
  const { postgresStore } = await import("../../../pkg/stores-node.js");
  let isAway = false;
  let refused = 0;
  const store = postgresStore({ query: (text, values) => {
    if (isAway && refused++ < 3) return Promise.reject(new Error("the database is away"));
    return pool.query(text, values);
  } }, { ttlMs: 20_000 });
  const fleet = joinFleet(store, { idleMs: 40, open: async (lease) => ({ agent: await openAgent(lease, { model: scripted([call("look"), "done"]), tools: [testTool("look", () => (isAway = true, "seen"))] }) }) });
  const opened = await fleet.open("tired");
  assert.equal((await opened?.agent.prompt("Go"))?.stopReason, "completed");
  await until(async () => (await store.owner("tired").catch(() => "away")) === undefined);
  assert.ok(refused >= 3);
  assert.deepEqual([(await store.load("tired"))?.messages.length, fleet.counts().agents, fleet.counts().lost], [4, 0, 0]);
  await fleet.handOver();
  await pool.end();
});

test("an agent that cannot be opened is given back, and one too many is refused", async (t) => {
  const { store } = await storeOf("files", folder(t));
  /** @type {string[]} */
  const errors = [];
  const fleet = joinFleet(store, { agents: 1, takeoverMs: Infinity, onError: (error, id) => void errors.push(`${id}: ${/** @type {any} */ (error).message}`), open: async (lease) => {
    if (lease.id === "broken") throw new Error("no model");
    return { agent: await openAgent(lease, { model: scripted([]) }) };
  } });
  assert.equal((await fleet.answer("broken", new Request("http://localhost/state"))).status, 503);
  assert.deepEqual([errors, await store.owner("broken")], [["broken: no model"], undefined]);
  assert.ok(await fleet.open("first"));
  assert.equal((await fleet.answer("second", new Request("http://localhost/state"))).status, 503);
  assert.equal((await fleet.answer("first", new Request("http://localhost/state"))).status, 404);
  assert.equal((await fleet.answer("a\0b", new Request("http://localhost/state"))).status, 400);
  assert.equal((await fleet.answer("x".repeat(501), new Request("http://localhost/state"))).status, 400);
  await fleet.handOver();
  assert.equal(await store.owner("first"), undefined);
});

test("an owner that no process can be is told to nobody, whoever wrote it into the store", async (t) => {
  const place = folder(t);
  const { store } = await storeOf("files", place);
  const fleet = joinFleet(store, { takeoverMs: Infinity, open: async (lease) => ({ agent: await openAgent(lease, { model: scripted([]) }) }) });
  const lease = await store.claim("a");
  const file = join(place, "61.agent/1/lease.json");
  const terms = JSON.parse(readFileSync(file, "utf8"));
  for (const owner of ["http://here:1", "x\r\nset-cookie: a=b", "ü", "x".repeat(501), "", { a: 1 }, 7, null]) {
    writeFileSync(file, JSON.stringify({ ...terms, owner }));
    const { status, headers } = await fleet.answer("a", new Request("http://localhost/state"));
    assert.deepEqual([status, headers.get("turnwheel-owner")], owner === "http://here:1" ? [409, owner] : [503, null]);
  }
  await lease?.release();
  await fleet.handOver();
});

test("misuse of a fleet is named", async (t) => {
  const { store } = await storeOf("files", folder(t));
  misused(() => joinFleet(/** @type {any} */ ({}), { open: /** @type {any} */ (() => {}) }), /joinFleet takes a store that processes share/);
  misused(() => joinFleet(store, /** @type {any} */ ({})), /joinFleet needs a function `open`/);
  misused(() => joinFleet(store, /** @type {any} */ ({ open() {}, idle: 5 })), /unknown option `idle` of joinFleet; there are open, agents/);
  misused(() => joinFleet(store, /** @type {any} */ ({ open() {}, idleMs: 0 })), /`idleMs` must be a number above 0, got 0/);
  const lease = await store.claim("a");
  await assert.rejects(Promise.resolve(lease?.handOver({ graceMs: -1 })), /`graceMs` must be a number of milliseconds, got -1/);
  await lease?.release();
});
