// @ts-check
// Draws the lanes on a canvas that is as large as what is in sight, however much there is: a few DOM nodes for any number
// of spans. The table says the same in words.

import { Axis, wholeLength } from "../model/axis.js";
import { duration } from "../model/words.js";
import { h } from "./dom.js";
import { firstAfter, kindInWords, LOOK, markInWords, minutes } from "./look.js";

/** @import { InspectorLog } from "../model/log.js" */
/** @import { Lane, Span, Turn } from "../model/lanes.js" */
/** Something in the picture that can be pointed at. @typedef {{ title: string, detail: string, start: number, end: number, n: number, x: number, y: number }} Thing */

const TOP = 36;
const ROW = 15;
const BAR = 11;
const AXIS = 20;
const EDGE = 8;
/** From this width on, the names stand beside the lanes, and not above them. */
const WIDE = 520;
const GUTTER = 112;
const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_800_000, 3_600_000, 7_200_000, 21_600_000, 86_400_000];
const COLOURS = ["ink", "soft", "line", "edge", "panel", "tint", "accent", "violet", "amber", "red", "blue", "sky", "waiting"];

export class LanesView {
  /** @param {{ seek: (n: number, isUser: boolean) => void }} actions */
  constructor({ seek }) {
    this.seek = seek;
    this.canvas = h("canvas", { "aria-hidden": "true" });
    this.spacer = h("div", { class: "lanes-height" });
    this.cursor = h("div", { class: "cursor" });
    this.tip = h("div", { class: "tip", hidden: true });
    this.scroller = h("div", { class: "lanes", part: "lanes", tabindex: 0, role: "group", "aria-label": "Lanes" }, h("div", { class: "lanes-sheet" }, this.canvas, this.cursor), this.spacer);
    this.root = h("div", { class: "stage" }, this.scroller, this.tip);
    /** @type {InspectorLog | undefined} */
    this.log = undefined;
    this.axis = new Axis([]);
    /** What the axis was made of. @type {{ log: InspectorLog | undefined, parts: number }} */
    this.axisOf = { log: undefined, parts: 0 };
    /** What is in sight of the line: all of it, unless somebody zoomed. @type {{ from: number, to: number } | undefined} */
    this.zoomed = undefined;
    this.shown = { from: 0, to: 1, left: EDGE, width: 0, height: 0, growing: false };
    /** How much stands above the bars of a lane, and below them. */
    this.room = { name: 0, gap: 0 };
    /** What the page allows. */
    this.mostHeight = 260;
    /** @type {Record<string, string>} */
    this.colours = {};
    this.n = 0;
    /** Whether one run is shown at a time, the one in which the moment lies; else all of them. */
    this.isOneRun = true;
    /** Whether the newest moment is shown, which moves on while nothing happens. */
    this.isFollowing = false;
    this.isDragging = false;
    this.scroller.addEventListener("scroll", () => this.draw(), { passive: true });
    this.canvas.addEventListener("pointerdown", (event) => this.#press(event));
    this.canvas.addEventListener("pointermove", (event) => this.#move(event));
    for (const name of ["pointerup", "pointercancel"]) this.canvas.addEventListener(name, () => (this.isDragging = false));
    this.canvas.addEventListener("pointerleave", () => (this.tip.hidden = true));
    this.scroller.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
  }

  /** @param {InspectorLog | undefined} log */
  show(log) {
    this.log = log;
    this.zoomed = undefined;
    this.tip.hidden = true;
  }

  /** Takes the colours of the page's scheme. */
  readColours() {
    const style = getComputedStyle(this.root);
    for (const name of COLOURS) this.colours[name] = style.getPropertyValue(`--i-${name}`).trim() || "#888";
    this.colours["font"] = style.fontFamily;
    this.mostHeight = parseFloat(getComputedStyle(this.scroller).maxHeight) || 260;
  }

  // ---- places

  /** @param {number} time */
  x(time) {
    return this.#xOfLine(this.axis.toLine(time));
  }

  /** @param {number} line */
  #xOfLine(line) {
    const { from, to, left, width } = this.shown;
    return left + ((line - from) / (to - from)) * (width - left - EDGE);
  }

  /** @param {number} x */
  timeAt(x) {
    const { from, to, left, width } = this.shown;
    return this.axis.toTime(from + ((x - left) / Math.max(1, width - left - EDGE)) * (to - from));
  }

  /** Shows part of the line, around a place. @param {number} factor above 1 is nearer @param {number} [x] */
  zoom(factor, x = this.x(this.log?.at(this.n) ?? 0)) {
    const { from, to, left, width } = this.shown;
    const whole = this.#whole();
    const length = Math.min(whole.to - whole.from, Math.max(20, (to - from) / factor));
    const place = Math.min(1, Math.max(0, (x - left) / Math.max(1, width - left - EDGE)));
    const centre = from + place * (to - from);
    const begin = Math.min(Math.max(whole.from, centre - place * length), whole.to - length);
    this.zoomed = length >= whole.to - whole.from ? undefined : { from: begin, to: begin + length };
    this.draw();
  }

  /** All of the line. */
  #whole() {
    const { log, axis } = this;
    if (!log || log.end === log.first) return { from: 0, to: 2000 };
    const { from, to } = log.lanes;
    const run = this.isOneRun ? log.lanes.runs[this.runIndex()] : undefined;
    const isLast = !run || run === log.lanes.runs.at(-1);
    const growing = this.isLive && isLast && log.lanes.runs.at(-1)?.end === Infinity;
    const begin = axis.toLine(run?.start ?? from);
    const reached = axis.toLine(growing ? log.now() : !run || run.end === Infinity ? to : run.end);
    this.shown.growing = growing;
    return { from: begin, to: begin + wholeLength(reached - begin, growing) };
  }

  /** From when on times are told: the begin of the run, or of everything. @param {InspectorLog} log */
  zeroOf(log) {
    return (this.isOneRun && log.lanes.runs[this.runIndex()]?.start) || log.lanes.from;
  }

  /** The run in which the moment lies. */
  runIndex() {
    return Math.max(0, this.log?.lanes.runs.findLastIndex((run) => run.n <= Math.max(this.n, 1)) ?? 0);
  }

  /** Whether its time goes on while nothing happens. */
  isLive = false;

  // ---- drawing

  draw() {
    const { log, scroller, canvas } = this;
    const width = scroller.clientWidth;
    if (width === 0) return;
    if (log && (this.axisOf.parts !== log.lanes.parts.length || this.axisOf.log !== log)) {
      this.axis = new Axis(log.lanes.parts);
      this.axisOf = { log, parts: log.lanes.parts.length };
    }
    const lanes = log?.lanes.lanes ?? [];
    const isWide = width >= WIDE;
    this.room = isWide ? { name: 2, gap: 4 } : { name: 17, gap: 5 };
    const tallest = TOP + Math.max(44, lanes.reduce((sum, lane) => sum + this.#tall(lane), 0)) + AXIS;
    const height = Math.min(this.mostHeight, tallest);
    scroller.style.setProperty("height", `${height}px`);
    this.spacer.style.setProperty("height", `${tallest - height}px`);
    const ratio = globalThis.devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.setProperty("height", `${height}px`);
    }
    Object.assign(this.shown, { left: isWide && lanes.length > 0 ? GUTTER : EDGE, width, height }, this.zoomed ?? this.#whole());
    const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.textBaseline = "alphabetic";
    this.#drawAxis(pen, height - AXIS);
    if (!log || log.end === log.first) return this.#drawEmpty(pen);
    pen.save();
    pen.beginPath();
    pen.rect(0, TOP - 4, width, height - AXIS - TOP + 6);
    pen.clip();
    let y = TOP - scroller.scrollTop;
    for (const lane of lanes) {
      const tall = this.#tall(lane);
      if (y + tall > TOP - 8 && y < height) this.#drawLane(pen, lane, y);
      y += tall;
    }
    if (isWide) this.#drawNames(pen, lanes);
    pen.restore();
    this.#drawTurns(pen, height - AXIS);
    this.#drawMarks(pen, height - AXIS);
    this.moveCursor(this.n);
  }

  /** @param {Lane} lane */
  #tall({ rows }) {
    return this.room.name + Math.max(1, rows.length) * ROW + this.room.gap;
  }

  /** @param {CanvasRenderingContext2D} pen @param {string} text @param {number} x @param {number} y @param {string} colour @param {string} [font] */
  #write(pen, text, x, y, colour, font = `11px ${this.colours["font"]}`) {
    pen.font = font;
    pen.fillStyle = this.colours[colour] ?? "";
    pen.fillText(text, x, y);
  }

  /** @param {CanvasRenderingContext2D} pen */
  #drawEmpty(pen) {
    const { width, left } = this.shown;
    pen.fillStyle = this.colours["tint"] ?? "";
    for (const [row, from, to] of [[0, 0, 0.45], [0, 0.7, 1], [1.6, 0.45, 0.7]]) {
      pen.beginPath();
      pen.roundRect(left + /** @type {number} */ (from) * (width - left - EDGE), TOP - 4 + /** @type {number} */ (row) * ROW, (/** @type {number} */ (to) - /** @type {number} */ (from)) * (width - left - EDGE), BAR, 3);
      pen.fill();
    }
  }

  /** @param {CanvasRenderingContext2D} pen @param {number} bottom */
  #drawAxis(pen, bottom) {
    const { from, to, left, width } = this.shown;
    const { log } = this;
    const start = log && log.end > log.first ? this.axis.toLine(this.zeroOf(log)) : from;
    const step = STEPS.find((candidate) => (candidate / (to - from)) * (width - left - EDGE) >= 62) ?? to - from;
    pen.strokeStyle = this.colours["line"] ?? "";
    pen.lineWidth = 1;
    for (let at = Math.ceil((from - start) / step) * step; at <= to - start; at += step) {
      const x = Math.round(this.#xOfLine(start + at)) + 0.5;
      pen.beginPath();
      pen.moveTo(x, TOP - 6);
      pen.lineTo(x, bottom);
      pen.stroke();
      const text = at === 0 ? "0" : step < 100 ? `${Math.round(at)} ms` : step < 60_000 ? `${Number((at / 1000).toFixed(2))} s` : minutes(at);
      pen.font = `11px ${this.colours["font"]}`;
      const wide = pen.measureText(text).width;
      if (x + wide / 2 < width - 2) this.#write(pen, text, at === 0 ? x - 4 : Math.max(left - 6, x - wide / 2), bottom + 14, "soft");
    }
  }

  /** @param {CanvasRenderingContext2D} pen @param {Lane} lane @param {number} y */
  #drawLane(pen, lane, y) {
    lane.rows.forEach((row, index) => this.#drawRow(pen, row, y + this.room.name + index * ROW));
    if (this.room.name > 10) this.#drawName(pen, lane, y, y + 12, this.shown.width);
  }

  /** The names beside the lanes, over whatever is drawn there. @param {CanvasRenderingContext2D} pen @param {readonly Lane[]} lanes */
  #drawNames(pen, lanes) {
    const { height } = this.shown;
    pen.fillStyle = this.colours["panel"] ?? "";
    pen.fillRect(0, TOP - 4, GUTTER - 5, height);
    let y = TOP - this.scroller.scrollTop;
    for (const lane of lanes) {
      if (y > TOP - 60 && y < height) this.#drawName(pen, lane, y, y + this.room.name + 9.5, GUTTER - 12);
      y += this.#tall(lane);
    }
  }

  /** @param {CanvasRenderingContext2D} pen @param {Lane} lane @param {number} top @param {number} y @param {number} right */
  #drawName(pen, lane, top, y, right) {
    pen.fillStyle = this.colours["line"] ?? "";
    for (let depth = 1; depth <= lane.depth; depth++) pen.fillRect(depth * 12 - 8, top, 2, this.#tall(lane));
    pen.font = lane.kind === "tool" ? "500 11px ui-monospace, Menlo, Consolas, 'Liberation Mono', monospace" : `500 11.5px ${this.colours["font"]}`;
    const left = 2 + lane.depth * 12;
    let name = lane.name;
    while (name.length > 3 && pen.measureText(name).width > right - left) name = `${name.slice(0, -2)}…`;
    this.#write(pen, name, left, y, lane.depth > 0 ? "soft" : "ink", pen.font);
  }

  /** @param {CanvasRenderingContext2D} pen @param {Span[]} row @param {number} y */
  #drawRow(pen, row, y) {
    const { from, to } = this.shown;
    const now = this.shown.growing ? this.log?.now() ?? 0 : this.log?.lanes.to ?? 0;
    // The spans of a row do not overlap. A short one is made visible if there is room; where there is none, those that share a
    // pixel are mixed, and what would not be seen is left out.
    let drawnTo = -Infinity;
    for (let index = firstAfter(row, this.axis.toTime(from)); index < row.length; index++) {
      const span = /** @type {Span} */ (row[index]);
      const start = this.axis.toLine(span.start);
      if (start > to) break;
      const x = this.#xOfLine(start);
      const end = this.x(Math.min(span.end, Math.max(now, span.start)));
      const next = row[index + 1];
      const right = Math.max(end - (end - x > 5 ? 0.75 : 0), Math.min(x + 1.75, next ? this.x(next.start) : Infinity));
      if (right < drawnTo + 0.2) continue;
      drawnTo = right;
      this.#drawBar(pen, span, x, right - x, y);
    }
  }

  /** @param {CanvasRenderingContext2D} pen @param {Span} span @param {number} x @param {number} width @param {number} y */
  #drawBar(pen, span, x, width, y) {
    const [colour, isHatched] = LOOK[span.kind];
    const value = this.colours[colour] ?? "";
    const left = Math.max(x, -20);
    const wide = Math.min(width - (left - x), this.shown.width + 40);
    if (span.kind === "compaction") {
      pen.fillStyle = value;
      pen.beginPath();
      pen.moveTo(x, y);
      pen.lineTo(x + 5, y + BAR / 2);
      pen.lineTo(x, y + BAR);
      pen.lineTo(x - 5, y + BAR / 2);
      return pen.fill();
    }
    pen.fillStyle = pen.strokeStyle = value;
    pen.globalAlpha = isHatched ? 0.22 : span.kind === "running" || span.kind === "asked" ? 0.72 : span.kind === "approved" ? 0.5 : 1;
    if (wide < 4) pen.fillRect(left, y, wide, BAR);
    else {
      pen.beginPath();
      pen.roundRect(left, y, wide, BAR, 3);
      pen.fill();
    }
    pen.globalAlpha = 1;
    if (isHatched && wide >= 4) {
      pen.setLineDash([3, 2]);
      pen.lineWidth = 1.25;
      pen.beginPath();
      pen.roundRect(left + 0.6, y + 0.6, wide - 1.2, BAR - 1.2, 3);
      pen.stroke();
      pen.setLineDash([]);
    }
    if (span.progress !== undefined && span.kind === "running") {
      pen.fillStyle = this.colours["panel"] ?? "";
      pen.globalAlpha = 0.75;
      pen.fillRect(left, y + BAR - 3, wide * span.progress, 2);
      pen.globalAlpha = 1;
    }
  }

  /** @param {CanvasRenderingContext2D} pen @param {number} bottom */
  #drawTurns(pen, bottom) {
    const { log, shown } = this;
    const turns = log?.lanes.turns ?? [];
    pen.strokeStyle = this.colours["edge"] ?? "";
    pen.lineWidth = 1;
    pen.save();
    pen.beginPath();
    pen.rect(shown.left - 5, 0, shown.width, shown.height);
    pen.clip();
    let drawnTo = -Infinity;
    for (let index = firstAfter(turns, this.axis.toTime(shown.from)); index < turns.length; index++) {
      const turn = /** @type {Turn} */ (turns[index]);
      const from = this.x(turn.start);
      if (from > shown.width) break;
      const to = turn.end === Infinity ? this.x(shown.growing ? log?.now() ?? 0 : log?.lanes.to ?? 0) : this.x(turn.end);
      if (to < drawnTo + 3) continue;
      drawnTo = to;
      pen.beginPath();
      pen.moveTo(from + 0.5, TOP - 8);
      pen.lineTo(from + 0.5, TOP - 12.5);
      pen.lineTo(Math.max(from + 1, to - 1.5), TOP - 12.5);
      pen.lineTo(Math.max(from + 1, to - 1.5), TOP - 8);
      pen.stroke();
      if (to - Math.max(from, shown.left) > 42) this.#write(pen, `turn ${turn.index}`, Math.max(from, shown.left - 4) + 4, TOP - 17, "soft");
      if (turn.end !== Infinity && to - from > 6) {
        pen.setLineDash([1.5, 3]);
        pen.beginPath();
        pen.moveTo(to, TOP - 8);
        pen.lineTo(to, bottom);
        pen.stroke();
        pen.setLineDash([]);
      }
    }
    for (const gap of this.axis.gaps) {
      const x = (this.x(gap.from) + this.x(gap.to)) / 2;
      if (x > 0 && x < shown.width) this.#write(pen, "⋯", x - 5, bottom - 2, "soft");
    }
    pen.restore();
  }

  /** @param {CanvasRenderingContext2D} pen @param {number} bottom */
  #drawMarks(pen, bottom) {
    let drawnTo = -Infinity;
    for (const mark of this.log?.lanes.marks ?? []) {
      const x = this.x(mark.at);
      if (x < this.shown.left - 5 || x > this.shown.width || x < drawnTo + 2) continue;
      drawnTo = x;
      const colour = mark.kind === "stop" || mark.kind === "budget" ? "red" : mark.kind === "steer" || mark.kind === "follow_up" ? "amber" : "soft";
      pen.strokeStyle = pen.fillStyle = this.colours[colour] ?? "";
      pen.lineWidth = 1;
      pen.globalAlpha = mark.kind === "said" ? 0.35 : 0.9;
      pen.beginPath();
      pen.moveTo(Math.round(x) + 0.5, 9);
      pen.lineTo(Math.round(x) + 0.5, bottom);
      pen.stroke();
      pen.globalAlpha = 1;
      pen.beginPath();
      if (mark.kind === "stop") pen.rect(x - 3.5, 2, 7, 7);
      else if (mark.kind === "said" || mark.kind === "note") pen.arc(x, 5.5, 3, 0, 7);
      else {
        pen.moveTo(x - 4.5, 2);
        pen.lineTo(x + 4.5, 2);
        pen.lineTo(x, 9);
      }
      pen.fill();
    }
  }

  /** @param {number} n */
  moveCursor(n) {
    this.n = n;
    const { log, cursor, shown } = this;
    const x = log ? this.x(this.isFollowing && shown.growing ? log.now() : log.at(n)) : -1;
    cursor.hidden = !log || log.end === log.first || x < shown.left - 5 || x > shown.width + 1;
    cursor.style.setProperty("transform", `translateX(${Math.round(x * 2) / 2}px)`);
    cursor.style.setProperty("height", `${shown.height - AXIS - TOP + 12}px`);
  }

  /** Brings the moment that is shown into sight, if somebody zoomed. */
  follow() {
    const { log, zoomed } = this;
    if (!log || !zoomed) return false;
    const line = this.axis.toLine(log.at(this.n));
    if (line >= zoomed.from && line <= zoomed.to) return false;
    const length = zoomed.to - zoomed.from;
    this.zoomed = { from: line - length / 2, to: line + length / 2 };
    this.draw();
    return true;
  }

  // ---- pointing

  /** @param {PointerEvent} event */
  #press(event) {
    if (event.button !== 0 || !this.log) return;
    this.isDragging = true;
    this.canvas.setPointerCapture(event.pointerId);
    const thing = this.#thingAt(event);
    this.seek(thing ? thing.n : this.log.before(this.timeAt(this.#place(event).x)), true);
  }

  /** @param {PointerEvent} event */
  #move(event) {
    if (!this.log) return;
    if (this.isDragging) return this.seek(this.log.before(this.timeAt(this.#place(event).x)), true);
    this.#showTip(this.#thingAt(event));
  }

  /** @param {MouseEvent} event */
  #place(event) {
    const box = this.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  /** @param {MouseEvent} event @returns {Thing | undefined} */
  #thingAt(event) {
    const { log } = this;
    if (!log) return undefined;
    const { x, y } = this.#place(event);
    if (y < 12) {
      const mark = log.lanes.marks.find(({ at }) => Math.abs(this.x(at) - x) < 5);
      return mark && { title: markInWords(mark.kind), detail: mark.text, start: mark.at, end: mark.at, n: mark.n, x, y: 12 };
    }
    let top = TOP - this.scroller.scrollTop;
    for (const lane of log.lanes.lanes) {
      const tall = this.#tall(lane);
      const { name } = this.room;
      if (y >= top + name - 2 && y < top + tall) {
        const row = lane.rows[Math.min(lane.rows.length - 1, Math.max(0, Math.floor((y - top - name) / ROW)))] ?? [];
        const span = row[firstAfter(row, this.timeAt(x - 3))];
        if (!span || this.x(span.start) > x + 3) return undefined;
        return { title: lane.name, detail: `${kindInWords(span.kind)}; ${span.detail}`, start: span.start, end: span.end, n: span.n, x, y: y + 12 };
      }
      top += tall;
    }
    return undefined;
  }

  /** @param {Thing | undefined} thing */
  #showTip(thing) {
    const { tip, log } = this;
    tip.hidden = !thing || !log;
    if (!thing || !log) return;
    const from = thing.start - this.zeroOf(log);
    const when = thing.end === Infinity ? `since ${duration(from)}` : thing.end > thing.start ? `${duration(thing.end - thing.start)}, from ${duration(from)}` : `at ${duration(from)}`;
    tip.replaceChildren(h("strong", {}, thing.title), h("span", {}, thing.detail), h("span", { class: "fine" }, when));
    const room = this.root.clientWidth - tip.offsetWidth;
    tip.style.setProperty("left", `${Math.round(Math.max(0, Math.min(room, thing.x - tip.offsetWidth / 2)))}px`);
    tip.style.setProperty("top", `${Math.round(thing.y + 6)}px`);
  }

  /** @param {WheelEvent} event */
  #wheel(event) {
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      return this.zoom(Math.exp(-event.deltaY / 200), this.#place(event).x);
    }
    const along = event.shiftKey ? event.deltaY : event.deltaX;
    if (!this.zoomed || Math.abs(along) < Math.abs(event.shiftKey ? 0 : event.deltaY)) return;
    event.preventDefault();
    const whole = this.#whole();
    const length = this.zoomed.to - this.zoomed.from;
    const from = Math.min(Math.max(whole.from, this.zoomed.from + (along / this.shown.width) * length), whole.to - length);
    this.zoomed = { from, to: from + length };
    this.draw();
  }
}
