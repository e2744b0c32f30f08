// @ts-check
// The grammar of a run as a checker. It is given every trace of every test, and throws where one breaks a rule.
//
//   run     = (agent_start | run_resumed) turn* agent_end
//   turn    = turn_start message? tools turn_end
//   message = message_start (message_update | message_reset)* message_end
//   tools   = each call exactly once: tool_execution_start? tool_execution_update* tool_execution_end
//
// Every other event may stand anywhere inside a run.

const ANYWHERE = new Set([
  "context_compacted", "before_llm_call", "retry_attempt", "model_fallback", "model_switched", "tool_calls_proposed",
  "tool_approval_requested", "tool_approval_resolved", "command_refused", "state_changed", "cache_action",
  "transfer_initiated", "subagent_event", "budget", "custom",
]);

/**
 * Throws an error that names the event and the rule, if the trace of one run breaks a rule.
 *
 * @param {any[]} events in order, of one run, from its start to its end
 */
export function checkTrace(events) {
  const walk = new Walk();
  events.forEach((event, at) => walk.take(event, at));
  walk.finish(events.length);
}

/** Whether what was heard is the whole trace of a run. @param {any[]} events */
export const isWhole = (events) => events.at(-1)?.type === "agent_end";

class Walk {
  constructor() {
    this.at = 0;
    /** @type {any} */
    this.event = undefined;
    this.begun = false;
    this.ended = false;
    this.turns = 0;
    this.turnOpen = false;
    this.message = "none";
    /** The message of the turn. @type {any} */
    this.answer = undefined;
    /** The calls of the turn and their progress. @type {Map<string, "started" | "ended">} */
    this.calls = new Map();
    /** @type {any[]} */
    this.results = [];
    /** The ids of the questions that were asked, and whether each is open; not those about calls. @type {Map<string, boolean>} */
    this.questions = new Map();
    /** Everything that the turns announced, in order. @type {any[]} */
    this.announced = [];
  }

  /** @param {any} event @param {number} at */
  take(event, at) {
    this.at = at;
    this.event = event;
    this.plain();
    this.rule(!this.ended, "nothing follows agent_end");
    if (!this.begun) return this.begin();
    if (ANYWHERE.has(event.type)) return;
    const rule = /** @type {any} */ (this)[event.type];
    this.rule(typeof rule === "function" && RULES.has(event.type), "the event is known");
    rule.call(this, event);
  }

  /** Checks that an event is plain data of this run. */
  plain() {
    const { event } = this;
    const text = JSON.stringify(event);
    this.rule(same(JSON.parse(text), structuredClone(event)), "an event is plain JSON");
    this.rule(typeof event.runId === "string" && event.runId !== "", "an event names its run");
    this.run ??= event.runId;
    this.rule(event.runId === this.run, "all events are of one run");
  }

  begin() {
    this.rule(this.event.type === "agent_start" || this.event.type === "run_resumed", "a run begins with agent_start or run_resumed");
    this.begun = true;
    for (const { id } of this.event.pendingQuestions ?? []) this.questions.set(id, true);
  }

  /** @param {any} event */
  question_asked({ id, kind, path, callId, message }) {
    this.rule(!this.questions.has(id), "no question has the id of another");
    this.rule(this.turnOpen && message !== "", "a question is asked in words, in a turn");
    if (kind === "elicitation") this.rule(this.calls.get(path[0] ?? callId) === "started", "a tool asks while it runs");
    this.questions.set(id, true);
  }

  /** @param {any} event */
  question_resolved({ id }) {
    this.rule(this.questions.get(id), "a question is closed once");
    this.questions.set(id, false);
  }

  /** @param {any} event */
  turn_start(event) {
    this.rule(!this.turnOpen, "a turn begins when the one before it is over");
    this.rule(event.turnIndex === this.turns, "turns are counted from 0");
    this.turnOpen = true;
    this.message = "none";
    this.answer = undefined;
    this.calls.clear();
    this.results = [];
  }

  message_start() {
    this.rule(this.turnOpen && this.message === "none", "there is one message in a turn");
    this.message = "open";
  }

  /** @param {any} event */
  message_update({ delta }) {
    this.rule(this.message === "open", "an update stands inside a message");
    this.rule(["text", "thinking", "tool_call"].includes(delta.type), "a delta is text, thinking or a call's arguments");
    this.rule(typeof delta.delta === "string" && Number.isInteger(delta.contentIndex), "a delta is a piece of a block");
    if (delta.type === "tool_call") this.rule(delta.callId !== "" && typeof delta.toolName === "string", "a call's delta names the call");
  }

  message_reset() {
    this.rule(this.message === "open", "a reset stands inside a message");
  }

  /** @param {any} event */
  message_end({ message }) {
    this.rule(this.message === "open", "a message ends once");
    this.rule(message.role === "assistant", "the message is the model's");
    this.message = "over";
    this.answer = message;
  }

  /** @param {any} event */
  tool_execution_start({ callId }) {
    this.call(callId);
    this.rule(!this.calls.has(callId), "a call starts once");
    this.calls.set(callId, "started");
  }

  /** @param {any} event */
  tool_execution_update({ callId }) {
    this.rule(this.calls.get(callId) === "started", "an update stands between a call's start and its end");
  }

  /** @param {any} event */
  tool_execution_end({ callId, result, isError }) {
    this.call(callId);
    this.rule(this.calls.get(callId) !== "ended", "a call ends once");
    this.rule(result.role === "tool_result" && result.callId === callId && result.isError === isError, "the end of a call has its result");
    this.calls.set(callId, "ended");
    this.results.push(result);
  }

  /** @param {string} callId */
  call(callId) {
    this.rule(this.turnOpen && this.message === "over", "tools run after the message");
    this.rule(callsOf(this.answer).some((call) => call.callId === callId), "a tool runs because the message calls it");
  }

  /** @param {any} event */
  turn_end({ turnIndex, message, toolResults, reason }) {
    this.rule(this.turnOpen && turnIndex === this.turns, "a turn ends once");
    this.rule(this.message !== "open", "a message ends before its turn");
    this.rule(![...this.questions.values()].includes(true), "what was asked is closed before the turn ends");
    this.rule((message === null) === (this.message === "none"), "turn_end has the message of the turn");
    this.rule(message !== null || reason === "complete", "a turn without a call of the model ends complete");
    const calls = callsOf(message).map((call) => call.callId);
    this.rule(same(calls, toolResults.map((/** @type {any} */ result) => result.callId)), "there is one result for every call, in the order of the calls");
    this.rule(calls.every((callId) => this.calls.get(callId) === "ended"), "every call ends before its turn");
    this.rule(this.calls.size === calls.length, "what started has its end");
    for (const result of toolResults) this.rule(this.results.some((ended) => same(ended, result)), "turn_end has the results that were announced");
    this.turnOpen = false;
    // A turn that never called the model does not count.
    if (message !== null) this.turns += 1;
    if (message !== null) this.announced.push(message, ...toolResults);
  }

  /** @param {any} event */
  agent_end({ messages, stopReason, turns, error, usage }) {
    this.rule(!this.turnOpen, "a turn that is open ends before its run");
    this.rule(["completed", "max_turns", "budget", "policy_stop", "transfer", "aborted", "error"].includes(stopReason), "the run says why it ended");
    this.rule((stopReason === "error") <= (error !== undefined), "a run that ends in an error says which");
    this.rule(turns <= this.turns, "no more turns are counted than there were");
    this.rule(usage.total >= 0 && usage.input >= 0 && usage.output >= 0, "the usage is told");
    let from = 0;
    for (const announced of this.announced) {
      const found = messages.findIndex((/** @type {any} */ message, /** @type {number} */ i) => i >= from && same(message, announced));
      this.rule(found >= 0, "what the turns announced stands in agent_end, in order");
      from = found + 1;
    }
    checkAnswered(messages, (holds, what) => this.rule(holds, what));
    this.ended = true;
  }

  /** @param {number} length */
  finish(length) {
    this.at = length;
    this.event = { type: "the end of the trace" };
    this.rule(this.ended, "a run ends with agent_end");
  }

  /** @param {unknown} holds @param {string} what */
  rule(holds, what) {
    if (!holds) throw new Error(`the grammar is broken at event ${this.at}: ${what}; got ${JSON.stringify(this.event)}`);
  }
}

const RULES = new Set([
  "turn_start", "turn_end", "message_start", "message_update", "message_reset", "message_end", "tool_execution_start",
  "tool_execution_update", "tool_execution_end", "agent_end", "question_asked", "question_resolved",
]);

/**
 * After any end every call of a history has exactly one result, in the order of the calls, before the next message.
 * @param {any[]} messages @param {(holds: boolean, what: string) => void} [rule]
 */
export function checkAnswered(messages, rule = (holds, what) => { if (!holds) throw new Error(what); }) {
  messages.forEach((message, at) => {
    if (message.role !== "assistant") return;
    const calls = callsOf(message).map((call) => call.callId);
    const results = messages.slice(at + 1, at + 1 + calls.length);
    rule(same(calls, results.map((result) => result.callId)), `the calls of message ${at} have their results behind them`);
  });
}

/** @param {any} message @returns {any[]} */
function callsOf(message) {
  return (message?.content ?? []).filter((/** @type {any} */ block) => block.type === "tool_call");
}

/** @param {any} a @param {any} b @returns {boolean} */
function same(a, b) {
  if (Object.is(a, b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null || Array.isArray(a) !== Array.isArray(b)) return false;
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && same(a[key], b[key]));
}
