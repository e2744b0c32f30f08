// @ts-check
// Calls of a format that the engine itself reads (`tools: "native"`), for models that were trained for them.

import { uuid } from "../shared.js";
import { wordsOf } from "./model.js";

/** @import { AssistantMessageEvent, ModelRequest, Usage } from "../index.js" */
/** @import { Asking } from "./model.js" */

/** Calls that the engine itself reads. @param {Asking} asking @param {ModelRequest} request @param {AbortSignal} signal @returns {AsyncGenerator<AssistantMessageEvent>} */
export async function* native({ adapter }, request, signal) {
  const tools = request.options.toolChoice === "none" ? [] : request.tools;
  const asked = { chat: [], messages: nativeChat(request), constraint: undefined, tools, options: request.options, signal };
  let contentIndex = -1;
  /** The open block: a text, a thought, or the index of a call. @type {"text" | "thinking" | number | undefined} */
  let open;
  let hasCalls = false;
  let reason = "stop";
  /** @type {Partial<Usage> | undefined} */
  let usage;
  const end = () => (open === undefined ? [] : [/** @type {AssistantMessageEvent} */ ({ type: typeof open === "number" ? "tool_call_end" : `${open}_end`, contentIndex })]);
  for await (const { text, thinking, call, usage: used, reason: said } of adapter.answer(asked)) {
    usage = used ?? usage;
    reason = said ?? reason;
    for (const [kind, delta] of /** @type {["thinking" | "text", string | undefined][]} */ ([["thinking", thinking], ["text", text]])) {
      if (!delta) continue;
      if (open !== kind) yield* [...end(), /** @type {AssistantMessageEvent} */ ({ type: `${kind}_start`, contentIndex: ++contentIndex })];
      open = kind;
      yield { type: `${kind}_delta`, contentIndex, delta };
    }
    if (!call) continue;
    if (open !== call.index) yield* [...end(), /** @type {AssistantMessageEvent} */ ({ type: "tool_call_start", contentIndex: ++contentIndex, callId: call.id || `call_${uuid()}`, toolName: call.name ?? "" })];
    open = call.index;
    hasCalls = true;
    if (call.json) yield { type: "tool_call_delta", contentIndex, delta: call.json };
  }
  yield* end();
  yield { type: "done", stopReason: reason === "length" ? "length" : hasCalls ? "tool_use" : "stop", ...(usage && { usage }) };
}

/** A conversation with calls as models that were trained for them know it. @param {ModelRequest} request */
function nativeChat({ systemPrompt, messages }) {
  const chat = messages.map((message) => {
    const content = wordsOf(message);
    if (message.role === "tool_result") return { role: "tool", tool_call_id: message.callId, content };
    const calls = message.content.flatMap((block) => (block.type === "tool_call" ? [{ id: block.callId, type: "function", function: { name: block.toolName, arguments: JSON.stringify(block.arguments) } }] : []));
    return { role: message.role, content, ...(calls.length > 0 && { tool_calls: calls }) };
  });
  return systemPrompt === "" ? chat : [{ role: "system", content: systemPrompt }, ...chat];
}
