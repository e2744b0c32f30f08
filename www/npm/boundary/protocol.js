// @ts-check
// The words that the engine and the facade share. Each is declared in Rust as well, and nowhere else here.

// The kinds of outbox entries. The bundler inlines these constants, so that the table in run/entries.js has plain
// numbers as its keys.

export const TEXT = 1;
export const THINKING = 2;
export const ARGUMENTS = 3;
export const CALL = 4;
export const EVENT = 5;
export const APPEND = 6;
export const APPEND_ANSWER = 7;
export const APPEND_RESULT = 8;
export const TRUNCATE = 9;
export const COPY = 10;
export const EFFECT = 11;
export const CANCEL = 12;
export const RECEIPT = 13;
export const END = 14;
export const MESSAGE_END = 15;
export const TOOL_END = 16;
export const TURN_END = 17;
export const AGENT_END = 18;
export const PROPOSED = 19;
export const TOOL_START = 20;
export const TURN_START = 21;
export const MESSAGE_START = 22;
export const STARTS = 23;
export const STRING = 24;
export const HTTP = 25;
export const TOOL = 26;
export const TURN_ENDED = 27;
export const APPEND_TEXT = 28;

/**
 * What the engine asks for (effects/effects.js).
 * @typedef {"http" | "stream" | "tool" | "key" | "approve" | "hook" | "transform" | "compact" | "steering" | "followUp" | "sleep"} EffectKind
 */

/**
 * The synchronous rules of the host, which the engine calls inside a step (rules/rules.js).
 * @typedef {"convertToLlm" | "transformContext" | "preTurn" | "preDispatch" | "postTurn" | "postLoop" | "steering" | "followUp"
 *   | "dynamicSystemPrompt" | "resultTexts" | "retry" | "toolExecution" | "requiresApproval"} RuleName
 */

/** The kinds of pieces that a host's `streamFn` sends. */
export const DELTAS = { text_delta: 1, thinking_delta: 2, tool_call_delta: 3 };

/** The functions among the options; the engine is told which are set. */
export const FUNCTIONS = /** @type {const} */ ([
  "convertToLlm", "transformContext", "asyncTransformContext", "getApiKey", "getSteeringMessages", "getFollowUpMessages",
  "approveTool", "dynamicSystemPrompt",
]);

/** The stages at which hooks are called. */
export const STAGES = /** @type {const} */ (["beforeInference", "afterInference", "beforeToolExecution", "afterToolExecution", "onError"]);

/** Where policies decide. */
export const POLICIES = /** @type {const} */ (["preTurn", "preDispatch", "postTurn", "postLoop"]);

/** The causes of results that no tool wrote. */
export const CAUSES = /** @type {const} */ ([
  "unknown_tool", "invalid_arguments", "incomplete", "rejected", "denied", "skipped", "policy_stop", "steering", "aborted",
  "transfer", "timeout", "threw", "interrupted",
]);

/** The engine's own tool for structured answers. */
export const OUTPUT_TOOL = "__structured_output";
