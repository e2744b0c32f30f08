// @ts-check
// Questions to a person other than whether a tool may run: a budget that is used up, and a tool that needs to know something.

import { h } from "./dom.js";
import { grouped } from "./tools.js";

/** @typedef {import("../npm/index.js").Answer} Answer */
/** @typedef {Extract<import("../npm/index.js").AgentEvent, { type: "question_asked" }>} Asked */
/** @typedef {(id: string, answer: Answer, callId?: string) => void} Reply */

const KINDS = { turns: "turns", toolCalls: "tool calls", tokens: "tokens", usd: "dollars", ms: "milliseconds" };
/** What one press of the button allows beyond the limit. */
const MORE = { turns: 2, toolCalls: 5, tokens: 2000, usd: 0.1, ms: 30_000 };

/** `2 of 2 turns`. @param {{ kind: keyof typeof KINDS, used: number, limit: number }} budget */
export function budgetInWords({ kind, used, limit }) {
  return `${grouped(used)} of ${grouped(limit)} ${limit === 1 ? KINDS[kind].replace(/s$/, "") : KINDS[kind]}`;
}

/** @param {Asked} asked @param {Reply} reply */
export function budgetQuestion({ id, budget }, reply) {
  const kind = budget?.kind ?? "turns";
  return h("div", { class: "ask", testid: "budget-question", role: "group", "aria-label": "May the run use more?" },
    h("p", {}, h("strong", {}, "The budget is used up"), budget ? `: ${budgetInWords(budget)}.` : "."),
    h("div", { class: "question" },
      h("button", { type: "button", class: "primary", testid: "raise", onclick: () => reply(id, { raise: { [kind]: MORE[kind] } }) }, `Allow ${grouped(MORE[kind])} more`),
      h("button", { type: "button", testid: "end-here", onclick: () => reply(id, "reject") }, "End here")));
}

/** A field for each property of the schema that is a text or a number: what the tools of this page ask for. @param {Asked} asked @param {Reply} reply */
export function toolQuestion({ id, callId, message, schema }, reply) {
  const properties = Object.entries(/** @type {{ [name: string]: any }} */ (schema?.["properties"] ?? {}));
  const fields = properties.map(([name, { type, title, maxLength }]) => ({ name, type, input: h("input", { type: type === "number" || type === "integer" ? "number" : "text", name, required: true, maxlength: maxLength, autocomplete: "off", testid: `answer-${name}`, "aria-label": title ?? name }) }));
  const form = h("form", { class: "ask-form", testid: "tool-question", "aria-label": message, onsubmit: (event) => {
    event.preventDefault();
    reply(id, { action: "accept", content: Object.fromEntries(fields.map(({ name, type, input }) => [name, type === "number" || type === "integer" ? input.valueAsNumber : input.value])) }, callId);
  } },
    h("p", {}, message),
    ...fields.map(({ input }) => input),
    h("div", { class: "question" },
      h("button", { type: "submit", class: "primary", testid: "answer-send" }, "Answer"),
      h("button", { type: "button", testid: "answer-decline", onclick: () => reply(id, { action: "decline" }, callId) }, "Decline")));
  return form;
}
