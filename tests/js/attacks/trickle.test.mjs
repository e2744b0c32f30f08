// @ts-check
// A server that always sends a little more: signs of life do not put off the end of an answer for ever.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, anthropic, custom, gemini, openai, openaiResponses, scripted } from "../kit.mjs";

const HOUR = 3_600_000;
/** A clock that the attacker's pieces move on; the host's sleeps wait for it. */
function slowClock() {
  let now = 1_700_000_000_000;
  /** @type {{ at: number, wake(): void }[]} */
  let sleepers = [];
  return {
    passed: () => now - 1_700_000_000_000,
    /** @param {number} ms */
    pass(ms) {
      now += ms;
      const due = sleepers.filter(({ at }) => at <= now);
      sleepers = sleepers.filter(({ at }) => at > now);
      for (const { wake } of due) wake();
    },
    host: {
      now: () => now,
      random: () => 0.5,
      /** @param {number} ms @param {AbortSignal} signal */
      sleep: (ms, signal) => new Promise((/** @type {(value?: any) => void} */ wake) => {
        sleepers.push({ at: now + ms, wake });
        signal.addEventListener("abort", wake);
      }),
    },
  };
}

/** A body that gives a piece every minute, for ever. @param {any} time @param {string} head @param {string} piece */
function dripping(time, head, piece) {
  let first = true;
  return new ReadableStream({
    async pull(controller) {
      await new Promise((resolve) => setImmediate(resolve));
      if (!first) time.pass(60_000);
      if (time.passed() > 48 * HOUR) throw new Error("it was read for two days");
      controller.enqueue(new TextEncoder().encode(first ? head + piece : piece));
      first = false;
    },
  }, { highWaterMark: 0 });
}

/** @type {[string, any, string][]} */
const DRIPS = [
  ["a byte of a comment", openai, ":"],
  ["a read without bytes", anthropic, ""],
  ["a comment", openai, ": wait\n\n"],
  ["a line break", openaiResponses, "\n"],
  ["a ping", anthropic, 'event: ping\ndata: {"type":"ping"}\n\n'],
  ["a letter", gemini, 'data: {"candidates":[{"content":{"parts":[{"text":"a"}]}}]}\n\n'],
  ["a word", openai, 'data: {"choices":[{"delta":{"content":"a "}}]}\n\n'],
  ["a part of an argument", openaiResponses, 'data: {"type":"response.function_call_arguments.delta","output_index":0,"delta":"a"}\n\n'],
];

for (const [name, wire, piece] of DRIPS) {
  test(`a server that sends ${name} a minute is given up, once`, async () => {
    const time = slowClock();
    let calls = 0;
    const model = wire("m", { apiKey: "k", fetch: async () => (calls++, new Response(dripping(time, "", piece))) });
    const { stopReason, error } = await new Agent({ model, host: time.host }).prompt("Go");
    assert.equal(stopReason, "error");
    assert.equal(error?.code, "timeout");
    assert.match(error?.message ?? "", /timeouts\.modelMs/);
    assert.equal(calls, 1);
    assert.ok(time.passed() <= HOUR, `after ${time.passed()} ms`);
  });
}

test("a model of the host that only ever pings is given up too", async () => {
  const time = slowClock();
  const model = custom("m", async function* () {
    for (;;) {
      time.pass(60_000);
      if (time.passed() > 48 * HOUR) throw new Error("it was read for two days");
      yield { type: "ping" };
    }
  });
  const { error } = await new Agent({ model, host: time.host }).prompt("Go");
  assert.equal(error?.code, "timeout");
});

test("the limit is an option: it also ends silence, signs of life do not extend it, and Infinity takes it away", async () => {
  const time = slowClock();
  const silent = custom("m", () => ({ [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => {}) }) }));
  const run = new Agent({ model: silent, host: time.host, timeouts: { modelMs: 5_000 } }).prompt("Go");
  await new Promise((resolve) => setImmediate(resolve));
  time.pass(5_000);
  assert.equal((await run).error?.code, "timeout");

  const piece = 'data: {"choices":[{"delta":{"content":"a"}}]}\n\n';
  const dripped = (/** @type {number} */ modelMs) => {
    const slow = slowClock();
    return new Agent({ model: openai("m", { apiKey: "k", fetch: async () => new Response(dripping(slow, "", piece)) }), host: slow.host, timeouts: { modelMs, chunkMs: 90_000 }, retry: { maxAttempts: 1 } }).prompt("Go");
  };
  assert.equal((await dripped(600_000)).error?.code, "timeout");
  assert.match((await dripped(Infinity)).error?.message ?? "", /two days/);
});

test("an answer that is slow and comes to an end in time is an answer", async () => {
  const time = slowClock();
  let left = 20;
  const model = custom("m", async function* () {
    yield { type: "text_start", contentIndex: 0 };
    for (; left > 0; left--) {
      time.pass(60_000);
      yield { type: "text_delta", contentIndex: 0, delta: "a" };
    }
    yield { type: "done", stopReason: "stop" };
  });
  assert.equal((await new Agent({ model, host: time.host }).prompt("Go")).text.length, 20);
});

test("notes for a compaction that trickle in are given up", async () => {
  const time = slowClock();
  let calls = 0;
  const model = custom("m", async function* () {
    calls++;
    if (calls === 1) {
      yield { type: "error", error: { code: "context_overflow", message: "too long", retryable: false } };
      return;
    }
    for (;;) {
      time.pass(60_000);
      if (time.passed() > 48 * HOUR) throw new Error("it was read for two days");
      yield { type: "ping" };
    }
  });
  const agent = new Agent({ model, host: time.host, compaction: "summarize", messages: Array.from({ length: 60 }, (_, i) => ({ role: /** @type {const} */ ("user"), content: `${i} ${"word ".repeat(400)}`, timestamp: 1 })) });
  const { stopReason } = await agent.prompt("Go");
  assert.equal(stopReason, "error");
  assert.ok(time.passed() <= HOUR, `after ${time.passed()} ms`);
  agent.model = scripted(["on"]);
  assert.equal((await agent.prompt("On")).text, "on");
});
