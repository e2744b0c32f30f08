// @ts-check
// What a model carries with it for the engine, hidden from the user.

import { kindOf, misuse, withoutInfinity } from "../shared.js";

/** @import { Model, ProviderOptions } from "../index.js" */
/**
 * The wire is what the engine speaks with the model; without one, the host streams it.
 * @typedef {ProviderOptions & { wire?: string, supportsTools?: boolean | undefined, estimatesUsage?: boolean, dangerouslyAllowBrowser?: boolean }} Setup
 */
/** @typedef {Model} ModelWithSetup */

/**
 * The name under which a model holds a function that gives its setup: other copies of the package find it, and
 * whatever prints, copies or walks a model finds a function instead of the key.
 */
const SETUP = Symbol.for("turnwheel.model");

/** @template {Model} T @param {T} model @param {Setup} setup @returns {Readonly<T>} */
export function withSetup(model, setup) {
  Object.defineProperty(model, SETUP, { value: () => setup });
  return Object.freeze(model);
}

/** @param {Model | undefined} model @returns {Setup} */
export function setupOf(model) {
  const held = /** @type {{ [SETUP]?: () => Setup } | undefined} */ (model)?.[SETUP];
  return typeof held === "function" ? held() : {};
}

/** The settings of a model as JSON, which leaves out functions and what is not set. @param {ModelWithSetup} model @param {string} [where] */
export function modelSettings(model, where = "model") {
  if (typeof model !== "object" || model === null || Array.isArray(model)) {
    throw misuse(`\`${where}\` must be a model such as openai("gpt-5-mini", { apiKey }), got ${kindOf(model)}`);
  }
  if (typeof (/** @type {any} */ (model).then) === "function") throw misuse("`model` is a promise; await it first");
  const { wire, baseUrl, headers, compat, limits, apiKey, price, supportsTools, estimatesUsage, contextWindow, dangerouslyAllowBrowser } = setupOf(model);
  if (!wire && typeof model.streamFn !== "function") {
    const { modelId, doStream } = /** @type {{ modelId?: string, doStream?: unknown }} */ (model);
    if (doStream) throw misuse(`\`${where}\` is a model of the AI SDK (\`${modelId}\`); wrap it: fromLanguageModel(model) of turnwheel/ai-sdk`);
    throw misuse(`model \`${model.id ?? modelId}\` has neither a wire nor a streamFn; make it with openai(…), openaiCompatible(…) or custom(…)`);
  }
  return {
    provider: model.provider ?? "custom", id: model.id, wire, baseUrl, headers, compat: compat ?? undefined, price, limits: limits && withoutInfinity(limits),
    apiKey, supportsTools: supportsTools !== false, estimatesUsage, contextWindow, dangerouslyAllowBrowser,
  };
}
