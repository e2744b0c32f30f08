// @ts-check
// Converts what the host passes in: inputs to messages, tool outputs to blocks. A wrong shape is an error
// that names what was passed.

import { checkNames, isOfClass, kindOf, misuse } from "../errors/errors.js";
import { emptyList } from "../v8.js";

/** @typedef {import("../index.js").AgentMessage} AgentMessage */

/**
 * Converts one input to a message.
 * @param {unknown} input @param {string} [where]
 * @returns {any}
 */
export function toMessage(input, where = "input") {
  if (typeof input === "string") return { role: "user", content: [{ type: "text", text: input }], timestamp: 0 };
  if (Array.isArray(input)) {
    return { role: "user", content: input.map((block, i) => checkBlock(block, `${where}[${i}]`, ROLES.user)), timestamp: 0 };
  }
  const role = /** @type {any} */ (input)?.role;
  if (role === "user" || role === "custom") return checkMessage(input, where);
  if (role) throw misuse(`${where}: a message with role \`${role}\` cannot be an input; only \`user\` and \`custom\` can`);
  throw misuse(`${where} must be a text, an array of blocks, or a message, got ${kindOf(input)}`);
}

/** The block types that each role may hold. @type {Record<string, string[]>} */
const ROLES = { user: ["text", "image", "file"], assistant: ["text", "thinking", "tool_call", "raw"], tool_result: ["text", "image"] };

/** The members that each block type requires. @type {Record<string, string[]>} */
const BLOCKS = { text: ["text"], thinking: ["thinking"], tool_call: ["callId", "toolName"], image: ["mimeType", "data"], file: ["mimeType", "data"], raw: [] };

/** Returns a message unchanged, or throws if it is invalid. @param {any} message @param {string} where */
function checkMessage(message, where) {
  const { role, content } = message;
  if (role === "custom") {
    if (typeof message.kind !== "string") throw misuse(`${where}: a custom message needs a \`kind\`, got ${kindOf(message.kind)}`);
    return message;
  }
  if (typeof content === "string") return { ...message, content: [{ type: "text", text: content }] };
  if (!Array.isArray(content)) throw misuse(`${where}: the content of a message must be an array of blocks, got ${kindOf(content)}`);
  content.forEach((block, i) => checkBlock(block, `${where}.content[${i}]`, ROLES[role]));
  return message;
}

/** Checks a history that is passed to an agent. @param {any} messages */
export function checkHistory(messages) {
  if (!Array.isArray(messages)) throw misuse(`\`messages\` must be an array, got ${kindOf(messages)}`);
  const checked = emptyList();
  messages.forEach((message, i) => {
    const role = message?.role;
    if (role !== "custom" && !Object.hasOwn(ROLES, role)) {
      throw misuse(`messages[${i}] must be a message with a role (user, assistant, tool_result or custom), got ${role ? `the role \`${role}\`` : kindOf(message)}`);
    }
    if (role === "tool_result" && typeof message.callId !== "string") throw misuse(`messages[${i}]: a tool result needs a \`callId\`, got ${kindOf(message.callId)}`);
    checked.push(checkMessage(message, `messages[${i}]`));
  });
  return checked;
}

/** Converts one input or an array of them. An array of blocks is a single message. @param {unknown} input */
export function toMessages(input) {
  if (!Array.isArray(input)) return [toMessage(input)];
  if (input.length === 0) throw misuse("a prompt needs at least one message, got an empty array");
  const isBlock = (/** @type {any} */ item) => item && typeof item === "object" && typeof item.type === "string" && !item.role;
  return input.every(isBlock) ? [toMessage(input)] : input.map((item, i) => toMessage(item, `input[${i}]`));
}

/** Converts what a queue of the host returned. @param {any} inputs */
export function messagesOf(inputs) {
  return inputs === undefined || inputs === null || inputs.length === 0 ? [] : toMessages(inputs);
}

/** @param {any} block @param {string} where @param {string[]} types */
function checkBlock(block, where, types) {
  const type = block?.type;
  if (!types.includes(type)) throw misuse(`${where} must be a block of type ${types.join(", ")}, got ${type ? `\`${type}\`` : kindOf(block)}`);
  for (const key of BLOCKS[type]) {
    if (typeof block[key] !== "string") throw misuse(`${where}: a ${type} block needs a text \`${key}\`, got ${kindOf(block[key])}`);
  }
  if (block.mimeType && /^(data|https?):/.test(block.data)) throw misuse(`${where}: \`data\` is base64 alone, not an address such as "data:image/png;base64,…"`);
  return block;
}

/**
 * Converts a tool's output to a result. An output that is not JSON becomes an error that says so.
 * @param {unknown} output
 * @returns {{ content: any[], details?: any, isError?: boolean, transfer?: any }}
 */
export function toResult(output) {
  if (output === undefined) return { content: [{ type: "text", text: "" }] };
  if (typeof output === "string") return { content: [{ type: "text", text: output }] };
  const flaw = flawOf(output, new Set(), "the result");
  if (flaw) return { content: [{ type: "text", text: `the tool's result is no JSON: ${flaw}` }], isError: true };
  const { content, details, isError, transfer: given } = /** @type {any} */ (output) ?? {};
  const transfer = isTransfer(output) ? given : undefined;
  // With other members present, an empty `content` array is just another member.
  const isResult = content?.length !== 0 || hasOnly(output, RESULT);
  if (isResult && Array.isArray(content) && content.every((block) => block?.type === "text" || block?.type === "image")) {
    return { content, ...(details !== undefined && { details }), isError: isError === true, ...(transfer && { transfer }) };
  }
  if (transfer) return { content: [], transfer };
  return { content: [{ type: "text", text: JSON.stringify(output) }] };
}

/**
 * Whether the output hands the conversation over. It must be `{ transfer: { to, reason? } }` and nothing
 * else: other values merely have a member of that name.
 * @param {any} output
 */
function isTransfer(output) {
  const transfer = output?.transfer;
  return typeof transfer?.to === "string" && hasOnly(transfer, ["to", "reason"]) && hasOnly(output, RESULT);
}

const RESULT = ["transfer", "content", "details", "isError"];

/** @param {any} value @param {string[]} names */
function hasOnly(value, names) {
  return Object.keys(value).every((name) => names.includes(name));
}

/**
 * Returns why a value is not JSON, or nothing if it is.
 * @param {unknown} value @param {Set<object>} above @param {string} where
 * @returns {string | undefined}
 */
function flawOf(value, above, where) {
  if (value === null || typeof value === "string" || typeof value === "boolean" || value === undefined) return;
  if (typeof value === "number") return Number.isFinite(value) ? undefined : `${where} is ${value}`;
  if (typeof value !== "object") return `${where} is a ${typeof value}`;
  if (above.has(value)) return `${where} contains itself`;
  if (typeof (/** @type {any} */ (value).toJSON) === "function") return;
  if (!Array.isArray(value) && isOfClass(value) && !isRecord(value)) return `${where} is ${kindOf(value)}`;
  above.add(value);
  for (const [key, item] of Object.entries(value)) {
    const flaw = flawOf(item, above, Array.isArray(value) ? `${where}[${key}]` : `${where}.${key}`);
    if (flaw) return flaw;
  }
  above.delete(value);
}

/** Whether JSON.stringify preserves the contents of a class instance. @param {any} value */
function isRecord(value) {
  return Object.keys(value).length > 0 && !(value instanceof Error || ArrayBuffer.isView(value) || Symbol.iterator in value);
}

/** Converts a value of the session state to JSON; `undefined` removes it. @param {unknown} value */
export function stateText(value) {
  const flaw = flawOf(value, new Set(), "the value");
  if (flaw) throw misuse(`the session state takes JSON only: ${flaw}`);
  return JSON.stringify(value);
}

/** Converts a progress update to JSON. @param {unknown} partial */
export function updateText(partial) {
  const flaw = flawOf(partial, new Set(), "the update");
  return JSON.stringify(flaw ? `the tool's update is no JSON: ${flaw}` : partial) ?? '""';
}

/** Converts an approver's decision for the engine. @param {any} decision */
export function toDecision(decision) {
  if (decision === "approve" || decision === "reject") return decision;
  // With a misspelt `arguments`, the model's own arguments would be approved.
  if (typeof decision?.action === "string") checkNames("unknown member of a decision", decision, ["action", "arguments", "reason", "content", "isError"]);
  if (decision?.action === "result") {
    const { content, details, isError } = toResult(decision.content);
    return { action: "result", content: { content, details }, isError: decision.isError ?? isError ?? false };
  }
  if (decision?.action === "approve" || decision?.action === "reject") return decision;
  throw misuse(`a decision must be "approve", "reject" or { action: "approve" | "reject" | "result" }, got ${kindOf(decision)}`);
}
