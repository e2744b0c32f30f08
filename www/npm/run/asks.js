// @ts-check
// The questions that running tools ask persons. It is loaded when the first one is asked.

import { AgentError, checkNames, jsonOf, kindOf, misuse } from "../core.js";
import { allowOthers } from "../messages/answer.js";
import { Judge } from "../tools/judge.js";

/** @import { AgentEvent, Answer, Question, ToolAnswer, ToolQuestionInput } from "../index.js" */
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
    forms.delete(event.id);
  }
}

/** The key of a question whose answers are checked: a server's form. What other tools are answered, they look at themselves. */
const FORM = Symbol.for("turnwheel.form");
/** The ids of such questions that are open. @type {Set<string>} */
const forms = new Set();

/**
 * Throws if what a person accepts does not fit the form that a server has asked for: then the question stays open.
 * @param {string} id @param {Answer} answer @param {Question} [question]
 */
function checkForm(id, answer, question) {
  const { action, content } = /** @type {{ action?: string, content?: any }} */ (answer);
  const schema = question?.kind === "elicitation" && action === "accept" && forms.has(id) ? question.schema : undefined;
  if (!schema) return;
  const given = isFields(content ?? {}) ? { ...defaultsOf(schema), ...content } : content;
  const errors = errorsOf(schema, given);
  if (errors.length > 0) throw misuse(`the answer to question \`${id}\` does not fit what is asked: ${errors.slice(0, 10).join("; ")}`);
}

/** A schema that is none checks nothing: the tool looks at what it gets. @param {object} schema @param {unknown} given */
function errorsOf(schema, given) {
  try {
    return new Judge("the schema of the question is", schema).errorsOf(given);
  } catch (error) {
    if (AgentError.isInstance(error)) return [];
    throw error;
  }
}

/** @param {unknown} value */
const isFields = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** What a person who changed nothing in the form says. @param {any} schema */
function defaultsOf({ properties = {} }) {
  const fields = Object.entries(properties).filter(([, field]) => /** @type {any} */ (field)?.default !== undefined);
  return Object.fromEntries(fields.map(([name, field]) => [name, /** @type {any} */ (field).default]));
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
  allowOthers(checkForm);
  const { open } = (run.asks ??= new Asks());
  let id = run.core.host.id();
  while (open.has(id)) id += "+";
  const asked = id;
  if (/** @type {any} */ (question)[FORM] === true) forms.add(asked);
  const answered = new Promise((resolve, reject) => {
    open.set(id, { resolve, given: { action: "cancel" } });
    signal.addEventListener("abort", () => {
      open.delete(id);
      forms.delete(asked);
      reject(signal.reason);
    });
  });
  run.engineRun.ask(slot, id, message, schemaText);
  return answered;
}
