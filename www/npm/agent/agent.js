// @ts-check
// The agent: one conversation, one run at a time.

import { discardInstance, getEngine, timedAgents } from "../engine.js";
import {
  AgentError, checkHistory, fromEngine, jsonOf, kindOf, misuse, sleep, textOf, toDecision, toMessage,
  toMessages, uuid,
} from "../shared.js";
import { fromCheckpoint, toCheckpoint } from "../checkpoint/checkpoint.js";
import { modelSettings, SETUP } from "../models/models.js";
import { checkOptions, checkRunOptions, FUNCTIONS, SLOTS, STAGES } from "../options/options.js";
import { callRule, validate } from "../rules/rules.js";
import { Driver } from "../run/driver.js";
import { prepareSchema, toTools } from "../tools/tools.js";

const NO_USAGE = Object.freeze({ input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 });

/** The implementation of an agent, behind the public `Agent` class. */
class Core {
  /** @param {any} given @param {boolean} once @param {any} messages */
  constructor(given, once, messages) {
    const options = checkOptions(given);
    this.options = options;
    options.host ??= {};
    /** The public `Agent` that this core belongs to. @type {any} */
    this.owner = undefined;
    /** @type {any} */
    this.engine = undefined;
    /**
     * Whether this agent does a single run only. If so, tool names may repeat: the first tool of a name wins.
     */
    this.once = once;
    /** The history. Runs append to it. @type {any[]} */
    this.messages = checkHistory(messages ?? options.messages ?? []);
    /** @type {any[]} */
    this.offered = [];
    /** The tools by name. @type {Map<string, any>} */
    this.tools = new Map();
    /** Tools that were removed; a turn in progress may still call them. @type {Map<string, any>} */
    this.formerTools = new Map();
    /** @type {any[]} */
    this.models = [];
    /**
     * The current models, and earlier ones that a run may still call, indexed by their number in the engine.
     * @type {any[]}
     */
    this.knownModels = [];
    this.systemPrompt = options.systemPrompt ?? "";
    /** The schema of a structured answer. @type {{ given: any, schema: any, check(value: any): any } | undefined} */
    this.output = undefined;
    this.setOutput(options.output);
    /** The last answer that matched the output schema. @type {any} */
    this.answer = undefined;
    this.setTools(options.tools);
    this.setModels(options.model);
    this.number = 0;
    /** Created by the first run: Workers forbid randomness in the global scope. @type {string | undefined} */
    this.sessionId = options.sessionId;
    /** The session state as the tools see it. @type {Map<string, any>} */
    this.state = new Map();
    this.resetState();
    /** Pending answers of the host's asynchronous queues, by number. @type {Map<number, Promise<any>>} */
    this.queueAnswers = new Map();
    this.nextPromise = 1;
    /**
     * The arguments as the schemas returned them, by call id; the tools receive these.
     * @type {Map<string, any>}
     */
    this.checkedArguments = new Map();
    /** @type {Map<number, Driver>} */
    this.byHandle = new Map();
    /** The run in progress. @type {Driver | undefined} */
    this.driver = undefined;
    /** The run that the engine is currently working on. @type {Driver | undefined} */
    this.activeRun = undefined;
    /** @type {Map<number, (event: any) => void>} */
    this.listeners = new Map();
    this.nextListener = 1;
    /**
     * The listeners in order, cached until the set changes.
     * @type {{ id: number, listener: (event: any) => void }[] | undefined}
     */
    this.listenerList = undefined;
    /** How many events are being dispatched right now. */
    this.dispatching = 0;
    /** How often something was posted that the engine must see. */
    this.posts = 0;
    /**
     * Commands that wait for the engine: the function that posts each, and its form in a checkpoint.
     * @type {{ post(glue: any): void, command: any }[]}
     */
    this.commands = [];
    /** State from a checkpoint, until the engine has taken it over. @type {any} */
    this.checkpointState = undefined;
    /** A run from a checkpoint that has not been resumed yet. @type {any} */
    this.restoredRun = undefined;
    /** The other fields of that checkpoint. @type {any} */
    this.otherFields = undefined;
    /** A run that is over, but whose iterator has not reached the end yet. @type {Driver | undefined} */
    this.unreadRun = undefined;
    /** Posted messages whose receipt is still open. @type {Set<(receipt: any) => void>} */
    this.openReceipts = new Set();
    /** The same, by their number in the engine. @type {Map<number, (receipt: any) => void>} */
    this.receipts = new Map();
    /** @type {Map<string, any>} */
    this.pendingApprovals = new Map();
    /** @type {unknown[]} */
    this.thrown = [];
    /** @type {(() => void)[]} */
    this.idleWaiters = [];
    this.usage = { ...NO_USAGE };
    /** The history as the engine knows it: its length and its last message. @type {[number, any]} */
    this.synced = [0, undefined];
    this.disposed = false;
    /** How many timers of the engine are running for this agent. */
    this.timers = 0;
    this.settings();
  }

  resetState() {
    try {
      this.state = new Map(Object.entries(structuredClone(this.options.sessionState ?? {})));
    } catch (error) {
      throw misuse(`\`sessionState\` is no JSON: ${textOf(error)}`, error);
    }
  }

  /** Its number in the engine; 0 before the first run, and 0 if the wasm instance has died. */
  get handle() {
    return this.engine?.dead ? 0 : this.number;
  }

  newId() {
    return String(this.options.host.id?.() ?? uuid());
  }

  now() {
    return this.numberOf("now", Date.now);
  }

  /**
   * A number from the host. The engine calls this, and a call from the engine must neither throw nor return
   * anything but a number: that would end every run.
   * @param {"now" | "random"} name
   * @param {() => number} fallback used where the host has none, or its function throws
   */
  numberOf(name, fallback) {
    try {
      return Number(this.options.host[name]?.() ?? fallback());
    } catch (error) {
      console.error(`turnwheel: host.${name} failed`, error);
      return fallback();
    }
  }

  /** @param {number} ms @param {AbortSignal} signal */
  sleep(ms, signal) {
    return sleep(this.options.host, ms, signal);
  }

  /** @param {any} tools */
  setTools(tools) {
    for (const [name, prepared] of this.tools) this.formerTools.set(name, prepared);
    this.offered = toTools(tools, this.once);
    // If two tools share a name, the first one wins.
    this.tools = new Map(this.offered.map((prepared) => [prepared.definition.name, prepared]).reverse());
  }

  /** @param {any} schema */
  setOutput(schema) {
    this.output = schema === undefined ? undefined : { given: schema, ...prepareSchema("`output`", schema) };
  }

  /** @param {string} name */
  toolOf(name) {
    return this.tools.get(name) ?? this.formerTools.get(name);
  }

  /** @param {any} model */
  setModels(model) {
    if (model === undefined) throw misuse('there is no model; set `model`, for example openai("gpt-5-mini", { apiKey })');
    const models = [model, ...(this.options.fallback ?? [])];
    models.forEach(modelSettings);
    this.models = models;
    if (!this.driver) this.knownModels = [];
    for (const each of models) if (!this.knownModels.includes(each)) this.knownModels.push(each);
  }

  /** The settings for the engine as JSON: plain values, and the names of the functions that are set. */
  settings() {
    const { options, models } = this;
    const has = [...FUNCTIONS, "retry", "toolExecution"].filter((name) => typeof options[name] === "function");
    if (models.some((model) => typeof model[SETUP]?.apiKey === "function")) has.push("getApiKey");
    if (options.compaction) has.push(options.compaction === "summarize" ? "summarize" : "compaction");
    if (options.resultTexts) has.push("resultTexts");
    if (options.host.sleep) has.push("sleep");
    for (const slot of SLOTS) if (options.policies?.[slot]?.length > 0) has.push(slot);
    const preDispatch = options.policies?.preDispatch?.length;
    const hooks = STAGES.filter((stage) => [options.hooks ?? []].flat().some((hook) => typeof hook[stage] === "function"));
    const { multiplier, ...retry } = options.retry ?? {};
    // JSON has no Infinity, and a missing value would mean the default.
    for (const name in retry) if (retry[name] === Infinity) retry[name] = 2 ** 53;
    // JSON leaves functions out.
    const settings = {
      has, hooks, preDispatch,
      models: models.map((model) => ({ ...modelSettings(model), index: this.knownModels.indexOf(model) })),
      tools: this.offered.map(toolSettings),
      systemPrompt: this.systemPrompt,
      streamOptions: options.streamOptions,
      maxTurns: options.maxTurns ?? 100,
      retry: { ...retry, multiplierThousandths: multiplier && Math.round(multiplier * 1000) },
      approval: options.approval, toolExecution: options.toolExecution, maxConcurrentTools: options.maxConcurrentTools,
      gate: options.gate, steering: options.steering, followUp: options.followUp, timeouts: options.timeouts,
      maxRecoveriesPerTurn: options.compaction?.maxRecoveriesPerTurn, includeRequests: options.includeRequests,
      sessionState: options.sessionState, output: this.output?.schema, outputRetries: options.outputRetries, cache: options.cache, transfer: options.transfer,
    };
    return jsonOf("the options are", settings);
  }

  /** Returns the engine with this agent registered in it. */
  ready() {
    const engine = getEngine();
    return engine instanceof Promise ? engine.then((loaded) => this.register(loaded)) : this.register(engine);
  }

  /** @param {any} engine */
  register(engine) {
    if (this.handle === 0) {
      registry?.unregister(this);
      this.engine = engine;
      this.timers = 0;
      const { glue } = engine;
      // Host objects are read before the call, never inside it: an exception thrown in there ends every run.
      const settings = this.settings();
      const history = jsonOf("`messages` are", this.messages);
      const stateJson = jsonOf("the checkpoint is", this.checkpointState);
      const number = this.call(() => glue.agent_new(settings, history, this.host()));
      try {
        if (stateJson) this.call(() => glue.agent_restore(number, stateJson));
      } catch (error) {
        if (!engine.dead) glue.agent_drop(number);
        throw error;
      }
      this.checkpointState = undefined;
      this.number = number;
      this.noteHistory();
      registry?.register(this.owner, { engine, handle: this.handle }, this);
    }
    // A command that is refused ends the run; those behind it wait for the next one.
    for (let next; (next = this.commands.shift()); ) next.post(engine.glue);
    return engine;
  }

  /** Removes this agent from the engine; a later run registers it again. */
  unregister() {
    if (this.handle === 0) return;
    registry?.unregister(this);
    this.engine.glue.agent_drop(this.handle);
    this.number = 0;
  }

  /** What the engine calls. Holds only a weak reference, so that a forgotten agent can be collected. */
  host() {
    const ref = new WeakRef(this);
    return {
      wake: (/** @type {number} */ handle) => ref.deref()?.byHandle.get(handle)?.wake(),
      rule: (/** @type {string} */ name, /** @type {string} */ input) => callRule(ref.deref(), name, input),
      validate: (/** @type {[string, string, string]} */ ...call) => validate(ref.deref(), ...call),
      random: () => ref.deref()?.numberOf("random", Math.random) ?? 0,
      timing: (/** @type {boolean} */ isOn) => ref.deref()?.countTimers(isOn ? 1 : -1),
    };
  }

  /**
   * Called when a timer of the engine starts or ends. While one is running, it alone keeps the run going,
   * so the agent must be held.
   * @param {number} change
   */
  countTimers(change) {
    this.timers += change;
    if (this.timers > 0) timedAgents.add(this);
    else timedAgents.delete(this);
  }

  noteHistory() {
    this.synced = [this.messages.length, this.messages.at(-1)];
  }

  /** @param {any[] | null} prompts @param {any} [options] */
  run(prompts, options = {}) {
    checkRunOptions(options);
    if (this.disposed) throw misuse("the agent was disposed of");
    if (this.driver) throw misuse("the agent is already running; steer it, queue a follow-up, or wait for it");
    if (prompts && this.restoredRun) throw misuse("a run waits to go on from its checkpoint; continue() it first, or reset() the agent");
    const [length, last] = this.synced;
    if (this.handle !== 0 && (length !== this.messages.length || last !== this.messages.at(-1))) throw misuse("`agent.messages` was changed, and the engine has its own; make a new Agent({ messages }), or reset() this one");
    this.unreadRun?.drop();
    this.thrown = [];
    this.sessionId ??= this.newId();
    this.driver = new Driver(this, prompts, options);
    return this.driver.run;
  }

  /** Starts a run without a prompt. @param {any} [options] */
  continue(options) {
    const reason = this.driver ? undefined : this.whyCannotContinue();
    if (reason) throw misuse(reason);
    return this.run(null, options);
  }

  /** Returns why there is nothing to continue, if so. */
  whyCannotContinue() {
    if (this.restoredRun) return;
    const last = this.messages.at(-1);
    if (last === undefined) return "cannot continue with an empty message history; use prompt(…)";
    // Posted messages, or messages that a host queue returned and no turn has taken.
    const isWaiting = this.openReceipts.size > 0 || (this.handle !== 0 && this.engine.glue.has_waiting(this.handle));
    if (last.role === "assistant" && !isWaiting) return "cannot continue when the last message is an assistant message; use prompt(…), steer(…) or followUp(…)";
  }

  /**
   * Called right before the end of a run is announced, so that a listener of the end can start the next run.
   * @param {Driver} driver
   */
  beforeRunEnd(driver) {
    if (this.driver !== driver) return;
    this.driver = undefined;
    this.noteHistory();
    this.pendingApprovals.clear();
    this.checkedArguments.clear();
    this.queueAnswers.clear();
    this.formerTools.clear();
  }

  /** @param {Driver} driver */
  afterRunEnd(driver) {
    this.beforeRunEnd(driver);
    if (this.driver) return;
    if (this.disposed || this.once) this.unregister();
    for (const wake of this.idleWaiters.splice(0)) wake();
  }

  /**
   * Posts a command: at once if the engine is ready, otherwise when it is.
   * @param {(glue: any) => void} post @param {any} command its form in a checkpoint
   */
  post(post, command) {
    if (this.disposed) throw misuse("the agent was disposed of");
    if (this.handle === 0) this.commands.push({ post, command });
    else this.call(() => post(this.engine.glue));
  }

  /** Takes over the state of a checkpoint; the messages have been set already. @param {any} read */
  restore({ state, otherFields, runId }) {
    this.otherFields = otherFields;
    if (!state) return;
    this.checkpointState = state;
    if (state.run || state.prompts !== undefined) this.restoredRun = { ...state, runId };
    this.sessionId = state.sessionId ?? this.sessionId;
    this.usage = { ...NO_USAGE, ...state.usage };
    this.state = new Map(Object.entries(structuredClone(state.session ?? {})));
    // If the engine is ready, errors surface at once.
    const ready = this.ready();
    if (ready instanceof Promise) ready.catch(() => {});
    for (const entry of [state.run?.table?.entries ?? []].flat()) {
      if (entry?.state === "pending" && entry.call) this.pendingApprovals.set(entry.call.callId, entry.call);
    }
  }

  /** The state to checkpoint while the engine does not know this agent. */
  unregisteredState() {
    const { checkpointState, commands } = this;
    const own = checkpointState ?? { session: Object.fromEntries(this.state), changes: {} };
    return { ...own, mail: [...(checkpointState?.mail ?? []), ...commands.map(({ command }) => command)] };
  }

  /** @param {any} state as the engine reports it @param {string} [runId] */
  envelope(state, runId) {
    const { usage, messages, otherFields } = this;
    const { appended = [], ...own } = state;
    return toCheckpoint({ sessionId: (this.sessionId ??= this.newId()), usage, ...own }, runId, [...messages, ...appended], otherFields);
  }

  /** The agent as it stands, to be continued elsewhere. */
  checkpoint() {
    const driver = this.driver ?? this.unreadRun;
    if (driver) return driver.checkpoint();
    const { handle, engine } = this;
    const state = handle === 0 ? this.unregisteredState() : JSON.parse(this.call(() => engine.glue.checkpoint(handle, 0, false, this.now())));
    return this.envelope(state, this.restoredRun?.runId);
  }

  /** Calls into the engine. Whatever it throws becomes an AgentError. @param {() => any} work */
  call(work) {
    this.posts++;
    try {
      return work();
    } catch (error) {
      // The engine reports a refusal as a string; anything else is a trap or a stack overflow.
      if (typeof error !== "string" && !AgentError.isInstance(error)) this.crashed(error);
      throw fromEngine(error);
    }
  }

  /** @param {any} input @param {boolean} followUp */
  postMessage(input, followUp) {
    const message = toMessage(input);
    const text = jsonOf("the message is", message);
    /** @type {any} */
    let settle;
    const receipt = new Promise((resolve) => (settle = resolve));
    const post = (/** @type {any} */ glue) => {
      try {
        this.receipts.set(glue.post_message(this.handle, followUp, text), settle);
      } catch (error) {
        this.openReceipts.delete(settle);
        settle({ delivered: false, reason: "run_ended" });
        throw error;
      }
    };
    this.post(post, { kind: followUp ? "follow_up" : "steer", letter: { message, posted: true } });
    this.openReceipts.add(settle);
    return receipt;
  }

  /** @param {number} id @param {any} receipt */
  settleReceipt(id, receipt) {
    const settle = this.receipts.get(id);
    if (!settle) return;
    this.receipts.delete(id);
    this.openReceipts.delete(settle);
    settle(receipt);
  }

  /** Settles all open receipts in the same way. @param {any} receipt */
  settleAll(receipt) {
    for (const settle of this.openReceipts) settle(receipt);
    this.openReceipts.clear();
    this.receipts.clear();
  }

  /** Sends changed settings to the engine. A run in progress uses them from its next turn on. */
  configure() {
    if (this.handle === 0) return;
    const settings = this.settings();
    this.call(() => this.engine.glue.agent_configure(this.handle, settings));
  }

  reset() {
    const { driver } = this;
    // The old run ends on a history of its own.
    driver?.abort("the agent was reset");
    driver?.poll();
    this.driver = undefined;
    this.messages = [];
    this.noteHistory();
    this.commands = [];
    this.checkpointState = undefined;
    this.restoredRun = undefined;
    this.otherFields = undefined;
    this.unreadRun?.drop();
    this.pendingApprovals.clear();
    this.settleAll({ delivered: false, reason: "cleared" });
    this.usage = { ...NO_USAGE };
    this.resetState();
    if (this.handle !== 0) this.call(() => this.engine.glue.agent_reset(this.handle));
    for (const wake of this.idleWaiters.splice(0)) wake();
  }

  /** @param {(event: any) => void} listener */
  subscribe(listener) {
    const id = this.nextListener++;
    this.listeners.set(id, listener);
    this.listenerList = undefined;
    return () => this.unsubscribe(id);
  }

  /** @param {number} id */
  unsubscribe(id) {
    this.listeners.delete(id);
    this.listenerList = undefined;
  }

  /**
   * Dispatches one event to the subscribers. A subscriber that throws is removed and reported.
   * @param {any} event
   */
  dispatch(event) {
    if (this.listeners.size === 0) return;
    const list = (this.listenerList ??= Array.from(this.listeners, ([id, listener]) => ({ id, listener })));
    this.dispatching++;
    for (let i = 0; i < list.length; i++) {
      const { id, listener } = list[i];
      try {
        const returned = /** @type {any} */ (listener.call(undefined, event));
        if (typeof returned?.then === "function") returned.then(undefined, (/** @type {unknown} */ error) => this.dismiss(id, error));
      } catch (error) {
        this.dismiss(id, error);
      }
    }
    this.dispatching--;
  }

  /** @param {number} id @param {unknown} error */
  dismiss(id, error) {
    this.unsubscribe(id);
    console.error("turnwheel: a subscriber threw and was removed", error);
  }

  /** Updates what the agent itself keeps of an event. @param {any} event */
  note(event) {
    if (event.type === "tool_approval_requested") {
      const { callId, toolName } = event;
      this.pendingApprovals.set(callId, { type: "tool_call", callId, toolName, arguments: event.arguments });
    } else if (event.type === "tool_approval_resolved") this.pendingApprovals.delete(event.callId);
    else if (event.type === "run_resumed") for (const call of event.pendingApprovals) this.pendingApprovals.set(call.callId, call);
  }

  /** @param {any} usage */
  addUsage(usage) {
    const sum = /** @type {any} */ ({ ...this.usage });
    for (const [key, tokens] of Object.entries(usage)) sum[key] = (sum[key] ?? 0) + tokens;
    this.usage = sum;
  }

  /** @param {unknown} error */
  noteThrown(error) {
    if (this.thrown.push(error) > 64) this.thrown.shift();
  }

  /**
   * Finds the very object that was thrown, by comparing messages.
   * @param {any} info @param {unknown} reason
   */
  causeOf(info, reason) {
    if (info.code === "aborted") return reason;
    const { message } = info;
    // If the message contained the API key, it was replaced.
    const parts = message.split("[key]");
    return this.thrown.findLast((error) => {
      const text = textOf(error);
      return text !== "" && (message.includes(text) || (parts.length > 1 && parts.every((/** @type {string} */ part) => text.includes(part))));
    });
  }

  /** The wasm instance died. @param {unknown} error */
  crashed(error) {
    discardInstance(this.engine, error);
  }

  dispose() {
    if (this.disposed) return;
    this.driver?.abort("the agent was disposed of");
    this.disposed = true;
    this.settleAll({ delivered: false, reason: "disposed" });
    // A run that was aborted still has its end to report.
    if (!this.driver) this.unregister();
  }
}

/**
 * Unregisters agents that were garbage-collected.
 * @type {FinalizationRegistry<{ engine: any, handle: number }> | undefined}
 */
const registry =
  typeof FinalizationRegistry === "undefined"
    ? undefined
    : new FinalizationRegistry(({ engine, handle }) => {
        if (engine !== getEngine()) return;
        engine.glue.agent_drop(handle);
        for (const run of engine.runs) if (!run.deref()) engine.runs.delete(run);
      });

/** @param {any} prepared */
function toolSettings({ definition, schema }) {
  const { name, description = "", requiresApproval, needsApproval, timeoutMs, maxResultBytes, idempotent, fatal, priority } = definition;
  const approvalRule = requiresApproval ?? needsApproval;
  return {
    name, description, parameters: schema,
    requiresApproval: typeof approvalRule === "function" ? "depends" : approvalRule === true,
    // A missing value means the agent's default limit, so Infinity becomes a number.
    timeoutMs: timeoutMs === Infinity ? 2 ** 53 : timeoutMs, maxResultBytes, idempotent: idempotent === true, fatal: fatal === true,
    // The engine stores the priority as a 32-bit integer.
    priority: Math.min(Math.abs(priority ?? 0) * 1000, 2 ** 31), lowPriority: (priority ?? 0) < 0,
  };
}

/**
 * Marks the agent of a single run, as `agentLoop` creates it: the engine forgets it when the run is over,
 * and, as in the loop of the specification, two of its tools may share a name.
 */
const ONCE = Symbol("once");

/**
 * Outside the class: a class that refers to itself by name gets renamed by the bundler.
 * @param {any} options @param {symbol} [mark] @param {any[]} [messages]
 */
const make = (options, mark, messages) => new Agent(options, mark, messages);

/** An agent: one conversation, one run at a time. */
export class Agent {
  /** @type {Core} */ #core;

  /**
   * @param {any} options @param {symbol} [mark]
   * @param {any[]} [messages] used in place of those in the options
   */
  constructor(options, mark, messages) {
    this.#core = new Core(options, mark === ONCE, messages);
    this.#core.owner = this;
  }

  /** @param {any} input @param {any} [options] */
  prompt(input, options) {
    return this.#core.run(toMessages(input), options);
  }

  /** @param {any} [options] */
  continue(options) {
    return this.#core.continue(options);
  }

  /** @param {(event: any) => void} listener */
  subscribe(listener) {
    if (typeof listener !== "function") throw misuse(`a subscriber must be a function, got ${kindOf(listener)}`);
    return this.#core.subscribe(listener);
  }

  /** @param {any} input */
  steer(input) {
    return this.#core.postMessage(input, false);
  }

  /** @param {any} input */
  followUp(input) {
    return this.#core.postMessage(input, true);
  }

  clearQueues() {
    const core = this.#core;
    core.post((glue) => glue.clear_queues(core.handle), { kind: "clear_queues" });
    if (!core.driver) core.settleAll({ delivered: false, reason: "cleared" });
  }

  /** @param {string} callId @param {any} decision */
  resolveTool(callId, decision) {
    if (typeof callId !== "string") throw misuse(`a call's id must be a text, got ${kindOf(callId)}`);
    this.#decide({ [callId]: toDecision(decision) }, false);
  }

  /** @param {{ [callId: string]: any }} decisions */
  resolveTools(decisions) {
    if (typeof decisions !== "object" || decisions === null || Symbol.iterator in decisions) throw misuse(`the decisions must be an object, got ${kindOf(decisions)}`);
    this.#decide(Object.fromEntries(Object.entries(decisions).map(([id, decision]) => [id, toDecision(decision)])), true);
  }

  /** @param {any} decisions @param {boolean} all */
  #decide(decisions, all) {
    const core = this.#core;
    // Before the first run there is no engine that could refuse them.
    for (const [id, { action, arguments: given }] of Object.entries(decisions)) {
      const isObject = typeof given === "object" && !Array.isArray(given);
      if (action === "approve" && given !== undefined && !isObject) throw misuse(`the decision about \`${id}\`: the \`arguments\` of a decision must be an object, got ${kindOf(given)}`);
    }
    const [[callId, decision] = []] = Object.entries(decisions);
    const command = all ? { kind: "resolve_all", decisions } : { kind: "resolve", callId, decision };
    const text = jsonOf("the decision is", decisions);
    core.post((glue) => glue.post_decisions(core.handle, text, all), command);
  }

  checkpoint() {
    return this.#core.checkpoint();
  }

  /** @param {any} checkpoint @param {any} options */
  static restore(checkpoint, options) {
    if (options?.messages !== undefined) throw misuse("the messages of a restored agent are those of its checkpoint; leave `messages` out");
    const parsed = fromCheckpoint(checkpoint);
    const agent = make(options, undefined, parsed.messages);
    agent.#core.restore(parsed);
    return agent;
  }

  /** @param {unknown} [reason] */
  abort(reason) {
    this.#core.driver?.abort(reason);
  }

  async waitForIdle() {
    const core = this.#core;
    while (core.driver) await new Promise((resolve) => core.idleWaiters.push(() => resolve(undefined)));
  }

  reset() {
    this.#core.reset();
  }

  get messages() {
    return this.#core.messages;
  }

  get pendingApprovals() {
    return [...this.#core.pendingApprovals.values()];
  }

  get isRunning() {
    return this.#core.driver !== undefined;
  }

  get canContinue() {
    const { driver, disposed } = this.#core;
    return !driver && !disposed && this.#core.whyCannotContinue() === undefined;
  }

  get usage() {
    return this.#core.usage;
  }

  get model() {
    return this.#core.models[0];
  }

  set model(model) {
    this.#core.setModels(model);
    this.#core.configure();
  }

  get systemPrompt() {
    return this.#core.systemPrompt;
  }

  set systemPrompt(text) {
    if (typeof text !== "string") throw misuse(`\`systemPrompt\` must be a text, got ${kindOf(text)}`);
    this.#core.systemPrompt = text;
    this.#core.configure();
  }

  get output() {
    return this.#core.output?.given;
  }

  set output(schema) {
    this.#core.setOutput(schema);
    this.#core.configure();
  }

  get tools() {
    // Frozen: a tool that is pushed into this list would never be registered.
    return Object.freeze(this.#core.offered.map((prepared) => prepared.definition));
  }

  set tools(tools) {
    this.#core.setTools(tools);
    this.#core.configure();
  }

  [Symbol.dispose ?? Symbol.for("Symbol.dispose")]() {
    this.#core.dispose();
  }
}

/** @param {any[]} prompts @param {any} config @param {any} [options] */
export function agentLoop(prompts, config, options) {
  if (!Array.isArray(prompts)) throw misuse(`agentLoop takes an array of inputs, got ${kindOf(prompts)}`);
  return make(config, ONCE).prompt(prompts, options);
}

/** @param {any[]} messages @param {any} config @param {any} [options] */
export function agentLoopContinue(messages, config, options) {
  if (!Array.isArray(messages)) throw misuse(`agentLoopContinue takes an array of messages, got ${kindOf(messages)}`);
  return make(config, ONCE, messages).continue(options);
}
