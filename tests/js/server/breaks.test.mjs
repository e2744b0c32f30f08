// @ts-check
// Whatever breaks between an agent and its mirror: everybody hears everything once, and everything is done once.

import assert from "node:assert/strict";
import { test } from "node:test";
import { RemoteAgent } from "../../../pkg/remote.js";
import { agentHandler, memoryEvents } from "../../../pkg/server.js";
import { dice } from "../dice.mjs";
import { checkTrace } from "../grammar.mjs";
import { Agent, call, deferred, isOpen, readRun, scripted, settle, testTool } from "../kit.mjs";
import { ask, AT, host, json, pair, pay, post, same } from "./pair.mjs";

test("who was away for longer than events are kept goes on from a turn of the run, and hears nothing twice", async () => {
  const turns = 30;
  /** @type {(() => void)[]} */
  const gates = [];
  const model = scripted([...Array.from({ length: turns }, (_, i) => ({ text: `t${i}`, toolCalls: [{ callId: `w${i}`, toolName: "wait" }] })), "done"]);
  const agent = new Agent({ model, tools: [testTool("wait", () => new Promise((resolve) => gates.push(() => resolve("ok"))))] });
  const handler = agentHandler(agent, { host, limits: { events: 40 } });
  let isCut = false;
  /** @type {any} */
  let cut;
  const mirror = new RemoteAgent({ url: AT, host, fetch: async (/** @type {any} */ url, /** @type {any} */ init) => {
    const response = await handler(new Request(url, init));
    if (!String(url).includes("/events")) return response;
    if (isCut) throw new Error("no route");
    const reader = /** @type {any} */ (response.body).getReader();
    return new Response(new ReadableStream({
      start: (controller) => (cut = () => controller.error(new Error("cut"))),
      pull: async (controller) => { const { done, value } = await reader.read(); if (done) controller.close(); else controller.enqueue(value); },
    }), response);
  }, reconnects: { maxAttempts: 1000, maxMs: 100 } });
  const run = mirror.prompt("Go");
  /** @type {any[]} */
  const received = [];
  mirror.subscribe((event) => void received.push(event));
  const pass = async (/** @type {number} */ until) => {
    while (gates.length < until) {
      gates.at(-1)?.();
      await settle();
    }
  };
  await pass(5);
  isCut = true;
  cut();
  await pass(25);
  isCut = false;
  for (let i = 0; i < 2000 && !received.some(({ type }) => type === "run_resumed"); i++) await settle();
  const finished = run.result;
  for (let i = 0; i < 2000 && (await isOpen(finished)); i++) { gates.at(-1)?.(); await settle(); }
  assert.equal((await finished).text, "done");
  same(agent, mirror);
  const ends = received.filter(({ type }) => type === "tool_execution_end").map(({ callId }) => callId);
  assert.equal(new Set(ends).size, ends.length, "nothing twice");
  assert.ok(ends.length < turns, "some of it is gone");
});

test("who comes into a turn whose start is not kept any more gets its answer and its results all the same", async () => {
  for (const calls of [1, 2]) {
    const model = scripted(["An older answer", { text: "The answer", toolCalls: ["a", "b"].slice(0, calls).map((callId) => ({ callId, toolName: "work", arguments: { callId } })) }, "done"]);
    const late = deferred();
    const ready = deferred();
    const work = testTool("work", async (/** @type {any} */ { callId }, /** @type {any} */ { update }) => {
      if (callId === "b") return "b is done";
      await settle();
      for (let n = 0; n < 60; n++) update(`step ${n}`);
      ready.resolve(undefined);
      await late.promise;
      return "a is done";
    });
    const { agent, mirror, another } = pair({ model, tools: [work] }, { limits: { events: 20 } });
    await mirror.prompt("Before").result;
    const run = mirror.prompt("Go");
    await ready.promise;
    const newcomer = another();
    newcomer.subscribe(() => {});
    await newcomer.ready();
    late.resolve(undefined);
    await run.result;
    for (let i = 0; i < 50 && newcomer.isRunning; i++) await settle();
    same(agent, newcomer);
    same(agent, mirror);
    newcomer[Symbol.dispose]();
    mirror[Symbol.dispose]();
  }
});

test("who comes back within what is kept goes on there, without a whole state", async () => {
  const agent = new Agent({ model: scripted([{ text: Array.from({ length: 300 }, (_, i) => `${i} `) }]) });
  const handler = agentHandler(agent, { host, limits: { events: 100 } });
  await agent.prompt("Go");
  await settle();
  const last = Number((await ask(handler, "state")).body.lastEventId);
  const listenFrom = async (/** @type {number} */ after) => {
    const reader = /** @type {any} */ ((await handler(new Request(`${AT}/events?lastEventId=${after}`))).body).getReader();
    let text = "";
    while (!text.includes("event: ready")) text += new TextDecoder().decode((await reader.read()).value);
    await reader.cancel();
    return [text.includes("event: state"), [...text.matchAll(/^id: /gm)].length];
  };
  assert.deepEqual([await listenFrom(last - 99), await listenFrom(last), await listenFrom(last - 130)], [[false, 99], [false, 0], [true, 1]]);
});

test("nobody is told what the log may still lose: neither listeners nor who asked", async () => {
  const gate = deferred();
  const stored = memoryEvents();
  const log = Object.assign(Object.create(stored, { first: { get: () => stored.first }, last: { get: () => stored.last } }), { sync: () => gate.promise });
  const { handler } = pair({ model: scripted(["a"]) }, { events: log });
  const reader = /** @type {any} */ ((await handler(new Request(`${AT}/events`))).body).getReader();
  const waits = [reader.read(), ask(handler, "prompt", post({ input: "x" })), ask(handler, "state")];
  for (const wait of waits) assert.ok(await isOpen(wait));
  gate.resolve();
  await Promise.all(waits);
  await reader.cancel();
});

test("another process with another memory gives a whole state; one with the same log goes on", async () => {
  const model = () => scripted(["one", "two"]);
  let current = agentHandler(new Agent({ model: model() }), { host });
  /** @type {any} */
  let agent;
  const mirror = new RemoteAgent({ url: AT, host, fetch: async (/** @type {any} */ url, /** @type {any} */ init) => current(new Request(url, init)) });
  mirror.subscribe(() => {});
  await mirror.prompt("A");
  current[Symbol.dispose]();
  agent = new Agent({ model: model(), messages: [{ role: "user", content: [{ type: "text", text: "other" }], timestamp: 1 }] });
  current = agentHandler(agent, { host: { ...host, now: () => Date.now() + 5000 } });
  while (mirror.messages.length !== 1) await settle();
  same(agent, mirror);
});

test("connections that break and commands that get lost: everybody hears everything once, and everything is done once", { timeout: 120_000 }, async () => {
  let breaks = 0;
  for (let seed = 1; seed <= 60; seed++) {
    const roll = dice(seed);
    let paid = 0;
    const agent = new Agent({
      model: scripted([
        { thinking: "hm", text: ["one ", "two ", "three"], toolCalls: [{ callId: "p", toolName: "pay", arguments: { n: 1 } }, { callId: "l", toolName: "look" }] },
        { text: ["a", "b", "c"], toolCalls: [{ callId: "l2", toolName: "look" }] }, "done", "and on", "and on",
      ]),
      tools: [pay(() => `paid ${++paid}`), testTool("look", async (/** @type {any} */ _, /** @type {any} */ { update }) => { for (let i = roll(4); i > 0; i--) await settle(); update("half"); return "seen"; })],
    });
    /** @type {any[]} */
    const events = [];
    agent.subscribe((event) => void events.push(json(event)));
    const handler = agentHandler(agent, { host, events: memoryEvents({ start: 0 }) });
    const fetch = async (/** @type {any} */ url, /** @type {any} */ init) => {
      if (roll(6) === 0) { breaks++; throw new Error("never sent"); }
      const response = await handler(new Request(url, init));
      for (let i = roll(3); i > 0; i--) await settle();
      if (roll(6) === 0) { breaks++; throw new Error("the answer was lost"); }
      if (!response.headers.get("content-type")?.startsWith("text/event-stream")) return response;
      const reader = /** @type {any} */ (response.body).getReader();
      let left = 1 + roll(3000);
      return new Response(new ReadableStream({
        async pull(controller) {
          const { done, value } = await reader.read();
          if (done) return controller.close();
          controller.enqueue(value.subarray(0, left));
          if ((left -= value.length) > 0) return;
          breaks++;
          void reader.cancel();
          if (roll(2)) controller.error(new Error("cut"));
          else controller.close();
        },
        cancel: () => reader.cancel(),
      }), response);
    };
    const options = { url: AT, host: { ...host, random: () => roll(100) / 100 }, fetch, reconnects: { maxAttempts: 100, maxMs: 100 } };
    const mirrors = [new RemoteAgent(options), new RemoteAgent(options)];
    /** @type {any[][]} */
    const outcomes = mirrors.map(() => []);
    mirrors.forEach((mirror, i) => mirror.subscribe((event) => void outcomes[i]?.push(event)));
    const [mine] = /** @type {[RemoteAgent]} */ (/** @type {any} */ (mirrors));
    await Promise.all(mirrors.map((mirror) => mirror.ready()));
    const run = mine.prompt("Go");
    const followed = mine.followUp("And on");
    // Commands are sent in order: the letter has arrived before the run continues.
    mine.subscribe(({ type }) => { if (type === "tool_approval_requested") void mine.resolveTool("p", "approve"); });
    const all = [];
    for await (const event of run) all.push(event);
    assert.equal((await followed).delivered, true, `seed ${seed}`);
    assert.equal((await run).stopReason, "completed");
    await Promise.all(mirrors.map((mirror) => mirror.ready().then(() => mirror.waitForIdle())));
    assert.equal(paid, 1, `seed ${seed}`);
    assert.deepEqual(all, events, `seed ${seed}: the run`);
    outcomes.forEach((list, i) => assert.deepEqual(list, events, `seed ${seed}: listener ${i}`));
    assert.equal(agent.messages.filter(({ role }) => role === "user").length, 2);
    for (const mirror of mirrors) { same(agent, mirror); mirror[Symbol.dispose](); }
  }
  assert.ok(breaks > 200, `${breaks} breaks`);
});

test("nobody there: runs, receipts and ready say so, and a later try works", async () => {
  let isUp = false;
  const { agent, handler } = pair({ model: scripted(["hello"]) });
  const fetch = async (/** @type {any} */ url, /** @type {any} */ init) => {
    if (!isUp) throw new Error("no route");
    return handler(new Request(url, init));
  };
  /** @type {any[]} */
  const trouble = [];
  const mirror = new RemoteAgent({ url: AT, fetch, host, reconnects: { maxAttempts: 3 }, onError: (error) => trouble.push(error) });
  await assert.rejects(mirror.ready(), { code: "network" });
  const lost = await readRun(mirror.prompt("Go"));
  assert.equal(lost.result.error?.code, "network");
  assert.deepEqual(await mirror.steer("x"), { delivered: false, reason: "lost" });
  await assert.rejects(mirror.resolveTool("x", "approve"), { code: "network" });
  isUp = true;
  assert.equal((await mirror.prompt("Go")).text, "hello");
  same(agent, mirror);
});

test("a server that takes a request and never answers is not there", async () => {
  const { agent, handler } = pair({ model: scripted(["hello"]) });
  let silent = 2;
  const slow = { sleep: (/** @type {number} */ ms, /** @type {AbortSignal} */ signal) => (ms === 77 && silent > 0 ? settle() : host.sleep(ms === 77 ? 1e6 : ms, signal)) };
  const fetch = (/** @type {any} */ url, /** @type {any} */ init) => {
    if (silent === 0) return handler(new Request(url, init));
    return new Promise((_, reject) => init.signal.addEventListener("abort", () => { silent -= 1; reject(init.signal.reason); }));
  };
  const mirror = new RemoteAgent({ url: AT, fetch: /** @type {any} */ (fetch), host: slow, stallMs: 77, reconnects: { maxMs: 100 } });
  assert.equal((await mirror.prompt("Go")).text, "hello");
  assert.equal(silent, 0);
  same(agent, mirror);
});

test("a log that fails once, at any event, costs that event and nothing else", async (context) => {
  const logged = context.mock.method(console, "error", () => {});
  for (let failing = 1; ; failing++) {
    const log = memoryEvents();
    let n = 0;
    const events = /** @type {any} */ ({
      get first() { return log.first; }, get last() { return log.last; }, read: log.read, trim: log.trim,
      append(/** @type {any} */ entry) {
        if (++n === failing) throw new Error("the disk is full");
        log.append(entry);
      },
    });
    const { agent, mirror } = pair({ model: scripted([{ text: "I look.", ...call("look", "look") }, "one", "two"]), tools: [testTool("look", async () => (await settle(), "seen"))] }, { events, keepAliveMs: 5 });
    const { text, stopReason } = await mirror.prompt("Go");
    assert.deepEqual([text, stopReason], ["one", "completed"], `the ${failing}. fails`);
    assert.equal((await mirror.prompt("On")).text, "two");
    same(agent, mirror);
    if (n < failing) break;
  }
  assert.ok(logged.mock.calls.length > 20);
  assert.match(logged.mock.calls[0]?.arguments[0], /an event could not be kept/);
});

test("a command that was done and could not be stored is not done again", async (context) => {
  context.mock.method(console, "error", () => {});
  let n = 0;
  const commit = async () => { if (n++ === 0) throw new Error("the disk is full"); };
  const { agent, mirror, requests } = pair({ model: scripted(["one", "two"]) }, { commit });
  const receipt = mirror.followUp("And now?");
  assert.equal((await mirror.prompt("Go")).text, "two");
  assert.equal((await receipt).delivered, true);
  assert.equal(agent.messages.filter(({ role }) => role === "user").length, 2);
  assert.deepEqual(requests.filter(({ method }) => method === "POST").map(({ path }) => path), ["follow-up", "follow-up", "prompt"]);
  n = 0;
  const slow = pair({ model: scripted([call("wait"), "waited"]), tools: [testTool("wait", async () => { for (let i = 0; i < 20; i++) await settle(); })] }, { commit });
  assert.equal((await slow.mirror.prompt("Go")).text, "waited");
  assert.deepEqual(slow.requests.filter(({ path }) => path === "prompt").length, 2);
});

test("a run that would be over before anybody listens is heard from its beginning all the same", { timeout: 20_000 }, async () => {
  const { handler } = pair({ model: scripted(["hello"]) });
  const slowly = async (/** @type {any} */ url, /** @type {any} */ init) => {
    if (String(url).includes("/events")) for (let i = 0; i < 10; i++) await settle();
    return handler(new Request(url, init));
  };
  const mirror = new RemoteAgent({ url: AT, host, fetch: slowly });
  const { result, names } = await readRun(mirror.prompt("Go"));
  assert.deepEqual([result.text, names], ["hello", ["agent_start", "turn_start", "message_start", "message_update", "message_end", "turn_end", "agent_end"]]);
  mirror[Symbol.dispose]();
});

test("a run that is aborted before it was sent is not sent, and does not wait for who cannot be reached", async () => {
  const { agent, handler } = pair({ model: scripted(["hello"]) });
  /** @type {string[]} */
  const urls = [];
  const mirror = new RemoteAgent({ url: AT, host, fetch: async (/** @type {any} */ url, /** @type {any} */ init) => (urls.push(String(url)), handler(new Request(url, init))) });
  const { result, names } = await readRun(mirror.prompt("Go", { signal: AbortSignal.abort("too late") }));
  assert.deepEqual([result.stopReason, result.error?.message, names], ["aborted", "too late", ["agent_start", "agent_end"]]);
  const left = mirror.prompt("Go");
  left.abort();
  assert.equal((await left).stopReason, "aborted");
  assert.equal((await mirror.prompt("Go")).text, "hello");
  assert.deepEqual([urls.filter((url) => url.endsWith("/prompt")).length, agent.messages.length], [1, 2]);
  mirror[Symbol.dispose]();
  const nowhere = new RemoteAgent({ url: AT, host, fetch: () => new Promise(() => {}), onError() {} });
  const run = nowhere.prompt("Go");
  run.abort("enough");
  assert.deepEqual([(await run).stopReason, nowhere.isRunning], ["aborted", false]);
  nowhere[Symbol.dispose]();
});

test("a server that begins anew in the middle of a run: who only listens hears an end for every start", async () => {
  const { model, tools } = { model: scripted([{ text: "one ", ...call("wait") }]), tools: [testTool("wait", () => new Promise(() => {}))] };
  let current = agentHandler(new Agent({ model, tools }), { host });
  const cut = new AbortController();
  const fetch = async (/** @type {any} */ url, /** @type {any} */ init) => {
    const response = await current(new Request(url, init));
    if (!String(url).includes("/events") || cut.signal.aborted) return response;
    return new Response(response.body?.pipeThrough(new TransformStream(), { signal: cut.signal }), response);
  };
  const mirror = new RemoteAgent({ url: AT, host, fetch });
  /** @type {any[]} */
  const received = [];
  const started = deferred();
  const ended = deferred();
  mirror.subscribe((event) => {
    received.push(event);
    if (event.type === "tool_execution_start") started.resolve();
    if (event.type === "agent_end") ended.resolve();
  });
  const other = new RemoteAgent({ url: AT, host, fetch: (/** @type {any} */ url, /** @type {any} */ init) => current(new Request(url, init)), onError() {} });
  void other.prompt("Go");
  await started.promise;
  other[Symbol.dispose]();
  current = agentHandler(new Agent({ model: scripted([]) }), { host: { ...host, now: () => Date.now() + 60_000 } });
  cut.abort(new Error("the server is gone"));
  await ended.promise;
  checkTrace(received);
  assert.deepEqual([received.at(-1).stopReason, received.at(-1).error.message, mirror.isRunning], ["error", "the run went on unheard, and its events are gone", false]);
  mirror[Symbol.dispose]();
});

test("a run that is heard of goes on here too, although no answer to its prompt ever came", async () => {
  const gate = deferred();
  const lost = deferred();
  const agent = new Agent({ model: scripted([call("wait"), "done"]), tools: [testTool("wait", () => gate.promise)] });
  const handler = agentHandler(agent, { host });
  let sent = 0;
  const fetch = async (/** @type {any} */ url, /** @type {any} */ init) => {
    const answer = await handler(new Request(url, init));
    if (init.method !== "POST") return answer;
    if (++sent === 3) setImmediate(lost.resolve);
    throw new TypeError("lost on the way back");
  };
  const mirror = new RemoteAgent({ url: AT, fetch, host, reconnects: { maxAttempts: 2 } });
  /** @type {any[]} */
  const events = [];
  mirror.subscribe((event) => void events.push(event));
  const run = mirror.prompt("Go");
  await lost.promise;
  await settle();
  assert.ok(mirror.isRunning);
  gate.resolve("ok");
  assert.equal((await run).text, "done");
  checkTrace(events);
  same(agent, mirror);
});
