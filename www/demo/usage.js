// @ts-check
// What was used: in this run, and in all runs together.

import { byId, h } from "./dom.js";
import { budgetInWords } from "./questions.js";
import { duration } from "./trace.js";
import { grouped } from "./tools.js";

/** @typedef {import("../npm/index.js").Usage} Usage */
/** @typedef {import("../npm/index.js").AgentEvent} AgentEvent */
/** @typedef {{ input: number, output: number, reasoning: number, cached: number, turns: number, calls: number, ms: number, rate: number }} Sum */

/** @type {[keyof Sum, string][]} */
const ROWS = [["input", "Tokens in"], ["cached", "of a cache"], ["output", "Tokens out"], ["reasoning", "for thinking"], ["turns", "Turns"], ["calls", "Tool calls"], ["ms", "Time"], ["rate", "Tokens a second"]];

export class UsageView {
  constructor() {
    /** Whether a piece of an answer is a token. */
    this.isByToken = false;
    this.rows = byId("usage-rows", HTMLElement);
    this.budget = byId("budget-note", HTMLElement);
    this.all = empty();
    this.run = empty();
    this.#draw();
  }

  clear() {
    this.all = empty();
    this.run = empty();
    this.#draw();
  }

  /** @param {string} note */
  label(note) {
    byId("usage-note", HTMLElement).textContent = note;
  }

  begin() {
    this.run = empty();
    this.budget.hidden = true;
    this.#draw();
  }

  /** @param {AgentEvent} event */
  push(event) {
    if (event.type === "message_end") {
      this.run.turns += 1;
      this.#add(event.message.usage);
    } else if (event.type === "budget") {
      this.budget.hidden = false;
      this.budget.textContent = `Budget of the run: ${budgetInWords(event)} used.`;
      this.budget.dataset["state"] = event.state;
    } else if (event.type === "tool_execution_end") {
      this.run.calls += 1;
    } else if (event.type === "agent_end") {
      // The engine's own total is exact: it includes failed attempts.
      Object.assign(this.run, { input: 0, output: 0, reasoning: 0, cached: 0, turns: event.turns });
      this.#add(event.usage);
    } else {
      return;
    }
    this.#draw();
  }

  /** @param {import("./trace.js").Trace} trace */
  end(trace) {
    this.run.ms = trace.endedAt ?? 0;
    for (const [name] of ROWS) this.all[name] += this.run[name];
    this.run.rate = this.#rate(trace.answers);
    this.all.rate = 0;
    this.#draw(true);
  }

  /** How fast answers were written, from their first piece on. One that came in one piece says nothing of that. @param {import("./trace.js").Answer[]} answers */
  #rate(answers) {
    const spans = answers.flatMap(({ parts: [first, ...others], pieces }) => (first ? [{ ms: (others.at(-1) ?? first).end - first.start, pieces: pieces - 1 }] : []));
    const sum = (/** @type {"ms" | "pieces"} */ name) => spans.reduce((sum, span) => sum + span[name], 0);
    if (sum("ms") <= 0) return 0;
    // A model of this page writes token by token, and more of them than are shown: its answer has a form.
    return (1000 * (this.isByToken ? sum("pieces") : this.run.output)) / sum("ms");
  }

  /** @param {Usage} usage */
  #add({ input, output, reasoning = 0, cacheRead = 0, cacheWrite = 0 }) {
    this.run.input += input + cacheRead + cacheWrite;
    this.run.output += output;
    this.run.reasoning += reasoning;
    this.run.cached += cacheRead;
  }

  #draw(isOver = false) {
    const shown = ROWS.filter(([name]) => !["cached", "reasoning", "rate"].includes(name) || this.run[name] + this.all[name] > 0);
    this.rows.replaceChildren(...shown.map(([name, label]) => {
      const all = isOver ? this.all[name] : this.all[name] + this.run[name];
      const isPart = name === "cached" || name === "reasoning";
      return h("tr", { class: isPart ? "part" : undefined, "data-row": name }, h("th", { scope: "row" }, label), h("td", { testid: `usage-${name}` }, inRow(name, this.run[name])), h("td", {}, inRow(name, all)));
    }));
  }
}

/** @returns {Sum} */
function empty() {
  return { input: 0, output: 0, reasoning: 0, cached: 0, turns: 0, calls: 0, ms: 0, rate: 0 };
}

/** @param {keyof Sum} name @param {number} value */
function inRow(name, value) {
  if (name === "rate") return value === 0 ? "" : value < 10 ? value.toFixed(1) : grouped(Math.round(value));
  if (name === "ms") return value === 0 ? "–" : duration(value);
  return grouped(value);
}
