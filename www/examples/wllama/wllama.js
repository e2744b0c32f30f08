// A model that runs in the page itself: llama.cpp as WebAssembly, by @wllama/wllama. No server, no key, no network.

import { custom } from "turnwheel";

/** @param {any} wllama a Wllama that has loaded a model, version 3 or newer @param {string} [id] */
export function wllamaModel(wllama, id = "wllama") {
  return custom(id, async function* ({ systemPrompt, messages, tools, options }, { signal }) {
    const chunks = await wllama.createChatCompletion({
      stream: true,
      stream_options: { include_usage: true },
      abortSignal: signal,
      messages: [...(systemPrompt ? [{ role: "system", content: systemPrompt }] : []), ...messages.map(toChat)],
      ...(tools.length > 0 && { tools: tools.map(({ name, description, parameters }) => ({ type: "function", function: { name, description, parameters } })) }),
      ...(options.maxTokens && { max_tokens: options.maxTokens }),
      ...(options.temperature !== undefined && { temperature: options.temperature }),
    });

    let contentIndex = -1; // the index of the block in the message
    let openBlock; // the open block: "text", "thinking", or the index of a call
    const endEvent = () => ({ type: typeof openBlock === "number" ? "tool_call_end" : `${openBlock}_end`, contentIndex });
    let usage;
    let reason = "stop";
    for await (const { choices: [choice] = [], usage: tokens } of chunks) {
      if (tokens) {
        const cacheRead = tokens.prompt_tokens_details?.cached_tokens ?? 0;
        usage = { input: tokens.prompt_tokens - cacheRead, cacheRead, output: tokens.completion_tokens, total: tokens.total_tokens };
      }
      reason = choice?.finish_reason ?? reason;
      const { content, reasoning_content: thinking, tool_calls: calls = [] } = choice?.delta ?? {};
      for (const [kind, delta] of [["thinking", thinking], ["text", content]]) {
        if (!delta) continue;
        if (openBlock !== kind) {
          if (openBlock !== undefined) yield endEvent();
          openBlock = kind;
          yield { type: `${kind}_start`, contentIndex: ++contentIndex };
        }
        yield { type: `${kind}_delta`, contentIndex, delta };
      }
      for (const { index, id: callId, function: call } of calls) {
        if (openBlock !== index) {
          if (openBlock !== undefined) yield endEvent();
          openBlock = index;
          yield { type: "tool_call_start", contentIndex: ++contentIndex, callId: callId ?? "", toolName: call.name };
        }
        if (call?.arguments) yield { type: "tool_call_delta", contentIndex, delta: call.arguments };
      }
    }
    if (openBlock !== undefined) yield endEvent();
    yield { type: "done", stopReason: reason === "length" ? "length" : "stop", usage };
  });
}

/** Converts a message of the history to the format of Chat Completions. */
function toChat({ role, content, callId }) {
  const text = content.map((block) => (block.type === "text" ? block.text : "")).join("");
  if (role === "tool_result") return { role: "tool", tool_call_id: callId, content: text };
  const calls = content.filter((block) => block.type === "tool_call");
  if (calls.length === 0) return { role, content: text };
  return { role, content: text, tool_calls: calls.map((call) => ({ id: call.callId, type: "function", function: { name: call.toolName, arguments: JSON.stringify(call.arguments) } })) };
}
