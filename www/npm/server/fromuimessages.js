// @ts-check
// Reads what the AI SDK's useChat posts back: the new message, the approval decisions,
// the conversation so far.

import { checkNames, fromClient, isBase64, kindOf, MIME_TYPE, misuse, noUsage, readBlock, textOf } from "../shared.js";
import { isPublicAddress } from "../host/address.js";

/** @import { Agent, AgentMessage, AssistantMessage, FileBlock, ImageBlock, ToolCallAnswer, ToolDecision, ToolResultMessage, UserMessage } from "../index.js" */
/** @typedef {AssistantMessage["content"][number]} AnswerBlock */

/**
 * Converts the messages of useChat. `trusted`: what only a provider understands is taken, too; a stranger could make a system
 * prompt of it. `agent`: whose open calls without `execute` the page has given results for.
 * @param {any[]} messages @param {{ trusted?: boolean, agent?: Pick<Agent, "pendingQuestions"> }} [options]
 * @returns {{ prompt: UserMessage | undefined, decisions: { [questionId: string]: ToolDecision }, answers: { [questionId: string]: ToolCallAnswer }, messages: AgentMessage[] }}
 */
export function fromUIMessages(messages, options = {}) {
  if (!Array.isArray(messages)) throw misuse(`fromUIMessages takes the messages that useChat posts, got ${kindOf(messages)}`);
  messages.forEach((message, i) => {
    if (!Array.isArray(message?.parts)) throw misuse(`messages[${i}] has no parts: it is no message of useChat`);
    for (const part of message.parts) {
      if (typeof part?.type !== "string") throw misuse(`messages[${i}] has a part without a type: it is no message of useChat`);
      const texts = isTool(part) ? ["toolCallId", ...(part.type === "dynamic-tool" ? ["toolName"] : [])] : part.type === "text" || part.type === "reasoning" ? ["text"] : [];
      for (const name of texts) if (typeof part[name] !== "string") throw misuse(`messages[${i}]: a part of type ${part.type.slice(0, 60)} needs a text \`${name}\`, got ${kindOf(part[name])}`);
    }
  });
  checkNames("fromUIMessages: unknown option", options, ["trusted", "agent"]);
  const last = messages.at(-1);
  const isNew = last?.role === "user";
  return {
    prompt: isNew ? userMessage(last) : undefined,
    decisions: isNew ? {} : decisionsOf(last),
    answers: isNew || !options.agent ? {} : answersOf(last, options.agent),
    messages: messages.slice(0, isNew ? -1 : undefined).flatMap((message) => historyOf(message, options.trusted === true)),
  };
}

/** @param {any} part */
const isTool = ({ type }) => type === "dynamic-tool" || type.startsWith("tool-");

/** The user's decisions on the approval requests of the last answer, by the ids of the questions. @param {any} message */
function decisionsOf(message) {
  /** @type {[string, ToolDecision][]} */
  const decisions = [];
  for (const { state, toolCallId, approval } of message?.parts.filter(isTool) ?? []) {
    if (state !== "approval-responded") continue;
    // Anything but an explicit yes is a no.
    const { id = toolCallId, approved, reason } = approval ?? {};
    const decision = approved === true ? { action: "approve" } : { action: "reject", ...(typeof reason === "string" && reason && { reason }) };
    // Each carries the mark of a client's answer, however they are passed on.
    decisions.push([String(id), fromClient(/** @type {ToolDecision} */ (decision))]);
  }
  return fromClient(Object.fromEntries(decisions));
}

/** What the page gave as the results of calls of which the agent waits for one, by the ids of the questions. @param {any} message @param {Pick<Agent, "pendingQuestions">} agent */
function answersOf(message, { pendingQuestions }) {
  /** @type {Map<string, any>} */
  const given = new Map((message?.parts.filter(isTool) ?? []).map((/** @type {any} */ part) => [part.toolCallId, part]));
  /** @type {{ [id: string]: ToolCallAnswer }} */
  const answers = {};
  for (const question of pendingQuestions) {
    if (question.kind !== "tool_call") continue;
    const { state, output, errorText, preliminary } = given.get([...question.path, question.callId].join("/")) ?? {};
    if (state === "output-error") answers[question.id] = fromClient({ error: String(errorText ?? "") });
    else if (state === "output-available" && !preliminary) answers[question.id] = fromClient({ output });
  }
  return answers;
}

/** @param {any} message @returns {UserMessage} */
function userMessage({ id, parts }) {
  return { role: "user", content: parts.flatMap(userBlock), timestamp: 0, ...named(id) };
}

/** The id by which the page knows a message; not one that `toUIMessages` has made of its place. @param {unknown} id */
const named = (id) => (typeof id === "string" && id.length <= 200 && !/^(message-\d+)?$/.test(id) ? { id } : {});

/** @param {any} part @returns {UserMessage["content"]} */
function userBlock({ type, text, url, mediaType, filename, role }) {
  if (role !== undefined) throw misuse("a part of a message has no `role`");
  if (type === "text") return [{ type: "text", text }];
  if (type !== "file") return [];
  // `toUIMessages` says `image/*` of an image at an address whose type nobody has told.
  const isUntyped = mediaType === "image/*" && !String(url).startsWith("data:");
  if (!isUntyped && !(typeof mediaType === "string" && MIME_TYPE.test(mediaType))) throw misuse(`a file needs a \`mediaType\` such as image/png, got ${typeof mediaType === "string" ? JSON.stringify(mediaType.slice(0, 60)) : kindOf(mediaType)}`);
  const isImage = mediaType.startsWith("image/");
  const [, data] = (typeof url === "string" && /^data:[^,]*;base64,(.*)$/s.exec(url)) || [];
  // What a client posts makes this server fetch nothing of its own machine or network.
  if (data === undefined ? !isPublicAddress(url) : !isBase64(data)) throw misuse("a file must come as a data: address in base64, or be at an address that begins with https:// and is no private network's");
  const content = data === undefined ? { url: new URL(url).href } : { data };
  if (isImage) return [/** @type {ImageBlock} */ ({ type: "image", ...(!isUntyped && { mimeType: mediaType }), ...content })];
  return [/** @type {FileBlock} */ ({ type: "file", mimeType: mediaType, ...content, ...(typeof filename === "string" && filename && { name: filename }) })];
}

/** @param {any} message @param {boolean} isTrusted @returns {AgentMessage[]} */
function historyOf(message, isTrusted) {
  if (message.role === "user") return [userMessage(message)];
  if (message.role !== "assistant") return [];
  /** @type {any[][]} */
  const steps = [[]];
  for (const part of message.parts) {
    if (part.type === "step-start") steps.push([]);
    else steps.at(-1)?.push(part);
  }
  const [first, ...others] = steps.flatMap((parts) => stepOf(parts, isTrusted));
  return first ? [{ ...first, ...named(message.id) }, ...others] : [];
}

/** What `toUIMessages` has kept with a part: the model, a signature, the metadata of a call. @param {any} part */
function keptOf({ type, data, providerMetadata, callProviderMetadata }) {
  const { signature, redacted, metadata, provider, model } = (type === "data-turnwheel" ? data : (callProviderMetadata ?? providerMetadata)?.turnwheel) ?? {};
  return {
    from: typeof provider === "string" && typeof model === "string" ? { provider, model } : undefined,
    block: { ...(typeof signature === "string" && { signature }), ...(redacted === true && { redacted: /** @type {true} */ (true) }) },
    call: { ...(typeof metadata === "object" && metadata !== null && { metadata }) },
  };
}

/** @param {any} part @param {boolean} isTrusted @returns {AnswerBlock[]} */
function answerBlock(part, isTrusted) {
  const { block, call } = keptOf(part);
  if (part.type === "text" && (part.text || block.signature)) return [{ type: "text", text: part.text, ...(block.signature && { signature: block.signature }) }];
  if (part.type === "reasoning" && (part.text || block.signature)) return [{ type: "thinking", thinking: part.text, ...block }];
  if (part.type === "data-turnwheel" && isTrusted) return [{ type: "raw", data: part.data?.raw ?? null }];
  return isTool(part) ? [{ type: "tool_call", callId: part.toolCallId, toolName: nameOf(part), arguments: argumentsOf(part.input), ...call }] : [];
}

/** Converts one answer and the results of its calls. @param {any[]} parts @param {boolean} isTrusted @returns {AgentMessage[]} */
function stepOf(parts, isTrusted) {
  const content = parts.flatMap((part) => answerBlock(part, isTrusted));
  if (content.length === 0) return [];
  const from = parts.map(keptOf).find((kept) => kept.from)?.from ?? { provider: "", model: "" };
  const results = parts.filter(isTool).flatMap(resultOf);
  const stopReason = content.some(({ type }) => type === "tool_call") ? "tool_use" : "stop";
  return [{ role: "assistant", content, ...from, usage: noUsage(), stopReason, timestamp: 0 }, ...results];
}

/**
 * The model may have written something other than an object; useChat keeps it as it was.
 * @param {any} input
 */
const argumentsOf = (input) => (typeof input === "object" && input !== null && !Array.isArray(input) ? input : {});

/** @param {any} part */
const nameOf = ({ type, toolName }) => toolName ?? type.slice("tool-".length);

/** @param {any} part @param {unknown} output */
function outputText(part, output) {
  try {
    return JSON.stringify(output) ?? "";
  } catch (error) {
    throw misuse(`the output of ${nameOf(part)} is no JSON: ${error instanceof RangeError ? "nested too deep" : textOf(error)}`, error);
  }
}

/** @param {any} part @returns {ToolResultMessage[]} */
function resultOf(part) {
  const { state, output, errorText, approval, preliminary } = part;
  /** @param {string | ToolResultMessage["content"]} said @param {boolean} isError @returns {ToolResultMessage[]} */
  const result = (said, isError) => [{ role: "tool_result", callId: part.toolCallId, toolName: nameOf(part), content: typeof said === "string" ? [{ type: "text", text: said }] : said, isError, timestamp: 0 }];
  // An output that was only a report of progress is none.
  if (state === "output-available" && preliminary) return [];
  if (state === "output-available") return result(typeof output === "string" ? output : areBlocks(output) ? output.map((/** @type {unknown} */ block, /** @type {number} */ i) => readBlock(block, `the output of ${nameOf(part)}[${i}]`, "tool_result")) : outputText(part, output), false);
  if (state === "output-error") return result(String(errorText ?? ""), true);
  if (state === "output-denied") return result(String(approval?.reason ?? "the call was rejected"), true);
  return [];
}

/** Whether an output is a list of blocks, as one with images or files is shown. @param {any} output */
const areBlocks = (output) => Array.isArray(output) && output.some(isMedia) && output.every((block) => isMedia(block) || (block?.type === "text" && typeof block.text === "string"));

/** As for what the user posts, nothing here makes this server fetch from its own machine or network. @param {any} block */
const isMedia = (block) => {
  const { type, mimeType, data, url } = Object(block);
  if (type !== "image" && type !== "file") return false;
  return data === undefined ? isPublicAddress(url) && (MIME_TYPE.test(mimeType) || (type === "image" && mimeType === undefined)) : isBase64(data) && MIME_TYPE.test(mimeType);
};
