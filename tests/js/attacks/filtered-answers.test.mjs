// @ts-check
// The calls of an answer that was filtered or refused do not run: on no wire, by no word for it, and not if a later
// word says that all is well.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, anthropic, clock, custom, gemini, openai, openaiResponses, readRun, testTool } from "../kit.mjs";

const sse = (/** @type {any[]} */ ...frames) => frames.map((frame) => (frame.type ? `event: ${frame.type}\n` : "") + `data: ${typeof frame === "string" ? frame : JSON.stringify(frame)}\n\n`).join("");

const chatCall = { choices: [{ index: 0, delta: { tool_calls: [{ index: 0, id: "a", function: { name: "pay", arguments: "{}" } }, { index: 1, id: "b", function: { name: "pay", arguments: "{\"n\":1}" } }] } }] };
const chatEnd = (/** @type {string} */ reason) => ({ choices: [{ index: 0, delta: {}, finish_reason: reason }] });
const claudeStart = { type: "message_start", message: { id: "m", type: "message", role: "assistant", content: [], model: "claude", usage: { input_tokens: 1, output_tokens: 1 } } };
const claudeCall = (/** @type {number} */ index) => [
  { type: "content_block_start", index, content_block: { type: "tool_use", id: `t${index}`, name: "pay", input: {} } },
  { type: "content_block_delta", index, delta: { type: "input_json_delta", partial_json: "{}" } },
  { type: "content_block_stop", index },
];
const claudeEnd = (/** @type {string} */ reason) => [{ type: "message_delta", delta: { stop_reason: reason }, usage: { output_tokens: 3 } }, { type: "message_stop" }];
const geminiCall = (/** @type {any} */ more, /** @type {any} */ outer = {}) => ({ candidates: [{ content: { role: "model", parts: [{ functionCall: { name: "pay", args: {} } }, { functionCall: { name: "pay", args: { n: 1 } } }] }, index: 0, ...more }], ...outer });
const item = (/** @type {number} */ n) => ({ type: "function_call", id: `fc${n}`, call_id: `c${n}`, name: "pay", arguments: "{}", status: "completed" });
const responses = (/** @type {any} */ end, /** @type {any[]} */ extra = []) => [
  { type: "response.created", response: { id: "r", status: "in_progress", output: [] } },
  ...[0, 1].map((n) => ({ type: "response.output_item.added", output_index: n, item: { ...item(n), arguments: "" } })),
  ...[0, 1].map((n) => ({ type: "response.output_item.done", output_index: n, item: item(n) })),
  ...extra,
  { type: end.status === "incomplete" ? "response.incomplete" : "response.completed", response: { id: "r", output: [item(0), item(1)], ...end } },
];
const refusalItem = { type: "message", id: "m", role: "assistant", content: [{ type: "refusal", refusal: "No." }], status: "completed" };

/** @type {Record<string, [any, string][]>} */
const ANSWERS = {
  "chat completions": [
    ...["content_filter", "CONTENT_FILTER", "content_filtered", "sensitive", "refusal", "SAFETY", "guardrail_intervened"].map((word) => /** @type {[any, string]} */ ([sse(chatCall, chatEnd(word), "[DONE]"), word])),
    [sse(chatCall, chatEnd("content_filter"), chatEnd("tool_calls"), "[DONE]"), "content_filter, then tool_calls"],
    [sse(chatCall, chatEnd("content_filter"), chatCall, chatEnd("stop"), "[DONE]"), "content_filter, then more calls"],
    [sse({ choices: [{ index: 0, delta: { refusal: "No." } }] }, chatCall, chatEnd("tool_calls"), "[DONE]"), "a refusal, then calls"],
  ],
  "responses": [
    [sse(...responses({ status: "incomplete", incomplete_details: { reason: "content_filter" } })), "incomplete: content_filter"],
    [sse(...responses({ status: "completed", incomplete_details: { reason: "content_filter" } })), "completed, yet filtered"],
    [sse(...responses({ status: "completed" }, [{ type: "response.refusal.delta", output_index: 2, content_index: 0, delta: "No." }, { type: "response.output_item.done", output_index: 2, item: refusalItem }])), "a refusal beside the calls"],
  ],
  "anthropic": [
    ...["refusal", "content_filter", "sensitive", "safety"].map((word) => /** @type {[any, string]} */ ([sse(claudeStart, ...claudeCall(0), ...claudeCall(1), ...claudeEnd(word)), word])),
    [sse(claudeStart, ...claudeCall(0), ...claudeCall(1), claudeEnd("refusal")[0], ...claudeEnd("tool_use")), "refusal, then tool_use"],
  ],
  "gemini": [
    ...["SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "MODEL_ARMOR"].map((word) => /** @type {[any, string]} */ ([sse(geminiCall({ finishReason: word })), word])),
    [sse(geminiCall({ finishReason: "SAFETY" }), { candidates: [{ content: { parts: [] }, finishReason: "STOP", index: 0 }] }), "SAFETY, then STOP"],
    [sse(geminiCall({ finishReason: "STOP" }, { promptFeedback: { blockReason: "SAFETY" } })), "a blocked prompt"],
    [sse({ promptFeedback: { blockReason: "OTHER" } }, geminiCall({ finishReason: "STOP" })), "a prompt blocked before"],
  ],
};

/** @type {Record<string, (fetch: any) => any>} */
const WIRES = {
  "chat completions": (fetch) => openai("gpt", { apiKey: "k", fetch }),
  "responses": (fetch) => openaiResponses("gpt", { apiKey: "k", fetch }),
  "anthropic": (fetch) => anthropic("claude-sonnet-4-5", { apiKey: "k", fetch }),
  "gemini": (fetch) => gemini("gemini-2.5-pro", { apiKey: "k", fetch }),
};

/** Runs an agent for one answer, and says what became of its calls. @param {any} model @param {any} [more] */
async function outcome(model, more = {}) {
  let ran = 0;
  let asked = 0;
  const agent = new Agent({ model, tools: [testTool("pay", () => (ran++, "paid"), { requiresApproval: true })], approveTool: () => (asked++, "approve"), maxTurns: 1, host: clock().host, ...more });
  const { events, result } = await readRun(agent.prompt("Go."));
  const results = result.messages.filter((/** @type {any} */ { role }) => role === "tool_result");
  const calls = result.messages.flatMap((/** @type {any} */ { role, content }) => (role === "assistant" ? content.filter((/** @type {any} */ { type }) => type === "tool_call") : []));
  return { ran, asked, events, calls: calls.length, causes: results.map((/** @type {any} */ { cause }) => cause), ids: new Set(results.map((/** @type {any} */ { callId }) => callId)).size, agent };
}

for (const [wire, answers] of Object.entries(ANSWERS)) {
  test(`${wire}: no word for a filter or a refusal runs a call`, async () => {
    for (const [body, word] of answers) {
      const fetch = async () => new Response(body, { headers: { "content-type": "text/event-stream" } });
      const { ran, asked, calls, causes, ids } = await outcome(WIRES[wire]?.(fetch));
      assert.deepEqual([ran, asked], [0, 0], word);
      assert.ok(calls >= 2, `${word}: its calls are in the history`);
      assert.deepEqual([causes, ids], [Array.from({ length: calls }, () => "filtered"), calls], word);
    }
  });
}

test("the same answers run their calls where nothing forbids it", async () => {
  const bodies = { "chat completions": sse(chatCall, chatEnd("tool_calls"), "[DONE]"), "responses": sse(...responses({ status: "completed" })), "anthropic": sse(claudeStart, ...claudeCall(0), ...claudeCall(1), ...claudeEnd("tool_use")), "gemini": sse(geminiCall({ finishReason: "STOP" })) };
  for (const [wire, body] of Object.entries(bodies)) {
    const { ran, causes } = await outcome(WIRES[wire]?.(async () => new Response(body, { headers: { "content-type": "text/event-stream" } })));
    assert.deepEqual([ran, causes], [2, [undefined, undefined]], wire);
  }
});

test("a custom model's words count too, with every way to run tools, for an answer as a call as well", async () => {
  const model = (/** @type {string} */ stopReason, toolName = "pay") => custom("m", async function* () {
    yield { type: "start" };
    yield { type: "tool_call_start", contentIndex: 0, callId: "a", toolName };
    yield { type: "tool_call_delta", contentIndex: 0, delta: "{\"n\":1}" };
    yield { type: "tool_call_end", contentIndex: 0 };
    yield /** @type {any} */ ({ type: "done", stopReason });
  });
  for (const stopReason of ["content_filter", "refusal"]) {
    for (const more of [{}, { toolExecution: "sequential" }, { toolExecution: "priority" }, { gate: "prefix" }, { approval: { mode: "bypassed" } }, { approval: { rules: { pay: "approve" } } }, { policies: { preDispatch: [() => undefined] } }]) {
      const { ran, causes, agent } = await outcome(model(stopReason), more);
      assert.deepEqual([ran, causes], [0, ["filtered"]], JSON.stringify(more));
      const restored = await Agent.restore(JSON.stringify(agent.checkpoint()), { model: model(stopReason) });
      assert.equal(/** @type {any} */ (restored.messages.at(-1)).cause, "filtered");
    }
    const agent = new Agent({ model: model(stopReason, "__structured_output"), output: { type: "object", properties: { n: { type: "number" } } }, outputRetries: 0, host: clock().host });
    const { stopReason: end, output } = await agent.prompt("Go.");
    assert.deepEqual([end, output], ["error", undefined]);
  }
});
