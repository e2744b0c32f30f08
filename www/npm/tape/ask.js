// @ts-check
// A real model is asked once, outside of any run: for a live replay, and for what a cassette does not have.

import { agentLoopContinue } from "../core.js";

/** @import { AssistantMessage, AssistantMessageEvent, Model, ModelRequest, RunInfo } from "../index.js" */

/**
 * What a model answers to a request.
 * @param {Model} model @param {ModelRequest} request @param {RunInfo & { signal: AbortSignal }} context
 * @returns {Promise<AssistantMessageEvent[]>}
 */
export async function answersOf(model, request, context) {
  if (!model.streamFn) return eventsOf(await messageOf(model, request, context.signal));
  const events = [];
  for await (const event of await model.streamFn(request, context)) events.push(event);
  return events;
}

/** Only the engine calls this model: a run of one turn, of which no tool is started. @param {Model} model @param {ModelRequest} request @param {AbortSignal} signal @returns {Promise<AssistantMessage>} */
async function messageOf(model, { systemPrompt, messages, tools, options, output }, signal) {
  const waiting = new Promise(() => {});
  const run = agentLoopContinue(messages, {
    model, systemPrompt, streamOptions: options,
    tools: tools.map((tool) => ({ ...tool, execute: () => waiting })), retry: { maxAttempts: 1 }, ...(output && { output, outputRetries: 0 }),
  }, { signal });
  for await (const event of run) {
    if (event.type !== "message_end") continue;
    run.abort();
    return event.message;
  }
  const { error } = await run;
  throw Object.assign(new Error(error?.message ?? "the model was not asked"), error);
}

/** The events that a message would come of. @param {AssistantMessage} message @returns {AssistantMessageEvent[]} */
function eventsOf({ content, usage, stopReason, error }) {
  /** @type {AssistantMessageEvent[]} */
  const events = [{ type: "start" }];
  content.forEach((block, contentIndex) => {
    if (block.type === "text") {
      events.push({ type: "text_start", contentIndex }, { type: "text_delta", contentIndex, delta: block.text }, { type: "text_end", contentIndex, ...(block.signature !== undefined && { signature: block.signature }) });
    } else if (block.type === "thinking") {
      const { thinking, signature, redacted } = block;
      events.push({ type: "thinking_start", contentIndex }, { type: "thinking_delta", contentIndex, delta: thinking }, { type: "thinking_end", contentIndex, ...(signature !== undefined && { signature }), ...(redacted && { redacted }) });
    } else if (block.type === "tool_call") {
      const { callId, toolName, metadata } = block;
      events.push({ type: "tool_call_start", contentIndex, callId, toolName }, { type: "tool_call_delta", contentIndex, delta: JSON.stringify(block.arguments) }, { type: "tool_call_end", contentIndex, ...(metadata && { metadata: /** @type {any} */ (metadata) }) });
    } else events.push({ type: "raw", contentIndex, data: /** @type {any} */ (block).data });
  });
  events.push(error ? { type: "error", error } : { type: "done", stopReason, usage });
  return events;
}
