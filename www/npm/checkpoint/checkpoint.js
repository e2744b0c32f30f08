// @ts-check
// Writes and reads checkpoints (CheckpointEnvelopeV1), whose messages every reader of the format
// understands. The native half is src/checkpoint/; each half reads what the other writes.

import { kindOf, misuse, textOf } from "../shared.js";

const FORMAT = "stakai_message_v1";
/** The version of the engine's own state under `metadata.turnwheel`. */
const STATE_VERSION = 1;
/** The kind of a custom message that wraps a message of another engine with no equivalent here. */
const FOREIGN = "stakai_message";
/** Marks what another engine wrote into a message and this one only preserves. Not part of the JSON. */
const KEPT = Symbol("kept");
const BASE64 = ";base64,";

/**
 * @param {any} state the engine's own state @param {string | undefined} runId @param {any[]} messages
 * @param {any} [otherFields] fields and metadata of the checkpoint that the agent was restored from
 */
export function toCheckpoint(state, runId, messages, otherFields) {
  const { metadata, ...fields } = otherFields ?? {};
  const checkpoint = {
    version: 1, format: FORMAT, run_id: uuidOf(runId) ?? null, ...fields, messages: messages.map(writeMessage),
    metadata: { ...metadata, turnwheel: { version: STATE_VERSION, ...state } },
  };
  // A plain copy, whatever objects the tools put into their results.
  return JSON.parse(JSON.stringify(checkpoint));
}

/**
 * Reads a checkpoint, written by this engine or another. Nothing is used before all of it has been checked.
 * @param {any} given
 * @returns {{ runId: string | undefined, messages: any[], state: any, otherFields: any }}
 */
export function fromCheckpoint(given) {
  let value = given;
  if (typeof given === "string") {
    try {
      value = JSON.parse(given);
    } catch (error) {
      throw invalid(/** @type {Error} */ (error).message);
    }
  }
  if (typeof value !== "object" || value === null) throw misuse(`a checkpoint must be an object or its JSON, got ${kindOf(value)}`);
  const { version, format, run_id, messages, metadata, ...fields } = Array.isArray(value)
    ? { messages: value, metadata: { migrated_from: "legacy_messages_array" } }
    : value;
  const isOld = !(Number.isInteger(version) && version >= 0);
  if (!isOld && version !== 1) throw misuse(`unsupported checkpoint version: ${version}`);
  if (isOld && !Array.isArray(messages)) throw misuse("checkpoint payload is missing version");
  if (!isOld && typeof format !== "string") throw invalid("`format` must be a text");
  if (!isOld && run_id !== null && run_id !== undefined && !uuidOf(run_id)) throw invalid("`run_id` must be a UUID or null");
  if (!Array.isArray(messages)) throw invalid("`messages` must be a list");
  if (!isOld && metadata === undefined) throw invalid("`metadata` is missing");
  if (!isOld && format !== FORMAT) throw misuse(`unsupported checkpoint format: ${format}`);
  const { turnwheel, ...otherMetadata } = typeof metadata === "object" && metadata !== null && !Array.isArray(metadata) ? metadata : {};
  if (turnwheel !== undefined && turnwheel?.version !== STATE_VERSION) {
    throw invalid(`metadata.turnwheel is of version ${JSON.stringify(turnwheel?.version) ?? "none"}, this turnwheel reads ${STATE_VERSION}; install the newer one`);
  }
  if (typeof (turnwheel?.sessionId ?? "") !== "string") throw invalid("`sessionId` must be a text");
  const undelivered = turnwheel?.untold ?? [];
  if (!Array.isArray(undelivered) || !undelivered.every((event) => typeof event?.type === "string")) throw invalid("`untold` must be a list of events");
  return {
    runId: turnwheel?.run?.runId ?? uuidOf(run_id),
    messages: readMessages(messages), state: structuredClone(turnwheel), otherFields: { ...fields, metadata: otherMetadata },
  };
}

/** @param {string} reason */
const invalid = (reason) => misuse(`invalid checkpoint payload: ${reason}`);

/** Returns a UUID in its canonical form. @param {any} id */
function uuidOf(id) {
  const digits = typeof id === "string" && /^(?:urn:uuid:)?\{?([\da-f]{8}-?[\da-f]{4}-?[\da-f]{4}-?[\da-f]{4}-?[\da-f]{12})\}?$/i.exec(id);
  if (!digits) return;
  return digits[1].toLowerCase().replaceAll("-", "").replace(/(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

// ---- writing

/**
 * Block types that map to parts with other member names, as [ours, theirs].
 * @type {Record<string, [string, string][]>}
 */
const NAMES = {
  text: [["text", "text"]],
  tool_call: [["callId", "id"], ["toolName", "name"], ["arguments", "arguments"], ["metadata", "metadata"]],
};

/** @param {any} message */
function writeMessage(message) {
  const { role, content = [], ...own } = message;
  const kept = message[KEPT] ?? {};
  if (role === "custom" && message.kind === FOREIGN && typeof message.data?.role === "string") return message.data;
  /** @type {any[]} */
  let parts = [];
  // A host may keep anything as the content of its custom messages.
  if (role === "custom") own.content = message.content;
  else if (role === "tool_result") {
    const [first] = content;
    const isText = content.length === 1 && isPlainText(first);
    if (!isText) own.parts = true;
    parts = [{ type: "tool_result", tool_call_id: own.callId, content: !isText ? content : kept.json ? JSON.parse(first.text) : first.text }];
    delete own.callId;
  } else {
    /** @type {any[]} */
    const blocks = [];
    content.forEach((/** @type {any} */ block, /** @type {number} */ at) => parts.push(...partOf(block, at, blocks)));
    if (own.stopReason === defaultStopReason(parts)) delete own.stopReason;
    if (blocks.length > 0) own.blocks = blocks;
  }
  kept.parts?.forEach((/** @type {any} */ original, /** @type {number} */ i) => {
    if (i < parts.length) parts[i] = original.type === undefined ? { ...parts[i], ...original } : original;
  });
  for (const [key, value] of Object.entries(own)) if (isDefault(key, value)) delete own[key];
  const { provider_options, ...rest } = kept.message ?? {};
  const options = { ...provider_options, ...(Object.keys(own).length > 0 && { turnwheel: own }) };
  return {
    role: role === "tool_result" ? "tool" : role === "custom" ? "user" : role,
    content: role === "custom" ? "" : role === "user" && parts.length === 1 && isPlainText(parts[0]) ? parts[0].text : parts,
    ...rest, ...(Object.keys(options).length > 0 && { provider_options: options }),
  };
}

/**
 * Returns the part for a block, if one exists. Members that do not fit into it are pushed to
 * `kept`, with the block's index.
 * @param {any} block @param {number} at @param {any[]} kept
 */
function partOf({ ...rest }, at, kept) {
  const { type } = rest;
  /** @type {any} */
  const part = { type };
  if (NAMES[type]) {
    for (const [ours, theirs] of NAMES[type]) {
      if (rest[ours] !== undefined) part[theirs] = rest[ours];
      delete rest[ours];
    }
    // A history written by the host may lack them.
    if (type === "tool_call") part.arguments ??= {};
    delete rest.type;
  } else if (type === "image" && !rest.mimeType.includes(BASE64)) {
    part.url = `data:${rest.mimeType}${BASE64}${rest.data}`;
    for (const key of ["type", "mimeType", "data"]) delete rest[key];
  }
  if (Object.values(rest).some((value) => value !== undefined)) kept.push({ ...rest, at });
  return rest.type === undefined ? [part] : [];
}

/** @param {any[]} parts */
const defaultStopReason = (parts) => (parts.some((part) => part.type === "tool_call") ? "tool_use" : "stop");

/** @param {any} block */
const isPlainText = (block) => block.type === "text" && Object.entries(block).every(([key, value]) => key === "type" || key === "text" || value === undefined);

/**
 * Whether a reader assumes this value anyway when the key is missing.
 * @param {string} key @param {any} value @returns {boolean}
 */
function isDefault(key, value) {
  if (value === undefined) return true;
  if (key === "usage") return Object.entries(value ?? {}).every(([part, count]) => isDefault(part, count));
  return /^(?:timestamp|input|output|cacheRead|cacheWrite|total)$/.test(key) ? value === 0 : /^(?:provider|model)$/.test(key) ? value === "" : key === "isError" && value === false;
}

// ---- reading

/** @param {any[]} messages */
function readMessages(messages) {
  /** The tool name of each call: other engines leave it out of the results. @type {Map<string, string>} */
  const tools = new Map();
  return messages.flatMap((message, at) => {
    const flaw = flawOf(message);
    if (flaw) throw invalid(`message ${at}: ${flaw}`);
    try {
      return readMessage(message, tools);
    } catch (error) {
      throw invalid(`message ${at}: ${textOf(error)}`);
    }
  });
}

/** The members that each part requires. @type {Record<string, string[]>} */
const PARTS = { text: ["text"], image: ["url"], tool_call: ["id", "name"], tool_result: ["tool_call_id"] };

/** Returns what is wrong with a message, or nothing if it is valid. @param {any} message */
function flawOf(message) {
  const { role, name, content } = message ?? {};
  if (!["system", "user", "assistant", "tool"].includes(role)) return role ? `unknown role \`${role}\`` : "it has no `role`";
  if (name !== undefined && name !== null && typeof name !== "string") return "`name` must be a text";
  if (typeof content === "string") return;
  if (!Array.isArray(content)) return "`content` must be a text or a list";
  for (const part of content) {
    const needs = PARTS[part?.type];
    if (!needs) return part?.type ? `unknown part \`${part.type}\`` : "a part has no `type`";
    const missing = needs.find((key) => typeof part[key] !== "string") ?? { tool_call: "arguments", tool_result: "content" }[/** @type {string} */ (part.type)];
    if (missing && (part[missing] === undefined || needs.includes(missing))) return `a part has no \`${missing}\``;
  }
}

/** @param {any} message @param {Map<string, string>} tools @returns {any[]} */
function readMessage(message, tools) {
  const { role, content, provider_options, ...rest } = message;
  const { turnwheel, ...options } = provider_options ?? {};
  /** @type {any} */
  let own = { ...turnwheel };
  const otherFields = { ...rest, ...(Object.keys(options).length > 0 && { provider_options: options }) };
  if (role === "user" && own.kind !== undefined) return [{ role: "custom", timestamp: 0, ...own }];
  const parts = typeof content === "string" ? [{ type: "text", text: content }] : content;
  const results = role === "assistant" ? [] : parts.filter((/** @type {any} */ part) => part.type === "tool_result");
  if (role === "system" || (role === "tool" && results.length === 0)) return [{ role: "custom", kind: FOREIGN, data: message, timestamp: 0 }];
  const remaining = results.length > 0 ? parts.filter((/** @type {any} */ part) => part.type !== "tool_result") : parts;
  let first = true;
  /**
   * Attaches what must be preserved; the fields of the message itself go to the first one made of it.
   * @param {any} target @param {any[]} extra @param {boolean} [json]
   */
  const keep = (target, extra, json) => {
    const kept = {
      ...(first && Object.keys(otherFields).length > 0 && { message: otherFields }),
      ...(extra.some((part) => Object.keys(part).length > 0) && { parts: extra }), ...(json && { json }),
    };
    first = false;
    own = {};
    return Object.keys(kept).length > 0 ? Object.defineProperty(target, KEPT, { value: kept }) : target;
  };
  const messages = results.map(({ type, tool_call_id: callId, content, ...extra }) => {
    const { parts: isOurs, ...fields } = own;
    const json = !isOurs && typeof content !== "string";
    const blocks = isOurs ? content : [{ type: "text", text: json ? JSON.stringify(content) : content }];
    return keep({ role: "tool_result", toolName: tools.get(callId) ?? "", isError: false, timestamp: 0, ...fields, callId, content: blocks }, [extra], json);
  });
  if (results.length > 0 && remaining.length === 0) return messages;
  const { blocks = [], ...fields } = own;
  const converted = remaining.map(blockOf);
  const contentBlocks = converted.map(([block]) => block);
  for (const { at, layout, ...kept } of blocks) {
    if (kept.type !== undefined) contentBlocks.splice(at, 0, kept);
    else if (contentBlocks[at] && layout === undefined) Object.assign(contentBlocks[at], kept);
  }
  const defaults = role === "assistant" && { provider: "", model: "", usage: undefined, stopReason: defaultStopReason(remaining) };
  const result = { role, ...defaults, timestamp: 0, ...fields, content: contentBlocks };
  if (role === "assistant") result.usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0, ...fields.usage };
  for (const block of contentBlocks) if (block.type === "tool_call") tools.set(block.callId, block.toolName);
  messages.push(keep(result, converted.map(([, extra]) => extra)));
  return messages;
}

/**
 * Returns the block for a part, and the members that have no equivalent. If these include `type`,
 * they are the whole part.
 * @param {any} part
 */
function blockOf({ type, ...rest }) {
  /** @type {any} */
  const block = { type };
  if (NAMES[type]) {
    for (const [ours, theirs] of NAMES[type]) {
      if (rest[theirs] !== undefined) block[ours] = rest[theirs];
      delete rest[theirs];
    }
    if (type === "tool_call" && !isObject(block.arguments)) {
      rest.arguments = block.arguments;
      block.arguments = objectOf(rest.arguments);
    }
    return [block, rest];
  }
  const [, mimeType, data] = /^data:(.*?);base64,(.*)$/s.exec(rest.url ?? "") ?? [];
  if (mimeType !== undefined) {
    const { url, ...extra } = rest;
    return [{ type: "image", mimeType, data }, extra];
  }
  return [{ type: "text", text: rest.url ? `[${type}: ${rest.url}]` : `[${type}]` }, { type, ...rest }];
}

/** @param {any} value */
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** Other engines keep arguments as text. @param {any} text */
function objectOf(text) {
  try {
    const parsed = JSON.parse(text);
    if (isObject(parsed)) return parsed;
  } catch {
    // Not JSON: no arguments.
  }
  return {};
}
