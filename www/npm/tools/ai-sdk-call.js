// @ts-check
// Executes tools of the AI SDK.

import { isBase64, MIME_TYPE } from "../core.js";

/**
 * Executes a call as the SDK does.
 * @param {any} tool @param {any} input @param {any} context
 */
export async function executeForeign(tool, input, context) {
  const messages = toModelMessages(context.messages);
  const output = await awaitOutput(tool.execute(input, { ...context, messages }), context);
  return tool.toModelOutput ? toToolResult(await tool.toModelOutput({ toolCallId: context.callId, input, output })) : output;
}

/**
 * Awaits an output. A generator's yields are progress updates, and its last yield is the result.
 * @param {any} output @param {any} context
 */
async function awaitOutput(output, context) {
  const value = await output;
  if (!value?.[Symbol.asyncIterator]) return value;
  let last;
  for await (last of value) context.update(last);
  return last;
}

/** Converts what `toModelOutput` made for the model. @param {any} output */
function toToolResult({ type, value, reason }) {
  const content = type === "content" ? value.map(blockOf) : [textBlock(reason ?? value ?? "The call was denied.")];
  return { content, isError: /^error|denied$/.test(type) };
}

/** @param {any} part */
function blockOf(part) {
  const data = part.data?.data ?? part.data;
  if (part.mediaType?.startsWith("image/") && MIME_TYPE.test(part.mediaType) && isBase64(data)) return { type: "image", mimeType: part.mediaType, data };
  return textBlock(part.text ?? part);
}

/** @param {unknown} value */
function textBlock(value) {
  return { type: "text", text: typeof value === "string" ? value : JSON.stringify(value) };
}

/**
 * The history in the form that AI SDK tools expect, up to the answer that contains the call.
 * @param {any[]} messages
 */
function toModelMessages(messages) {
  const before = messages.slice(0, messages.findLastIndex(({ role }) => role === "assistant"));
  return before.flatMap((message) => {
    const { role, content, callId: toolCallId, toolName, isError } = message;
    if (role === "custom") return [];
    if (role !== "tool_result") return [{ role, content: content.flatMap(partOf) }];
    const value = content.map((/** @type {any} */ block) => block.text ?? "").join("");
    return [{ role: "tool", content: [{ type: "tool-result", toolCallId, toolName, output: { type: isError ? "error-text" : "text", value } }] }];
  });
}

/** @param {any} block */
function partOf({ type, text, thinking, mimeType: mediaType, data, name: filename, callId: toolCallId, toolName, arguments: input }) {
  if (type === "text") return { type, text };
  if (type === "thinking") return { type: "reasoning", text: thinking };
  if (type === "image") return { type, image: data, mediaType };
  if (type === "file") return { type, data, mediaType, filename };
  return type === "tool_call" ? { type: "tool-call", toolCallId, toolName, input } : [];
}
