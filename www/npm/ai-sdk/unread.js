// @ts-check
// What a server sends and a provider's package does not read: the package for OpenAI's own models is used for many servers, and
// reads of them what OpenAI sends. The model is asked for the chunks themselves, too.

import { isAnthropic } from "./families.js";

/** @import { LanguageModelLike } from "../ai-sdk.js" */

/** Whether the chunks of a model are worth a look. @param {LanguageModelLike} model */
export const mayLeaveUnread = (model) => !isAnthropic(model);

/**
 * A thought or an error in a chunk, which the package may or may not read.
 * @param {any} chunk @returns {{ id: string, thought: string } | { error: unknown } | undefined}
 */
export function unreadOf(chunk) {
  if (chunk?.type === "response.reasoning_text.delta") return { id: `${chunk.item_id}:0`, thought: String(chunk.delta ?? "") };
  if (!Array.isArray(chunk?.choices)) return;
  if (typeof chunk.error === "object" && chunk.error !== null) return { error: { error: chunk.error } };
  const { reasoning_content: content, reasoning, reasoning_details: details } = chunk.choices[0]?.delta ?? {};
  // Some servers write the same thought into two of the fields.
  const inDetails = Array.isArray(details) ? details.map((detail) => detail?.text ?? detail?.summary ?? "").join("") : "";
  const thought = [content, reasoning, inDetails].find((text) => typeof text === "string" && text !== "");
  return thought && { id: "", thought };
}

/**
 * Whether a chunk says that the answer is whole; `undefined` if it is of no known form. Until v4, a package says the same of an
 * answer that was cut and of one that ended for a reason without a name. Some servers of Chat Completions send no reason, but
 * their usage, which comes last. `word` is the provider's own for the reason.
 * @param {any} chunk @returns {{ isWhole: boolean, word?: string } | undefined}
 */
export function endIn(chunk) {
  const { type, choices, candidates, promptFeedback, usage } = chunk ?? {};
  if (/^response\./.test(type)) {
    const why = type === "response.failed" ? "error" : type === "response.incomplete" && chunk.response?.incomplete_details?.reason;
    return { isWhole: /^response\.(completed|incomplete|failed)$/.test(type), ...(typeof why === "string" && { word: why }) };
  }
  const word = choices?.[0]?.finish_reason || candidates?.[0]?.finishReason;
  if (word) return { isWhole: true, word: String(word) };
  if (promptFeedback?.blockReason) return { isWhole: true };
  if (!Array.isArray(choices)) return Array.isArray(candidates) ? { isWhole: false } : undefined;
  const { content, tool_calls: calls } = choices[0]?.delta ?? {};
  return { isWhole: Boolean(usage) && !content && !calls?.length };
}

/** The chunks with content of the wires whose chunks have a type, and the deltas that are known. */
const CONTENT = /^(content_block_|message_|error$|response\.(?!created$|in_progress$|queued$))/;
const DELTAS = ["text_delta", "thinking_delta", "signature_delta", "input_json_delta", "citations_delta", "compaction_delta"];
const IS_VALIDATION = /* @__PURE__ */ Symbol.for("vercel.ai.error.AI_TypeValidationError");

/**
 * Whether a package refused a chunk in which nothing was said: one of a kind that is new, that only announces something, or that
 * repeats what was read.
 * @param {any} error @param {{ read: number, repeated: number }} words how many characters of text were read, and how many were repeated
 */
export function isHarmless(error, words) {
  const value = error?.[IS_VALIDATION] && error.value;
  if (typeof value?.type !== "string") return false;
  if (/^response\.output_item\.(added|done)$/.test(value.type) && value.item?.type === "message" && Array.isArray(value.item.content)) {
    if (value.item.content.some((/** @type {any} */ part) => part?.type !== "output_text" || typeof part.text !== "string")) return false;
    const { length } = value.item.content.map((/** @type {any} */ { text }) => text).join("");
    words.repeated += value.type.endsWith("done") ? length : 0;
    return value.type.endsWith("done") ? words.repeated <= words.read : length === 0;
  }
  if (value.type === "content_block_delta") return !DELTAS.includes(value.delta?.type);
  return !CONTENT.test(value.type);
}
