// @ts-check
// An agent behind HTTP and its mirror: the same interface, the same events, each once, whatever breaks; and
// how requests that are not allowed are answered.

import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { createServer } from "node:http";
import { Readable } from "node:stream";
import { test } from "node:test";
import { fromResponse, RemoteAgent } from "../../../pkg/remote.js";
import { agentHandler, memoryEvents } from "../../../pkg/server.js";
import { dice } from "../dice.mjs";
import { checkTrace } from "../grammar.mjs";
import { Agent, call, deferred, isOpen, misused, readRun, scripted, settle, testTool } from "../kit.mjs";

const json = (/** @type {any} */ value) => JSON.parse(JSON.stringify(value));
/** Waits for a connection end quickly; timeouts on a silent one never do. */
const host = { sleep: (/** @type {number} */ ms, /** @type {AbortSignal} */ signal) => (ms >= 15_000 ? new Promise((resolve) => signal.addEventListener("abort", resolve)) : new Promise((resolve) => setImmediate(resolve))) };
const AT = "http://agents.localhost/agents/7";

/** An agent behind a handler, and a mirror of it. @param {any} options of the agent @param {any} [served] @param {any} [remote] */
function pair(options, served = {}, remote = {}) {
  const agent = new Agent(options);
  const handler = agentHandler(agent, { host, ...served });
  /** @type {{ method: string, path: string }[]} */
  const requests = [];
  const fetch = async (/** @type {any} */ url, /** @type {any} */ init) => {
    const request = new Request(url, init);
    requests.push({ method: request.method, path: new URL(request.url).pathname.split("/").at(-1) ?? "" });
    return handler(request);
  };
  const mirror = new RemoteAgent({ url: AT, fetch, host, ...remote });
  return { agent, handler, mirror, requests, another: (more = {}) => new RemoteAgent({ url: AT, fetch, host, ...more }) };
}

/** Asserts that both know the same. @param {any} agent @param {any} mirror */
function same(agent, mirror) {
  for (const key of ["messages", "pendingApprovals", "isRunning", "usage"]) assert.deepEqual(json(mirror[key]), json(agent[key]), key);
}

const pay = (/** @type {any} */ execute) => testTool("pay", execute, { requiresApproval: true });

test("a conversation there is as one here", async () => {
  const script = () => scripted([{ thinking: "hm", text: ["a", "b"], toolCalls: [{ callId: "p", toolName: "pay", arguments: { n: 1 } }], usage: { input: 5, output: 2 } }, { text: "done", usage: { input: 1, output: 1 } }, "more"]);
  const { agent, mirror } = pair({ model: script(), tools: [pay(() => "paid")] });
  /** @type {any[]} */
  const events = [];
  agent.subscribe((event) => void events.push(json(event)));
  const run = mirror.prompt("Pay");
  assert.ok(mirror.isRunning);
  misused(() => mirror.prompt("Again"), /already running/);
  const received = [];
  for await (const event of run) {
    received.push(event);
    if (event.type === "tool_approval_requested") {
      assert.deepEqual(json(mirror.pendingApprovals), json(agent.pendingApprovals));
      await mirror.resolveTool("p", "approve");
    }
    if (event.type === "message_end") assert.equal(mirror.messages.at(-1)?.role, "assistant");
  }
  assert.deepEqual(received, events);
  checkTrace(received);
  same(agent, mirror);
  const { text, usage, stopReason } = await run;
  assert.deepEqual([text, usage.input, stopReason], ["done", 6, "completed"]);
  await mirror.waitForIdle();
  assert.equal((await mirror.prompt([{ type: "text", text: "More" }])).text, "more");
  same(agent, mirror);
});

test("letters get their receipts, commands their effect", async () => {
  const gate = deferred();
  const { agent, mirror } = pair({ model: scripted([call("wait"), "steered", "followed", call("wait"), "unreached"]), tools: [testTool("wait", () => gate.promise)] });
  const run = mirror.prompt("Go");
  const followed = mirror.followUp("And then?");
  const steered = mirror.steer("Stop that");
  await settle();
  gate.resolve("ok");
  assert.deepEqual(await steered, { delivered: true, turnIndex: 1 });
  assert.deepEqual(await followed, { delivered: true, turnIndex: 2 });
  assert.equal((await run).text, "followed");
  const cleared = mirror.followUp("never");
  await mirror.clearQueues();
  assert.deepEqual(await cleared, { delivered: false, reason: "cleared" });
  const endless = testTool("wait", () => new Promise(() => {}));
  agent.tools = [endless];
  const stopped = mirror.prompt("Again");
  for await (const event of stopped) if (event.type === "tool_execution_start") void mirror.abort("enough");
  assert.equal((await stopped).stopReason, "aborted");
  same(agent, mirror);
  await mirror.reset();
  await mirror.ready();
  await settle();
  same(agent, mirror);
  assert.equal(mirror.messages.length, 0);
});

test("leaving the iteration, or a signal, stops the run there", async () => {
  const { agent, mirror } = pair({ model: scripted([call("wait"), call("wait"), call("wait")]), tools: [testTool("wait", () => new Promise(() => {}))] });
  const run = mirror.prompt("Go");
  for await (const event of run) if (event.type === "tool_execution_start") break;
  assert.equal((await run).stopReason, "aborted");
  const stop = new AbortController();
  const other = mirror.prompt("Go", { signal: stop.signal });
  stop.abort("enough");
  assert.equal((await other).stopReason, "aborted");
  assert.equal((await mirror.prompt("Go", { signal: AbortSignal.abort() })).stopReason, "aborted");
  same(agent, mirror);
});

test("who comes into a run hears it from its start; who comes after it has the history", async () => {
  const gate = deferred();
  const { agent, mirror, another } = pair({ model: scripted([call("wait"), "done"]), tools: [testTool("wait", () => gate.promise)] });
  /** @type {any[]} */
  const events = [];
  mirror.subscribe((event) => void events.push(event));
  const run = mirror.prompt("Second");
  while (!events.some(({ type }) => type === "tool_execution_start")) await settle();
  const late = another();
  /** @type {any[]} */
  const received = [];
  const leave = late.subscribe((event) => void received.push(event));
  await late.ready();
  assert.deepEqual(received, events.filter(({ runId }) => runId === run.runId));
  same(agent, late);
  gate.resolve("ok");
  await run;
  await late.waitForIdle();
  assert.deepEqual(received, events.filter(({ runId }) => runId === run.runId));
  leave();
  const after = another();
  await after.ready();
  same(agent, after);
});

test("a run that others began is heard, and is on here as well", async () => {
  const gate = deferred();
  const { agent, mirror } = pair({ model: scripted([call("wait"), "done"]), tools: [testTool("wait", () => gate.promise)] });
  /** @type {string[]} */
  const received = [];
  mirror.subscribe(({ type }) => void received.push(type));
  await mirror.ready();
  const run = agent.prompt("Go");
  while (!received.includes("tool_execution_start")) await settle();
  misused(() => mirror.prompt("Mine"), /already running/);
  gate.resolve();
  await run;
  await mirror.waitForIdle();
  same(agent, mirror);
});

test("a prompt that crosses another's is refused, and its run says so", async () => {
  const gate = deferred();
  const { agent, another } = pair({ model: scripted([call("wait"), "done"]), tools: [testTool("wait", () => gate.promise)] });
  const [one, two] = [another(), another()];
  const [a, b] = [one.prompt("A"), two.prompt("B")];
  const lost = await readRun(b);
  assert.equal(lost.result.error?.code, "misuse");
  gate.resolve();
  assert.equal((await a).text, "done");
  await two.waitForIdle();
  same(agent, two);
});

test("a prompt that comes too late changes nothing of what the mirror knows of the run in progress", async () => {
  const agent = new Agent({ model: scripted([call("pay"), "done"]), tools: [pay(() => "paid")] });
  const handler = agentHandler(agent, { host });
  const asked = deferred();
  const late = deferred();
  const fetch = async (/** @type {any} */ url, /** @type {any} */ init) => {
    if (init?.method === "POST" && String(url).endsWith("prompt")) await late.promise;
    return handler(new Request(url, init));
  };
  const mirror = new RemoteAgent({ url: AT, fetch, host });
  /** @type {any[]} */
  const events = [];
  mirror.subscribe((event) => { events.push(event); if (event.type === "tool_approval_requested") asked.resolve(); });
  await mirror.ready();
  const lost = mirror.prompt("late", { runId: "late" });
  const run = agent.prompt("first", { runId: "first" });
  await asked.promise;
  late.resolve();
  assert.equal((await lost).error?.code, "misuse");
  assert.ok(mirror.isRunning);
  misused(() => mirror.prompt("again"), /already running/);
  assert.equal(mirror.pendingApprovals.length, 1);
  await mirror.resolveTool("c1", "approve");
  await run;
  await mirror.waitForIdle();
  checkTrace(events);
  assert.deepEqual([...new Set(events.map(({ runId }) => runId).filter(Boolean))], ["first"]);
  same(agent, mirror);
});

test("a custom message is steered once", async () => {
  const gate = deferred();
  const { agent, mirror } = pair({ model: scripted([call("wait"), "done"]), tools: [testTool("wait", () => gate.promise)], convertToLlm: (/** @type {any} */ message) => (message.role === "custom" ? { role: "user", content: [{ type: "text", text: "note" }], timestamp: 0 } : message) }, { customMessages: ["note"] });
  const run = mirror.prompt("Go");
  const receipt = mirror.followUp(/** @type {any} */ ({ role: "custom", kind: "note", data: { n: 1 }, timestamp: 0 }));
  await settle();
  gate.resolve("ok");
  await run;
  assert.equal((await receipt).delivered, true);
  assert.equal(agent.messages.filter(({ role }) => role === "custom").length, 1);
});

test("an abort is obeyed whatever its reason", async () => {
  for (const reason of ["", "y".repeat(1500), new Error("y".repeat(1500))]) {
    const { agent, mirror } = pair({ model: scripted([call("wait")]), tools: [testTool("wait", () => new Promise(() => {}))] });
    const run = mirror.prompt("Go");
    for await (const event of run) if (event.type === "tool_execution_start") run.abort(reason);
    assert.equal((await run).stopReason, "aborted");
    same(agent, mirror);
  }
});

test("who waits for an agent that is disposed of waits no longer", async () => {
  const { agent, mirror } = pair({ model: scripted([call("wait")]), tools: [testTool("wait", () => new Promise(() => {}))] });
  const run = mirror.prompt("Go");
  for await (const event of run) {
    if (event.type !== "tool_execution_start") continue;
    const idle = mirror.waitForIdle();
    await settle();
    mirror[Symbol.dispose]();
    await idle;
  }
  agent.abort();
});

test("a history that is replaced is replaced there", async () => {
  const { agent, mirror } = pair({
    model: scripted(Array.from({ length: 8 }, (_, i) => `answer ${i}`)),
    transformContext: (/** @type {any[]} */ messages) => (messages.length > 4 ? { messages: messages.slice(-3), report: { text: "cut" } } : undefined),
  });
  mirror.subscribe(() => {});
  for (let i = 0; i < 6; i++) {
    await mirror.prompt(`Question ${i}`);
    same(agent, mirror);
  }
  assert.ok(mirror.messages.length < 8);
});

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

test("the connection is open as long as somebody needs it", async () => {
  /** @type {string[]} */
  const states = [];
  const { mirror, requests } = pair({ model: scripted(["a", "b"]) }, {}, { onConnection: (/** @type {string} */ state) => states.push(state) });
  await settle();
  assert.equal(requests.length, 0, "nothing is asked before it is needed");
  await mirror.prompt("A");
  while (mirror.connection !== "idle") await settle();
  assert.deepEqual(states, ["connecting", "open", "idle"]);
  const leave = mirror.subscribe(() => {});
  await mirror.prompt("B");
  await settle();
  assert.equal(mirror.connection, "open");
  leave();
  while (mirror.connection !== "idle") await settle();
  mirror[Symbol.dispose]();
  misused(() => mirror.prompt("C"), /disposed/);
  misused(() => mirror.steer("C"), /disposed/);
  await assert.rejects(mirror.ready(), /disposed/);
});

test("a listener that goes leaves no timer behind", async () => {
  let open = 0;
  const counting = { sleep: (/** @type {number} */ ms, /** @type {AbortSignal} */ signal) => new Promise((resolve) => (open++, signal.addEventListener("abort", () => resolve(void open--)))) };
  const { handler, mirror } = pair({ model: scripted(["hi"]) }, { host: counting });
  await mirror.prompt("Go");
  while (mirror.connection !== "idle") await settle();
  await settle();
  assert.equal(open, 0, "one that was about to wait");
  const { body } = await handler(new Request(`${AT}/events`));
  const reader = body?.getReader();
  await reader?.read();
  reader?.read();
  while (open === 0) await settle();
  await reader?.cancel();
  assert.equal(open, 0, "one that waited");
});

test("disposing ends what is open here, not the agent", async () => {
  const gate = deferred();
  const { agent, mirror } = pair({ model: scripted([call("wait"), "done"]), tools: [testTool("wait", () => gate.promise)] });
  const run = mirror.prompt("Go");
  const receipt = mirror.followUp("x");
  for await (const event of run) if (event.type === "tool_execution_start") mirror[Symbol.dispose]();
  assert.equal((await run).error?.code, "aborted");
  assert.deepEqual(await receipt, { delivered: false, reason: "disposed" });
  gate.resolve();
  await agent.waitForIdle();
  assert.equal(agent.messages.at(-1)?.role, "assistant");
});

/** @param {any} handler @param {string} path @param {any} [init] */
async function ask(handler, path, init) {
  const response = await handler(new Request(`${AT}/${path}`, init));
  const text = await response.text();
  return { status: response.status, headers: response.headers, body: text && JSON.parse(text) };
}
const post = (/** @type {any} */ value, /** @type {any} */ headers = {}) => ({ method: "POST", body: typeof value === "string" ? value : JSON.stringify(value), headers: { "content-type": "application/json", ...headers } });

test("what may not be is told so, in JSON", async () => {
  const gate = deferred();
  const agent = new Agent({ model: scripted([call("wait"), "done"]), tools: [testTool("wait", () => gate.promise)] });
  const handler = agentHandler(agent, { limits: { bodyBytes: 2000 } });
  const refused = /** @type {[string, any, number, string, RegExp][]} */ ([
    ["promt", post({}), 404, "invalid_request", /there is no `promt` here; did you mean `prompt`\?/],
    ["prompt", undefined, 405, "invalid_request", /`prompt` is asked for by POST, got GET/],
    ["state", post({}), 405, "invalid_request", /`state` is asked for by GET/],
    ["prompt", { method: "POST", body: "{}" }, 415, "invalid_request", /send content-type application\/json, got text\/plain/],
    ["prompt", post("{"), 400, "invalid_request", /the command is no JSON/],
    ["prompt", post("[]"), 400, "invalid_request", /a command is an object, got an array/],
    ["prompt", post({}), 400, "misuse", /a prompt needs an `input`/],
    ["prompt", post({ input: 5 }), 400, "misuse", /input must be a text/],
    ["prompt", post({ input: [] }), 400, "misuse", /at least one message/],
    ["prompt", post({ input: { role: "assistant", content: [] } }), 400, "misuse", /role `assistant` cannot be an input/],
    ["prompt", post({ input: "x".repeat(3000) }), 413, "invalid_request", /a command may have 2000 bytes/],
    ["prompt", post({ input: "x", runId: 5 }), 400, "invalid_request", /`runId` must be a text/],
    ["continue", post({}), 400, "misuse", /empty message history/],
    ["steer", post({}), 400, "misuse", /needs an `input`/],
    ["resolve", post({}), 400, "misuse", /needs the `question`/],
    ["resolve", post({ callId: "a", decision: "maybe" }), 400, "misuse", /a decision must be/],
    ["resolve", post({ decisions: [] }), 400, "misuse", /`decisions` must be an object/],
    ["events?lastEventId=x", undefined, 400, "invalid_request", /must be a number/],
    ["state", { headers: { origin: "https://other.example" } }, 403, "auth", /pages of https:\/\/other.example may not ask/],
    ["state", { headers: { "sec-fetch-site": "cross-site" } }, 403, "auth", /other sites/],
  ]);
  for (const [path, init, status, code, text] of refused) {
    const response = await ask(handler, path, init);
    assert.equal(response.status, status, `${path} ${JSON.stringify(init)}`);
    assert.equal(response.body.error.code, code);
    assert.match(response.body.error.message, text);
    assert.equal(response.headers.get("access-control-allow-origin"), null);
  }
  assert.equal(agent.isRunning, false);
  assert.equal((await ask(handler, "prompt", post({ input: "Go" }))).status, 202);
  const second = await ask(handler, "prompt", post({ input: "Go" }));
  assert.deepEqual([second.status, second.body.error.code], [409, "misuse"]);
  gate.resolve();
  await agent.waitForIdle();
});

test("one command with one id is done once", async () => {
  const { agent, handler } = pair({ model: scripted(["a", "b"]) });
  const [one, two] = await Promise.all([1, 2].map(() => ask(handler, "prompt", post({ id: "c1", input: "Go", runId: "r1" }))));
  assert.deepEqual([one?.status, one?.body, two?.status, two?.body], [202, { runId: "r1" }, 202, { runId: "r1" }]);
  await agent.waitForIdle();
  assert.deepEqual((await ask(handler, "prompt", post({ id: "c1", input: "Go" }))).body, { runId: "r1" });
  await settle();
  assert.equal(agent.messages.length, 2);
  const bad = await ask(handler, "prompt", post({ id: "c2", input: 7 }));
  assert.equal(bad.status, 400);
  assert.equal((await ask(handler, "prompt", post({ id: "c2", input: "Go" }))).status, 202, "what was refused was not done");
});

test("a command that another instance has executed is not executed again, and has the same answer", async () => {
  const events = memoryEvents();
  /** @type {any[]} */
  const commands = [];
  const log = Object.assign(Object.create(events), {
    append: (/** @type {any} */ record) => (/command|receipt/.test(record.type) && commands.push(record), events.append(record)),
    commands: () => commands,
  });
  const agent = new Agent({ model: scripted(["one", "two"]) });
  const served = () => agentHandler(agent, { host, events: log });
  const first = served();
  const started = await ask(first, "prompt", post({ id: "p1", input: "Go" }));
  await agent.waitForIdle();
  assert.equal((await ask(first, "reset", post({ id: "r1" }))).status, 202);
  assert.equal((await ask(first, "prompt", post({ id: "p2", input: "Again" }))).status, 202);
  await agent.waitForIdle();
  const second = served();
  assert.equal((await ask(second, "reset", post({ id: "r1" }))).status, 202);
  assert.equal(agent.messages.length, 2);
  assert.deepEqual((await ask(second, "prompt", post({ id: "p1", input: "Go" }))).body, started.body);
  assert.equal(agent.messages.length, 2);
});

test("state is what a look at the agent shows", async () => {
  const { agent, handler } = pair({ model: scripted([{ toolCalls: [{ callId: "p", toolName: "pay" }] }, "done"]), tools: [pay(() => "x")] });
  await ask(handler, "prompt", post({ input: "Go", runId: "r1" }));
  while (agent.pendingApprovals.length === 0) await settle();
  const { body } = await ask(handler, "state");
  assert.deepEqual(body, json({ messages: agent.messages, pendingApprovals: agent.pendingApprovals, isRunning: true, usage: agent.usage, runId: "r1", lastEventId: body.lastEventId }));
  assert.match(body.lastEventId, /^\d+$/);
  await ask(handler, "abort", post({ runId: "another" }));
  await settle();
  assert.ok(agent.isRunning, "an abort of another run says nothing");
  await ask(handler, "abort", post({ runId: "r1" }));
  await agent.waitForIdle();
});

test("who asks is judged first", async () => {
  /** @type {any[]} */
  const commands = [];
  const { handler } = pair({ model: scripted(["a"]) }, { authorize: async (/** @type {Request} */ request, /** @type {string} */ what) => {
    commands.push(what);
    const key = request.headers.get("authorization");
    return key === "teapot" ? new Response("{}", { status: 418 }) : key === "Bearer k";
  } });
  assert.equal((await ask(handler, "state")).status, 401);
  assert.equal((await ask(handler, "state", { headers: { authorization: "teapot" } })).status, 418);
  assert.equal((await ask(handler, "state", { headers: { authorization: "Bearer k" } })).status, 200);
  assert.equal((await ask(handler, "prompt", post({ input: "x" }))).status, 401);
  assert.deepEqual(commands, ["state", "state", "state", "prompt"]);
  // As with `session?.isMine` without a session.
  for (const nothing of [undefined, null, "", 0, NaN]) {
    const { handler: silent } = pair({ model: scripted(["a"]) }, { authorize: async () => nothing });
    assert.equal((await ask(silent, "state")).status, 401, String(nothing));
  }
  const failing = agentHandler(new Agent({ model: scripted([]) }), { authorize: () => { throw new Error("secret"); } });
  const { error } = console;
  console.error = () => {};
  try {
    const { handler: vague } = pair({ model: scripted(["a"]) }, { authorize: () => ({ user: 7 }) });
    assert.equal((await ask(vague, "state")).status, 500);
    // Like a Response of another realm, or of a package.
    const { handler: foreign } = pair({ model: scripted(["a"]) }, { authorize: () => ({ status: 418, headers: new Headers(), body: null }) });
    assert.equal((await foreign(new Request(`${AT}/state`))).status, 418);
    const silent = agentHandler(new Agent({ model: scripted([]) }), { authorize: () => Promise.reject() });
    assert.equal((await ask(silent, "state")).status, 500);
    const response = await ask(failing, "state");
    assert.equal(response.status, 500);
    assert.ok(!JSON.stringify(response.body).includes("secret"));
  } finally {
    console.error = error;
  }
});

test("other origins: none, some, or all", async () => {
  const origin = "https://app.example";
  const preflight = { method: "OPTIONS", headers: { origin, "access-control-request-method": "POST", "access-control-request-headers": "content-type,authorization" } };
  for (const cors of [[origin], "*", (/** @type {string} */ one) => one === origin]) {
    const handler = agentHandler(new Agent({ model: scripted([]) }), { cors });
    const response = await ask(handler, "prompt", preflight);
    assert.deepEqual([response.status, response.headers.get("access-control-allow-origin"), response.headers.get("access-control-allow-headers")], [204, origin, "content-type,authorization"]);
    const state = await ask(handler, "state", { headers: { origin } });
    assert.deepEqual([state.status, state.headers.get("access-control-allow-origin")], [200, origin]);
    const refused = await ask(handler, "prompt", post({}, { origin }));
    assert.deepEqual([refused.status, refused.headers.get("access-control-allow-origin")], [400, origin], "a page can read why");
    assert.equal((await ask(handler, "state", { headers: { origin: "https://evil.example" } })).status, cors === "*" ? 200 : 403);
  }
  // The promise is not awaited, so it is not a yes.
  const late = agentHandler(new Agent({ model: scripted([]) }), { cors: /** @type {any} */ (async () => true) });
  assert.equal((await ask(late, "state", { headers: { origin } })).status, 403);
  const closed = agentHandler(new Agent({ model: scripted([]) }));
  assert.equal((await ask(closed, "prompt", preflight)).status, 403);
  assert.equal((await ask(closed, "state", { headers: { origin: "http://agents.localhost" } })).status, 200, "its own pages may");
  assert.equal((await ask(closed, "state", { headers: { origin: "null" } })).status, 403);
});

test("limits: listeners, commands a minute, the length of a conversation", async () => {
  let now = 0;
  const agent = new Agent({ model: scripted(["a".repeat(300), "b"]) });
  const handler = agentHandler(agent, { limits: { listeners: 1, commandsPerMinute: 2, historyBytes: 400 }, host: { ...host, now: () => now } });
  const first = await handler(new Request(`${AT}/events`));
  const full = await ask(handler, "events");
  assert.deepEqual([full.status, full.body.error.code, full.headers.get("retry-after")], [429, "throttled", "5"]);
  await first.body?.cancel();
  const second = await handler(new Request(`${AT}/events`));
  assert.equal(second.status, 200);
  // A listener that was not seen to read for three keep-alives has gone.
  now = 45_000;
  assert.equal((await ask(handler, "events")).status, 429);
  now = 45_001;
  await (await handler(new Request(`${AT}/events`))).body?.cancel();
  await second.body?.cancel();
  assert.equal((await ask(handler, "prompt", post({ input: "x" }))).status, 202);
  await agent.waitForIdle();
  const room = await ask(handler, "prompt", post({ input: "x" }));
  assert.equal(room.status, 413);
  assert.match(room.body.error.message, /^the conversation is full: it has \d+ bytes of 400/);
  const fast = await ask(handler, "abort", post({}));
  assert.deepEqual([fast.status, fast.headers.get("retry-after")], [429, "30"]);
  now += 30_000;
  assert.equal((await ask(handler, "abort", post({}))).status, 202);
});

test("letters that wait count for the length of a conversation, until they are delivered or cleared", async () => {
  const end = deferred();
  const agent = new Agent({ model: scripted([async () => end.promise, "read", "more"]) });
  const handler = agentHandler(agent, { limits: { historyBytes: 1_900 }, host });
  const postFollowUp = () => ask(handler, "follow-up", post({ input: "a".repeat(900) }));
  assert.equal((await ask(handler, "prompt", post({ input: "x" }))).status, 202);
  const statuses = [];
  for (let i = 0; i < 4; i++) statuses.push((await postFollowUp()).status);
  assert.deepEqual(statuses, [202, 202, 413, 413]);
  agent.clearQueues();
  await settle();
  assert.equal((await postFollowUp()).status, 202);
  end.resolve("hello");
  await agent.waitForIdle();
  assert.equal((await postFollowUp()).status, 202, "it has been delivered, and counts once");
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

test("over real HTTP", async (context) => {
  const agent = new Agent({ model: scripted([{ text: ["a", "b"], toolCalls: [{ callId: "p", toolName: "pay" }] }, "done"]), tools: [pay(() => "x")] });
  const handler = agentHandler(agent);
  const server = createServer(async (request, response) => {
    const body = request.method === "POST" ? /** @type {any} */ (Readable.toWeb(request)) : undefined;
    const answer = await handler(new Request(`http://${request.headers.host}${request.url}`, /** @type {any} */ ({ method: request.method, headers: request.headers, body, duplex: "half" })));
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    if (!answer.body) return void response.end();
    const readable = Readable.fromWeb(/** @type {any} */ (answer.body));
    readable.on("error", () => {});
    readable.pipe(response);
    response.on("close", () => readable.destroy());
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  context.after(() => { server.closeAllConnections(); server.close(); });
  const mirror = new RemoteAgent({ url: `http://127.0.0.1:${/** @type {any} */ (server.address()).port}/agent/` });
  const run = mirror.prompt("Go");
  for await (const event of run) {
    if (event.type === "message_update" && event.delta.type === "text" && event.delta.delta === "b") server.closeAllConnections();
    if (event.type === "tool_approval_requested") mirror.resolveTools({ p: "approve" });
  }
  assert.equal((await run).text, "done");
  same(agent, mirror);
});

test("a page that came over plain HTTP, where there is no randomUUID, reaches an agent too", async (context) => {
  context.mock.method(crypto, "randomUUID");
  Object.defineProperty(crypto, "randomUUID", { value: undefined, configurable: true });
  context.after(() => delete (/** @type {any} */ (crypto).randomUUID));
  const { mirror } = pair({ model: scripted(["hello"]) });
  assert.equal((await mirror.prompt("Go")).text, "hello");
});

test("listeners and callbacks that throw or reject end nothing, here as little as there", async (context) => {
  const logged = context.mock.method(console, "error", () => {});
  const fails = [() => { throw new Error("no"); }, async () => { throw new Error("no"); }];
  for (const fail of fails) {
    /** @type {any[]} */
    const heard = [];
    const { mirror } = pair({ model: scripted(["hello"]) }, {}, { onConnection: fail, onError: (/** @type {unknown} */ error) => (heard.push(error), fail()) });
    /** @type {string[]} */
    const received = [];
    mirror.subscribe(fail);
    mirror.subscribe(({ type }) => void received.push(type));
    assert.equal((await mirror.prompt("Go")).text, "hello");
    assert.deepEqual([received[0], received.at(-1)], ["agent_start", "agent_end"]);
    assert.match(heard[0].message, /a subscriber threw and was removed at `agent_start`: no/);
    const unreachable = new RemoteAgent({ url: AT, host, fetch: async () => new Response("no", { status: 400 }), onError: fail });
    await assert.rejects(unreachable.abort(), /the server answered 400/);
    await settle();
  }
  const texts = logged.mock.calls.map(({ arguments: [text] }) => text);
  assert.ok(texts.some((text) => /a callback of RemoteAgent's options failed/.test(text)));
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

test("a limit that is undefined is the usual one", async () => {
  const undefinedLimits = /** @type {any} */ ({ bodyBytes: undefined, listeners: undefined });
  const handler = agentHandler(new Agent({ model: scripted(["never"]) }), { limits: undefinedLimits });
  const body = JSON.stringify({ input: "x".repeat(1_000_001) });
  assert.equal((await handler(new Request(`${AT}/prompt`, { method: "POST", headers: { "content-type": "application/json" }, body }))).status, 413);
  let requestCount = 0;
  const fetch = async () => { requestCount += 1; throw new TypeError("nobody is there"); };
  const unreachable = new RemoteAgent({ url: AT, host, fetch: /** @type {any} */ (fetch), reconnects: /** @type {any} */ ({ maxAttempts: undefined, initialMs: undefined, maxMs: 100 }), onError: () => {} });
  await assert.rejects(unreachable.ready(), /nobody is there/);
  assert.equal(requestCount, 11);
});

test("a fetch that gives no Response is named, and not tried again", async () => {
  let requestCount = 0;
  const remote = new RemoteAgent({ url: AT, fetch: /** @type {any} */ (async () => void (requestCount += 1)), onError: () => {} });
  const { error } = await remote.prompt("Go");
  assert.deepEqual([error?.code, error?.message], ["misuse", "`fetch` and `reconnect` must give a Response, got nothing"]);
  assert.ok(requestCount <= 2, `asked ${requestCount} times`);
});

test("misuse is told at the call", () => {
  misused(() => agentHandler(/** @type {any} */ ({})), /agentHandler takes an Agent, got an object/);
  misused(() => agentHandler(new Agent({ model: scripted([]) }), /** @type {any} */ (null)), /the options of agentHandler must be an object, got null/);
  misused(() => agentHandler(new Agent({ model: scripted([]) }), /** @type {any} */ ({ core: 1 })), /unknown option `core`; did you mean `cors`/);
  misused(() => agentHandler(new Agent({ model: scripted([]) }), { limits: /** @type {any} */ ({ listener: 1 }) }), /unknown option `limits.listener`; did you mean `listeners`/);
  misused(() => agentHandler(new Agent({ model: scripted([]) }), { limits: { bodyBytes: NaN } }), /`limits.bodyBytes` must be a number from 0 on, got NaN/);
  misused(() => new RemoteAgent({ url: AT, reconnects: /** @type {any} */ ({ maxAttempts: "3" }) }), /`reconnects.maxAttempts` must be a number from 0 on, got "3"/);
  misused(() => new RemoteAgent({ url: AT, reconnects: /** @type {any} */ ({ maxAttempt: 3 }) }), /unknown option `reconnects.maxAttempt`; did you mean `maxAttempts`/);
  misused(() => agentHandler(new Agent({ model: scripted([]) }), { cors: /** @type {any} */ ("https://a.example") }), /`cors` must be "\*", a list of origins or a function, got a string; write \["https:\/\/a\.example"\]/);
  misused(() => agentHandler(new Agent({ model: scripted([]) }))(/** @type {any} */ ({ url: "/", headers: {} })), /takes a Request, got an object \(Object\); docs\/remote\.md/);
  // `authorize` is a function or absent: nobody is let in because it is null.
  for (const authorize of [null, false, "secret", {}]) misused(() => agentHandler(new Agent({ model: scripted([]) }), { authorize: /** @type {any} */ (authorize) }), /`authorize` must be a function, got /);
  misused(() => agentHandler(new Agent({ model: scripted([]) }), { waitUntil: /** @type {any} */ ({}) }), /`waitUntil` must be a function/);
  misused(() => new RemoteAgent({ url: AT, fetch: /** @type {any} */ ("x") }), /`fetch` must be a function, got a string/);
  misused(() => new RemoteAgent(/** @type {any} */ ("http://x")), /RemoteAgent takes \{ url \}, got a string/);
  misused(() => new RemoteAgent(/** @type {any} */ ({ uri: "x" })), /unknown option `uri`; did you mean `url`/);
  misused(() => new RemoteAgent(/** @type {any} */ ({})), /`url` must be the address of an agent, got nothing/);
  misused(() => new RemoteAgent({ url: `${AT}?token=x` }), /`url` is followed by the name of a command, so it may have no query/);
  misused(() => new RemoteAgent({ url: AT }).prompt(/** @type {any} */ (5)), /input must be a text/);
  misused(() => new RemoteAgent({ url: AT }).prompt("Go", /** @type {any} */ ({ abortSignal: AbortSignal.abort() })), /unknown option `abortSignal`; did you mean `signal`\?/);
  misused(() => new RemoteAgent({ url: AT }).prompt("Go", { signal: /** @type {any} */ (new AbortController()) }), /`signal` must be an AbortSignal/);
  misused(() => new RemoteAgent({ url: AT }).subscribe(/** @type {any} */ (5)), /a subscriber must be a function/);
  misused(() => new RemoteAgent({ url: AT }).resolveTool("x", /** @type {any} */ ("maybe")), /a decision must be/);
  const mirror = new RemoteAgent({ url: AT });
  const big = /** @type {any} */ ({ role: "custom", kind: "k", data: 1n, timestamp: 0 });
  for (const act of [() => mirror.prompt(big), () => mirror.steer(big), () => mirror.resolveTool("x", { action: "approve", arguments: big })]) misused(act, /the (?:command|decision) is no JSON: .*BigInt/);
  assert.deepEqual([mirror.isRunning, mirror.connection], [false, "idle"]);
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

test("a waitUntil that throws is told of, and the run goes on as who asked for it hears", async () => {
  const report = console.error;
  /** @type {any[]} */
  const logged = [];
  console.error = (...parts) => logged.push(parts.join(" "));
  try {
    const { agent, mirror } = pair({ model: scripted(["done"]) }, { waitUntil() {
      throw new TypeError("Illegal invocation");
    } });
    assert.equal((await mirror.prompt("Go")).text, "done");
    assert.equal(agent.messages.length, 2);
    assert.deepEqual(logged, ["turnwheel: waitUntil threw TypeError: Illegal invocation"]);
  } finally {
    console.error = report;
  }
});

test("a signal that outlives its runs is left by each of them", async () => {
  const { mirror } = pair({ model: scripted(["one", "two", "three"]) });
  const { signal } = new AbortController();
  assert.equal((await mirror.prompt("Go", { signal })).text, "one");
  const run = new Agent({ model: scripted(["two"]) }).prompt("Go", { signal });
  assert.equal((await fromResponse(run.toResponse(), { signal })).text, "two");
  assert.equal(getEventListeners(signal, "abort").length, 0);
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
