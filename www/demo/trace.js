// @ts-check
// When what happened in a run: its events, folded into turns, answers and calls with their times. The terminal draws this
// as rows of blocks; the page, whose picture is the inspector's, has its times and suggestions from it.

/** @typedef {import("../npm/index.js").AgentEvent} AgentEvent */
/** @typedef {import("../npm/index.js").ToolResultMessage} ToolResultMessage */
/** @typedef {import("../npm/index.js").ToolOutput} ToolOutput */
/** @typedef {import("../npm/index.js").JsonValue} JsonValue */

/** @typedef {"thinking" | "text" | "tool_call"} PartKind */
/** @typedef {{ kind: PartKind, start: number, end: number }} Part */
/** @typedef {{ turn: number, start: number, end?: number, parts: Part[], pieces: number, stopReason?: string, isTakenBack?: boolean }} Answer */
/** @typedef {{ index: number, start: number, end?: number, reason?: string }} Turn */
/** @typedef {"asked" | "running" | "done" | "failed" | "cut"} CallState */
/** @typedef {{ callId: string, toolName: string, turn: number, state: CallState, asked: number, start?: number, end?: number, given?: JsonValue, progress?: number, text?: string }} Call */
/** @typedef {"steer" | "follow_up" | "stop" | "retry" | "note"} MarkKind */
/** @typedef {{ kind: MarkKind, at: number, label: string }} Mark */

export class Trace {
  /** @param {number} startedAt on the clock whose readings `push` gets, in milliseconds; everything kept is relative to it */
  constructor(startedAt) {
    this.startedAt = startedAt;
    /** @type {number | undefined} */
    this.endedAt = undefined;
    /** @type {string | undefined} */
    this.stopReason = undefined;
    /** @type {Turn[]} */
    this.turns = [];
    /** @type {Answer[]} */
    this.answers = [];
    /** @type {Map<string, Call>} */
    this.calls = new Map();
    /** @type {Mark[]} */
    this.marks = [];
  }

  /** @param {AgentEvent} event @param {number} now */
  push(event, now) {
    const at = now - this.startedAt;
    const answer = this.answers.at(-1);
    switch (event.type) {
      case "turn_start":
        this.turns.push({ index: event.turnIndex, start: at });
        break;
      case "message_start":
        this.answers.push({ turn: this.turns.at(-1)?.index ?? 0, start: at, parts: [], pieces: 0 });
        break;
      case "message_update":
        if (event.delta.type === "tool_call") this.#call(event.delta, at);
        if (answer) extend(answer, event.delta.type, at);
        break;
      case "message_reset":
        // Its calls were never made; what follows belongs to another attempt.
        for (const [callId, call] of this.calls) if (call.state === "asked" && call.turn === answer?.turn) this.calls.delete(callId);
        if (answer) answer.isTakenBack = true;
        break;
      case "message_end":
        if (answer) Object.assign(answer, { end: at, stopReason: event.message.stopReason });
        break;
      case "tool_execution_start":
        Object.assign(this.#call(event, at), { start: at, state: "running", given: event.arguments });
        break;
      case "run_resumed":
        this.mark("note", "the page was reloaded", now);
        break;
      case "tool_execution_update": {
        const progress = progressOf(event.update);
        if (progress !== undefined) this.#call(event, at).progress = progress;
        break;
      }
      case "tool_execution_end":
        Object.assign(this.#call(event, at), { end: at, state: outcomeOf(event.result), text: textOf(event.result) });
        break;
      case "turn_end": {
        const turn = this.turns.at(-1);
        if (turn) Object.assign(turn, { end: at, reason: event.reason });
        break;
      }
      case "retry_attempt":
        this.mark("retry", `attempt ${event.attempt} failed: ${event.reason}`, now);
        break;
      case "agent_end":
        this.endedAt = at;
        this.stopReason = event.stopReason;
        break;
    }
  }

  /** @param {MarkKind} kind @param {string} label @param {number} now */
  mark(kind, label, now) {
    this.marks.push({ kind, label, at: now - this.startedAt });
  }

  /**
   * Groups the calls by tool, in the order in which the tools first appear. Calls that
   * overlap get rows of their own.
   */
  lanes() {
    /** @type {Map<string, Call[][]>} */
    const lanes = new Map();
    for (const call of this.calls.values()) {
      const rows = lanes.get(call.toolName) ?? [];
      lanes.set(call.toolName, rows);
      const free = rows.find((row) => (row.at(-1)?.end ?? Infinity) <= (call.start ?? call.asked));
      if (free) free.push(call);
      else rows.push([call]);
    }
    return [...lanes].map(([name, rows]) => ({ name, rows }));
  }

  /** Returns the largest number of tools that ran at the same time. */
  mostAtOnce() {
    const spans = [...this.calls.values()].filter((call) => call.start !== undefined);
    return spans.reduce((most, { start = 0 }) => Math.max(most, spans.filter((other) => (other.start ?? 0) <= start && (other.end ?? Infinity) > start).length), 0);
  }

  /** @param {{ callId: string, toolName: string }} id @param {number} at @returns {Call} */
  #call({ callId, toolName }, at) {
    const known = this.calls.get(callId);
    if (known) return known;
    /** @type {Call} */
    const call = { callId, toolName, turn: this.turns.at(-1)?.index ?? 0, state: "asked", asked: at };
    this.calls.set(callId, call);
    return call;
  }
}

/** @param {Answer} answer @param {PartKind} kind @param {number} at */
function extend(answer, kind, at) {
  const last = answer.isTakenBack ? undefined : answer.parts.at(-1);
  answer.pieces = answer.isTakenBack ? 1 : answer.pieces + 1;
  answer.isTakenBack = false;
  if (last?.kind === kind) last.end = at;
  else {
    if (last) last.end = at;
    answer.parts.push({ kind, start: at, end: at });
  }
}

/** Causes that are not a failure: somebody or something ended the call. */
const CUT = new Set(["steering", "aborted", "skipped", "policy_stop", "transfer", "interrupted", "filtered"]);

/** @param {ToolResultMessage} result @returns {"done" | "failed" | "cut"} */
export function outcomeOf(result) {
  if (!result.isError) return "done";
  return result.cause && CUT.has(result.cause) ? "cut" : "failed";
}

/**
 * The text of a result, of an update, or of anything a tool may return.
 * @param {ToolOutput | ToolResultMessage | undefined} output @returns {string}
 */
export function textOf(output) {
  if (output === undefined || output === null) return "";
  if (typeof output === "string") return output;
  if (typeof output === "object" && "content" in output && Array.isArray(output.content)) {
    return output.content.map((block) => (isText(block) ? block.text : "[image]")).join("\n");
  }
  return JSON.stringify(output);
}

/** @param {unknown} block @returns {block is { type: "text", text: string }} */
function isText(block) {
  return typeof block === "object" && block !== null && "text" in block && typeof block.text === "string";
}

/** The progress that a tool reports, from 0 to 1. @param {ToolOutput} update @returns {number | undefined} */
export function progressOf(update) {
  if (typeof update !== "object" || update === null || !("details" in update)) return undefined;
  const details = /** @type {{ progress?: unknown } | null | undefined} */ (update.details);
  return typeof details?.progress === "number" ? Math.min(1, Math.max(0, details.progress)) : undefined;
}

/** 0.45 s, 12.3 s, 2 min 5 s. @param {number} ms */
export function duration(ms) {
  if (ms < 10_000) return `${(ms / 1000).toFixed(2)} s`;
  if (ms < 120_000) return `${(ms / 1000).toFixed(1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

/** Words stop reasons and turn ends for people. @param {string | undefined} reason */
export function inWords(reason) {
  const words = {
    completed: "completed", aborted: "stopped", error: "failed", max_turns: "stopped after the most turns allowed", policy_stop: "stopped by a policy", budget: "stopped, the budget is used up", transfer: "handed over",
    complete: "answered", tools_executed: "tools done", steering_interrupt: "steered", tool_use: "asks for tools", stop: "finished", length: "cut at the length limit",
    content_filter: "held back by a filter", refusal: "refused", pause: "paused",
  };
  return words[/** @type {keyof typeof words} */ (reason ?? "")] ?? reason ?? "";
}
