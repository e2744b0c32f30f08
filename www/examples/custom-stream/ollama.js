// A custom model: an async generator that receives a request and yields events. This one uses Ollama's own API, which is
// not one of the wire formats of the package: one JSON object per line.

import { custom } from "turnwheel";

/** @param {string} id @param {{ url?: string }} [options] */
export function ollama(id, { url = "http://localhost:11434" } = {}) {
  return custom(id, async function* (request, { signal }) {
    const { systemPrompt, messages, tools, options } = request;
    const response = await fetch(`${url}/api/chat`, {
      method: "POST",
      signal, // aborting the run closes the connection
      body: JSON.stringify({
        model: id,
        messages: [...(systemPrompt ? [{ role: "system", content: systemPrompt }] : []), ...messages.map(toOllama)],
        tools: tools.map(({ name, description, parameters }) => ({ type: "function", function: { name, description, parameters } })),
        options: { temperature: options.temperature, num_predict: options.maxTokens },
      }),
    });
    if (!response.ok) {
      // The `code` tells the loop whether to retry. Without one it is `unknown`, which is not retried.
      const code = response.status === 429 ? "throttled" : response.status >= 500 ? "server" : "invalid_request";
      throw Object.assign(new Error(await response.text()), { code });
    }

    let contentIndex = -1; // the index of the block in the message
    let openBlock; // the kind of the open block
    for await (const { message, done, done_reason, prompt_eval_count: input = 0, eval_count: output = 0, error } of lines(response.body)) {
      if (error) throw new Error(error);
      for (const [kind, delta] of [["thinking", message?.thinking], ["text", message?.content]]) {
        if (!delta) continue;
        if (openBlock !== kind) {
          if (openBlock) yield { type: `${openBlock}_end`, contentIndex };
          openBlock = kind;
          yield { type: `${kind}_start`, contentIndex: ++contentIndex };
        }
        yield { type: `${kind}_delta`, contentIndex, delta };
      }
      for (const { function: call } of message?.tool_calls ?? []) {
        if (openBlock) yield { type: `${openBlock}_end`, contentIndex };
        openBlock = undefined;
        // Ollama has no call ids; the engine makes repeated ids unique.
        yield { type: "tool_call_start", contentIndex: ++contentIndex, callId: "call", toolName: call.name };
        yield { type: "tool_call_delta", contentIndex, delta: JSON.stringify(call.arguments) };
        yield { type: "tool_call_end", contentIndex };
      }
      if (!done) continue;
      if (openBlock) yield { type: `${openBlock}_end`, contentIndex };
      yield { type: "done", stopReason: done_reason === "length" ? "length" : "stop", usage: { input, output, total: input + output } };
      return;
    }
    // A stream that ends without `done` was cut off: the loop treats it as a network error and retries.
  });
}

/** Converts a message of the history to Ollama's format. */
function toOllama({ role, content, toolName }) {
  const text = content.map((block) => (block.type === "text" ? block.text : "")).join("");
  if (role === "tool_result") return { role: "tool", tool_name: toolName, content: text };
  const calls = content.filter((block) => block.type === "tool_call").map((call) => ({ function: { name: call.toolName, arguments: call.arguments } }));
  const images = content.filter((block) => block.type === "image").map((block) => block.data);
  return { role, content: text, ...(calls.length > 0 && { tool_calls: calls }), ...(images.length > 0 && { images }) };
}

/** Yields the objects of a body that has one per line. A read may end anywhere, even inside a character. */
async function* lines(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value = "" } = await reader.read();
    const parts = (rest + value).split("\n");
    rest = done ? "" : parts.pop();
    for (const part of parts) if (part.trim()) yield JSON.parse(part);
    if (done) return;
  }
}
