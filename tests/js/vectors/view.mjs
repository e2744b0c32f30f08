// @ts-check
// The package's events and messages under the names of the vectors' peer.

import { peek } from "../../../pkg/entry/node.js";

/** The peer's texts for results that no tool wrote, as the option `resultTexts`. */
export const RESULT_TEXTS = {
  steering: () => SKIPPED, skipped: () => SKIPPED, aborted: () => "TOOL_CALL_CANCELLED",
  rejected: () => "Tool call rejected by user", denied: () => "Tool call rejected by user",
};
const SKIPPED = '{"skipped":"Skipped due to steering update"}';

/** Messages of the vectors as those of the package. @param {any[]} messages @returns {any[]} */
export const fromPeer = (messages) => peek(/** @type {any} */ ({ version: 1, format: "stakai_message_v1", run_id: null, messages, metadata: {} })).messages;

/** What a checkpoint writes of messages, without what the package keeps in addition. @param {any} checkpoint @param {readonly any[]} messages those that it wrote */
export function asPeer(checkpoint, messages) {
  const causes = new Map(messages.filter(({ role }) => role === "tool_result").map(({ callId, cause }) => [callId, cause]));
  return checkpoint.messages.map((/** @type {any} */ { provider_options: options, ...message }) => {
    const { turnwheel, ...others } = options ?? {};
    const kept = Object.keys(others).length > 0 ? { ...message, provider_options: others } : message;
    return message.role === "tool" ? { ...kept, content: kept.content.map((/** @type {any} */ part) => asWritten(part, causes.get(part.tool_call_id))) } : kept;
  });
}

/** The peer writes JSON for a skipped call; here every result is a text. @param {any} part @param {string} cause */
function asWritten(part, cause) {
  return cause === "steering" || cause === "skipped" ? { ...part, content: JSON.parse(part.content) } : part;
}

/**
 * Messages as a wire sends them: neighbours of one role are one message. The peer's reducer does that, here the wires do.
 * @param {any[]} messages @returns {any[]}
 */
export function joined(messages) {
  const partsOf = (/** @type {any} */ content) => (typeof content === "string" ? [{ type: "text", text: content }] : content);
  /** @type {any[]} */
  const sent = [];
  for (const message of messages) {
    const last = sent.at(-1);
    if (last?.role === message.role) last.content = [...partsOf(last.content), ...partsOf(message.content)];
    else sent.push({ ...message });
  }
  return sent;
}

/** Whether an answer says something: one side may keep those that do not, and the other not. @param {any} message */
export const hasContent = ({ role, content }) => role !== "assistant" || content.some((/** @type {any} */ { type, text }) => (type === "text" ? text !== "" : type !== "thinking"));

/** @param {any[]} messages */
export const roles = (messages) => messages.map(({ role }) => role);

/** @param {any} usage */
export const tokens = ({ input, output, total }) => ({ prompt_tokens: input, completion_tokens: output, total_tokens: total });

/** @param {string} reason */
export const stopWord = (reason) => (reason === "aborted" ? "cancelled" : reason);

/** @param {any} message */
const textOf = ({ content }) => content.filter((/** @type {any} */ { type }) => type === "text").map((/** @type {any} */ { text }) => text).join("");

/** The peer's word for a kind of error, and what it writes before the text. @param {any} error */
export function kindOf({ code, phase }) {
  if (code === "hook") return ["hook", "hook failed: "];
  if (code === "tool") return ["tool_execution", "tool execution failed: "];
  return phase === "compaction" ? ["compaction", "compaction failed: "] : ["inference", "inference failed: "];
}

/** The text of an error without the engine's own words before it. @param {any} error */
function bare(error) {
  const { message } = error;
  const [kind] = kindOf(error);
  if (kind === "hook") return message.replace(/^a hook failed: /, "");
  return kind === "inference" ? message : message.replace(/^.*? failed: /s, "");
}

/** @param {any} error */
export const whole = (error) => kindOf(error)[1] + bare(error);

/** Says of each event what the peer reports in its place. */
export class View {
  #turn = 0;
  /** The last answer: the peer reports it once its hooks have been called. @type {any} */ #answer;
  /** Whether the provider itself ended an answer with an error, which the peer treats like any other end. */
  finishedWithError = false;
  /** Why the model refused the conversation as too long. */
  overflow = "";

  /** @param {any} event @returns {any[]} */
  of(event) {
    const entries = [];
    const answer = this.#answer;
    this.#answer = undefined;
    if (answer) {
      const text = textOf(answer);
      if (text !== "") entries.push({ event: "TextComplete", text });
      entries.push({ event: "UsageReport", turn: this.#turn, usage: tokens(answer.usage) });
    }
    return [...entries, ...this.#entries(event)];
  }

  /** @param {any} event @returns {any[]} */
  #entries(event) {
    switch (event.type) {
      case "agent_start": return [{ event: "RunStarted" }];
      case "turn_start":
        this.#turn = event.turnIndex + 1;
        return [{ event: "TurnStarted", turn: this.#turn }];
      case "message_update": {
        const { type, delta } = event.delta;
        return type === "tool_call" ? [] : [{ event: type === "text" ? "TextDelta" : "ThinkingDelta", delta }];
      }
      case "message_end":
        if (!["error", "aborted"].includes(event.message.stopReason) || this.finishedWithError) this.#answer = event.message;
        return [];
      case "tool_calls_proposed": return proposed(event.calls);
      case "tool_execution_start": return [{ event: "ToolExecutionStarted", tool_call_id: event.callId, tool_name: event.toolName }];
      case "tool_execution_end": return [ended(event.result)];
      case "turn_end": {
        const word = this.#finishWord(event.message, event.reason);
        return word === undefined ? [] : [{ event: "TurnCompleted", turn: this.#turn, finish_reason: word }];
      }
      case "context_compacted": return this.#compacted(event.report);
      case "retry_attempt": return [{ event: "RetryAttempt", attempt: event.attempt, delay_ms: event.delayMs, reason: event.reason }];
      case "agent_end": return [this.#end(event)];
      default: return [];
    }
  }

  /** The same turn goes on; the peer announces it again. @param {any} report */
  #compacted({ text, tokensBefore, tokensAfter }) {
    return [
      { event: "CompactionCompleted", tokens_before: tokensBefore, tokens_after: tokensAfter, truncated: text === "truncated" },
      { event: "TurnStarted", turn: this.#turn },
    ];
  }

  /** A call, hook or tool that failed ends the run but no turn; so does a call that was stopped before it answered. @param {any} message @param {string} reason */
  #finishWord(message, reason) {
    if (!message) return undefined;
    if (reason === "error") return this.finishedWithError ? "error" : undefined;
    if (reason === "aborted") return message.content.length === 0 ? undefined : "cancelled";
    if (reason === "complete") return message.stopReason === "length" ? "max_output_tokens" : "stop";
    return "tool_calls";
  }

  /** @param {any} event */
  #end({ stopReason, usage, turns, error }) {
    const failure = this.failure(stopReason, error);
    if (failure) return { event: "RunError", error: bare(failure), retryable: false };
    return { event: "RunCompleted", total_turns: turns, total_usage: tokens(usage), stop_reason: stopWord(stopReason) };
  }

  /** The error that ended the run, unless the peer treats it as an ordinary end. @param {string} stopReason @param {any} error */
  failure(stopReason, error) {
    return stopReason === "error" && !this.finishedWithError ? error : undefined;
  }
}

/** @param {any[]} calls */
function proposed(calls) {
  const shown = calls.map(({ callId, toolName, arguments: given, metadata }) => ({ id: callId, name: toolName, arguments: given, ...(metadata !== undefined && { metadata }) }));
  return [{ event: "ToolCallsProposed", tool_calls: shown }, { event: "WaitingForToolApproval", pending_tool_call_ids: calls.map(({ callId }) => callId) }];
}

/** @param {any} result */
function ended(result) {
  const call = { tool_call_id: result.callId, tool_name: result.toolName };
  const text = textOf(result);
  if (result.cause === "steering" || result.cause === "skipped") return { event: "ToolRejected", ...call, reason: JSON.parse(text).skipped };
  if (result.cause === "rejected" || result.cause === "denied") return { event: "ToolRejected", ...call, reason: text };
  return { event: "ToolExecutionCompleted", ...call, result: text, is_error: result.isError };
}
