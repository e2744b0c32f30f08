// @ts-check
// What happened to an agent, event by event, and how it stood after each of them. Adding an event costs the same however
// many there are; looking at a moment costs at most the events of its turn. A moment is the number of events that have
// happened, as on a tape: 0 is before the first.

import { checkNames, kindOf, misuse, numbersWithDefaults } from "../../shared.js";
import { HistoryVersions } from "./history.js";
import { Lanes } from "./lanes.js";
import { Requests } from "./requests.js";
import { AgentState } from "./state.js";
import { messageText, short } from "./words.js";

/** @import { AgentEvent, AgentMessage } from "../../index.js" */
/** @import { InspectorLogOptions, InspectedAgent, InspectorFrame, MarkKind } from "../../inspector.js" */

/** So many events are forgotten at once. */
const AT_ONCE = 512;
const MARKS = ["said", "steer", "follow_up", "stop", "note"];

export class InspectorLog {
  /** @param {InspectorLogOptions} [options] */
  constructor(options = {}) {
    checkNames("unknown option of InspectorLog", options, ["limit"]);
    /** How many events are kept, and a few hundred more. */
    this.limit = numbersWithDefaults("limit", options, { limit: 100_000 }).limit;
    /** The oldest moment that can be looked at: how many events were forgotten. */
    this.first = 0;
    /** @type {AgentEvent[]} */
    this.events = [];
    /** @type {number[]} */
    this.times = [];
    /** Where turns have begun, and what was known then: nothing is open there. @type {{ n: number, state: AgentState }[]} */
    this.turns = [];
    /** The state at the newest moment. */
    this.state = new AgentState();
    /** The state that was looked at last, to go on from. @type {{ n: number, state: AgentState } | undefined} */
    this.seen = undefined;
    this.history = new HistoryVersions();
    this.requests = new Requests();
    this.lanes = new Lanes();
    /** What the clock of the agent is ahead of this one. */
    this.ahead = 0;
    /** @type {Set<() => void>} */
    this.listeners = new Set();
  }

  /** The newest moment: how many events there were. */
  get end() {
    return this.first + this.events.length;
  }

  /** The event that made a moment. @param {number} n @returns {AgentEvent | undefined} */
  event(n) {
    return this.events[n - this.first - 1];
  }

  /** When a moment was, in milliseconds. @param {number} n */
  at(n) {
    return this.times[Math.max(0, n - this.first - 1)] ?? 0;
  }

  /** The last moment up to a time. @param {number} time */
  before(time) {
    let [low, high] = [0, Math.max(0, this.times.length - 1)];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (/** @type {number} */ (this.times[middle]) <= time) low = middle;
      else high = middle - 1;
    }
    return this.first + Math.min(this.times.length, low + 1);
  }

  /** The time now, on the clock of the agent. */
  now() {
    return Math.max(Date.now() + this.ahead, this.times.at(-1) ?? -Infinity);
  }

  /**
   * Adds an event.
   * @param {AgentEvent} event
   * @param {{ at?: number | undefined, messages?: readonly AgentMessage[] | undefined }} [known] when it happened, and the history after it
   */
  push(event, { at, messages } = {}) {
    if (typeof event?.type !== "string") throw misuse(`an InspectorLog takes events, got ${kindOf(event)}`);
    const told = at ?? /** @type {{ at?: number }} */ (event).at;
    if (told !== undefined) this.ahead = told - Date.now();
    const time = Math.max(told ?? this.now(), this.times.at(-1) ?? -Infinity);
    const n = this.end + 1;
    if (this.turns.length === 0) this.turns.push({ n: this.end, state: new AgentState(this.state) });
    this.state.take(event);
    if (event.type === "turn_start") this.turns.push({ n, state: new AgentState(this.state) });
    this.lanes.push(event, time, n);
    this.#noteHistory(n, time, event, messages);
    this.events.push(event.type === "before_llm_call" ? this.requests.take(n, event) : event);
    this.times.push(time);
    if (this.events.length > this.limit + AT_ONCE) this.#forget();
    this.#changed();
  }

  /** @param {number} n @param {number} at @param {AgentEvent} event @param {readonly AgentMessage[] | undefined} messages */
  #noteHistory(n, at, event, messages) {
    const { type } = event;
    if (type === "message_update" || type === "tool_execution_update" || type === "subagent_event") return;
    const isWhole = type === "message_start" || type === "turn_start" || type === "context_compacted" || type === "run_resumed";
    const added = messages ? this.history.note(n, messages, isWhole) : this.history.append(n, this.#addedBy(event));
    for (const message of added) {
      if (message.role === "user" || message.role === "custom") this.lanes.mark("said", short(messageText(message)), at, n);
    }
  }

  /** What an event says of the history, where nobody else does. @param {AgentEvent} event @returns {readonly AgentMessage[]} */
  #addedBy(event) {
    const { list, length } = this.history.last;
    if (event.type === "message_end") return [event.message];
    if (event.type === "turn_end") {
      const answerAt = list.lastIndexOf(/** @type {AgentMessage} */ (event.message), length);
      return event.toolResults.filter((result) => answerAt < 0 || !list.includes(result, answerAt));
    }
    return [];
  }

  /** Marks a moment. @param {MarkKind} kind @param {string} text @param {number} [at] */
  mark(kind, text, at = this.now()) {
    if (!MARKS.includes(kind)) throw misuse(`a mark is one of ${MARKS.join(", ")}, got ${JSON.stringify(kind)}`);
    this.lanes.mark(kind, short(text), at, this.end);
    this.#changed();
  }

  /** Adds what an agent says from now on. Returns the function that ends that. @param {InspectedAgent} agent */
  follow(agent) {
    let isNew = true;
    const begin = () => {
      this.history.note(this.end, agent.messages, true);
      this.state.isRunning = agent.isRunning;
      for (const question of agent.pendingQuestions ?? []) this.state.questions.set(question.id, question);
      if (this.events.length === 0) this.state.usageBefore = agent.usage;
      this.seen = undefined;
      this.#changed();
    };
    begin();
    const stop = agent.subscribe((event) => {
      isNew = false;
      this.push(event, { messages: agent.messages });
    }, { keep: true });
    // The history of a remote agent is known once it has answered.
    agent.ready?.().then(() => void (isNew && begin()), () => {});
    return stop;
  }

  /** Calls a function after each change. Returns the function that ends that. @param {() => void} listener */
  subscribe(listener) {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }

  #changed() {
    for (const listener of this.listeners) listener();
  }

  /** The agent as it was at a moment. @param {number} n @returns {InspectorFrame} */
  frame(n) {
    const shown = Math.min(Math.max(n, this.first), this.end);
    const state = this.#stateAt(shown);
    const { fold } = state;
    const { list, length } = this.history.at(shown);
    const { requests } = this;
    return {
      n: shown, at: this.at(shown), event: this.event(shown), runId: state.runId, isRunning: state.isRunning, phase: state.phase, turnIndex: state.turnIndex,
      usage: state.usage, stopReason: state.stopReason, error: state.error,
      streaming: fold.isAnswering ? fold.partial.content() : undefined,
      calls: [...state.calls.values()], pendingQuestions: [...state.questions.values()],
      inside: [...state.inside].map(([key, inner]) => ({ path: key.split("\n"), phase: inner.phase, turnIndex: inner.turnIndex, text: inner.fold.isAnswering ? inner.fold.partial.content() : inner.fold.answer?.content ?? [] })),
      messageCount: length, message: (index) => (index < length ? list[index] : undefined),
      get messages() {
        return list.slice(0, length);
      },
      get request() {
        return requests.at(shown);
      },
    };
  }

  /** @param {number} n @returns {AgentState} */
  #stateAt(n) {
    const { seen } = this;
    const turn = this.turns.findLast((turn) => turn.n <= n) ?? { n: this.first, state: this.state };
    const from = seen && seen.n <= n && seen.n >= turn.n ? seen : { n: turn.n, state: new AgentState(turn.state) };
    for (let i = from.n + 1; i <= n; i++) from.state.take(/** @type {AgentEvent} */ (this.event(i)));
    this.seen = { n, state: from.state };
    return from.state;
  }

  /** Forgets the oldest turns: at least `limit` events are left. */
  #forget() {
    let kept = 0;
    while ((this.turns[kept + 1]?.n ?? Infinity) <= this.end - this.limit) kept++;
    if (kept === 0) return;
    this.turns.splice(0, kept);
    const first = /** @type {{ n: number }} */ (this.turns[0]).n;
    this.events.splice(0, first - this.first);
    this.times.splice(0, first - this.first);
    this.first = first;
    this.history.forget(first);
    this.lanes.forget(first);
  }
}
