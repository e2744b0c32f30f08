// @ts-check
// Plays the set `checkpoint`: what `Agent.restore` reads, and what `agent.checkpoint` writes.

import { Agent, scripted } from "../../../pkg/entry/node.js";
import { isObject } from "./policy.mjs";

/** The code of every checkpoint that is refused is `misuse`, its words are the package's; between two runs there is no id of one. */
export const HIDDEN = ["kind", "message", "run_id"];

/** Why a case cannot be played by the package. @param {any} input @returns {string | undefined} */
export function unreachable({ payload_hex: hex, op, payload, messages, metadata = null }) {
  if (hex !== undefined) return "a checkpoint is a text or an object: bytes are the host's to decode";
  const given = op === "serialize" ? { messages, metadata } : parsed(payload);
  if (given?.metadata !== undefined && !isObject(given.metadata)) return "the package keeps its own state in the metadata, which is an object";
  const isSeveral = (/** @type {any} */ { content }) => Array.isArray(content) && content.length > 1 && content.some(({ type }) => type === "tool_result");
  if (Array.isArray(given?.messages) && given.messages.some(isSeveral)) return "a result is a message of its own: one with more in it becomes several";
  return undefined;
}

/** @param {string} payload */
function parsed(payload) {
  try {
    return JSON.parse(payload);
  } catch {
    return undefined;
  }
}

/** @param {any} input */
export async function play({ op, payload, run_id: runId = null, messages, metadata = null }) {
  if (op === "serialize") return { json: await writtenBy({ version: 1, format: "stakai_message_v1", run_id: runId, messages, metadata }) };
  try {
    return { ok: asReadByOthers(await writtenBy(payload)) };
  } catch (/** @type {any} */ error) {
    return { err: { message: error.message } };
  }
}

/** The checkpoint of the agent that a checkpoint makes, without what the package keeps in addition. @param {any} checkpoint */
async function writtenBy(checkpoint) {
  const agent = await Agent.restore(checkpoint, { model: scripted([]) });
  const { metadata: { turnwheel: _, ...metadata }, messages, ...envelope } = agent.checkpoint();
  return { ...envelope, messages: messages.map(withoutOurs), metadata };
}

/** @param {any} message */
function withoutOurs({ provider_options: options, ...message }) {
  const { turnwheel: _, ...others } = options ?? {};
  return Object.keys(others).length > 0 ? { ...message, provider_options: others } : message;
}

/** An envelope as a reader sees it that drops unknown fields; the package keeps them. @param {any} envelope */
function asReadByOthers(envelope) {
  const { version, format, run_id: runId, messages, metadata } = envelope;
  return { version, format, run_id: runId, messages: messages.map((/** @type {any} */ message) => pick(message, ["role", "content", "name", "provider_options"])), metadata };
}

/** @param {any} value @param {string[]} keys */
const pick = (value, keys) => Object.fromEntries(keys.filter((key) => value[key] !== undefined && value[key] !== null).map((key) => [key, value[key]]));
