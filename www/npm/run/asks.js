// @ts-check
// The questions that running tools ask persons. It is loaded when the first one is asked.

import { checkNames, jsonOf, kindOf, misuse } from "../core.js";
import { allowOthers } from "../messages/answer.js";

/** @import { AgentEvent, Answer, ToolAnswer, ToolQuestionInput } from "../index.js" */
/** @import { Slot } from "../effects/slot.js" */
/** @import { Driver } from "./driver.js" */
/** @typedef {{ resolve(answer: ToolAnswer): void, given: ToolAnswer }} Ask */

/** How long a question may be, with its schema, in UTF-16 units. */
const LONGEST = 1 << 16;

export class Asks {
  constructor() {
    /** By the ids of the questions. @type {Map<string, Ask>} */
    this.open = new Map();
  }

  /** Notes an answer, which counts once the engine has taken it. @param {string} id @param {Answer} answer */
  note(id, answer) {
    const ask = this.open.get(id);
    if (ask) ask.given = /** @type {any} */ (answer).action === "accept" || /** @type {any} */ (answer).action === "cancel" ? /** @type {ToolAnswer} */ (answer) : { action: "decline" };
  }

  /** @param {AgentEvent} event */
  take(event) {
    if (event.type !== "question_resolved") return;
    this.open.get(event.id)?.resolve(this.open.get(event.id)?.given ?? { action: "cancel" });
    this.open.delete(event.id);
  }
}

/**
 * Asks a person, and gives the answer. Rejects when nobody wants the result of the call any more.
 * @param {Driver} run @param {number} slot @param {Slot} state @param {ToolQuestionInput} question @returns {Promise<ToolAnswer>}
 */
export async function ask(run, slot, state, question) {
  if (typeof question !== "object" || question === null) throw misuse(`\`ask\` takes { message, schema? }, got ${kindOf(question)}`);
  checkNames("unknown member of a question", question, ["message", "schema"]);
  const { message, schema } = question;
  if (typeof message !== "string" || message === "") throw misuse(`the \`message\` of a question must be a text, got ${message === "" ? "an empty one" : kindOf(message)}`);
  if (schema !== undefined && (typeof schema !== "object" || schema === null)) throw misuse(`the \`schema\` of a question must be a JSON Schema, got ${kindOf(schema)}`);
  const schemaText = schema === undefined ? "" : jsonOf("the schema of the question is", schema);
  if (message.length + schemaText.length > LONGEST) throw misuse(`a question may have ${LONGEST} characters, with its schema; this one has ${message.length + schemaText.length}`);
  const { signal } = state;
  signal.throwIfAborted();
  allowOthers();
  const { open } = (run.asks ??= new Asks());
  let id = run.core.host.id();
  while (open.has(id)) id += "+";
  const answered = new Promise((resolve, reject) => {
    open.set(id, { resolve, given: { action: "cancel" } });
    signal.addEventListener("abort", () => {
      open.delete(id);
      reject(signal.reason);
    });
  });
  run.engineRun.ask(slot, id, message, schemaText);
  return answered;
}
