// @ts-check
// A run as server-sent events, and the run rebuilt from them elsewhere: the same events,
// each once, whatever breaks.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fromResponse } from "../../../pkg/remote.js";
import { dice } from "../dice.mjs";
import { checkTrace } from "../grammar.mjs";
import { Agent, call, custom, deferred, isOpen, misused, readRun, scripted, settle, testTool } from "../kit.mjs";

/** Waits for a connection end at once; timeouts on a silent one never do. */
const host = { sleep: (/** @type {number} */ ms, /** @type {AbortSignal} */ signal) => (ms > 40_000 ? new Promise((resolve) => signal.addEventListener("abort", resolve)) : Promise.resolve()) };

/** A run with everything in it: thinking, text, two calls, an error result, a second turn. */
const busy = (more = {}) => new Agent({
  model: scripted([
    { thinking: "hm, 😀", text: ["one ", "two\n\n", "three"], toolCalls: [{ callId: "a", toolName: "look", arguments: { at: "nörth", n: [1, 2] }, chunks: ['{"at":"nö', 'rth","n":[1,', "2]}"] }, { callId: "b", toolName: "nope" }] },
    { text: ["all ", "done"], usage: { input: 3, output: 2 } },
  ]),
  tools: [testTool("look", (/** @type {any} */ _, /** @type {any} */ { update }) => (update({ half: "\r\n\r\n" }), { content: [{ type: "text", text: "seen" }], details: { n: 1 } }))],
  ...more,
});

/** The events in a body. @param {string} text */
const parsed = (text) => text.split("\n\n").filter((piece) => piece.startsWith("id: ")).map((piece) => {
  const [, id, data] = /^id: (\d+)\ndata: (.*)$/.exec(piece) ?? assert.fail(piece);
  return { id: Number(id), event: JSON.parse(/** @type {string} */ (data)) };
});

const json = (/** @type {any} */ value) => JSON.parse(JSON.stringify(value));

test("a response tells every event once, numbered from 1", async () => {
  const agent = busy();
  /** @type {any[]} */
  const events = [];
  agent.subscribe((event) => void events.push(json(event)));
  const run = agent.prompt("Go");
  const response = run.toResponse({ status: 201, headers: { "x-mine": "1", "cache-control": "public" } });
  assert.deepEqual([response.status, response.headers.get("x-mine"), response.headers.get("content-type"), response.headers.get("cache-control")], [201, "1", "text/event-stream", "no-store, no-transform"]);
  assert.equal(response.headers.get("x-turnwheel-run"), run.runId);
  const received = parsed(await response.text());
  assert.deepEqual(received.map(({ id }) => id), events.map((_, i) => i + 1));
  assert.deepEqual(received.map(({ event }) => event), events);
});

test("a response goes on after any event, while the run is on and after its end", async () => {
  const agent = busy();
  const run = agent.prompt("Go");
  const early = Array.from({ length: 12 }, (_, i) => run.toResponse({ lastEventId: String(i) }).text());
  const whole = parsed(await run.toResponse().text());
  assert.ok(whole.length > 20);
  for (let i = 0; i < early.length; i++) assert.deepEqual(parsed(/** @type {any} */ (await early[i])), whole.slice(i));
  for (let i = 0; i <= whole.length + 1; i++) assert.deepEqual(parsed(await run.toResponse({ lastEventId: i }).text()), whole.slice(i));
});

test("who asks late hears from then on, and who asks after the end hears the end", async () => {
  const gate = deferred();
  const agent = new Agent({ model: scripted([call("wait"), "done"]), tools: [testTool("wait", () => gate.promise)] });
  const run = agent.prompt("Go");
  await settle();
  const response = run.toResponse();
  gate.resolve("ok");
  const received = parsed(await response.text()).map(({ event }) => event.type);
  assert.equal(received[0], "tool_execution_end");
  assert.equal(received.at(-1), "agent_end");
  const over = agent.prompt("Again");
  await over;
  assert.deepEqual(parsed(await over.toResponse().text()).map(({ event }) => event.type), ["agent_end"]);
});

test("a slow reader costs nothing but its number, and holds up nobody", async () => {
  const pieces = Array.from({ length: 500 }, (_, i) => `${i} `);
  const agent = new Agent({ model: scripted([{ text: pieces }]) });
  const run = agent.prompt("Go");
  const slow = run.toResponse().body?.getReader();
  const fast = parsed(await run.toResponse().text());
  assert.equal(fast.length, 506);
  const decoder = new TextDecoder();
  let text = "";
  let reads = 0;
  for (let step = await slow?.read(); !step?.done; step = await slow?.read(), reads++) {
    const piece = decoder.decode(step?.value);
    assert.ok(parsed(piece).length <= 64, "one piece is small");
    text += piece;
  }
  assert.ok(reads >= 8);
  assert.deepEqual(parsed(text), fast);
});

test("a reader that leaves does not stop the run, unless it was said so", async () => {
  for (const abortOnLeave of [false, true]) {
    const gate = deferred();
    const agent = new Agent({ model: scripted([call("wait"), "done"]), tools: [testTool("wait", () => gate.promise)] });
    const run = agent.prompt("Go");
    const reader = run.toResponse({ abortOnLeave }).body?.getReader();
    await reader?.read();
    await reader?.cancel();
    gate.resolve("ok");
    assert.equal((await run).stopReason, abortOnLeave ? "aborted" : "completed");
  }
});

test("a reader that is stopped before it has read anything has left, too", async () => {
  for (const stop of ["signal", "abort"]) {
    const gate = deferred();
    const agent = new Agent({ model: scripted([call("wait"), "done"]), tools: [testTool("wait", () => gate.promise)] });
    const run = agent.prompt("Go");
    const reader = fromResponse(run.toResponse({ abortOnLeave: true }), stop === "signal" ? { signal: AbortSignal.abort("enough") } : {});
    if (stop === "abort") reader.abort("enough");
    assert.equal((await reader).stopReason, "aborted");
    await settle();
    gate.resolve("ok");
    assert.equal((await run).stopReason, "aborted", stop);
  }
});

test("silence is broken by life signs, by the host's clock", async () => {
  const gate = deferred();
  const clock = deferred();
  /** @type {number[]} */
  const slept = [];
  const sleep = (/** @type {number} */ ms) => (slept.push(ms), slept.length === 1 ? clock.promise : new Promise(() => {}));
  const agent = new Agent({ model: scripted([call("wait"), "done"]), tools: [testTool("wait", () => gate.promise)], host: { sleep } });
  const run = agent.prompt("Go");
  const reader = /** @type {any} */ (run.toResponse({ keepAliveMs: 7 }).body).getReader();
  const read = async () => new TextDecoder().decode((await reader.read()).value);
  while (!(await read()).includes("tool_execution_start"));
  const next = read();
  assert.ok(await isOpen(next));
  // 0 means never.
  for (const keepAliveMs of [0, Infinity]) void (async () => { for await (const _ of /** @type {any} */ (run.toResponse({ keepAliveMs }).body)); })();
  await settle();
  clock.resolve();
  assert.equal(await next, ": \n\n");
  gate.resolve("ok");
  assert.match(await read(), /^id: /);
  assert.deepEqual(new Set(slept), new Set([7]));
});

test("a time that no timer can wait for is a long one", async () => {
  const agent = new Agent({ model: scripted([call("wait"), "done"]), tools: [testTool("wait", () => new Promise((resolve) => setTimeout(resolve, 50, "ok")))] });
  const run = fromResponse(agent.prompt("Go").toResponse({ keepAliveMs: 2 ** 32 }), { stallMs: 2 ** 32 });
  assert.equal((await run).text, "done");
  const received = await new Agent({ model: scripted([call("wait"), "done"]), tools: agent.tools }).prompt("Go").toResponse({ keepAliveMs: 2 ** 32 }).text();
  assert.doesNotMatch(received, /^: $/m);
});

test("the run that is made of a response is as the run itself", async () => {
  const agent = busy();
  const run = agent.prompt("Go");
  const remote = fromResponse(run.toResponse(), { host });
  assert.equal(remote.runId, run.runId);
  /** @type {any[]} */
  const mine = [];
  /** @type {any[]} */
  const theirs = [];
  const both = (/** @type {any} */ of, /** @type {any[]} */ list) => async () => {
    for await (const event of of) list.push(json({ event, a: of.partialArguments("a") ?? null }));
  };
  await Promise.all([both(run, mine)(), both(remote, theirs)()]);
  assert.deepEqual(theirs.map(({ event }) => event), mine.map(({ event }) => event));
  assert.ok(theirs.some(({ a }) => a?.at === "nö"), "arguments grow there too");
  assert.deepEqual(json(await remote), json(await run));
  assert.deepEqual(json(remote.messages), json((await run).messages));
  assert.equal(await Promise.resolve(fromResponse(busy().prompt("Go").toResponse(), { host })).then((result) => result.text), "all done");
  let text = "";
  for await (const piece of fromResponse(busy().prompt("Go").toResponse(), { host }).textStream) text += piece;
  assert.equal(text, "one two\n\nthreeall done");
  assert.deepEqual(parsed(await fromResponse(run.toResponse(), { host }).toResponse().text()).map(({ event }) => event), mine.map(({ event }) => event), "it can be handed on");
});

test("a structured answer arrives", async () => {
  const output = { type: "object", properties: { n: { type: "number" } }, required: ["n"] };
  const run = new Agent({ model: scripted(['{"n":4}']), output }).prompt("Go");
  const remote = await fromResponse(run.toResponse(), { host });
  assert.deepEqual(remote.output, { n: 4 });
  assert.deepEqual(json(remote), json(await run));
});

/**
 * A response whose body breaks after this many bytes, which arrive in steps.
 * @param {Uint8Array} bytes @param {number} end @param {number} step @param {"error" | "close"} how
 */
function broken(bytes, end, step, how) {
  let at = 0;
  const body = new ReadableStream({
    pull(controller) {
      if (at < Math.min(end, bytes.length)) return controller.enqueue(bytes.subarray(at, (at = Math.min(end, at + step, bytes.length))));
      if (how === "error" && at < bytes.length) controller.error(new Error("the cable was cut"));
      else controller.close();
    },
  });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}

test("whatever breaks wherever, every event comes once", async () => {
  const run = busy().prompt("Go");
  const bytes = new Uint8Array(await run.toResponse().arrayBuffer());
  const whole = parsed(new TextDecoder().decode(bytes)).map(({ event }) => event);
  const roll = dice(7);
  let breaks = 0;
  for (let seed = 0; seed < 300; seed++) {
    const cut = async (/** @type {string} */ lastEventId) => {
      breaks += 1;
      if (roll(8) === 0) throw new Error("no route");
      if (roll(8) === 0) return new Response("busy", { status: 503, headers: { "retry-after": "1" } });
      const rest = new Uint8Array(await run.toResponse({ lastEventId }).arrayBuffer());
      return broken(rest, roll(3) === 0 ? rest.length : roll(rest.length + 1), 1 + roll(seed % 2 ? 50 : 2000), roll(2) ? "error" : "close");
    };
    const remote = fromResponse(broken(bytes, roll(bytes.length), 1 + roll(700), "error"), { reconnect: cut, reconnects: { maxAttempts: 50 }, host });
    const received = [];
    for await (const event of remote) received.push(event);
    assert.deepEqual(received, whole, `seed ${seed}`);
  }
  assert.ok(breaks > 500, `${breaks} breaks`);
});

test("without a way back, a run that breaks anywhere ends with an error and an end for every start", async () => {
  const run = busy().prompt("Go");
  const bytes = new Uint8Array(await run.toResponse().arrayBuffer());
  for (let end = 0; end < bytes.length; end += 37) {
    const remote = fromResponse(broken(bytes, end, 500, "error"), { host });
    const received = [];
    for await (const event of remote) received.push(event.runId ? event : { ...event, runId: "x" });
    checkTrace(received);
    const { stopReason, error } = await remote;
    assert.deepEqual([stopReason, error?.code], ["error", "network"], `cut at ${end}`);
  }
});

test("what was told before it broke is in the result: text, messages, usage, turns", async () => {
  const run = busy().prompt("Go");
  const text = await run.toResponse().text();
  const before = (/** @type {string} */ what) => new Response(text.slice(0, text.indexOf("\n\n", text.indexOf(what)) + 2), { headers: { "content-type": "text/event-stream" } });
  const first = await fromResponse(before('"delta":"two'), { host });
  assert.deepEqual([first.text, first.turns, first.stopReason], ["one two\n\n", 1, "error"]);
  assert.deepEqual(first.messages[0]?.role === "assistant" && first.messages[0].content, [{ type: "thinking", thinking: "hm, 😀" }, { type: "text", text: "one two\n\n" }]);
  const second = await fromResponse(before('"delta":"all'), { host });
  const whole = await run;
  assert.deepEqual([second.text, second.turns, second.usage.total], ["all ", 2, /** @type {any} */ (whole.messages.find(({ role }) => role === "assistant")).usage.total]);
  assert.deepEqual(second.messages.map(({ role }) => role), ["assistant", "tool_result", "tool_result", "assistant"]);
  // Pieces that were taken back are not part of it.
  const taken = text.slice(0, text.indexOf("\n\n", text.indexOf('"delta":"two')) + 2) + `id: 999\ndata: ${JSON.stringify({ type: "message_reset", runId: run.runId })}\n\n`;
  const third = await fromResponse(new Response(taken, { headers: { "content-type": "text/event-stream" } }), { host });
  assert.deepEqual([third.text, third.messages[0]?.content], ["", []]);
});

test("who has tried often enough gives up, with the reason", async () => {
  let tries = 0;
  const remote = fromResponse(Promise.reject(new Error("nobody home")), { reconnects: { maxAttempts: 3 }, host, reconnect: () => (tries++, Promise.reject(new Error("nobody home"))) });
  const { error } = await remote;
  assert.equal(tries, 3);
  assert.equal(error?.message, "the connection to the run broke: nobody home");
});

test("a server that says no is heard", async () => {
  const refusals = /** @type {[Response, string, RegExp][]} */ ([
    [Response.json({ error: { code: "throttled", message: "too many" } }, { status: 429 }), "throttled", /^too many$/],
    [new Response("<h1>Nope</h1>", { status: 403 }), "auth", /the server answered 403: <h1>Nope/],
    [new Response("", { status: 500 }), "server", /the server answered 500$/],
    [new Response("hello"), "invalid_request", /no stream of events: its content-type is text\/plain/],
  ]);
  for (const [response, code, text] of refusals) {
    const { error } = await fromResponse(response, { host });
    assert.equal(error?.code, code);
    assert.match(error?.message ?? "", text);
  }
});

test("the type of a response is known in any letters", async () => {
  const text = await busy().prompt("Go").toResponse().text();
  assert.equal((await fromResponse(new Response(text, { headers: { "content-type": "Text/Event-Stream; charset=UTF-8" } }), { host })).text, "all done");
});

test("abort there: by the way that was given, or by leaving", async () => {
  for (const mode of ["call", "signal", "leave"]) {
    const gate = deferred();
    const agent = new Agent({ model: scripted([call("wait"), "done"]), tools: [testTool("wait", () => gate.promise)] });
    const run = agent.prompt("Go");
    const stop = new AbortController();
    const remote = fromResponse(run.toResponse(), { host, signal: stop.signal, abort: (reason) => run.abort(reason) });
    for await (const event of remote) {
      if (event.type !== "tool_execution_start") continue;
      if (mode === "leave") break;
      if (mode === "call") remote.abort("enough");
      else stop.abort("enough");
    }
    assert.equal((await run).stopReason, "aborted", mode);
    assert.equal((await remote).stopReason, "aborted", mode);
    gate.resolve();
  }
  const run = new Agent({ model: scripted([call("wait"), "done"]), tools: [testTool("wait", () => new Promise(() => {}))] }).prompt("Go");
  const left = fromResponse(run.toResponse(), { host });
  await settle();
  left.abort("enough");
  const { error, stopReason } = await left;
  assert.deepEqual([stopReason, error?.code, error?.message], ["aborted", "aborted", "enough"]);
  assert.ok(await isOpen(run.result), "the run itself goes on");
});

test("a connection that says nothing for too long is broken", async () => {
  const silent = deferred();
  const sleep = (/** @type {number} */ ms) => (ms === 9 ? silent.promise : Promise.resolve());
  const body = new ReadableStream({ start: (controller) => controller.enqueue(new TextEncoder().encode(": \n\n")) });
  const remote = fromResponse(new Response(body, { headers: { "content-type": "text/event-stream" } }), { host: { sleep }, stallMs: 9 });
  assert.ok(await isOpen(remote.result));
  silent.resolve();
  assert.match((await remote).error?.message ?? "", /nothing came for 9 ms/);
});

test("a slow iterator of a remote run costs bounded memory", async () => {
  const pieces = Array.from({ length: 3000 }, () => "x");
  const remote = fromResponse(new Agent({ model: scripted([{ text: pieces }]) }).prompt("Go").toResponse(), { host });
  const iterator = remote[Symbol.asyncIterator]();
  await remote.result;
  let events = 0;
  let text = "";
  for (let step = await iterator.next(); !step.done; step = await iterator.next(), events++) {
    if (step.value.type === "message_update") text += step.value.delta.delta;
  }
  assert.equal(text.length, 3000);
  assert.ok(events < 1100, `${events} events`);
});

test("who iterates a remote run late hears its beginning, or is told that pieces are lost", async () => {
  const broken = fromResponse(new Agent({ model: custom("m", () => { throw new Error("no model"); }) }).prompt("Go").toResponse(), { host });
  await broken.result;
  assert.equal((await readRun(broken)).end.stopReason, "error");
  const over = fromResponse(new Agent({ model: scripted(["x"]) }).prompt("Go").toResponse(), { host });
  await over.result;
  misused(() => over[Symbol.asyncIterator](), /has begun to answer, and nobody kept the pieces/);
});

test("misuse is told at the call", () => {
  const run = busy().prompt("Go");
  for (const lastEventId of ["x", -1, 1.5, NaN]) misused(() => run.toResponse({ lastEventId }), /`lastEventId` must be the number of an event/);
  misused(() => run.toResponse(/** @type {any} */ ("x")), /options of a response must be an object, got a string/);
  misused(() => run.toResponse(/** @type {any} */ ({ keepAlive: 5 })), /unknown option `keepAlive`; did you mean `keepAliveMs`\?/);
  misused(() => run.toResponse(/** @type {any} */ ({ onError: () => "" })), /unknown option `onError`/);
  misused(() => run.toUIMessageStreamResponse(/** @type {any} */ ({ messageID: "a" })), /unknown option `messageID`; did you mean `messageId`\?/);
  misused(() => fromResponse(/** @type {any} */ ("x")), /fromResponse takes a Response, got a string/);
  misused(() => fromResponse(run.toResponse(), { reconnect: /** @type {any} */ ("/again") }), /`reconnect` must be a function/);
  misused(() => fromResponse(run.toResponse(), /** @type {any} */ ({ reconect() {} })), /unknown option `reconect`; did you mean `reconnect`\?/);
  misused(() => fromResponse(run.toResponse(), { signal: /** @type {any} */ (new AbortController()) }), /`signal` must be an AbortSignal, got an object \(AbortController\)/);
  const remote = fromResponse(run.toResponse(), { host });
  remote[Symbol.asyncIterator]();
  misused(() => remote[Symbol.asyncIterator](), /iterated once/);
});

test("a run that fails before it begins is told as well", async () => {
  const agent = new Agent({ model: custom("m", () => { throw new Error("no model"); }) });
  const run = agent.prompt("Go");
  const remote = fromResponse(run.toResponse(), { host });
  const outcome = await readRun(remote);
  assert.equal(outcome.end.stopReason, "error");
  assert.equal(outcome.result.error?.message, (await run).error?.message);
});

test("of a long event, a whole conversation, nothing is looked at twice for its lines", async (t) => {
  const answer = { role: "user", content: [{ type: "image", mimeType: "image/png", data: "A".repeat(2 ** 20) }], timestamp: 0 };
  const bytes = new TextEncoder().encode(`id: 1\ndata: ${JSON.stringify({ type: "agent_end", runId: "r", messages: [answer], stopReason: "completed", usage: {}, turns: 0 })}\n\n`);
  let at = 0;
  const body = new ReadableStream({ pull: (controller) => (at < bytes.length ? controller.enqueue(bytes.subarray(at, (at += 2 ** 14))) : controller.close()) });
  const split = t.mock.method(String.prototype, "split");
  assert.deepEqual((await fromResponse(new Response(body, { headers: { "content-type": "text/event-stream" } }), { host })).messages, [answer]);
  const looked = split.mock.calls.reduce((sum, call) => sum + String(call.this).length, 0);
  split.mock.restore();
  // If it looked at each piece again, it would be thirty times as much.
  assert.ok(looked >= bytes.length && looked < 1.5 * bytes.length, `${looked} characters of ${bytes.length}`);
});

test("server-sent events are read as a browser reads them, whoever wrote them", async () => {
  const event = (/** @type {any} */ more) => JSON.stringify({ runId: "r", ...more });
  const start = event({ type: "agent_start" });
  const end = event({ type: "agent_end", messages: [], stopReason: "completed", usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 }, turns: 0 });
  const init = { headers: { "content-type": "text/event-stream" } };
  /** @type {string[]} */
  const lastEventIds = [];
  const reconnect = async (/** @type {string} */ after) => {
    lastEventIds.push(after);
    return new Response(`id: 2\ndata: ${end}\n\n`, init);
  };
  for (const [written, after] of [
    [`id: 1\revent:\rdata: ${start}\r\r`, "1"], [`id: 1\r\nid: x\0y\r\ndata: ${start}\r\n\r\n`, "1"], [`event:\nid: 1\ndata: ${start}\n\r`, "1"],
  ]) {
    for (const size of [1, 2, 3, written.length]) {
      const bytes = new TextEncoder().encode(written);
      const body = new ReadableStream({
        start(controller) {
          for (let at = 0; at < bytes.length; at += size) controller.enqueue(bytes.slice(at, at + size));
          controller.close();
        },
      });
      const types = [];
      for await (const { type } of fromResponse(new Response(body, init), { reconnect, host })) types.push(type);
      assert.deepEqual([types, lastEventIds.pop()], [["agent_start", "agent_end"], after], JSON.stringify([written, size]));
    }
  }
});
