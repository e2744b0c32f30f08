// @ts-check
// A request as the options of `doStream`.

import { misuse } from "../shared.js";
import { isAnthropic, isGoogle, isResponses, optionsName } from "./families.js";
import { promptOf } from "./prompt.js";
import { mayLeaveUnread } from "./unread.js";

/** @import { ModelRequest, StreamOptions } from "../index.js" */
/** @import { LanguageModelLike, LanguageModelOptions } from "../ai-sdk.js" */
/** @typedef {{ [provider: string]: { [name: string]: any } }} ProviderOptions */

/** @param {LanguageModelLike} model @param {string} provider @param {LanguageModelOptions} options @param {ModelRequest} request */
export function callOptions(model, provider, options, request) {
  const { temperature, topP, maxTokens, stop, headers, body, toolChoice, reasoning } = request.options;
  if (body && Object.keys(body).length > 0) {
    throw misuse(`model \`${model.modelId}\` is one of the AI SDK, which has no place for \`streamOptions.body\` (${Object.keys(body).join(", ")}); pass \`providerOptions\` to fromLanguageModel`);
  }
  const tools = toolsOf(options.tools ?? {}, request);
  const providerOptions = joined(ownOptions(model, request.options), options.providerOptions);
  return withoutUnset({
    ...options.call,
    prompt: promptOf(model, provider, request),
    temperature, topP, headers,
    maxOutputTokens: maxTokens,
    stopSequences: stop,
    ...(tools.length > 0 && { tools, toolChoice: choiceOf(toolChoice) }),
    ...(typeof reasoning === "string" && model.specificationVersion === "v4" && { reasoning: reasoning === "off" ? "none" : reasoning }),
    ...(mayLeaveUnread(model) && { includeRawChunks: true }),
    ...(request.output && { responseFormat: { type: "json", schema: request.output } }),
    ...(Object.keys(providerOptions).length > 0 && { providerOptions }),
  });
}

/**
 * The tools of the agent, and those that the provider defines: where a name is in both, the provider knows the arguments.
 * @param {{ [name: string]: any }} defined @param {ModelRequest} request
 */
function toolsOf(defined, { tools }) {
  const own = tools.filter(({ name }) => !Object.hasOwn(defined, name)).map(({ name, description, parameters }) => ({ type: "function", name, description, inputSchema: parameters }));
  return [...own, ...Object.entries(defined).map(([name, { id, args }]) => ({ type: "provider", id, name, args: args ?? {} }))];
}

/** @param {StreamOptions["toolChoice"]} choice */
const choiceOf = (choice) => choice && (typeof choice === "string" ? { type: choice } : { type: "tool", toolName: choice.toolName });

/** @param {Record<string, unknown>} options */
const withoutUnset = (options) => Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));

/** What turnwheel's own options mean to the provider of a model. @param {LanguageModelLike} model @param {StreamOptions} options @returns {ProviderOptions} */
function ownOptions(model, { reasoning, parallelToolCalls }) {
  /** @type {ProviderOptions} */
  const own = {};
  const add = (/** @type {string} */ name, /** @type {object} */ more) => void (own[name] = { ...own[name], ...more });
  const name = isAnthropic(model) ? "anthropic" : optionsName(model);
  // The history is here: nothing has to be stored there, and thinking comes back encrypted.
  if (isResponses(model)) add(name, { store: false });
  if (parallelToolCalls === false) add(name, isAnthropic(model) ? { disableParallelToolUse: true } : { parallelToolCalls: false });
  if (reasoning === undefined || (typeof reasoning === "string" && model.specificationVersion === "v4")) return own;
  if (isAnthropic(model)) add(name, { thinking: anthropicThinking(reasoning) });
  else if (isGoogle(model)) add("google", { thinkingConfig: googleThinking(model, reasoning) });
  else add(name, { reasoningEffort: wordOf(reasoning) });
  return own;
}

/** @typedef {NonNullable<StreamOptions["reasoning"]>} Reasoning */

/** As the wires of the package count them. @type {Record<string, number>} */
const BUDGETS = { minimal: 1_024, low: 2_048, medium: 8_192, high: 16_384 };

/** @param {Reasoning} reasoning */
function anthropicThinking(reasoning) {
  const budgetTokens = typeof reasoning === "string" ? BUDGETS[reasoning] : Math.max(reasoning.budgetTokens, 1_024);
  return reasoning === "off" || (typeof reasoning === "object" && reasoning.budgetTokens === 0) ? { type: "disabled" } : { type: "enabled", budgetTokens };
}

/** Gemini 3 takes a level, 2.5 a number of tokens. @param {LanguageModelLike} model @param {Reasoning} reasoning */
function googleThinking({ modelId }, reasoning) {
  const word = wordOf(reasoning);
  if (/gemini-([3-9]|\d\d)/.test(modelId)) return { includeThoughts: word !== "none", thinkingLevel: word === "none" ? "minimal" : word };
  const thinkingBudget = typeof reasoning === "string" ? (BUDGETS[reasoning] ?? 0) : reasoning.budgetTokens;
  return { includeThoughts: word !== "none", thinkingBudget };
}

/** The word for how much to think; for a number of tokens the nearest. @param {Reasoning} reasoning */
function wordOf(reasoning) {
  if (typeof reasoning === "string") return reasoning === "off" ? "none" : reasoning;
  const { budgetTokens } = reasoning;
  return budgetTokens === 0 ? "none" : budgetTokens <= 2_048 ? "low" : budgetTokens <= 16_384 ? "medium" : "high";
}

/** Options of both, by name; those of the user win. @param {ProviderOptions} own @param {ProviderOptions} [users] @returns {ProviderOptions} */
function joined(own, users = {}) {
  const all = { ...own, ...users };
  for (const name of Object.keys(own)) all[name] = { ...own[name], ...users[name] };
  return all;
}
