// @ts-check
// From events to spans: one for each run of an agent, each answer of a model and each call of a tool. Where the spans go,
// somebody else decides.

import { messagesOf } from "./content.js";
import * as is from "./names.js";

/** @import { AgentEvent, JsonValue, LlmMessage, Usage } from "../index.js" */
/** @import { Attributes } from "@opentelemetry/api" */
/** @typedef {"agent" | "chat" | "tool"} Kind */
/**
 * A span, wherever it goes. Times are in milliseconds, or undefined for now.
 * @typedef {object} Node
 * @property {boolean} isRecording whether anybody sees what is set: not without an SDK, and not if it was not sampled
 * @property {(attributes: Attributes) => void} set
 * @property {(name: string, value: string) => void} put sets one attribute
 * @property {(name: string) => void} rename
 * @property {(name: string, attributes: Attributes, at: number | undefined) => void} event
 * @property {(problem: string, isError: boolean) => void} fail
 * @property {(at: number | undefined) => void} end
 */
/**
 * Where spans go, and what is measured. What spans of a kind have in common is one object, again and again.
 * @template {Node} N
 * @typedef {object} Sink
 * @property {(kind: Kind, name: string, attributes: Attributes, parent: N | undefined, at: number | undefined) => N} start
 * @property {(node: N) => boolean} isDeaf whether nobody would see what is inside this span, nor hear of what is measured
 * @property {() => number} now a clock for durations, in milliseconds
 * @property {boolean} isMeasuring whether `measured`, `chunk` and `used` have any effect
 * @property {(kind: Kind, ms: number, common: Attributes, problem: string | undefined) => void} measured
 * @property {boolean} countsChunks whether `chunk` wants to hear of those after the first
 * @property {(ms: number, common: Attributes, isFirst: boolean) => void} chunk
 * @property {(usage: Usage, common: Attributes) => void} used
 */
/**
 * @typedef {object} About what is known of the agent itself, and not of those inside its calls
 * @property {() => { provider: string, id: string } | undefined} model
 * @property {() => unknown} settings of a model call: the same ones as long as nothing has changed
 * @property {() => Attributes} request these settings as attributes
 * @property {() => Attributes} content what is recorded with a model call if content is
 * @property {() => { [toolName: string]: string }} descriptions of the tools
 */
/** @typedef {Extract<AgentEvent, { type: "subagent_event" }>} Inside */
/** @typedef {{ name: string | undefined, attributes: Attributes, content: ((value: JsonValue) => JsonValue) | undefined, about: About | undefined }} Options */
/** A span that is open. @template {Node} N @typedef {{ node: N, common: Attributes, startedAt: number, problem: string | undefined }} Open */
/** An answer that is being written. @template {Node} N @typedef {Open<N> & { lastChunkAt: number, chunks: number, firstMs: number }} Chat */

/** A run that is open. @template {Node} N */
class Lane {
  /** @param {Open<N>} run @param {string} name of the agent @param {About | undefined} about */
  constructor(run, name, about) {
    this.run = run;
    this.name = name;
    this.about = about;
    /** @type {Chat<N> | undefined} */
    this.chat = undefined;
    /** @type {Map<string, Open<N>>} */
    this.tools = new Map();
    /** What the answers have in common, for a model and settings. @type {{ model: unknown, settings: unknown, name: string, attributes: Attributes } | undefined} */
    this.asking = undefined;
    /** The same for each tool. @type {Map<string, Attributes>} */
    this.calling = new Map();
    /** @type {{ [toolName: string]: string }} */
    this.descriptions = about?.descriptions() ?? {};
  }

  /** What is open inside, the innermost last. */
  open() {
    return [...(this.chat ? [this.chat] : []), ...this.tools.values()];
  }
}

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
    /** The runs of which nobody would see anything, for there is no SDK. @type {Set<string>} */
    this.deaf = new Set();
  }

  /** @param {AgentEvent} event @param {number} [at] now unless it says so */
  take(event, at) {
    const outer = event.type === "subagent_event" ? event : undefined;
    const inner = outer ? outer.event : event;
    if (inner.type !== "message_update") return this.#take(inner, at, outer);
    // There are hundreds of these, and only the first one says something new.
    const chat = this.lanes.get(inner.runId)?.chat;
    if (chat && (chat.chunks === 0 || this.sink.countsChunks)) this.#chunk(chat);
  }

  /** Ends everything, for nobody will tell the ends. */
  close() {
    for (const lane of [...this.lanes.values()].reverse()) {
      for (const { node } of [...lane.open(), lane.run]) node.end(undefined);
    }
    this.lanes.clear();
    this.deaf.clear();
  }

  /**
   * The span of a tool that runs. Of an agent inside a call, the tool may run before its event is heard.
   * @param {string} runId @param {{ callId: string, toolName: string, arguments: any }} call
   */
  toolOf(runId, call) {
    const lane = this.lanes.get(runId);
    if (lane && !lane.tools.has(call.callId)) this.#startTool(lane, call, undefined);
    return lane?.tools.get(call.callId)?.node;
  }

  /** The span of the answer that is being written. @param {string} runId */
  chatOf(runId) {
    const lane = this.lanes.get(runId);
    if (lane && !lane.chat) this.#startChat(lane, undefined);
    return lane?.chat?.node;
  }

  /** What is sent to the model, if content is recorded. @param {string} runId @param {string} systemPrompt @param {readonly LlmMessage[]} messages */
  request(runId, systemPrompt, messages) {
    const { content } = this.options;
    const node = content && this.chatOf(runId);
    if (!content || !node?.isRecording) return;
    if (systemPrompt) node.set({ [is.SYSTEM_INSTRUCTIONS]: JSON.stringify(content([{ type: "text", content: systemPrompt }])) });
    node.set({ [is.INPUT_MESSAGES]: JSON.stringify(content(messagesOf(messages))) });
  }

  /** @param {AgentEvent} event @param {number | undefined} at @param {Inside | undefined} outer what the event is in, if it is of an agent inside a call */
  #take(event, at, outer) {
    const { type, runId } = event;
    if (type === "agent_start" || type === "run_resumed") return this.#startRun(event, at, outer);
    const lane = this.lanes.get(runId);
    if (!lane) return type === "agent_end" ? void this.deaf.delete(runId) : undefined;
    switch (type) {
      case "message_start": return lane.chat ? undefined : this.#startChat(lane, at);
      case "message_end": return this.#endChat(lane, event, at);
      case "tool_execution_start": return lane.tools.has(event.callId) ? undefined : this.#startTool(lane, event, at);
      case "tool_execution_end": return this.#endTool(lane, event, at);
      case "agent_end": return this.#endRun(lane, event, at);
      case "turn_start": case "tool_calls_proposed": return;
      case "turn_end": return event.reason === "steering_interrupt" ? lane.run.node.event("turnwheel.steering_interrupt", {}, at) : undefined;
      case "before_llm_call": return this.request(runId, event.systemPrompt, event.messages);
      // A question of an agent inside a call is told by that agent.
      case "tool_approval_requested": case "tool_approval_resolved": if (event.path?.length) return;
    }
    if (Object.hasOwn(ON_CHAT, type)) lane.chat?.node.event(`turnwheel.${type}`, /** @type {any} */ (ON_CHAT)[type](event), at);
    if (Object.hasOwn(ON_AGENT, type)) lane.run.node.event(`turnwheel.${type}`, /** @type {any} */ (ON_AGENT)[type](event), at);
  }

  /** @param {Extract<AgentEvent, { type: "agent_start" | "run_resumed" }>} event @param {number | undefined} at @param {Inside | undefined} outer */
  #startRun({ type, runId }, at, outer) {
    const { options } = this;
    if (outer && this.deaf.has(outer.runId)) return;
    const callId = outer?.path.at(-1) ?? "";
    // The id of a run inside a call is that of the run around it, a slash, and the id of the call.
    const around = outer && this.lanes.get(outer.path.length === 1 ? outer.runId : runId.slice(0, -callId.length - 1));
    const call = around?.tools.get(callId);
    const name = outer ? String(call?.common[is.TOOL_NAME] ?? "") : (options.name ?? "");
    const about = outer ? undefined : options.about;
    const model = about?.model();
    const common = {
      ...options.attributes, [is.OPERATION_NAME]: "invoke_agent", ...(name && { [is.AGENT_NAME]: name }),
      ...(model && { [is.PROVIDER_NAME]: is.providerName(model.provider), [is.REQUEST_MODEL]: model.id }),
    };
    const attributes = { ...common, "turnwheel.run.id": runId, ...(about && { [is.CONVERSATION_ID]: about.request()[is.CONVERSATION_ID] }) };
    const node = this.sink.start("agent", name ? `invoke_agent ${name}` : "invoke_agent", attributes, call?.node ?? around?.run.node, at);
    if (this.sink.isDeaf(node)) return void this.deaf.add(runId);
    if (type === "run_resumed") node.event("turnwheel.run_resumed", {}, at);
    this.lanes.set(runId, new Lane({ node, common, startedAt: this.sink.now(), problem: undefined }, name, about));
  }

  /** @param {Lane<N>} lane @param {Extract<AgentEvent, { type: "agent_end" }>} event @param {number | undefined} at */
  #endRun(lane, { runId, usage, stopReason, error }, at) {
    const { run } = lane;
    this.lanes.delete(runId);
    // Nothing is open if every start has its end.
    for (const { node } of lane.open()) node.end(at);
    if (run.node.isRecording) run.node.set(usageAttributes(usage?.own ?? usage, { [is.FINISH_REASONS]: [stopReason] }));
    if (stopReason === "aborted") this.#fail(run, "aborted", false);
    else if (error) this.#fail(run, error.code, true);
    this.#close("agent", run, at);
  }

  /** What the answers of a run have in common. @param {Lane<N>} lane @param {{ provider: string, id: string } | undefined} model */
  #asking(lane, model) {
    const { about, asking, name } = lane;
    const settings = about?.settings();
    if (asking && asking.model === model?.id && asking.settings === settings) return asking;
    const attributes = {
      ...this.options.attributes, [is.OPERATION_NAME]: "chat", [is.REQUEST_STREAM]: true, ...(name && { [is.AGENT_NAME]: name }),
      ...(model && { [is.PROVIDER_NAME]: is.providerName(model.provider), [is.REQUEST_MODEL]: model.id }), ...about?.request(),
    };
    return (lane.asking = { model: model?.id, settings, name: model ? `chat ${model.id}` : "chat", attributes });
  }

  /** @param {Lane<N>} lane @param {number | undefined} at */
  #startChat(lane, at) {
    const { about } = lane;
    // Of an agent inside a call the model is known from its first answer on.
    const { name, attributes } = about || !lane.asking ? this.#asking(lane, about?.model()) : lane.asking;
    const node = this.sink.start("chat", name, attributes, lane.run.node, at);
    if (about && this.options.content && node.isRecording) node.set(about.content());
    const startedAt = this.sink.now();
    lane.chat = { node, common: attributes, startedAt, problem: undefined, lastChunkAt: startedAt, chunks: 0, firstMs: 0 };
  }

  /** @param {Chat<N>} chat */
  #chunk(chat) {
    const now = this.sink.now();
    const ms = now - chat.lastChunkAt;
    chat.lastChunkAt = now;
    if (chat.chunks++ === 0) chat.firstMs = ms;
    if (this.sink.isMeasuring) this.sink.chunk(ms, chat.common, chat.chunks === 1);
  }

  /** @param {Lane<N>} lane @param {Extract<AgentEvent, { type: "message_end" }>} event @param {number | undefined} at */
  #endChat(lane, { message }, at) {
    const { chat, run } = lane;
    const { content } = this.options;
    if (!chat) return;
    lane.chat = undefined;
    const { provider, model, usage, stopReason, error } = message;
    const { node } = chat;
    if (chat.common[is.REQUEST_MODEL] === undefined && model) {
      const asking = this.#asking(lane, { provider, id: model });
      chat.common = asking.attributes;
      node.rename(asking.name);
      const known = { [is.PROVIDER_NAME]: is.providerName(provider), [is.REQUEST_MODEL]: model };
      node.set(known);
      if (run.common[is.REQUEST_MODEL] === undefined) {
        run.node.set(known);
        run.common = { ...run.common, ...known };
      }
    }
    if (node.isRecording) {
      /** @type {Attributes} */
      const attributes = {};
      attributes[is.RESPONSE_MODEL] = model;
      attributes[is.FINISH_REASONS] = [is.finishReason(stopReason)];
      if (chat.chunks > 0) attributes[is.TIME_TO_FIRST_CHUNK] = chat.firstMs / 1000;
      if (content) attributes[is.OUTPUT_MESSAGES] = JSON.stringify(content(messagesOf([message])));
      node.set(usageAttributes(usage, attributes));
    }
    if (stopReason === "aborted") this.#fail(chat, "aborted", false);
    else if (error) this.#fail(chat, error.code, true);
    if (this.sink.isMeasuring) this.sink.used(usage, chat.common);
    this.#close("chat", chat, at);
  }

  /** @param {Lane<N>} lane @param {{ callId: string, toolName: string, arguments: any }} call @param {number | undefined} at */
  #startTool(lane, { callId, toolName, arguments: args }, at) {
    const { content } = this.options;
    const common = lane.calling.get(toolName) ?? this.#calling(lane, toolName);
    const node = this.sink.start("tool", `execute_tool ${toolName}`, common, lane.run.node, at);
    if (node.isRecording) {
      node.put(is.TOOL_CALL_ID, callId);
      if (content) node.set({ [is.TOOL_CALL_ARGUMENTS]: JSON.stringify(content(args)) });
    }
    lane.tools.set(callId, { node, common, startedAt: this.sink.isMeasuring ? this.sink.now() : 0, problem: undefined });
  }

  /** What the calls of a tool have in common. @param {Lane<N>} lane @param {string} toolName */
  #calling(lane, toolName) {
    const description = Object.hasOwn(lane.descriptions, toolName) && lane.descriptions[toolName];
    const common = { ...this.options.attributes, [is.OPERATION_NAME]: "execute_tool", [is.TOOL_NAME]: toolName, [is.TOOL_TYPE]: "function", ...(description && { [is.TOOL_DESCRIPTION]: description }) };
    lane.calling.set(toolName, common);
    return common;
  }

  /** @param {Lane<N>} lane @param {Extract<AgentEvent, { type: "tool_execution_end" }>} event @param {number | undefined} at */
  #endTool(lane, { callId, toolName, result, isError }, at) {
    const { content } = this.options;
    const open = lane.tools.get(callId);
    const cause = result.cause ?? "tool_error";
    // No tool ran: it is unknown, was rejected, or the like.
    if (!open) return lane.run.node.event("turnwheel.tool_not_run", { [is.TOOL_NAME]: toolName, [is.TOOL_CALL_ID]: callId, "turnwheel.cause": cause }, at);
    lane.tools.delete(callId);
    if (content && open.node.isRecording) open.node.set({ [is.TOOL_CALL_RESULT]: JSON.stringify(content(/** @type {any} */ (result.content))) });
    if (isError) this.#fail(open, cause, cause !== "aborted" && cause !== "steering");
    this.#close("tool", open, at);
  }

  /** @param {Open<N>} open @param {string} problem @param {boolean} isError */
  #fail(open, problem, isError) {
    open.problem = problem;
    open.node.fail(problem, isError);
  }

  /** @param {Kind} kind @param {Open<N>} open @param {number | undefined} at */
  #close(kind, { node, common, startedAt, problem }, at) {
    node.end(at);
    if (this.sink.isMeasuring) this.sink.measured(kind, this.sink.now() - startedAt, common, problem);
  }
}

/** For the conventions, the input has what came from a cache. @param {Usage | undefined} usage @param {Attributes} attributes to which it is added */
function usageAttributes(usage, attributes) {
  if (!usage) return attributes;
  const { input, output, cacheRead, cacheWrite, reasoning } = usage;
  attributes[is.INPUT_TOKENS] = input + cacheRead + cacheWrite;
  attributes[is.OUTPUT_TOKENS] = output;
  if (cacheRead > 0) attributes[is.CACHE_READ_TOKENS] = cacheRead;
  if (cacheWrite > 0) attributes[is.CACHE_CREATION_TOKENS] = cacheWrite;
  if (reasoning) attributes[is.REASONING_TOKENS] = reasoning;
  return attributes;
}
