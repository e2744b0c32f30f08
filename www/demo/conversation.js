// @ts-check
// The conversation as it streams. An event changes the state at once; the page itself is updated in `draw`
// only, which the app calls at most once per animation frame.

import { approvalQuestion } from "./approval.js";
import { h } from "./dom.js";
import { MarkdownView } from "./markdown.js";
import { budgetInWords, budgetQuestion, toolQuestion } from "./questions.js";
import { grouped } from "./tools.js";
import { duration, inWords, outcomeOf, progressOf, textOf } from "./trace.js";

/** @typedef {import("../npm/index.js").AgentEvent} AgentEvent */
/** @typedef {import("../npm/index.js").JsonValue} JsonValue */

/**
 * @typedef {object} Callbacks
 * @property {() => number} now
 * @property {(text: string, isUrgent?: boolean) => void} announce announces it to a screen reader
 * @property {(callId: string, isAllowed: boolean, changed?: { [name: string]: JsonValue }) => void} decide decides about a call that needs approval, perhaps with other arguments
 * @property {(id: string, answer: import("../npm/index.js").Answer, callId?: string) => void} answer answers a question of a budget or of a tool
 * @property {(callId: string) => JsonValue | undefined} argumentsOf the arguments of a call as far as they have arrived
 */

/** What took less was not measured. */
const MEASURED_MS = 10;

export class Conversation {
  /** @param {HTMLElement} root @param {Callbacks} callbacks */
  constructor(root, callbacks) {
    this.root = root;
    this.callbacks = callbacks;
    /** @type {RunView | undefined} */
    this.run = undefined;
    /** @type {Map<number, TurnView>} turns of the current run */
    this.turns = new Map();
    /** Why a run could go on, for people. */
    this.howResumed = "The page was reloaded";
  }

  /** @param {string} text */
  addPrompt(text) {
    this.root.append(bubble("user", "You", text));
  }

  begin() {
    this.turns = new Map();
    this.run = new RunView(this.callbacks);
    this.root.append(this.run.root);
  }

  /**
   * Shows a message sent during a run: at the end until it is delivered, then before the turn that reads it.
   *
   * @param {string} text
   * @param {"steer" | "follow_up"} kind
   */
  addMessage(text, kind) {
    const name = kind === "steer" ? "You, steering" : "You, for later";
    const root = bubble(kind, name, text);
    const state = h("span", { class: "receipt", testid: "receipt" }, "on its way");
    root.querySelector(".who")?.append(" · ", state);
    root.dataset["receipt"] = "waiting";
    this.run?.root.append(root);
    return {
      root,
      markDelivered: (/** @type {number} */ turnIndex) => {
        state.textContent = `heard in turn ${turnIndex}`;
        root.dataset["receipt"] = "delivered";
        const turn = this.turns.get(turnIndex);
        if (turn) turn.root.before(root);
      },
      markKept: () => {
        state.textContent = "kept over a reload";
        root.dataset["receipt"] = "kept";
      },
      markLost: (/** @type {string} */ reason) => {
        state.textContent = reason;
        root.dataset["receipt"] = "lost";
      },
    };
  }

  /** @param {AgentEvent} event */
  push(event) {
    const at = this.callbacks.now();
    const turn = this.turns.get(this.run?.turnIndex ?? -1);
    switch (event.type) {
      case "turn_start": {
        if (!this.run) return;
        const next = new TurnView(event.turnIndex, at, this.callbacks);
        this.run.turnIndex = event.turnIndex;
        this.turns.set(event.turnIndex, next);
        this.run.addTurn(next);
        return;
      }
      case "agent_end":
        this.run?.end(event);
        return;
      case "run_resumed":
        this.run?.resumed(turn, this.howResumed);
        return;
      case "question_asked":
        if (event.path.length > 0) return;
        if (event.kind === "budget") {
          this.run?.ask(event);
          this.callbacks.announce("The budget is used up. May it use more?");
        } else turn?.push(event, at);
        return;
      case "question_resolved":
        if (event.kind === "budget") this.run?.answered();
        else turn?.push(event, at);
        return;
      case "budget":
        if (event.state !== "warn") (turn ?? this.run)?.note(`${event.state === "raised" ? "The budget was raised" : "The budget is used up"}: ${budgetInWords(event)}.`);
        return;
      case "context_compacted":
        turn?.note(`The context was compacted: ${event.report.text}`);
        return;
      case "retry_attempt":
        turn?.note(`Attempt ${event.attempt} failed: ${event.error.message.replace(/[^.!?]$/, "$&.")} Next one in ${duration(event.delayMs)}.`);
        return;
      case "model_fallback":
        turn?.note(`${event.from} failed; now ${event.to} answers.`);
        return;
      default:
        turn?.push(event, at);
    }
  }

  /**
   * Shows an error with advice.
   * @param {{ title: string, advice: string[] }} problem @param {string} [details] the error's own words
   * @param {HTMLElement} [action]
   */
  showFailure({ title, advice }, details, action) {
    const list = advice.length > 0 && h("ul", {}, ...advice.map((line) => h("li", {}, ...withCode(line))));
    const root = h("div", { class: "failure", testid: "failure", role: "alert" }, h("strong", {}, title), list, details && !advice.includes(details) && h("p", { class: "fine" }, details), action);
    this.root.append(root);
    return root;
  }

  /** @param {number} at @returns {boolean} whether anything was changed */
  draw(at) {
    let changed = false;
    for (const turn of this.turns.values()) changed = turn.draw(at) || changed;
    return changed;
  }

  clear() {
    this.root.replaceChildren();
    this.run = undefined;
    this.turns = new Map();
  }
}

class RunView {
  /** @param {Callbacks} callbacks */
  constructor(callbacks) {
    this.root = h("section", { class: "run", testid: "run", "data-state": "running", "aria-label": "A run" });
    this.startedAt = callbacks.now();
    this.callbacks = callbacks;
    this.turnIndex = -1;
    /** How often the page was reloaded during this run, and the line that says so. */
    this.reloads = 0;
    /** @type {HTMLElement | undefined} */
    this.reloaded = undefined;
    /** Of the budget. @type {HTMLElement | undefined} */
    this.question = undefined;
  }

  /** @param {TurnView} turn */
  addTurn(turn) {
    const waiting = this.root.querySelector(':scope > [data-receipt="waiting"]');
    if (waiting) waiting.before(turn.root);
    else this.root.append(turn.root);
  }

  /** @param {string} text */
  note(text) {
    const line = h("p", { class: "turn-note" }, text);
    this.root.append(line);
    return line;
  }

  /**
   * Shows a reload. There is only one such line, at the place of the last reload.
   * @param {TurnView | undefined} turn @param {string} how
   */
  resumed(turn, how) {
    this.reloads += 1;
    this.reloaded?.remove();
    const often = this.reloads === 1 ? "" : ` ${this.reloads} times`;
    this.reloaded = (turn ?? this).note(`${how}${often}; the run goes on.`);
  }

  /** Asks whether the run may use more than its budget. @param {Extract<AgentEvent, { type: "question_asked" }>} event */
  ask(event) {
    this.answered();
    this.question = budgetQuestion(event, this.callbacks.answer);
    this.root.append(this.question);
  }

  answered() {
    this.question?.remove();
    this.question = undefined;
  }

  /** @param {Extract<AgentEvent, { type: "agent_end" }>} event */
  end({ stopReason, turns, usage }) {
    this.root.dataset["state"] = stopReason;
    this.answered();
    const took = duration(this.callbacks.now() - this.startedAt);
    this.root.append(h("p", { class: "run-end", testid: "run-end" }, `${inWords(stopReason)} in ${took} · ${turns} turn${turns === 1 ? "" : "s"} · ${grouped(usage.total)} tokens`));
  }
}

class TurnView {
  /** @param {number} index @param {number} at @param {Callbacks} callbacks */
  constructor(index, at, callbacks) {
    this.callbacks = callbacks;
    this.startedAt = at;
    this.label = h("span", { class: "turn-end" });
    this.head = h("p", { class: "turn-head" }, `turn ${index}`, this.label);
    this.body = h("div", { class: "turn-body" });
    this.root = h("section", { class: "turn", testid: "turn", "data-turn": index, "aria-label": `Turn ${index}` }, this.head, this.body);
    /** @type {Map<number, Block>} */
    this.blocks = new Map();
    /** @type {Map<string, ToolCard>} */
    this.cards = new Map();
    this.pulse = h("p", { class: "pulse", "aria-hidden": "true" }, h("span"), h("span"), h("span"));
  }

  /** @param {AgentEvent} event @param {number} at */
  push(event, at) {
    switch (event.type) {
      case "message_start":
        this.body.append(this.pulse);
        return;
      case "message_update":
        this.pulse.remove();
        this.#block(event.delta, at).grow(event.delta.delta, at);
        return;
      case "message_reset":
        for (const block of this.blocks.values()) block.root.remove();
        for (const card of this.cards.values()) card.root.remove();
        this.blocks.clear();
        this.cards.clear();
        this.note(`Taken back and asked again: ${event.reason}`);
        return;
      case "message_end":
        this.pulse.remove();
        for (const block of this.blocks.values()) block.finish(at);
        this.callbacks.announce(plainText(event.message));
        return;
      case "tool_approval_requested":
        if (event.path?.length) return;
        this.#card(event, at).ask(event.arguments);
        this.callbacks.announce(`${event.toolName} asks whether it may.`);
        return;
      case "tool_approval_resolved":
        if (event.path?.length) return;
        this.#card(event, at).markDecided(event.approved);
        return;
      case "question_asked":
        if (!event.callId) return;
        this.#card({ callId: event.callId, toolName: event.toolName ?? "" }, at).askFor(event);
        this.callbacks.announce(`${event.toolName} asks: ${event.message}`);
        return;
      case "question_resolved":
        if (event.callId) this.cards.get(event.callId)?.markAnswered();
        return;
      case "tool_execution_start":
        this.#card(event, at).start(event.arguments, at);
        this.callbacks.announce(`${event.toolName} runs.`);
        return;
      case "tool_execution_update":
        this.#card(event, at).update(event.update);
        return;
      case "tool_execution_end":
        this.#card(event, at).end(event.result, at);
        this.callbacks.announce(`${event.toolName}: ${textOf(event.result)}`);
        return;
      case "turn_end":
        // An answer that was cut off leaves calls that will never run.
        for (const card of this.cards.values()) card.giveUp(at);
        this.label.textContent = ` · ${duration(at - this.startedAt)} · ${inWords(event.reason)}`;
        this.root.dataset["reason"] = event.reason;
        return;
    }
  }

  /** @param {string} text */
  note(text) {
    const line = h("p", { class: "turn-note" }, text);
    this.body.append(line);
    return line;
  }

  /** @param {number} at */
  draw(at) {
    let changed = false;
    for (const block of this.blocks.values()) changed = block.draw(at) || changed;
    for (const card of this.cards.values()) changed = card.draw(at) || changed;
    return changed;
  }

  /** @param {import("../npm/index.js").Delta} delta @param {number} at @returns {Block} */
  #block(delta, at) {
    const existing = this.blocks.get(delta.contentIndex);
    if (existing) return existing;
    const block = delta.type === "tool_call" ? this.#card(delta, at) : delta.type === "thinking" ? new ThinkingBlock(at) : new TextBlock();
    if (delta.type !== "tool_call") this.body.append(block.root);
    for (const earlier of this.blocks.values()) earlier.finish(at);
    this.blocks.set(delta.contentIndex, block);
    return block;
  }

  /**
   * Cards are placed side by side in a row of their own.
   * @param {{ callId: string, toolName: string }} call @param {number} at
   */
  #card({ callId, toolName }, at) {
    const existing = this.cards.get(callId);
    if (existing) return existing;
    const card = new ToolCard(callId, toolName, at, this.callbacks);
    this.cards.set(callId, card);
    const last = this.body.lastElementChild;
    const row = last?.classList.contains("cards") ? last : this.body.appendChild(h("div", { class: "cards" }));
    row.append(card.root);
    return card;
  }
}

/** @typedef {{ root: HTMLElement, grow(delta: string, at: number): void, finish(at: number): void, draw(at: number): boolean }} Block */

class TextBlock {
  constructor() {
    this.root = h("div", { class: "words", testid: "answer" });
    this.view = new MarkdownView(this.root);
    this.text = "";
    this.isOpen = true;
    this.isStale = false;
  }

  /** @param {string} delta */
  grow(delta) {
    this.text += delta;
    this.isStale = true;
  }

  finish() {
    this.isStale ||= this.isOpen;
    this.isOpen = false;
  }

  draw() {
    if (!this.isStale) return false;
    this.view.update(this.text, this.isOpen);
    this.isStale = false;
    return true;
  }
}

class ThinkingBlock {
  /** @param {number} at */
  constructor(at) {
    this.summary = h("summary", {}, "Thinking…");
    this.body = h("p");
    this.root = h("details", { class: "thinking", testid: "thinking" }, this.summary, this.body);
    this.startedAt = at;
    this.text = "";
    this.isOpen = true;
    this.isStale = false;
  }

  /** @param {string} delta */
  grow(delta) {
    this.text += delta;
    this.isStale = true;
  }

  /** @param {number} at */
  finish(at) {
    if (!this.isOpen) return;
    this.isOpen = false;
    // A tab that comes late hears all of it in one moment.
    this.summary.textContent = at - this.startedAt < MEASURED_MS ? "Thoughts" : `Thought for ${duration(at - this.startedAt)}`;
  }

  draw() {
    if (!this.isStale) return false;
    this.body.replaceChildren(...withCode(this.text));
    this.isStale = false;
    return true;
  }
}

const STATES = { asked: "is being asked", waiting: "waits", asks: "may it?", running: "running", done: "done", failed: "failed", cut: "cut short" };
/** A result longer than this, in characters, is folded. */
const FOLD = 260;

class ToolCard {
  /** @param {string} callId @param {string} toolName @param {number} at @param {Callbacks} callbacks */
  constructor(callId, toolName, at, callbacks) {
    this.callId = callId;
    this.callbacks = callbacks;
    this.time = h("span", { class: "time" });
    this.stateLabel = h("span", { class: "state", testid: "tool-state" });
    this.argumentsView = h("div", { class: "given", testid: "tool-arguments" });
    this.progress = h("progress", { max: 1, value: 0, hidden: true, "aria-label": `Progress of ${toolName}` });
    this.resultView = h("div", { class: "said", testid: "tool-result" });
    this.root = h("article", { class: "card", testid: "tool-card", "data-tool": toolName, "data-call-id": callId, "aria-label": `Tool ${toolName}` },
      h("header", {}, h("span", { class: "dot", "aria-hidden": "true" }), h("strong", {}, toolName), this.stateLabel, this.time),
      this.argumentsView, this.progress, this.resultView);
    /** @type {HTMLElement | undefined} */
    this.question = undefined;
    this.startedAt = at;
    /** @type {number | undefined} */
    this.endedAt = undefined;
    this.raw = "";
    /** @type {JsonValue | undefined} */
    this.arguments = undefined;
    this.resultText = "";
    /** @type {number | undefined} */
    this.share = undefined;
    this.isStale = true;
    this.isArgumentsStale = true;
    this.#state("asked");
  }

  /** @param {string} delta */
  grow(delta) {
    this.raw += delta;
    this.isStale = this.isArgumentsStale = true;
  }

  finish() {
    if (this.root.dataset["state"] === "asked") this.#state("waiting");
  }

  /** Asks the user for approval. @param {JsonValue} given */
  ask(given) {
    this.arguments = given;
    this.isStale = this.isArgumentsStale = true;
    this.question?.remove();
    this.question = approvalQuestion(given, (isAllowed, changed) => this.callbacks.decide(this.callId, isAllowed, changed));
    this.root.append(this.question);
    this.#state("asks");
  }

  /** The tool needs to know something. @param {Extract<AgentEvent, { type: "question_asked" }>} event */
  askFor(event) {
    this.question?.remove();
    this.question = toolQuestion(event, this.callbacks.answer);
    this.root.append(this.question);
    this.#state("asks");
    this.stateLabel.textContent = "asks you";
  }

  markAnswered() {
    this.question?.remove();
    if (this.root.dataset["state"] === "asks") this.#state("running");
  }

  /** @param {boolean} isAllowed */
  markDecided(isAllowed) {
    this.question?.remove();
    if (isAllowed && this.root.dataset["state"] === "asks") this.#state("waiting");
  }

  /** @param {JsonValue} given @param {number} at */
  start(given, at) {
    this.arguments = given;
    this.startedAt = at;
    this.isStale = this.isArgumentsStale = true;
    this.#state("running");
  }

  /** @param {import("../npm/index.js").ToolOutput} update */
  update(update) {
    this.resultText = textOf(update);
    this.share = progressOf(update) ?? this.share;
    this.isStale = true;
  }

  /** @param {import("../npm/index.js").ToolResultMessage} result @param {number} at */
  end(result, at) {
    this.question?.remove();
    this.endedAt = at;
    this.resultText = textOf(result);
    this.isStale = true;
    this.#state(outcomeOf(result));
  }

  /** @param {number} at */
  giveUp(at) {
    if (this.endedAt !== undefined) return;
    this.question?.remove();
    this.endedAt = at;
    this.isStale = true;
    this.#state("cut");
  }

  /** @param {number} at */
  draw(at) {
    const isRunning = this.root.dataset["state"] === "running";
    const time = isRunning || (this.arguments !== undefined && this.root.dataset["state"] !== "asks") ? duration((this.endedAt ?? at) - this.startedAt) : "";
    if (this.time.textContent !== time) this.time.textContent = time;
    if (!this.isStale) return isRunning;
    this.isStale = false;
    if (this.isArgumentsStale) this.#drawArguments();
    this.isArgumentsStale = false;
    this.progress.hidden = this.share === undefined || !isRunning;
    if (this.share !== undefined) this.progress.value = this.share;
    this.#drawResult();
    return true;
  }

  #drawArguments() {
    const value = this.arguments ?? this.callbacks.argumentsOf(this.callId);
    if (value && typeof value === "object" && !Array.isArray(value)) {
      const rows = Object.entries(value).map(([name, part]) => h("div", {}, h("dt", {}, name), h("dd", {}, typeof part === "string" ? part : JSON.stringify(part))));
      this.argumentsView.replaceChildren(rows.length > 0 ? h("dl", {}, ...rows) : h("span", { class: "nothing" }, "no arguments"));
    } else {
      this.argumentsView.replaceChildren(h("code", {}, this.raw || "…"));
    }
  }

  #drawResult() {
    const isFinal = this.endedAt !== undefined;
    this.resultView.classList.toggle("progressing", !isFinal);
    if (!isFinal || this.resultText.length <= FOLD) {
      this.resultView.textContent = this.resultText;
      return;
    }
    const text = h("span", { class: "folded" }, this.resultText);
    const more = h("button", { type: "button", class: "more", "aria-expanded": "false", onclick: () => {
      const isFolded = text.classList.toggle("folded");
      more.textContent = isFolded ? "Show all" : "Show less";
      more.setAttribute("aria-expanded", String(!isFolded));
    } }, "Show all");
    this.resultView.replaceChildren(text, more);
  }

  /** @param {keyof typeof STATES} state */
  #state(state) {
    this.root.dataset["state"] = state;
    this.stateLabel.textContent = STATES[state];
  }
}

/** @param {string} kind @param {string} who @param {string} text */
function bubble(kind, who, text) {
  return h("article", { class: `bubble ${kind}`, testid: `bubble-${kind}` }, h("p", { class: "who" }, who), h("p", { class: "what" }, text));
}

/** Renders text with `code` in it. @param {string} text @returns {(Node | string)[]} */
export function withCode(text) {
  return text.split(/`([^`]+)`/).map((part, index) => (index % 2 === 1 ? h("code", {}, part) : part));
}

/** @param {import("../npm/index.js").AssistantMessage} message */
function plainText(message) {
  return message.content.map((block) => (block.type === "text" ? block.text.replace(/[*`#]/g, "") : "")).filter(Boolean).join(" ");
}
