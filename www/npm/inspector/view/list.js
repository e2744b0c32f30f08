// @ts-check
// Tens of thousands of rows of one height, of which only those in sight are in the page.

import { fill, h } from "./dom.js";

/** Rows that are there above and below those in sight. */
const SPARE = 8;

export class RowsInSight {
  /**
   * @param {{ scroller: HTMLElement, body: HTMLElement, spacer: "div" | "tr", rowHeight: number, make: (index: number) => HTMLElement }} parts
   */
  constructor({ scroller, body, spacer, rowHeight, make }) {
    this.scroller = scroller;
    this.body = body;
    this.rowHeight = rowHeight;
    this.make = make;
    this.above = h(spacer, { "aria-hidden": "true", class: "spacer" });
    this.below = h(spacer, { "aria-hidden": "true", class: "spacer" });
    this.count = 0;
    /** @type {Map<number, HTMLElement>} */
    this.rows = new Map();
    scroller.addEventListener("scroll", () => this.draw(), { passive: true });
  }

  /** @param {number} count of rows @param {boolean} [isOther] whether those that are shown have changed */
  show(count, isOther = false) {
    if (isOther) this.rows.clear();
    this.count = count;
    this.draw();
  }

  draw() {
    const { scroller, rowHeight, count, rows } = this;
    const height = scroller.clientHeight;
    if (height === 0) return;
    const first = Math.max(0, Math.min(Math.floor(scroller.scrollTop / rowHeight), count) - SPARE);
    const last = Math.min(count, Math.ceil((scroller.scrollTop + height) / rowHeight) + SPARE);
    for (const index of rows.keys()) if (index < first || index >= last) rows.delete(index);
    const shown = [];
    for (let index = first; index < last; index++) {
      const row = rows.get(index) ?? this.make(index);
      rows.set(index, row);
      shown.push(row);
    }
    this.above.style.setProperty("height", `${first * rowHeight}px`);
    this.below.style.setProperty("height", `${(count - last) * rowHeight}px`);
    fill(this.body, [this.above, ...shown, this.below]);
  }

  /** Scrolls a row into sight. @param {number} index */
  reveal(index) {
    const { scroller, rowHeight } = this;
    const [top, height] = [index * rowHeight, scroller.clientHeight];
    if (height === 0) return;
    if (top < scroller.scrollTop + rowHeight || top > scroller.scrollTop + height - 2 * rowHeight) scroller.scrollTop = top - height / 2;
    this.draw();
  }
}
