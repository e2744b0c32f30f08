// @ts-check
// When what happened: the events of an agent and of the agents inside its calls, folded into lanes of spans with their
// times. A lane has rows, so that what overlaps stands below each other. An event changes a few spans at most, whatever
// came before it.

import { counted, duration, inWords, short, textOf } from "./words.js";

/** @import { AgentEvent, ToolResultMessage } from "../../index.js" */
/** @typedef {"waiting" | "thinking" | "text" | "tool_call" | "running" | "done" | "failed" | "cut" | "asked" | "approved" | "rejected" | "retry" | "compaction"} SpanKind */
/**
 * Something that took time. `n` is the event that began it, `endN` the one that ended it; until then `end` is Infinity.
 * @typedef {{ lane: Lane, kind: SpanKind, start: number, end: number, n: number, endN: number, detail: string, callId?: string, progress?: number }} Span
 */
/** @typedef {{ key: string, name: string, kind: "model" | "tool" | "approvals" | "retries" | "compaction", depth: number, rows: Span[][] }} Lane */
/** @typedef {"said" | "steer" | "follow_up" | "stop" | "note" | "budget" | "resumed"} MarkKind */
/** @typedef {{ kind: MarkKind, at: number, n: number, text: string }} Mark */
/** @typedef {{ index: number, start: number, end: number, n: number, reason: string }} Turn */

/** Causes that are no failure: somebody or something ended the call. */
const CUT = new Set(["steering", "aborted", "skipped", "policy_stop", "transfer", "interrupted", "filtered", "budget"]);
/** What stands first, in this order. Tools follow in the order in which they were first called. */
const ORDER = ["model", "retries", "compaction", "approvals"];
const NAMES = { model: "model", retries: "retries", compaction: "compaction", approvals: "approvals" };

/** @param {ToolResultMessage} result @returns {"done" | "failed" | "cut"} */
export function outcomeOf(result) {
  if (!result.isError) return "done";
  return result.cause && CUT.has(result.cause) ? "cut" : "failed";
}

/** One agent: the root, or the one inside a call. */
class Tracker {
  /** @param {Lanes} all @param {string[]} names those of the tools that lead to it */
  constructor(all, names) {
    this.all = all;
    this.names = names;
    this.turnIndex = 0;
    /** The part of the answer that arrives. @type {Span | undefined} */
    this.part = undefined;
    /** The backoff after a failed attempt. @type {Span | undefined} */
    this.backoff = undefined;
    /** The spans of the calls that run, and the names of all calls of the turn. @type {Map<string, Span>} */
    this.calls = new Map();
    /** @type {Map<string, string>} */
    this.toolNames = new Map();
    /** The open questions by id. @type {Map<string, Span>} */
    this.questions = new Map();
  }

  /** @param {Lane["kind"]} kind @param {string} [name] of a tool */
  #lane(kind, name = NAMES[/** @type {"model"} */ (kind)]) {
    return this.all.laneOf(this.names, kind, name);
  }

  /** @param {AgentEvent} event @param {number} at @param {number} n */
  push(event, at, n) {
    if (this.backoff && event.type !== "retry_attempt") this.backoff = close(this.backoff, Math.min(at, this.backoff.end), n);
    switch (event.type) {
      case "agent_start": case "agent_end":
        return this.#closeAll(at, n);
      case "run_resumed":
        this.#closeAll(at, n);
        for (const { id, toolName } of event.pendingApprovals) this.#ask(id, toolName, at, n);
        if (this.names.length === 0) this.all.mark("resumed", "the run was resumed", at, n);
        return;
      case "turn_start":
        this.turnIndex = event.turnIndex;
        this.toolNames.clear();
        return;
      case "message_start":
        return this.#part("waiting", at, n);
      case "message_update":
        if (event.delta.type === "tool_call") this.toolNames.set(event.delta.callId, event.delta.toolName);
        if (this.part?.kind !== event.delta.type) this.#part(event.delta.type, at, n);
        return;
      case "message_reset":
        return this.#part("waiting", at, n);
      case "message_end":
        if (this.part) this.part.detail += `; ${inWords(event.message.stopReason)}`;
        return this.#endPart(at, n);
      case "retry_attempt":
        // Its end is known beforehand: this keeps the lane to scale while the clock stands still.
        this.backoff = this.all.add(this.#lane("retries"), { kind: "retry", start: at, end: at + event.delayMs, n, detail: `attempt ${event.attempt} failed: ${short(event.reason)}; waits ${duration(event.delayMs)}` });
        return;
      case "context_compacted":
        this.all.add(this.#lane("compaction"), { kind: "compaction", start: at, end: at, n, detail: `${counted(event.report.droppedCount, "message")} shortened, ${event.report.tokensBefore} → ${event.report.tokensAfter} tokens` });
        return;
      case "budget":
        return this.all.mark("budget", `${event.kind} ${event.state === "warn" ? "nearly used up" : "used up"}`, at, n);
      default:
        this.#pushCall(event, at, n);
    }
  }

  /** @param {AgentEvent} event @param {number} at @param {number} n */
  #pushCall(event, at, n) {
    switch (event.type) {
      case "tool_approval_requested":
        if (!event.path?.length) this.#ask(event.id ?? event.callId, event.toolName, at, n);
        return;
      case "tool_approval_resolved": {
        const question = this.questions.get(event.id ?? event.callId);
        if (!question) return;
        this.questions.delete(event.id ?? event.callId);
        question.kind = event.approved ? "approved" : "rejected";
        question.detail += `: ${event.approved ? "approved" : "rejected"} by ${event.by}`;
        return void close(question, at, n);
      }
      case "tool_execution_start": {
        this.toolNames.set(event.callId, event.toolName);
        const span = this.all.add(this.#lane("tool", event.toolName), { kind: "running", start: at, end: Infinity, n, detail: short(JSON.stringify(event.arguments)), callId: event.callId });
        return void this.calls.set(event.callId, span);
      }
      case "tool_execution_update": {
        const progress = /** @type {any} */ (event.update)?.details?.progress;
        const span = this.calls.get(event.callId);
        if (span && typeof progress === "number") span.progress = Math.min(1, Math.max(0, progress));
        return;
      }
      case "tool_execution_end": {
        // A call that never ran has an end without a start.
        const span = this.calls.get(event.callId) ?? this.all.add(this.#lane("tool", event.toolName), { kind: "running", start: at, end: Infinity, n, detail: "never ran", callId: event.callId });
        this.calls.delete(event.callId);
        span.kind = outcomeOf(event.result);
        span.detail = `${span.detail} → ${short(textOf(event.result))}`;
        close(span, at, n);
      }
    }
  }

  /** @param {string} id @param {string} toolName @param {number} at @param {number} n */
  #ask(id, toolName, at, n) {
    this.questions.set(id, this.all.add(this.#lane("approvals"), { kind: "asked", start: at, end: Infinity, n, detail: `may ${toolName} run?` }));
  }

  /** @param {"waiting" | "thinking" | "text" | "tool_call"} kind @param {number} at @param {number} n */
  #part(kind, at, n) {
    this.#endPart(at, n);
    this.part = this.all.add(this.#lane("model"), { kind, start: at, end: Infinity, n, detail: `turn ${this.turnIndex}` });
  }

  /** @param {number} at @param {number} n */
  #endPart(at, n) {
    if (this.part) this.part = close(this.part, at, n);
  }

  /** What a run left open that was cut off, by a reload of the page for example. @param {number} at @param {number} n */
  #closeAll(at, n) {
    this.#endPart(at, n);
    for (const open of [this.calls, this.questions]) {
      for (const span of open.values()) {
        if (span.kind === "running" || span.kind === "asked") span.kind = "cut";
        close(span, at, n);
      }
      open.clear();
    }
  }
}

/** @param {Span} span @param {number} at @param {number} n @returns {undefined} */
function close(span, at, n) {
  span.end = Math.max(span.start, at);
  span.endN = n;
}

export class Lanes {
  constructor() {
    /** @type {Lane[]} */
    this.lanes = [];
    /** @type {Map<string, Lane>} */
    this.byKey = new Map();
    /** All of it, as the rows of a table: spans and marks as they begin, turns as they end. @type {(Span | Mark | Turn)[]} */
    this.rows = [];
    /** Of the outermost agent. @type {Turn[]} */
    this.turns = [];
    /** The runs of the outermost agent. @type {{ start: number, end: number, n: number }[]} */
    this.runs = [];
    /** When it ran: a run that was interrupted and resumed has several parts. What is between them is idle time. @type {{ start: number, end: number, last: number }[]} */
    this.parts = [];
    /** @type {Mark[]} */
    this.marks = [];
    /** The times of the first and the last event. */
    this.from = NaN;
    this.to = NaN;
    this.root = new Tracker(this, []);
    /** The agents inside the calls that run, by the ids of the calls. @type {Map<string, Tracker>} */
    this.inside = new Map();
  }

  /** @param {AgentEvent} event @param {number} at @param {number} n */
  push(event, at, n) {
    if (Number.isNaN(this.from)) this.from = at;
    this.to = at;
    if (event.type === "subagent_event") return this.#trackerOf(event.path ?? [event.callId]).push(event.event, at, n);
    this.#pushRun(event, at, n);
    if (event.type === "turn_start") this.turns.push({ index: event.turnIndex, start: at, end: Infinity, n, reason: "" });
    const turn = this.turns.at(-1);
    if (turn && turn.end === Infinity && (event.type === "turn_end" || event.type === "agent_end" || event.type === "run_resumed")) {
      turn.end = at;
      this.rows.push(turn);
      turn.reason = event.type === "turn_end" ? event.reason : "";
    }
    this.root.push(event, at, n);
    if (event.type === "tool_execution_end") this.#leave(event.callId);
  }

  /** @param {AgentEvent} event @param {number} at @param {number} n */
  #pushRun({ type }, at, n) {
    const [run, part] = [this.runs.at(-1), this.parts.at(-1)];
    const isOther = !run || !part || run.end !== Infinity || type === "agent_start";
    if (isOther && run && part && run.end === Infinity) run.end = part.last;
    if (isOther) this.runs.push({ start: at, end: Infinity, n });
    if (isOther || type === "run_resumed") {
      if (part?.end === Infinity) part.end = part.last;
      this.parts.push({ start: at, end: Infinity, last: at });
    }
    const [open, running] = [this.runs.at(-1), this.parts.at(-1)];
    if (running) running.last = at;
    if (type === "agent_end" && open && running) open.end = running.end = at;
  }

  /** @param {MarkKind} kind @param {string} text @param {number} at @param {number} n */
  mark(kind, text, at, n) {
    const mark = { kind, text, at, n };
    this.marks.push(mark);
    this.rows.push(mark);
  }

  /** @param {string[]} path */
  #trackerOf(path) {
    const key = path.join("\n");
    const known = this.inside.get(key);
    if (known) return known;
    const names = path.map((callId, depth) => (depth === 0 ? this.root : this.inside.get(path.slice(0, depth).join("\n")))?.toolNames.get(callId) ?? "agent");
    const tracker = new Tracker(this, names);
    this.inside.set(key, tracker);
    return tracker;
  }

  /** @param {string} callId of a call that is over */
  #leave(callId) {
    for (const key of this.inside.keys()) if (key === callId || key.startsWith(`${callId}\n`)) this.inside.delete(key);
  }

  /**
   * The lane of an agent. Agents inside calls of the same tool share theirs: there may be hundreds of them.
   * @param {string[]} names @param {Lane["kind"]} kind @param {string} name @returns {Lane}
   */
  laneOf(names, kind, name) {
    const key = [...names, kind, name].join("\n");
    const known = this.byKey.get(key);
    if (known) return known;
    /** @type {Lane} */
    const lane = { key, name, kind, depth: names.length, rows: [] };
    this.byKey.set(key, lane);
    this.lanes.splice(this.#placeOf(names, kind), 0, lane);
    return lane;
  }

  /** Where a new lane stands: agents below the tool that runs them. @param {string[]} names @param {Lane["kind"]} kind */
  #placeOf(names, kind) {
    const depth = names.length;
    const parent = depth === 0 ? -1 : this.lanes.findIndex(({ key }) => key === [...names.slice(0, -1), "tool", names.at(-1)].join("\n"));
    const rank = (/** @type {string} */ name) => (ORDER.includes(name) ? ORDER.indexOf(name) : ORDER.length);
    let at = parent + 1;
    while (at < this.lanes.length) {
      const other = /** @type {Lane} */ (this.lanes[at]);
      if (other.depth < depth || (other.depth === depth && rank(other.kind) > rank(kind))) break;
      at++;
    }
    return at;
  }

  /**
   * Puts a span into the first row that is free.
   * @param {Lane} lane @param {Omit<Span, "lane" | "endN">} given @returns {Span}
   */
  add(lane, given) {
    /** @type {Span} */
    const span = { endN: given.n, ...given, lane };
    const row = lane.rows.find((candidate) => (candidate.at(-1)?.end ?? 0) <= span.start);
    if (row) row.push(span);
    else lane.rows.push([span]);
    this.rows.push(span);
    return span;
  }

  /** Forgets what was over before an event. @param {number} n */
  forget(n) {
    const isKept = (/** @type {Span} */ { end, endN }) => end === Infinity || endN >= n;
    for (const lane of this.lanes) lane.rows = lane.rows.map((row) => row.filter(isKept));
    this.rows = this.rows.filter((row) => ("lane" in row ? isKept(row) : row.n >= n));
    this.turns = this.turns.filter((turn) => turn.end === Infinity || turn.n >= n);
    this.marks = this.marks.filter((mark) => mark.n >= n);
    const [first] = this.rows;
    this.from = first === undefined ? this.to : "at" in first ? first.at : first.start;
    const isLater = (/** @type {{ end: number }} */ { end }) => end >= this.from;
    this.runs = this.runs.filter(isLater);
    this.parts = this.parts.filter(isLater);
  }
}
