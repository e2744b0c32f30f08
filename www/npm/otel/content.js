// @ts-check
// What was said, as the JSON of the conventions. It is recorded only if the host asks for it.

import { finishReason } from "./names.js";

/** @import { AgentMessage, JsonValue, LlmMessage } from "../index.js" */

/** @param {readonly (AgentMessage | LlmMessage)[]} messages @returns {JsonValue[]} */
export function messagesOf(messages) {
  return messages.flatMap((message) => shown(message));
}

/** @param {AgentMessage | LlmMessage} message @returns {JsonValue[]} */
function shown(message) {
  if (message.role === "custom") return [];
  if (message.role === "tool_result") return [{ role: "tool", parts: [{ type: "tool_call_response", id: message.callId, response: message.content.map(partOf) }] }];
  const parts = message.content.map(partOf);
  if (message.role === "user") return [{ role: "user", parts }];
  return [{ role: "assistant", parts, finish_reason: finishReason(message.stopReason) }];
}

/** @param {any} block @returns {JsonValue} */
function partOf(block) {
  switch (block.type) {
    case "text": return { type: "text", content: block.text };
    case "thinking": return { type: "reasoning", content: block.thinking };
    case "tool_call": return { type: "tool_call", id: block.callId, name: block.toolName, arguments: block.arguments };
    case "image": return { type: "blob", modality: "image", mime_type: block.mimeType, content: block.data };
    case "file": return { type: "blob", modality: "document", mime_type: block.mimeType, content: block.data };
    default: return block;
  }
}
