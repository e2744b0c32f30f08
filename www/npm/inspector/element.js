// @ts-check
// <turnwheel-inspector>: the lanes, the slider and what there was at each moment. The parts are in view/.

import { kindOf, misuse } from "../shared.js";
import { grouped, lanesInWords, short, summary } from "./model/words.js";
import { open } from "./sources.js";
import { parseTape } from "./tape-log.js";
import { h, say } from "./view/dom.js";
import { download } from "./view/download.js";
import { LanesView } from "./view/lanes.js";
import { MomentLine } from "./view/moment.js";
import { ConversationPanel, EventsPanel, RequestPanel, StatePanel, TablePanel } from "./view/panels.js";
import { styleSheet } from "./view/style.js";

/** @import { InspectorFrame, InspectorSource } from "../inspector.js" */
/** @import { InspectorLog } from "./model/log.js" */
/** @import { Opened } from "./sources.js" */
/** @import { Panel } from "./view/panels.js" */

/** From this width on, the conversation stands beside the other panels. */
const WIDE = 760;
/** A picture that grows is drawn at most this often, in milliseconds; with reduced motion, less often. */
const [GROWS_MS, GROWS_CALMLY_MS] = [40, 400];
const LEGEND = [["waiting", "waiting"], ["thinking", "thinking"], ["text", "words"], ["tool_call", "tool call"], ["done", "tool"], ["asked", "a person"], ["failed", "failed"], ["cut", "cut short"]];

// On a server there are no elements: there the class exists, and can do nothing.
const Base = /** @type {typeof HTMLElement} */ (globalThis.HTMLElement ?? class {});

/** What leads nowhere at present can still have the focus: a run that plays would take it away. @param {HTMLElement} button @param {boolean} isUsable */
const setUsable = (button, isUsable) => button.setAttribute("aria-disabled", String(!isUsable));

export class TurnwheelInspector extends Base {
  /** @type {InspectorSource | undefined} */ #source;
  /** @type {Opened | undefined} */ #opened;
  /** @type {{ toText(): string } | undefined} */ #recorder;
  #n = 0;
  /** Whether the newest moment is shown, and stays so. */
  #isFollowing = true;
  /** How often a source was set: one that takes a moment may come too late. */
  #turn = 0;
  /** @type {(() => void)[]} what ends with the connection to the page */
  #ends = [];
  #isDrawing = false;
  #isWide = false;
  #chosen = "conversation";
  #isBuilt = false;
  /** What the lanes were drawn from. @type {string | undefined} */
  #lanesState = undefined;
  #runIndex = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #growing = undefined;

  /** Builds what is shown, when it first is. */
  #build() {
    this.#isBuilt = true;
    const root = this.attachShadow({ mode: "open" });
    root.adoptedStyleSheets = [styleSheet()];
    const seek = (/** @type {number} */ n) => this.#seek(n, true);
    const key = (/** @type {KeyboardEvent} */ event) => this.#key(event);
    this.lanes = new LanesView({ seek });
    this.lanes.scroller.addEventListener("keydown", key);
    this.slider = h("input", { type: "range", min: 0, max: 0, value: 0, step: 1, "aria-label": "Event", part: "slider" });
    this.slider.addEventListener("input", () => seek(Number(this.slider?.value)));
    // Home and End of a range go to its ends, arrows by one: as they should.
    this.buttons = {
      back: h("button", { type: "button", class: "icon", "aria-label": "Previous event", onclick: () => seek(this.#n - 1) }, "‹"),
      on: h("button", { type: "button", class: "icon", "aria-label": "Next event", onclick: () => seek(this.#n + 1) }, "›"),
      nearer: h("button", { type: "button", class: "icon", "aria-label": "Zoom in", onclick: () => this.lanes?.zoom(1.6) }, "+"),
      farther: h("button", { type: "button", class: "icon", "aria-label": "Zoom out", onclick: () => this.lanes?.zoom(1 / 1.6) }, "−"),
      save: h("button", { type: "button", "aria-label": "Save tape", title: "Save tape", onclick: () => this.#save() }, "Save", h("span", { class: "text" }, " tape")),
      open: h("button", { type: "button", "aria-label": "Open tape", title: "Open tape", onclick: () => this.file?.click() }, "Open", h("span", { class: "text" }, " tape")),
      fork: h("button", { type: "button", class: "primary", part: "fork", onclick: () => this.#fork() }, h("slot", { name: "fork" }, "Fork here")),
      before: h("button", { type: "button", class: "icon", "aria-label": "The run before", onclick: () => this.#toRun(-1) }, "‹"),
      after: h("button", { type: "button", class: "icon", "aria-label": "The run after", onclick: () => this.#toRun(1) }, "›"),
      all: h("button", { type: "button", "aria-pressed": "false", onclick: () => this.#toggleAll() }, "All runs"),
    };
    this.file = h("input", { type: "file", class: "hidden", tabindex: -1, "aria-hidden": "true", accept: ".tape,.jsonl,application/jsonl,text/plain" });
    this.file.addEventListener("change", () => void this.#openFile(this.file?.files?.[0]));
    this.which = h("span", { class: "which" });
    this.runs = h("div", { class: "runs", role: "group", "aria-label": "Runs", hidden: true }, this.buttons.before, this.which, this.buttons.after, this.buttons.all);
    this.moment = new MomentLine();
    this.spoken = h("div", { class: "hidden", "aria-live": "polite" });
    this.note = h("div", { class: "note", role: "status", hidden: true });
    /** @type {Panel[]} */
    this.panels = [new ConversationPanel(), new StatePanel(), new RequestPanel(), new EventsPanel(seek, key), new TablePanel(seek)];
    const { fork, save, open, back, on, nearer, farther } = this.buttons;
    this.body = h("div", { class: "details" }, h("p", { class: "head title" }, "Conversation at this moment"), this.#buildTabs(), ...this.panels.map(({ root: panel }) => panel));
    this.bar = h("div", { class: "bar" }, h("slot", { name: "title" }), h("span", { class: "gap" }), this.runs, h("slot", { name: "actions" }), save, open);
    root.append(
      this.bar, this.note, this.lanes.root,
      h("ul", { class: "legend", "aria-label": "Colours" }, ...LEGEND.map(([kind, name]) => h("li", { class: kind }, name))),
      h("div", { class: "transport" }, back, this.slider, on, farther, nearer),
      h("div", { class: "now" }, this.moment.where, this.moment.happened, fork),
      this.moment.facts, this.body, this.spoken, this.file,
    );
    this.addEventListener("dragover", (event) => {
      if (!this.#allows("open") || !event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      this.dataset["over"] = "";
    });
    this.addEventListener("dragleave", () => delete this.dataset["over"]);
    this.addEventListener("drop", (event) => {
      delete this.dataset["over"];
      if (!this.#allows("open") || !event.dataTransfer?.files.length) return;
      event.preventDefault();
      void this.#openFile(event.dataTransfer.files[0]);
    });
  }

  #buildTabs() {
    const panels = /** @type {Panel[]} */ (this.panels);
    this.tabs = panels.map(({ id, name, root }) => {
      root.id = `panel-${id}`;
      root.setAttribute("role", "tabpanel");
      root.setAttribute("aria-labelledby", `tab-${id}`);
      return h("button", { type: "button", role: "tab", id: `tab-${id}`, "aria-controls": `panel-${id}`, onclick: () => this.#choose(id), onkeydown: (/** @type {KeyboardEvent} */ event) => this.#tabKey(event) }, name);
    });
    return h("div", { class: "tabs", role: "tablist", "aria-label": "What is shown" }, ...this.tabs);
  }

  connectedCallback() {
    if (!this.#isBuilt) this.#build();
    // A property that was set before the element was defined.
    for (const name of /** @type {const} */ (["source", "recorder"])) {
      if (!Object.hasOwn(this, name)) continue;
      const value = /** @type {any} */ (this)[name];
      delete (/** @type {any} */ (this)[name]);
      /** @type {any} */ (this)[name] = value;
    }
    if (!this.#opened && this.#source) this.#open();
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    const recolour = () => (this.lanes?.readColours(), this.#schedule());
    scheme.addEventListener("change", recolour);
    const sizes = new ResizeObserver(() => this.#resize());
    sizes.observe(this);
    this.#ends.push(() => scheme.removeEventListener("change", recolour), () => sizes.disconnect());
    if (this.#opened) this.#listen(this.#opened);
    recolour();
    this.#updateActions();
    this.#choose(this.#chosen);
  }

  disconnectedCallback() {
    for (const end of this.#ends.splice(0)) end();
    this.#opened?.close();
    this.#opened = undefined;
  }

  static get observedAttributes() {
    return ["actions"];
  }

  attributeChangedCallback() {
    this.#updateActions();
  }

  // ---- what a page sees

  get source() {
    return this.#source;
  }

  set source(source) {
    this.#source = source ?? undefined;
    this.#turn++;
    this.#opened?.close();
    this.#opened = undefined;
    this.#isFollowing = true;
    this.#n = 0;
    if (this.isConnected && this.#isBuilt) this.#open();
  }

  /** Where “Save tape” takes the tape of a live agent from. */
  get recorder() {
    return this.#recorder;
  }

  set recorder(recorder) {
    if (recorder !== undefined && typeof recorder?.toText !== "function") throw misuse(`\`recorder\` must be a recorder of turnwheel/tape, got ${kindOf(recorder)}`);
    this.#recorder = recorder;
    this.#updateActions();
  }

  /** What is shown: how many events have happened. */
  get n() {
    return this.#n;
  }

  set n(n) {
    if (typeof n !== "number" || Number.isNaN(n)) throw misuse(`\`n\` must be a number of events, got ${Number.isNaN(n) ? "NaN" : kindOf(n)}`);
    this.#seek(n, false);
  }

  /** The newest moment. */
  get end() {
    return this.#opened?.log.end ?? 0;
  }

  /** The moment that is shown. @returns {InspectorFrame | undefined} */
  get frame() {
    return this.#opened?.log.frame(this.#n);
  }

  /** @returns {InspectorLog | undefined} */
  get log() {
    return this.#opened?.log;
  }

  // ---- the source

  #open() {
    const turn = ++this.#turn;
    this.lanes?.show(undefined);
    this.#say("");
    if (this.#source) {
      const opened = open(this.#source);
      if (opened instanceof Promise) {
        this.#say("The tape is played…");
        opened.then((made) => (turn === this.#turn ? this.#show(made) : made.close()), (error) => void (turn === this.#turn && this.#say(String(error?.message ?? error))));
      } else this.#show(opened);
    }
    this.#updateActions();
    this.#schedule();
  }

  /** @param {Opened} opened */
  #show(opened) {
    this.#opened = opened;
    this.#say("");
    this.#n = opened.log.end;
    this.#isFollowing = true;
    this.lanes?.show(opened.log);
    if (this.lanes) this.lanes.isLive = opened.isLive;
    this.#listen(opened);
    this.#updateActions();
    this.#schedule();
    this.dispatchEvent(new CustomEvent("turnwheel-ready", { bubbles: true, composed: true }));
  }

  /** @param {Opened} opened */
  #listen({ log }) {
    const stop = log.subscribe(() => {
      if (this.#isFollowing) this.#n = log.end;
      this.#schedule();
    });
    this.#ends.push(stop);
  }

  /** @param {string} text */
  #say(text) {
    if (!this.note) return;
    this.note.hidden = text === "";
    say(this.note, text);
  }

  // ---- moving

  /** @param {number} n @param {boolean} isUser */
  #seek(n, isUser) {
    const log = this.#opened?.log;
    if (!log) return;
    this.#n = Math.min(log.end, Math.max(log.first, Math.round(n)));
    this.#isFollowing = this.#n === log.end;
    this.#schedule();
    if (isUser) this.dispatchEvent(new CustomEvent("turnwheel-seek", { bubbles: true, composed: true, detail: { n: this.#n } }));
  }

  /** Arrows step, Home and End jump, Page Up and Page Down go by turns. @param {KeyboardEvent} event */
  #key(event) {
    const log = this.#opened?.log;
    if (!log || event.altKey || event.ctrlKey || event.metaKey) return;
    const n = this.#n;
    const turns = log.lanes.turns;
    const target = {
      ArrowLeft: n - 1, ArrowUp: n - 1, ArrowRight: n + 1, ArrowDown: n + 1, Home: log.first, End: log.end,
      PageUp: turns.findLast((turn) => turn.n < n)?.n ?? log.first, PageDown: turns.find((turn) => turn.n > n)?.n ?? log.end,
    }[event.key];
    if (target === undefined) return;
    event.preventDefault();
    this.#seek(target, true);
    const shown = log.event(this.#n);
    if (this.spoken) say(this.spoken, shown ? `${shown.type}, ${short(summary(shown))}` : "before the first event");
  }

  /** Shows the run before or after, at its end. @param {number} by */
  #toRun(by) {
    const log = this.#opened?.log;
    if (!log || !this.lanes) return;
    const wanted = this.lanes.runIndex() + by;
    const next = log.lanes.runs[wanted + 1];
    if (wanted >= 0 && wanted < log.lanes.runs.length) this.#seek(next ? next.n - 1 : log.end, true);
  }

  #toggleAll() {
    if (!this.lanes) return;
    this.lanes.isOneRun = !this.lanes.isOneRun;
    this.lanes.zoomed = undefined;
    this.buttons?.all.setAttribute("aria-pressed", String(!this.lanes.isOneRun));
    this.#schedule();
  }

  // ---- tabs

  /** @param {string} id */
  #choose(id) {
    this.#chosen = id;
    const isShown = (/** @type {string} */ name) => name === id || (this.#isWide && name === "conversation");
    this.panels?.forEach(({ id: name, root }, index) => {
      const tab = /** @type {HTMLElement} */ (this.tabs?.[index]);
      tab.setAttribute("aria-selected", String(name === id));
      tab.tabIndex = name === id ? 0 : -1;
      tab.hidden = this.#isWide && name === "conversation";
      root.hidden = !isShown(name);
      // Beside the others it belongs to no tab.
      root.setAttribute("role", tab.hidden ? "region" : "tabpanel");
      if (tab.hidden) root.setAttribute("aria-label", "Conversation at this moment");
      else root.removeAttribute("aria-label");
    });
    this.#schedule();
  }

  /** @param {KeyboardEvent} event */
  #tabKey(event) {
    const shown = (this.tabs ?? []).filter(({ hidden }) => !hidden);
    const at = shown.findIndex((tab) => tab === event.currentTarget);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: shown.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const tab = shown[(to + shown.length) % shown.length];
    tab?.click();
    tab?.focus();
  }

  #resize() {
    this.lanes?.readColours();
    const isWide = this.clientWidth >= WIDE;
    if (isWide !== this.#isWide) {
      this.#isWide = isWide;
      this.toggleAttribute("data-wide", isWide);
      this.#choose(isWide && this.#chosen === "conversation" ? "state" : this.#chosen);
    }
    this.#schedule();
  }

  // ---- actions

  /** @param {string} action */
  #allows(action) {
    const wanted = this.getAttribute("actions");
    return wanted === null || wanted.split(/\s+/).includes(action);
  }

  #updateActions() {
    if (!this.buttons) return;
    const { fork, save, open: opens } = this.buttons;
    fork.hidden = !this.#allows("fork");
    save.hidden = !this.#allows("save") || !(this.#recorder ?? this.#opened?.toText);
    opens.hidden = !this.#allows("open");
    fork.disabled = this.end === 0;
    const isBare = save.hidden && opens.hidden && this.runs?.hidden === true;
    if (this.bar) this.bar.hidden = isBare && ![...this.children].some(({ slot }) => slot === "title" || slot === "actions");
  }

  #fork() {
    const { frame } = this;
    if (!frame) return;
    this.dispatchEvent(new CustomEvent("turnwheel-fork", { bubbles: true, composed: true, detail: { n: frame.n, frame, source: this.#source } }));
  }

  #save() {
    const text = (this.#recorder ?? { toText: this.#opened?.toText }).toText?.();
    if (text !== undefined) download("run.tape", text, "application/jsonl");
  }

  /** @param {File | undefined} file */
  async #openFile(file) {
    if (!file) return;
    if (this.file) this.file.value = "";
    try {
      const tape = await parseTape(await file.text());
      this.source = /** @type {any} */ (tape);
      this.dispatchEvent(new CustomEvent("turnwheel-open", { bubbles: true, composed: true, detail: { tape, name: file.name } }));
    } catch (error) {
      this.#say(`${file.name}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  // ---- drawing

  /** Draws in the next frame, once for everything before it. */
  #schedule() {
    if (this.#isDrawing || !this.isConnected) return;
    this.#isDrawing = true;
    requestAnimationFrame(() => {
      this.#isDrawing = false;
      if (this.isConnected) this.#draw();
    });
  }

  #draw() {
    const { lanes, slider } = this;
    const log = this.#opened?.log;
    if (!lanes || !slider || this.clientWidth === 0) return;
    if (log && this.#n < log.first) this.#n = log.first;
    slider.min = String(log?.first ?? 0);
    slider.max = String(log?.end ?? 0);
    slider.value = String(this.#n);
    slider.disabled = !log || log.end === log.first;
    this.#drawLanes(log);
    if (log) this.#drawMoment(log);
    else this.#drawNothing();
    this.#updateActions();
  }

  /** @param {InspectorLog | undefined} log */
  #drawLanes(log) {
    const lanes = /** @type {LanesView} */ (this.lanes);
    lanes.n = this.#n;
    lanes.isFollowing = this.#isFollowing;
    const runIndex = lanes.runIndex();
    this.#drawRuns(log, runIndex);
    const state = `${log?.end} ${log?.lanes.marks.length} ${this.clientWidth} ${this.#turn} ${lanes.isOneRun ? runIndex : "all"}`;
    const isGrowing = this.#opened?.isLive === true && log?.lanes.runs.at(-1)?.end === Infinity;
    // The picture does not change when somebody only looks at another moment.
    if (state !== this.#lanesState || (isGrowing && lanes.shown.growing) || !log) {
      if (this.#runIndex !== runIndex && lanes.isOneRun) lanes.zoomed = undefined;
      this.#lanesState = state;
      this.#runIndex = runIndex;
      lanes.draw();
      lanes.scroller.setAttribute("aria-label", log && log.end > 0 ? lanesInWords(log) : "Lanes: no run yet");
    }
    lanes.moveCursor(this.#n);
    lanes.follow();
    if (!isGrowing) return;
    // It grows by itself, though nothing may happen: as often as it makes a difference.
    const { from, to, width } = lanes.shown;
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches ? GROWS_CALMLY_MS : GROWS_MS;
    clearTimeout(this.#growing);
    this.#growing = setTimeout(() => this.#schedule(), Math.max(calm, (to - from) / Math.max(1, width) / 2));
  }

  /** @param {InspectorLog | undefined} log @param {number} index */
  #drawRuns(log, index) {
    const { runs, which, buttons, lanes } = this;
    const count = log?.lanes.runs.length ?? 0;
    if (!runs || !which || !buttons || !lanes) return;
    runs.hidden = count < 2;
    say(which, `run ${grouped(index + 1)} of ${grouped(count)}`);
    setUsable(buttons.before, index > 0);
    setUsable(buttons.after, index < count - 1);
  }

  /** @param {InspectorLog} log */
  #drawMoment(log) {
    const frame = log.frame(this.#n);
    const { moment, slider, buttons } = this;
    if (!moment || !slider || !buttons) return;
    moment.show(log, frame, this.lanes?.zeroOf(log) ?? 0);
    slider.setAttribute("aria-valuetext", moment.text);
    setUsable(buttons.back, frame.n > log.first);
    setUsable(buttons.on, frame.n < log.end);
    for (const panel of this.panels ?? []) if (!panel.root.hidden) panel.show({ log, frame });
  }

  #drawNothing() {
    this.moment?.clear();
    for (const { root } of this.panels ?? []) if (root.querySelector(".messages")) root.querySelector(".messages")?.replaceChildren();
  }
}
