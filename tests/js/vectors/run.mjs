// @ts-check
// Plays the set `runs`: whole runs of an agent of the package, in virtual time, each part of the host as the case scripts it.

import { Agent, CANCELLED, custom, keepLast } from "../../../pkg/entry/node.js";
import { Clock } from "../rig/clock.mjs";
import { isObject, policyOptions } from "./policy.mjs";
import { RESULT_TEXTS, View, asPeer, fromPeer, hasContent, joined, kindOf, roles, stopWord, tokens, whole } from "./view.mjs";

/** What a model is shown says not whether a text was a list. */
export const AS_SENT = true;

const RUN_ID = "11111111-2222-4333-8444-555555555555";
const SESSION_ID = "66666666-7777-4888-8999-aaaaaaaaaaaa";
/** The message of the harness when it ends a run that waits for ever. */
const BLOCKED = "BLOCKED: token cancelled and cancel command sent by the harness";
const STOP_REASONS = { stop: "stop", other: "stop", tool_calls: "tool_use", length: "length", content_filter: "content_filter", error: "error" };
/** The peer's defaults. */
const RETRY = { max_attempts: 3, initial_backoff_ms: 2_000, max_backoff_ms: 30_000, multiplier: 2 };

/** Why a case cannot be played by the package; nothing if it can. @param {any} input @returns {string | undefined} */
export function unreachable({ config, provider, provider_then: later, compactor = [], compactor_then: last, hooks = [], tools = {}, user_message: user = {}, triggers = [], on_idle: idle = [], initial_messages: messages = [] }) {
  const actions = [...triggers.flatMap((/** @type {any} */ trigger) => trigger.do), ...idle.flat()];
  if (actions.some(({ close_commands: close }) => close !== undefined)) return "commands are methods of the agent: there is no channel that the host could close";
  if (config.reducer?.budget) return "`budgetTrim` keeps its boundary to itself: the case wants it in the host's metadata";
  if (messages.some(({ role }) => role === "system")) return "a system message in the middle of a conversation has no form that `convertToLlm` could give a model";
  if (Object.keys(user).some((key) => key !== "role" && key !== "content")) return "a question is posted with its content alone";
  const prompt = config.system_prompt ?? "";
  const isOther = (/** @type {any} */ script) => script?.messages && prompt !== "" && script.messages[0]?.content !== prompt;
  if ([...compactor, last].some(isOther)) return "the system prompt is the agent's: no compactor takes it away";
  if (hooks.length > 0 && triggers.some(stopsADeafTool, tools)) return "a hook that nobody waits for reads a history in which the stopped batch has its results";
  const approval = config.approval ?? "all";
  const names = [...provider, ...(later ? [later] : [])].flatMap(({ content = [] }) => content).map(({ name = "" }) => name);
  if (typeof approval === "object" && names.some((name) => /__/.test(name))) return "rules are by the whole name of a tool: the package cuts off no server's";
  const policy = policyOptions(approval);
  return "unreachable" in policy ? policy.unreachable : undefined;
}

/** Whether a run is stopped inside a tool that does not hear of it. @this {Record<string, any>} the tools @param {any} trigger */
function stopsADeafTool({ at, do: actions }) {
  const [kind, id] = at.split(":");
  const isDeaf = kind === "tool" && !this[id]?.wait_cancel && !this[id]?.cancelled;
  return isDeaf && actions.some(({ cancel_token: token, command }) => token !== undefined || command === "cancel");
}

/** Plays a case. @param {any} input */
export async function play(input) {
  const run = new Run(input);
  const actual = await run.play();
  if (run.faults.length > 0) throw new Error(run.faults.join("; "));
  return actual;
}

class Run {
  clock = new Clock();
  view = new View();
  /** Faults found along the way, such as a part that was given another run's id. @type {string[]} */ faults = [];
  /** @type {any[]} */ #trace = [];
  /** @type {Map<string, number>} */ #counts = new Map();
  /** @type {Set<any>} */ #fired = new Set();
  /** Calls that a command of the host has named. @type {Set<string>} */ #named = new Set();
  #idle = 0;
  #onErrorCalled = false;
  #abort = new AbortController();
  /** @type {any} */ #agent;
  /** @type {any} */ #unsubscribe;

  /** @param {any} input */
  constructor(input) {
    this.input = input;
    this.config = input.config;
  }

  async play() {
    const { user_message: user, initial_messages: messages = [], metadata: given } = this.input;
    const metadata = isObject(given) ? given : {};
    const saved = { version: 1, format: "stakai_message_v1", run_id: null, messages, metadata: {} };
    const agent = await Agent.restore(/** @type {any} */ (saved), this.#options());
    this.#agent = agent;
    this.#unsubscribe = agent.subscribe((event) => this.#trace.push(...this.view.of(event)), { keep: true });
    const { signal } = this.#abort;
    const run = agent.prompt(user === undefined ? "go" : /** @type {any} */ (fromPeer([user])), { runId: RUN_ID, signal, metadata });
    this.#fire("before_run");
    let hadReason;
    while (!(await this.clock.watch(run.result, () => this.#actOnIdle()))) {
      if (hadReason !== undefined) throw new Error("the run goes on waiting although it was cancelled");
      hadReason = this.#unblock();
    }
    return this.#record(await run.result, metadata, hadReason);
  }

  /** @param {any} result @param {any} metadata @param {boolean | undefined} hadReason whether the run had a reason to wait, if it had to be ended */
  #record({ stopReason, usage, turns, error }, metadata, hadReason) {
    const failure = this.view.failure(stopReason, error?.info);
    const outcome = failure
      ? { err: { kind: kindOf(failure)[0], message: whole(failure) } }
      : { ok: { total_turns: turns, total_usage: tokens(usage), stop_reason: stopWord(stopReason), messages: this.#history(), metadata } };
    return { trace: this.#trace, outcome, metadata_after: metadata, on_error_called: this.#onErrorCalled, ...(hadReason !== undefined && { blocked: true, had_reason_to_wait: hadReason }) };
  }

  // ---- the host

  /** The host acts at a point that was reached, once for each trigger. @param {string} point */
  #fire(point) {
    for (const trigger of this.input.triggers ?? []) {
      if (trigger.at !== point || this.#fired.has(trigger)) continue;
      this.#fired.add(trigger);
      this.#act(trigger.do);
    }
  }

  /** The engine can only wait. Returns whether the host did something. */
  #actOnIdle() {
    const list = this.input.on_idle?.[this.#idle++];
    if (list) this.#act(list);
    return list !== undefined;
  }

  /** Ends a run that waits for ever. Returns whether it had a reason to: a question that nobody ever answered. */
  #unblock() {
    this.#trace.push({ host: BLOCKED });
    const open = this.#agent.pendingApprovals;
    const hadReason = open.length > 0 && open.every((/** @type {any} */ { callId }) => !this.#named.has(callId));
    this.#abort.abort("the harness");
    this.#agent.cancel("the harness");
    return hadReason;
  }

  /** @param {any[]} actions */
  #act(actions) {
    for (const action of actions) {
      this.#trace.push({ host: action });
      if (action.cancel_token !== undefined) this.#abort.abort("the host");
      else if (action.drop_events !== undefined) this.#unsubscribe();
      else this.#command(action.command);
    }
  }

  /** @param {any} command */
  #command(command) {
    const agent = this.#agent;
    if (command === "cancel") agent.cancel("the host");
    else if (command.steering !== undefined) agent.steer(command.steering);
    else if (command.follow_up !== undefined) agent.followUp(command.follow_up);
    else if (command.switch_model !== undefined) agent.model = this.#model(command.switch_model.id ?? command.switch_model);
    else if (command.resolve_tool !== undefined) {
      const { id, decision } = command.resolve_tool;
      this.#named.add(id);
      agent.resolveTool(id, decisionOf(decision));
    } else if (command.resolve_tools !== undefined) {
      const decisions = Object.entries(command.resolve_tools).map(([id, decision]) => [id, decisionOf(decision)]);
      for (const [id] of decisions) this.#named.add(/** @type {string} */ (id));
      agent.resolveTools(Object.fromEntries(decisions));
    } else this.faults.push(`unknown command ${JSON.stringify(command)}`);
  }

  /** The next number of a series, from 1. @param {string} series */
  #count(series) {
    const n = (this.#counts.get(series) ?? 0) + 1;
    this.#counts.set(series, n);
    return n;
  }

  /** @param {any} info */
  #checkIds({ runId, sessionId }) {
    if (runId !== RUN_ID || sessionId !== SESSION_ID) this.faults.push(`a part was told of run ${runId} of session ${sessionId}`);
  }

  // ---- the conversation as the peer shows it

  #history() {
    const checkpoint = this.#agent.checkpoint();
    const { messages } = this.#agent;
    const kept = messages.map(hasContent);
    return this.#withSystem(asPeer(checkpoint, messages).filter((/** @type {any} */ _, /** @type {number} */ at) => kept[at]), this.#agent.systemPrompt);
  }

  /** @param {readonly any[]} messages @param {string} prompt */
  #shown(messages, prompt) {
    const kept = messages.filter(hasContent);
    const writer = new Agent({ model: this.#agent.model, messages: kept });
    return this.#withSystem(asPeer(writer.checkpoint(), kept), prompt);
  }

  /** @param {any[]} messages @param {string} content */
  #withSystem(messages, content) {
    return content === "" ? messages : [{ role: "system", content }, ...messages];
  }

  /** As this provider sends it. @param {readonly any[]} messages @param {string} prompt */
  #sent(messages, prompt) {
    const shown = this.#shown(messages, prompt);
    return this.config.reducer === "identity" ? shown : joined(shown);
  }

  // ---- the parts of the run

  /** @returns {any} */
  #options() {
    const { config, clock } = this;
    const retry = { ...RETRY, ...config.retry };
    let ids = 0;
    return {
      model: this.#model(config.model ?? "m1"),
      tools: this.#tools(),
      systemPrompt: config.system_prompt ?? "",
      sessionId: SESSION_ID,
      maxTurns: config.max_turns ?? 10,
      ...(config.max_output_tokens > 0 && { streamOptions: { maxTokens: config.max_output_tokens } }),
      retry: config.compaction === false ? retryingAll(retry) : { maxAttempts: retry.max_attempts, initialBackoffMs: retry.initial_backoff_ms, maxBackoffMs: retry.max_backoff_ms, multiplier: retry.multiplier, jitter: false, retryUnknown: true },
      ...policyOptions(config.approval ?? "all"),
      gate: "prefix",
      earlyDecisions: "park",
      toolExecution: "sequential",
      steering: { inFlight: "finish", atStart: "before_first_call" },
      followUp: { delivery: "one_at_a_time" },
      compaction: { engine: this.#compact, maxRecoveriesPerTurn: config.compaction === false ? 0 : 3 },
      ...(config.reducer !== "identity" && { transformContext: unreported(keepLast(keptOf(config.reducer))) }),
      resultTexts: RESULT_TEXTS,
      hooks: [...(this.input.hooks ?? []).map((/** @type {string} */ name) => this.#hook(name)), { onError: () => void (this.#onErrorCalled = true) }],
      host: { now: () => clock.now(), sleep: (/** @type {number} */ ms, /** @type {AbortSignal} */ signal) => clock.pause(ms, signal), random: () => 0.5, id: () => `id-${++ids}` },
    };
  }

  /** @param {string} id */
  #model(id) {
    const offered = new Set((this.config.tools ?? []).map((/** @type {any} */ tool) => tool.name ?? tool));
    return custom(id, async function* (/** @type {Run} */ self, /** @type {any} */ request, /** @type {any} */ info) {
      self.#checkIds(info);
      const n = self.#count("inference");
      // Here every tool that can run is offered; the peer's dispatcher accepts names that it does not offer.
      const tools = request.tools.filter((/** @type {any} */ { name }) => offered.has(name));
      const { maxTokens } = request.options;
      self.#trace.push({
        inference: n, model: request.model, messages: self.#sent(request.messages, request.systemPrompt), at_ms: self.clock.elapsed,
        ...(maxTokens !== undefined && { max_tokens: maxTokens }), ...(tools.length > 0 && { tools }),
      });
      self.#fire(`inference:${n}`);
      yield* self.#answer(n);
    }.bind(null, this), { provider: "scripted" });
  }

  /** @param {number} n @returns {Generator<any>} */
  *#answer(n) {
    const answer = this.input.provider[n - 1] ?? this.input.provider_then;
    if (answer === undefined) throw this.faults.push(`the script has no answer for inference ${n}`);
    if (answer.error) {
      const { kind, message: text } = answer.error;
      const message = { rate_limit: "Rate limit exceeded: ", provider: "Provider error: " }[/** @type {string} */ (kind)] ?? "";
      this.view.overflow = message + text;
      return yield { type: "error", error: { code: kind === "rate_limit" ? "throttled" : "unknown", message: message + text } };
    }
    yield { type: "start" };
    for (const [contentIndex, part] of answer.content.entries()) yield* blockOf(part, contentIndex);
    if (answer.finish === "error") this.view.finishedWithError = true;
    const [input = 0, output = 0] = answer.usage ?? [10, 5];
    yield { type: "done", stopReason: STOP_REASONS[/** @type {keyof typeof STOP_REASONS} */ (answer.finish ?? "stop")], usage: { input, output } };
  }

  /** Each tool that the model is offered or calls. */
  #tools() {
    const { provider, provider_then: later } = this.input;
    const called = [...provider, ...(later ? [later] : [])].flatMap(({ content = [] }) => content).filter(({ type }) => type === "tool_call");
    /** @type {Map<string, any>} */
    const tools = new Map(called.map(({ name }) => [name, { name }]));
    for (const tool of this.config.tools ?? []) tools.set(tool.name ?? tool, tool.name ? tool : { name: tool });
    return [...tools.values()].map(({ name, description = "", parameters, input_schema: input, schema }) => ({
      name, description, parameters: parameters ?? input ?? schema ?? { type: "object" },
      // In the peer, a tool that fails ends the run, unlike one that returns an error.
      fatal: true,
      execute: (/** @type {any} */ args, /** @type {any} */ context) => this.#execute(name, args, context),
    }));
  }

  /** @param {string} name @param {any} args @param {any} context */
  #execute(name, args, { callId, signal, ...info }) {
    this.#checkIds(info);
    this.#trace.push({ tool_begin: callId, name, arguments: args });
    const end = () => void this.#trace.push({ tool_end: callId });
    this.#fire(`tool:${callId}`);
    const { wait_cancel: waits, cancelled, error, result = `ran ${callId}`, is_error: isError = false } = this.input.tools?.[callId] ?? {};
    if (waits) {
      return new Promise((resolve) => {
        const stop = () => resolve((end(), CANCELLED));
        if (signal.aborted) stop();
        else signal.addEventListener("abort", stop, { once: true });
      });
    }
    end();
    if (cancelled) return CANCELLED;
    if (error !== undefined) throw new Error(error);
    return { content: [{ type: "text", text: result }], isError };
  }

  /** @param {string} name @returns {import("../../../pkg/entry/node.js").Hooks} */
  #hook(name) {
    const call = (/** @type {string} */ stage, /** @type {any} */ info, /** @type {any} */ more) => {
      this.#checkIds(info);
      this.#trace.push({ hook: name, stage, ...more() });
      const n = this.#count(`hook:${name}:${stage}`);
      this.#fire(`hook:${name}:${stage}:${n}`);
      const fails = (this.input.hook_failures ?? []).some((/** @type {any} */ { hook, stage: where, nth = n }) => hook === name && where === stage && nth === n);
      if (fails) throw new Error(`${name} refused ${stage}`);
    };
    const now = () => roles(this.#history());
    return {
      beforeInference: (info) => call("before_inference", info, () => ({ model: info.model, roles: roles(this.#sent(info.messages, this.#agent.systemPrompt)) })),
      // The peer's hooks hear only of answers that are complete.
      afterInference: (info) => (info.message.error ? undefined : call("after_inference", info, () => ({ model: info.model, roles: now() }))),
      beforeToolExecution: (info) => call("before_tool_execution", info, () => ({ tool_call_id: info.call.callId, roles: now() })),
      afterToolExecution: (info) => call("after_tool_execution", info, () => ({ tool_call_id: info.call.callId, roles: now() })),
      onError: (info) => call("on_error", info, () => ({ error: whole(info.error), roles: now() })),
    };
  }

  #compact = async (/** @type {readonly any[]} */ messages, /** @type {any} */ model, /** @type {any} */ _, /** @type {any} */ info) => {
    this.#checkIds(info);
    const n = this.#count("compact");
    const given = this.#shown(messages, this.#agent.systemPrompt);
    this.#trace.push({ event: "CompactionStarted", reason: this.view.overflow }, { compact: n, model: model.id, roles: roles(given) });
    this.#fire(`compact:${n}`);
    const script = this.input.compactor?.[n - 1] ?? this.input.compactor_then ?? {};
    if (script.error !== undefined) throw new Error(script.error.message ?? script.error);
    if (script.messages === undefined) {
      const words = wordCount(given);
      return { messages, report: { text: "", tokensBefore: words, tokensAfter: words } };
    }
    const { truncated = false, tokens_before: tokensBefore = 1_000, tokens_after: tokensAfter = 100 } = script;
    const kept = script.messages.filter((/** @type {any} */ { role }) => role !== "system");
    return { messages: fromPeer(kept), report: { text: truncated ? "truncated" : "", tokensBefore, tokensAfter } };
  };

}

/** The peer repeats also a call that was too long, where nothing can be made of that. @param {any} retry @returns {(error: any, attempt: number) => number | false} */
function retryingAll({ max_attempts: most, initial_backoff_ms: initial, max_backoff_ms: limit, multiplier }) {
  return (_, attempt) => attempt < most && Math.min(limit, initial * multiplier ** (attempt - 1));
}

/** The peer's reducers say nothing of what they have left out. @param {import("../../../pkg/entry/node.js").Reducer} reducer @returns {any} */
function unreported(reducer) {
  return (/** @type {any} */ ...given) => {
    const left = /** @type {any} */ (reducer)(...given);
    return left && [...left];
  };
}

/** @param {any} reducer */
function keptOf(reducer) {
  const { keep_last: keep = 64 } = reducer?.default ?? {};
  return keep === "max" ? Number.MAX_SAFE_INTEGER : keep;
}

/** @param {any} decision @returns {any} */
export function decisionOf({ action, content }) {
  return { accept: "approve", reject: "reject", custom_result: { action: "result", content } }[/** @type {string} */ (action)];
}

/** @param {any} part @param {number} contentIndex @returns {Generator<any>} */
function* blockOf({ type, text, reasoning, id, name, arguments: given, metadata }, contentIndex) {
  if (type === "tool_call") {
    yield { type: "tool_call_start", contentIndex, callId: id, toolName: name };
    yield { type: "tool_call_delta", contentIndex, delta: given === undefined ? "" : JSON.stringify(given) };
    return yield { type: "tool_call_end", contentIndex, ...(metadata !== undefined && { metadata }) };
  }
  const kind = type === "reasoning" ? "thinking" : "text";
  yield { type: `${kind}_start`, contentIndex };
  yield { type: `${kind}_delta`, contentIndex, delta: type === "reasoning" ? reasoning : text };
  yield { type: `${kind}_end`, contentIndex };
}

/** Counts like the peer's own compactor, which changes nothing. @param {any[]} messages */
function wordCount(messages) {
  const texts = messages.flatMap(({ content }) => (typeof content === "string" ? [content] : content.map((/** @type {any} */ part) => part.text ?? "")));
  return texts.flatMap((text) => text.split(/\s+/).filter(Boolean)).length;
}
