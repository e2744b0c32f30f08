// @ts-check
// Ends a run whose events stop before its end: what is open is closed as the engine would have done it, so that
// every start has its end.

import { AgentError } from "../errors/errors.js";
import { callsOf, lastText } from "./blocks.js";
import { noUsage } from "./usage.js";

/** @import { AgentEvent, AgentResult, AssistantMessage, ErrorInfo, Model, ToolCallBlock, ToolResultMessage } from "../index.js" */
/** @import { AgentEnd, Fold } from "./fold.js" */
/**
 * How a run broke. `model` is the one that was asked, if that is known.
 * @typedef {{ runId: string, error: ErrorInfo, reason: "error" | "aborted", timestamp: number, model?: Model }} Break
 */

/**
 * Ends the open turn, if there is one: its message, its calls without a result, the turn itself.
 * @param {Fold} fold @param {Break} broken @param {(event: AgentEvent) => void} emit takes the event into the fold, and delivers it
 */
export function closeTurn(fold, broken, emit) {
  const { turn } = fold;
  if (!turn) return;
  const { runId, timestamp: at } = broken;
  const message = (turn.answered && fold.answer) || brokenAnswer(fold, broken);
  if (!turn.answered) {
    if (!turn.messageStarted) emit({ type: "message_start", runId, at });
    emit({ type: "message_end", runId, at, message });
  }
  const toolResults = callsOf(message).map((call) => {
    const known = fold.results.get(call.callId);
    if (known) return known;
    const result = abortedResult(call, broken);
    emit({ type: "tool_execution_end", runId, at, callId: call.callId, toolName: call.toolName, result, isError: true });
    return result;
  });
  emit({ type: "turn_end", runId, at, turnIndex: turn.turnIndex, message, toolResults, reason: broken.reason });
}

/**
 * The answer as far as it had arrived, without calls: nobody knows whether their arguments are complete.
 * @param {Fold} fold @param {Break} broken @returns {AssistantMessage}
 */
function brokenAnswer({ partial }, { error, reason, timestamp, model }) {
  const content = partial.content().filter(({ type }) => type !== "tool_call");
  return { role: "assistant", content, provider: model?.provider ?? "", model: model?.id ?? "", usage: noUsage(), stopReason: reason, error, timestamp };
}

/** @param {ToolCallBlock} call @param {Break} broken @returns {ToolResultMessage} */
function abortedResult({ callId, toolName }, { error, timestamp }) {
  return { role: "tool_result", callId, toolName, content: [{ type: "text", text: error.message }], isError: true, cause: "aborted", timestamp };
}

/**
 * The result of a run that has ended.
 * @param {AgentEnd} end
 * @param {{ text?: string | undefined, output?: unknown, error?: AgentError | undefined }} [known] what the event
 * does not say: the structured answer and its JSON, the very error
 * @returns {AgentResult}
 */
export function resultOf({ runId, messages, usage, turns, stopReason, error }, known = {}) {
  return {
    runId, text: known.text || lastText(messages), messages, usage, turns, stopReason,
    ...(known.text && { output: known.output }),
    ...(error && { error: known.error ?? new AgentError(error) }),
  };
}
