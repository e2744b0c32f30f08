// @ts-check
// The buttons that harm the run, and what each of them says afterwards.

import { byId } from "./dom.js";
import { INJECTION, LOOK_AGAIN } from "./invoices.js";

/** @typedef {import("./page.js").App} App */
/** @typedef {"close" | "crash" | "offline" | "reload" | "sleep" | "twice" | "inject"} Kill */

const DAY_MS = 86_400_000;
const SLEEP_MS = 30 * DAY_MS;
/** An engine whose memory is gone and that nobody enters says nothing. */
const CRASH_MS = 400;

export class Kills {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    /** @type {HTMLButtonElement[]} */
    this.buttons = [...byId("kills", HTMLElement).querySelectorAll("button")];
    this.isTwice = false;
    /** The process that is to crash. @type {import("./process.js").Process | undefined} */
    this.crashing = undefined;
    for (const button of this.buttons) button.addEventListener("click", () => this.press(/** @type {Kill} */ (button.dataset["kill"])));
    this.#showNetwork();
  }

  /** @param {boolean} isOn */
  enable(isOn) {
    for (const button of this.buttons) button.disabled = !isOn;
  }

  reset() {
    this.isTwice = false;
    this.#showNetwork();
  }

  /** @param {Kill} kill */
  press(kill) {
    const { app } = this;
    if (!app.own.process && kill !== "reload" && kill !== "offline") return app.say("Nothing is running at this moment, so there is nothing to harm: it comes back by itself.");
    this[kill]();
  }

  /** Notes in the lanes what was pressed. @param {string} text */
  #mark(text) {
    const { state } = this.app;
    state.marks.push({ at: Date.now() + state.offset, text });
    this.app.save();
  }

  close() {
    this.#mark("the tab was closed");
    this.app.comeBack("The tab is closed. In a moment somebody opens it again.");
    this.app.say("Closed the tab: its process is gone, without a word. An order that was on its way still reaches the bank. A new process replays the journal and goes on.");
  }

  crash() {
    const { app } = this;
    this.#mark("the engine crashed");
    this.crashing = app.own.process;
    this.crashing?.send({ kind: "crash" });
    const { crashing } = this;
    setTimeout(() => crashing === app.own.process && this.crashed("its memory is gone"), CRASH_MS);
  }

  /** @param {string} message */
  crashed(message) {
    const { app } = this;
    if (!this.crashing || this.crashing !== app.own.process) {
      app.say(`The engine failed by itself: ${message}. A new process goes on from the journal.`);
    } else app.say(`Crashed the engine: its memory was written over (${message}). What it knew is in the journal, and a new process goes on from there.`);
    this.crashing = undefined;
    app.comeBack("The engine is dead. A new process starts in a moment.");
  }

  offline() {
    const { app } = this;
    const { state } = app;
    state.isOffline = !state.isOffline;
    this.#mark(state.isOffline ? "went offline" : "came back online");
    app.own.process?.switch(state.isOffline);
    this.#showNetwork();
    app.say(state.isOffline ? "Went offline: requests of the model fail and are tried again, and orders do not reach the bank. Nothing is given up." : "Back online: what was tried again goes through.");
    app.draw();
  }

  /** The button says what it would do. */
  #showNetwork() {
    const { isOffline } = this.app.state;
    const button = this.buttons.find((button) => button.dataset["kill"] === "offline");
    button?.setAttribute("aria-pressed", String(isOffline));
    const [name] = button?.getElementsByTagName("b") ?? [];
    if (name) name.textContent = isOffline ? "Go online again" : "Go offline";
  }

  reload() {
    const { app } = this;
    app.state.version += 1;
    this.#mark(`the page was reloaded into version ${app.state.version}`);
    const query = new URLSearchParams(location.search);
    query.set("v", String(app.state.version));
    location.replace(`${location.pathname}?${query}`);
  }

  sleep() {
    const { app } = this;
    const at = Date.now() + app.state.offset;
    this.#mark("thirty days pass");
    app.state.offset += SLEEP_MS;
    app.state.sleeps.push({ at, ms: SLEEP_MS });
    app.save();
    app.comeBack("It sleeps.");
    const date = new Date(Date.now() + app.state.offset).toLocaleDateString("en", { day: "numeric", month: "long", year: "numeric" });
    app.say(`Thirty days have passed: it is ${date}. The run goes on where it was, and an open question is still the same question.`);
  }

  twice() {
    const { app } = this;
    const { view } = app.own;
    if (view.question) {
      this.#mark("approve was clicked twice");
      app.decide("approve", 2);
    } else if (view.lastQuestion) app.decide("approve", 1);
    else {
      this.isTwice = true;
      app.say("Nothing is asked at this moment. Once it asks, approve is clicked twice at once.");
    }
  }

  /** @param {{ answer: string, taken: boolean[] }} decision */
  decided({ answer, taken }) {
    const { app } = this;
    const word = answer === "approve" ? "yes" : "no";
    if (taken.length === 2) app.say(`Clicked approve twice: the first ${word} was ${taken[0] ? "taken" : "refused"}, the second was ${taken[1] ? "taken" : "refused, since the question was answered"}. One yes, one payment.`);
    else if (taken[0]) app.say(`You said ${word}.`);
    else app.say("That question is answered already: a further yes to it is refused, and pays nothing.");
  }

  inject() {
    const { app } = this;
    app.state.isArmed = true;
    this.#mark("an injection waits in the next answer of a tool");
    app.own.process?.send({ kind: "arm" });
    app.say(`The next answer of a tool brings a stranger’s words along: “${INJECTION}”`);
    if (app.settled === app.state.prompts.length) app.prompt(LOOK_AGAIN);
  }

  /** Something happened in the run, for the first time. @param {import("../npm/index.js").AgentEvent} event */
  seen(event) {
    const { app } = this;
    if (event.type === "tool_approval_requested" && this.isTwice) {
      this.isTwice = false;
      setTimeout(() => this.twice(), 0);
    }
    if (event.type !== "tool_execution_end") return;
    const text = JSON.stringify(event.result.content);
    if (text.includes(INJECTION)) {
      app.state.isArmed = false;
      app.save();
      app.say("A tool answered with the injection. To the model it is text in a result; this model believes it.");
    }
    if (text.includes("refused by a rule of the page")) app.say("The model ordered what the stranger wanted. A rule of the page refused the call before it began: INV-666 is not on the list. The bank was never asked.");
  }
}
