// @ts-check
// The agent: one conversation, one run at a time.

import { getEngine } from "./engine.js";
import { AgentError, didYouMean, fromEngine, kindOf, misuse } from "./errors.js";
import { toDecision, toMessage, toMessages } from "./messages.js";
import { modelSettings, SETUP } from "./models.js";
import { callRule } from "./rules.js";
import { Driver } from "./run.js";
import { toTools } from "./tools.js";

const OPTIONS = [
  "model", "streamOptions", "tools", "maxTurns", "retry", "fallback", "convertToLlm", "transformContext",
  "asyncTransformContext", "compaction", "getApiKey", "getSteeringMessages", "getFollowUpMessages", "approveTool",
  "approval", "policies", "hooks", "toolExecution", "maxConcurrentTools", "gate", "steering", "followUp", "timeouts",
  "dynamicSystemPrompt", "sessionState", "resultTexts", "coalesceMs", "includeRequests", "sessionId", "host",
  "systemPrompt", "messages", "output", "cache", "transfer",
];
const FUNCTIONS = [
  "convertToLlm", "transformContext", "asyncTransformContext", "getApiKey", "getSteeringMessages", "getFollowUpMessages",
  "approveTool", "dynamicSystemPrompt",
];
const STAGES = ["beforeInference", "afterInference", "beforeToolExecution", "afterToolExecution", "onError"];
const SLOTS = ["preTurn", "preDispatch", "postTurn", "postLoop"];

/** What an agent does, behind the class that users hold. */
class Core {
  /** @param {any} options @param {boolean} namesMayRepeat */
  constructor(options, namesMayRepeat) {
    this.options = { host: {}, ...options };
    checkOptions(options);
    this.namesMayRepeat = namesMayRepeat;
    /** @type {any[]} */
    this.messages = [...(options.messages ?? [])];
    /** @type {any[]} */
    this.offered = [];
    /** The tools by name. @type {Map<string, any>} */
    this.tools = new Map();
    /** @type {any[]} */
    this.models = [];
    this.systemPrompt = options.systemPrompt ?? "";
    this.setTools(options.tools);
    this.setModels(options.model);
    this.handle = 0;
    this.sessionId = options.sessionId ?? this.newId();
    /** The session state as the tools see it. @type {Map<string, any>} */
    this.state = new Map();
    this.resetState();
    /** Outputs of schemas, by call, for the tools. @type {Map<string, any>} */
    this.validated = new Map();
    /** @type {Map<number, Driver>} */
    this.byHandle = new Map();
    /** @type {Driver | undefined} */
    this.driver = undefined;
    /** @type {Map<number, (event: any) => void>} */
    this.listeners = new Map();
    this.nextListener = 1;
    /** Mail that waits for the engine. @type {((glue: any) => void)[]} */
    this.mail = [];
    /** @type {Map<number, (receipt: any) => void>} */
    this.receipts = new Map();
    /** @type {Map<string, any>} */
    this.asked = new Map();
    /** @type {unknown[]} */
    this.thrown = [];
    /** @type {(() => void)[]} */
    this.idle = [];
    this.usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
    this.disposed = false;
    this.settings();
  }

  resetState() {
    this.state = new Map(Object.entries(structuredClone(this.options.sessionState ?? {})));
  }

  newId() {
    return this.options.host.id?.() ?? crypto.randomUUID();
  }

  now() {
    return this.options.host.now?.() ?? Date.now();
  }

  /** @param {number} ms @param {AbortSignal} signal */
  sleep(ms, signal) {
    const { sleep } = this.options.host;
    if (sleep) return sleep(ms, signal);
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      signal.addEventListener("abort", () => (clearTimeout(timer), resolve(undefined)), { once: true });
    });
  }

  /** @param {any} tools */
  setTools(tools) {
    this.offered = toTools(tools, this.namesMayRepeat).map((made) => ({ ...made, late: isLate(made) }));
    // Of two with the same name the first runs.
    this.tools = new Map(this.offered.map((made) => [made.definition.name, made]).reverse());
  }

  /** @param {any} model */
  setModels(model) {
    if (model === undefined) throw misuse('there is no model; set `model`, for example openai("gpt-5-mini", { apiKey })');
    const models = [model, ...(this.options.fallback ?? [])];
    models.forEach(modelSettings);
    this.models = models;
  }

  /** @param {any} model */
  providerOf(model) {
    return modelSettings(model).provider;
  }

  /** Plain settings for the engine: values, and the names of the functions that there are. */
  settings() {
    const { options, models } = this;
    const has = FUNCTIONS.filter((name) => typeof options[name] === "function");
    if (models.some((model) => typeof model[SETUP]?.apiKey === "function") && !has.includes("getApiKey")) has.push("getApiKey");
    if (typeof options.retry === "function") has.push("retry");
    if (typeof options.toolExecution === "function") has.push("toolExecution");
    if (typeof options.compaction?.engine === "function") has.push("compaction");
    if (options.resultTexts) has.push("resultTexts");
    if (options.host.sleep) has.push("sleep");
    for (const slot of SLOTS) if (options.policies?.[slot]?.length > 0) has.push(slot);
    const hooks = STAGES.filter((stage) => [options.hooks ?? []].flat().some((hook) => typeof hook[stage] === "function"));
    const plain = (/** @type {any} */ value) => (typeof value === "function" ? undefined : value);
    const { multiplier, ...retry } = plain(options.retry) ?? {};
    const settings = {
      has, hooks,
      models: models.map(modelSettings),
      tools: this.offered.map(toolSettings),
      systemPrompt: this.systemPrompt,
      streamOptions: options.streamOptions,
      maxTurns: options.maxTurns === undefined ? 100 : options.maxTurns === Infinity ? undefined : options.maxTurns,
      retry: { ...retry, ...(multiplier !== undefined && { multiplierThousandths: Math.round(multiplier * 1000) }) },
      approval: options.approval, toolExecution: plain(options.toolExecution), maxConcurrentTools: options.maxConcurrentTools,
      gate: options.gate, steering: options.steering, followUp: options.followUp, timeouts: options.timeouts,
      maxRecoveriesPerTurn: options.compaction?.maxRecoveriesPerTurn, includeRequests: options.includeRequests,
      sessionState: options.sessionState, output: options.output, cache: options.cache, transfer: options.transfer,
    };
    // Leaves undefined members out, and copies: what the user changes later changes nothing here.
    return JSON.parse(JSON.stringify(settings));
  }

  /** The engine with this agent in it. */
  ready() {
    const engine = getEngine();
    return engine instanceof Promise ? engine.then((made) => this.enter(made)) : this.enter(engine);
  }

  /** @param {any} engine */
  enter(engine) {
    if (this.handle === 0) {
      this.engine = engine;
      this.handle = engine.glue.agent_new(this.settings(), JSON.stringify(this.messages), this.host());
      registry?.register(this.owner, this.handle, this);
    }
    for (const post of this.mail.splice(0)) post(engine.glue);
    return engine;
  }

  /** What the engine calls. It must not keep the agent alive: forgetting an agent lets go of it. */
  host() {
    const ref = new WeakRef(this);
    return {
      wake: (/** @type {number} */ handle) => ref.deref()?.byHandle.get(handle)?.poll(),
      rule: (/** @type {string} */ name, /** @type {string} */ told) => callRule(ref.deref(), name, told),
      random: () => ref.deref()?.options.host.random?.() ?? Math.random(),
    };
  }

  /** @param {any[] | null} prompts @param {any} [options] */
  run(prompts, options = {}) {
    if (this.disposed) throw misuse("the agent was disposed of");
    if (this.driver) throw misuse("the agent is already running; steer it, queue a follow-up, or wait for it");
    this.thrown = [];
    this.driver = new Driver(this, prompts, options);
    return this.driver.run;
  }

  /** A run without a prompt. @param {any} [options] */
  goOn(options) {
    const last = this.messages.at(-1);
    if (!this.driver) {
      if (last === undefined) throw misuse("cannot continue with an empty message history; use prompt(…)");
      const waiting = this.mail.length > 0 || this.receipts.size > 0;
      if (last.role === "assistant" && !waiting) {
        throw misuse("cannot continue when the last message is an assistant message; use prompt(…), steer(…) or followUp(…)");
      }
    }
    return this.run(null, options);
  }

  /** @param {Driver} driver */
  runEnded(driver) {
    if (this.driver !== driver) return;
    this.driver = undefined;
    this.asked.clear();
    this.validated.clear();
    for (const waiting of this.idle.splice(0)) waiting();
  }

  /** Mail: at once where the engine is there, else when it is. @param {(glue: any) => void} mail */
  post(mail) {
    if (this.disposed) throw misuse("the agent was disposed of");
    if (this.handle === 0) this.mail.push(mail);
    else mail(this.engine.glue);
  }

  /** @param {any} input @param {boolean} followUp */
  letter(input, followUp) {
    const message = toMessage(input);
    return new Promise((resolve, reject) => {
      this.post((glue) => {
        try {
          this.receipts.set(glue.post_message(this.handle, followUp, JSON.stringify(message)), resolve);
        } catch (error) {
          reject(fromEngine(error));
        }
      });
    });
  }

  /** @param {number} id @param {any} receipt */
  settleReceipt(id, receipt) {
    this.receipts.get(id)?.(receipt);
    this.receipts.delete(id);
  }

  /** Tells one event to the subscribers. One that throws is removed and reported. @param {any} event */
  dispatch(event) {
    if (this.listeners.size === 0) return;
    for (const [id, listener] of [...this.listeners]) {
      try {
        const answer = /** @type {any} */ (listener(event));
        if (typeof answer?.then === "function") answer.then(undefined, (/** @type {unknown} */ error) => this.dismiss(id, error));
      } catch (error) {
        this.dismiss(id, error);
      }
    }
  }

  /** @param {number} id @param {unknown} error */
  dismiss(id, error) {
    this.listeners.delete(id);
    console.error("turnwheel: a subscriber threw and was removed", error);
  }

  /** What the agent itself keeps of an event. @param {any} event */
  note(event) {
    if (event.type === "tool_approval_requested") {
      const { callId, toolName } = event;
      this.asked.set(callId, { type: "tool_call", callId, toolName, arguments: event.arguments });
    } else if (event.type === "tool_approval_resolved") this.asked.delete(event.callId);
  }

  /** @param {any} usage */
  addUsage(usage) {
    const sum = /** @type {any} */ ({ ...this.usage });
    for (const [key, tokens] of Object.entries(usage)) sum[key] = (sum[key] ?? 0) + tokens;
    this.usage = sum;
  }

  /** A number is a place in the history. @param {any[]} refs */
  resolveRefs(refs) {
    return refs.map((ref) => (typeof ref === "number" ? this.messages[ref] : ref));
  }

  /** @param {unknown} error */
  noteThrown(error) {
    if (this.thrown.length < 64) this.thrown.push(error);
  }

  /** The very object that was thrown, for an error that tells its words. @param {any} info @param {unknown} reason */
  causeOf(info, reason) {
    if (info.code === "aborted") return reason;
    const message = (/** @type {any} */ error) => (error instanceof Error ? error.message : String(error));
    return this.thrown.findLast?.((error) => message(error) !== "" && info.message.includes(message(error)));
  }

  /** The wasm instance died: every run of it is over. @param {unknown} error */
  crashed(error) {
    const failure = new AgentError({ code: "internal", message: `the engine failed: ${error instanceof Error ? error.message : String(error)}`, retryable: false }, error);
    for (const driver of [...this.byHandle.values()]) driver.crash(failure);
  }

  dispose() {
    if (this.disposed) return;
    this.driver?.abort("the agent was disposed of");
    this.disposed = true;
    for (const settle of this.receipts.values()) settle({ delivered: false, reason: "disposed" });
    this.receipts.clear();
    if (this.handle !== 0) {
      registry?.unregister(this);
      const { glue } = /** @type {any} */ (this.engine);
      // The run that was stopped still has its end to tell.
      const drop = () => glue.agent_drop(this.handle);
      if (this.driver) this.idle.push(drop);
      else drop();
    }
  }
}

/** Agents that were forgotten. @type {FinalizationRegistry<number> | undefined} */
const registry =
  typeof FinalizationRegistry === "undefined"
    ? undefined
    : new FinalizationRegistry((handle) => {
        const engine = getEngine();
        if (!(engine instanceof Promise)) engine.glue.agent_drop(handle);
      });

/** A schema that may answer later is asked again when the tool starts. @param {any} made */
function isLate(made) {
  const standard = (made.definition.parameters ?? made.definition.inputSchema)?.["~standard"];
  if (!standard) return false;
  try {
    const answer = standard.validate({});
    if (answer instanceof Promise) answer.catch(() => {});
    return answer instanceof Promise;
  } catch {
    return true;
  }
}

/** @param {any} made */
function toolSettings({ definition, schema }) {
  const { name, description = "", requiresApproval, needsApproval, timeoutMs, maxResultBytes, idempotent, fatal, priority } = definition;
  const asks = requiresApproval ?? needsApproval;
  return {
    name, description, parameters: schema,
    requiresApproval: typeof asks === "function" ? "depends" : asks === true,
    timeoutMs, maxResultBytes, idempotent: idempotent === true, fatal: fatal === true,
    priority: Math.abs(priority ?? 0), lowPriority: (priority ?? 0) < 0,
  };
}

/** @param {any} options */
function checkOptions(options) {
  if (typeof options !== "object" || options === null) throw misuse(`the options must be an object, got ${kindOf(options)}`);
  for (const name of Object.keys(options)) {
    if (!OPTIONS.includes(name)) throw misuse(`unknown option \`${name}\`${didYouMean(name, OPTIONS)}`);
  }
  for (const name of FUNCTIONS) {
    if (options[name] !== undefined && typeof options[name] !== "function") throw misuse(`\`${name}\` must be a function, got ${kindOf(options[name])}`);
  }
  for (const [slot, policies] of Object.entries(options.policies ?? {})) {
    if (!SLOTS.includes(slot)) throw misuse(`unknown policy slot \`${slot}\`${didYouMean(slot, SLOTS)}`);
    if (!Array.isArray(policies) || policies.some((policy) => typeof policy !== "function")) throw misuse(`\`policies.${slot}\` must be an array of functions`);
  }
  if (options.messages !== undefined && !Array.isArray(options.messages)) throw misuse(`\`messages\` must be an array, got ${kindOf(options.messages)}`);
  if (options.systemPrompt !== undefined && typeof options.systemPrompt !== "string") throw misuse(`\`systemPrompt\` must be a text, got ${kindOf(options.systemPrompt)}`);
  const { maxTurns } = options;
  if (maxTurns !== undefined && !(maxTurns === Infinity || (Number.isInteger(maxTurns) && maxTurns >= 0))) throw misuse(`\`maxTurns\` must be a whole number or Infinity, got ${maxTurns}`);
}

/** An agent: one conversation, one run at a time. */
export class Agent {
  #core;

  /** @param {any} options */
  constructor(options) {
    this.#core = new Core(options, false);
    this.#core.owner = this;
  }

  /** @param {any} input @param {any} [options] */
  prompt(input, options) {
    return this.#core.run(toMessages(input), options);
  }

  /** @param {any} [options] */
  continue(options) {
    return this.#core.goOn(options);
  }

  /** @param {(event: any) => void} listener */
  subscribe(listener) {
    if (typeof listener !== "function") throw misuse(`a subscriber must be a function, got ${kindOf(listener)}`);
    const core = this.#core;
    const id = core.nextListener++;
    core.listeners.set(id, listener);
    return () => void core.listeners.delete(id);
  }

  /** @param {any} input */
  steer(input) {
    return this.#core.letter(input, false);
  }

  /** @param {any} input */
  followUp(input) {
    return this.#core.letter(input, true);
  }

  clearQueues() {
    const core = this.#core;
    core.post((glue) => glue.clear_queues(core.handle));
    if (!core.driver) {
      for (const settle of core.receipts.values()) settle({ delivered: false, reason: "cleared" });
      core.receipts.clear();
    }
  }

  /** @param {string} callId @param {any} decision */
  resolveTool(callId, decision) {
    this.#decide({ [callId]: toDecision(decision) }, false);
  }

  /** @param {{ [callId: string]: any }} decisions */
  resolveTools(decisions) {
    this.#decide(Object.fromEntries(Object.entries(decisions).map(([id, decision]) => [id, toDecision(decision)])), true);
  }

  /** @param {any} decisions @param {boolean} all */
  #decide(decisions, all) {
    const core = this.#core;
    core.post((glue) => glue.post_decisions(core.handle, JSON.stringify(decisions), all));
  }

  /** @param {unknown} [reason] */
  abort(reason) {
    this.#core.driver?.abort(reason);
  }

  async waitForIdle() {
    const core = this.#core;
    while (core.driver) await new Promise((resolve) => core.idle.push(() => resolve(undefined)));
  }

  reset() {
    const core = this.#core;
    core.driver?.abort("the agent was reset");
    if (core.driver) core.byHandle.get(core.driver.handle)?.poll();
    core.driver = undefined;
    core.messages = [];
    core.mail = [];
    core.asked.clear();
    core.resetState();
    for (const settle of core.receipts.values()) settle({ delivered: false, reason: "cleared" });
    core.receipts.clear();
    core.usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
    if (core.handle !== 0) core.engine?.glue.agent_reset(core.handle);
    for (const waiting of core.idle.splice(0)) waiting();
  }

  get messages() {
    return this.#core.messages;
  }

  get pendingApprovals() {
    return [...this.#core.asked.values()];
  }

  get isRunning() {
    return this.#core.driver !== undefined;
  }

  get usage() {
    return this.#core.usage;
  }

  get model() {
    return this.#core.models[0];
  }

  set model(model) {
    this.#core.setModels(model);
    this.#configure();
  }

  get systemPrompt() {
    return this.#core.systemPrompt;
  }

  set systemPrompt(text) {
    if (typeof text !== "string") throw misuse(`\`systemPrompt\` must be a text, got ${kindOf(text)}`);
    this.#core.systemPrompt = text;
    this.#configure();
  }

  get tools() {
    return this.#core.offered.map((made) => made.definition);
  }

  set tools(tools) {
    this.#core.setTools(tools);
    this.#configure();
  }

  #configure() {
    const core = this.#core;
    if (core.handle !== 0) core.engine?.glue.agent_configure(core.handle, core.settings());
  }

  [Symbol.dispose ?? Symbol.for("Symbol.dispose")]() {
    this.#core.dispose();
  }
}

/** @param {any[]} prompts @param {any} config @param {any} [options] */
export function agentLoop(prompts, config, options) {
  if (!Array.isArray(prompts)) throw misuse(`agentLoop takes an array of inputs, got ${kindOf(prompts)}`);
  const core = new Core(config, true);
  return (core.owner = core.run(toMessages(prompts), options));
}

/** @param {any[]} messages @param {any} config @param {any} [options] */
export function agentLoopContinue(messages, config, options) {
  if (!Array.isArray(messages)) throw misuse(`agentLoopContinue takes an array of messages, got ${kindOf(messages)}`);
  const core = new Core({ ...config, messages }, true);
  return (core.owner = core.goOn(options));
}
