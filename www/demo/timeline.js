// @ts-check
// Draws a run to scale: a lane for the model, one or more for each tool, and marks where the user sent
// something or stopped. The figure's label, its tooltips and the table below it state the same facts.

import { h, s, set } from "./dom.js";
import { duration, inWords } from "./trace.js";

/** @typedef {import("./trace.js").Trace} Trace */
/** @typedef {import("./trace.js").Call} Call */
/**
 * An item with a place in the picture.
 * @typedef {{ key: string, title: string, detail: string, start: number, end: number, x: number, y: number, width: number, height: number }} Item
 */

const BAND = 40;
const LANE = 42;
const ROW = 18;
const AXIS = 24;
const STEPS = [0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600].map((seconds) => seconds * 1000);
const SCALES = [2, 3, 4, 6, 8, 12, 16, 24, 32, 45, 60, 90, 120, 180, 300, 600, 1200, 3600].map((seconds) => seconds * 1000);
const PARTS = { thinking: "thinking", text: "words", tool_call: "tool call" };

export class Timeline {
  /** @param {HTMLElement} root @param {HTMLElement} table */
  constructor(root, table) {
    this.root = root;
    this.table = table;
    this.layers = { back: s("g"), bars: s("g"), front: s("g") };
    this.svg = s("svg", { "aria-hidden": "true", focusable: "false" }, ...Object.values(this.layers));
    this.tip = h("div", { class: "tip", hidden: true, testid: "tip" });
    this.spoken = h("div", { class: "hidden", "aria-live": "polite" });
    root.append(this.svg, this.tip, this.spoken);
    /** @type {Trace | undefined} */
    this.trace = undefined;
    /** @type {Map<string, Element>} the elements of the picture by key, kept from frame to frame */
    this.pool = new Map();
    /** @type {Set<string>} */
    this.used = new Set();
    /** @type {Item[]} */
    this.items = [];
    /** @type {string | undefined} */
    this.chosen = undefined;
    root.addEventListener("pointermove", (event) => this.#point(event));
    root.addEventListener("pointerleave", () => this.#choose(undefined));
    root.addEventListener("blur", () => this.#choose(undefined));
    root.addEventListener("keydown", (event) => this.#key(event));
  }

  /** @param {Trace | undefined} trace */
  show(trace) {
    this.trace = trace;
    this.chosen = undefined;
    this.tip.hidden = true;
    for (const element of this.pool.values()) element.remove();
    this.pool.clear();
    if (!trace) {
      this.items = [];
      this.table.replaceChildren();
      this.root.setAttribute("aria-label", "No run yet");
    }
  }

  /** @param {number} now on the clock of the trace */
  draw(now) {
    const { trace, svg } = this;
    const width = Math.max(200, this.root.clientWidth);
    this.used.clear();
    this.items = [];
    if (!trace) {
      this.#empty(width);
      this.#sweep();
      return;
    }
    const reached = trace.endedAt ?? now - trace.startedAt;
    const whole = trace.endedAt === undefined ? (SCALES.find((scale) => scale >= reached * 1.04) ?? reached * 1.1) : Math.max(reached, 1);
    const right = width - 10;
    const scale = (/** @type {number} */ at) => 2 + (Math.min(at, whole) / whole) * (right - 2);
    const lanes = trace.lanes();
    const bottom = BAND + LANE + lanes.reduce((sum, { rows }) => sum + LANE + (rows.length - 1) * ROW, 0);
    set(svg, { width, height: bottom + AXIS, viewBox: `0 0 ${width} ${bottom + AXIS}` });

    this.#axis(whole, scale, bottom, right);
    this.#turns(trace, reached, scale, bottom);
    this.#model(trace, reached, scale);
    let y = BAND + LANE;
    for (const { name, rows } of lanes) {
      this.#label(`lane ${name}`, name, y, name);
      rows.forEach((row, index) => row.forEach((call) => this.#call(call, reached, scale, y + 16 + index * ROW)));
      y += LANE + (rows.length - 1) * ROW;
    }
    this.#marks(trace, scale, bottom);
    if (trace.endedAt === undefined) this.#place("front", "now", "line", { class: "now", x1: scale(reached), x2: scale(reached), y1: BAND - 6, y2: bottom });
    this.#sweep();
    this.items.sort((a, b) => a.start - b.start);
    this.#tip();
  }

  /** Updates the table and the label: what the picture shows, in words. */
  describe() {
    const { trace } = this;
    if (!trace) return;
    const calls = [...trace.calls.values()].map((call) => `${call.toolName} ${call.start === undefined ? "never ran" : `${duration((call.end ?? call.start) - call.start)} from ${duration(call.start)}`}, ${call.state}`);
    const most = trace.mostAtOnce();
    const ended = trace.endedAt === undefined ? "running" : `${inWords(trace.stopReason)} after ${duration(trace.endedAt)}`;
    this.root.setAttribute("aria-label", `Timeline of a run, ${ended}. ${trace.turns.length} turns.${calls.length > 0 ? ` ${calls.join("; ")}.` : ""}${most > 1 ? ` At most ${most} tools at once.` : ""}`);
    const rows = this.items.map(({ title, detail, start, end }) => h("tr", {}, h("td", {}, duration(start)), h("td", {}, end > start ? duration(end - start) : "–"), h("th", { scope: "row" }, title), h("td", {}, detail)));
    this.table.replaceChildren(h("table", {}, h("thead", {}, h("tr", {}, ...["From", "Took", "What", "Which"].map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, ...rows)));
  }

  /** @param {number} width */
  #empty(width) {
    set(this.svg, { width, height: 92, viewBox: `0 0 ${width} 92` });
    this.#label("lane model", "model", 8);
    this.#place("bars", "empty model", "rect", { class: "ghost", x: 2, y: 24, width: width - 12, height: 14, rx: 4 });
    this.#label("lane tools", "tools", 46);
    this.#place("bars", "empty tools", "rect", { class: "ghost", x: 2 + width * 0.3, y: 62, width: width * 0.35, height: 14, rx: 4 });
  }

  /** @param {number} whole @param {(at: number) => number} scale @param {number} bottom @param {number} right */
  #axis(whole, scale, bottom, right) {
    const step = STEPS.find((candidate) => (candidate / whole) * right >= 58) ?? whole;
    for (let at = 0; at <= whole; at += step) {
      const x = scale(at);
      this.#place("back", `grid ${at}`, "line", { class: "grid", x1: x, x2: x, y1: BAND - 6, y2: bottom });
      if (x > right - 26 && at > 0) continue;
      this.#place("back", `tick ${at}`, "text", { class: "tick", x, y: bottom + 16, "text-anchor": at === 0 ? "start" : "middle" }, at === 0 ? "0" : `${Number((at / 1000).toFixed(2))} s`);
    }
  }

  /** @param {Trace} trace @param {number} reached @param {(at: number) => number} scale @param {number} bottom */
  #turns(trace, reached, scale, bottom) {
    for (const { index, start, end, reason } of trace.turns) {
      const [from, to] = [scale(start), scale(end ?? reached)];
      this.#place("back", `turn ${index}`, "path", { class: "turn-bar", d: `M${from + 0.5} ${BAND - 10}v-5H${Math.max(from + 1, to - 1.5)}v5` });
      if (to - from > 44) this.#place("back", `turn name ${index}`, "text", { class: "tick", x: from + 5, y: BAND - 20 }, `turn ${index}`);
      if (end === undefined) continue;
      this.#place("back", `turn end ${index}`, "line", { class: "turn-line", x1: to, x2: to, y1: BAND - 14, y2: bottom });
      this.items.push({ key: `turn ${index}`, title: `turn ${index} ends`, detail: inWords(reason), start: end, end, x: to, y: BAND - 14, width: 0, height: 8 });
    }
  }

  /** @param {Trace} trace @param {number} reached @param {(at: number) => number} scale */
  #model(trace, reached, scale) {
    this.#label("lane model", "model", BAND);
    const y = BAND + 16;
    for (const [index, { turn, start, end, parts, stopReason }] of trace.answers.entries()) {
      const until = end ?? reached;
      const firstPart = parts[0]?.start ?? until;
      this.#bar(`answer ${index}`, "waiting", scale(start), scale(until), y, { title: `model, turn ${turn}`, detail: `waits ${duration(firstPart - start)} for the first word${stopReason ? `; ${inWords(stopReason)}` : ""}`, start, end: until });
      for (const [number, part] of parts.entries()) {
        const isLast = number === parts.length - 1 && end === undefined;
        const last = isLast ? until : part.end;
        this.#bar(`part ${index} ${number}`, part.kind, scale(part.start), scale(last), y, { title: `model, turn ${turn}`, detail: PARTS[part.kind], start: part.start, end: last });
      }
    }
  }

  /** @param {Call} call @param {number} reached @param {(at: number) => number} scale @param {number} y */
  #call(call, reached, scale, y) {
    const start = call.start ?? call.end ?? reached;
    const end = call.end ?? reached;
    this.#place("bars", `asked ${call.callId}`, "line", { class: "asked", x1: scale(call.asked), x2: scale(start), y1: y + 7, y2: y + 7 });
    if (call.start === undefined && call.end === undefined) return;
    const state = { asked: "is asked", running: "running", done: "done", failed: "failed", cut: "cut short" }[call.state];
    this.#bar(`call ${call.callId}`, call.state, scale(start), scale(end), y, { title: call.toolName, detail: [state, short(call.text)].filter(Boolean).join(": "), start, end });
    if (call.progress !== undefined && call.state === "running") {
      this.#place("bars", `progress ${call.callId}`, "rect", { class: "share", x: scale(start), y: y + 11, width: Math.max(0, scale(end) - scale(start)) * call.progress, height: 3 });
    }
  }

  /** @param {Trace} trace @param {(at: number) => number} scale @param {number} bottom */
  #marks(trace, scale, bottom) {
    const shapes = { steer: "M0 0h9l-4.5 7z", follow_up: "M0.5 0.5h8l-4 6z", stop: "M0.5 0h8v7h-8z", retry: "M0 7h9l-4.5 -7z", note: "M0 3h9v1h-9z" };
    const names = { steer: "steering", follow_up: "follow-up", stop: "stop", retry: "retry", note: "note" };
    for (const [index, { kind, at, label }] of trace.marks.entries()) {
      const x = scale(at);
      this.#place("front", `mark line ${index}`, "line", { class: `mark ${kind}`, x1: x, x2: x, y1: 10, y2: bottom });
      this.#place("front", `mark ${index}`, "path", { class: `flag ${kind}`, d: shapes[kind], transform: `translate(${x - 4.5} 3)` });
      this.items.push({ key: `mark ${index}`, title: names[kind], detail: label, start: at, end: at, x, y: 6, width: 0, height: 8 });
    }
  }

  /** @param {string} key @param {string} kind @param {number} from @param {number} to @param {number} y @param {{ title: string, detail: string, start: number, end: number }} facts */
  #bar(key, kind, from, to, y, facts) {
    const width = Math.max(2.5, to - from);
    this.#place("bars", key, "rect", { class: `bar ${kind}${this.chosen === key ? " chosen" : ""}`, x: from, y, width, height: 14, rx: kind === "waiting" || width > 8 ? 3 : 1 });
    this.items.push({ key, ...facts, x: from, y, width, height: 14 });
  }

  /** @param {string} key @param {string} text @param {number} y @param {string} [tool] */
  #label(key, text, y, tool) {
    this.#place("front", key, "text", { class: tool === undefined ? "lane" : "lane tool", x: 2, y: y + 10, "data-lane": text }, text);
  }

  /**
   * Creates an element, or changes the existing one.
   *
   * @param {keyof Timeline["layers"]} layer
   * @param {string} key
   * @param {string} tag
   * @param {import("./dom.js").Properties} properties
   * @param {string} [text]
   */
  #place(layer, key, tag, properties, text) {
    this.used.add(key);
    let element = this.pool.get(key);
    if (!element) {
      element = s(tag);
      this.pool.set(key, element);
    }
    if (!element.parentNode) this.layers[layer].append(element);
    for (const [name, value] of Object.entries(properties)) {
      const wanted = typeof value === "number" ? String(Math.round(value * 10) / 10) : String(value);
      if (element.getAttribute(name) !== wanted) element.setAttribute(name, wanted);
    }
    if (text !== undefined && element.textContent !== text) element.textContent = text;
  }

  #sweep() {
    for (const [key, element] of this.pool) {
      if (this.used.has(key)) continue;
      element.remove();
      this.pool.delete(key);
    }
  }

  /** @param {PointerEvent} event */
  #point(event) {
    const box = this.svg.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const near = this.items.filter((item) => x >= item.x - 4 && x <= item.x + item.width + 4 && y >= item.y - 4 && y <= item.y + item.height + 4);
    // The narrowest item: a part lies on top of its answer.
    this.#choose(near.sort((a, b) => a.width - b.width)[0]?.key);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step === undefined || this.items.length === 0) return;
    event.preventDefault();
    const at = this.items.findIndex(({ key }) => key === this.chosen);
    const next = at < 0 ? (step > 0 ? 0 : this.items.length - 1) : Math.min(this.items.length - 1, Math.max(0, at + step));
    const item = this.items[next];
    this.#choose(item?.key);
    if (item) this.spoken.textContent = `${item.title}: ${item.detail}, ${times(item)}`;
  }

  /** @param {string | undefined} key */
  #choose(key) {
    if (this.chosen === key) return;
    if (this.chosen !== undefined) this.pool.get(this.chosen)?.classList.remove("chosen");
    this.chosen = key;
    if (key !== undefined) this.pool.get(key)?.classList.add("chosen");
    this.#tip();
  }

  #tip() {
    const item = this.items.find(({ key }) => key === this.chosen);
    this.tip.hidden = !item;
    if (!item) return;
    this.tip.replaceChildren(h("strong", {}, item.title), h("span", {}, item.detail), h("span", { class: "fine" }, times(item)));
    const room = this.root.clientWidth - this.tip.offsetWidth;
    this.tip.style.setProperty("left", `${Math.round(Math.max(0, Math.min(room, item.x + item.width / 2 - this.tip.offsetWidth / 2)))}px`);
    this.tip.style.setProperty("top", `${item.y + item.height + 6}px`);
  }
}

/** @param {Item} item */
function times({ start, end }) {
  return end > start ? `${duration(end - start)}, from ${duration(start)} to ${duration(end)}` : `at ${duration(start)}`;
}

/** @param {string} [text] */
function short(text = "") {
  const line = text.split("\n")[0] ?? "";
  return line.length > 120 ? `${line.slice(0, 117)}…` : line;
}
