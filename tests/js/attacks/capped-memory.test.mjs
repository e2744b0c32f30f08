// @ts-check
// The module with a memory of 16 MB at most: who needs more gets an error, and the other runs of the instance go on.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Agent, anthropic, call, custom, deferred, gemini, openai, openaiResponses, testTool } from "../kit.mjs";
import { getEngine } from "../../../pkg/core.js";
import { use } from "../../../pkg/slim.js";

const PAGES = 256;
use(() => capped(readFileSync(new URL("../../../pkg/turnwheel.wasm", import.meta.url)), PAGES));

/** The module, its memory limited to this many pages. @param {Uint8Array} module @param {number} pages @returns {Uint8Array<ArrayBuffer>} */
function capped(module, pages) {
  let at = 8;
  const number = () => {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = module[at++];
      value |= (byte & 127) << shift;
      if (byte < 128) return value;
    }
  };
  const written = (/** @type {number} */ value) => {
    const bytes = [];
    for (; value > 127; value >>>= 7) bytes.push((value & 127) | 128);
    return [...bytes, value];
  };
  for (;;) {
    const start = at;
    const id = module[at++];
    const end = number() + at;
    if (id === 5) {
      assert.equal(number(), 1, "one memory");
      number();
      const limits = [1, 1, ...written(number()), ...written(pages)];
      return new Uint8Array([...module.subarray(0, start), 5, ...written(limits.length), ...limits, ...module.subarray(end)]);
    }
    at = end;
  }
}

const LONG = "a".repeat(60_000);
const sse = (/** @type {any} */ data) => `data: ${JSON.stringify(data)}\n\n`;
/** @param {string} head @param {(n: number) => string} more @param {number} [pieces] */
const body = (head, more, pieces = Infinity) => {
  let count = 0;
  return new Response(new ReadableStream({
    pull(controller) {
      if (count++ >= pieces) return controller.close();
      controller.enqueue(new TextEncoder().encode(count === 1 ? head : more(count)));
    },
  }, { highWaterMark: 0 }));
};
const chat = (/** @type {any} */ delta) => sse({ choices: [{ delta }] });

/** @type {[string, () => any][]} */
const ATTACKS = [
  ["text", () => openai("m", { apiKey: "k", fetch: async () => body("", () => chat({ content: LONG })) })],
  ["text that ends", () => openai("m", { apiKey: "k", fetch: async () => body("", () => chat({ content: LONG }), 130) })],
  ["control characters that end", () => openai("m", { apiKey: "k", fetch: async () => body("", () => chat({ content: "\u0001".repeat(20_000) }), 120) })],
  ["arguments", () => openai("m", { apiKey: "k", fetch: async () => body(chat({ tool_calls: [{ index: 0, id: "a", function: { name: "f" } }] }), () => chat({ tool_calls: [{ index: 0, function: { arguments: LONG } }] })) })],
  ["arguments that end", () => openai("m", { apiKey: "k", fetch: async () => body(chat({ tool_calls: [{ index: 0, id: "a", function: { name: "f", arguments: '{"a":"' } }] }), (n) => chat({ tool_calls: [{ index: 0, function: { arguments: n === 60 ? '"}' : LONG } }] }), 60) })],
  ["a line", () => gemini("m", { apiKey: "k", fetch: async () => body("data: ", () => LONG) })],
  ["an event", () => gemini("m", { apiKey: "k", fetch: async () => body("", () => `data: ${LONG}\n`) })],
  ["a frame of 6 MB", () => gemini("m", { apiKey: "k", fetch: async () => new Response(sse({ candidates: [{ content: { parts: [{ text: LONG.repeat(100) }] } }] })) })],
  ["a frame of many values", () => gemini("m", { apiKey: "k", fetch: async () => new Response(`data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"a":[${new Array(1_000_000).fill("[]").join(",")}]}}}]}}]}\n\n`) })],
  ["a signature", () => anthropic("m", { apiKey: "k", fetch: async () => body(sse({ type: "message_start", message: { id: "m" } }) + sse({ type: "content_block_start", index: 0, content_block: { type: "thinking", thinking: "" } }), () => sse({ type: "content_block_delta", index: 0, delta: { type: "signature_delta", signature: LONG } })) })],
  ["thinking", () => openaiResponses("m", { apiKey: "k", fetch: async () => body("", () => sse({ type: "response.reasoning_text.delta", output_index: 0, delta: LONG })) })],
  ["a refusal", () => openai("m", { apiKey: "k", fetch: async () => new Response(`[${new Array(120_000).fill("[]").join(",")}]`, { status: 400 }) })],
  ["a model of the host", () => custom("m", async function* () { yield { type: "text_start", contentIndex: 0 }; for (;;) yield { type: "text_delta", contentIndex: 0, delta: LONG }; })],
  ["one event of a model of the host", () => custom("m", async function* () { yield { type: "text_start", contentIndex: 0 }; yield { type: "text_delta", contentIndex: 0, delta: LONG.repeat(300) }; })],
  ["one signature of a model of the host", () => custom("m", async function* () { yield { type: "thinking_start", contentIndex: 0 }; yield { type: "thinking_end", contentIndex: 0, signature: LONG.repeat(100) }; })],
  ["many blocks of a model of the host", () => custom("m", async function* () { for (let i = 0; ; i++) yield { type: "text_start", contentIndex: i }; })],
];

/** A run that waits for its tool while the attack goes on. */
function neighbour() {
  const gate = deferred();
  let calls = 0;
  const model = openai("m", { apiKey: "k", fetch: async () => new Response((++calls === 1 ? chat({ tool_calls: [{ index: 0, id: "a", function: { name: "wait", arguments: "{}" } }] }) : chat({ content: "well" })) + "data: [DONE]\n\n") });
  const agent = new Agent({ model, tools: [testTool("wait", () => gate.promise)] });
  return { agent, gate, run: agent.prompt("Go") };
}

for (const [name, attack] of ATTACKS) {
  test(`too little memory for ${name}: that run ends, the other goes on`, async () => {
    const other = neighbour();
    await new Promise((resolve) => setImmediate(resolve));
    const engine = getEngine();
    const agent = new Agent({ model: attack(), retry: { maxAttempts: 1 }, tools: [testTool("f", () => "ok")], maxTurns: 3 });
    const { stopReason } = await agent.prompt("Go");
    assert.equal(stopReason, "error");
    agent[Symbol.dispose]();
    other.gate.resolve("ok");
    assert.equal((await other.run).text, "well");
    assert.equal(getEngine(), engine, "the instance died");
    other.agent[Symbol.dispose]();
  });
}

test("too little memory for what a tool returns: an error of that call, and the others go on", async () => {
  const other = neighbour();
  await new Promise((resolve) => setImmediate(resolve));
  const engine = getEngine();
  for (const output of [LONG.repeat(200), { content: [{ type: "text", text: LONG.repeat(200) }] }, { content: [{ type: "image", mimeType: "image/png", data: LONG.repeat(200) }] }, { content: [], details: new Array(1_000_000).fill([]) }]) {
    const answers = [chat({ tool_calls: [{ index: 0, id: "a", function: { name: "f", arguments: "{}" } }] }), chat({ content: "on" })];
    const agent = new Agent({ model: openai("m", { apiKey: "k", fetch: async () => new Response(`${answers.shift()}data: [DONE]\n\n`) }), tools: [testTool("f", () => output)] });
    const { messages } = await agent.prompt("Go");
    assert.equal(/** @type {any} */ (messages.find(({ role }) => role === "tool_result")).isError, true, JSON.stringify(messages.slice(1)).slice(0, 300));
    agent[Symbol.dispose]();
  }
  other.gate.resolve("ok");
  assert.equal((await other.run).text, "well");
  assert.equal(getEngine(), engine, "the instance died");
});

test("a conversation that outgrows the memory ends with an error, and the next agent has all of it", async () => {
  const engine = getEngine();
  const agent = new Agent({ model: openai("m", { apiKey: "k", fetch: async () => body("", () => chat({ content: LONG }), 12) }) });
  let stopReason = "completed";
  for (let i = 0; i < 40 && stopReason === "completed"; i++) ({ stopReason } = await agent.prompt("Go"));
  assert.equal(stopReason, "error");
  assert.equal(getEngine(), engine, "the instance died");
  agent[Symbol.dispose]();
  const { agent: next, gate, run } = neighbour();
  gate.resolve("ok");
  assert.equal((await run).text, "well");
  next[Symbol.dispose]();
});

test("a call of a model in this memory is an answer like any other", async () => {
  const agent = new Agent({ model: openai("m", { apiKey: "k", fetch: async () => new Response(`${chat({ content: LONG })}data: [DONE]\n\n`) }), tools: [testTool("f", () => call("f"))] });
  assert.equal((await agent.prompt("Go")).text, LONG);
});
