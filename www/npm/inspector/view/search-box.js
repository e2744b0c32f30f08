// @ts-check
// The box that finds a text in all that happened. It works in slices of a few milliseconds, so the page stays alive.

import { grouped } from "../model/words.js";
import { h, say } from "./dom.js";

/** @import { InspectorLog } from "../model/log.js" */
/** @import { Hit } from "../model/search.js" */

const SLICE_MS = 8;

export class SearchBox {
  /** @param {(n: number) => void} seek */
  constructor(seek) {
    this.seek = seek;
    this.input = h("input", { type: "search", placeholder: "Search", "aria-label": "Search in all events", spellcheck: "false", autocomplete: "off" });
    this.count = h("span", { class: "hits", role: "status" });
    this.previous = h("button", { type: "button", class: "icon", "aria-label": "Previous hit", hidden: true, onclick: () => this.#go(-1) }, "‹");
    this.next = h("button", { type: "button", class: "icon", "aria-label": "Next hit", hidden: true, onclick: () => this.#go(1) }, "›");
    this.root = h("div", { class: "search", role: "search" }, this.input, this.count, this.previous, this.next);
    /** The words around the hit that is shown. */
    this.hit = h("div", { class: "hit", hidden: true });
    /** @type {Hit[]} */
    this.hits = [];
    this.place = -1;
    /** @type {InspectorLog | undefined} */
    this.log = undefined;
    this.turn = 0;
    this.input.addEventListener("input", () => void this.#search());
    this.input.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.#go(event.shiftKey ? -1 : 1);
      if (event.key === "Escape") this.clear();
    });
  }

  /** @param {InspectorLog | undefined} log */
  show(log) {
    this.log = log;
    this.clear();
  }

  clear() {
    this.input.value = "";
    void this.#search();
  }

  async #search() {
    const turn = ++this.turn;
    const { log } = this;
    const text = this.input.value;
    this.hits = [];
    this.place = -1;
    this.#draw();
    if (!log || text.trim() === "") return;
    const steps = log.search(text);
    let from = performance.now();
    for (let step = steps.next(); ; step = steps.next()) {
      if (turn !== this.turn) return;
      if (step.done) {
        this.hits = step.value;
        break;
      }
      if (performance.now() - from < SLICE_MS) continue;
      await new Promise((resolve) => setTimeout(resolve));
      from = performance.now();
    }
    this.#draw();
  }

  /** @param {number} by */
  #go(by) {
    const { hits } = this;
    if (hits.length === 0) return;
    this.place = this.place < 0 ? (by > 0 ? 0 : hits.length - 1) : (this.place + by + hits.length) % hits.length;
    this.#draw();
    this.seek(/** @type {Hit} */ (hits[this.place]).n);
  }

  #draw() {
    const { hits, place } = this;
    const hasText = this.input.value.trim() !== "";
    this.previous.hidden = this.next.hidden = hits.length === 0;
    say(this.count, !hasText ? "" : place < 0 ? `${grouped(hits.length)} found` : `${grouped(place + 1)} of ${grouped(hits.length)}`);
    const hit = hits[place];
    this.hit.hidden = !hit;
    if (hit) this.hit.replaceChildren(hit.text.slice(0, hit.at), h("mark", {}, hit.text.slice(hit.at, hit.at + hit.length)), hit.text.slice(hit.at + hit.length));
  }
}
