// @ts-check
// Carries out an effect that was sent as plain JSON, in whatever process has the model and the tools.

import { Agent, kindOf, misuse, textOf, toResult } from "../core.js";

/** @import { StepEffect, ToolDefinition } from "../index.js" */
/** @import { PerformOptions } from "../durable.js" */

/** @param {StepEffect} effect @param {PerformOptions} options @returns {Promise<any>} the record of the step */
export async function perform(effect, options) {
  if (typeof options !== "object" || options === null) throw misuse(`\`perform\` takes the model and the tools: perform(effect, { model, tools }), got ${kindOf(options)}`);
  if (effect?.kind !== "model" && effect?.kind !== "tool") throw misuse(`\`perform\` carries out effects of the kinds "model" and "tool", got ${kindOf(effect)}`);
  const value = effect.kind === "model" ? await ask(/** @type {any} */ (effect.request), options) : { reply: { kind: "executed", ...(await execute(effect, options)) } };
  return { v: 2, at: Date.now(), n: 0, value: JSON.parse(JSON.stringify(value)) };
}

/** @param {Extract<StepEffect, { kind: "tool" }>} effect @param {PerformOptions} options */
async function execute({ name, arguments: args, callId }, { tools = [], attempt = 1, signal = new AbortController().signal }) {
  const list = /** @type {ToolDefinition[]} */ (Array.isArray(tools) ? tools : Object.entries(tools).map(([name, tool]) => ({ name, ...tool })));
  const tool = list.find((one) => one.name === name);
  if (!tool) return { failed: `there is no tool \`${name}\` where the step runs; known tools: ${list.map(({ name }) => `\`${name}\``).join(", ")}` };
  if (attempt > 1 && !tool.idempotent) return { interrupted: true };
  /** @type {any} */
  const context = { callId, toolCallId: callId, toolName: name, runId: "", sessionId: "", signal, abortSignal: signal, messages: [], update() {}, state: { get() {}, set: noState, delete: noState } };
  try {
    const output = await tool.execute?.(/** @type {any} */ (args), context);
    return { result: typeof output === "string" ? { content: [{ type: "text", text: output }] } : toResult(output) };
  } catch (error) {
    return { failed: textOf(error) };
  }
}

function noState() {
  throw misuse("the session state cannot be changed where a step runs apart from its run");
}

/** Asks a model once. @param {any} request @param {PerformOptions} options */
async function ask(request, { model, signal }) {
  if (!model) throw misuse("`perform` needs the `model` for an effect of the kind \"model\"");
  const { messages, systemPrompt, tools = [], options = {}, output } = request;
  const agent = new Agent({
    model, systemPrompt, messages, streamOptions: options, retry: { maxAttempts: 1 }, maxTurns: 1,
    tools: tools.map((/** @type {any} */ tool) => ({ ...tool, execute: () => "" })),
    // The calls are the workflow's.
    policies: { preDispatch: [() => ({ stop: "the calls run in the workflow" })] },
    ...(output !== undefined && output !== null && { output: output.schema ?? output }),
  });
  const run = agent.continue(signal ? { signal } : {});
  const result = await run.result;
  const answer = agent.messages.findLast(({ role }) => role === "assistant");
  // A call that was cut off never runs, wherever it is read.
  const cut = new Set(agent.messages.map((message) => /** @type {any} */ (message)).filter(({ cause }) => cause === "incomplete").map(({ callId }) => callId));
  if (result.error && result.stopReason !== "policy_stop" && !hasCalls(answer)) return eventsOf({ content: [], error: result.error.info });
  return eventsOf(stored(answer, cut));
}

/** @param {any} answer */
const hasCalls = (answer) => answer?.content.some((/** @type {any} */ { type }) => type === "tool_call");

/** @param {any} answer @param {Set<string>} cut the ids of calls that were cut off */
function stored(answer, cut) {
  const content = answer.content.map((/** @type {any} */ block) => (block.type === "tool_call" ? { ...block, arguments: typeof block.arguments === "string" ? block.arguments : JSON.stringify(block.arguments), ...(cut.has(block.callId) && { open: true }) } : block));
  return { content, stopReason: answer.stopReason, usage: answer.usage };
}

/** The member that grows in a block, by its type. @type {Record<string, string>} */
const GROWS = { text: "text", thinking: "thinking", tool_call: "arguments" };

/** An answer as events, each block in one piece. @param {{ content: any[], stopReason?: string, usage?: any, error?: any }} answer @returns {{ events: any[] }} */
function eventsOf({ content, stopReason = "stop", usage, error }) {
  /** @type {any[]} */
  const events = [{ type: "start" }];
  content.forEach((block, contentIndex) => {
    const { type, open, data, ...rest } = block;
    if (type === "raw") return void events.push({ type, contentIndex, data });
    const grows = /** @type {string} */ (GROWS[type]);
    const { [grows]: delta, callId, toolName, ...ending } = rest;
    events.push({ type: `${type}_start`, contentIndex, ...(type === "tool_call" && { callId, toolName }) });
    if (delta !== "") events.push({ type: `${type}_delta`, contentIndex, delta });
    if (!open) events.push({ type: `${type}_end`, contentIndex, ...ending });
  });
  events.push(error ? { type: "error", error } : { type: "done", stopReason, ...(usage && { usage }) });
  return { events };
}
