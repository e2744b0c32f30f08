// @ts-check
// The model of an agent whose calls of models are made elsewhere.

import { custom, kindOf, misuse } from "../core.js";

/** @import { Model } from "../index.js" */

/** @param {{ id: string, provider?: string }} model @param {{ contextWindow?: number }} [options] @returns {Model} */
export function elsewhere(model, options = {}) {
  if (typeof model?.id !== "string") throw misuse(`\`elsewhere\` takes a model, or its { id, provider }, got ${kindOf(model)}`);
  const { id, provider } = model;
  async function* never() {
    throw misuse(`the model \`${id}\` is asked in a step, by \`perform\`: it needs an agent with \`host: byData({ run })\``);
  }
  return custom(id, /** @type {any} */ (never), { ...options, ...(provider !== undefined && { provider }) });
}
