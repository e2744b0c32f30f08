// @ts-check
// How an answer ended, and what it used.

import { isAnthropic } from "./families.js";

/** @import { AssistantMessageEvent, ErrorInfo, MessageStopReason, Usage } from "../index.js" */
/** @import { LanguageModelLike } from "../ai-sdk.js" */
/** @import { Part } from "./call.js" */

/** @type {Record<string, MessageStopReason>} */
const STOPS = { stop: "stop", length: "length", "tool-calls": "tool_use", "content-filter": "content_filter", other: "stop" };

/** The words of providers that the AI SDK has no word for, and what the wires of the package make of them. */
const FILTERED = /filter|safety|recitation|blocklist|prohibited|spii|sensitive|guardrail|model_armor|toxic|content_policy|^language$/i;
const BROKEN = /^(error|abort|network_error|unexpected_tool_call|too_many_tool_calls|malformed\w*)$/i;

/**
 * Why an answer stopped, or the error that it ended with.
 * @param {Part} part @param {{ hasCalls: boolean, isEmpty: boolean, hasOverlooked: boolean, ending: { isWhole: boolean, word?: string } | undefined }} answer
 * @returns {MessageStopReason | ErrorInfo}
 */
export function endOf({ finishReason, providerMetadata }, { hasCalls, isEmpty, hasOverlooked, ending }) {
  const told = finishReason?.unified;
  const word = String(finishReason?.raw ?? ending?.word ?? "");
  // A package that refused a chunk says `error` to the end, also if nothing was in the chunk.
  const unified = told === "error" && hasOverlooked && ending?.isWhole && finishReason?.raw === undefined ? "other" : told;
  // A package also says `error` of a chunk that it could not read.
  const isUnnamed = ["other", "error"].includes(unified) && ["", "error"].includes(word) && !ending?.word;
  if (unified === "interrupted" ? !ending?.isWhole : isUnnamed && (ending ? !ending.isWhole : isEmpty && unified !== "error")) {
    return { code: "network", message: "the stream ended early: the connection was cut before the answer was whole", retryable: true };
  }
  if (word === "insufficient_system_resource") return failed("overloaded", word);
  if (unified === "error" || BROKEN.test(word)) return failed("server", word || "error");
  const blocked = Object.values(providerMetadata ?? {}).find((each) => each?.promptFeedback?.blockReason)?.promptFeedback.blockReason;
  if (blocked && isEmpty) return { code: "content_filtered", message: `the prompt was blocked: ${blocked}`, retryable: false };
  const stop = stopOf(unified, word);
  return hasCalls && stop === "stop" ? "tool_use" : stop;
}

/** @param {"server" | "overloaded"} code @param {string} word @returns {ErrorInfo} */
const failed = (code, word) => ({ code, message: `the provider ended the answer with \`${word}\``, retryable: true });

/** @param {string} unified @param {string} word @returns {MessageStopReason} */
function stopOf(unified, word) {
  if (/refus/i.test(word)) return "refusal";
  if (word === "pause_turn") return "pause";
  if (FILTERED.test(word)) return "content_filter";
  if (/length|max_(output_)?tokens|context_window/i.test(word)) return "length";
  return (Object.hasOwn(STOPS, unified) ? STOPS[unified] : undefined) ?? "stop";
}

/** What an answer used; `undefined` if nobody told. @param {LanguageModelLike} model @param {Part} part @returns {Partial<Usage> | undefined} */
export function usageOf(model, { usage, providerMetadata }) {
  if (!usage) return;
  const told = isAnthropic(model) ? (usage.raw ?? providerMetadata?.anthropic?.usage) : undefined;
  const counts = told?.output_tokens !== undefined ? countsOfAnthropic(told, usage) : countsOfParts(usage);
  const { input, output, cacheRead, cacheWrite, reasoning } = counts;
  if ([input, output, cacheRead, cacheWrite].every((count) => !count)) return;
  return { input, output, cacheRead, cacheWrite, ...(reasoning && { reasoning }), total: input + output + cacheRead + cacheWrite };
}

/**
 * The last pass of an answer that took several. The sum of all is what is billed, but not how long the conversation is.
 * @param {any} raw @param {any} usage
 */
function countsOfAnthropic({ input_tokens: input = 0, output_tokens: output = 0, cache_read_input_tokens: read, cache_creation_input_tokens: write, output_tokens_details: details }, usage) {
  // A package may leave out what was thought, but passes on what the provider said.
  const reasoning = usage.outputTokens?.reasoning ?? details?.thinking_tokens ?? 0;
  return { input: input ?? 0, output: output ?? 0, cacheRead: read ?? 0, cacheWrite: write ?? 0, reasoning };
}

/** @param {any} usage */
function countsOfParts({ inputTokens, outputTokens, raw }) {
  const { total = 0, noCache, cacheRead = 0, cacheWrite = 0 } = inputTokens ?? {};
  const { total: output = 0, reasoning = 0 } = outputTokens ?? {};
  const input = Math.max(0, noCache ?? total - cacheRead - cacheWrite);
  // xAI's chat counts reasoning beside the output.
  const isBeside = reasoning > 0 && raw?.total_tokens === total + output + reasoning;
  return { input, output: isBeside ? output + reasoning : output, cacheRead, cacheWrite, reasoning };
}

/** What Anthropic says at the start (v4), for an answer that may be cut. @param {Part} part @returns {Generator<AssistantMessageEvent>} */
export function* usageSoFar({ providerMetadata }) {
  const { input_tokens: input = 0, cache_read_input_tokens: read, cache_creation_input_tokens: write } = providerMetadata?.anthropic?.usage ?? {};
  const [cacheRead, cacheWrite] = [read ?? 0, write ?? 0];
  if (input + cacheRead + cacheWrite > 0) yield { type: "usage", input, cacheRead, cacheWrite, total: input + cacheRead + cacheWrite };
}
