// @ts-check
// A run for others, and other runs: the link with the tape, the tape as a file, a tape that came with a link, and forks.

import { PlayBank } from "./bank.js";
import { byId, h } from "./dom.js";
import { loadTape } from "./engine.js";
import { Process } from "./process.js";
import { fragmentOf, tapeIn } from "./share.js";

/** @typedef {import("./page.js").App} App */
/** @typedef {import("./invoices.js").Payment} Payment */
/** @typedef {import("../npm/inspector.js").InspectorFrame} Frame */

/** What was paid, as a history tells it. @param {readonly any[]} messages @returns {Payment[]} */
function paymentsIn(messages) {
  const paid = messages.filter(({ role, toolName, isError, details }) => role === "tool_result" && toolName === "pay_invoice" && !isError && details?.key);
  return paid.map(({ details: { key, invoice, to, amount, at } }) => ({ key: String(key), invoice: String(invoice), to: String(to), amount: Number(amount), at: Number(at) }));
}

export class Sharing {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.button = byId("share", HTMLButtonElement);
    this.save = byId("save", HTMLButtonElement);
    this.note = byId("shared", HTMLElement);
    this.link = byId("link", HTMLInputElement);
    this.label = byId("link-label", HTMLElement);
    /** The tape that came with the address. */
    this.text = "";
    this.button.addEventListener("click", () => void this.#share());
    this.save.addEventListener("click", () => void this.#save());
  }

  /** @param {boolean} isOn */
  enable(isOn) {
    const { mode } = this.app;
    this.button.hidden = mode !== "live";
    this.button.disabled = !isOn;
    this.save.disabled = !isOn && mode !== "shared";
  }

  async #tape() {
    return this.app.mode === "shared" ? this.text : ((await this.app.shown.process?.tape()) ?? "");
  }

  async #share() {
    try {
      const address = new URL(location.pathname, location.href).href + (await fragmentOf(await this.#tape()));
      this.link.value = address;
      this.label.hidden = false;
      const isCopied = await navigator.clipboard?.writeText(address).then(() => true, () => false);
      this.note.textContent = `${isCopied ? "The link is copied." : "Copy the link."} It holds the tape: all that was said and paid, and no key. What stands after the # is sent to no server.`;
      if (!isCopied) this.link.select();
    } catch (error) {
      this.label.hidden = true;
      this.#explain(error);
    }
  }

  async #save() {
    try {
      const address = URL.createObjectURL(new Blob([await this.#tape()], { type: "application/jsonl" }));
      h("a", { href: address, download: "invoices.tape" }).click();
      setTimeout(() => URL.revokeObjectURL(address), 1000);
    } catch (error) {
      this.#explain(error);
    }
  }

  /** @param {unknown} error */
  #explain(error) {
    this.note.textContent = error instanceof Error ? error.message : String(error);
  }

  /** Goes on from a moment, with books of its own. @param {number} at @param {Frame} frame */
  async fork(at, frame) {
    const { app } = this;
    let text = "";
    try {
      text = await this.#tape();
    } catch (error) {
      return this.#explain(error);
    }
    if (text === "") return this.#explain("A process is just starting: fork again in a moment.");
    if (app.shown !== app.own) app.shown.process?.kill();
    const bank = new PlayBank(paymentsIn(frame.messages));
    const view = app.newView();
    view.marks = [];
    app.mode = "fork";
    app.text = "The fork replays the run up to that moment.";
    const life = { process: /** @type {Process | undefined} */ (undefined), view, bank };
    app.shown = life;
    life.process = new Process({
      start: () => ({ ...app.begun(), isArmed: false, isOffline: false, fork: { text, at } }),
      bank,
      onBank: () => void app.refresh(),
      device: () => app.answering.device(),
      onMessage: (message) => app.receive(life, message),
    });
    this.#showBanner(`A fork from moment ${at}: it goes on from there for real, and pays into books of its own. Say no this time, or let it pay.`);
    await app.refresh();
  }

  /** @param {string} text */
  #showBanner(text) {
    const { banner } = this.app;
    const isShared = this.app.mode === "shared" || this.text !== "";
    const back = isShared ? h("a", { href: "./", testid: "leave", class: "button" }, "Try it yourself") : h("button", { type: "button", testid: "leave", onclick: () => this.close() }, "Back to the run");
    banner.replaceChildren(h("p", {}, text), back);
    banner.hidden = false;
    banner.scrollIntoView?.({ block: "nearest" });
  }

  /** Back to the page's own run. */
  close() {
    const { app } = this;
    if (app.shown !== app.own) app.shown.process?.kill();
    app.shown = app.own;
    app.mode = "live";
    app.banner.hidden = true;
    this.label.hidden = true;
    this.note.textContent = "";
    if (app.own.process) app.text = "";
    void app.refresh();
  }

  /** Shows a tape that came with the address. Nothing is asked of a model or a bank. */
  async open() {
    const { app } = this;
    app.mode = "shared";
    this.#showBanner("A recorded run that somebody shared: its tape stands in this page’s address. Nothing is sent and nothing is paid.");
    app.wait("A recording.");
    try {
      this.text = await tapeIn(location.hash);
      const { Tape } = await loadTape();
      const isShown = new Promise((resolve) => app.inspector.addEventListener("turnwheel-ready", resolve, { once: true }));
      app.inspector.source = Tape.parse(this.text);
      await isShown;
      const { log } = app.inspector;
      for (let n = 1; log && n <= log.end; n++) {
        const event = log.event(n);
        if (event) app.own.view.push(event, log.at(n));
      }
      const payments = paymentsIn(log?.frame(log.end).messages ?? []);
      app.books = { payments, requests: payments };
      app.own.view.question = undefined;
    } catch (error) {
      this.#showBanner(`This link cannot be shown: ${error instanceof Error ? error.message : String(error)}.`);
    }
    app.draw();
  }
}
