// @ts-check
// Converts what the host says to messages. A wrong shape is an error that names what was passed.

import { misuse } from "../errors/errors.js";
import { kindOf } from "../errors/names.js";
import { isBase64, MIME_TYPE } from "./media.js";
import { emptyList } from "../v8.js";

/** @import { AgentMessage, CustomMessage, UserMessage } from "../index.js" */

/**
 * Converts one input to a message.
 * @param {unknown} input @param {string} [where]
 * @returns {UserMessage | CustomMessage}
 */
export function toMessage(input, where = "input") {
  if (typeof input === "string") return { role: "user", content: [{ type: "text", text: input }], timestamp: 0 };
  if (Array.isArray(input)) {
    return { role: "user", content: input.map((block, i) => checkBlock(block, `${where}[${i}]`, ROLES.user)), timestamp: 0 };
  }
  const role = /** @type {any} */ (input)?.role;
  if (role === "user" || role === "custom") return checkMessage(input, where);
  if (role) throw misuse(`${where}: a message with role \`${role}\` cannot be an input; only \`user\` and \`custom\` can`);
  const { prompt, messages } = /** @type {any} */ (input ?? {});
  const hint = prompt === undefined && messages === undefined ? "" : "; write agent.prompt(text), and give a history to new Agent({ messages })";
  throw misuse(`${where} must be a text, an array of blocks, or a message, got ${kindOf(input)}${hint}`);
}

/** The block types that each role may hold. @type {Record<string, string[]>} */
const ROLES = { user: ["text", "image", "file"], assistant: ["text", "thinking", "tool_call", "raw"], tool_result: ["text", "image", "file"] };

/** The members that each block type requires. @type {Record<string, string[]>} */
const BLOCKS = { text: ["text"], thinking: ["thinking"], tool_call: ["callId", "toolName"], image: ["mimeType", "data"], file: ["mimeType", "data"], raw: [] };

/** The members that an image or a file requires which is elsewhere. @type {Record<string, string[]>} */
const LINKS = { image: ["url"], file: ["mimeType", "url"] };

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

/** Checks a history that is passed to an agent. @param {any} messages @returns {AgentMessage[]} */
export function checkHistory(messages) {
  if (!Array.isArray(messages)) throw misuse(`\`messages\` must be an array, got ${kindOf(messages)}`);
  const checked = emptyList();
  const ids = new CallIds();
  messages.forEach((message, i) => {
    const role = message?.role;
    if (role !== "custom" && !Object.hasOwn(ROLES, role)) {
      throw misuse(`messages[${i}] must be a message with a role (user, assistant, tool_result or custom), got ${role ? `the role \`${role}\`` : kindOf(message)}`);
    }
    if (role === "tool_result" && typeof message.callId !== "string") throw misuse(`messages[${i}]: a tool result needs a \`callId\`, got ${kindOf(message.callId)}`);
    checked.push(ids.own(checkMessage(message, `messages[${i}]`)));
  });
  return checked;
}

/**
 * Some servers number the calls of each answer from the start, or give every call the same id. A call whose id was used before gets one of its
 * own, and so do the results behind it, in the order of the calls: otherwise all but the last would count as repeated.
 */
class CallIds {
  constructor() {
    /** @type {Set<string>} */
    this.used = new Set();
    /** What the calls with an id are called, of the answer that had it last. @type {Map<string, string[]>} */
    this.open = new Map();
  }

  /** @param {AgentMessage} message @returns {AgentMessage} the same, if its ids are its own */
  own(message) {
    if (message.role === "tool_result") {
      const [callId = message.callId, next] = this.open.get(message.callId) ?? [];
      // A result that is repeated is one of the last call still.
      if (next !== undefined) this.open.get(message.callId)?.shift();
      return callId === message.callId ? message : { ...message, callId };
    }
    if (message.role !== "assistant") return message;
    /** @type {Map<string, string[]>} */
    const here = new Map();
    const content = message.content.map((block) => {
      if (block.type !== "tool_call") return block;
      let { callId } = block;
      for (let n = 2; this.used.has(callId); n++) callId = `${block.callId}~${n}`;
      this.used.add(callId);
      here.set(block.callId, [...(here.get(block.callId) ?? []), callId]);
      return callId === block.callId ? block : { ...block, callId };
    });
    for (const [id, calls] of here) this.open.set(id, calls);
    return content.every((block, i) => block === message.content[i]) ? message : { ...message, content };
  }
}

/** Converts one input or an array of them. An array of blocks is a single message. @param {unknown} input @returns {AgentMessage[]} */
export function toMessages(input) {
  const messages = listOf(input);
  if (messages.every(isSilent)) throw misuse("the prompt is an empty text; say something, or go on without a word by agent.continue()");
  return messages;
}

/** Whether a message says nothing. @param {any} message */
const isSilent = ({ role, content }) => role === "user" && content.every((/** @type {any} */ { type, text }) => type === "text" && text.trim() === "");

/** @param {unknown} input @returns {AgentMessage[]} */
function listOf(input) {
  if (!Array.isArray(input)) return [toMessage(input)];
  if (input.length === 0) throw misuse("a prompt needs at least one message, got an empty array");
  return input.every(isBlock) ? [toMessage(input)] : input.map((item, i) => toMessage(item, `input[${i}]`));
}

/** Whether an item of a list is a block, which says what it is by its type, and not a message. @param {any} item */
export const isBlock = (item) => typeof item === "object" && item !== null && typeof item.type === "string" && !("role" in item);

/** Converts what a queue of the host returned. @param {any} inputs @returns {AgentMessage[]} */
export function messagesOf(inputs) {
  return inputs === undefined || inputs === null || inputs.length === 0 ? [] : listOf(inputs);
}

/** An address that is neither encrypted nor on this machine. */
export const PLAIN = /^http:\/\/(?!(localhost|[^/:]+\.localhost|127(\.\d+){3}|\[::1\])(:\d+)?(\/|$))/i;

/** The members that a block may have besides those that it must have. @type {Record<string, string[]>} */
const MORE = { text: ["signature"], thinking: ["signature", "redacted"], tool_call: ["arguments", "metadata"], image: ["mimeType"], file: ["name"], raw: ["data"] };

/**
 * Reads a block from outside: checks it, and builds a plain one of its members.
 * @param {any} block @param {string} where @param {string} role whose block it is @returns {any}
 */
export function readBlock(block, where, role) {
  const { type } = Object(block);
  if (!Object.hasOwn(BLOCKS, String(type))) return checkBlock(block, where, ROLES[role] ?? []);
  /** @type {Record<string, any>} */
  const read = { type };
  const isMedia = type === "image" || type === "file";
  for (const name of [...(isMedia ? ["url"] : []), ...(BLOCKS[type] ?? []), ...(MORE[type] ?? [])]) {
    const value = block[name];
    if (value !== undefined) read[name] = value;
  }
  if ("role" in block) read.role = block.role;
  return checkBlock(read, where, ROLES[role] ?? []);
}

/** @param {any} block @param {string} where @param {string[]} types */
function checkBlock(block, where, types) {
  const type = block?.type;
  if (types.includes(type) && "role" in block) throw misuse(`${where}: a block of type ${type} has no \`role\`; a message has one`);
  if (!types.includes(type)) throw misuse(`${where} must be a block of type ${types.join(", ")}, got ${type ? `\`${type}\`` : kindOf(block)}`);
  const { url, data } = block;
  const hasContent = BLOCKS[type].includes("data");
  const isLink = url !== undefined && hasContent;
  if (hasContent && url === undefined && data === undefined) throw misuse(`${where}: a block of type ${type} needs \`data\` (base64, with its \`mimeType\`) or \`url\``);
  for (const key of isLink ? LINKS[type] : BLOCKS[type]) {
    if (typeof block[key] !== "string") throw misuse(`${where}: a block of type ${type} needs a text \`${key}\`, got ${kindOf(block[key])}`);
  }
  if (isLink && (PLAIN.test(url) || !/^https?:/.test(url))) throw misuse(`${where}: the \`url\` of a block must begin with https:// (http:// only on this machine), got ${JSON.stringify(url.slice(0, 60))}; base64 goes into \`data\``);
  if (hasContent && block.mimeType !== undefined && !MIME_TYPE.test(block.mimeType)) throw misuse(`${where}: the \`mimeType\` of a block must be a type such as image/png, got ${JSON.stringify(String(block.mimeType).slice(0, 60))}`);
  if (type === "file" && block.name !== undefined && typeof block.name !== "string") throw misuse(`${where}: the \`name\` of a file must be a text, got ${kindOf(block.name)}`);
  const isMisplaced = hasContent && (isLink ? data !== undefined : !isBase64(data));
  if (isMisplaced) throw misuse(`${where}: \`data\` is base64 alone; an address that begins with https:// goes into \`url\``);
  return block;
}
