// @ts-check
// Reads what an AG-UI client posts: the new messages, its answers to interrupts, the results of its own tools, the
// conversation so far.

import { checkAnswersOption, mayClient, NotAllowed, readAnswer } from "../messages/client.js";
import { checkNames, complain, fromClient, isBase64, isForPeople, kindOf, MIME_TYPE, misuse, noUsage } from "../shared.js";

/** @import { AgentMessage, Answer, AssistantMessage, ToolDecision, ToolDefinition, ToolResultMessage, UserMessage } from "../index.js" */
/** @import { AGUIInput, AGUIInputOptions, AGUITool } from "../ag-ui.js" */
/** @typedef {AssistantMessage["content"][number]} AnswerBlock */
/** A message as it is posted. @typedef {{ id?: unknown, role: string, content?: any, toolCalls?: any, toolCallId?: any, error?: any, encryptedValue?: any }} Posted */

/** How much of each a client may post: more than any conversation has. */
const LIMITS = { messages: 10_000, tools: 1_000, resume: 1_000 };

/** The tools of clients: of those they give the results, whatever else they may. @type {WeakSet<object>} */
const ofClients = new WeakSet();

/**
 * @param {any} input the body of the request, parsed
 * @param {AGUIInputOptions} [options]
 * @returns {AGUIInput}
 */
export function fromAGUI(input, options = {}) {
  checkNames("fromAGUI: unknown option", options, ["agent", "answers"]);
  checkAnswersOption(options.answers, "answers");
  if (typeof input !== "object" || input === null || typeof input.json === "function") throw misuse(`fromAGUI takes the parsed body of a request: fromAGUI(await request.json()), got ${kindOf(input)}`);
  const { threadId, runId, protocolVersion, state = {}, context = [], forwardedProps } = input;
  const messages = /** @type {Posted[]} */ (listOf(input, "messages"));
  const tools = listOf(input, "tools").map(toolOf);
  const resume = listOf(input, "resume");
  for (const [name, id] of Object.entries({ threadId, runId })) if (typeof id !== "string") throw misuse(`\`${name}\` must be a text, got ${kindOf(id)}: it is no input of an AG-UI client`);
  const agent = typeof options.agent === "function" ? options.agent(threadId) : options.agent;
  messages.forEach((message, i) => {
    if (typeof message?.role !== "string") throw misuse(`messages[${i}] has no role: it is no message of an AG-UI client`);
  });
  const { decisions, answers, refused } = readResume(resume, agent, options.answers);
  const results = agent ? resultsOf(messages, agent, options.answers, refused) : [];
  const asked = messages.findLastIndex(({ role }) => role !== "user") + 1;
  const prompt = messages.slice(asked).map(userMessage);
  return {
    threadId, runId, ...(typeof protocolVersion === "string" && { protocolVersion }),
    ...(prompt.length > 0 && { prompt }),
    // As the client gives them: what the host is deciding, no client answers.
    decisions: fromClient(Object.fromEntries([...results, ...decisions])),
    answers: Object.fromEntries(answers), ...(refused.length > 0 && { refused: Object.fromEntries(refused) }),
    messages: historyOf(messages.slice(0, asked)), tools, state, context, forwardedProps,
  };
}

/**
 * The client's tools as tools of the agent, without `execute`: a call waits for its result as for an answer to a question.
 * @param {readonly AGUITool[]} tools @returns {ToolDefinition[]}
 */
export function frontendTools(tools) {
  if (!Array.isArray(tools)) throw misuse(`frontendTools takes the tools of the client: frontendTools(fromAGUI(body).tools), got ${kindOf(tools)}`);
  tools.forEach(toolOf);
  return tools.map(({ name, description, parameters }) => {
    const tool = { name, description, parameters: /** @type {ToolDefinition["parameters"]} */ (parameters ?? { type: "object" }) };
    ofClients.add(tool);
    return tool;
  });
}

/** @param {any} input @param {keyof typeof LIMITS} name @returns {any[]} */
function listOf(input, name) {
  const list = input[name] ?? [];
  if (!Array.isArray(list)) throw misuse(`\`${name}\` must be an array, got ${kindOf(list)}: it is no input of an AG-UI client`);
  if (list.length > LIMITS[name]) throw misuse(`\`${name}\` has ${list.length} members; at most ${LIMITS[name]} are read`);
  return list;
}

/** @param {any} tool @param {number} i @returns {AGUITool} */
function toolOf(tool, i) {
  if (typeof tool?.name !== "string") throw misuse(`tools[${i}] has no name: it is no tool of an AG-UI client`);
  const { name, description = "", parameters } = tool;
  return { name, description: wordOf(description), ...(typeof parameters === "object" && parameters !== null && { parameters }) };
}

/**
 * The answers to questions: those that a client may give, and why the others are left out. A question that gets no answer stays open.
 * @param {any[]} resume @param {Exclude<AGUIInputOptions["agent"], Function>} agent @param {AGUIInputOptions["answers"]} allowed
 */
function readResume(resume, agent, allowed) {
  /** @type {[string, any][]} */ const decisions = [];
  /** @type {[string, any][]} */ const answers = [];
  /** @type {[string, string][]} */ const refused = [];
  /** @param {[string, any][]} to @param {string} id @param {any} given */
  const take = (to, id, given) => {
    // `agent.resolveTools` takes the ids of calls too.
    const asked = agent?.pendingApprovals.filter((question) => question.id === id || question.callId === id) ?? [];
    try {
      if (agent && !asked.every((question) => isForPeople(agent, question))) throw new NotAllowed("the host decides about this call; clients are not asked");
      to.push([id, readAnswer(given, allowed)]);
    } catch (error) {
      if (!(error instanceof NotAllowed)) throw error;
      refused.push([id, error.message]);
    }
  };
  resume.forEach((entry, i) => {
    const [answer] = answerOf(entry);
    const [id, given] = answer ?? decisionOf(entry, i);
    take(answer ? answers : decisions, id, given);
  });
  return { decisions, answers, refused };
}

/**
 * An answer to a question that is not about whether a call may run: more of a budget, what a tool wants to know, the result of a call.
 * @param {any} entry @returns {[string, Answer][]}
 */
function answerOf(entry) {
  const { interruptId, status, payload } = entry ?? {};
  if (typeof interruptId !== "string" || status !== "resolved" || typeof payload !== "object" || payload === null) return [];
  if (Object.hasOwn(payload, "raise")) return [[interruptId, { raise: payload.raise }]];
  if (Object.hasOwn(payload, "output")) return [[interruptId, { output: payload.output }]];
  if (typeof payload.error === "string") return [[interruptId, { error: payload.error }]];
  return Object.hasOwn(payload, "content") ? [[interruptId, { action: "accept", content: payload.content }]] : [];
}

/** @param {any} entry @param {number} i @returns {[string, ToolDecision]} */
function decisionOf(entry, i) {
  const { interruptId, status, payload } = entry ?? {};
  if (typeof interruptId !== "string") throw misuse(`resume[${i}] names no interrupt`);
  const { approved, reason, arguments: args } = typeof payload === "object" && payload !== null ? payload : { approved: payload };
  // Anything but an explicit yes is a no.
  if (status !== "resolved" || approved !== true) return [interruptId, { action: "reject", ...(typeof reason === "string" && reason && { reason }) }];
  return [interruptId, args === undefined ? "approve" : { action: "approve", arguments: args }];
}

/**
 * The results of calls without `execute` that came since the last answer, by the ids of the calls. What a client says of its tools and
 * its calls is no proof, so only those count for which this agent waits.
 * @param {Posted[]} messages @param {NonNullable<Exclude<AGUIInputOptions["agent"], Function>>} agent @param {AGUIInputOptions["answers"]} allowed
 * @param {[string, string][]} refused @returns {[string, ToolDecision][]}
 */
function resultsOf(messages, { pendingQuestions = [], tools = [] }, allowed, refused) {
  const theirs = new Set(tools.flatMap((tool) => (ofClients.has(tool) ? [tool.name] : [])));
  const asked = new Map(pendingQuestions.flatMap((question) => (question.kind === "tool_call" ? [[[...question.path, question.callId].join("/"), question]] : [])));
  const last = messages.findLastIndex(({ role }) => role === "assistant");
  return messages.slice(last + 1).flatMap(({ role, toolCallId, content, error }) => {
    const question = role === "tool" ? asked.get(toolCallId) : undefined;
    if (!question) return [];
    asked.delete(toolCallId);
    const { id, callId, toolName, path } = question;
    const mayAlways = path.length === 0 && theirs.has(toolName);
    if (!mayAlways && !mayClient("tool_call", allowed)) {
      refused.push([id, "clients may not give the result of a call; see the option `answers`"]);
      return [];
    }
    const blocks = resultContent(content);
    const said = typeof blocks === "string" ? blocks || wordOf(error) : { content: blocks };
    return [/** @type {[string, ToolDecision]} */ ([path.length === 0 ? callId : id, { action: "result", content: said, ...(error && { isError: true }) }])];
  });
}

/** What a tool of the client returned, or one of the server that the client has kept: a text, or blocks if there are pictures or files. @param {any} content @returns {string | ToolResultMessage["content"]} */
function resultContent(content) {
  if (!Array.isArray(content) || content.every((part) => part?.type === "text")) return textOf(content);
  return content.flatMap((part) => {
    try {
      return userBlock(part);
    } catch (error) {
      complain("turnwheel: a part of a tool's result was left out:", /** @type {Error} */ (error).message);
      return [];
    }
  });
}

/** @param {Posted} message @returns {UserMessage} */
function userMessage({ content }) {
  const parts = Array.isArray(content) ? content : [{ type: "text", text: wordOf(content) }];
  return { role: "user", content: parts.flatMap(userBlock), timestamp: 0 };
}

/** @param {any} part @returns {UserMessage["content"]} */
function userBlock(part) {
  const { type, text, source, filename, metadata, role } = part ?? {};
  if (role !== undefined) throw misuse("a part of a message has no `role`");
  if (type === "text") return [{ type: "text", text: wordOf(text) }];
  const given = source ?? {};
  if (given.type !== "data" || typeof given.value !== "string") throw misuse(`a part of kind \`${wordOf(type)}\` must come with its data in base64; files elsewhere are not fetched`);
  const { mimeType: kind = "application/octet-stream" } = given;
  if (typeof kind !== "string" || !MIME_TYPE.test(kind)) throw misuse(`a part of kind \`${wordOf(type)}\` needs a \`mimeType\` such as image/png, got ${typeof kind === "string" ? JSON.stringify(kind.slice(0, 60)) : kindOf(kind)}`);
  if (!isBase64(given.value)) throw misuse(`the data of a part of kind \`${wordOf(type)}\` is not base64`);
  const name = filename ?? metadata?.filename;
  if (kind.startsWith("image/")) return [{ type: "image", mimeType: kind, data: given.value }];
  return [{ type: "file", mimeType: kind, data: given.value, ...(typeof name === "string" && { name }) }];
}

/** @param {Posted[]} messages @returns {AgentMessage[]} */
function historyOf(messages) {
  /** @type {AgentMessage[]} */
  const history = [];
  /** @type {Map<string, string>} */
  const names = new Map();
  /** Thoughts come as messages before the answer that they led to. @type {AnswerBlock[]} */
  let thoughts = [];
  for (const message of messages) {
    const { role, content, toolCallId, error, encryptedValue } = message;
    if (role === "user") history.push(userMessage(message));
    else if (role === "reasoning" && content) thoughts.push({ type: "thinking", thinking: textOf(content), ...(typeof encryptedValue === "string" && { signature: encryptedValue }) });
    else if (role === "assistant") {
      const calls = callsOf(message).map(callOf);
      for (const call of calls) names.set(call.callId, call.toolName);
      /** @type {AnswerBlock[]} */
      const blocks = [...thoughts, ...(content ? [/** @type {const} */ ({ type: "text", text: textOf(content) })] : []), ...calls];
      thoughts = [];
      if (blocks.length === 0) continue;
      history.push({ role: "assistant", content: blocks, provider: "", model: "", usage: noUsage(), stopReason: calls.length > 0 ? "tool_use" : "stop", timestamp: 0 });
    } else if (role === "tool") history.push(resultOf(wordOf(toolCallId), names.get(wordOf(toolCallId)) ?? "", resultContent(content), Boolean(error)));
  }
  return history;
}

/** @param {Posted | undefined} message @returns {any[]} */
const callsOf = (message) => (Array.isArray(message?.toolCalls) ? message.toolCalls : []);

/** @param {any} call @returns {Extract<AnswerBlock, { type: "tool_call" }>} */
function callOf(call) {
  const { id, function: asked } = call ?? {};
  const { name = "", arguments: text = "{}" } = asked ?? {};
  return { type: "tool_call", callId: wordOf(id), toolName: wordOf(name), arguments: argumentsOf(text) };
}

/** The model may have written something other than an object. @param {string} text */
function argumentsOf(text) {
  try {
    const value = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};
  } catch {
    return {};
  }
}

/** @param {string} callId @param {string} toolName @param {string | ToolResultMessage["content"]} said @param {boolean} isError @returns {ToolResultMessage} */
const resultOf = (callId, toolName, said, isError) => ({ role: "tool_result", callId, toolName, content: typeof said === "string" ? [{ type: "text", text: said }] : said, isError, timestamp: 0 });

/** @param {unknown} content */
function textOf(content) {
  if (!Array.isArray(content)) return wordOf(content);
  return content.filter((part) => part?.type === "text").map(({ text }) => wordOf(text)).join("");
}

/** A text where the protocol has one: an object may not even be one as a word. @param {unknown} given */
const wordOf = (given) => (typeof given === "object" ? "" : String(given ?? ""));
