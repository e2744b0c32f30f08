// @ts-check
// The format of checkpoints (CheckpointEnvelopeV1), whose messages every reader of the format understands. The native
// half is src/checkpoint/ of the crate; each half reads what the other writes.

/** @import { BudgetQuestion, AgentEvent, AgentMessage, Checkpoint, JsonValue, RunOptions, ToolCallBlock, TurnOptions, ToolResultMessage, Usage } from "../index.js" */
/**
 * A run in a checkpoint, as far as the facade reads it.
 * @typedef {object} EngineRunState
 * @property {string} runId
 * @property {number} turnIndex
 * @property {{ open: boolean, messageOpen: boolean }} turn
 * @property {{ kind: string, question?: BudgetQuestion, place?: number, calls?: { callId: string, status: string, result?: ToolResultMessage }[] }} phase
 * @property {{ entries?: { state: string, call?: ToolCallBlock }[] }} [table] of approvals
 */
/**
 * The engine's own state in a checkpoint, as far as the facade reads it. The rest is the engine's business.
 * @typedef {object} EngineState
 * @property {number} [version]
 * @property {string} [sessionId]
 * @property {Usage | undefined} [usage]
 * @property {{ [key: string]: JsonValue }} [session] the session state
 * @property {{ [key: string]: JsonValue }} [changes]
 * @property {object[]} [mail] commands that wait
 * @property {AgentMessage[] | null} [prompts] of a run that has not begun
 * @property {TurnOptions & Pick<RunOptions, "metadata">} [options] of a run that has not begun
 * @property {EngineRunState} [run]
 * @property {AgentEvent[]} [untold] events that were never delivered
 * @property {{ [callId: string]: Checkpoint }} [children] the agents inside the calls that run
 * @property {AgentMessage[]} [appended] messages that belong to the history and are not in it yet
 */
/** @typedef {EngineState & { runId: string | undefined }} RestoredRun */
/** @typedef {Record<string, unknown> & { metadata?: object }} OtherFields */
/**
 * A message or a part of one, as it is in the checkpoint. What other engines wrote is not known.
 * @typedef {Record<string, any>} Part
 */

export const FORMAT = "stakai_message_v1";
/** The version of the engine's own state under `metadata.turnwheel`. */
export const STATE_VERSION = 1;
/** The kind of a custom message that wraps a message of another engine with no equivalent here. */
export const FOREIGN = "stakai_message";
/** Marks what another engine wrote into a message and this one only preserves. Not part of the JSON. */
export const KEPT = Symbol.for("turnwheel.kept");
export const BASE64 = ";base64,";

/**
 * Block types that map to parts with other member names, as [ours, theirs].
 * @type {Record<string, [string, string][]>}
 */
export const NAMES = {
  text: [["text", "text"]],
  tool_call: [["callId", "id"], ["toolName", "name"], ["arguments", "arguments"], ["metadata", "metadata"]],
};

/** Returns a UUID in its canonical form. @param {unknown} id */
export function uuidOf(id) {
  const digits = typeof id === "string" && /^(?:urn:uuid:)?\{?([\da-f]{8}-?[\da-f]{4}-?[\da-f]{4}-?[\da-f]{4}-?[\da-f]{12})\}?$/i.exec(id);
  if (!digits) return;
  return /** @type {string} */ (digits[1]).toLowerCase().replaceAll("-", "").replace(/(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

/** What an answer stopped for, if it does not say. @param {Part[]} parts */
export const defaultStopReason = (parts) => (parts.some((part) => part.type === "tool_call") ? "tool_use" : "stop");
