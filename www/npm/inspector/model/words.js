// @ts-check
// Numbers and reasons in words, and texts of values. Nothing here knows of a page.

/** @import { AgentEvent, AgentMessage } from "../../index.js" */
/** @import { InspectorLog } from "./log.js" */

const WORDS = {
  completed: "completed", aborted: "stopped", error: "failed", max_turns: "stopped after the most turns allowed", policy_stop: "stopped by a policy",
  budget: "stopped, the budget is used up", transfer: "handed over", complete: "answered", tools_executed: "tools done", steering_interrupt: "steered",
  tool_use: "asks for tools", stop: "finished", length: "cut at the length limit", content_filter: "held back by a filter", refusal: "refused", pause: "paused",
  text: "words", tool_call: "tool call", thinking: "thinking", waiting: "waits for the first word",
};

/** A reason or a kind, for people. @param {string | undefined} reason */
export const inWords = (reason = "") => WORDS[/** @type {keyof typeof WORDS} */ (reason)] ?? reason;

/** 12 ms, 0.45 s, 12.3 s, 2 min 5 s, 3 h 4 min. @param {number} ms */
export function duration(ms) {
  const seconds = Math.max(0, ms) / 1000;
  if (seconds < 0.1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 10) return `${seconds.toFixed(2)} s`;
  if (seconds < 120) return `${seconds.toFixed(1)} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

/** 20,000. @param {number} value */
export const grouped = (value) => String(value).replace(/\B(?=(\d{3})+$)/g, ",");

/** One of 1 event, several events. @param {number} count @param {string} name */
export const counted = (count, name) => `${grouped(count)} ${name}${count === 1 ? "" : "s"}`;

/** Costs are in the unit of the prices. @param {number} value */
export const cost = (value) => (value >= 1 || value === 0 ? value.toFixed(2) : value.toPrecision(2));

/** The text of an output of a tool, of a message, or of anything else. @param {any} value @returns {string} */
export function textOf(value) {
  if (value === undefined || value === null) return "";
  if (typeof value === "string") return value;
  if (Array.isArray(value.content)) return value.content.map(blockText).join("\n");
  return JSON.stringify(value) ?? "";
}

/** @param {any} block @returns {string} */
export function blockText(block) {
  switch (block?.type) {
    case "text": return String(block.text);
    case "thinking": return block.redacted ? "" : String(block.thinking);
    case "tool_call": return `${block.toolName} ${JSON.stringify(block.arguments)}`;
    case "image": return "[image]";
    case "file": return `[file ${block.name ?? block.mimeType}]`;
    case "raw": return JSON.stringify(block.data);
  }
  return JSON.stringify(block) ?? "";
}

/** @param {AgentMessage} message */
export const messageText = (message) => (message.role === "custom" ? `${message.kind} ${textOf(message.data)}` : textOf(message));

/** The first line, or as much of it as fits. @param {string} text @param {number} [room] */
export function short(text, room = 120) {
  // Only what may be shown is looked at: the text may be megabytes long.
  const [line = ""] = text.slice(0, room + 1).trimStart().split("\n");
  return line.length > room ? `${line.slice(0, room - 1)}…` : line;
}

/** What happened, in a few words. @param {AgentEvent} event @returns {string} */
export function summary(event) {
  switch (event.type) {
    case "agent_end": return [inWords(event.stopReason), event.error?.message].filter(Boolean).join(": ");
    case "turn_start": return `turn ${event.turnIndex}`;
    case "turn_end": return `turn ${event.turnIndex}: ${inWords(event.reason)}`;
    case "message_update": return `${event.delta.type === "tool_call" ? `${event.delta.toolName} ` : ""}${event.delta.delta}`;
    case "message_reset": return event.reason;
    case "message_end": return `${inWords(event.message.stopReason)}: ${short(textOf(event.message))}`;
    case "tool_execution_start": return `${event.toolName} ${JSON.stringify(event.arguments)}`;
    case "tool_execution_update": return `${event.toolName}: ${textOf(event.update)}`;
    case "tool_execution_end": return `${event.toolName}${event.isError ? " failed" : ""}: ${textOf(event.result)}`;
    case "context_compacted": return `${event.report.droppedCount} messages, ${grouped(event.report.tokensBefore)} → ${grouped(event.report.tokensAfter)} tokens`;
    case "before_llm_call": return `${event.model}, ${counted(event.messages.length, "message")}`;
    case "retry_attempt": return `attempt ${event.attempt} failed: ${event.reason}`;
    case "model_fallback": case "model_switched": return `${event.from} → ${event.to}`;
    case "tool_calls_proposed": return event.calls.map(({ toolName }) => toolName).join(", ");
    case "tool_approval_requested": return `${event.toolName} ${JSON.stringify(event.arguments)}`;
    case "tool_approval_resolved": return `${event.toolName}: ${event.approved ? "approved" : "rejected"} by ${event.by}`;
    case "command_refused": return event.reason;
    case "transfer_initiated": return `to ${event.to}`;
    case "budget": return `${event.kind}: ${event.state === "warn" ? "nearly used up" : "used up"}, ${event.used} of ${event.limit}`;
    case "subagent_event": return `${event.event.type} ${summary(event.event)}`;
    case "custom": return `${event.name} ${textOf(event.payload)}`;
    case "state_changed": return Object.keys(event.changes).join(", ");
    case "run_resumed": return `turn ${event.turnIndex}`;
  }
  return "";
}

/** What the lanes show, in a sentence. @param {InspectorLog} log */
export function lanesInWords(log) {
  const { lanes, turns, runs, from, to } = log.lanes;
  const isRunning = runs.at(-1)?.end === Infinity;
  const names = lanes.filter(({ depth }) => depth === 0).map(({ name, rows }) => `${name} ${rows.reduce((sum, row) => sum + row.length, 0)}`);
  return `Lanes of ${runs.length === 1 ? "a run" : `${runs.length} runs`}, ${isRunning ? "running" : duration(to - from)}. ${turns.length} turns. ${names.join(", ")}. The arrow keys go from event to event; the tab “Table” says the same in words.`;
}
