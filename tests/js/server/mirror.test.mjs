// @ts-check
// An agent behind HTTP and its mirror: the same interface, the same events, each once.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { Readable } from "node:stream";
import { test } from "node:test";
import { RemoteAgent } from "../../../pkg/remote.js";
import { agentHandler } from "../../../pkg/server.js";
import { checkTrace } from "../grammar.mjs";
import { Agent, call, deferred, misused, readRun, scripted, settle, testTool } from "../kit.mjs";
import { ask, AT, host, json, pair, pay, post, same } from "./pair.mjs";

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

test("an abort in the middle of a call is an abort for a listener who comes later, too, and not a reset", async () => {
  const working = deferred();
  const tools = [testTool("work", (/** @type {any} */ _, /** @type {any} */ { signal }) => new Promise((resolve) => (signal.addEventListener("abort", resolve), working.resolve())))];
  const { agent, mirror, another } = pair({ model: scripted([call("work"), "never"]), tools });
  const run = mirror.prompt("Work");
  await working.promise;
  await mirror.abort("enough");
  const { error, messages } = await run;
  assert.deepEqual([error?.message, messages.length], ["enough", 3]);
  const later = another();
  await later.ready();
  same(agent, later);
  assert.equal((await later.prompt("Again")).error, undefined);
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
