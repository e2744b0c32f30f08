// @ts-check
// The page: the run of the agent, the buttons that harm it, the ledger and the inspector.

import { Answering } from "./answering.js";
import { Bank, PlayBank } from "./bank.js";
import { byId, h } from "./dom.js";
import { loadInspector } from "./engine.js";
import { FREE_UP_TO, LOOK_AGAIN, PROMPT, euros } from "./invoices.js";
import { Journal } from "./journal.js";
import { Kills } from "./kills.js";
import { drawLedger } from "./ledger.js";
import { workOffline } from "./offline.js";
import { Process } from "./process.js";
import { RunView } from "./run-view.js";
import { Sharing } from "./sharing.js";
import { hasTape } from "./share.js";
import { siteOf } from "./site.js";
import { awake, firstState, loadState, saveState } from "./state.js";

/** @typedef {import("../npm/inspector.js").TurnwheelInspector} Inspector */
/** @typedef {"live" | "fork" | "shared"} Mode */
/** A process, what is known of its run, and the bank that it pays at. @typedef {{ process: Process | undefined, view: RunView, bank: Bank | PlayBank }} Life */

/** How long a process stays away before it is started again. */
const DOWN_MS = 900;

export class App {
  /** @param {Bank} bank @param {typeof import("../npm/inspector.js").InspectorLog} InspectorLog @param {import("./site.js").Site} site */
  constructor(bank, InspectorLog, site) {
    this.InspectorLog = InspectorLog;
    this.state = loadState();
    /** `?pace=0.1` is ten times as fast, for tests. */
    this.pace = Number(new URLSearchParams(location.search).get("pace")) || 1;
    this.inspector = /** @type {Inspector} */ (byId("inspector", HTMLElement));
    this.parts = { rows: byId("ledger-rows", HTMLElement), total: byId("total", HTMLElement) };
    this.status = byId("status", HTMLElement);
    this.banner = byId("banner", HTMLElement);
    this.words = byId("words", HTMLElement);
    this.buttons = { begin: byId("begin", HTMLButtonElement), reset: byId("reset", HTMLButtonElement), yes: byId("yes", HTMLButtonElement), no: byId("no", HTMLButtonElement) };
    /** The page's own run. @type {Life} */
    this.own = { process: undefined, view: this.newView(), bank };
    /** The run that is shown: the page's own, or a fork. @type {Life} */
    this.shown = this.own;
    /** @type {Mode} */
    this.mode = "live";
    /** How many prompts have been answered. */
    this.settled = 0;
    this.text = "Not started.";
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.restart = undefined;
    this.isDrawing = false;
    this.drawnLines = "";
    this.kills = new Kills(this);
    this.sharing = new Sharing(this);
    this.answering = new Answering(this, site);
    /** What the bank has in its books. @type {{ payments: import("./invoices.js").Payment[], requests: { key: string, invoice: string }[] } | undefined} */
    this.books = undefined;
    /** Other tabs pay too. */
    this.channel = new BroadcastChannel("turnwheel-demo");
  }

  async start() {
    const { buttons } = this;
    buttons.begin.addEventListener("click", () => this.#begin());
    buttons.reset.addEventListener("click", () => void this.reset());
    buttons.yes.addEventListener("click", () => this.decide("approve"));
    buttons.no.addEventListener("click", () => this.decide("reject"));
    this.inspector.addEventListener("turnwheel-fork", ({ detail }) => void this.sharing.fork(detail.n, detail.frame));
    this.channel.addEventListener("message", ({ data }) => this.#receiveFromTab(data));
    addEventListener("hashchange", () => location.reload());
    await this.refresh();
    if (hasTape(location.hash)) await this.sharing.open();
    else if (this.state.run) this.launch();
    else this.draw();
    document.documentElement.dataset["ready"] = "true";
  }

  newView() {
    const marks = this.state.marks.map(({ at, text }) => ({ at: awake(this.state, at), text }));
    return new RunView(this.InspectorLog, marks);
  }

  #begin() {
    if (this.state.run) return this.say("It has begun: “Start over” opens new books.");
    this.state.run = crypto.randomUUID();
    this.state.prompts = [PROMPT];
    this.save();
    this.launch();
    // The button that was pressed goes; the next Tab leads to those that harm.
    byId("kill-title", HTMLElement).focus({ preventScroll: true });
  }

  /** Forgets the run and opens new books. The choice of a model stays. */
  async reset() {
    this.end();
    clearTimeout(this.restart);
    const { choice } = this.state;
    this.state = { ...firstState(), choice };
    this.save();
    await Journal.clear();
    await /** @type {Bank} */ (this.own.bank).clear();
    this.own.view = this.newView();
    this.words.replaceChildren();
    this.settled = 0;
    this.kills.reset();
    this.sharing.close();
    this.answering.clear();
    this.text = "Not started.";
    this.channel.postMessage("reset");
    await this.refresh();
    this.buttons.begin.focus({ preventScroll: true });
  }

  /** @param {string} message of another tab */
  #receiveFromTab(message) {
    if (message === "reset") return location.reload();
    void this.refresh();
  }

  save() {
    try {
      saveState(this.state);
    } catch {
      this.say("This browser lets the page store nothing: after a reload it begins from the start.");
    }
  }

  /** What a process gets when it begins. @returns {import("./process.js").Start} */
  begun() {
    const { run, prompts, version, offset, isArmed, isOffline, choice } = this.state;
    return { run, prompts, version, offset, isArmed, isOffline, choice, pace: this.pace };
  }

  /** Starts the process of the page's run. */
  launch() {
    clearTimeout(this.restart);
    this.restart = undefined;
    if (!this.answering.isReady()) return this.wait("It waits for its model: choose it again. A key is not stored unless you want that, and a model of this page is loaded each time.");
    this.own.process?.kill();
    const { own } = this;
    this.text = "A process starts, and replays the journal.";
    // The view of the process before stays until the new one has said something.
    let view = /** @type {RunView | undefined} */ (undefined);
    own.process = new Process({
      start: () => ((this.state = this.mode === "live" ? { ...loadState(), choice: this.state.choice } : this.state), this.begun()),
      bank: own.bank,
      onBank: () => this.#paid(),
      device: () => this.answering.device(),
      onMessage: (message) => {
        if (message.kind === "event" && !view) own.view = view = this.newView();
        this.receive(own, message);
      },
    });
    this.draw();
  }

  /** @param {string} text */
  wait(text) {
    this.text = text;
    this.draw();
  }

  /** Ends the process of the page's run. */
  end() {
    this.own.process?.kill();
    this.own.process = undefined;
    this.draw();
  }

  /** Starts the process again in a moment. @param {string} text what is shown meanwhile */
  comeBack(text) {
    this.end();
    this.wait(text);
    clearTimeout(this.restart);
    this.restart = setTimeout(() => this.launch(), DOWN_MS * this.pace);
  }

  #paid() {
    this.channel.postMessage("paid");
    void this.refresh();
  }

  /** What a process says. @param {Life} life @param {any} message */
  receive(life, message) {
    switch (message.kind) {
      case "owner":
        break;
      case "elsewhere":
        return this.wait("Another tab of this page has the agent. Close that one, and this one goes on.");
      case "event":
        this.#event(life, message);
        break;
      case "questions":
        for (const question of message.questions) life.view.ask(question);
        break;
      case "nothing":
        this.wait("At that moment nothing was left to do. Drag further back, and fork there.");
        return;
      case "settled":
        this.#settled(life, message);
        break;
      case "crashed":
        return this.kills.crashed(message.message);
      case "decided":
        return this.kills.decided(message);
      case "failed":
        return this.wait(`The process could not go on: ${message.message}`);
    }
    this.draw();
  }

  /** @param {Life} life @param {any} message */
  #event(life, { event, at, replaying }) {
    life.view.push(event, awake(this.state, event.at ?? at));
    this.text = "";
    if (life === this.own && !replaying) this.kills.seen(event);
  }

  /** @param {Life} life @param {{ prompts: number, stopReason: string, error?: any, message?: string }} message */
  #settled(life, { prompts, stopReason, error, message }) {
    if (life === this.own) this.settled = prompts;
    const isDone = stopReason === "completed";
    this.text = isDone ? "Done. Harm it all the same: a new process replays, and pays nothing twice." : `The run ended: ${message ?? stopReason}. “Go on” asks once more.`;
    if (life !== this.own) this.text = isDone ? "The fork is done. It paid into books of its own." : this.text;
    if (life === this.own && prompts === this.state.prompts.length && isDone && this.state.isArmed) this.prompt(LOOK_AGAIN);
    else if (life === this.own && error && prompts === this.state.prompts.length) this.answering.failed(error);
  }

  /** @param {string} text */
  prompt(text) {
    if (!this.own.process) return;
    this.state.prompts.push(text);
    this.save();
    this.own.process.send({ kind: "prompt", text });
  }

  /** @param {"approve" | "reject"} answer @param {number} [times] */
  decide(answer, times = 1) {
    const { process, view } = this.shown;
    if (!process?.isSpeaking) return this.say("A process is just starting: say it again in a moment.");
    const id = view.question?.id ?? view.lastQuestion;
    if (id) process.send({ kind: "decide", id, answer, times });
    if (byId("question", HTMLElement).contains(document.activeElement)) byId("agent-title", HTMLElement).focus({ preventScroll: true });
  }

  /** Puts a sentence into the list of what happened. @param {string} text */
  say(text) {
    this.words.prepend(h("p", {}, text));
    while (this.words.children.length > 30) this.words.lastChild?.remove();
  }

  /** Reads the books of the bank again. */
  async refresh() {
    const { bank } = this.shown;
    if (this.mode !== "shared") this.books = { payments: await bank.all(), requests: await bank.requests() };
    this.draw();
  }

  /** Draws in the next frame what has changed. */
  draw() {
    if (this.isDrawing) return;
    this.isDrawing = true;
    requestAnimationFrame(() => {
      this.isDrawing = false;
      this.#draw();
    });
  }

  #draw() {
    const { view, process } = this.shown;
    const { state, buttons, mode } = this;
    const isBegun = state.run !== "";
    document.documentElement.dataset["mode"] = mode;
    document.documentElement.dataset["life"] = process ? "on" : isBegun ? "down" : "none";
    drawLedger(this.parts, { payments: this.books?.payments ?? [], requests: this.books?.requests ?? [], states: view.states });
    this.#drawStatus(view);
    const lines = JSON.stringify([view.lines, view.streaming]);
    if (lines !== this.drawnLines) this.#drawLines(view);
    this.drawnLines = lines;
    const { question } = view;
    byId("question", HTMLElement).hidden = !question || !process?.isSpeaking;
    if (question) byId("question-text", HTMLElement).textContent = `May it pay ${question.arguments.invoice}, ${euros(Number(question.arguments.amount))}, to ${question.arguments.to}? The page asks above ${euros(FREE_UP_TO)}.`;
    buttons.begin.hidden = isBegun || mode !== "live";
    buttons.reset.hidden = !isBegun || mode !== "live";
    this.kills.enable(isBegun && mode === "live");
    this.sharing.enable(process?.isSpeaking === true);
    if (this.mode !== "shared" && this.inspector.source !== view.log) this.inspector.source = view.log;
  }

  /** @param {RunView} view */
  #drawStatus({ question, isOffline, streaming }) {
    const now = question ? "It waits for your yes." : isOffline || this.state.isOffline ? "No network: it tries again by itself." : streaming ? "The model writes." : "It works.";
    const text = this.text || now;
    if (this.status.textContent !== text) this.status.textContent = text;
  }

  /** @param {RunView} view */
  #drawLines({ lines, streaming }) {
    const list = byId("lines", HTMLElement);
    list.replaceChildren(...lines.map(({ kind, text, state }) => h("li", { class: kind, "data-state": state }, text)), ...(streaming ? [h("li", { class: "agent" }, streaming)] : []));
    list.scrollTop = list.scrollHeight;
  }
}

try {
  const [bank, { InspectorLog }, site] = await Promise.all([Bank.open(), loadInspector(), siteOf()]);
  await new App(bank, InspectorLog, site).start();
  workOffline(site);
} catch (error) {
  byId("status", HTMLElement).textContent = `This page could not be loaded: ${error instanceof Error ? error.message : String(error)}. It is served with “cargo xtask demo”.`;
  byId("status", HTMLElement).setAttribute("role", "alert");
}
