// @ts-check
// A server of an agent that lies: endless lines and events, JSON that harms, events of foreign shapes and in a wrong order.
// Each ends in an error of the run, with bounded memory, without a rejection that nobody handles.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fromResponse, RemoteAgent } from "../../../pkg/remote.js";
import { dice } from "../dice.mjs";
import { checkTrace } from "../grammar.mjs";
import { settle } from "../kit.mjs";

/** @type {any[]} */
const unhandled = [];
process.on("unhandledRejection", (error) => unhandled.push(error));

const encoder = new TextEncoder();
const fast = { sleep: (/** @type {number} */ ms, /** @type {AbortSignal} */ signal) => (ms === 7000 || ms >= 15_000 ? new Promise((/** @type {any} */ resolve) => signal.addEventListener("abort", resolve)) : settle()) };
const USAGE = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
const STATE = { messages: [], pendingApprovals: [], usage: USAGE, openLetters: [] };
const limits = { eventBytes: 200_000, runBytes: 500_000, historyBytes: 500_000 };
const sse = (/** @type {any} */ data, /** @type {any} */ id = "", /** @type {string} */ event = "") => `${id === "" ? "" : `id: ${id}\n`}${event && `event: ${event}\n`}data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`;

/** A stream of what a generator gives; it counts how much was taken. @param {() => Iterator<string>} make */
function stream(make) {
  const pieces = make();
  const body = new ReadableStream({ pull(controller) {
    const { done, value } = pieces.next();
    if (done) controller.close();
    else controller.enqueue(encoder.encode(value));
  } }, { highWaterMark: 0 });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}

/**
 * Prompts an agent at a server that says `begin`, and what `lie` says once the prompt has come.
 * @param {(runId: string) => Iterator<string>} lie @param {any} [more] @returns {Promise<any>}
 */
async function attack(lie, more = {}) {
  let requests = 0;
  const errors = /** @type {any[]} */ ([]);
  const prompted = /** @type {any} */ ({});
  prompted.runId = new Promise((resolve) => (prompted.resolve = resolve));
  const remote = new RemoteAgent({ url: "http://agents.example/7", limits, host: fast, reconnects: { maxAttempts: 3 }, onError: (error) => errors.push(error), ...more, fetch: async (_, init) => {
    requests += 1;
    if (init?.method === "POST") return prompted.resolve(JSON.parse(String(init.body)).runId), new Response("{}", { status: 202 });
    const body = new ReadableStream({ async start(controller) {
      controller.enqueue(encoder.encode(sse(STATE, 1, "state") + sse({}, "", "ready")));
      const pieces = lie(await prompted.runId);
      for (let i = 0; i < 100_000; i++) {
        const { done, value } = pieces.next();
        try {
          if (done) return controller.close();
          controller.enqueue(encoder.encode(value));
        } catch {
          return;
        }
        await undefined;
        if (i % 20 === 0) await settle();
      }
      throw new Error("it takes everything");
    } });
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  } });
  const events = /** @type {any[]} */ ([]);
  remote.subscribe((event) => void events.push(event));
  const result = await remote.prompt("Go");
  remote[Symbol.dispose]();
  return { result, events, requests, errors };
}

/** @param {(i: number) => string} piece */
const endless = (piece) => (/** @type {string} */ _runId) => (function* () { for (let i = 0; ; i++) yield piece(i); })();
const X = "x".repeat(10_000);

/** @type {Record<string, (runId: string) => Iterator<string>>} */
const FLOODS = {
  "a line without end": endless(() => X),
  "data without end": endless(() => `data: ${X}\n`),
  "empty data without end": endless(() => "data:\n".repeat(5000)),
  "an id without end": endless((i) => (i === 0 ? "id: " : X)),
  "pieces of an answer without end": (runId) => endless((i) => (i === 0 ? sse({ type: "agent_start", runId }, 2) + sse({ type: "turn_start", runId, turnIndex: 0 }, 3) + sse({ type: "message_start", runId }, 4) : sse({ type: "message_update", runId, delta: { type: "text", contentIndex: i, delta: X } }, i + 4)))(runId),
  "events of another name without end": (runId) => endless((i) => sse({ type: "weather", runId, text: X }, i + 2))(runId),
  "progress of a tool without end": (runId) => endless((i) => sse({ type: "tool_execution_update", runId, callId: "c", toolName: "t", update: { content: [{ type: "text", text: X }] } }, i + 2))(runId),
  "questions without end": (runId) => endless((i) => sse({ type: "tool_approval_requested", runId: i % 2 ? runId : `r${i}`, callId: `c${i}`, toolName: "t", arguments: { X } }, i + 2))(runId),
  "history without end": (runId) => endless((i) => sse({ at: i, add: [{ role: "custom", kind: "x", data: X, timestamp: 0 }] }, "", "history") + sse({ type: "state_changed", runId: `r${i}`, changes: {} }, i + 2))(runId),
  "a state that is too long": endless(() => sse({ ...STATE, messages: [{ role: "user", content: [{ type: "text", text: "x".repeat(300_000) }], timestamp: 0 }] }, 5, "state")),
};
for (const [what, lie] of Object.entries(FLOODS)) {
  test(`${what} ends the run`, { timeout: 60_000 }, async () => {
    const { result, events, requests } = await attack(lie);
    assert.deepEqual([result.stopReason, result.error.info.retryable], ["error", false]);
    assert.match(result.error.message, /limits\.(event|run|history)Bytes/);
    assert.ok(requests < 5, `${requests} requests`);
    assert.equal(events.at(-1).type, "agent_end");
    assert.deepEqual(unhandled, []);
  });
}

const deep = `${"[".repeat(50_000)}${"]".repeat(50_000)}`;
const wide = `${'{"a":'.repeat(300)}1${"}".repeat(300)}`;
/** What stands in one event after the beginning of a run. @type {Record<string, string | ((runId: string) => string)>} */
const LIES = {
  "no JSON": sse("nul", 2), "nothing": sse("", 2), "null": sse("null", 2), "a number": sse("5", 2), "a list": sse("[]", 2), "half of it": sse('{"type":"agent', 2),
  "nested too deep": (runId) => sse(`{"type":"custom","runId":"${runId}","name":"x","payload":${deep}}`, 2), "nested": (runId) => sse(`{"type":"custom","runId":"${runId}","name":"x","payload":${wide}}`, 2),
  "no run": sse({ type: "agent_start" }, 2), "a run that is none": sse({ type: "agent_start", runId: {} }, 2), "a type that is none": sse({ type: 5, runId: "x" }, 2),
  "an id that is none": sse({ type: "agent_start", runId: "x" }, "NaN"), "an id that is an address": sse({ type: "agent_start", runId: "x" }, "1&admin=1"), "a negative id": sse({ type: "agent_start", runId: "x" }, "-5"), "an endless id": sse({ type: "agent_start", runId: "x" }, "9".repeat(400)),
  "a state without messages": sse({ ...STATE, messages: undefined }, 2, "state"), "a state of strangers": sse({ ...STATE, messages: [{ role: "system", content: [] }] }, 2, "state"), "a state with half a message": sse({ ...STATE, messages: [null] }, 2, "state"),
  "calls that are none": sse({ ...STATE, pendingApprovals: [5] }, 2, "state"), "a usage that is none": sse({ ...STATE, usage: "much" }, 2, "state"), "an end that is none": sse({ ...STATE, ended: { runId: 5 } }, 2, "state"), "letters that are none": sse({ ...STATE, openLetters: null }, 2, "state"), "a state that is null": sse("null", 2, "state"),
  "a history from nowhere": sse({ at: -1, add: [] }, "", "history"), "a history of nothing": sse("null", "", "history"), "a history of holes": (runId) => sse({ at: 1e9, add: [] }, "", "history") + sse({ type: "agent_start", runId }, 2),
  "a reference to nothing": (runId) => sse({ at: 0, add: ["=nobody"] }, "", "history") + sse({ type: "agent_start", runId }, 2), "a receipt that is none": sse({ id: "x" }, 2, "receipt"), "a receipt of nothing": sse("null", 2, "receipt"),
};
const NAMES = ["run_resumed", "agent_end", "turn_start", "turn_end", "message_update", "message_end", "tool_execution_end", "tool_approval_requested", "tool_approval_resolved"];
for (const name of NAMES) LIES[`an empty ${name}`] = (runId) => sse({ type: name, runId }, 2);
/** @type {Record<string, any>} */
const HALVES = {
  message_update: [{ delta: null }, { delta: {} }, { delta: { type: "text", contentIndex: -1, delta: "x" } }, { delta: { type: "text", contentIndex: 0, delta: {} } }, { delta: { type: "tool_call", contentIndex: 0, delta: "{" } }],
  message_end: [{ message: null }, { message: { role: "assistant" } }, { message: { role: "user", content: [] } }, { message: { role: "assistant", content: [null] } }, { message: { role: "assistant", content: [{ type: "tool_call" }] } }, { message: { role: "assistant", content: {} } }],
  turn_end: [{ turnIndex: 0, toolResults: {} }, { turnIndex: 0, toolResults: [null] }, { turnIndex: "0", toolResults: [] }, { turnIndex: 0, message: 5, toolResults: [] }],
  agent_end: [{ messages: {}, stopReason: "completed", usage: USAGE, turns: 0 }, { messages: [], stopReason: {}, usage: USAGE, turns: 0 }, { messages: [], stopReason: "error", usage: USAGE, turns: 0, error: "x" }, { messages: [], stopReason: "completed", usage: { input: "x" }, turns: 0 }],
  run_resumed: [{ turnIndex: 0, pendingApprovals: {}, runningTools: [] }, { turnIndex: 0, pendingApprovals: [{}], runningTools: [] }, { turnIndex: 0, pendingApprovals: [], runningTools: [], partialMessage: { content: 5 } }],
};
for (const [name, all] of Object.entries(HALVES)) all.forEach((/** @type {any} */ half, /** @type {number} */ i) => (LIES[`half a ${name} (${i})`] = (runId) => sse({ type: name, runId, ...half }, 2)));

for (const [what, lie] of Object.entries(LIES)) {
  test(`${what}: an error that says so`, { timeout: 20_000 }, async () => {
    const { result, requests } = await attack((runId) => [typeof lie === "string" ? lie : lie(runId), ...Array(50).fill(": \n\n")][Symbol.iterator]());
    assert.deepEqual([result.stopReason, result.error?.code, result.error?.info.retryable], ["error", "invalid_request", false], result.error?.message);
    assert.match(result.error.message, /^the server /);
    assert.ok(requests < 5, `${requests} requests`);
    assert.deepEqual(unhandled, []);
  });
  const told = typeof lie === "string" ? lie : lie("r");
  // What such a response has no use for is not looked at.
  if (/event: /.test(told)) continue;
  test(`${what}, in one response: an error that says so`, { timeout: 20_000 }, async () => {
    const run = fromResponse(stream(() => [told, ": \n\n"][Symbol.iterator]()), { limits, host: fast });
    const { stopReason, error } = await run;
    assert.deepEqual([stopReason, error?.code], ["error", "invalid_request"], error?.message);
  });
}

test("in one response too, nothing is without end", { timeout: 60_000 }, async () => {
  for (const [what, lie] of Object.entries(FLOODS)) {
    if (/history|state|questions/.test(what)) continue;
    let reconnects = 0;
    const { stopReason, error } = await fromResponse(stream(() => lie("r")), { limits, host: fast, reconnect: () => (reconnects++, stream(() => lie("r"))) });
    assert.equal(stopReason, "error", what);
    assert.match(error?.message ?? "", /limits\.(event|run)Bytes/, what);
    assert.equal(reconnects, 0);
  }
});

test("events in any order, cut anywhere: a run ends, and its trace is one", { timeout: 60_000 }, async () => {
  const call = { type: "tool_call", callId: "c", toolName: "t", arguments: {} };
  const answer = { role: "assistant", content: [call], provider: "", model: "", usage: USAGE, stopReason: "tool_use", timestamp: 0 };
  const result = { role: "tool_result", callId: "c", toolName: "t", content: [], isError: false, timestamp: 0 };
  const all = [{ type: "agent_start" }, { type: "turn_start", turnIndex: 0 }, { type: "message_start" }, { type: "message_update", delta: { type: "text", contentIndex: 0, delta: "x" } }, { type: "message_reset", reason: "" }, { type: "message_end", message: answer }, { type: "tool_execution_start", callId: "c", toolName: "t", arguments: {} }, { type: "tool_execution_end", callId: "c", toolName: "t", result, isError: false }, { type: "turn_end", turnIndex: 0, message: answer, toolResults: [result], reason: "continue" }, { type: "run_resumed", turnIndex: 0, pendingApprovals: [call], runningTools: [] }, { type: "tool_approval_requested", callId: "c", toolName: "t", arguments: {} }, { type: "agent_end", messages: [answer], stopReason: "completed", usage: USAGE, turns: 1 }];
  for (let seed = 1; seed <= 150; seed++) {
    const roll = dice(seed);
    const { result: outcome } = await attack((runId) => Array.from({ length: 1 + roll(15) }, (_, i) => sse({ ...all[roll(all.length)], runId: roll(8) ? runId : "other" }, roll(10) ? i + 2 : roll(5)))[Symbol.iterator]());
    assert.ok(["error", "completed"].includes(outcome.stopReason), `seed ${seed}`);
  }
  assert.deepEqual(unhandled, []);
});

test("a member named __proto__ changes nothing, and does not end what it stands in", async () => {
  const { result, events } = await attack((runId) => [
    sse(`{"type":"agent_start","runId":"${runId}","__proto__":{"polluted":1}}`, 2),
    sse(`{"type":"custom","runId":"${runId}","name":"x","payload":{"a":{"\\u005f_proto__":{"polluted":1},"b":[{"__proto__":{"polluted":1}}]}}}`, 3),
    sse(`{"type":"agent_end","runId":"${runId}","messages":[],"stopReason":"completed","turns":0,"usage":{"input":1,"output":0,"cacheRead":0,"cacheWrite":0,"total":1,"__proto__":{"polluted":1}}}`, 4),
  ][Symbol.iterator]());
  assert.equal(result.stopReason, "completed");
  const custom = events.find(({ type }) => type === "custom");
  assert.deepEqual(custom.payload, { a: { b: [{}] } });
  assert.equal(/** @type {any} */ ({}).polluted ?? Object.assign({}, custom.payload.a).polluted ?? result.usage.polluted, undefined);
  checkTrace(events);
});

test("a server that ends every connection is asked less and less often, whatever it says", async () => {
  /** @type {number[]} */
  const slept = [];
  let asked = 0;
  let id = 1;
  const remote = new RemoteAgent({ url: "http://agents.example/7", onError() {}, host: { random: () => 0.5, sleep: async (ms, signal) => {
    if (ms === 45_000) return new Promise((resolve) => signal.addEventListener("abort", () => resolve()));
    slept.push(ms);
    if (slept.length > 30) remote[Symbol.dispose]();
  } }, fetch: async () => (asked++, stream(() => [`retry: 0\n`, sse(STATE, id++, "state"), sse({}, "", "ready")][Symbol.iterator]())) });
  remote.subscribe(() => {});
  while (slept.length <= 30) await settle();
  assert.deepEqual(slept.slice(0, 8), [250, 500, 1000, 2000, 4000, 8000, 15000, 15000]);
  assert.ok(slept.slice(8).every((ms) => ms === 15_000));
});

test("a server neither delays for ever nor makes a client hurry", async () => {
  for (const [after, wanted] of /** @type {[string, number][]} */ ([["999999999999", 120_000], ["1e300", 120_000], ["0.000001", 125], ["-5", 250], ["never", 250], ["7", 7000]])) {
    /** @type {number[]} */
    const slept = [];
    const remote = new RemoteAgent({ url: "http://agents.example/7", onError() {}, reconnects: { maxAttempts: 1 }, host: { random: () => 0.5, sleep: async (ms, signal) => (ms === 45_000 ? new Promise((resolve) => signal.addEventListener("abort", () => resolve())) : void slept.push(ms)) }, fetch: async () => new Response("busy", { status: 503, headers: { "retry-after": after } }) });
    await remote.abort().catch(() => {});
    assert.equal(slept[0], wanted, after);
  }
});

test("an error without end is read only as far as it is shown", async () => {
  let pieces = 0;
  const body = () => new ReadableStream({ pull: (controller) => (++pieces > 10_000 ? controller.close() : controller.enqueue(encoder.encode(X))) });
  for (const status of [400, 202]) {
    pieces = 0;
    const remote = new RemoteAgent({ url: "http://agents.example/7", onError() {}, host: fast, fetch: async () => new Response(body(), { status }) });
    const outcome = await remote.abort().catch((error) => error);
    assert.ok(pieces < 20, `${pieces} pieces`);
    if (status === 400) assert.ok(outcome.message.length < 300);
  }
  const long = new RemoteAgent({ url: "http://agents.example/7", onError() {}, host: fast, fetch: async () => new Response(JSON.stringify({ error: { code: "made up", message: "y".repeat(50_000) } }), { status: 400 }) });
  const error = await long.abort().catch((thrown) => thrown);
  assert.deepEqual([error.code, error.message.length], ["invalid_request", 2000]);
});
