// @ts-check
// What a model carries with it for the engine, hidden from the user.

import { kindOf, misuse, withoutInfinity } from "../shared.js";

/** @import { Model, ProviderOptions } from "../index.js" */
/**
 * The wire is what the engine speaks with the model; without one, the host streams it.
 * @typedef {ProviderOptions & { wire?: string, supportsTools?: boolean | undefined, dangerouslyAllowBrowser?: boolean }} Setup
 * @typedef {Model & { [SETUP]?: Setup }} ModelWithSetup
 */

/** The key under which a model holds its setup. @type {unique symbol} */
export const SETUP = Symbol.for("turnwheel.model");

/** @param {Model} model @param {Setup} setup @returns {Model} */
export function withSetup(model, setup) {
  Object.defineProperty(model, SETUP, { value: setup });
  return Object.freeze(model);
}

/** The settings of a model as JSON, which leaves out functions and what is not set. @param {ModelWithSetup} model */
export function modelSettings(model) {
  if (typeof model !== "object" || model === null) {
    throw misuse(`\`model\` must be a model such as openai("gpt-5-mini", { apiKey }), got ${kindOf(model)}`);
  }
  const { wire, baseUrl, headers, compat, limits, apiKey, price, supportsTools, contextWindow, dangerouslyAllowBrowser } = model[SETUP] ?? {};
  if (!wire && typeof model.streamFn !== "function") {
    throw misuse(`model \`${model.id ?? /** @type {{ modelId?: string }} */ (model).modelId}\` has neither a wire nor a streamFn; make it with openai(…), openaiCompatible(…) or custom(…)`);
  }
  return {
    provider: model.provider ?? "custom", id: model.id, wire, baseUrl, headers, compat: compat ?? undefined, price, limits: limits && withoutInfinity(limits),
    apiKey, supportsTools: supportsTools !== false, contextWindow, dangerouslyAllowBrowser,
  };
}
