// @ts-check
// A language model of the AI SDK as a model of an agent: specification v3 and v4, told apart by what the model says of
// itself. Nothing of the AI SDK is imported.

import { withSetup } from "../core.js";
import { checkNames, kindOf, misuse, shownOf } from "../shared.js";

/** @import { Model } from "../index.js" */
/** @import { LanguageModelLike, LanguageModelOptions } from "../ai-sdk.js" */

const VERSIONS = ["v3", "v4"];

/** @param {LanguageModelLike} model @param {LanguageModelOptions} [options] @returns {Model} */
export function fromLanguageModel(model, options = {}) {
  checkModel(model);
  checkNames("fromLanguageModel: unknown option", options, ["providerOptions", "tools", "call", "contextWindow", "price", "limits", "onWarning"]);
  const { providerOptions = {}, tools = {}, call = {}, contextWindow, price, limits, onWarning } = options;
  checkNames("fromLanguageModel: unknown option `call.", call, ["topK", "seed", "presencePenalty", "frequencyPenalty"]);
  if (contextWindow !== undefined && !(contextWindow > 0)) throw misuse(`fromLanguageModel: \`contextWindow\` must be a number of tokens, got ${shownOf(contextWindow)}`);
  if (limits !== undefined) checkNames("fromLanguageModel: unknown option `limits.", limits, ["answer"]);
  if (limits?.answer !== undefined && !(typeof limits.answer === "number" && limits.answer > 0)) throw misuse(`fromLanguageModel: \`limits.answer\` must be a number of bytes, got ${shownOf(limits.answer)}`);
  for (const [name, value] of Object.entries({ providerOptions, ...providerOptions })) {
    if (typeof value !== "object" || value === null) throw misuse(`fromLanguageModel: \`${name}\` must be an object with options of a provider, got ${kindOf(value)}`);
  }
  for (const [name, tool] of Object.entries(/** @type {{ [name: string]: any }} */ (tools))) {
    if (typeof tool?.id !== "string") throw misuse(`fromLanguageModel: \`tools.${name}\` must be a tool that the provider defines, such as anthropic.tools.webSearch_20250305(), got ${kindOf(tool)}; tools of your own are an option of the agent`);
  }
  if (onWarning !== undefined && typeof onWarning !== "function") throw misuse(`fromLanguageModel: \`onWarning\` must be a function, got ${kindOf(onWarning)}`);
  // The prefix keeps what this bridge stored in a history apart from what a wire of the same provider stored.
  const provider = `ai-sdk:${model.provider}`;
  /** @type {Model["streamFn"]} */
  const streamFn = async (request, { signal }) => {
    // A page shows itself before it asks.
    const { answer } = await import("./call.js");
    return answer(model, provider, options, request, signal);
  };
  return withSetup({ provider, id: model.modelId, streamFn }, { ...(contextWindow !== undefined && { contextWindow }), ...(price && { price }), ...(limits && { limits }), estimatesUsage: true });
}

/** @param {any} model */
function checkModel(model) {
  if (typeof model === "string") throw misuse(`fromLanguageModel takes a model, got the text ${JSON.stringify(model)}; only \`ai\` itself looks up models by such names: pass what a provider's function gives`);
  if (typeof model?.doStream !== "function") throw misuse(`fromLanguageModel takes a language model of the AI SDK, got ${kindOf(model)}`);
  if (!VERSIONS.includes(model.specificationVersion)) throw misuse(`model \`${model.modelId}\` has specification version ${JSON.stringify(model.specificationVersion)}; fromLanguageModel knows ${VERSIONS.join(", ")}`);
}
