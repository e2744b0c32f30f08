// @ts-check
// The messages of a request as the prompt of a language model.

import { isAnthropic, isChat } from "./families.js";

/** @import { AssistantMessage, ModelRequest, ToolResultMessage, UserMessage } from "../index.js" */
/** @import { LanguageModelLike } from "../ai-sdk.js" */
/** @typedef {{ [provider: string]: { [name: string]: any } }} ProviderOptions */
/** @typedef {{ type: string } & Record<string, any>} PromptPart */
/** @typedef {{ role: string, content: string | PromptPart[], providerOptions?: ProviderOptions }} PromptMessage */

/** What Anthropic is told to keep in its cache; other providers do not look at it. @type {ProviderOptions} */
const CACHED = { anthropic: { cacheControl: { type: "ephemeral" } } };

/** @param {LanguageModelLike} model @param {string} provider @param {ModelRequest} request @returns {PromptMessage[]} */
export function promptOf(model, provider, { systemPrompt, messages, options, model: id }) {
  /** @type {PromptMessage[]} */
  const prompt = systemPrompt ? [{ role: "system", content: systemPrompt }] : [];
  const writer = { version: model.specificationVersion, isChat: isChat(model), isAnthropic: isAnthropic(model), isOwn: (/** @type {AssistantMessage} */ message) => message.provider === provider && message.model === id };
  /** The pictures of tool results that wait for the end of the results. @type {PromptPart[]} */
  let pictures = [];
  for (const message of messages) {
    if (message.role === "tool_result") {
      const last = prompt.at(-1);
      const parts = last?.role === "tool" ? /** @type {PromptPart[]} */ (last.content) : [];
      if (last?.role !== "tool") prompt.push({ role: "tool", content: parts });
      parts.push(resultPart(message, writer, pictures));
      continue;
    }
    const content = message.role === "user" ? [...pictures, ...userParts(message, writer)] : answerParts(message, writer);
    if (message.role === "assistant" && pictures.length > 0) prompt.push({ role: "user", content: pictures });
    pictures = [];
    if (content.length > 0) prompt.push({ role: message.role, content });
  }
  if (pictures.length > 0) prompt.push({ role: "user", content: pictures });
  if (options.cache !== "none") markForCache(prompt);
  return prompt;
}

/** @typedef {{ version: string, isChat: boolean, isAnthropic: boolean, isOwn(message: AssistantMessage): boolean }} Writer */

/** Marks the system prompt and the last message that is no answer. @param {PromptMessage[]} prompt */
function markForCache(prompt) {
  const last = prompt.findLast(({ role }) => role === "user" || role === "tool");
  for (const message of [prompt[0]?.role === "system" ? prompt[0] : undefined, last]) if (message) message.providerOptions = CACHED;
}

/** Data in base64 as a version writes it. @param {string} data @param {Writer} writer */
const fileData = (data, { version }) => (version === "v4" ? { type: "data", data } : data);

/** @param {UserMessage} message @param {Writer} writer @returns {PromptPart[]} */
function userParts({ content }, writer) {
  return content.map((block) => {
    if (block.type === "text") return { type: "text", text: block.text };
    const filename = block.type === "file" ? block.name : undefined;
    return { type: "file", mediaType: block.mimeType, data: fileData(block.data, writer), ...(filename !== undefined && { filename }) };
  });
}

/** @param {AssistantMessage} message @param {Writer} writer @returns {PromptPart[]} */
function answerParts(message, writer) {
  // Of an answer that was cut, or of another model, only what everybody understands is sent back.
  const isOwn = writer.isOwn(message) && message.stopReason !== "error" && message.stopReason !== "aborted";
  const answered = new Set(message.content.map((block) => (block.type === "raw" ? rawResultOf(block.data) : undefined)));
  return message.content.flatMap((block) => {
    if (block.type === "text") {
      const kept = isOwn ? metadataOf(block.signature) : undefined;
      // An empty text with a signature is a place for the signature. Anthropic refuses blank ones, though it sends them.
      const isBlank = (writer.isAnthropic ? block.text.trim() : block.text) === "";
      return isBlank && !kept ? [] : [{ type: "text", text: block.text, ...kept }];
    }
    if (block.type === "thinking") {
      const kept = isOwn ? metadataOf(block.signature) : undefined;
      return isOwn && (kept || block.thinking !== "") ? [{ type: "reasoning", text: block.thinking, ...kept }] : [];
    }
    if (block.type === "raw") return isOwn ? rawPart(block.data, answered, message.stopReason === "pause") : [];
    const { inputEncoding, ...kept } = isOwn ? callMetadata(block.metadata) : /** @type {{ inputEncoding?: string, providerOptions?: ProviderOptions }} */ ({});
    return [{ type: "tool-call", toolCallId: block.callId, toolName: block.toolName, input: inputEncoding === "text" ? block.arguments.input : block.arguments, ...kept }];
  });
}

/** Kinds of parts that a prompt may hold. */
const REPLAYED = ["text", "tool-call", "tool-result", "file", "reasoning-file", "custom"];

/** @param {any} data */
const rawResultOf = (data) => (data?.type === "tool-result" ? data.toolCallId : undefined);

/**
 * A part that was kept whole. A call that the provider ran itself needs its result, unless the provider paused in it.
 * @param {any} data @param {Set<unknown>} answered the ids of calls with a result @param {boolean} isPaused @returns {PromptPart[]}
 */
function rawPart(data, answered, isPaused) {
  if (!REPLAYED.includes(data?.type)) return [];
  return data.type === "tool-call" && !isPaused && !answered.has(data.toolCallId) ? [] : [data];
}

/** The metadata that a signature holds. @param {string | undefined} signature @returns {{ providerOptions: ProviderOptions } | undefined} */
function metadataOf(signature) {
  if (!signature?.startsWith("{")) return;
  try {
    return { providerOptions: JSON.parse(signature) };
  } catch {
    // It is not from here.
  }
}

/** The metadata of a call, without what turnwheel added. @param {any} metadata @returns {{ inputEncoding?: string, providerOptions?: ProviderOptions }} */
function callMetadata(metadata) {
  const { turnwheel, ...others } = metadata ?? {};
  const kept = Object.entries(others).filter(([, value]) => typeof value === "object" && value !== null);
  return { ...(turnwheel?.inputEncoding && { inputEncoding: turnwheel.inputEncoding }), ...(kept.length > 0 && { providerOptions: Object.fromEntries(kept) }) };
}

/** @param {ToolResultMessage} message @param {Writer} writer @param {PromptPart[]} pictures @returns {PromptPart} */
function resultPart({ callId: toolCallId, toolName, content, isError }, writer, pictures) {
  const images = content.filter((block) => block.type === "image");
  if (images.length === 0 || writer.isChat) {
    // A server of Chat Completions takes only text here; the pictures follow after the results.
    if (images.length > 0) pictures.push({ type: "text", text: `Image from the result of \`${toolName}\` (${toolCallId}):` }, ...images.map(({ mimeType, data }) => ({ type: "file", mediaType: mimeType, data: fileData(data, writer) })));
    const text = content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n") || (images.length > 0 ? "(see the attached image)" : "");
    // Only Anthropic's messages can say that a result is an error.
    const value = isError && !writer.isAnthropic && !/^error/i.test(text) ? `error: ${text}` : text;
    return { type: "tool-result", toolCallId, toolName, output: { type: isError ? "error-text" : "text", value } };
  }
  const value = content.map((block) => (block.type === "text" ? { type: "text", text: block.text } : imagePart(block, writer)));
  // This form cannot say that it is an error, so a word must.
  if (isError) value.push({ type: "text", text: "error" });
  return { type: "tool-result", toolCallId, toolName, output: { type: "content", value } };
}

/** @param {{ mimeType: string, data: string }} image @param {Writer} writer @returns {PromptPart} */
function imagePart({ mimeType: mediaType, data }, writer) {
  if (writer.version === "v4") return { type: "file", mediaType, data: fileData(data, writer) };
  return { type: writer.version === "v3" ? "image-data" : "media", mediaType, data };
}
