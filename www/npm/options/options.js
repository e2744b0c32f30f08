// @ts-check
// Checks options. A wrong name or shape fails at the call, with a suggestion of the name that was meant.

import { checkNames, isOfClass, kindOf, misuse, shownOf } from "../shared.js";

export const FUNCTIONS = [
  "convertToLlm", "transformContext", "asyncTransformContext", "getApiKey", "getSteeringMessages", "getFollowUpMessages",
  "approveTool", "dynamicSystemPrompt",
];
export const STAGES = ["beforeInference", "afterInference", "beforeToolExecution", "afterToolExecution", "onError"];
export const SLOTS = ["preTurn", "preDispatch", "postTurn", "postLoop"];

/**
 * Each kind: its name in messages, and the test for it.
 * @type {Record<string, [string, (value: any) => boolean]>}
 */
const KINDS = {
  function: ["a function", (value) => typeof value === "function"],
  text: ["a text", (value) => typeof value === "string"],
  flag: ["true or false", (value) => typeof value === "boolean"],
  number: ["a number from 0 on", (value) => typeof value === "number" && value >= 0],
  finite: ["a finite number from 0 on", (value) => Number.isFinite(value) && value >= 0],
  real: ["a number", (value) => typeof value === "number" && !Number.isNaN(value)],
  whole: ["a whole number", (value) => Number.isInteger(value) && value >= 0],
  count: ["a whole number or Infinity", (value) => value === Infinity || (Number.isInteger(value) && value >= 0)],
  // Arrays, Maps and Sets have no members, so rules passed as one would have no effect.
  object: ["an object", (value) => typeof value === "object" && value !== null && !(Symbol.iterator in value)],
  // A Headers or a Map has no members, so none of its entries would be sent.
  texts: ["an object of texts", (value) => fits("object", value) && !isOfClass(value) && Object.values(value).every((text) => typeof (text ?? "") === "string")],
  list: ["an array", Array.isArray],
  functions: ["an array of functions", (value) => Array.isArray(value) && value.every((one) => typeof one === "function")],
  any: ["", () => true],
};

/**
 * A kind, the allowed strings, the members of an object, or one of several of these.
 * @typedef {keyof typeof KINDS | string[] | { [name: string]: Shape } | OneOf} Shape
 */
class OneOf {
  /** @param {...Shape} shapes */
  constructor(...shapes) {
    this.shapes = shapes;
  }
}

/**
 * Gives all names the same shape.
 * @param {string[]} names @param {Shape} shape @returns {{ [name: string]: Shape }}
 */
const all = (names, shape) => Object.fromEntries(names.map((name) => [name, shape]));

const HOOKS = all(STAGES, "function");
const RULES = ["approve", "ask", "deny"];
const DELIVERY = ["all", "one_at_a_time"];
const CAUSES = [
  "unknown_tool", "invalid_arguments", "incomplete", "rejected", "denied", "skipped", "policy_stop", "steering", "aborted",
  "transfer", "timeout", "threw", "interrupted",
];

/** The options of a model on a server. @type {{ [name: string]: Shape }} */
export const SERVED = {
  apiKey: new OneOf("text", "function"), ...all(["baseUrl", "compat", "price"], "any"),
  headers: "texts", fetch: "function", contextWindow: "count", supportsTools: "flag", dangerouslyAllowBrowser: "flag",
  limits: all(["line", "calls", "arguments"], "number"),
};

/** The options of a tool besides its name. @type {{ [name: string]: Shape }} */
export const TOOL = {
  description: "text", parameters: "any", execute: "any", requiresApproval: new OneOf("flag", "function"), timeoutMs: "number",
  maxResultBytes: "whole", idempotent: "flag", fatal: "flag", priority: "real",
};

/**
 * The options of an agent. `model`, `tools`, `messages` and `output` are checked elsewhere.
 * @type {{ [name: string]: Shape }}
 */
const OPTIONS = {
  ...all(["model", "tools", "messages", "output"], "any"),
  ...all(FUNCTIONS, "function"),
  systemPrompt: "text", sessionId: "text", maxTurns: "count", outputRetries: "whole", maxConcurrentTools: "count",
  coalesceMs: "number", includeRequests: "flag", sessionState: "object", fallback: "list",
  streamOptions: {
    temperature: "finite", topP: "finite", maxTokens: "whole", parallelToolCalls: "flag", cache: ["none", "auto"],
    toolChoice: new OneOf({ toolName: "text" }, ["auto", "none", "required"]),
    reasoning: new OneOf({ budgetTokens: "whole" }, ["off", "minimal", "low", "medium", "high"]),
    stop: "list", headers: "texts", body: "object",
  },
  retry: new OneOf("function", {
    ...all(["initialBackoffMs", "maxBackoffMs", "maxRetryDelayMs"], "number"),
    multiplier: "finite", maxAttempts: "whole", jitter: "flag", retryUnknown: "flag",
  }),
  compaction: new OneOf(["summarize"], { engine: "function", maxRecoveriesPerTurn: "whole" }),
  approval: { mode: ["smart", "enabled", "bypassed"], rules: "object", default: RULES },
  policies: all(SLOTS, "functions"),
  hooks: new OneOf("list", HOOKS),
  toolExecution: new OneOf("function", ["concurrent", "sequential", "priority"]),
  gate: ["batch", "prefix"],
  steering: { when: ["after_tool", "immediate"], inFlight: ["cancel", "finish"], delivery: DELIVERY, atStart: ["after_first_turn", "before_first_call"] },
  followUp: { delivery: DELIVERY },
  timeouts: all(["firstChunkMs", "chunkMs", "toolMs", "totalMs"], "number"),
  cache: { ttlMs: "finite", minTokens: "whole", intervals: "whole" },
  resultTexts: all(CAUSES, "function"),
  transfer: { agentName: "text", chain: "list", maxDepth: "whole" },
  host: all(["now", "sleep", "random", "id"], "function"),
};

/** Names that other libraries use. @type {Record<string, string>} */
const FOREIGN_NAMES = {
  instructions: "systemPrompt", system: "systemPrompt", maxSteps: "maxTurns", maxIterations: "maxTurns", stopWhen: "maxTurns",
  maxOutputTokens: "streamOptions.maxTokens",
};

const NAMES = Object.keys(OPTIONS);

/** Names to suggest at the top level, including those that belong into a nested object. */
const SUGGESTIONS = [...NAMES, ...["streamOptions", "timeouts"].flatMap((name) => Object.keys(OPTIONS[name]).map((inner) => `${name}.${inner}`))];

/** Returns a checked copy of the options, each read once. @param {any} given */
export function checkOptions(given) {
  if (!fits("object", given)) throw misuse(`the options must be an object, got ${kindOf(given)}`);
  if (given.provider && given.id) throw misuse("the options are a model; write new Agent({ model })");
  for (const name of Object.keys(given)) if (Object.hasOwn(FOREIGN_NAMES, name)) throw misuse(`unknown option \`${name}\`; did you mean \`${FOREIGN_NAMES[name]}\`?`);
  // An instance of a class has its methods on the prototype, and they need their `this`.
  if (!isOfClass(given)) checkNames("unknown option", given, OPTIONS, SUGGESTIONS);
  /** @type {any} */
  const options = {};
  for (const name of NAMES) {
    const value = given[name];
    checkShape(name, value, OPTIONS[name]);
    options[name] = typeof value === "function" && name !== "output" ? value.bind(given) : value;
  }
  if (Array.isArray(options.hooks)) options.hooks.forEach((/** @type {any} */ hooks, /** @type {number} */ i) => checkShape(`hooks[${i}]`, hooks ?? null, HOOKS));
  if (typeof options.compaction === "object" && !options.compaction.engine) throw misuse('`compaction` needs an `engine`; the stock one is "summarize"');
  for (const [name, rule] of Object.entries(options.approval?.rules ?? {})) checkShape(`approval.rules.${name}`, rule, RULES);
  return options;
}

/** Checks the options of a run. @param {any} options */
export function checkRunOptions(options) {
  if (!fits("object", options)) throw misuse(`the options of a run must be an object, got ${kindOf(options)}`);
  checkNames("unknown option", options, ["signal", "runId"]);
  checkShape("runId", options.runId, "text");
  const { signal } = options;
  if (signal !== undefined && typeof signal?.addEventListener !== "function") throw misuse(`\`signal\` must be an AbortSignal, got ${kindOf(signal)}`);
}

/**
 * Checks a value against a shape. A missing value is always valid.
 * @param {string} path @param {any} value @param {Shape} shape
 * @param {string} [owner] whose option it is, for the message
 */
export function checkShape(path, value, shape, owner = "") {
  if (value === undefined) return;
  const one = shape instanceof OneOf ? shape.shapes.find((each) => fits(each, value)) : shape;
  if (one === undefined || !fits(one, value)) {
    const wanted = nameOf(shape);
    throw misuse(`${owner}\`${path}\` must be ${wanted}, got ${/number|"/.test(wanted) ? shownOf(value) : kindOf(value)}`);
  }
  if (typeof one === "string" || Array.isArray(one)) return;
  const members = /** @type {{ [name: string]: Shape }} */ (one);
  // An instance of a class may have members of its own.
  if (!isOfClass(value)) checkNames(`${owner}unknown option \`${path}.`, value, members);
  for (const name of Object.keys(members)) checkShape(`${path}.${name}`, value[name], members[name], owner);
}

/** Whether a value is of a kind; members are checked later. @param {Shape} shape @param {any} value */
function fits(shape, value) {
  if (Array.isArray(shape)) return shape.includes(value);
  return KINDS[typeof shape === "string" ? shape : "object"][1](value);
}

/** @param {Shape} shape @returns {string} */
function nameOf(shape) {
  if (shape instanceof OneOf) return shape.shapes.map(nameOf).join(" or ");
  if (Array.isArray(shape)) return shape.map((word) => JSON.stringify(word)).join(" or ");
  return KINDS[typeof shape === "string" ? shape : "object"][0];
}
