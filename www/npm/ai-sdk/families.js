// @ts-check
// What is known of a provider from its name, such as `openai.responses` or `google.vertex.chat`.

/** @import { LanguageModelLike } from "../ai-sdk.js" */

/** The name under which a provider looks for its options. @param {LanguageModelLike} model */
export const optionsName = ({ provider }) => provider.split(".")[0] ?? provider;

/** @param {LanguageModelLike} model */
export const isAnthropic = ({ provider, modelId }) => /anthropic/.test(provider) || (/bedrock/.test(provider) && /claude/.test(modelId));

/** @param {LanguageModelLike} model */
export const isGoogle = ({ provider }) => /^(google|gemini|vertex)/.test(provider) && !/anthropic|maas|xai/.test(provider);

/** The Responses API, of OpenAI or another server. @param {LanguageModelLike} model */
export const isResponses = ({ provider }) => provider.endsWith(".responses");

/** Chat Completions, whose tool messages hold only text. @param {LanguageModelLike} model */
export const isChat = ({ provider }) => provider.endsWith(".chat");
