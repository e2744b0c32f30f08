// @ts-check
// Traces in the golden format: the events of a run, and what its world saw.

/** What the callbacks of a world saw, and the events it was told. */
export class Log {
  /** @type {any[]} */ events = [];
  /** @type {any[]} */ model_calls = [];
  /** @type {any[]} */ executions = [];
  /** @type {any[]} */ approvals = [];
  /** @type {any[]} */ policy_log = [];
  /** @type {any[]} */ transforms = [];
  /** @type {any[]} */ metrics = [];
  /** @type {any[]} */ outcomes = [];
  /** @type {any[]} */ hooks = [];
  /** @type {any[]} */ around = [];
  /** @type {any[]} */ receipts = [];
  /** Whether the trace is one of format 2. */ showsMore = false;
  #batch = 0;
  /** @type {Set<string>} */ #started = new Set();

  /**
   * Records an event, and the metrics that a host computes at the end of a turn.
   * @param {any} event @param {number | undefined} t @param {boolean} withMetrics
   */
  event(event, t, withMetrics) {
    const show = SHOWN[event.type];
    // The pieces of an answer come as they are read.
    if (!show || (event.type === "subagent_event" && event.event.type === "message_update")) return;
    if (event.type === "turn_start") {
      this.#batch++;
      this.#started.clear();
    } else if (event.type === "tool_execution_start") this.#started.add(event.callId);
    else if (event.type === "turn_end" && withMetrics) this.#measure(event);
    const shown = this.showsMore ? shownMore(event) : { type: event.type, ...show(event) };
    const tool = shown.id === undefined ? {} : { group: this.#batch, lane: shown.id };
    this.events.push({ ...shown, ...tool, ...(t !== undefined && { t }) });
  }

  /** @param {any} turn */
  #measure({ turnIndex, message, toolResults }) {
    if (!message || message.stopReason === "error" || (message.stopReason === "aborted" && toolResults.length === 0)) return;
    const ran = toolResults.filter((/** @type {any} */ result) => this.#started.has(result.callId));
    const tools = ran.map((/** @type {any} */ result) => ({ name: result.toolName, success: !result.isError }));
    this.metrics.push({ turn_index: turnIndex, tools, usage_total: message.usage.total });
  }

  /** The whole trace. @param {{ name: string, divergences?: string[] }} scenario @param {readonly any[]} history */
  trace({ name, divergences = [] }, history) {
    const { events, model_calls, executions } = this;
    const { approvals, policy_log, transforms, metrics, outcomes, hooks, around, receipts } = this;
    const seen = Object.entries({ approvals, policy_log, transforms, metrics, outcomes, hooks, around, receipts }).filter(([, entries]) => entries.length > 0);
    return { name, ...(this.showsMore && { format: 2 }), divergences, events, final_messages: history.map(shownMessage), model_calls, executions, ...Object.fromEntries(seen) };
  }
}

/**
 * What a trace shows of each event; other events are not shown.
 * @type {Record<string, (event: any) => any>}
 */
const SHOWN = {
  agent_start: () => ({}),
  run_resumed: () => ({}),
  turn_start: () => ({}),
  message_start: () => ({}),
  agent_end: ({ messages }) => ({ message_count: messages.length }),
  turn_end: ({ reason, turnIndex, message, toolResults }) => ({
    reason, turn_index: turnIndex, ...(message && answer(message)),
    tool_results: toolResults.map((/** @type {any} */ result) => ({ id: result.callId, text: textOf(result), is_error: result.isError })),
  }),
  message_update: ({ delta: { type, contentIndex, delta } }) => ({ kind: type, index: contentIndex, delta }),
  message_reset: ({ reason }) => ({ reason }),
  message_end: ({ message }) => answer(message),
  tool_execution_start: toolCall,
  tool_approval_requested: toolCall,
  tool_approval_resolved: ({ callId, toolName, approved }) => ({ id: callId, name: toolName, approved }),
  tool_execution_update: ({ callId, toolName, update }) => ({ id: callId, name: toolName, text: typeof update === "string" ? update : JSON.stringify(update) }),
  tool_execution_end: ({ callId, toolName, result, isError }) => ({ id: callId, name: toolName, text: textOf(result), is_error: isError }),
  context_compacted: ({ report }) => ({ dropped_count: report.droppedCount, overflow: report.overflow }),
  before_llm_call: ({ messages }) => ({ message_count: messages.length }),
  retry_attempt: ({ attempt, delayMs }) => ({ attempt, delay_ms: delayMs }),
  model_fallback: ({ from, to }) => ({ from, to }),
  model_switched: ({ from, to }) => ({ from, to }),
  state_changed: ({ changes }) => ({ changes }),
  cache_action: ({ action, prefixTokens }) => ({ action, prefix_tokens: prefixTokens }),
  transfer_initiated: ({ to, reason }) => ({ target: to, reason: reason ?? null }),
  question_asked: ({ kind, callId, message, path }) => ({ kind, call: callId ?? null, message, path }),
  question_resolved: ({ kind, callId, accepted, by }) => ({ kind, call: callId ?? null, accepted, by }),
  budget: ({ state, kind, used, limit }) => ({ state, kind, used, limit }),
  subagent_event: ({ callId, path, event }) => ({ call: callId, path, event: event.type }),
  command_refused: ({ callId, reason }) => ({ call: callId ?? null, reason }),
};

/**
 * What a trace of format 2 shows of an event beyond the others.
 * @type {Record<string, (event: any) => any>}
 */
const MORE = {
  agent_end: ({ stopReason, usage, turns, error }) => ({
    stop_reason: stopReason, turns, usage: used(usage), ...(usage.own && { own_usage: used(usage.own) }), ...(error && { error: error.code }),
  }),
  run_resumed: ({ turnIndex, pendingApprovals, runningTools }) => ({
    turn_index: turnIndex, pending: pendingApprovals.map((/** @type {any} */ { callId }) => callId), running: runningTools.map((/** @type {any} */ { callId }) => callId),
  }),
  message_end: ({ message }) => ({ usage: used(message.usage), ...(message.content.some((/** @type {any} */ { type }) => type === "raw") && { has_raw: true }) }),
  tool_execution_end: ({ result }) => (result.cause ? { cause: result.cause } : {}),
  tool_approval_requested: ({ path }) => ({ path: path ?? [] }),
  tool_approval_resolved: ({ path, by }) => ({ path: path ?? [], by }),
  question_asked: ({ budget }) => (budget ? { budget } : {}),
  subagent_event: ({ event }) => (SHOWN[event.type] ? { inner: shownMore(event) } : {}),
};

/** @param {any} event @returns {any} */
function shownMore(event) {
  return { type: event.type, ...SHOWN[event.type](event), ...MORE[event.type]?.(event) };
}

/** @param {any} usage */
function used({ input, output, total, estimated }) {
  return { input, output, total, ...(estimated && { estimated }) };
}

/** @param {any} event */
function toolCall(event) {
  return { id: event.callId, name: event.toolName, arguments: event.arguments };
}

/** @param {any} message */
function answer(message) {
  const of = (/** @type {string} */ type) => message.content.filter((/** @type {any} */ block) => block.type === type);
  const thinking = of("thinking").map((/** @type {any} */ block) => block.thinking).join("");
  const calls = of("tool_call").map((/** @type {any} */ block) => ({ id: block.callId, name: block.toolName, arguments: block.arguments }));
  return {
    text: textOf(message), ...(thinking !== "" && { thinking }), ...(calls.length > 0 && { tool_calls: calls }),
    stop_reason: message.stopReason, ...(message.error && { error: message.error.message }),
  };
}

/** The text of a message. @param {any} message */
export function textOf({ content }) {
  return content.filter((/** @type {any} */ block) => block.type === "text").map((/** @type {any} */ block) => block.text).join("");
}

/** One message of a history or a request. @param {any} message */
export function shownMessage(message) {
  switch (message.role) {
    case "assistant":
      return { role: "assistant", ...answer(message) };
    case "tool_result":
      return { role: "tool_result", tool_call_id: message.callId, text: textOf(message), is_error: message.isError };
    case "custom":
      return { role: "custom", text: message.data };
    default:
      return { role: message.role, text: textOf(message) };
  }
}

/** The same value with the keys of every object sorted. @param {any} value @returns {any} */
export function sorted(value) {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  // Built entry by entry, so that a key like a number or `__proto__` is not lost.
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]));
}
