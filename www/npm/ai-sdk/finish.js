// @ts-check
// How an answer ended, and what it used.

import { isAnthropic } from "./families.js";

/** @import { AssistantMessageEvent, ErrorInfo, MessageStopReason, Usage } from "../index.js" */
/** @import { LanguageModelLike } from "../ai-sdk.js" */
/** @import { Part } from "./model.js" */

/** @type {Record<string, MessageStopReason>} */
const STOPS = { stop: "stop", length: "length", "tool-calls": "tool_use", "content-filter": "content_filter", other: "stop", unknown: "stop" };

/**
 * Why an answer stopped, or the error that it ended with.
 * @param {Part} part @param {{ hasCalls: boolean, isEmpty: boolean, ending: string | undefined }} answer @returns {MessageStopReason | ErrorInfo}
 */
export function endOf({ finishReason, providerMetadata }, { hasCalls, isEmpty, ending }) {
  // A word in v2, and later an object with the provider's own word in it.
  const word = typeof finishReason === "string" ? finishReason : finishReason?.unified;
  const raw = String(finishReason?.raw ?? "");
  const isUnnamed = (word === "other" || word === "unknown") && raw === "";
  if (word === "interrupted" ? !ending || ending === "none" : isUnnamed && ending === "none") {
    return { code: "network", message: "the stream ended early: the connection was cut before the answer was whole", retryable: true };
  }
  if (word === "error") return { code: "server", message: `the provider ended the answer with \`${raw || "error"}\``, retryable: true };
  const blocked = Object.values(providerMetadata ?? {}).find((each) => each?.promptFeedback?.blockReason)?.promptFeedback.blockReason;
  if (blocked && isEmpty) return { code: "content_filtered", message: `the prompt was blocked: ${blocked}`, retryable: false };
  if (/refus/.test(raw)) return "refusal";
  if (raw === "pause_turn") return "pause";
  const stop = STOPS[word] ?? "stop";
  if ((word === "other" || word === "unknown") && isEmpty) return { code: "server", message: `the answer is empty${raw && `; the provider ended it with \`${raw}\``}`, retryable: true };
  return hasCalls && stop === "stop" ? "tool_use" : stop;
}

/** What an answer used; `undefined` if nobody told. @param {LanguageModelLike} model @param {Part} part @returns {Partial<Usage> | undefined} */
export function usageOf(model, { usage, providerMetadata }) {
  if (!usage) return;
  const told = isAnthropic(model) ? (usage.raw ?? providerMetadata?.anthropic?.usage) : undefined;
  const counts = told?.output_tokens !== undefined ? countsOfAnthropic(told, usage) : typeof usage.inputTokens === "object" && usage.inputTokens !== null ? countsOfParts(usage) : countsOfV2(model, usage, providerMetadata);
  const { input, output, cacheRead, cacheWrite, reasoning } = counts;
  if ([input, output, cacheRead, cacheWrite].every((count) => !count)) return;
  return { input, output, cacheRead, cacheWrite, ...(reasoning && { reasoning }), total: input + output + cacheRead + cacheWrite };
}

/**
 * The last pass of an answer that took several. The sum of all is what is billed, but not how long the conversation is.
 * @param {any} raw @param {any} usage
 */
function countsOfAnthropic({ input_tokens: input = 0, output_tokens: output = 0, cache_read_input_tokens: read, cache_creation_input_tokens: write }, usage) {
  return { input: input ?? 0, output: output ?? 0, cacheRead: read ?? 0, cacheWrite: write ?? 0, reasoning: usage.outputTokens?.reasoning ?? 0 };
}

/** v3, v4. @param {any} usage */
function countsOfParts({ inputTokens, outputTokens, raw }) {
  const { total = 0, noCache, cacheRead = 0, cacheWrite = 0 } = inputTokens;
  const { total: output = 0, reasoning = 0 } = outputTokens ?? {};
  const input = Math.max(0, noCache ?? total - cacheRead - cacheWrite);
  // xAI's chat counts reasoning beside the output.
  const isBeside = reasoning > 0 && raw?.total_tokens === total + output + reasoning;
  return { input, output: isBeside ? output + reasoning : output, cacheRead, cacheWrite, reasoning };
}

/** v2: one number for all of the input, and what is in it differs. @param {LanguageModelLike} model @param {any} usage @param {any} metadata */
function countsOfV2(model, { inputTokens: all = 0, outputTokens = 0, totalTokens = 0, cachedInputTokens: cacheRead = 0, reasoningTokens: reasoning = 0 }, metadata) {
  if (isAnthropic(model)) {
    return { input: all, output: outputTokens, cacheRead, cacheWrite: metadata?.anthropic?.cacheCreationInputTokens ?? 0, reasoning };
  }
  // Google's output is without its thinking.
  return { input: Math.max(0, all - cacheRead), output: Math.max(outputTokens, totalTokens - all), cacheRead, cacheWrite: 0, reasoning };
}

/** What Anthropic says at the start (v4), for an answer that may be cut. @param {Part} part @returns {Generator<AssistantMessageEvent>} */
export function* usageSoFar({ providerMetadata }) {
  const { input_tokens: input = 0, cache_read_input_tokens: read, cache_creation_input_tokens: write } = providerMetadata?.anthropic?.usage ?? {};
  const [cacheRead, cacheWrite] = [read ?? 0, write ?? 0];
  if (input + cacheRead + cacheWrite > 0) yield { type: "usage", input, cacheRead, cacheWrite, total: input + cacheRead + cacheWrite };
}
