// @ts-check
// Generated from www/npm/engine/src/protocol.rs: `WRITE_PROTOCOL=1 cargo test -p turnwheel-npm`.
// The words that the engine and the facade share.

// The kinds of entries of a batch. Unless stated otherwise the text comes first, the number after the semicolon.

/** A piece of text; the block. */
export const TEXT = 1;

/** A piece of thinking; the block. */
export const THINKING = 2;

/** A piece of a call's arguments; the block. */
export const ARGUMENTS = 3;

/** The streaming block belongs to this call, whose id is the preceding string: the tool's name; the block. */
export const CALL = 4;

/** An event as JSON. */
export const EVENT = 5;

/** A message, as JSON, was appended to the history. */
export const APPEND = 6;

/** The message of the last `message_end` was appended to the history. */
export const APPEND_ANSWER = 7;

/** The result of this call was appended to the history. */
export const APPEND_RESULT = 8;

/** The history was truncated; how many messages it keeps. */
export const TRUNCATE = 9;

/** A message from before the truncation was appended to the history; its index there. */
export const COPY = 10;

/** An effect starts, as JSON; its slot. */
export const EFFECT = 11;

/** An effect is cancelled; its slot. */
export const CANCEL = 12;

/** The fate of a posted message: the turn, or nothing if it was not delivered; the receipt. */
export const RECEIPT = 13;

/** The run is over; nothing follows. The text is the structured output, if there is one. */
export const END = 14;

/** `message_end` with the last answer in the history. */
export const MESSAGE_END = 15;

/** `tool_execution_end` with a result that was already sent; the text is the call's id. */
export const TOOL_END = 16;

/** `turn_end` as JSON. */
export const TURN_END = 17;

/** `agent_end` as JSON, whose messages are followed by the last messages of the history; how many of them. */
export const AGENT_END = 18;

/** `tool_calls_proposed` with the calls of the last answer in the history. */
export const PROPOSED = 19;

/** `tool_execution_start` with the call's own arguments; the text is the call's id. */
export const TOOL_START = 20;

/** `turn_start`; the turn. */
export const TURN_START = 21;

/** `message_start`. */
export const MESSAGE_START = 22;

/**
 * Calls that start together. Each is announced in turn, until somebody posts anything; then `run_started` is
 * told how many were. Always the last entry. 0: the ids of the calls are the preceding strings; 1: a JSON list
 * of ids, or of whole `tool_execution_start` events where the arguments differ from the model's.
 */
export const STARTS = 23;

/** A string for the next entry of another kind. */
export const STRING = 24;

/** A request starts, as JSON; its slot. */
export const HTTP = 25;

/** A tool call starts, with the tool's name as the preceding string: the call's id; its slot. */
export const TOOL = 26;

/**
 * `turn_end` with the last answer in the history and the results of calls, whose ids are the preceding
 * strings: the reason; the turn.
 */
export const TURN_ENDED = 27;

/**
 * A tool result with a single text was appended to the history. Preceding strings: the call's id, the tool's
 * name, the text. The text of this entry is the time.
 */
export const APPEND_TEXT = 28;

/** What follows is of this time, in milliseconds: that of the journal, not of the clock. */
export const TIME = 29;

/**
 * What the engine asks for, each answered at its slot.
 * @typedef {"http" | "stream" | "tool" | "key" | "approve" | "hook" | "prepareTurn" | "transform" | "compact" | "steering" | "followUp" | "sleep" | "step" | "record" | "wait" | "backOff" | "state" | "abort"} EffectKind
 */

/**
 * The synchronous rules of the host, which the engine calls inside a step.
 * @typedef {"convertToLlm" | "transformContext" | "preTurn" | "preDispatch" | "postTurn" | "postLoop" | "steering" | "followUp" | "dynamicSystemPrompt" | "resultTexts" | "retry" | "toolExecution" | "requiresApproval"} RuleName
 */

/**
 * The options that may be functions, or hold some; the engine is told which do.
 * @typedef {"retry" | "toolExecution" | "compaction" | "summarize" | "resultTexts"} OptionPart
 */

/** The functions among the options; the engine is told which are set. */
export const FUNCTIONS = /** @type {const} */ (["convertToLlm", "transformContext", "asyncTransformContext", "getApiKey", "getSteeringMessages", "getFollowUpMessages", "approveTool", "dynamicSystemPrompt", "prepareTurn"]);

/** The stages at which hooks are called. */
export const STAGES = /** @type {const} */ (["beforeInference", "afterInference", "beforeToolExecution", "afterToolExecution", "onError"]);

/** Where policies decide. */
export const POLICIES = /** @type {const} */ (["preTurn", "preDispatch", "postTurn", "postLoop"]);

/** The causes of results that no tool wrote. */
export const CAUSES = /** @type {const} */ (["unknown_tool", "invalid_arguments", "incomplete", "rejected", "denied", "skipped", "policy_stop", "steering", "aborted", "transfer", "timeout", "threw", "interrupted", "filtered", "budget"]);

/** The kinds of pieces that a host's `streamFn` yields. */
export const DELTAS = { text_delta: 1, thinking_delta: 2, tool_call_delta: 3 };

/** The engine's own tool for structured answers. */
export const OUTPUT_TOOL = "__structured_output";
