// @ts-check
// The events of a run as AG-UI events: those of one response, which ends with the run or where the run waits.

import { noUsage } from "../shared.js";
import { Lane } from "./lane.js";

/** @import { AgentEvent, AgentMessage, ErrorInfo, JsonValue, JsonSchema, Question, Usage } from "../index.js" */
/** @import { AGUIEvent } from "../ag-ui.js" */
/** @template {AgentEvent["type"]} T @typedef {Extract<AgentEvent, { type: T }>} EventOf */
/** @import { Pending } from "./lane.js" */
/** @typedef {Pick<Question, "id" | "callId" | "toolName" | "message"> & { kind?: Question["kind"], path?: readonly string[], schema?: JsonSchema, budget?: Extract<Question, { kind: "budget" }>["budget"] }} Asked */
/**
 * @typedef {object} Options
 * @property {string} threadId
 * @property {string} runId of the response: each one is a run for the client
 * @property {string | undefined} protocolVersion that of the client, if it has said so
 * @property {ReadonlySet<string>} frontendTools the tools that the client runs
 * @property {(id: string) => boolean} isForPeople whether a question about a call is one for a person
 * @property {{ [key: string]: JsonValue }} state that of the session at the beginning of the run
 * @property {boolean} showsState whether the client is told of it from the beginning
 * @property {(error: ErrorInfo) => string} onError
 */

/** The version of the protocol that is spoken here. */
const PROTOCOL_VERSION = "1.0";

export class AGUIEvents {
  /** @param {string} runId @param {Options} options */
  constructor(runId, options) {
    this.options = options;
    /** @type {AGUIEvent[]} */
    this.out = [];
    this.root = new Lane((event) => this.out.push(event), { runId, takesParts: options.protocolVersion !== undefined });
    this.isOver = false;
    this.state = structuredClone(options.state);
    this.showsState = options.showsState;
  }

  /** The beginning of the response, after the events of other responses were replayed. */
  begin() {
    const { threadId, runId } = this.options;
    this.#send({ type: "RUN_STARTED", threadId, runId, protocolVersion: PROTOCOL_VERSION });
    if (this.showsState) this.#sendState();
    return this.#taken();
  }

  /** The responses before this one have ended, and what they had open with them. */
  rest() {
    this.root.pause();
    this.#taken();
  }

  /** Whether nothing goes on until the client answers. */
  get isWaiting() {
    return !this.isOver && this.root.isWaiting;
  }

  /** Ends a response whose run waits. */
  pause() {
    const { threadId, runId, protocolVersion, frontendTools } = this.options;
    const questions = this.#questions(this.root);
    this.root.pause();
    const isOfClient = (/** @type {Pending} */ { kind, toolName }) => kind === "tool_call" && frontendTools.has(toolName ?? "");
    const interrupts = questions.filter(({ asked }) => !isOfClient(asked)).map(({ id, asked, lane }) => interruptOf(id, asked, lane));
    const pendingToolCallIds = questions.filter(({ asked }) => isOfClient(asked)).map(({ asked, lane }) => lane.shownCall(asked.callId ?? ""));
    // Clients of before 1.0 refuse what they do not know; CopilotKit and assistant-ui bring 0.0.59.
    /** @type {JsonValue} */
    const outcome = interrupts.length > 0 ? { type: "interrupt", interrupts } : { type: "success", ...(protocolVersion !== undefined && { pendingToolCallIds }) };
    this.#send({ type: "RUN_FINISHED", threadId, runId, outcome });
    this.isOver = true;
    return this.#taken();
  }

  /** @param {AgentEvent} event @returns {AGUIEvent[]} */
  take(event) {
    switch (event.type) {
      case "subagent_event": return this.#inside(event);
      case "agent_end": return this.#end(event);
      case "state_changed": return this.#changeState(event);
      case "tool_approval_requested": case "question_asked": return this.#ask(event);
      default: return this.#tell(event);
    }
  }

  /** @param {AgentEvent} event of the agent itself */
  #tell(event) {
    if (event.type === "tool_approval_resolved" || event.type === "question_resolved") this.#lane(event.path)?.pending.delete(event.id);
    this.root.take(event);
    // Agents inside have said nothing yet that could go on.
    if (event.type === "run_resumed") [...event.pendingApprovals, ...(event.pendingQuestions ?? [])].forEach((question) => this.#ask(question));
    return this.#taken();
  }

  /** @param {EventOf<"subagent_event">} event */
  #inside({ path, event }) {
    const callId = path.at(-1) ?? "";
    const parent = this.#lane(path.slice(0, -1));
    if (!parent) return [];
    const lane = parent.inside(callId, event.runId);
    // Questions that the client can answer are told by the agent around it.
    if (event.type !== "state_changed" && event.type !== "tool_approval_resolved" && event.type !== "question_resolved") lane.take(event);
    return this.#taken();
  }

  /** @param {Asked} question */
  #ask({ id, kind = "tool", callId, toolName, path, message, schema, budget }) {
    const { isForPeople } = this.options;
    // Whether a call may run may be the host's to decide; the other questions are always somebody's.
    if (kind !== "tool" || isForPeople(id)) this.#lane(path, true)?.pending.set(id, { kind, callId, toolName, message, schema, budget });
    return [];
  }

  /** @param {Lane} lane @returns {{ id: string, asked: Pending, lane: Lane }[]} */
  #questions(lane) {
    const own = [...lane.pending].map(([id, asked]) => ({ id, asked, lane }));
    return [...own, ...[...lane.running.values()].flatMap((inside) => (inside ? this.#questions(inside) : []))];
  }

  /** The agent inside these calls, which may be about to go on. @param {readonly string[]} [path] @param {boolean} [isThere] @returns {Lane | undefined} */
  #lane(path = [], isThere = false) {
    /** @type {Lane | undefined} */
    let lane = this.root;
    for (const callId of path) lane = isThere ? lane?.inside(callId) : lane?.running.get(callId);
    return lane;
  }

  /** @param {EventOf<"state_changed">} event */
  #changeState({ changes }) {
    const delta = Object.entries(changes).flatMap(([key, value]) => {
      const isThere = Object.hasOwn(this.state, key);
      const path = `/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`;
      if (value === null) {
        delete this.state[key];
        return isThere ? [{ op: "remove", path }] : [];
      }
      define(this.state, key, value);
      return [{ op: isThere ? "replace" : "add", path, value }];
    });
    if (!this.showsState) this.#sendState();
    else if (delta.length > 0) this.#send({ type: "STATE_DELTA", delta });
    return this.#taken();
  }

  #sendState() {
    this.showsState = true;
    this.#send({ type: "STATE_SNAPSHOT", snapshot: structuredClone(this.state) });
  }

  /** @param {EventOf<"agent_end"> & { output?: JsonValue }} event */
  #end({ error, stopReason, usage, messages, output }) {
    const { threadId, runId, protocolVersion, onError } = this.options;
    this.isOver = true;
    this.root.close();
    const spent = { usage: [tokenUsage(usage, messages)] };
    if (stopReason === "error" && error) this.#send({ type: "RUN_ERROR", message: onError(error), code: error.code, ...spent });
    else {
      // Clients of before 1.0 refuse this outcome.
      const cancelled = stopReason === "aborted" && protocolVersion !== undefined;
      this.#send({ type: "RUN_FINISHED", threadId, runId, result: { stopReason, ...(output !== undefined && { output }) }, ...(cancelled && { outcome: { type: "cancelled" } }), ...spent });
    }
    return this.#taken();
  }

  /** @param {AGUIEvent} event */
  #send(event) {
    this.out.push(event);
  }

  #taken() {
    return this.out.splice(0);
  }
}

/**
 * A question for the client, with the form of its answer if a yes is not enough.
 * @param {string} id @param {Pending} asked @param {Lane} lane of the agent that asks @returns {{ [member: string]: JsonValue }}
 */
function interruptOf(id, { kind, callId, toolName, message, schema = {}, budget }, lane) {
  const place = { ...(callId !== undefined && { toolCallId: lane.shownCall(callId) }), ...(lane.parent && { subagentRunId: lane.runId }) };
  if (kind === "tool") return { id, reason: "tool_call", ...place, message: message ?? `May \`${toolName}\` run?` };
  const form = (/** @type {string} */ name, /** @type {object} */ value) => ({ responseSchema: /** @type {JsonValue} */ ({ type: "object", properties: { [name]: value }, required: [name] }) });
  if (kind === "elicitation") return { id, reason: "input_required", ...place, ...(message !== undefined && { message }), ...form("content", schema) };
  if (kind === "tool_call") return { id, reason: "turnwheel.tool_call", ...place, message: `What is the result of \`${toolName}\`?`, ...form("output", {}) };
  const what = budget?.kind ?? "";
  const raise = { type: "object", properties: { [what]: { type: "number", exclusiveMinimum: 0 } }, required: [what] };
  return { id, reason: "turnwheel.budget", ...place, ...(message !== undefined && { message }), ...form("raise", raise), metadata: { budget: /** @type {JsonValue} */ (budget ?? {}) } };
}

/** Also a key that is a word of JavaScript. @param {object} object @param {string} key @param {JsonValue} value */
function define(object, key, value) {
  Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });
}

/** The usage in the protocol's own accounting, where the input has what came from a cache. @param {Usage} usage @param {readonly AgentMessage[]} messages */
function tokenUsage(usage = noUsage(), messages = []) {
  const { input, output, cacheRead, cacheWrite, reasoning } = usage;
  const models = new Set(messages.flatMap((message) => (message.role === "assistant" && message.model ? [`${message.provider}\n${message.model}`] : [])));
  const [provider, model] = [...models][0]?.split("\n") ?? [];
  const inputTokens = input + cacheRead + cacheWrite;
  return {
    ...(models.size === 1 && { ...(provider && { provider }), ...(model && { model }) }),
    inputTokens, outputTokens: output, totalTokens: inputTokens + output,
    ...(reasoning && { reasoningTokens: reasoning }), ...(cacheRead > 0 && { cachedInputTokens: cacheRead }), ...(cacheWrite > 0 && { cacheWriteInputTokens: cacheWrite }),
  };
}
