// @ts-check
// How the reducers reduce: a view of the history for one request, with a report of what was left out. A call keeps its
// results, and the newest message of the user stays. Rust has the same in src/rules/context.

import { misuse } from "../core.js";

/** @import { AgentMessage, AssistantMessage, BudgetTrimOptions, CompactionReport, Reducer, SlidingWindowOptions, ToolCallBlock, ToolResultMessage } from "../index.js" */
/** @typedef {readonly AgentMessage[]} Messages */

const TRUNCATED = "[assistant message truncated]";
const TRIMMED = "[trimmed]";

/** @param {AgentMessage | undefined} message @returns {message is ToolResultMessage} */
const isResult = (message) => message?.role === "tool_result";
/** @param {AgentMessage} message @returns {message is AssistantMessage} */
const isAnswer = (message) => message.role === "assistant";
/** @param {Messages} messages @param {(message: AgentMessage) => number} weight */
const sum = (messages, weight) => messages.reduce((total, message) => total + weight(message), 0);

// ---- what a message weighs

const encoder = new TextEncoder();
/** @type {WeakMap<AgentMessage, number>} */
const sizes = new WeakMap();

/** The bytes of a text. @param {unknown} text */
const bytesOf = (text) => encoder.encode(typeof text === "string" ? text : "").length;

/** The bytes of a block; 0 for images and files. @param {any} block */
function blockBytes(block) {
  if (block.type === "tool_call") return bytesOf(JSON.stringify(block.arguments ?? {}));
  return bytesOf(block.type === "raw" ? JSON.stringify(block.data) : block.text ?? block.thinking);
}

/** @param {any} block */
const isPicture = ({ type }) => type === "image" || type === "file";

/** Estimates the tokens of a message: a quarter of its bytes. Each message is measured once. @param {AgentMessage} message */
function tokensOf(message) {
  const known = sizes.get(message);
  if (known !== undefined) return known;
  let tokens = 100;
  if (message.role !== "custom") {
    const content = /** @type {any[]} */ (message.content);
    tokens = 1_200 * content.filter(isPicture).length + Math.floor(content.reduce((bytes, block) => bytes + blockBytes(block), 0) / 4);
  }
  sizes.set(message, tokens);
  return tokens;
}

/** Counts 3.5 bytes as one token. @param {number} bytes */
const heavyTokens = (bytes) => Math.ceil((bytes * 2) / 7);
/** @type {WeakMap<AgentMessage, number>} */
const weights = new WeakMap();

/** Estimates the tokens of a message, rather too high than too low. @param {AgentMessage} message */
function weightOf(message) {
  const weight = weights.get(message) ?? weigh(message);
  weights.set(message, weight);
  return weight;
}

/** @param {AgentMessage} message */
function weigh(message) {
  if (message.role === "custom") return 0;
  const content = /** @type {any[]} */ (message.content);
  const pictures = content.filter(isPicture).length * 2_003;
  if (message.role === "tool_result") return 8 + pictures + 3 + heavyTokens(30 + content.reduce((bytes, block) => bytes + blockBytes(block), 0));
  const [only] = content;
  if (content.length === 1 && only.type === "text") return 8 + heavyTokens(blockBytes(only));
  return content.reduce((total, block) => {
    if (isPicture(block)) return total;
    return total + 3 + heavyTokens(blockBytes(block) + (block.type === "tool_call" ? 30 + bytesOf(block.toolName) : 0));
  }, 8 + pictures);
}

// ---- reports

/**
 * A view with its report; nothing if it is the same as before.
 * @param {Messages} before @param {AgentMessage[]} view @param {string} what was left out @returns {Messages | void}
 */
function reported(before, view, what) {
  const droppedCount = Math.max(0, before.length - view.length);
  const changed = droppedCount || view.filter((message, at) => message !== before[at]).length;
  if (changed === 0) return;
  return withReport(view, { text: `${changed} messages: ${what}`, droppedCount, tokensBefore: sum(before, tokensOf), tokensAfter: sum(view, tokensOf) });
}

/** @param {AgentMessage[]} view @param {Partial<CompactionReport>} report @returns {Messages} */
const withReport = (view, report) => Object.defineProperty(view, "report", { value: report });

/** Applies reducers in order, and joins what they report. @param {Reducer[]} reducers */
export function inOrder(reducers) {
  return (/** @type {Messages} */ messages, /** @type {boolean} */ overflow) => {
    let view = messages;
    /** @type {Partial<CompactionReport> | undefined} */
    let report;
    for (const each of reducers) {
      const next = /** @type {any} */ (each(view, overflow, { cachedMessages: 0 }));
      if (next === undefined || next === null) continue;
      if (!Array.isArray(next)) throw misuse("a function in `reduce` must give nothing or an array of messages, at once");
      view = next;
      const own = /** @type {{ report?: any }} */ (/** @type {unknown} */ (next)).report;
      report = report && own ? { text: `${report.text}; ${own.text}`, droppedCount: (report.droppedCount ?? 0) + own.droppedCount, tokensBefore: report.tokensBefore ?? 0, tokensAfter: own.tokensAfter } : own ?? report;
    }
    if (view === messages) return;
    return report ? withReport([...view], report) : view;
  };
}

// ---- the window

/** @param {SlidingWindowOptions} options */
export function windowed({ tokens, overflowTokens = tokens / 2, anchor = 2 }) {
  return (/** @type {Messages} */ messages, /** @type {boolean} */ overflow) => {
    const budget = overflow ? overflowTokens : tokens;
    if (sum(messages, tokensOf) <= budget) return;
    let end = Math.min(anchor, messages.length);
    while (isResult(messages[end])) end++;
    const tail = Math.max(end, tailStart(messages, Math.max(0, budget - sum(messages.slice(0, end), tokensOf))));
    if (tail === end) return;
    const asked = messages.findLastIndex(({ role }) => role === "user");
    return reported(messages, messages.filter((_, at) => at < end || at >= tail || at === asked), "outside of the window");
  };
}

/** Where the newest messages begin that fit together. Never at a result. @param {Messages} messages @param {number} budget */
function tailStart(messages, budget) {
  let left = budget;
  let start = messages.length;
  while (start > 0 && tokensOf(/** @type {AgentMessage} */ (messages[start - 1])) <= left) left -= tokensOf(/** @type {AgentMessage} */ (messages[--start]));
  // Dropping a whole exchange for the part of it that is too much would leave out far more than that.
  const call = isResult(messages[start]) && left > 0 ? messages.slice(0, start).findLastIndex((message) => !isResult(message)) : -1;
  if (call >= 0) return call;
  while (isResult(messages[start])) start++;
  // Not even the newest exchange fits. It stays, because without it the model would not know what to do.
  return start < messages.length ? start : messages.findLastIndex((message) => !isResult(message));
}

// ---- the newest

/** @param {number} count */
export function keptLast(count) {
  const shorten = oncePerMessage(shortened);
  return (/** @type {Messages} */ messages) => {
    const answers = messages.filter(isAnswer);
    const results = messages.filter(isResult);
    if (answers.length <= count && results.length <= count) return;
    const old = new Set(answers.slice(0, Math.max(0, answers.length - count)));
    const kept = new Set(results.slice(Math.max(0, results.length - count)).map(({ callId }) => callId));
    /** @type {AgentMessage[]} */
    const view = [];
    for (const message of messages) {
      if (isResult(message)) {
        if (kept.has(message.callId)) view.push(message);
        continue;
      }
      if (!isAnswer(message)) {
        view.push(message);
        continue;
      }
      const calls = callsOf(message);
      // The results of one answer stay together: the calls of some of them would have none.
      const isWhole = calls.every(({ callId }) => kept.has(callId));
      if (!isWhole) for (const { callId } of calls) kept.delete(callId);
      const part = shorten(message, `${old.has(message)} ${isWhole}`);
      if (part) view.push(part);
    }
    return reported(messages, view, "old results and answers");
  };
}

/** @param {any} block */
const isCall = ({ type }) => type === "tool_call";

/** @param {AssistantMessage} answer @returns {ToolCallBlock[]} */
const callsOf = (answer) => /** @type {any[]} */ (answer.content).filter(isCall);

/** An answer of which only a trace is left, or whose calls are gone. @param {AgentMessage} message @param {string} how @returns {AgentMessage | undefined} */
function shortened(message, how) {
  const answer = /** @type {AssistantMessage} */ (message);
  const [isOld, isWhole] = how.split(" ").map((word) => word === "true");
  let content = isWhole ? answer.content : answer.content.filter((block) => !isCall(block) && block.type !== "thinking");
  const calls = content.filter(isCall);
  // What led to calls that are gone is of no use.
  if (isOld && !isWhole) return undefined;
  if (isOld && content.length > calls.length) content = calls.length > 0 ? calls : [{ type: "text", text: TRUNCATED }];
  if (content.length === answer.content.length && content.every((block, at) => block === answer.content[at])) return answer;
  return content.length > 0 ? { ...answer, content } : undefined;
}

// ---- results and contents

/** @param {number} count of the newest results that stay */
export function pruned(count) {
  const trim = oncePerMessage(trimOne);
  return (/** @type {Messages} */ messages) => {
    let old = messages.filter(isResult).length - count;
    if (old <= 0) return;
    return reported(messages, messages.map((message) => (isResult(message) && old-- > 0 ? trim(message, "") ?? message : message)), "old tool results");
  };
}

/** @param {BudgetTrimOptions} options */
export function trimmed({ contextWindow, maxOutputTokens = 4_096, fraction = 0.8, keepLast: kept = 4 }) {
  const threshold = Math.floor(Math.max(0, contextWindow - maxOutputTokens) * fraction);
  const target = Math.floor((threshold * 3) / 4);
  const holds = (/** @type {number} */ tokens, /** @type {number} */ limit) => Math.ceil((tokens * 21) / 20) <= limit;
  const trim = oncePerMessage(trimOne);
  /** How many messages are trimmed, and the last of them: if it is gone, the history was compacted. */
  let boundary = 0;
  /** @type {AgentMessage | undefined} */
  let last;
  return (/** @type {Messages} */ messages) => {
    if (boundary > messages.length || messages[boundary - 1] !== last) boundary = 0;
    const view = [...messages];
    const trimUpTo = (/** @type {number} */ from, /** @type {number} */ to) => {
      for (let at = from; at < to; at++) view[at] = trim(/** @type {AgentMessage} */ (view[at]), "") ?? /** @type {AgentMessage} */ (view[at]);
    };
    if (boundary === 0 && holds(sum(messages, weightOf), threshold)) return;
    trimUpTo(0, boundary);
    if (!holds(sum(view, weightOf), threshold)) {
      const answers = messages.flatMap((message, at) => (isAnswer(message) ? [at] : []));
      const from = kept === 0 ? messages.length : answers.at(-kept) ?? 0;
      trimUpTo(boundary, from);
      boundary = Math.max(boundary, from);
      while (boundary < messages.length && !holds(sum(view, weightOf), target)) trimUpTo(boundary, ++boundary);
    }
    last = messages[boundary - 1];
    return reported(messages, view, "old contents");
  };
}

/** A message whose contents are gone; its calls stay. @param {AgentMessage} message @returns {AgentMessage} */
function trimOne(message) {
  if (isResult(message)) {
    const [only] = message.content;
    const isTrimmed = message.content.length === 1 && only?.type === "text" && only.text === TRIMMED;
    return isTrimmed ? message : { ...message, content: [{ type: "text", text: TRIMMED }] };
  }
  if (!isAnswer(message) || !message.content.some((block) => block.type === "thinking" || (block.type === "text" && block.text !== TRIMMED))) return message;
  // Thinking about a text that is gone is of no use.
  const content = message.content.filter(({ type }) => type !== "thinking").map((block) => (block.type === "text" ? { type: block.type, text: TRIMMED } : block));
  return { ...message, content };
}

/**
 * Changes each message once: a message that stays the same object from turn to turn is not encoded again.
 * @template T @param {(message: AgentMessage, how: string) => T} change @returns {(message: AgentMessage, how: string) => T}
 */
function oncePerMessage(change) {
  /** @type {WeakMap<AgentMessage, { how: string, changed: T }>} */
  const known = new WeakMap();
  return (message, how) => {
    let entry = known.get(message);
    if (entry?.how !== how) known.set(message, (entry = { how, changed: change(message, how) }));
    return /** @type {{ changed: T }} */ (entry).changed;
  };
}
