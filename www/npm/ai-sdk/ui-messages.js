// @ts-check
// A history as the messages of useChat, with what `fromUIMessages` needs to read them back.

import { valueOf } from "../response/tool-value.js";
import { checkNames, joinTexts, kindOf, misuse } from "../shared.js";

/** @import { AgentMessage, AssistantMessage, ToolResultMessage, UserMessage } from "../index.js" */
/** @import { UIMessageLike } from "../ai-sdk.js" */
/** @typedef {(result: ToolResultMessage) => unknown} ToolOutput */

/** @param {readonly AgentMessage[]} messages @param {{ toolOutput?: ToolOutput }} [options] @returns {UIMessageLike[]} */
export function toUIMessages(messages, options = {}) {
  if (!Array.isArray(messages)) throw misuse(`toUIMessages takes a history, such as agent.messages, got ${kindOf(messages)}`);
  checkNames("toUIMessages: unknown option", options, ["toolOutput"]);
  const { toolOutput = valueOf } = options;
  /** @type {UIMessageLike[]} */
  const all = [];
  for (const message of /** @type {readonly AgentMessage[]} */ (messages)) {
    if (message.role === "custom") continue;
    const { id = `message-${all.length + 1}` } = /** @type {{ id?: string }} */ (message);
    if (message.role === "user") all.push({ id, role: "user", parts: message.content.map(userPart) });
    else if (message.role === "assistant") {
      if (all.at(-1)?.role !== "assistant") all.push({ id, role: "assistant", parts: [] });
      all.at(-1)?.parts.push({ type: "step-start" }, ...message.content.map((block) => answerPart(block, message)));
    } else settle(all.at(-1)?.parts ?? [], message, toolOutput);
  }
  return all;
}

/** @param {UserMessage["content"][number]} block */
function userPart(block) {
  if (block.type === "text") return { type: "text", text: block.text };
  // The type of what is at an address may be unknown.
  const { mimeType: mediaType = "image/*", data, url } = block;
  return { type: "file", mediaType, url: data === undefined ? url : `data:${mediaType};base64,${data}`, ...(block.type === "file" && block.name && { filename: block.name }) };
}

/** @param {AssistantMessage["content"][number]} block @param {AssistantMessage} message */
function answerPart(block, { provider, model }) {
  if (block.type === "raw") return { type: "data-turnwheel", data: { raw: block.data, provider, model } };
  if (block.type === "tool_call") {
    const { callId: toolCallId, toolName, arguments: input, metadata } = block;
    return { type: `tool-${toolName}`, toolCallId, state: "input-available", input, ...(metadata !== undefined && { callProviderMetadata: { turnwheel: { metadata, provider, model } } }) };
  }
  const { signature } = block;
  const redacted = block.type === "thinking" && block.redacted;
  const kept = signature !== undefined && { providerMetadata: { turnwheel: { signature, ...(redacted && { redacted }), provider, model } } };
  return block.type === "text" ? { type: "text", text: block.text, state: "done", ...kept } : { type: "reasoning", text: block.thinking, state: "done", ...kept };
}

/**
 * The chunks of a UI message stream that show parts of an answer again.
 * @param {readonly any[]} parts @returns {import("../response/uimessages.js").Chunk[]}
 */
export function chunksOf(parts) {
  return parts.flatMap((part, i) => {
    const { type, text, toolCallId, input, state, output, errorText, providerMetadata } = part;
    if (type === "step-start") return i === 0 ? [{ type: "start-step" }] : [{ type: "finish-step" }, { type: "start-step" }];
    const id = `earlier-${i}`;
    const kept = providerMetadata && { providerMetadata };
    if (type === "text" || type === "reasoning") return [{ type: `${type}-start`, id, ...kept }, { type: `${type}-delta`, id, delta: text }, { type: `${type}-end`, id, ...kept }];
    if (toolCallId === undefined) return [part];
    const call = { type: "tool-input-available", toolCallId, toolName: type.slice("tool-".length), input };
    if (state === "output-available") return [call, { type: "tool-output-available", toolCallId, output }];
    if (state === "output-error" || state === "output-denied") return [call, { type: "tool-output-error", toolCallId, errorText: errorText ?? part.approval?.reason ?? "" }];
    return [call];
  });
}

/** Writes a result into the part of its call. @param {any[]} parts @param {ToolResultMessage} result @param {ToolOutput} toolOutput */
function settle(parts, result, toolOutput) {
  const part = parts.findLast(({ toolCallId, state }) => toolCallId === result.callId && state === "input-available");
  if (!part) return;
  const text = joinTexts(result.content);
  if (result.cause === "rejected") Object.assign(part, { state: "output-denied", approval: { id: result.callId, approved: false, reason: text } });
  else if (result.isError) Object.assign(part, { state: "output-error", errorText: text });
  else Object.assign(part, { state: "output-available", output: toolOutput(result) });
}
