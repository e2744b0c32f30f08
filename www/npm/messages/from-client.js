// @ts-check
// Whose answer it is, and whether a question is a person's to answer. The readers of what clients say are in client.js.

/** @import { Question } from "../index.js" */

/** Marks the answers of clients, so that the agent knows who gives them. Another copy of the package reads it too. */
const FROM_CLIENT = /* @__PURE__ */ Symbol.for("turnwheel.fromClient");
/** The key of the agent's method that tells whether a question waits for a person. */
export const FOR_PEOPLE = /* @__PURE__ */ Symbol.for("turnwheel.isForPeople");

/** Marks an answer, or answers by their questions, as a client's. @template T @param {T} answers @returns {T} */
export function fromClient(answers) {
  return typeof answers === "object" && answers !== null ? Object.defineProperty(answers, FROM_CLIENT, { value: true }) : answers;
}

/** @param {any} answers */
export const isFromClient = (answers) => Object(answers)[FROM_CLIENT] === true;

/** Whether a question waits for a person, and not for a function of the host. @param {any} agent @param {Pick<Question, "kind" | "path">} question @returns {boolean} */
export const isForPeople = (agent, question) => agent[FOR_PEOPLE]?.(question) ?? true;

/** The open questions that a client may see. @template {Pick<Question, "kind" | "path">} T @param {object} agent @param {readonly T[]} questions @returns {readonly T[]} */
export function shownQuestions(agent, questions) {
  return questions.every((question) => isForPeople(agent, question)) ? questions : questions.filter((question) => isForPeople(agent, question));
}
