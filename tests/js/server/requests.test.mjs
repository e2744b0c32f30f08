// @ts-check
// How requests are judged, limited and answered, and those that are not allowed.

import assert from "node:assert/strict";
import { test } from "node:test";
import { RemoteAgent } from "../../../pkg/remote.js";
import { agentHandler, memoryEvents } from "../../../pkg/server.js";
import { Agent, call, deferred, scripted, settle, testTool } from "../kit.mjs";
import { ask, AT, host, pair, post } from "./pair.mjs";

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
  // A listener that was not seen to read for six keep-alives has gone.
  now = 42_000;
  assert.equal((await ask(handler, "events")).status, 429);
  now = 42_001;
  await (await handler(new Request(`${AT}/events`))).body?.cancel();
  await second.body?.cancel();
  assert.equal((await ask(handler, "prompt", post({ input: "x" }))).status, 202);
  await agent.waitForIdle();
  const room = await ask(handler, "prompt", post({ input: "x" }));
  assert.equal(room.status, 413);
  assert.match(room.body.error.message, /^the conversation is full: it has \d+ bytes of 400/);
  const fast = await ask(handler, "clear-queues", post({}));
  assert.deepEqual([fast.status, fast.headers.get("retry-after")], [429, "30"]);
  assert.equal((await ask(handler, "abort", post({}))).status, 202, "to stop has room of its own");
  now += 30_000;
  assert.equal((await ask(handler, "clear-queues", post({}))).status, 202);
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

test("a body that somebody else has read is an error that names them, on both sides", async (t) => {
  const handler = agentHandler(new Agent({ model: scripted([]) }), { host });
  const headers = { "content-type": "application/json", "content-length": "12" };
  const empty = new Request(`${AT}/prompt`, { method: "POST", headers, body: new ReadableStream({ start: (controller) => controller.close() }), duplex: "half" });
  const used = new Request(`${AT}/prompt`, { method: "POST", headers, body: '{"input":"x"}' });
  await used.text();
  for (const request of [empty, used]) {
    const answer = await handler(request);
    assert.equal(answer.status, 400);
    assert.match((await answer.json()).error.message, /something in front of `agentHandler` has read it, such as express\.json\(\)/);
  }
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const silent = handler(new Request(`${AT}/prompt`, { method: "POST", headers, body: new ReadableStream({}), duplex: "half" }));
  await settle();
  t.mock.timers.tick(10_000);
  assert.equal((await silent).status, 400);
});

test("streams say that nobody may hold them back", async () => {
  const handler = agentHandler(new Agent({ model: scripted([]) }), { host });
  const { headers, body } = await handler(new Request(`${AT}/events`));
  await body?.cancel();
  assert.deepEqual([headers.get("cache-control"), headers.get("x-accel-buffering")], ["no-store, no-transform", "no"]);
});

test("a listener for whom there is nothing gets a comment at once, and before Bun's ten seconds are over the next", async () => {
  /** @type {number[]} */
  const slept = [];
  const sleep = (/** @type {number} */ ms, /** @type {AbortSignal} */ signal) => (slept.push(ms), new Promise((resolve) => signal.addEventListener("abort", resolve)));
  const agent = new Agent({ model: { provider: "own", id: "m", streamFn: () => /** @type {any} */ (new Promise(() => {})) }, host: { sleep: /** @type {any} */ (sleep) } });
  const silent = agent.prompt("Go");
  const reader = /** @type {ReadableStream<Uint8Array>} */ (silent.toResponse({ lastEventId: 100 }).body).getReader();
  assert.equal(new TextDecoder().decode((await reader.read()).value), ": \n\n");
  const next = reader.read();
  await settle();
  assert.ok(slept.some((ms) => ms > 0 && ms < 8000), String(slept));
  agent.abort();
  await reader.cancel();
  await next;
  const handler = agentHandler(agent, { host: { sleep: /** @type {any} */ (sleep) } });
  slept.length = 0;
  const events = /** @type {ReadableStream<Uint8Array>} */ ((await handler(new Request(`${AT}/events`))).body).getReader();
  while (slept.length === 0) events.read(), await settle();
  assert.ok(slept.every((ms) => ms < 8000), String(slept));
  await events.cancel();
});
