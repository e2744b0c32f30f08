// @ts-check
// The messages of a request as the prompt of a language model.

import { isAnthropic, isChat } from "./families.js";

/** @import { AssistantMessage, FileBlock, ModelRequest, ToolResultMessage, UserMessage } from "../index.js" */
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

/** An image or a file, in base64 or at an address. @typedef {{ type?: string, mimeType?: string, data?: string, url?: string, name?: string }} Media */

/** The content as a version writes it. @param {Media} media @param {Writer} writer */
function fileData({ data, url }, { version }) {
  if (data !== undefined) return version === "v4" ? { type: "data", data } : data;
  return version === "v4" ? { type: "url", url: new URL(url ?? "") } : new URL(url ?? "");
}

/** The provider finds out what an address has. @param {Media} media @param {string} otherwise */
const mediaTypeOf = ({ mimeType }, otherwise) => mimeType || otherwise;

/** @param {UserMessage} message @param {Writer} writer @returns {PromptPart[]} */
function userParts({ content }, writer) {
  return content.map((block) => (block.type === "text" ? { type: "text", text: block.text } : filePart(block, writer)));
}

/** @param {Media} block @param {Writer} writer @returns {PromptPart} */
function filePart(block, writer) {
  return { type: "file", mediaType: mediaTypeOf(block, isImage(block) ? "image/*" : "application/octet-stream"), data: fileData(block, writer), ...(block.name !== undefined && { filename: block.name }) };
}

/** @param {Media} block */
const isImage = ({ type, mimeType }) => type === "image" || mimeType?.startsWith("image/") === true;

/** @param {AssistantMessage} message @param {Writer} writer @returns {PromptPart[]} */
function answerParts(message, writer) {
  // Of an answer that was cut, or of another model, only what everybody understands is sent back.
  const isOwn = writer.isOwn(message) && !["error", "aborted", "interrupted"].includes(message.stopReason);
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
  const blocks = content.map((block) => (block.type === "file" ? readFile(block) : block));
  const media = /** @type {Media[]} */ (blocks.filter(({ type }) => type !== "text"));
  if (media.length === 0 || writer.isChat) {
    const kind = media.every(isImage) ? "image" : "file";
    // A server of Chat Completions takes only text here; pictures and files follow after the results.
    if (media.length > 0) pictures.push({ type: "text", text: `${kind === "image" ? "Image" : "File"} from the result of \`${toolName}\` (${toolCallId}):` }, ...media.map((block) => filePart(block, writer)));
    const text = blocks.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n") || (media.length > 0 ? `(see the attached ${kind})` : "");
    // Only Anthropic's messages can say that a result is an error.
    const value = isError && !writer.isAnthropic && !/^error/i.test(text) ? `error: ${text}` : text;
    return { type: "tool-result", toolCallId, toolName, output: { type: isError ? "error-text" : "text", value } };
  }
  const value = blocks.map((block) => (block.type === "text" ? { type: "text", text: block.text } : mediaPart(block, writer)));
  // This form cannot say that it is an error, so a word must.
  if (isError) value.push({ type: "text", text: "error" });
  return { type: "tool-result", toolCallId, toolName, output: { type: "content", value } };
}

/**
 * A file that is text, as text, because every provider accepts that; any other as it is. @param {FileBlock} block
 * @returns {{ type: "text", text: string } | FileBlock}
 */
function readFile(block) {
  const { mimeType, name = "file", data } = block;
  if (data === undefined || !/^(text\/|application\/json)/.test(mimeType)) return block;
  try {
    const bytes = Uint8Array.from(atob(data.replaceAll("-", "+").replaceAll("_", "/")), (byte) => byte.charCodeAt(0));
    return { type: "text", text: `${name}:\n\n${new TextDecoder("utf-8", { fatal: true }).decode(bytes)}` };
  } catch {
    return block;
  }
}

/** An image or a file inside a result, as a version has it. @param {Media} block @param {Writer} writer @returns {PromptPart} */
function mediaPart(block, writer) {
  const { data, url, name } = block;
  if (writer.version === "v4") return filePart(block, writer);
  const kind = isImage(block) ? "image" : "file";
  if (data === undefined) return { type: `${kind}-url`, url };
  const { mediaType } = filePart(block, writer);
  return { type: `${kind}-data`, mediaType, data, ...(kind === "file" && name !== undefined && { filename: name }) };
}
