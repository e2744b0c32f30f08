// @ts-check
// wllama with its own calls, against chunks that wllama 3.8.1 produced (recorded in Chromium with SmolLM2-135M), and calls
// and thinking as llama.cpp sends them. e2e/wllama.mjs runs the page with the real one.

import assert from "node:assert/strict";
import { test } from "node:test";
import { wllama as modelOf } from "../../../pkg/local.js";
import { Agent, readRun, testTool } from "../kit.mjs";

const wllamaModel = (/** @type {any} */ engine) => modelOf(engine, { tools: "native" });

/** @param {any} delta @param {string | null} [reason] */
const chunk = (delta, reason = null) => ({ choices: [{ finish_reason: reason, index: 0, delta }], created: 1795280369, id: "", model: "", system_fingerprint: "wllama", object: "chat.completion.chunk" });
const begin = chunk({ role: "assistant", content: null });
const usage = { choices: [], object: "chat.completion.chunk", usage: { completion_tokens: 5, prompt_tokens: 33, total_tokens: 38, prompt_tokens_details: { cached_tokens: 32 } } };

/** A wllama that gives these answers and notes what it was asked. @param {...any[]} answers */
function fake(...answers) {
  /** @type {any[]} */
  const asked = [];
  return {
    asked,
    async createChatCompletion(/** @type {any} */ params) {
      asked.push(params);
      return (async function* () {
        for (const piece of answers.shift() ?? []) {
          if (params.abortSignal.aborted) throw Object.assign(new Error("Operation aborted"), { name: "AbortError" });
          if (piece instanceof Error) throw piece;
          yield piece;
        }
      })();
    },
  };
}

test("text, its usage and its end", async () => {
  const wllama = fake([begin, chunk({ content: "Hel" }), chunk({ content: "lo" }), chunk({}, "length"), usage]);
  const { result, text, all } = await readRun(new Agent({ model: wllamaModel(wllama), systemPrompt: "S", streamOptions: { maxTokens: 5 } }).prompt("Hi"));
  assert.deepEqual([text, all("message_end")[0].message.stopReason], ["Hello", "length"]);
  assert.deepEqual([result.usage.input, result.usage.cacheRead, result.usage.output, result.usage.total], [1, 32, 5, 38]);
  const { messages, max_tokens, stream_options } = wllama.asked[0];
  assert.deepEqual([messages, max_tokens, stream_options], [[{ role: "system", content: "S" }, { role: "user", content: "Hi" }], 5, { include_usage: true }]);
});

test("thinking, two calls in pieces, and their results in the next request", async () => {
  const call = (/** @type {number} */ index, /** @type {any} */ called, /** @type {string} */ id = "") => chunk({ tool_calls: [{ index, ...(id && { id }), type: "function", function: called }] });
  const wllama = fake(
    [begin, chunk({ reasoning_content: "hm" }), chunk({ content: "Both." }), call(0, { name: "add", arguments: "" }, "a"), call(0, { arguments: '{"n":' }), call(0, { arguments: "1}" }), call(1, { name: "add", arguments: '{"n":2}' }, "b"), chunk({}, "tool_calls"), usage],
    [begin, chunk({ content: "Done." }), chunk({}, "stop"), usage],
  );
  const { result, all } = await readRun(new Agent({ model: wllamaModel(wllama), tools: [testTool("add", (/** @type {any} */ { n }) => `${n} added`)] }).prompt("Go"));
  assert.equal(result.text, "Done.");
  assert.deepEqual(all("message_end")[0].message.content.map((/** @type {any} */ block) => block.thinking ?? block.text ?? block.arguments), ["hm", "Both.", { n: 1 }, { n: 2 }]);
  assert.deepEqual(wllama.asked[1].messages.slice(1), [
    { role: "assistant", content: "Both.", tool_calls: [["a", 1], ["b", 2]].map(([id, n]) => ({ id, type: "function", function: { name: "add", arguments: `{"n":${n}}` } })) },
    { role: "tool", tool_call_id: "a", content: "1 added" }, { role: "tool", tool_call_id: "b", content: "2 added" },
  ]);
});

test("an abort reaches it; what does not fit is known as that", async () => {
  const wllama = fake([begin, chunk({ content: "On " }), chunk({ content: "and on" })], [Object.assign(new Error("request (5031 tokens) exceeds the available context size (2048 tokens), try increasing it"), { type: "inference_error" })]);
  const agent = new Agent({ model: wllamaModel(wllama) });
  const run = agent.prompt("Go");
  for await (const piece of run.textStream) if (piece) break;
  assert.deepEqual([(await run).stopReason, wllama.asked[0].abortSignal.aborted], ["aborted", true]);
  assert.equal((await agent.prompt("Go")).error.code, "context_overflow");
});
