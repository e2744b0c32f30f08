// @ts-check
// The events of one agent as AG-UI events: the agent itself, or one inside a call.

import { joinTexts } from "../shared.js";
import { Message } from "./message.js";

/** @import { AgentEvent, JsonSchema, JsonValue, Question, ToolResultMessage } from "../index.js" */
/** @import { AGUIEvent } from "../ag-ui.js" */
/** @template {AgentEvent["type"]} T @typedef {Extract<AgentEvent, { type: T }>} EventOf */

/** An open question. @typedef {{ kind: Question["kind"], callId: string | undefined, toolName: string | undefined, message: string | undefined, schema: JsonSchema | undefined, budget: Extract<Question, { kind: "budget" }>["budget"] | undefined }} Pending */

/** What is told under its own name: the members that a client may see. @type {Record<string, (event: any) => { [name: string]: JsonValue }>} */
const CUSTOM = {
  retry_attempt: ({ attempt, delayMs, error }) => ({ attempt, delayMs, code: error.code }),
  model_fallback: ({ from, to }) => ({ from, to }),
  model_switched: ({ from, to }) => ({ from, to }),
  context_compacted: ({ report }) => report,
  tool_approval_resolved: ({ id, approved, by }) => ({ id, approved, by }),
  question_resolved: ({ id, kind, accepted, by }) => ({ id, kind, accepted, by }),
  command_refused: ({ id = "", callId = "", reason }) => ({ id, callId, reason }),
  cache_action: ({ action, prefixTokens }) => ({ action, prefixTokens }),
  transfer_initiated: ({ to, reason = "" }) => ({ to, reason }),
  budget: ({ state, kind, used, limit }) => ({ state, kind, used, limit }),
};

export class Lane {
  /**
   * @param {(event: AGUIEvent) => void} emit
   * @param {{ runId: string, takesParts: boolean, parent?: Lane, callId?: string }} place
   */
  constructor(emit, { runId, takesParts, parent, callId = "" }) {
    this.emit = emit;
    /** Whether the client takes results that are more than a text. */
    this.takesParts = takesParts;
    this.runId = runId;
    this.parent = parent;
    /** The call that runs this agent. */
    this.callId = callId;
    /** Comes before the ids of the calls, because two agents may have calls with the same id. */
    this.prefix = prefixOf(parent, callId);
    /** Whether the client was told of this agent. */
    this.isStarted = !parent;
    /** The turn that is open, as the client knows it. @type {string | undefined} */
    this.step = undefined;
    this.turnIndex = 0;
    this.attempts = 0;
    /** @type {Message | undefined} */
    this.message = undefined;
    /** The tools of the calls. @type {Map<string, string>} */
    this.names = new Map();
    /** The calls whose id was shown before for a call that was taken back, with the id that is shown. @type {Map<string, string>} */
    this.renamed = new Map();
    /** The ids of calls that were shown. @type {Set<string>} */
    this.shown = new Set();
    /** The calls that run, with the agents inside. @type {Map<string, Lane | undefined>} */
    this.running = new Map();
    /** The open questions of this agent that the client can answer. @type {Map<string, Pending>} */
    this.pending = new Map();
    /** Whether the agent has said its last. */
    this.isOver = false;
  }

  /** Whether nothing here goes on until a person, or the client, answers. @returns {boolean} */
  get isWaiting() {
    // A tool that wants to know something runs, and waits.
    const asks = (/** @type {string} */ callId) => [...this.pending.values()].some((asked) => (asked.kind === "elicitation" || asked.kind === "tool_call") && asked.callId === callId);
    return this.pending.size + this.running.size > 0 && [...this.running].every(([callId, inside]) => inside?.isWaiting || asks(callId));
  }

  /** The agent inside a call. @param {string} callId @param {string} [runId] */
  inside(callId, runId = `${this.runId}/${callId}`) {
    const known = this.running.get(callId);
    const lane = known && !known.isOver ? known : new Lane(this.emit, { runId, takesParts: this.takesParts, parent: this, callId });
    this.running.set(callId, lane);
    return lane;
  }

  /** @param {AGUIEvent} event */
  send(event) {
    if (!this.isStarted) this.#start();
    this.emit(this.parent ? { ...event, subagentRunId: this.runId } : event);
  }

  /** @param {string} callId */
  shownCall(callId) {
    return `${this.prefix}${this.renamed.get(callId) ?? callId}`;
  }

  /** A call begins. Returns its id for the client. @param {string} callId @param {string} toolName */
  nameCall(callId, toolName) {
    for (let n = 2; this.shown.has(this.shownCall(callId)); n++) this.renamed.set(callId, `${callId}~${n}`);
    this.names.set(callId, toolName);
    this.shown.add(this.shownCall(callId));
    return this.shownCall(callId);
  }

  /** @param {AgentEvent} event */
  take(event) {
    const handler = /** @type {Record<string, unknown>} */ (/** @type {unknown} */ (this))[`_${event.type}`];
    if (typeof handler === "function") return handler.call(this, event);
    const value = Object.hasOwn(CUSTOM, event.type) && CUSTOM[event.type]?.(event);
    if (value) this.#custom(event.type, value);
  }

  /** Ends what is open here and inside. The agents inside go on in the next response. */
  pause() {
    for (const inside of this.running.values()) inside?.pause();
    this.close();
    if (!this.parent || !this.isStarted) return;
    const interruptIds = [...this.pending.keys()];
    this.emit({ type: "SUBAGENT_FINISHED", subagentRunId: this.runId, outcome: { type: "suspended", ...(interruptIds.length > 0 && { interruptIds }) } });
    this.isStarted = false;
  }

  /** Ends what is open of the answer and the turn. */
  close() {
    this.message?.takeBack();
    this.message = undefined;
    if (this.step) this.send({ type: "STEP_FINISHED", stepName: this.step });
    this.step = undefined;
  }

  // ---- events

  /** @param {EventOf<"run_resumed">} event */
  _run_resumed({ turnIndex, runningTools }) {
    this.turnIndex = turnIndex;
    for (const { callId, toolName } of runningTools) {
      this.names.set(callId, toolName);
      if (!this.running.has(callId)) this.running.set(callId, undefined);
    }
    if (!this.isStarted) this.#start();
  }

  _agent_start() {
    if (!this.isStarted) this.#start();
  }

  /** @param {EventOf<"turn_start">} event */
  _turn_start({ turnIndex }) {
    this.turnIndex = turnIndex;
    this.#openStep();
  }

  _turn_end() {
    this.close();
    this.attempts = 0;
  }

  _message_start() {
    this.#openMessage();
  }

  /** @param {EventOf<"message_update">} event */
  _message_update({ delta }) {
    this.#openMessage().update(delta);
  }

  /** @param {EventOf<"message_reset">} event */
  _message_reset({ reason }) {
    const messageIds = this.message?.takeBack() ?? [];
    this.message = undefined;
    this.attempts++;
    // No event of the protocol takes back what was shown; whoever wants to hide it knows the ids.
    if (messageIds.length > 0) this.#custom("message_reset", { reason, messageIds });
  }

  /** @param {EventOf<"message_end">} event */
  _message_end({ message }) {
    this.#openMessage().end(message);
    this.message = undefined;
  }

  /** @param {EventOf<"tool_execution_start">} event */
  _tool_execution_start({ callId, toolName }) {
    this.names.set(callId, toolName);
    this.running.set(callId, undefined);
  }

  /** @param {EventOf<"tool_execution_update">} event */
  _tool_execution_update({ callId, toolName, update }) {
    this.#custom("tool_execution_update", { toolCallId: this.shownCall(callId), toolName, update: /** @type {JsonValue} */ (update) });
  }

  /** @param {EventOf<"tool_execution_end">} event */
  _tool_execution_end({ callId, result }) {
    this.running.delete(callId);
    const toolCallId = this.shownCall(callId);
    this.#openStep();
    this.send({ type: "TOOL_CALL_RESULT", messageId: `${toolCallId}.result`, toolCallId, role: "tool", content: contentOf(result, this.takesParts) });
  }

  /** @param {EventOf<"custom">} event */
  _custom({ name, payload }) {
    this.send({ type: "CUSTOM", name, value: payload });
  }

  /** Of an agent inside a call. @param {EventOf<"agent_end">} event */
  _agent_end({ error, stopReason }) {
    this.close();
    this.isOver = true;
    if (!this.isStarted) this.#start();
    const subagentRunId = this.runId;
    if (error) this.emit({ type: "SUBAGENT_ERROR", subagentRunId, message: error.message, code: error.code });
    else this.emit({ type: "SUBAGENT_FINISHED", subagentRunId, result: { stopReason } });
  }

  #start() {
    const { parent } = this;
    this.isStarted = true;
    if (!parent) return;
    if (!parent.isStarted) parent.#start();
    this.emit({
      type: "SUBAGENT_STARTED", subagentRunId: this.runId, name: parent.names.get(this.callId) ?? this.callId,
      parentToolCallId: parent.shownCall(this.callId), ...(parent.parent && { parentSubagentRunId: parent.runId }),
    });
  }

  /** A response that continues another one is in the middle of a turn. */
  #openStep() {
    if (this.step) return;
    this.step = `turn-${this.turnIndex}`;
    this.send({ type: "STEP_STARTED", stepName: this.step });
  }

  #openMessage() {
    this.#openStep();
    const attempt = this.attempts > 0 ? `~${this.attempts + 1}` : "";
    return (this.message ??= new Message(this, `${this.runId}/${this.turnIndex}${attempt}`));
  }

  /** @param {string} name @param {JsonValue} value */
  #custom(name, value) {
    this.send({ type: "CUSTOM", name: `turnwheel.${name}`, value });
  }
}

/** @param {Lane | undefined} parent @param {string} callId @returns {string} */
function prefixOf(parent, callId) {
  return parent ? `${parent.prefix}${callId}/` : "";
}

/** A result for the client. @param {ToolResultMessage} result @param {boolean} takesParts @returns {JsonValue} */
function contentOf({ content }, takesParts) {
  const media = content.filter(({ type }) => type !== "text").length;
  if (media === 0) return joinTexts(content);
  if (!takesParts) return `${joinTexts(content)}\n[images: ${media}]`.trim();
  return content.map((block) => {
    if (block.type === "text") return /** @type {JsonValue} */ ({ type: "text", text: block.text });
    const source = block.data === undefined ? { type: "url", value: block.url } : { type: "data", value: block.data };
    const type = block.type === "image" ? "image" : "document";
    const name = block.type === "file" && block.name !== undefined ? { metadata: { filename: block.name } } : {};
    return /** @type {JsonValue} */ ({ type, source: { ...source, ...(block.mimeType && { mimeType: block.mimeType }) }, ...name });
  });
}
