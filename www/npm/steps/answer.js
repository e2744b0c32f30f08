// @ts-check
// The answer of a model as a step stores it: whole blocks, and how it ended.

/** @import { AssistantMessageEvent, ErrorInfo } from "../index.js" */
/** @typedef {{ content: any[], stopReason?: string, usage?: any, error?: ErrorInfo, key?: string }} StoredAnswer */

/** The types of blocks, and the member that grows in each. @type {Record<string, string>} */
const GROWS = { text: "text", thinking: "thinking", tool_call: "arguments" };

/**
 * What the events of a call add up to. The arguments of a call are the model's own text, JSON or not; a call that was cut off
 * is `open`.
 * @param {AssistantMessageEvent[]} events @returns {StoredAnswer}
 */
export function answerOf(events) {
  /** @type {StoredAnswer} */
  const answer = { content: [] };
  for (const event of /** @type {any[]} */ (events)) {
    const { type, contentIndex, ...rest } = event;
    const block = answer.content[contentIndex];
    if (type === "start") answer.content = [];
    else if (type === "raw") answer.content[contentIndex] = { type, data: rest.data };
    else if (type === "usage") answer.usage = rest;
    else if (type === "error") answer.error = rest.error;
    else if (type === "done") Object.assign(answer, { stopReason: rest.stopReason ?? "stop" }, rest.usage && { usage: rest.usage });
    else if (type.endsWith("_start")) {
      const kind = type.slice(0, -6);
      answer.content[contentIndex] = { type: kind, [GROWS[kind]]: "", ...rest, open: true };
    } else if (type.endsWith("_delta")) block[GROWS[block.type]] += rest.delta;
    else if (type.endsWith("_end")) {
      delete block.open;
      Object.assign(block, rest);
    }
  }
  return answer;
}

/** The events of a stored answer, each block in one piece. @param {StoredAnswer} answer @returns {any[]} */
export function eventsOf({ content, stopReason, usage, error }) {
  /** @type {any[]} */
  const events = [{ type: "start" }];
  content.forEach((block, contentIndex) => {
    const { type, open, data, ...rest } = block;
    if (type === "raw") return void events.push({ type, contentIndex, data });
    const grows = GROWS[type];
    const { [grows]: delta, callId, toolName, ...ending } = rest;
    events.push({ type: `${type}_start`, contentIndex, ...(type === "tool_call" && { callId, toolName }) });
    if (delta !== "") events.push({ type: `${type}_delta`, contentIndex, delta });
    if (!open) events.push({ type: `${type}_end`, contentIndex, ...ending });
  });
  if (error || stopReason === undefined) {
    if (usage) events.push({ type: "usage", ...usage });
    if (error) events.push({ type: "error", error });
  } else events.push({ type: "done", stopReason, ...(usage && { usage }) });
  return events;
}
