// @ts-check
// The question whether a tool may run: yes, no, or yes with other arguments.

import { h } from "./dom.js";

/** @typedef {import("../npm/index.js").JsonValue} JsonValue */
/** @typedef {{ [name: string]: JsonValue }} Arguments */

/**
 * @param {JsonValue} given the arguments that the model wants @param {(isAllowed: boolean, changed?: Arguments) => void} decide
 */
export function approvalQuestion(given, decide) {
  const asked = JSON.stringify(given, null, 2);
  const text = h("textarea", { testid: "changed-arguments", "aria-label": "Arguments, as JSON", spellcheck: "false", rows: Math.min(12, asked.split("\n").length) });
  const flaw = h("p", { class: "flaw", testid: "changed-flaw", role: "alert" });
  text.value = asked;
  const change = h("button", { type: "button", testid: "change", "aria-expanded": "false", onclick: () => {
    change.setAttribute("aria-expanded", "true");
    change.disabled = true;
    root.prepend(text, flaw);
    text.focus();
  } }, "Change…");
  const allow = () => {
    if (!text.isConnected || text.value === asked) return decide(true);
    const { changed, problem } = read(text.value);
    if (changed) return decide(true, changed);
    flaw.textContent = problem;
    text.setAttribute("aria-invalid", "true");
    text.focus();
  };
  const root = h("div", { class: "question", testid: "question", role: "group", "aria-label": "May this tool run?" },
    h("button", { type: "button", class: "primary", testid: "allow", onclick: allow }, "Allow"),
    h("button", { type: "button", testid: "refuse", onclick: () => decide(false) }, "Refuse"),
    change);
  return root;
}

/** @param {string} text @returns {{ changed?: Arguments, problem: string }} */
function read(text) {
  try {
    const changed = JSON.parse(text);
    if (typeof changed === "object" && changed !== null && !Array.isArray(changed)) return { changed, problem: "" };
    return { problem: "The arguments of a tool are an object: { … }." };
  } catch (error) {
    return { problem: `This is no JSON: ${error instanceof Error ? error.message : String(error)}` };
  }
}
