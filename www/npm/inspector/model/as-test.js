// @ts-check
// A run as a test: the answers of the model and the results of the tools, written down as code.

import { messageText, short, textOf } from "./words.js";

/** @import { AgentMessage, AssistantMessage, ToolResultMessage } from "../../index.js" */
/** @import { InspectorLog } from "./log.js" */

/** @param {unknown} value */
const code = (value) => JSON.stringify(value, null, 2);

/** A text within a comment, which ends where a line does: nothing that was said becomes code. @param {string} text */
const remark = (text) => text.replace(/[\n\r\u2028\u2029]+/g, " ");

/** An answer as an item of `scripted`. @param {AssistantMessage} message */
function itemOf({ content, stopReason }) {
  const join = (/** @type {string} */ type, /** @type {string} */ key) => content.filter((block) => block.type === type).map((block) => /** @type {any} */ (block)[key]).join("");
  const toolCalls = content.flatMap((block) => (block.type === "tool_call" ? [{ callId: block.callId, toolName: block.toolName, arguments: block.arguments }] : []));
  const [thinking, text] = [join("thinking", "thinking"), join("text", "text")];
  const isUsual = stopReason === (toolCalls.length > 0 ? "tool_use" : "stop");
  return { ...(thinking && { thinking }), ...((text || toolCalls.length === 0) && { text }), ...(toolCalls.length > 0 && { toolCalls }), ...(!isUsual && { stopReason }) };
}

/** What the tool returned. @param {ToolResultMessage} result */
function outputOf({ content, details, isError }) {
  const [first] = content;
  if (!isError && details === undefined && content.length === 1 && first?.type === "text") return first.text;
  return { content, ...(details !== undefined && { details }), ...(isError && { isError }) };
}

/**
 * A test of node:test of the run in which a moment lies.
 * @param {InspectorLog} log @param {number} n
 */
export function asTest(log, n) {
  const runIndex = Math.max(0, log.lanes.runs.findLastIndex((run) => run.n <= n));
  const [run, next] = [log.lanes.runs[runIndex], log.lanes.runs[runIndex + 1]];
  const end = log.frame(next ? next.n - 1 : log.end);
  const start = run ? log.frame(run.n - 1) : log.frame(log.first);
  const messages = end.messages;
  // The prompt may be in the history already when the first event comes.
  let from = Math.min(start.messageCount, messages.length);
  while (from > 0 && messages[from - 1]?.role === "user") from--;
  const before = messages.slice(0, from);
  const promptEnd = messages.findIndex(({ role }, index) => index >= from && role === "assistant");
  const prompts = messages.slice(from, promptEnd < 0 ? messages.length : promptEnd);
  const rest = promptEnd < 0 ? [] : messages.slice(promptEnd);
  const answers = /** @type {AssistantMessage[]} */ (rest.filter(({ role }) => role === "assistant"));
  const results = /** @type {ToolResultMessage[]} */ (rest.filter(({ role }) => role === "tool_result"));
  const names = [...new Set(answers.flatMap(({ content }) => content.flatMap((block) => (block.type === "tool_call" ? [block.toolName] : []))))];
  const said = rest.filter(({ role }) => role === "user" || role === "custom");
  const input = prompts.map((message) => (message.role === "user" && message.content.every(({ type }) => type === "text") ? textOf(message) : message));
  const isEnded = end.stopReason === "completed" || end.stopReason === "max_turns";
  const last = answers.at(-1) && itemOf(/** @type {AssistantMessage} */ (answers.at(-1)));
  const title = short(prompts.map((message) => messageText(/** @type {AgentMessage} */ (message))).join(" "), 70) || "a run";
  return `import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, scripted${names.length > 0 ? ", tool" : ""} } from "turnwheel";

// What the model answered.
const answers = ${code(answers.map(itemOf))};
${names.length === 0 ? "" : `
// What the tools returned, by call.
const results = ${code(Object.fromEntries(results.map((result) => [result.callId, outputOf(result)])))};
const tools = ${JSON.stringify(names)}.map((name) => tool({ name, description: name, parameters: { type: "object" }, execute: (_, { callId }) => results[callId] }));
`}${said.length === 0 ? "" : `\n// In the middle of the run was also said:\n${said.map((message) => `//   ${remark(short(messageText(message)))}`).join("\n")}\n`}
test(${JSON.stringify(title)}, async () => {
  const agent = new Agent({ model: scripted(answers)${names.length > 0 ? ", tools" : ""}${before.length > 0 ? `, messages: ${code(before)}` : ""} });
  const { stopReason, text } = await agent.${input.length > 0 ? `prompt(${input.length === 1 ? code(input[0]) : code(input)})` : "continue()"};
${isEnded ? `  assert.equal(stopReason, ${JSON.stringify(end.stopReason)});\n  assert.equal(text, ${JSON.stringify(last?.text ?? "")});` : `  // The run ${end.stopReason ? `was ${remark(end.stopReason)}` : "had not ended"} when this was written; say here what should have come of it.\n  assert.ok(stopReason, text);`}
});
`;
}
