// @ts-check
// A server that is started anew at any moment: a receipt says what became of its message, and no run hangs.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fromResponse, RemoteAgent } from "../../../pkg/remote.js";
import { agentHandler, memoryEvents } from "../../../pkg/server.js";
import { Agent, call, deferred, scripted, settle, testTool } from "../kit.mjs";

const host = { sleep: (/** @type {number} */ ms, /** @type {AbortSignal} */ signal) => (ms === 7000 || ms >= 15_000 ? new Promise((/** @type {any} */ resolve) => signal.addEventListener("abort", resolve)) : settle()) };
const AT = "http://localhost/agents/7";

/** A place at which one server after the other answers. */
function place() {
  let cut = new AbortController();
  /** @type {any} */
  let handler;
  const there = {
    /** The names of the commands whose answers get lost. */
    lost: new Set(),
    /** @param {any} next */
    start(next) {
      handler = next;
      cut.abort(new Error("the server is gone"));
      cut = new AbortController();
    },
    fetch: async (/** @type {any} */ url, /** @type {any} */ init) => {
      if (!handler) throw new Error("no route");
      const { signal } = cut;
      const response = await handler(new Request(url, init));
      const name = String(url).split("/").at(-1) ?? "";
      if (there.lost.delete(name)) throw new Error("the answer was lost");
      if (!name.startsWith("events")) return response;
      return new Response(response.body?.pipeThrough(new TransformStream(), { signal }), response);
    },
    remote: () => new RemoteAgent({ url: AT, host, fetch: there.fetch, onError() {}, reconnects: { maxAttempts: 1000, maxMs: 1000 } }),
  };
  return there;
}
const later = (/** @type {number} */ s) => ({ ...host, now: () => Date.now() + s * 1000 });

test("a message that was read before the restart was delivered, whatever log there is", async () => {
  const there = place();
  const gate = deferred();
  const agent = new Agent({ model: scripted([call("wait"), "read", "more"]), tools: [testTool("wait", () => gate.promise)] });
  there.start(agentHandler(agent, { host }));
  const remote = there.remote();
  const run = remote.prompt("Go");
  while (!agent.messages.some(({ role }) => role === "assistant")) await settle();
  for (let i = 0; i < 20; i++) await settle();
  const receipt = remote.steer("What of this?");
  for (let i = 0; i < 20; i++) await settle();
  // The connection is gone while the agent reads it; another server has the conversation, and another log.
  there.start(undefined);
  gate.resolve("ok");
  await agent.waitForIdle();
  there.start(agentHandler(new Agent({ model: scripted([]), messages: /** @type {any} */ (agent.messages) }), { host: later(60) }));
  assert.equal((await receipt).delivered, true);
  assert.equal((await run).stopReason, "error");
  remote[Symbol.dispose]();
});

test("a message that was on its way when the server went is not given up: it is sent again", async () => {
  const there = place();
  const gate = deferred();
  const make = () => new Agent({ model: scripted([call("wait"), "read", "more"]), tools: [testTool("wait", () => gate.promise)] });
  there.start(agentHandler(make(), { host }));
  const remote = there.remote();
  remote.subscribe(() => {});
  await remote.ready();
  there.start(undefined);
  const receipt = remote.followUp("Later");
  for (let i = 0; i < 20; i++) await settle();
  const agent = make();
  there.start(agentHandler(agent, { host: later(60) }));
  for (let i = 0; i < 50; i++) await settle();
  const run = remote.prompt("Go");
  gate.resolve("ok");
  assert.deepEqual((await receipt).delivered, true);
  await run;
  remote[Symbol.dispose]();
});

test("a message whose answer was lost has its receipt, though it was read before it was sent again", async () => {
  const there = place();
  const agent = new Agent({ model: scripted(["one", "two", "three"]) });
  there.start(agentHandler(agent, { host }));
  const remote = there.remote();
  remote.subscribe(() => {});
  await remote.ready();
  there.lost.add("follow-up");
  const receipt = remote.followUp("And this?");
  assert.equal((await remote.prompt("Go")).text, "two");
  assert.equal((await receipt).delivered, true);
  remote[Symbol.dispose]();
});

test("what the agent does not have after the restart was not delivered", async () => {
  const there = place();
  const make = () => new Agent({ model: scripted([call("wait")]), tools: [testTool("wait", () => new Promise(() => {}))] });
  there.start(agentHandler(make(), { host }));
  const remote = there.remote();
  const run = remote.prompt("Go");
  const receipt = remote.followUp("Later");
  for await (const event of run) if (event.type === "tool_execution_start") {
    for (let i = 0; i < 20; i++) await settle();
    there.start(agentHandler(make(), { host: later(60) }));
  }
  assert.deepEqual(await receipt, { delivered: false, reason: "lost" });
  remote[Symbol.dispose]();
});

test("a run that was accepted and is nowhere after the restart ends", async () => {
  const there = place();
  const silent = new Agent({ model: scripted(["never"]) });
  /** Accepts everything and does nothing of it. */
  const lying = agentHandler(silent, { host });
  there.start((/** @type {Request} */ request) => (request.method === "POST" ? new Response("{}", { status: 202 }) : lying(request)));
  const remote = there.remote();
  const run = remote.prompt("Go");
  for (let i = 0; i < 30; i++) await settle();
  there.start(agentHandler(new Agent({ model: scripted([]) }), { host: later(60) }));
  const { stopReason, error } = await run;
  assert.deepEqual([stopReason, error?.code], ["error", "network"]);
  assert.equal(remote.isRunning, false);
  remote[Symbol.dispose]();
});

test("a server with the log of the one before tells what that one could not", async () => {
  const events = memoryEvents({ start: 0 });
  let isDying = false;
  const log = Object.assign(Object.create(events), {
    append: (/** @type {any} */ entry) => {
      if (isDying && entry.type === "receipt") throw new Error("it was killed");
      events.append(entry);
    },
    commands: () => events.read(events.first, Infinity).filter(({ type }) => type === "command" || type === "receipt"),
  });
  const there = place();
  const agent = new Agent({ model: scripted(["one", "two"]) });
  there.start(agentHandler(agent, { host, events: log }));
  const remote = there.remote();
  remote.subscribe(() => {});
  await remote.ready();
  const receipt = remote.followUp("And this?");
  for (let i = 0; i < 20; i++) await settle();
  isDying = true;
  const { error } = console;
  console.error = () => {};
  there.start(undefined);
  await agent.prompt("Go");
  for (let i = 0; i < 20; i++) await settle();
  isDying = false;
  console.error = error;
  there.start(agentHandler(new Agent({ model: scripted([]), messages: /** @type {any} */ (agent.messages) }), { host, events: log }));
  assert.equal((await receipt).delivered, true);
  remote[Symbol.dispose]();
});

test("a run id that was used before ends the second run with the reason, also in letters that are not Latin", { timeout: 20_000 }, async () => {
  const there = place();
  there.start(agentHandler(new Agent({ model: scripted(["a", "b", "c"]) }), { host }));
  const remote = there.remote();
  for (const runId of ["r1", "Лауф 7\n%41", "\ud800x"]) {
    assert.equal((await remote.prompt("Go", { runId })).stopReason, "completed", runId);
    const { stopReason, error } = await remote.prompt("Go", { runId });
    assert.deepEqual([stopReason, error?.code], ["error", "misuse"]);
    assert.match(error?.message ?? "", /every run needs an id of its own/);
  }
  remote[Symbol.dispose]();
});

test("a response of a run has its id, in whatever letters", async () => {
  for (const runId of ["r1", "Лауф 7\r\nset-cookie: a=b", "100%", "%41", "a b", "\u{1f600}", "é", "plain-uuid-0"]) {
    const response = new Agent({ model: scripted(["hi"]) }).prompt("Go", { runId }).toResponse();
    assert.equal(response.headers.get("set-cookie"), null);
    const run = fromResponse(response);
    assert.equal(run.runId, runId);
    assert.equal((await run).runId, runId);
  }
  assert.equal((await fromResponse(new Agent({ model: scripted(["hi"]) }).prompt("Go", { runId: "\ud800" }).toUIMessageStreamResponse()).result).stopReason, "error");
  const plain = new Agent({ model: scripted(["hi"]) }).prompt("Go", { runId: "as-it-is_0.9~" }).toResponse();
  assert.equal(plain.headers.get("x-turnwheel-run"), "as-it-is_0.9~");
});
