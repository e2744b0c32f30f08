// @ts-check
// The prompts that a server offers to a person: "explain this file", "write the minutes".

import { blockOf } from "./content.js";

/** @import { AgentMessage } from "../index.js" */

const NO_USAGE = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };

/** Converts the answer to `prompts/get`. Neighbours of one role are one message. @param {{ messages: { role: "user" | "assistant", content: any }[] }} answer @returns {AgentMessage[]} */
export function messagesOf({ messages }) {
  /** @type {AgentMessage[]} */
  const result = [];
  for (const { role, content } of messages) {
    const block = /** @type {any} */ (blockOf(content));
    const last = result.at(-1);
    if (last?.role === role) /** @type {any[]} */ (last.content).push(block);
    else if (role === "user") result.push({ role, content: [block], timestamp: 0 });
    // What a server puts into the mouth of a model is text.
    else result.push({ role, content: block.type === "text" ? [block] : [], provider: "mcp", model: "prompt", usage: NO_USAGE, stopReason: "stop", timestamp: 0 });
  }
  return result;
}
