// @ts-check
// What an agent of the AI SDK is called with: a prompt or the whole conversation, as its model messages.

import { kindOf, misuse } from "../shared.js";

/** @import { AgentMessage, ToolDecision, UserMessage } from "../index.js" */

/**
 * The new message of a conversation, or the decisions about what the last answer asked.
 * @param {any} call @returns {{ prompt: UserMessage | undefined, decisions: { [id: string]: ToolDecision }, before: AgentMessage[] }}
 */
export function postedOf({ prompt, messages = prompt } = /** @type {any} */ ({})) {
  if (typeof messages === "string") return { prompt: userMessage(messages), decisions: {}, before: [] };
  if (!Array.isArray(messages) || messages.length === 0) throw misuse(`an agent is called with a \`prompt\` or with \`messages\`, got ${kindOf(messages)}`);
  const last = messages.at(-1);
  const users = messages.filter(({ role }) => role === "user").map(({ content }) => userMessage(content));
  if (last.role === "user") return { prompt: users.at(-1), decisions: {}, before: users.slice(0, -1) };
  return { prompt: undefined, decisions: last.role === "tool" ? decisionsOf(last.content) : {}, before: users };
}

/** @param {any[]} parts */
function decisionsOf(parts) {
  /** @type {{ [id: string]: ToolDecision }} */
  const decisions = {};
  for (const { type, approvalId, approved, reason } of parts) {
    if (type === "tool-approval-response") decisions[approvalId] = approved === true ? "approve" : { action: "reject", ...(reason && { reason }) };
  }
  return decisions;
}

/** @param {any} content @returns {UserMessage} */
const userMessage = (content) => ({ role: "user", content: (typeof content === "string" ? [{ type: "text", text: content }] : content).map(userBlock), timestamp: 0 });

/** @param {any} part @returns {UserMessage["content"][number]} */
function userBlock({ type, text, image, data = image, mediaType, filename }) {
  if (type === "text") return { type, text };
  const [, address, base64 = dataOf(data)] = /^data:([^;,]*)[^,]*;base64,(.*)$/s.exec(String(data?.url ?? data)) ?? [];
  const mimeType = mediaType?.includes("/") && !mediaType.endsWith("*") ? mediaType : (address ?? (type === "image" ? "image/png" : "application/octet-stream"));
  if (mimeType.startsWith("image/")) return { type: "image", mimeType, data: base64 };
  return { type: "file", mimeType, data: base64, ...(filename && { name: filename }) };
}

/** Data in base64, however it is given. @param {any} given @returns {string} */
function dataOf(given) {
  const data = given?.type === "data" ? given.data : given;
  const bytes = data instanceof ArrayBuffer ? new Uint8Array(data) : data;
  if (bytes instanceof Uint8Array) return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
  if (typeof data === "string" && !/^[a-z]+:/i.test(data)) return data;
  throw misuse("a file must come as a data: address in base64, as base64 or as bytes; files elsewhere are not fetched");
}
