// @ts-check
// Checks what a server says before anything is done with it: a server that is broken, or means harm, sends events of
// another shape. What is not used here is passed on unchecked to those who listen, as the server's word.

import { AgentError, kindOf } from "../shared.js";
import { parseJson } from "./json.js";

/** @import { AgentEvent } from "../index.js" */
/** @typedef {(value: any) => boolean} Test */

/** @param {string} message */
export const protocolError = (message) => new AgentError({ code: "invalid_request", message, retryable: false });

/** Reads the JSON of an event. @param {string} data @returns {any} */
export function readData(data) {
  try {
    return parseJson(data);
  } catch (error) {
    throw protocolError(`the server sent an event that is no JSON: ${/** @type {Error} */ (error).message.slice(0, 200)}`);
  }
}

/** @type {Test} */
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
/** @type {Test} */
const isText = (value) => typeof value === "string";
/** @type {Test} */
const isId = (value) => isText(value) && value.length <= 1000;
/** @type {Test} */
const isCount = (value) => Number.isSafeInteger(value) && value >= 0;
/** @param {Test} test @returns {Test} */
const listOf = (test) => (value) => Array.isArray(value) && value.every(test);
/** @param {Test} test @returns {Test} */
const maybe = (test) => (value) => value === undefined || value === null || test(value);
/** @type {Test} */
const isUsage = (value) => isObject(value) && Object.entries(value).every(([name, tokens]) => tokens === null || typeof tokens === "number" || (name === "estimated" && tokens === true) || (name === "own" && isUsage(tokens)));
/** @type {Test} */
const isError = (value) => isObject(value) && isText(value.code) && isText(value.message);
/** @type {Test} */
const isCall = (value) => isObject(value) && isId(value.callId) && isText(value.toolName);

/** A question for the result of a call, which has no words. @type {Test} */
const isAnswered = (value) => value.kind === "tool_call" && isCall(value) && isObject(value.arguments);

/** @type {Test} */
const isQuestion = (value) => isObject(value) && isId(value.id) && isText(value.kind) && (isText(value.message) || isAnswered(value)) && listOf(isId)(value.path) && maybe(isId)(value.callId);

/** @type {Test} */
const isReceipt = (value) => isObject(value) && typeof value.delivered === "boolean";

/** The texts that a block needs. @type {Record<string, string[]>} */
const BLOCKS = { text: ["text"], thinking: ["thinking"], tool_call: ["callId", "toolName"] };
/** @type {Test} */
const isBlock = (value) => isObject(value) && isText(value.type) && (Object.hasOwn(BLOCKS, value.type) ? BLOCKS[value.type] ?? [] : []).every((key) => isText(value[key]));
const isContent = listOf(isBlock);

/** Each role: what a message of it needs. @type {Record<string, Test>} */
const ROLES = {
  user: (message) => isContent(message.content),
  assistant: (message) => isContent(message.content) && maybe(isUsage)(message.usage) && maybe(isError)(message.error),
  tool_result: (message) => isContent(message.content) && isId(message.callId),
  custom: () => true,
};
/** @type {Test} */
export const isMessage = (value) => isObject(value) && Object.hasOwn(ROLES, value.role) && ROLES[value.role]?.(value) === true;
/** @param {string} role @returns {Test} */
const messageOf = (role) => (value) => isMessage(value) && value.role === role;

/** @type {Test} */
const isDelta = (value) => isObject(value) && isCount(value.contentIndex) && isText(value.delta) && (value.type === "text" || value.type === "thinking" || (value.type === "tool_call" && isCall(value)));
const isEnd = { runId: isId, stopReason: isText, usage: isUsage, turns: isCount, error: maybe(isError) };

/** Each event: the members that are used here. @type {Record<string, Record<string, Test>>} */
const EVENTS = {
  run_resumed: { turnIndex: isCount, pendingApprovals: listOf(isCall), pendingQuestions: maybe(listOf(isQuestion)), runningTools: listOf(isCall), partialMessage: maybe((value) => isObject(value) && isContent(value.content)) },
  turn_start: { turnIndex: isCount },
  turn_end: { turnIndex: isCount, toolResults: listOf(messageOf("tool_result")), message: maybe(messageOf("assistant")) },
  message_update: { delta: isDelta },
  message_end: { message: messageOf("assistant") },
  tool_execution_end: { callId: isId, result: messageOf("tool_result") },
  tool_approval_requested: { callId: isId, toolName: isText },
  tool_approval_resolved: { callId: isId },
  question_asked: { id: isId, kind: isText, path: listOf(isId), callId: maybe(isId) },
  question_resolved: { id: isId },
  agent_end: { ...isEnd, messages: listOf(isMessage) },
};

/** What the server says besides events. @type {Record<string, Record<string, Test>>} */
const OTHERS = {
  history: { at: isCount, add: listOf((one) => isText(one) || isMessage(one)) },
  receipt: { id: isId, receipt: isReceipt },
  state: {
    messages: listOf(isMessage), pendingApprovals: listOf(isCall), pendingQuestions: maybe(listOf(isQuestion)), usage: isUsage, openLetters: listOf(isText), receipts: maybe((value) => isObject(value) && Object.values(value).every(isReceipt)),
    run: maybe((run) => isObject(run) && isId(run.runId) && maybe(isCount)(run.told) && maybe(isCount)(run.turnIndex)),
    ended: maybe((end) => isObject(end) && hasAll(end, { ...isEnd, messages: isCount }) === undefined),
  },
};

/** Returns the member that is missing or wrong, if there is one. @param {any} value @param {Record<string, Test>} members */
const hasAll = (value, members) => Object.keys(members).find((name) => members[name]?.(value[name]) !== true);

/** Returns an event of a run, or throws. @param {any} event @returns {AgentEvent} */
export function checkEvent(event) {
  if (!isObject(event) || !isText(event.type) || !isId(event.runId)) throw protocolError(`the server sent an event without a type or a run: ${kindOf(event)}`);
  if (event.type === "question_asked" && !isQuestion(event)) throw protocolError("the server sent a `question_asked` that is no question");
  return checkMembers(event, Object.hasOwn(EVENTS, event.type) ? EVENTS[event.type] : undefined, event.type);
}

/** Returns what the server says of the agent, or throws. @param {string} type @param {any} value */
export function checkOther(type, value) {
  const members = Object.hasOwn(OTHERS, type) ? OTHERS[type] : undefined;
  if (members && !isObject(value)) throw protocolError(`the server sent a \`${type}\` that is ${kindOf(value)}`);
  return checkMembers(value, members, type);
}

/** @param {any} value @param {Record<string, Test> | undefined} members @param {string} type */
function checkMembers(value, members, type) {
  const wrong = members && hasAll(value, members);
  if (wrong !== undefined) throw protocolError(`the server sent \`${type.slice(0, 100)}\` with a \`${wrong}\` that is none`);
  return value;
}
