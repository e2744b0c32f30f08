// @ts-check
// Reads checkpoints.

import { AgentError, flawOf as flawOfJson, isBase64, isSealed, kindOf, MIME_TYPE, misuse, noUsage, plainCopy, textOf } from "../shared.js";
import { defaultStopReason, FOREIGN, FORMAT, KEPT, NAMES, STATE_VERSION, uuidOf } from "./format.js";

/** @import { AgentMessage } from "../index.js" */
/** @import { EngineState, OtherFields, Part } from "./format.js" */
/** @typedef {{ runId: string | undefined, messages: AgentMessage[], state: EngineState | undefined, otherFields: OtherFields }} Read */

/** Reads from a checkpoint. What breaks on it has been damaged. @template T @param {() => T} read @returns {T} */
export function reading(read) {
  try {
    return read();
  } catch (error) {
    throw AgentError.isInstance(error) || error instanceof RangeError ? error : invalid(textOf(error));
  }
}

/**
 * Reads a checkpoint, written by this engine or another. Nothing is used before all of it has been checked.
 * @param {unknown} given
 * @returns {Read}
 */
export function fromCheckpoint(given) {
  const { version, format, run_id, messages, metadata, ...fields } = parse(given);
  checkEnvelope({ version, format, run_id, messages, metadata });
  const { turnwheel, ...otherMetadata } = isObject(metadata) ? metadata : {};
  checkState(turnwheel);
  const read = readMessages(messages);
  const state = plainCopy(turnwheel);
  refuseArguments(state?.run?.phase, read);
  return { runId: turnwheel?.run?.runId ?? uuidOf(run_id), messages: read, state, otherFields: { ...fields, metadata: otherMetadata } };
}

/**
 * The engine refuses open calls with arguments that it would be given otherwise than they are shown: Infinity is null in JSON.
 * @param {any} phase of the run @param {AgentMessage[]} messages
 */
function refuseArguments(phase, messages) {
  const answer = messages[phase?.place ?? -1];
  if (answer?.role !== "assistant") return;
  const calls = Array.isArray(phase.calls) ? phase.calls : [];
  for (const block of answer.content) {
    if (block.type !== "tool_call") continue;
    const call = calls.find((/** @type {any} */ one) => one?.callId === block.callId);
    if (call?.status === "done") continue;
    const flaw = flawOfJson([call?.given, call?.arguments, phase.ownArguments?.[block.callId], block.arguments], "it")?.replace(/^it\[\d\]/, "`arguments`");
    if (flaw) phase.faults = { ...phase.faults, [block.callId]: flaw };
  }
}

/**
 * A state as the engine reads it: the agents inside its calls have no envelopes there. What cannot be read stays as it is.
 * @param {EngineState | undefined} state @returns {object | undefined}
 */
export function withChildren(state) {
  if (!state?.children) return state;
  const children = Object.entries(state.children).map(([callId, given]) => {
    try {
      const { messages, state } = fromCheckpoint(given);
      return [callId, { messages, state: withChildren(state) }];
    } catch {
      return [callId, given];
    }
  });
  return { ...state, children: Object.fromEntries(children) };
}

/** @param {unknown} given @returns {Part} */
function parse(given) {
  let value = /** @type {any} */ (given);
  if (typeof given === "string") {
    try {
      value = JSON.parse(given);
    } catch (error) {
      throw invalid(/** @type {Error} */ (error).message);
    }
  }
  if (typeof value !== "object" || value === null) throw misuse(`a checkpoint must be an object or its JSON, got ${kindOf(value)}`);
  if (value instanceof Promise) throw misuse("a checkpoint must be an object or its JSON, got a promise; await it first");
  if (isDeep(value)) throw invalid(`it is nested deeper than ${MAX_DEPTH}`);
  if (isSealed(value)) throw misuse("the checkpoint is sealed; unseal it first: await Agent.restore(await unseal(sealed, key), options), with `unseal` of turnwheel/stores");
  return Array.isArray(value) ? { messages: value, metadata: { migrated_from: "legacy_messages_array" } } : value;
}

/** How deep a checkpoint may be: the engine reads less, but an agent may be inside another. */
const MAX_DEPTH = 500;

/** Whether a value is nested too deep, found without a call inside a call. @param {object} value */
function isDeep(value) {
  let level = new Set([value]);
  for (let depth = 0; level.size > 0 && depth <= MAX_DEPTH; depth++) {
    level = new Set([...level].flatMap((each) => Object.values(each).filter((inner) => typeof inner === "object" && inner !== null)));
  }
  return level.size > 0;
}

/** @param {Part} envelope */
function checkEnvelope({ version, format, run_id, messages, metadata }) {
  const isOld = !(Number.isInteger(version) && version >= 0);
  if (!isOld && version !== 1) throw misuse(`unsupported checkpoint version: ${version}`);
  if (isOld && !Array.isArray(messages)) throw misuse("checkpoint payload is missing version");
  if (!isOld && typeof format !== "string") throw invalid("`format` must be a text");
  if (!isOld && run_id !== null && run_id !== undefined && !uuidOf(run_id)) throw invalid("`run_id` must be a UUID or null");
  if (!Array.isArray(messages)) throw invalid("`messages` must be a list");
  if (!isOld && metadata === undefined) throw invalid("`metadata` is missing");
  if (!isOld && format !== FORMAT) throw misuse(`unsupported checkpoint format: ${format}`);
}

/** @param {any} turnwheel the engine's own state, if there is one */
function checkState(turnwheel) {
  if (turnwheel !== undefined && turnwheel?.version !== STATE_VERSION) {
    throw invalid(`metadata.turnwheel is of version ${JSON.stringify(turnwheel?.version) ?? "none"}, this turnwheel reads ${STATE_VERSION}; install the newer one`);
  }
  if (typeof (turnwheel?.sessionId ?? "") !== "string") throw invalid("`sessionId` must be a text");
  const undelivered = turnwheel?.untold ?? [];
  if (!Array.isArray(undelivered) || !undelivered.every((event) => typeof event?.type === "string")) throw invalid("`untold` must be a list of events");
}

/** @param {string} reason */
const invalid = (reason) => misuse(`invalid checkpoint payload: ${reason}`);

/** @param {unknown[]} messages @returns {AgentMessage[]} */
function readMessages(messages) {
  /** The tool name of each call: other engines leave it out of the results. @type {Map<string, string>} */
  const tools = new Map();
  return messages.flatMap((message, at) => {
    const flaw = flawOf(message);
    if (flaw) throw invalid(`message ${at}: ${flaw}`);
    try {
      return /** @type {AgentMessage[]} */ (readMessage(/** @type {Part} */ (message), tools));
    } catch (error) {
      throw invalid(`message ${at}: ${textOf(error)}`);
    }
  });
}

/** The members that each part requires. @type {Record<string, string[]>} */
const PARTS = { text: ["text"], image: ["url"], tool_call: ["id", "name"], tool_result: ["tool_call_id"] };

/** Returns what is wrong with a message, or nothing if it is valid. @param {any} message @returns {string | undefined} */
function flawOf(message) {
  const { role, name, content } = message ?? {};
  if (!["system", "user", "assistant", "tool"].includes(role)) return role ? `unknown role \`${role}\`` : "it has no `role`";
  if (name !== undefined && name !== null && typeof name !== "string") return "`name` must be a text";
  if (typeof content === "string") return;
  if (!Array.isArray(content)) return "`content` must be a text or a list";
  for (const part of content) {
    const needs = Object.hasOwn(PARTS, String(part?.type)) ? PARTS[part.type] : undefined;
    if (!needs) return part?.type ? `unknown part \`${part.type}\`` : "a part has no `type`";
    const missing = needs.find((key) => typeof part[key] !== "string") ?? { tool_call: "arguments", tool_result: "content" }[/** @type {string} */ (part.type)];
    if (missing && (part[missing] === undefined || needs.includes(missing))) return `a part has no \`${missing}\``;
    if (part.type === "image" && !["low", "high", "auto", undefined, null].includes(part.detail)) return "`detail` of an image must be `low`, `high` or `auto`";
  }
}

/**
 * Reads one message. It becomes several where results of calls are in it.
 * @param {Part} message @param {Map<string, string>} tools @returns {Part[]}
 */
function readMessage(message, tools) {
  const { role, content, provider_options, ...rest } = message;
  const { turnwheel, ...options } = provider_options ?? {};
  const own = { ...turnwheel };
  if (role === "user" && own.kind !== undefined) return [{ role: "custom", timestamp: 0, ...own }];
  /** @type {Part[]} */
  const parts = typeof content === "string" ? [{ type: "text", text: content }] : content;
  const results = role === "assistant" ? [] : parts.filter(({ type }) => type === "tool_result");
  if (role === "system" || (role === "tool" && results.length === 0)) return [{ role: "custom", kind: FOREIGN, data: message, timestamp: 0 }];
  const keeper = new Keeper(own, { ...rest, ...(Object.keys(options).length > 0 && { provider_options: options }) }, typeof content === "string");
  const messages = results.map((part) => readResult(part, tools, keeper));
  const remaining = results.length > 0 ? parts.filter(({ type }) => type !== "tool_result") : parts;
  if (results.length === 0 || remaining.length > 0) messages.push(readBlocks(role, remaining, tools, keeper));
  return messages;
}

/** What a message brings along: its own members, and those of other engines, which must be preserved. */
class Keeper {
  /** @param {Part} own @param {Part} others @param {boolean} isText whether the content was a text: other engines tell it from a list */
  constructor(own, others, isText) {
    this.isText = isText;
    /** Both go to the first message that is made of it. */
    this.own = own;
    this.others = others;
  }

  /**
   * Attaches what must be preserved.
   * @param {Part} message @param {Part[]} extra of its parts @param {boolean} [json] whether its content is JSON
   */
  attach(message, extra, json) {
    const { others } = this;
    const kept = {
      ...(Object.keys(others).length > 0 && { message: others }),
      ...(extra.some((part) => Object.keys(part).length > 0) && { parts: extra }), ...(json && { json }),
      ...(this.isText !== (message.role === "user") && { isText: this.isText }),
    };
    this.others = {};
    this.own = {};
    return Object.keys(kept).length > 0 ? Object.defineProperty(message, KEPT, { value: kept }) : message;
  }
}

/** @param {Part} part @param {Map<string, string>} tools @param {Keeper} keeper @returns {Part} */
function readResult({ type: _, tool_call_id: callId, content, ...extra }, tools, keeper) {
  const { parts: isOurs, ...fields } = keeper.own;
  const json = !isOurs && typeof content !== "string";
  const blocks = isOurs ? content : [{ type: "text", text: json ? JSON.stringify(content) : content }];
  return keeper.attach({ role: "tool_result", toolName: tools.get(callId) ?? "", isError: false, timestamp: 0, ...fields, callId, content: blocks }, [extra], json);
}

/** @param {string} role @param {Part[]} parts @param {Map<string, string>} tools @param {Keeper} keeper @returns {Part} */
function readBlocks(role, parts, tools, keeper) {
  const { blocks = [], ...fields } = keeper.own;
  const converted = parts.map(blockOf);
  const content = converted.map(([block]) => block);
  for (const { at, layout, ...kept } of blocks) {
    if (kept.type !== undefined) content.splice(at, 0, kept);
    else if (content[at] && layout === undefined) Object.assign(content[at], kept);
  }
  const defaults = role === "assistant" && { provider: "", model: "", usage: undefined, stopReason: defaultStopReason(parts) };
  const message = { role, ...defaults, timestamp: 0, ...fields, content };
  if (role === "assistant") message.usage = { ...noUsage(), ...fields.usage };
  for (const block of content) if (block.type === "tool_call") tools.set(block.callId, block.toolName);
  return keeper.attach(message, converted.map(([, extra]) => extra));
}

/**
 * Returns the block for a part, and the members that have no equivalent. If these include `type`,
 * they are the whole part.
 * @param {Part} part @returns {[Part, Part]}
 */
function blockOf({ type, ...rest }) {
  /** @type {Part} */
  const block = { type };
  if (Object.hasOwn(NAMES, type)) {
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
  // What is not content that the engine takes stays a mention, and comes back as it was.
  if (mimeType !== undefined && MIME_TYPE.test(mimeType) && isBase64(data)) {
    const { url, ...extra } = rest;
    return [{ type: "image", mimeType, data }, extra];
  }
  return [{ type: "text", text: rest.url ? `[${type}: ${rest.url}]` : `[${type}]` }, { type, ...rest }];
}

/** @param {unknown} value */
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** Other engines keep arguments as text. @param {string} text */
function objectOf(text) {
  try {
    const parsed = JSON.parse(text);
    if (isObject(parsed)) return parsed;
  } catch {
    // Not JSON: no arguments.
  }
  return {};
}
