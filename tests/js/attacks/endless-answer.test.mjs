// @ts-check
// A server, or a model of the host, that never stops: whatever it never stops with, the answer ends with an error at a
// default limit, is not asked for again, and the engine's memory stays in proportion.

import assert from "node:assert/strict";
import { test } from "node:test";
import { getEngine } from "../../../pkg/core.js";
import { Agent, anthropic, clock, custom, gemini, openai, openaiResponses, scripted } from "../kit.mjs";

/** The engine's memory, which never shrinks. */
const size = () => /** @type {any} */ (getEngine()).memory.buffer.byteLength;
const LONG = "a".repeat(60_000);
const sse = (/** @type {any} */ data) => `data: ${JSON.stringify(data)}\n\n`;
/** An event of Anthropic. @param {string} type @param {any} rest */
const said = (type, rest) => sse({ type, ...rest });
const delta = (/** @type {any} */ part) => sse({ choices: [{ index: 0, delta: part }] });
const part = (/** @type {any} */ piece) => sse({ candidates: [{ content: { parts: [piece] } }] });
const blockDelta = (/** @type {any} */ piece) => said("content_block_delta", { index: 0, delta: piece });
const block = (/** @type {any} */ start) => said("message_start", { message: { id: "m" } }) + said("content_block_start", { index: 0, content_block: start });

/** By name: the model's constructor, how the answer begins, and what it goes on with for ever. @type {[string, any, string, (n: number) => string][]} */
const SERVERS = [
  ["chat: text", openai, "", () => delta({ content: LONG })],
  ["chat: thinking", openai, "", () => delta({ reasoning_content: LONG })],
  ["chat: arguments", openai, delta({ tool_calls: [{ index: 0, id: "a", function: { name: "f" } }] }), () => delta({ tool_calls: [{ index: 0, function: { arguments: LONG } }] })],
  ["chat: arguments of a call without a name", openai, "", () => delta({ tool_calls: [{ index: 0, id: "a", function: { arguments: LONG } }] })],
  ["chat: a signature", openai, delta({ reasoning_details: [{ type: "reasoning.text", index: 0, text: "t" }] }), () => delta({ reasoning_details: [{ type: "reasoning.text", index: 0, signature: LONG }] })],
  ["chat: entries of reasoning", openai, "", (n) => delta({ reasoning_details: [{ type: "reasoning.encrypted", index: n, data: "d", more: LONG }] })],
  ["chat: ids", openai, "", (n) => delta({ tool_calls: [{ index: n, id: `${n}${LONG}`, function: { name: "f" } }] })],
  ["anthropic: text", anthropic, block({ type: "text", text: "" }), () => blockDelta({ type: "text_delta", text: LONG })],
  ["anthropic: thinking", anthropic, block({ type: "thinking", thinking: "" }), () => blockDelta({ type: "thinking_delta", thinking: LONG })],
  ["anthropic: arguments", anthropic, block({ type: "tool_use", id: "a", name: "f" }), () => blockDelta({ type: "input_json_delta", partial_json: LONG })],
  ["anthropic: a signature", anthropic, block({ type: "thinking", thinking: "" }), () => blockDelta({ type: "signature_delta", signature: LONG })],
  ["anthropic: a block that is kept", anthropic, block({ type: "server_thing", text: "" }), () => blockDelta({ type: "text_delta", text: LONG })],
  ["anthropic: messages that begin anew", anthropic, "", (n) => said("message_start", { message: { id: `m${n}` } }) + said("content_block_start", { index: 0, content_block: { type: "tool_use", id: `${n}${LONG}`, name: "f" } })],
  ["responses: text", openaiResponses, "", () => sse({ type: "response.output_text.delta", output_index: 0, delta: LONG })],
  ["responses: thinking", openaiResponses, "", () => sse({ type: "response.reasoning_text.delta", output_index: 0, delta: LONG })],
  ["responses: arguments", openaiResponses, sse({ type: "response.output_item.added", output_index: 0, item: { type: "function_call", call_id: "a", name: "f" } }), () => sse({ type: "response.function_call_arguments.delta", output_index: 0, delta: LONG })],
  ["responses: signatures", openaiResponses, "", (n) => sse({ type: "response.output_item.done", output_index: n, item: { type: "reasoning", id: `r${n}`, encrypted_content: LONG } })],
  ["responses: items without a text", openaiResponses, "", (n) => Array.from({ length: 300 }, (_, i) => sse({ type: "response.reasoning_text.delta", output_index: n * 300 + i })).join("")],
  ["gemini: text", gemini, "", () => part({ text: LONG })],
  ["gemini: thinking", gemini, "", () => part({ text: LONG, thought: true })],
  ["gemini: arguments", gemini, "", () => part({ functionCall: { id: "a", partialArgs: [{ jsonPath: "$.a", stringValue: LONG, willContinue: true }], name: "f", willContinue: true } })],
  ["gemini: signatures", gemini, "", () => part({ text: "", thoughtSignature: LONG })],
  ["gemini: images", gemini, "", () => part({ inlineData: { mimeType: "image/png", data: LONG } })],
  ["comments", openai, "", () => `: ${LONG}\n`],
  ["pings", anthropic, "", () => said("ping", { padding: LONG })],
  ["fields that nobody reads", gemini, "", () => sse({ more: LONG })],
  ["the data of one event", openai, "", () => `data: ${LONG}\n`],
  ["a line", openai, "data: ", () => LONG],
];

/** A body that begins, and goes on for ever. @param {string} head @param {(n: number) => string} more @param {{ count: number }} sent */
function endless(head, more, sent) {
  const encoder = new TextEncoder();
  return new ReadableStream({
    pull(controller) {
      controller.enqueue(encoder.encode(sent.count === 0 ? head + more(0) : more(sent.count)));
      sent.count++;
    },
  }, { highWaterMark: 0 });
}

/** Runs once against a model; the run must end with an error, of one attempt. @param {any} model */
async function refused(model) {
  const agent = new Agent({ model, host: clock().host, maxTurns: 2 });
  const outcome = await agent.prompt("Go");
  agent[Symbol.dispose]();
  assert.ok(size() < 64_000_000, `the engine has ${size()} bytes`);
  assert.equal(outcome.stopReason, "error");
  assert.match(outcome.error?.message ?? "", /longer than \d+ bytes|more than \d+ tool calls|not enough memory/);
  assert.equal(outcome.error?.info.retryable, false);
  return outcome;
}

for (const [name, wire, head, more] of SERVERS) {
  test(`an answer without end: ${name}`, { timeout: 60_000 }, async () => {
    const sent = { count: 0 };
    let calls = 0;
    const fetch = async () => (calls++, new Response(endless(head, more, sent), { headers: { "content-type": "text/event-stream" } }));
    await refused(wire("m", { apiKey: "k", fetch }));
    assert.equal(calls, 1, "it was asked for again");
    assert.ok(sent.count < 6_000, `${sent.count} pieces were read`);
  });
}

/** What a model of the host may go on with for ever. @type {[string, any[], (n: number) => any][]} */
const STREAMS = [
  ["text", [{ type: "text_start", contentIndex: 0 }], () => ({ type: "text_delta", contentIndex: 0, delta: LONG })],
  ["thinking", [{ type: "thinking_start", contentIndex: 0 }], () => ({ type: "thinking_delta", contentIndex: 0, delta: LONG })],
  ["arguments", [{ type: "tool_call_start", contentIndex: 0, callId: "a", toolName: "f" }], () => ({ type: "tool_call_delta", contentIndex: 0, delta: LONG })],
  ["ids", [], (n) => ({ type: "tool_call_start", contentIndex: n, callId: `${n}${LONG}`, toolName: "f" })],
  ["empty blocks", [], (n) => ({ type: "text_start", contentIndex: n })],
  ["new starts", [], () => ({ type: "start" })],
];

for (const [name, head, more] of STREAMS) {
  test(`a model of the host without end: ${name}`, { timeout: 60_000 }, async () => {
    let count = 0;
    await refused(custom("m", async function* () {
      yield { type: "start" };
      yield* head;
      for (;;) yield more(count++);
    }));
    assert.ok(count < 100_000, `${count} events were read`);
  });
}

test("signatures and metadata of a model of the host count too", async () => {
  const huge = "a".repeat(20_000_000);
  for (const end of [{ type: "text_end", signature: huge }, { type: "raw", data: { huge } }]) {
    await refused(custom("m", async function* () {
      yield { type: "start" };
      if (end.type === "text_end") yield { type: "text_start", contentIndex: 0 };
      yield /** @type {any} */ ({ contentIndex: 0, ...end });
      yield { type: "done", stopReason: "stop" };
    }));
  }
});

test("an answer without end: line breaks", async () => {
  const fetch = async () => new Response(endless("", () => "\n".repeat(60_000), { count: 0 }));
  await refused(openai("m", { apiKey: "k", fetch, limits: { answer: 1_000_000 } }));
});

test("the limit is an option, for every model, and may be taken away", async () => {
  const text = "a".repeat(2_000);
  const answer = () => new Response(delta({ content: text }) + "data: [DONE]\n\n");
  const generator = async function* () {
    yield /** @type {const} */ ({ type: "text_start", contentIndex: 0 });
    yield /** @type {const} */ ({ type: "text_delta", contentIndex: 0, delta: text });
    yield /** @type {const} */ ({ type: "done", stopReason: "stop" });
  };
  for (const [limit, reason] of /** @type {const} */ ([[1_000, "error"], [3_000, "completed"], [Infinity, "completed"]])) {
    for (const model of [openai("m", { apiKey: "k", fetch: async () => answer(), limits: { answer: limit } }), custom("m", generator, { limits: { answer: limit } })]) {
      assert.equal((await new Agent({ model }).prompt("Go")).stopReason, reason, `${limit}`);
    }
  }
});

test("what was shown of the answer is kept, and the agent goes on", async () => {
  const agent = new Agent({ model: openai("m", { apiKey: "k", limits: { answer: 200_000 }, fetch: async () => new Response(endless("", () => delta({ content: LONG }), { count: 0 })) }) });
  const { messages } = await agent.prompt("Go");
  assert.equal(/** @type {any} */ (messages.at(-1)).content[0].text.length, 180_000);
  agent.model = scripted(["well"]);
  assert.equal((await agent.prompt("Again")).text, "well");
});

test("a frame of many small things takes no more memory than a long text", async () => {
  const before = size();
  const many = (/** @type {string} */ one) => new Array(3_000_000).fill(one).join(",");
  /** @type {[any, string][]} */
  const frames = [
    [gemini, `data: {"candidates":[{"content":{"parts":[${many("{}")}]}}]}\n\n`],
    [gemini, `data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"a":[${many("[]")}]}}}]}}]}\n\n`],
    [openai, `data: {"choices":[{"delta":{"tool_calls":[${many("{}")}]}}]}\n\n`],
    [openai, `data: {"error":[${many("[]")}]}\n\n`],
    [openaiResponses, `data: {"type":"response.output_item.done","output_index":0,"item":{"type":"x","a":[${many("[]")}]}}\n\n`],
    [anthropic, `data: {"type":"content_block_start","index":0,"content_block":{"type":"x","a":[${many("[]")}]}}\n\n`],
  ];
  for (const [wire, body] of frames) {
    const { stopReason } = await new Agent({ model: wire("m", { apiKey: "k", fetch: async () => new Response(body) }), retry: { maxAttempts: 1 } }).prompt("Go");
    assert.equal(stopReason, "error");
  }
  const grown = size() - before;
  assert.ok(grown < 120_000_000, `${grown} bytes`);
});
