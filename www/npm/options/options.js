// @ts-check
// The options of agents, runs, models and tools.

import { CAUSES, FUNCTIONS, POLICIES, STAGES } from "../boundary/protocol.js";
import { checkForeignNames, checkNames, isOfClass, kindOf, misuse, shownOf, STEERING_TIMES } from "../shared.js";
import { all, checkShape, fits, OneOf } from "./shape.js";

/** @import { AgentOptions, RunOptions, TurnOptions } from "../index.js" */
/** @import { ToolSet } from "../tools/set.js" */
/** @import { Shape } from "./shape.js" */
/** @typedef {AgentOptions & { host: NonNullable<AgentOptions["host"]> }} CheckedOptions */

const HOOKS = all(STAGES, "function");
const RULES = ["approve", "ask", "deny"];
const DELIVERY = ["all", "one_at_a_time"];
/** The options of a model on a server. @type {{ [name: string]: Shape }} */
export const SERVED = {
  apiKey: new OneOf("text", "function"), ...all(["baseUrl", "compat", "price"], "any"),
  headers: "texts", fetch: "function", contextWindow: "count", supportsTools: "flag", dangerouslyAllowBrowser: "flag",
  limits: all(["answer", "line", "calls", "arguments", "files"], "number"),
};

/** The options of a tool besides its name. @type {{ [name: string]: Shape }} */
export const TOOL = {
  description: "text", parameters: "any", execute: "any", requiresApproval: new OneOf("flag", "function"), timeoutMs: "number",
  maxResultBytes: "count", idempotent: "flag", fatal: "flag", priority: "real",
};

/**
 * The options of an agent. `model`, `tools`, `messages` and `output` are checked elsewhere.
 * @type {{ [name: string]: Shape }}
 */
const OPTIONS = {
  ...all(["model", "tools", "messages", "output"], "any"),
  ...all(FUNCTIONS, "function"), ...all(["wrapTool", "wrapModel"], "function"),
  systemPrompt: "text", sessionId: "text", maxTurns: "count", maxDepth: "count", outputRetries: "whole", maxConcurrentTools: "many",
  coalesceMs: "number", includeRequests: "flag", quiet: "flag", isolate: "flag", sessionState: "object", fallback: "list",
  streamOptions: {
    temperature: "finite", topP: "finite", maxTokens: "some", parallelToolCalls: "flag", cache: ["none", "auto"],
    toolChoice: new OneOf({ toolName: "text" }, ["auto", "none", "required"]),
    reasoning: new OneOf({ budgetTokens: "whole" }, ["off", "minimal", "low", "medium", "high", "xhigh", "max"]),
    stop: "list", headers: "texts", body: "object",
  },
  retry: new OneOf("function", {
    ...all(["initialBackoffMs", "maxBackoffMs", "maxRetryDelayMs"], "number"),
    multiplier: "finite", maxAttempts: "some", jitter: "flag", retryUnknown: "flag",
  }),
  compaction: new OneOf(["summarize"], { engine: "function", maxRecoveriesPerTurn: "whole" }),
  approval: { mode: ["smart", "enabled", "bypassed"], rules: "object", default: RULES },
  policies: all(POLICIES, "functions"),
  hooks: new OneOf("list", HOOKS),
  toolExecution: new OneOf("function", ["concurrent", "sequential", "priority"]),
  gate: ["batch", "prefix"], earlyDecisions: ["park", "refuse"],
  steering: { when: STEERING_TIMES, inFlight: ["cancel", "finish"], delivery: DELIVERY, atStart: ["after_first_turn", "before_first_call"] },
  followUp: { delivery: DELIVERY },
  timeouts: all(["firstChunkMs", "chunkMs", "modelMs", "toolMs", "totalMs"], "number"),
  budget: { usd: "finite", ...all(["tokens", "toolCalls", "turns"], "count"), ms: "number", warnAt: "finite", onExceed: ["stop", "wrap_up", "ask"], scope: ["run", "agent"] },
  cache: { ttlMs: "finite", minTokens: "whole", intervals: "whole" },
  resultTexts: all(CAUSES, "function"),
  transfer: { agentName: "text", chain: "list", maxDepth: "whole" },
  host: { ...all(["now", "sleep", "random", "id", "step", "wait"], "function"), steps: { maxBytes: "count", ordered: "flag" } },
};

const ON_MODEL = "it is the model's: openai(id, { apiKey, baseUrl, headers, fetch })";
const ON_PROMPT = "it is the run's: agent.prompt(input, { signal, metadata })";
const ON_EVENT = "listen with agent.subscribe((event) => …), or read the run: for await (const event of agent.prompt(…))";
const OF_MCP = "write tools: await mcpTools(url), of turnwheel/mcp";
/** Names that other libraries use, or that belong elsewhere. @type {Record<string, string>} */
const FOREIGN_NAMES = {
  instructions: "systemPrompt", system: "systemPrompt", maxSteps: "maxTurns", maxIterations: "maxTurns", stopWhen: "maxTurns",
  maxOutputTokens: "streamOptions.maxTokens", prepareStep: "prepareTurn", onError: "hooks.onError", callbacks: "hooks",
  maxRetries: "write retry: { maxAttempts }, which counts the first call too", retries: "write retry: { maxAttempts }, which counts the first call too",
  providerOptions: "write streamOptions: { body }, the fields of the provider's own request", timeout: "timeouts",
  history: "messages", needsApproval: "the tool says it: requiresApproval",
  schema: "output", responseFormat: "output", outputSchema: "output", mcp: OF_MCP, mcpServers: OF_MCP, memory: "give the history as `messages`; turnwheel/stores keeps checkpoints",
  apiKey: ON_MODEL, baseURL: ON_MODEL, baseUrl: ON_MODEL, headers: ON_MODEL, fetch: ON_MODEL, contextWindow: ON_MODEL, signal: ON_PROMPT, abortSignal: ON_PROMPT, metadata: ON_PROMPT, context: ON_PROMPT,
  onFinish: ON_EVENT, onStepFinish: ON_EVENT, onEvent: ON_EVENT, onChunk: ON_EVENT, debug: ON_EVENT, verbose: ON_EVENT, stream: ON_EVENT,
  prompt: "what is said goes to agent.prompt(…), what always holds into `systemPrompt`", name: "an agent has no name; see `sessionId`, `transfer.agentName`, and the name of a `subagent` tool",
};

const NAMES = Object.keys(OPTIONS);

/** What may be set for a single run or turn. */
const TURN = { model: "any", streamOptions: OPTIONS.streamOptions, activeTools: "list", systemPrompt: "text" };

/** Names to suggest at the top level, including those that belong into a nested object. */
const SUGGESTIONS = [...NAMES, ...["streamOptions", "timeouts"].flatMap((name) => Object.keys(OPTIONS[name]).map((inner) => `${name}.${inner}`))];

/** Returns a checked copy of the options, each read once. @param {any} given @returns {CheckedOptions} */
export function checkOptions(given) {
  if (!fits("object", given)) throw misuse(`the options must be an object, got ${kindOf(given)}`);
  if (given.provider && given.id) throw misuse("the options are a model; write new Agent({ model })");
  checkForeignNames("unknown option", given, FOREIGN_NAMES);
  // An instance of a class has its methods on the prototype, and they need their `this`.
  if (!isOfClass(given)) checkNames("unknown option", given, OPTIONS, SUGGESTIONS);
  /** @type {any} */
  const options = {};
  for (const name of NAMES) {
    const value = given[name];
    checkShape(name, value, OPTIONS[name]);
    options[name] = typeof value === "function" && name !== "output" ? value.bind(given) : value;
  }
  checkBudget(options.budget);
  if (Array.isArray(options.hooks)) options.hooks.forEach((/** @type {any} */ hooks, /** @type {number} */ i) => checkShape(`hooks[${i}]`, hooks ?? null, HOOKS));
  if (typeof options.compaction === "object" && !options.compaction.engine) throw misuse('`compaction` needs an `engine`; the stock one is "summarize"');
  for (const [name, rule] of Object.entries(options.approval?.rules ?? {})) checkShape(`approval.rules.${name}`, rule, RULES);
  options.host ??= {};
  return options;
}

/**
 * Checks what holds for a run or a turn.
 * @param {RunOptions | TurnOptions} options @param {Shape} own the other members @param {ToolSet} tools of the agent
 * @param {string} what it is @param {string} [owner] whose it is, for errors about its members
 */
export function checkTurnOptions(options, own, tools, what, owner = "") {
  if (!fits("object", options)) throw misuse(`${what} must be an object, got ${kindOf(options)}`);
  const shapes = { ...TURN, .../** @type {object} */ (own) };
  for (const name of NAMES) if (name in options && !(name in shapes)) throw misuse(`${owner}\`${name}\` is an option of the agent: new Agent({ ${name} })`);
  checkNames(`${owner}unknown option`, options, shapes, [...Object.keys(shapes), ...Object.keys(OPTIONS.streamOptions).map((name) => `streamOptions.${name}`)]);
  for (const [name, shape] of Object.entries(shapes)) checkShape(name, /** @type {any} */ (options)[name], shape, owner);
  const { activeTools } = options;
  const known = activeTools && tools.definitions();
  const missing = activeTools?.find((name) => !known?.some((tool) => tool.name === name));
  if (missing !== undefined) throw misuse(`${owner}\`activeTools\` names ${shownOf(missing)}, which is none of the tools`);
}

/** Checks the options of a run. @param {RunOptions} options @param {ToolSet} tools of the agent */
export function checkRunOptions(options, tools) {
  // Most runs have none.
  if (fits("object", options) && !isOfClass(options) && Object.keys(options).length === 0) return;
  const { scope: _, ...budget } = /** @type {{ [name: string]: Shape }} */ (OPTIONS.budget);
  checkTurnOptions(options, { signal: "any", runId: "text", metadata: "object", budget }, tools, "the options of a run");
  checkBudget(options.budget);
  const { signal } = options;
  if (signal !== undefined && typeof signal?.addEventListener !== "function") throw misuse(`\`signal\` must be an AbortSignal, got ${kindOf(signal)}`);
}

/** @param {unknown} given */
export function checkBudget(given) {
  checkShape("budget", given, OPTIONS.budget);
  const { warnAt = 0 } = /** @type {{ warnAt?: number }} */ (given ?? {});
  if (warnAt < 0 || warnAt > 1) throw misuse(`\`budget.warnAt\` must be between 0 and 1, got ${warnAt}`);
}

/** Checks the options of every model call. @param {unknown} given */
export const checkStreamOptions = (given) => checkShape("streamOptions", given, OPTIONS.streamOptions);
