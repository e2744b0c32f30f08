// @ts-check
// Tools and models that really run while a tape is lived again, to see whether they still do what the tape says.

import { textOf } from "../shared.js";
import { answersOf } from "./ask.js";

/** @import { JsonValue, Model, ToolDefinition } from "../index.js" */
/** @import { TapeEntry } from "../tape.js" */
/**
 * Compares with a reply of the tape, if it is the one to compare, and takes the answers to what it asks.
 * @typedef {{ compare(reply: Extract<TapeEntry, { kind: "reply" }>): Promise<{ expected: JsonValue, got: JsonValue } | undefined>, answer?(entry: Extract<TapeEntry, { kind: "answer" }>): void }} Live
 */
/** @typedef {Extract<TapeEntry, { kind: "start" }>} Start */

/** @param {ToolDefinition} tool @param {string} toolName @param {Start} start @returns {Live} */
export function liveTool(tool, toolName, { effect }) {
  const { callId, arguments: args } = /** @type {any} */ (effect);
  const questions = new Questions();
  /** @type {any} */
  const context = {
    ask: () => questions.ask(),
    callId, toolName, runId: "replay", sessionId: "replay", turnIndex: 0, signal: new AbortController().signal,
    update() {}, log() {}, state: new Map(), metadata: undefined,
  };
  const work = (async () => tool.execute?.(args, context))().then(
    (value) => contentOf(value),
    (error) => ({ failed: textOf(error) }),
  );
  const compare = async (/** @type {Extract<TapeEntry, { kind: "reply" }>} */ { reply, last }) => {
    if (!last) return;
    questions.close();
    const { result, failed } = /** @type {any} */ (reply);
    const expected = failed !== undefined ? { failed } : contentOf(result);
    const got = await work;
    return JSON.stringify(expected) === JSON.stringify(got) ? undefined : { expected, got };
  };
  return { compare, answer: ({ number, answer }) => questions.answer(number, answer) };
}

/** The questions of a call, in their order: the answers are those of the tape. */
class Questions {
  #asked = 0;
  #closed = false;
  /** The answers that came before their questions. @type {Map<number, any>} */ #answers = new Map();
  /** @type {Map<number, (answer: any) => void>} */ #waiting = new Map();

  /** @returns {Promise<any>} */
  ask() {
    const number = ++this.#asked;
    if (this.#answers.has(number)) return Promise.resolve(this.#answers.get(number));
    if (this.#closed) return Promise.resolve({ action: "cancel" });
    return new Promise((resolve) => this.#waiting.set(number, resolve));
  }

  /** @param {number} number @param {any} answer */
  answer(number, answer) {
    this.#answers.set(number, answer);
    this.#waiting.get(number)?.(answer);
    this.#waiting.delete(number);
  }

  /** The tape has no more answers: whoever still waits gets what a call gets whose run has ended. */
  close() {
    this.#closed = true;
    for (const resolve of this.#waiting.values()) resolve({ action: "cancel" });
    this.#waiting.clear();
  }
}

/** What a tool returned, as the model sees it. @param {any} value @returns {JsonValue} */
function contentOf(value) {
  const blocks = value?.content;
  if (Array.isArray(blocks)) return blocks.every(({ type }) => type === "text") ? blocks.map(({ text }) => text).join("") : blocks;
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

/** @param {Model} model @param {Start} start @returns {Live} */
export function liveModel(model, { effect }) {
  const { request } = /** @type {any} */ (effect);
  const said = answerOf(model, request);
  let text = "";
  const compare = async (/** @type {Extract<TapeEntry, { kind: "reply" }>} */ { reply }) => {
    const piece = /** @type {any} */ (reply);
    const event = piece.event ?? piece;
    text += saidIn(event);
    if (event.type !== "done" && event.type !== "error") return;
    const got = await said;
    return text === got ? undefined : { expected: text, got };
  };
  return { compare };
}

/** @param {Model} model @param {any} request */
async function answerOf(model, request) {
  try {
    const events = await answersOf(model, request, { runId: "replay", sessionId: "replay", turnIndex: 0, signal: new AbortController().signal });
    return events.map((event) => (event.type === "error" ? event.error.message : saidIn(event))).join("");
  } catch (error) {
    return textOf(error);
  }
}

/** Texts and arguments of an answer, one after the other. @param {any} event */
function saidIn(event) {
  if (event.type === "tool_call_start") return ` ${event.toolName}`;
  return event.type === "text_delta" || event.type === "tool_call_delta" ? event.delta : "";
}
