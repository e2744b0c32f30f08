// @ts-check
// Reads what the AI SDK's useChat posts back: the new message, the approval decisions,
// the conversation so far.

import { kindOf, misuse, noUsage } from "../shared.js";

/** @import { AgentMessage, AssistantMessage, FileBlock, ImageBlock, ToolDecision, ToolResultMessage, UserMessage } from "../index.js" */
/** @typedef {AssistantMessage["content"][number]} AnswerBlock */

/**
 * Converts the messages of useChat.
 * @param {any[]} messages
 * @returns {{ prompt: UserMessage | undefined, decisions: { [questionId: string]: ToolDecision }, messages: AgentMessage[] }}
 */
export function fromUIMessages(messages) {
  if (!Array.isArray(messages)) throw misuse(`fromUIMessages takes the messages that useChat posts, got ${kindOf(messages)}`);
  messages.forEach((message, i) => {
    if (!Array.isArray(message?.parts)) throw misuse(`messages[${i}] has no parts: it is no message of useChat`);
    if (message.parts.some((/** @type {any} */ part) => typeof part?.type !== "string")) throw misuse(`messages[${i}] has a part without a type: it is no message of useChat`);
  });
  const last = messages.at(-1);
  const isNew = last?.role === "user";
  return {
    prompt: isNew ? userMessage(last) : undefined,
    decisions: isNew ? {} : decisionsOf(last),
    messages: messages.slice(0, isNew ? -1 : undefined).flatMap(historyOf),
  };
}

/** @param {any} part */
const isTool = ({ type }) => type === "dynamic-tool" || type.startsWith("tool-");

/** The user's decisions on the approval requests of the last answer, by the ids of the questions. @param {any} message */
function decisionsOf(message) {
  /** @type {Record<string, ToolDecision>} */
  const decisions = {};
  for (const { state, toolCallId, approval } of message?.parts.filter(isTool) ?? []) {
    if (state !== "approval-responded") continue;
    // Anything but an explicit yes is a no.
    const { id = toolCallId, approved, reason } = approval ?? {};
    decisions[id] = approved === true ? "approve" : { action: "reject", ...(reason && { reason }) };
  }
  return decisions;
}

/** @param {any} message @returns {UserMessage} */
function userMessage({ parts }) {
  return { role: "user", content: parts.flatMap(userBlock), timestamp: 0 };
}

/** @param {any} part @returns {UserMessage["content"]} */
function userBlock({ type, text, url, mediaType, filename }) {
  if (type === "text") return [{ type: "text", text }];
  if (type !== "file") return [];
  const isImage = String(mediaType).startsWith("image/");
  const [, data] = /^data:[^,]*;base64,(.*)$/s.exec(url) ?? [];
  // What a client posts makes this server fetch nothing that is not encrypted, so nothing on its own machine.
  if (data === undefined && !/^https:\/\/[^/]/.test(url)) throw misuse("a file must come as a data: address in base64, or be at an address that begins with https://");
  const content = data === undefined ? { url } : { data };
  if (isImage) return [/** @type {ImageBlock} */ ({ type: "image", mimeType: mediaType, ...content })];
  return [/** @type {FileBlock} */ ({ type: "file", mimeType: mediaType, ...content, ...(filename && { name: filename }) })];
}

/** @param {any} message @returns {AgentMessage[]} */
function historyOf(message) {
  if (message.role === "user") return [userMessage(message)];
  if (message.role !== "assistant") return [];
  /** @type {any[][]} */
  const steps = [[]];
  for (const part of message.parts) {
    if (part.type === "step-start") steps.push([]);
    else steps.at(-1)?.push(part);
  }
  return steps.flatMap(stepOf);
}

/** @param {any} part @returns {AnswerBlock[]} */
function answerBlock(part) {
  if (part.type === "text" && part.text) return [{ type: "text", text: part.text }];
  if (part.type === "reasoning" && part.text) return [{ type: "thinking", thinking: part.text }];
  return isTool(part) ? [{ type: "tool_call", callId: part.toolCallId, toolName: nameOf(part), arguments: argumentsOf(part.input) }] : [];
}

/** Converts one answer and the results of its calls. @param {any[]} parts @returns {AgentMessage[]} */
function stepOf(parts) {
  const content = parts.flatMap(answerBlock);
  if (content.length === 0) return [];
  const results = parts.filter(isTool).flatMap(resultOf);
  const stopReason = content.some(({ type }) => type === "tool_call") ? "tool_use" : "stop";
  return [{ role: "assistant", content, provider: "", model: "", usage: noUsage(), stopReason, timestamp: 0 }, ...results];
}

/**
 * The model may have written something other than an object; useChat keeps it as it was.
 * @param {any} input
 */
const argumentsOf = (input) => (typeof input === "object" && input !== null && !Array.isArray(input) ? input : {});

/** @param {any} part */
const nameOf = ({ type, toolName }) => toolName ?? type.slice("tool-".length);

/**
 * The blocks of a result with images, which are its output for the UI; nothing if the output is something else.
 * @param {any} output @returns {ToolResultMessage["content"] | undefined}
 */
function blocksOf(output) {
  const isBlock = (/** @type {any} */ block) => (block?.type === "text" && typeof block.text === "string") || (block?.type === "image" && typeof (block.data ?? block.url) === "string");
  return Array.isArray(output) && output.some((block) => block?.type === "image") && output.every(isBlock) ? output : undefined;
}

/** @param {any} part @returns {ToolResultMessage[]} */
function resultOf(part) {
  const { state, output, errorText, approval, preliminary } = part;
  /** @param {string | ToolResultMessage["content"]} said @param {boolean} isError @returns {ToolResultMessage[]} */
  const result = (said, isError) => [{ role: "tool_result", callId: part.toolCallId, toolName: nameOf(part), content: typeof said === "string" ? [{ type: "text", text: said }] : said, isError, timestamp: 0 }];
  // An output that was only a report of progress is none.
  if (state === "output-available" && preliminary) return [];
  if (state === "output-available") return result(blocksOf(output) ?? (typeof output === "string" ? output : (JSON.stringify(output) ?? "")), false);
  if (state === "output-error") return result(errorText ?? "", true);
  if (state === "output-denied") return result(approval?.reason ?? "the call was rejected", true);
  return [];
}
