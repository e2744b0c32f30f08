// @ts-check
// The counterpart of a run: model, tools, approver, policies, transformers, keys and the user. Each does what
// the scenario says and records what it saw.

import { Clock } from "./clock.mjs";
import { listOf } from "./scenario.mjs";
import { isSecond, subAgent, withMore } from "./second.mjs";
import { Log, shownMessage, sorted, textOf } from "./trace.mjs";

/** @typedef {{ abort(): void, steer?(text: string, when?: string): void, followUp?(text: string): void }} Hands What the user can do. */

/** The state that all scripted ports share. */
export class World {
  clock = new Clock();
  log = new Log();
  /** @type {Hands | undefined} */ hands;
  /**
   * Steering and follow-up messages that wait to be polled, if they are not posted.
   * @type {{ steering: string[], followUp: string[] }}
   */
  queues = { steering: [], followUp: [] };
  modelCalls = 0;
  /** @type {any} */ host;
  /** @type {any} */ retry;
  /** The agent of the scenario, if there is one. @type {any} */ agent;
  /** The models of the scenario: the first one and its fallbacks. @type {any[]} */ models = [];
  /** What models have left to say, by their ids, and for sub-agents by the ids of their runs. @type {Map<string, any[]>} */ scripts = new Map();
  /** How many processes have ended in this world. */ lives = 0;
  /** The answers that the person is about to give, and those that are given. @type {Set<number>} */ planned = new Set();
  /** @type {Set<number>} */ answered = new Set();
  /** The questions that the person has read. @type {Set<string>} */ asked = new Set();
  #fired = new Set();
  #transforms = 0;

  /** Begins the tape of an agent. @type {((agent: any) => void) | undefined} */ record;
  /** Writes a tape of everything that is played. @type {{ note(text: string): void } | undefined} */ recorder;

  /** Writes down what no machine knows: what the host did around the runs. @param {any} note */
  note(note) {
    this.recorder?.note(JSON.stringify(note));
  }

  /** @param {any} scenario @param {import("./play.mjs").Engine} engine @param {(run: any) => void} onRun */
  constructor(scenario, engine, onRun) {
    this.scenario = scenario;
    this.engine = engine;
    this.onRun = onRun;
    this.log.showsMore = isSecond(scenario);
    const { steering, follow_up, abort } = scenario;
    for (const { at } of [...listOf(steering), ...listOf(follow_up), ...listOf(abort)]) {
      if (at.ms !== undefined) this.clock.at(at.ms, () => this.fire(at));
    }
  }

  /** Virtual time as traces show it. */
  get t() {
    return Math.floor(this.clock.elapsed / 10) * 10;
  }

  /** Carries out what is due at a point of the run, once. @param {any} trigger */
  fire(trigger) {
    const point = JSON.stringify(sorted(trigger));
    if (this.#fired.has(point)) return;
    this.#fired.add(point);
    const due = (/** @type {any} */ list) => listOf(list).filter(({ at }) => JSON.stringify(sorted(at)) === point);
    const { steering, follow_up, abort } = this.scenario;
    for (const { text, when } of due(steering)) this.steer(text, when ?? undefined);
    for (const { text } of due(follow_up)) this.followUp(text);
    if (due(abort).length > 0) this.hands?.abort();
  }

  /** @param {string} text @param {string} [when] */
  steer(text, when) {
    if (this.hands?.steer) this.hands.steer(text, when);
    else this.queues.steering.push(text);
  }

  /** @param {string} text */
  followUp(text) {
    if (this.hands?.followUp) this.hands.followUp(text);
    else this.queues.followUp.push(text);
  }

  // ---- the model

  /** A model that answers its n-th call with the n-th item of a script. @param {string} id @param {any[]} script @param {string} [place] where the rest of it is kept */
  model(id, script, place = id) {
    if (!this.scripts.has(place)) this.scripts.set(place, [...script]);
    const left = /** @type {any[]} */ (this.scripts.get(place));
    const { model_supports_tools: supportsTools = true } = this.scenario.options ?? {};
    return withMore(this, this.engine.custom(
      id,
      (/** @type {any} */ request, /** @type {any} */ { signal, runId }) => {
        const n = ++this.modelCalls;
        const { model, systemPrompt, messages, tools, apiKey, options } = request;
        // No tape has keys. This one opens nothing.
        if (apiKey !== undefined) this.note({ key: apiKey });
        this.log.model_calls.push({
          n, t: this.t, model, system_prompt: systemPrompt, messages: messages.map(shownMessage),
          tools: tools.map((/** @type {any} */ tool) => tool.name), ...(apiKey !== undefined && { api_key: apiKey }),
          ...(this.log.showsMore && runId.includes("/") && { path: runId.split("/").slice(1) }),
          ...(this.log.showsMore && Object.keys(options).length > 0 && { options }),
        });
        return this.#speak(n, left.shift(), signal);
      },
      { provider: "scripted", supportsTools: supportsTools !== false },
    ));
  }

  /** @param {number} n @param {any} call @param {AbortSignal} signal */
  async *#speak(n, call, signal) {
    if (!call) return yield { type: "error", error: { message: "script exhausted" } };
    yield { type: "start" };
    let contentIndex = 0;
    for (const [before_item, item] of call.events.entries()) {
      this.fire({ model_call: { n, before_item } });
      if (item.delay_ms !== undefined) await this.clock.pause(item.delay_ms, signal);
      else yield* block(item, contentIndex++);
    }
    this.fire({ model_call: { n, before_item: call.events.length } });
    if (call.error) yield { type: "error", error: failure(call.error) };
    else if (!call.no_terminal) yield { type: "done", stopReason: call.stop ?? "stop", ...(call.usage && { usage: tokens(call.usage) }) };
  }

  // ---- the tools

  /** @param {any} given @param {Record<string, number>} priorities */
  tool({ name, schema, requires_approval: requiresApproval, timeout_ms: timeoutMs, idempotent, behavior = {}, by_call: byCall = {}, agent }, priorities) {
    if (agent) return subAgent(this, name, agent);
    return {
      name, description: "scripted", parameters: schema ?? { type: "object" },
      requiresApproval: requiresApproval === true, priority: priorities[name] ?? 0, ...(timeoutMs && { timeoutMs }), ...(idempotent && { idempotent }),
      execute: (/** @type {any} */ args, /** @type {any} */ context) => inOneGo(this.#execute(name, byCall?.[context.callId] ?? behavior ?? {}, args, context)),
    };
  }

  /** @param {string} name @param {any} behavior @param {any} args @param {any} context */
  *#execute(name, behavior, args, context) {
    const id = context.callId;
    this.log.executions.push({ id, name, arguments: sorted(args), t: this.t });
    this.fire({ tool: { id, when: "start" } });
    const output = yield* this.#behave(behavior, args, context);
    // What a cancelled call still does has no effect.
    if (!context.signal.aborted) this.fire({ tool: { id, when: "end" } });
    return output;
  }

  /** @param {any} behavior @param {any} args @param {any} context @returns {Generator<Promise<any>, any>} */
  *#behave(behavior, args, { signal, update, state, ask }) {
    const { clock } = this;
    for (const [n, text] of (behavior.updates ?? []).entries()) {
      if (n > 0 && behavior.update_gap_ms > 0) yield clock.pause(behavior.update_gap_ms, signal);
      update(text);
    }
    if (behavior.delay_ms > 0) yield clock.pause(behavior.delay_ms, signal);
    for (const [key, value] of Object.entries(behavior.set_state ?? {})) state.set(key, value);
    if (typeof behavior.ask === "string") {
      let answer;
      yield ask({ message: behavior.ask }).then((/** @type {any} */ given) => (answer = given));
      return JSON.stringify(answer);
    }
    if (behavior.forever) yield forever();
    if (behavior.until_cancelled) {
      yield cancelled(signal);
      return failed("cancelled");
    }
    if (typeof behavior.panic === "string") throw new Error(behavior.panic);
    if (typeof behavior.transfer_to === "string") return this.engine.transferTo(behavior.transfer_to);
    if (typeof behavior.error === "string") return failed(behavior.error);
    if (behavior.echo) return JSON.stringify(sorted(args));
    return behavior.result ?? "ok";
  }

  // ---- the user

  approveTool = (/** @type {any} */ call) => this.approve(this.scenario.approval, call);

  /** @param {any} given @param {any} call @returns {any} */
  approve({ default: usual, by_call: byCall }, { callId, toolName, arguments: args, requiresApproval }) {
    this.log.approvals.push({ id: callId, name: toolName, arguments: args, requires_approval: requiresApproval });
    this.fire({ approval: callId });
    const decision = byCall?.[callId] ?? usual ?? "approve";
    if (decision.panic_sync !== undefined) throw new Error(decision.panic_sync);
    return inOneGo(this.#decide(decision));
  }

  /** @param {any} decision @returns {Generator<Promise<any>, any>} */
  *#decide(decision) {
    if (decision.after) {
      yield this.clock.pause(decision.after.ms);
      return yield* this.#decide(decision.after.then);
    }
    if (decision === "forever") yield forever();
    const crash = decision.panic ?? decision.panic_sync;
    if (crash !== undefined) throw new Error(crash);
    return decision.approve_with === undefined ? decision : { action: "approve", arguments: decision.approve_with };
  }

  poll = (/** @type {"steering" | "followUp"} */ queue) => this.queues[queue].splice(0);

  // ---- rules

  /** A policy, as a function of its slot. @param {any} given */
  policy({ slot, name, on_calls: onCalls, tools, verdict }) {
    let evaluations = 0;
    const due = () => {
      evaluations++;
      return listOf(onCalls).length === 0 || onCalls.includes(evaluations) ? verdict : "continue";
    };
    const note = (/** @type {any} */ seen) => this.log.policy_log.push({ ...seen, policy: name, slot });
    if (slot === "pre_dispatch") {
      return (/** @type {any} */ call) => {
        const { callId, toolName, arguments: args } = call;
        if (listOf(tools).length > 0 && !tools.includes(toolName)) return;
        note({ tool: toolName, id: callId, arguments: structuredClone(args) });
        const given = due();
        const more = given.set_arguments ?? given.set_arguments_then_panic;
        // Also if a callback changes its arguments in place: what it throws away must not count.
        if (more) Object.assign(args, more);
        if (given.set_arguments_then_panic) throw new Error("half-way");
        return more ? { arguments: args } : judge(given);
      };
    }
    return (/** @type {any} */ context) => {
      const { turnIndex, messageCount, usage, newMessages, message, toolResults, messages } = context;
      const seen = { turn_index: turnIndex, message_count: messageCount, usage_total: usage.total, new_messages: newMessages.map(shownMessage) };
      const turn = slot === "post_turn" && {
        text: textOf(message), stop_reason: message.stopReason, tool_result_count: toolResults.length, context_count: messages.length,
      };
      note({ ...seen, ...turn });
      this.note({ policy: name, slot: SLOTS[slot] });
      const given = due();
      const text = given.replace_text ?? given.replace_dropping_calls;
      if (text === undefined) return judge(given);
      const calls = given.replace_text === undefined ? [] : message.content.filter((/** @type {any} */ block) => block.type === "tool_call");
      return { inject: [{ ...message, content: [{ type: "text", text }, ...calls] }] };
    };
  }

  /** Returns the n-th of some answers, and then the last one again and again. @param {string[]} answers */
  each(answers) {
    let n = 0;
    return () => answers[Math.min(n++, answers.length - 1)];
  }

  /** A context transformer. @param {any} given @param {"sync" | "async"} kind */
  transform(given, kind) {
    const reducer = given?.reduce && reduction(/** @type {any} */ (this.engine), given.reduce);
    return (/** @type {readonly any[]} */ messages, /** @type {boolean} */ overflow, /** @type {{ cachedMessages: number }} */ { cachedMessages }) => {
      if (kind === "sync") this.fire({ transform: ++this.#transforms });
      const answer = reducer ? reducer(messages, overflow) : transformed(given, messages, overflow, cachedMessages);
      const left = Array.isArray(answer) ? answer : answer?.messages;
      this.log.transforms.push({ kind, overflow, before: messages.length, after: (left ?? messages).length });
      return answer;
    };
  }
}

/** The names of slots on a tape. @type {Record<string, string>} */
export const SLOTS = { pre_turn: "preTurn", pre_dispatch: "preDispatch", post_turn: "postTurn", post_loop: "postLoop" };

/** The events of one block of an answer. @param {any} item @param {number} contentIndex */
function* block({ text, thinking, tool_call: call, raw }, contentIndex) {
  if (raw !== undefined) return yield { type: "raw", contentIndex, data: raw };
  const kind = text !== undefined ? "text" : "thinking";
  if (!call) {
    yield { type: `${kind}_start`, contentIndex };
    for (const delta of [text ?? thinking].flat()) yield { type: `${kind}_delta`, contentIndex, delta };
    return yield { type: `${kind}_end`, contentIndex };
  }
  const whole = call.arguments === undefined || call.arguments === null ? [] : [JSON.stringify(sorted(call.arguments))];
  yield { type: "tool_call_start", contentIndex, callId: call.id, toolName: call.name };
  for (const delta of call.arguments_chunks ?? whole) yield { type: "tool_call_delta", contentIndex, delta };
  if (!call.incomplete) yield { type: "tool_call_end", contentIndex };
}

/** @type {Record<string, string>} */
const CODES = {
  throttled: "throttled", network: "network", overflow: "context_overflow", auth: "auth", content_filtered: "content_filtered", aborted: "aborted",
};

/** @param {any} error */
function failure({ kind, message = "" }) {
  return { message, ...(CODES[kind] && { code: CODES[kind] }) };
}

/**
 * The kind of an error in scenario terms; an error without one counts as a failed stream.
 * @param {any} error
 */
export function kindOf({ code }) {
  return Object.keys(CODES).find((kind) => CODES[kind] === code) ?? "stream";
}

/** @param {any} usage */
function tokens({ input = 0, output = 0, cache_read: cacheRead = 0, cache_write: cacheWrite = 0 }) {
  return { input, output, cacheRead, cacheWrite };
}

/** @param {string} text */
function failed(text) {
  return { content: [{ type: "text", text }], isError: true };
}

/**
 * Continues synchronously as long as there is nothing to wait for; only then returns a promise.
 * @param {Generator<Promise<any>, any>} work @returns {any}
 */
function inOneGo(work) {
  const { done, value } = work.next();
  return done ? value : value.then(() => inOneGo(work));
}

function forever() {
  return new Promise(() => {});
}

/** @param {AbortSignal} signal */
function cancelled(signal) {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined);
    else signal.addEventListener("abort", resolve, { once: true });
  });
}

/** @param {any} verdict */
function judge(verdict) {
  if (verdict.panic !== undefined) throw new Error(verdict.panic);
  return verdict;
}

/** The reducers of the package. @param {any} engine @param {any[]} list */
function reduction({ reduce, pruneToolResults, keepLast, slidingWindow }, list) {
  return reduce(list.map(({ prune_tool_results: prune, keep_last: keep, sliding_window: window }) => {
    if (prune !== undefined) return pruneToolResults({ keepLast: prune });
    if (keep !== undefined) return keepLast(keep);
    return slidingWindow({ tokens: window.tokens, overflowTokens: window.overflow_tokens, anchor: window.anchor });
  }));
}

/** @param {any} given @param {readonly any[]} messages @param {boolean} overflow @param {number} cached @returns {any} */
function transformed({ keep_last: keep, prepend, sliding_window: window }, messages, overflow, cached) {
  if (keep) {
    const { n, form = "report" } = keep;
    if ((form === "report" && messages.length <= n) || (keep.only_on_overflow && !overflow)) return;
    const left = messages.slice(Math.max(0, messages.length - n));
    if (form !== "report") return form === "view" ? left : { messages: left };
    return shortened(messages, 0, messages.length - keep.n);
  }
  if (prepend !== undefined) {
    const [first] = messages;
    if (first?.role === "user" && textOf(first) === prepend) return;
    return { messages: [{ role: "user", content: [{ type: "text", text: prepend }], timestamp: 1 }, ...messages] };
  }
  if (window) return slid({ ...window, anchor: Math.max(window.anchor, cached) }, messages, overflow);
}

/**
 * Leaves out a range of messages.
 * @param {readonly any[]} messages @param {number} from @param {number} to
 */
function shortened(messages, from, to) {
  const report = { text: `${to - from} messages dropped`, droppedCount: to - from };
  return { messages: [...messages.slice(0, from), ...messages.slice(to)], report };
}

/** The first messages and the newest ones that fit; never a result without its call. @param {any} window @param {readonly any[]} messages @param {boolean} overflow */
function slid({ normal_budget: normal, overflow_budget: less, anchor }, messages, overflow) {
  const sum = (/** @type {readonly any[]} */ some) => some.reduce((tokens, message) => tokens + estimate(message), 0);
  const budget = overflow ? less : normal;
  if (sum(messages) <= budget) return;
  const isResult = (/** @type {number} */ at) => messages[at]?.role === "tool_result";
  let from = Math.min(anchor, messages.length);
  while (isResult(from)) from++;
  const left = Math.max(0, budget - sum(messages.slice(0, from)));
  let to = messages.length;
  while (to > from && sum(messages.slice(to - 1)) <= left) to--;
  // The newest results that fit keep the rest of their exchange, if there was room left for a part of it.
  let call = to - 1;
  while (isResult(call)) call--;
  if (isResult(to) && call >= 0 && sum(messages.slice(to)) < left) to = Math.max(call, from);
  else while (isResult(to)) to++;
  // The newest exchange stays even if it does not fit.
  if (to >= messages.length) for (to = messages.length - 1; isResult(to); ) to--;
  return to > from ? shortened(messages, from, to) : undefined;
}

/** @param {any} message */
function estimate({ content }) {
  // A message of the host's own kind counts as a fixed size.
  if (!content) return 100;
  const bytes = (/** @type {any} */ block) => Buffer.byteLength(block.text ?? block.thinking ?? JSON.stringify(block.arguments ?? ""));
  return Math.floor(content.reduce((/** @type {number} */ sum, /** @type {any} */ block) => sum + bytes(block), 0) / 4);
}
