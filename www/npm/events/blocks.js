// @ts-check
// What messages and pieces are made of.

import { emptyList } from "../v8.js";

/** @import { AgentEvent, AgentMessage, AssistantMessage, Delta, TextBlock, ToolCallBlock } from "../index.js" */
/** @typedef {Extract<AgentEvent, { type: "message_update" }>} MessageUpdate */

/** The tool calls of an answer. @param {AssistantMessage | null | undefined} message @returns {ToolCallBlock[]} */
export function callsOf(message) {
  const calls = emptyList();
  // V8 is slow to `filter` a list that is frozen.
  for (const block of message?.content ?? []) if (block.type === "tool_call") calls.push(block);
  return calls;
}

/** The text of the last answer. @param {readonly AgentMessage[]} messages */
export function lastText(messages) {
  const answer = messages.findLast(({ role }) => role === "assistant");
  return joinTexts(/** @type {AssistantMessage | undefined} */ (answer)?.content ?? []);
}

/** Joins the texts of some blocks. @param {readonly { type: string }[]} blocks */
export function joinTexts(blocks) {
  return blocks.filter(({ type }) => type === "text").map((block) => /** @type {TextBlock} */ (block).text).join("");
}

/** Whether two pieces belong to the same block. @param {Delta} a @param {Delta} b */
export function isSameBlock(a, b) {
  return a.type === b.type && a.contentIndex === b.contentIndex && callIdOf(a) === callIdOf(b);
}

/** @param {Delta} delta */
function callIdOf(delta) {
  return /** @type {{ callId?: string }} */ (delta).callId;
}

/**
 * Joins two updates of one block. Neither is changed: listeners may hold them.
 * @param {MessageUpdate} update @param {MessageUpdate} next @returns {MessageUpdate}
 */
export function joinUpdates(update, next) {
  return { ...update, delta: { ...update.delta, delta: update.delta.delta + next.delta.delta } };
}
