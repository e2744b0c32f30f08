// @ts-check
// What if a tool had said something else, or another model had answered? The run is lived again up to there and goes on for
// real, with that one thing changed; both endings stand side by side.

import { byId, h } from "./dom.js";
import { MarkdownView } from "./markdown.js";
import { grouped } from "./tools.js";
import { duration, textOf } from "./trace.js";

/** @typedef {import("../npm/index.js").Agent} Agent */
/** @typedef {import("../npm/index.js").AgentEvent} AgentEvent */
/** @typedef {import("../npm/index.js").AgentMessage} AgentMessage */
/** @typedef {import("../npm/index.js").AgentOptions} AgentOptions */
/** @typedef {import("../npm/index.js").Usage} Usage */
/** @typedef {import("../npm/inspector.js").InspectorLog} InspectorLog */
/** @typedef {import("../npm/inspector.js").TurnwheelInspector} Inspector */
/** @typedef {import("./engine.js").Turnwheel} Turnwheel */
/**
 * A run of the conversation: its events in the log, its finished calls, its turns.
 * @typedef {{ start: number, end: number, calls: Call[], turns: { n: number, index: number }[] }} Run
 * @typedef {{ callId: string, toolName: string, given: string, text: string, n: number, turnEnd: number, turnIndex: number }} Call
 */
/** How a run goes on: the options as they are set, and the models to choose from. @typedef {{ options: AgentOptions, models: { name: string, model: import("../npm/index.js").Model }[] }} HowToGoOn */

/**
 * An agent that goes on from a moment. Everything the page needs of it is here.
 * @param {Turnwheel} turnwheel @param {readonly AgentMessage[]} messages the history at that moment @param {AgentOptions} options
 */
function forkOf({ Agent }, messages, options) {
  return new Agent({ ...options, messages });
}

/** The run in which a moment lies. @param {InspectorLog} log @param {number} n @returns {Run} */
function runAt(log, n) {
  let start = Math.max(1, n);
  const begins = (/** @type {number} */ at) => ["agent_start", undefined].includes(log.event(at)?.type);
  while (start > log.first + 1 && !begins(start)) start--;
  /** @type {Run} */
  const run = { start, end: start, calls: [], turns: [] };
  /** @type {Call[]} */
  let open = [];
  /** @type {Map<string, string>} */
  const given = new Map();
  let turnIndex = 0;
  for (let at = start; at <= log.end && (at === start || !begins(at)); at++) {
    const event = /** @type {AgentEvent} */ (log.event(at));
    run.end = at;
    if (event.type === "turn_start") {
      turnIndex = event.turnIndex;
      run.turns.push({ n: at, index: turnIndex });
      open = [];
    } else if (event.type === "tool_execution_start") given.set(event.callId, JSON.stringify(event.arguments));
    else if (event.type === "tool_execution_end") open.push({ callId: event.callId, toolName: event.toolName, given: given.get(event.callId) ?? "", text: textOf(event.result), n: at, turnEnd: at, turnIndex });
    else if (event.type === "turn_end") run.calls.push(...open.splice(0).map((call) => ({ ...call, turnEnd: at })));
  }
  return run;
}

/** A history, or an event, in which a call has another result. @template Value @param {Value} value @param {string} callId @param {string} text @returns {Value} */
function withResult(value, callId, text) {
  const change = (/** @type {any} */ message) => {
    if (message?.role !== "tool_result" || message.callId !== callId) return message;
    const { cause, details, ...rest } = message;
    return { ...rest, isError: false, content: [{ type: "text", text }] };
  };
  if (Array.isArray(value)) return /** @type {Value} */ (value.map(change));
  const event = /** @type {any} */ (value);
  if (event.type === "tool_execution_end" && event.callId === callId) return /** @type {Value} */ ({ ...event, result: change(event.result), isError: false });
  return event.type === "turn_end" ? { ...event, toolResults: event.toolResults.map(change) } : value;
}

/** What the past used, and what came after. @param {Usage} past @param {Usage} rest @returns {Usage} */
function sumOf(past, rest) {
  const sum = (/** @type {"input" | "output" | "cacheRead" | "cacheWrite" | "total"} */ name) => past[name] + rest[name];
  return { ...rest, input: sum("input"), output: sum("output"), cacheRead: sum("cacheRead"), cacheWrite: sum("cacheWrite"), total: sum("total") };
}

export class WhatIf {
  /**
   * @param {{ turnwheel: Turnwheel, InspectorLog: typeof InspectorLog, log: () => InspectorLog, howToGoOn: () => HowToGoOn }} page
   */
  constructor({ turnwheel, InspectorLog, log, howToGoOn }) {
    this.turnwheel = turnwheel;
    this.InspectorLog = InspectorLog;
    this.log = log;
    this.howToGoOn = howToGoOn;
    this.dialog = byId("what-if", HTMLDialogElement);
    this.form = byId("what-if-form", HTMLFormElement);
    this.endings = byId("endings", HTMLElement);
    this.call = byId("what-if-call", HTMLSelectElement);
    this.text = byId("what-if-text", HTMLTextAreaElement);
    this.model = byId("what-if-model", HTMLSelectElement);
    /** @type {{ result: HTMLInputElement, model: HTMLInputElement }} */
    this.what = { result: byId("what-if-result", HTMLInputElement), model: byId("what-if-other", HTMLInputElement) };
    /** @type {Run | undefined} */
    this.run = undefined;
    this.n = 0;
    /** @type {HowToGoOn | undefined} */
    this.how = undefined;
    /** @type {Agent | undefined} */
    this.agent = undefined;
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#begin();
    });
    this.form.addEventListener("change", () => this.#update());
    this.call.addEventListener("change", () => this.#fillText());
    this.text.addEventListener("input", () => this.#update());
    byId("what-if-cancel", HTMLButtonElement).addEventListener("click", () => this.dialog.close());
    byId("endings-close", HTMLButtonElement).addEventListener("click", () => this.dialog.close());
    byId("endings-again", HTMLButtonElement).addEventListener("click", () => this.#ask());
    this.dialog.addEventListener("close", () => this.#leave());
  }

  /** Asks what is to be changed. @param {number} n the moment that is shown */
  open(n) {
    this.run = runAt(this.log(), n);
    this.n = n;
    const { calls, turns } = this.run;
    const before = calls.findLast((call) => call.n <= n) ?? calls[0];
    this.call.replaceChildren(...calls.map((call) => h("option", { value: call.callId, selected: call === before }, `${call.toolName} ${call.given.slice(0, 60)}`)));
    this.what.result.disabled = calls.length === 0;
    this.what[calls.length > 0 ? "result" : "model"].checked = true;
    this.how = this.howToGoOn();
    this.model.replaceChildren(...this.how.models.map(({ name }, index) => h("option", { value: index }, name)));
    const turn = turns.findLast((one) => one.n <= n) ?? turns[0];
    byId("what-if-turn", HTMLElement).textContent = turn ? `from turn ${turn.index} on` : "";
    this.#fillText();
    this.#ask();
    if (!this.dialog.open) this.dialog.showModal();
    (calls.length > 0 ? this.text : this.model).focus();
    this.text.select();
  }

  #fillText() {
    this.text.value = this.#chosenCall?.text ?? "";
    this.#update();
  }

  get #chosenCall() {
    return this.run?.calls.find(({ callId }) => callId === this.call.value);
  }

  #ask() {
    this.#leave();
    this.endings.hidden = true;
    this.form.hidden = false;
    this.dialog.classList.remove("large");
    this.#update();
  }

  #update() {
    const isResult = this.what.result.checked;
    this.call.disabled = this.text.disabled = !isResult;
    this.model.disabled = isResult;
    const hasTurn = (this.run?.turns.length ?? 0) > 0;
    byId("what-if-go", HTMLButtonElement).disabled = !hasTurn || (isResult && (!this.#chosenCall || this.text.value === this.#chosenCall.text));
  }

  /** Lives the run again, and lets it go on. */
  #begin() {
    const { run, how } = this;
    const call = this.what.result.checked ? this.#chosenCall : undefined;
    if (!run || !how) return;
    const log = this.log();
    const text = this.text.value;
    const at = call ? call.turnEnd : ((run.turns.findLast((one) => one.n <= this.n) ?? run.turns[0])?.n ?? run.start + 1) - 1;
    // What was said into the run is read when the next turn begins, and belongs to the past.
    const past = log.frame(run.turns.find(({ n }) => n > at)?.n ?? at).messages;
    const changed = (/** @type {any} */ value) => (call ? withResult(value, call.callId, text) : value);
    const [asItWas, asItMightBe] = [new this.InspectorLog(), new this.InspectorLog()];
    for (let n = run.start; n <= run.end; n++) asItWas.push(/** @type {AgentEvent} */ (log.event(n)), { at: log.at(n), messages: log.frame(n).messages });
    for (let n = run.start; n <= at; n++) asItMightBe.push(changed(log.event(n)), { at: log.at(n), messages: changed(log.frame(n).messages) });
    asItMightBe.mark("note", "from here on, what if", log.at(at));
    const other = call ? undefined : how.models[Number(this.model.value)];
    this.#show(asItWas, asItMightBe, call ? `${call.toolName} had said “${text.slice(0, 80)}”` : `${other?.name} had answered ${byId("what-if-turn", HTMLElement).textContent}`);
    const agent = forkOf(this.turnwheel, changed(past), { ...how.options, ...(other && { model: other.model }) });
    const turns = run.turns.filter(({ n }) => n <= at).length;
    this.#goOn(agent, asItMightBe, { begin: log.at(at), turns });
  }

  /** @param {InspectorLog} was @param {InspectorLog} mightBe @param {string} name */
  #show(was, mightBe, name) {
    this.form.hidden = true;
    this.endings.hidden = false;
    this.dialog.classList.add("large");
    this.dialog.scrollTop = 0;
    byId("ending-name", HTMLElement).textContent = `What if ${name}`;
    this.#ending("was", was);
    this.#ending("other", mightBe);
    byId("endings-title", HTMLElement).focus();
  }

  /** Shows an ending. @param {"was" | "other"} which @param {InspectorLog} log */
  #ending(which, log) {
    const words = byId(`ending-${which}`, HTMLElement);
    const inspector = /** @type {Inspector} */ (byId(`ending-${which}-run`, HTMLElement));
    inspector.source = log;
    const markdown = new MarkdownView(words);
    markdown.clear();
    const draw = () => {
      const { messages, streaming, isRunning, usage, at } = log.frame(log.end);
      const answer = streaming ?? messages.findLast((message) => message.role === "assistant")?.content ?? [];
      markdown.update(answer.flatMap((/** @type {any} */ block) => (block.type === "text" ? [block.text] : [])).join(""), isRunning);
      byId(`ending-${which}-facts`, HTMLElement).textContent = isRunning ? "it runs…" : `${duration(at - log.at(1))}, ${grouped(usage.total)} tokens`;
      byId(`ending-${which}-part`, HTMLElement).dataset["state"] = isRunning ? "running" : "over";
    };
    draw();
    let isAwaited = false;
    log.subscribe(() => {
      if (isAwaited) return;
      isAwaited = true;
      requestAnimationFrame(() => {
        isAwaited = false;
        draw();
      });
    });
  }

  /**
   * Continues a run that has another past. Its events go on where those of the past end: to the eye it is one run.
   * @param {Agent} agent @param {InspectorLog} log @param {{ begin: number, turns: number }} past
   */
  #goOn(agent, log, { begin, turns }) {
    this.agent = agent;
    const { usage: used } = log.frame(log.end);
    const startedAt = Date.now();
    agent.subscribe((event) => {
      if (event.type === "agent_start" || this.agent !== agent) return;
      const moved = "turnIndex" in event ? { ...event, turnIndex: event.turnIndex + turns } : event.type === "agent_end" ? { ...event, usage: sumOf(used, event.usage) } : event;
      log.push(/** @type {AgentEvent} */ (moved), { at: begin + (Date.now() - startedAt), messages: agent.messages });
    });
    agent.continue().result.then(({ error }) => {
      if (error && this.agent === agent) byId("ending-other-facts", HTMLElement).textContent = error.message;
    }, () => {});
  }

  /** Nobody looks any more. */
  #leave() {
    this.agent?.abort();
    this.agent = undefined;
    for (const which of ["was", "other"]) /** @type {Inspector} */ (byId(`ending-${which}-run`, HTMLElement)).source = undefined;
  }
}
