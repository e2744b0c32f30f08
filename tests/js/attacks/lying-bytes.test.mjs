// @ts-check
// Bytes that lie about their length, or whose memory is handed on before they are read: the engine's memory is neither
// written beyond its room nor read where nothing was written.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, clock, openai } from "../kit.mjs";

const frame = (/** @type {string} */ content) => `data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`;
const END = 'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';
const bytesOf = (/** @type {string} */ text) => new TextEncoder().encode(text);

/** An agent whose model's answer is made of these reads. @param {any[]} reads */
const agentOf = (...reads) => new Agent({ host: clock().host, retry: { maxAttempts: 1 }, model: openai("gpt", { apiKey: "k", fetch: /** @type {any} */ (async () => ({ ok: true, status: 200, headers: new Headers({ "content-type": "text/event-stream" }), body: { getReader: () => ({ read: async () => (reads.length > 0 ? { done: false, value: reads.shift() } : { done: true }), cancel: async () => {} }) } })) }) });

class Liar extends Uint8Array {
  /** @override */
  get length() {
    return 1;
  }

  /** @override */
  get byteLength() {
    return 1;
  }
}

test("a length that is too small, too large or no number changes nothing", async () => {
  const text = "a".repeat(300_000);
  for (const length of [undefined, 0, 1, 3e9, NaN, -1, "7", null]) {
    const bytes = length === undefined ? new Liar(bytesOf(frame(text) + END)) : Object.defineProperty(bytesOf(frame(text) + END), "length", { value: length });
    const result = await agentOf(bytes).prompt("Go.");
    assert.deepEqual([result.stopReason, result.text.length], ["completed", text.length], String(length));
    assert.equal((await agentOf(bytesOf(frame("still here") + END)).prompt("Go.")).text, "still here");
  }
});

test("memory that is handed on before it is read shows nothing of another run's answer", async () => {
  await agentOf(bytesOf(frame("THE SECRET OF ANOTHER TENANT ".repeat(50)) + END)).prompt("Go.");
  const bytes = bytesOf(frame("x".repeat(1_000)) + END);
  const agent = agentOf(bytes);
  const run = agent.prompt("Go.");
  // The reads of one moment are written together, a little later: meanwhile the host gives the memory away.
  for (let i = 0; i < 40; i++) {
    await undefined;
    if (i === 20 && bytes.length > 0) structuredClone(bytes.buffer, { transfer: [bytes.buffer] });
  }
  const result = await run;
  assert.doesNotMatch(JSON.stringify([result, agent.messages]), /SECRET/);
  assert.equal((await agentOf(bytesOf(frame("still here") + END)).prompt("Go.")).text, "still here");
});

test("what is no array of bytes is an error of the call", async () => {
  for (const value of [new Uint16Array(4), new DataView(new ArrayBuffer(4)), new ArrayBuffer(4), "data", [1, 2], { length: 4 }, new Float64Array(1)]) {
    const { error } = await agentOf(value).prompt("Go.");
    assert.match(error?.message ?? "", /must give bytes, as Uint8Array/);
  }
});
