// @ts-check
// Writes checkpoints.

import { BASE64, defaultStopReason, FOREIGN, FORMAT, KEPT, NAMES, STATE_VERSION, uuidOf } from "./format.js";

/** @import { AgentMessage, Checkpoint } from "../index.js" */
/** @import { EngineState, OtherFields, Part } from "./format.js" */
/** @typedef {WeakMap<AgentMessage, string>} Written */

/**
 * Writes a checkpoint.
 * @param {EngineState} state @param {string | undefined} runId @param {AgentMessage[]} messages
 * @param {OtherFields} [otherFields] fields and metadata of the checkpoint that the agent was restored from
 * @param {Written} [written] messages that were written before: then each is given as its JSON, and only what is new is written
 * @returns {Checkpoint}
 */
export function toCheckpoint(state, runId, messages, otherFields, written) {
  const { metadata, ...fields } = otherFields ?? {};
  const checkpoint = {
    version: 1, format: FORMAT, run_id: uuidOf(runId) ?? null, ...fields, messages: written ? [] : messages.map(writeMessage),
    metadata: { ...metadata, turnwheel: { version: STATE_VERSION, ...state } },
  };
  // A plain copy, whatever objects the tools put into their results.
  const copy = JSON.parse(JSON.stringify(checkpoint));
  if (written) copy.messages = messages.map((message) => written.get(message) ?? (written.set(message, JSON.stringify(writeMessage(message))), written.get(message)));
  return copy;
}

/** @param {any} message may have members of the host's own @returns {Part} */
function writeMessage(message) {
  const { role, content = [], ...own } = message;
  const kept = message[KEPT] ?? {};
  if (role === "custom" && message.kind === FOREIGN && typeof message.data?.role === "string") return message.data;
  /** @type {Part[]} */
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
    /** @type {Part[]} */
    const blocks = [];
    content.forEach((/** @type {Part} */ block, /** @type {number} */ at) => parts.push(...partOf(block, at, blocks)));
    if (own.stopReason === defaultStopReason(parts)) delete own.stopReason;
    if (blocks.length > 0) own.blocks = blocks;
  }
  kept.parts?.forEach((/** @type {Part} */ original, /** @type {number} */ i) => {
    if (i < parts.length) parts[i] = original.type === undefined ? { ...parts[i], ...original } : original;
  });
  for (const [key, value] of Object.entries(own)) if (isDefault(key, value)) delete own[key];
  const { provider_options, ...rest } = kept.message ?? {};
  const options = { ...provider_options, ...(Object.keys(own).length > 0 && { turnwheel: own }) };
  return {
    role: role === "tool_result" ? "tool" : role === "custom" ? "user" : role,
    content: role === "custom" ? "" : (kept.isText ?? role === "user") && parts.length === 1 && isPlainText(parts[0]) ? parts[0].text : parts,
    ...rest, ...(Object.keys(options).length > 0 && { provider_options: options }),
  };
}

/**
 * Returns the part for a block, if one exists. Members that do not fit into it are pushed to
 * `kept`, with the block's index.
 * @param {Part} block @param {number} at @param {Part[]} kept @returns {Part[]}
 */
function partOf({ ...rest }, at, kept) {
  const { type } = rest;
  /** @type {Part} */
  const part = { type };
  if (NAMES[type]) {
    for (const [ours, theirs] of NAMES[type]) {
      if (rest[ours] !== undefined) part[theirs] = rest[ours];
      delete rest[ours];
    }
    // A history written by the host may lack them.
    if (type === "tool_call") part.arguments ??= {};
    delete rest.type;
  } else if (type === "image" && rest.data !== undefined) {
    part.url = `data:${rest.mimeType}${BASE64}${rest.data}`;
    for (const key of ["type", "mimeType", "data"]) delete rest[key];
  }
  if (Object.values(rest).some((value) => value !== undefined)) kept.push({ ...rest, at });
  return rest.type === undefined ? [part] : [];
}

/** @param {Part} block */
const isPlainText = (block) => block.type === "text" && Object.entries(block).every(([key, value]) => key === "type" || key === "text" || value === undefined);

/**
 * Whether a reader assumes this value anyway when the key is missing.
 * @param {string} key @param {unknown} value @returns {boolean}
 */
function isDefault(key, value) {
  if (value === undefined) return true;
  if (key === "usage") return Object.entries(value ?? {}).every(([part, count]) => isDefault(part, count));
  return /^(?:timestamp|input|output|cacheRead|cacheWrite|total)$/.test(key) ? value === 0 : /^(?:provider|model)$/.test(key) ? value === "" : key === "isError" && value === false;
}
