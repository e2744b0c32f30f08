// @ts-check
// From events to spans: one for each run of an agent, each answer of a model and each call of a tool. Where the spans go,
// somebody else decides.

import { messagesOf } from "./content.js";
import * as is from "./names.js";

/** @import { AgentEvent, JsonValue, Usage } from "../index.js" */
/** @import { Attributes } from "@opentelemetry/api" */
/** @typedef {"agent" | "chat" | "tool"} Kind */
/**
 * A span, wherever it goes. Times are in milliseconds, or undefined for now.
 * @typedef {object} Node
 * @property {(attributes: Attributes) => void} set
 * @property {(name: string) => void} rename
 * @property {(name: string, attributes: Attributes, at: number | undefined) => void} event
 * @property {(problem: string, isError: boolean) => void} fail
 * @property {(at: number | undefined) => void} end
 */
/**
 * Where spans go. `measured` hears of the end of each.
 * @template {Node} N
 * @typedef {object} Sink
 * @property {(kind: Kind, name: string, attributes: Attributes, parent: N | undefined, at: number | undefined) => N} start
 * @property {() => number} now a clock for durations, in milliseconds
 * @property {(kind: Kind, ms: number, attributes: Attributes) => void} measured
 * @property {(ms: number, attributes: Attributes, isFirst: boolean) => void} chunk
 * @property {(usage: Usage, attributes: Attributes) => void} used
 */
/**
 * @typedef {object} About what is known of the agent itself, and not of those inside its calls
 * @property {() => { provider: string, id: string } | undefined} model
 * @property {() => Attributes} request the settings of a model call
 * @property {(toolName: string) => string | undefined} describe a tool
 * @property {() => Attributes} content what is recorded with a model call if content is
 */
/** @typedef {{ name: string | undefined, attributes: Attributes, content: ((value: JsonValue) => JsonValue) | undefined, about: About | undefined }} Options */
/** A span that is open. @template {Node} N @typedef {{ node: N, attributes: Attributes, startedAt: number }} Open */
/**
 * A run that is open. @template {Node} N
 * @typedef {{ run: Open<N>, chat: (Open<N> & { lastChunkAt: number, chunks: number, firstMs: number }) | undefined, tools: Map<string, Open<N>>, about: About | undefined }} Lane
 */

/** The events that are told on the span of the agent, with what is told. @type {Record<string, (event: any) => Attributes>} */
const ON_AGENT = {
  tool_approval_requested: ({ id, toolName, callId }) => ({ [is.TOOL_NAME]: toolName, [is.TOOL_CALL_ID]: callId, "turnwheel.question.id": id }),
  tool_approval_resolved: ({ id, toolName, callId, approved, by }) => ({ [is.TOOL_NAME]: toolName, [is.TOOL_CALL_ID]: callId, "turnwheel.question.id": id, "turnwheel.approved": approved, "turnwheel.by": by }),
  context_compacted: ({ report }) => ({ "turnwheel.tokens_before": report.tokensBefore ?? 0, "turnwheel.tokens_after": report.tokensAfter ?? 0 }),
  transfer_initiated: ({ to }) => ({ "turnwheel.to": to }),
  model_switched: ({ from, to }) => ({ "turnwheel.from": from, "turnwheel.to": to }),
  budget: ({ state, kind, used, limit }) => ({ "turnwheel.state": state, "turnwheel.kind": kind, "turnwheel.used": used, "turnwheel.limit": limit }),
};

/** The events that are told on the span of the answer. @type {Record<string, (event: any) => Attributes>} */
const ON_CHAT = {
  retry_attempt: ({ attempt, delayMs, error }) => ({ "turnwheel.attempt": attempt, "turnwheel.delay_ms": delayMs, [is.ERROR_TYPE]: error.code }),
  message_reset: ({ reason }) => ({ "turnwheel.reason": reason }),
  model_fallback: ({ from, to }) => ({ "turnwheel.from": from, "turnwheel.to": to }),
};

/** @template {Node} N */
export class Trace {
  /** @param {Sink<N>} sink @param {Options} options */
  constructor(sink, options) {
    this.sink = sink;
    this.options = options;
    /** The runs that are open, by their ids. @type {Map<string, Lane<N>>} */
    this.lanes = new Map();
  }

  /** @param {AgentEvent} event @param {number} [at] now unless it says so */
  take(event, at) {
    if (event.type !== "subagent_event") return this.#take(event, at, undefined, "");
    const { path, event: inner } = event;
    const callId = path.at(-1) ?? "";
    // The id of a run inside a call is that of the run around it, a slash, and the id of the call.
    const around = this.lanes.get(path.length === 1 ? event.runId : inner.runId.slice(0, -callId.length - 1));
    this.#take(inner, at, around, callId);
  }

  /** Ends everything, for nobody will tell the ends. */
  close() {
    for (const lane of [...this.lanes.values()].reverse()) {
      for (const open of [...lane.tools.values(), ...(lane.chat ? [lane.chat] : []), lane.run]) open.node.end(undefined);
    }
    this.lanes.clear();
  }

  /** The span of a tool that runs. @param {string} runId @param {string} callId */
  toolOf(runId, callId) {
    return this.lanes.get(runId)?.tools.get(callId)?.node;
  }

  /** The span of the answer that is being written. @param {string} runId */
  chatOf(runId) {
    return this.lanes.get(runId)?.chat?.node;
  }

  /** @param {AgentEvent} event @param {number | undefined} at @param {Lane<N> | undefined} around @param {string} callId of the call that runs the agent */
  #take(event, at, around, callId) {
    const { type, runId } = event;
    if (type === "agent_start" || type === "run_resumed") return this.#startRun(event, at, around, callId);
    const lane = this.lanes.get(runId);
    if (!lane) return;
    switch (type) {
      case "message_update": return this.#chunk(lane);
      case "message_start": return this.#startChat(lane, at);
      case "message_end": return this.#endChat(lane, event, at);
      case "tool_execution_start": return this.#startTool(lane, event, at);
      case "tool_execution_end": return this.#endTool(lane, event, at);
      case "agent_end": return this.#endRun(lane, event, at);
      case "before_llm_call": return this.#request(lane, event.systemPrompt, event.messages);
      case "turn_end": return event.reason === "steering_interrupt" ? lane.run.node.event("turnwheel.steering_interrupt", {}, at) : undefined;
      // A question of an agent inside a call is told by that agent.
      case "tool_approval_requested": case "tool_approval_resolved": if (event.path?.length) return;
    }
    if (Object.hasOwn(ON_CHAT, type)) lane.chat?.node.event(`turnwheel.${type}`, /** @type {any} */ (ON_CHAT)[type](event), at);
    if (Object.hasOwn(ON_AGENT, type)) lane.run.node.event(`turnwheel.${type}`, /** @type {any} */ (ON_AGENT)[type](event), at);
  }

  /** @param {Extract<AgentEvent, { type: "agent_start" | "run_resumed" }>} event @param {number | undefined} at @param {Lane<N> | undefined} around @param {string} callId */
  #startRun({ type, runId }, at, around, callId) {
    const { options } = this;
    const call = around?.tools.get(callId);
    const name = around ? String(call?.attributes[is.TOOL_NAME] ?? "") : options.name;
    const about = around ? undefined : options.about;
    const model = about?.model();
    const attributes = {
      ...options.attributes, [is.OPERATION_NAME]: "invoke_agent", ...(name && { [is.AGENT_NAME]: name }),
      ...(model && { [is.PROVIDER_NAME]: is.providerName(model.provider), [is.REQUEST_MODEL]: model.id }), "turnwheel.run.id": runId,
    };
    const run = this.#open("agent", name ? `invoke_agent ${name}` : "invoke_agent", attributes, call?.node ?? around?.run.node, at);
    if (type === "run_resumed") run.node.event("turnwheel.run_resumed", {}, at);
    this.lanes.set(runId, { run, chat: undefined, tools: new Map(), about });
  }

  /** @param {Lane<N>} lane @param {Extract<AgentEvent, { type: "agent_end" }>} event @param {number | undefined} at */
  #endRun(lane, { runId, usage, stopReason, error }, at) {
    const { run } = lane;
    this.lanes.delete(runId);
    // None of them is open if every start has its end.
    for (const open of [...lane.tools.values(), ...(lane.chat ? [lane.chat] : [])]) open.node.end(at);
    run.node.set({ ...usageAttributes(usage?.own ?? usage), [is.FINISH_REASONS]: [stopReason] });
    if (stopReason === "aborted") this.#fail(run, "aborted", false);
    else if (error) this.#fail(run, error.code, true);
    this.#close("agent", run, at);
  }

  /** @param {Lane<N>} lane @param {number | undefined} at */
  #startChat(lane, at) {
    const { options } = this;
    const { about, run } = lane;
    const model = about?.model();
    const attributes = {
      ...options.attributes, [is.OPERATION_NAME]: "chat", [is.REQUEST_STREAM]: true, ...(run.attributes[is.AGENT_NAME] !== undefined && { [is.AGENT_NAME]: run.attributes[is.AGENT_NAME] }),
      ...(model && { [is.PROVIDER_NAME]: is.providerName(model.provider), [is.REQUEST_MODEL]: model.id }), ...about?.request(),
    };
    const open = this.#open("chat", model ? `chat ${model.id}` : "chat", attributes, run.node, at);
    if (options.content && about) open.node.set(about.content());
    lane.chat = { ...open, lastChunkAt: open.startedAt, chunks: 0, firstMs: 0 };
  }

  /** @param {Lane<N>} lane */
  #chunk({ chat }) {
    if (!chat) return;
    const now = this.sink.now();
    const ms = now - chat.lastChunkAt;
    chat.lastChunkAt = now;
    if (chat.chunks++ === 0) chat.firstMs = ms;
    this.sink.chunk(ms, chat.attributes, chat.chunks === 1);
  }

  /** What is sent. @param {Lane<N>} lane @param {string} systemPrompt @param {readonly any[]} messages */
  #request({ chat }, systemPrompt, messages) {
    const { content } = this.options;
    if (!content || !chat) return;
    const instructions = systemPrompt ? { [is.SYSTEM_INSTRUCTIONS]: JSON.stringify(content([{ type: "text", content: systemPrompt }])) } : {};
    chat.node.set({ ...instructions, [is.INPUT_MESSAGES]: JSON.stringify(content(messagesOf(messages))) });
  }

  /** @param {string} runId @param {string} systemPrompt @param {readonly any[]} messages */
  request(runId, systemPrompt, messages) {
    const lane = this.lanes.get(runId);
    if (lane) this.#request(lane, systemPrompt, messages);
  }

  /** @param {Lane<N>} lane @param {Extract<AgentEvent, { type: "message_end" }>} event @param {number | undefined} at */
  #endChat(lane, { message }, at) {
    const { chat, run } = lane;
    const { content } = this.options;
    if (!chat) return;
    lane.chat = undefined;
    const { provider, model, usage, stopReason, error } = message;
    const { node, attributes } = chat;
    if (attributes[is.REQUEST_MODEL] === undefined && model) {
      const known = { [is.PROVIDER_NAME]: is.providerName(provider), [is.REQUEST_MODEL]: model };
      Object.assign(attributes, known);
      node.set(known);
      node.rename(`chat ${model}`);
      if (run.attributes[is.REQUEST_MODEL] === undefined) run.node.set(Object.assign(run.attributes, known));
    }
    node.set({
      ...(model && { [is.RESPONSE_MODEL]: model }), [is.FINISH_REASONS]: [is.finishReason(stopReason)], ...usageAttributes(usage),
      ...(chat.chunks > 0 && { [is.TIME_TO_FIRST_CHUNK]: chat.firstMs / 1000 }), ...(content && { [is.OUTPUT_MESSAGES]: JSON.stringify(content(messagesOf([message]))) }),
    });
    if (stopReason === "aborted") this.#fail(chat, "aborted", false);
    else if (error) this.#fail(chat, error.code, true);
    this.sink.used(usage, attributes);
    this.#close("chat", chat, at);
  }

  /** @param {Lane<N>} lane @param {Extract<AgentEvent, { type: "tool_execution_start" }>} event @param {number | undefined} at */
  #startTool(lane, { callId, toolName, arguments: args }, at) {
    const { content, attributes: own } = this.options;
    const description = lane.about?.describe(toolName);
    const attributes = { ...own, [is.OPERATION_NAME]: "execute_tool", [is.TOOL_NAME]: toolName, [is.TOOL_CALL_ID]: callId, [is.TOOL_TYPE]: "function", ...(description && { [is.TOOL_DESCRIPTION]: description }) };
    const open = this.#open("tool", `execute_tool ${toolName}`, attributes, lane.run.node, at);
    if (content) open.node.set({ [is.TOOL_CALL_ARGUMENTS]: JSON.stringify(content(args)) });
    lane.tools.set(callId, open);
  }

  /** @param {Lane<N>} lane @param {Extract<AgentEvent, { type: "tool_execution_end" }>} event @param {number | undefined} at */
  #endTool(lane, { callId, toolName, result, isError }, at) {
    const { content } = this.options;
    const open = lane.tools.get(callId);
    const cause = result.cause ?? "tool_error";
    // No tool ran: it is unknown, was rejected, or the like.
    if (!open) return lane.run.node.event("turnwheel.tool_not_run", { [is.TOOL_NAME]: toolName, [is.TOOL_CALL_ID]: callId, "turnwheel.cause": cause }, at);
    lane.tools.delete(callId);
    if (content) open.node.set({ [is.TOOL_CALL_RESULT]: JSON.stringify(content(/** @type {any} */ (result.content))) });
    if (isError) this.#fail(open, cause, cause !== "aborted" && cause !== "steering");
    this.#close("tool", open, at);
  }

  /** @param {Kind} kind @param {string} name @param {Attributes} attributes @param {N | undefined} parent @param {number | undefined} at @returns {Open<N>} */
  #open(kind, name, attributes, parent, at) {
    return { node: this.sink.start(kind, name, attributes, parent, at), attributes, startedAt: this.sink.now() };
  }

  /** @param {Open<N>} open @param {string} problem @param {boolean} isError */
  #fail({ node, attributes }, problem, isError) {
    attributes[is.ERROR_TYPE] = problem;
    node.fail(problem, isError);
  }

  /** @param {Kind} kind @param {Open<N>} open @param {number | undefined} at */
  #close(kind, { node, attributes, startedAt }, at) {
    node.end(at);
    this.sink.measured(kind, this.sink.now() - startedAt, attributes);
  }
}

/** For the conventions, the input has what came from a cache. @param {Usage | undefined} usage @returns {Attributes} */
function usageAttributes(usage) {
  if (!usage) return {};
  const { input, output, cacheRead, cacheWrite, reasoning } = usage;
  return {
    [is.INPUT_TOKENS]: input + cacheRead + cacheWrite, [is.OUTPUT_TOKENS]: output,
    ...(cacheRead > 0 && { [is.CACHE_READ_TOKENS]: cacheRead }), ...(cacheWrite > 0 && { [is.CACHE_CREATION_TOKENS]: cacheWrite }), ...(reasoning && { [is.REASONING_TOKENS]: reasoning }),
  };
}
