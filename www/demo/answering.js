// @ts-check
// Who answers: the script, or a real model that somebody has chosen, with a key, on a server of theirs or in this page.

import { explain } from "./advice.js";
import { Chooser } from "./chooser.js";
import { browsersOwn } from "./device.js";
import { byId, h, withCode } from "./dom.js";
import { Loading } from "./loading.js";
import { isOnDevice, isRemote, missingIn, nameOf, rowOf, whatLeaves, whereOf } from "./providers.js";

/** @typedef {import("./page.js").App} App */

export class Answering {
  /** @param {App} app @param {import("./site.js").Site} site */
  constructor(app, site) {
    this.app = app;
    this.note = byId("leaves-now", HTMLElement);
    this.failure = byId("failure", HTMLElement);
    this.chooser = new Chooser({
      onChoice: (choice) => this.#choose(choice),
      onLoad: (choice, file) => void this.loading.load({ row: choice.row, file, weights: this.chooser.weights }),
    });
    this.loading = new Loading({
      announce: (text) => app.say(text),
      onReady: ({ row, device }) => this.#choose({ ...app.state.choice, row, model: device.name, baseUrl: "", apiKey: "" }),
    });
    this.chooser.know({ weights: site.weights });
    for (const id of ["choose-model", "real"]) byId(id, HTMLButtonElement).addEventListener("click", () => this.#open(id === "real" ? "ollama" : undefined));
    /** Settled once the browser has said whether it has a model. @type {Promise<void> | undefined} */
    this.ownIsKnown = undefined;
    const named = this.#named();
    const { choice } = app.state;
    const isKept = this.chooser.choice.row === choice.row && this.chooser.choice.baseUrl === choice.baseUrl;
    if (named) app.state.choice = named;
    else if (isKept || !app.state.run) app.state.choice = this.chooser.choice;
    this.chooser.choice = app.state.choice;
    this.#show();
  }

  /** Opens the dialog. A page that nobody asks for a real model does not look for one. @param {string} [row] */
  #open(row) {
    this.chooser.open(row);
    this.ownIsKnown ??= browsersOwn().then((own) => this.chooser.know({ own }));
  }

  /** The model that the address of the page names, as `cargo xtask demo --model` does. Only on this machine: elsewhere, anybody's link could. */
  #named() {
    const query = new URLSearchParams(location.search);
    const [model, baseUrl] = [query.get("model"), query.get("baseUrl")];
    if ((model === null && baseUrl === null) || !/^(?:127\.0\.0\.1|localhost)$/.test(location.hostname)) return undefined;
    return { row: "own", model: model ?? "default", baseUrl: baseUrl ?? "http://localhost:11434/v1", apiKey: "" };
  }

  /** The model of this page, if one is chosen and loaded. */
  device() {
    return this.loading.of(this.app.state.choice.row);
  }

  /** Whether the chosen model can answer: a key is kept only if somebody wants that, and a model of the page is loaded each time. */
  isReady() {
    const { choice } = this.app.state;
    if (isOnDevice(rowOf(choice.row))) return this.device() !== undefined;
    return Object.keys(missingIn(choice)).length === 0;
  }

  /** @param {import("./providers.js").Choice} choice */
  #choose(choice) {
    const { app } = this;
    app.state.choice = this.chooser.choice = choice;
    app.save();
    this.clear();
    this.#show();
    if (app.own.process) app.own.process.send({ kind: "choice", choice });
    else if (app.state.run && !app.restart) app.launch();
    app.say(`${nameOf(choice)} answers from now on. ${whatLeaves(choice)}`);
  }

  #show() {
    const { choice } = this.app.state;
    byId("model-name", HTMLElement).textContent = nameOf(choice);
    const isReal = choice.row !== "script";
    this.note.textContent = isReal ? `${nameOf(choice)} answers. ${whatLeaves(choice)}` : "A script plays the model: no key, no cost, nothing leaves this page.";
    byId("real", HTMLElement).hidden = isReal;
  }

  /** Nothing has failed. */
  clear() {
    this.failure.hidden = true;
    this.failure.replaceChildren();
  }

  /** Says why the model did not answer, and what can be done. @param {import("../npm/index.js").ErrorInfo} error */
  failed(error) {
    const { app } = this;
    const where = isRemote(rowOf(app.state.choice.row)) ? whereOf(app.state.choice, location.origin) : { label: nameOf(app.state.choice), origin: location.origin };
    const { title, advice } = explain(error, where);
    this.failure.replaceChildren(h("strong", {}, title), h("ul", {}, ...advice.map((line) => h("li", {}, ...withCode(line)))),
      h("div", { class: "buttons" },
        h("button", { type: "button", class: "primary", testid: "go-on", onclick: () => (this.clear(), app.prompt("Go on with what is left.")) }, "Go on"),
        h("button", { type: "button", onclick: () => this.#open() }, "Model settings")));
    this.failure.hidden = false;
  }
}
