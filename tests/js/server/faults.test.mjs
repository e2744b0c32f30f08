// @ts-check
// Faults of the host, and what stays open: connections, timers, listeners.

import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { fromResponse, RemoteAgent } from "../../../pkg/remote.js";
import { agentHandler } from "../../../pkg/server.js";
import { Agent, call, deferred, misused, scripted, settle, testTool } from "../kit.mjs";
import { AT, host, pair } from "./pair.mjs";

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
