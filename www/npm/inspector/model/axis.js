// @ts-check
// From times to places and back. Between two runs an agent does nothing, for minutes or for days: that time is cut out,
// all but a moment. Within a run everything is to scale.

/** What is left of an idle time, in milliseconds. */
const BREAK_MS = 300;
/** What a picture that still grows may show at once, so that it does not change its scale with every event. */
const SCALES = [2, 3, 4, 6, 8, 12, 16, 24, 32, 45, 60, 90, 120, 180, 300, 600, 1200, 3600].map((seconds) => seconds * 1000);

/** @typedef {{ from: number, to: number, cut: number, before: number }} Gap `cut`: what is left out of it; `before`: of those before it */

export class Axis {
  /** @param {readonly { start: number, end: number }[]} parts when it ran, in order */
  constructor(parts) {
    /** @type {Gap[]} */
    this.gaps = [];
    let before = 0;
    parts.forEach(({ start }, index) => {
      const from = parts[index - 1]?.end ?? start;
      const cut = Math.max(0, start - from - BREAK_MS);
      if (cut > 0) this.gaps.push({ from, to: start, cut, before });
      before += cut;
    });
  }

  /** The time without the idle times before it. @param {number} time */
  toLine(time) {
    const gap = this.#last(({ from }) => from <= time);
    if (!gap) return time;
    if (time >= gap.to) return time - gap.before - gap.cut;
    // Inside a gap: in proportion.
    return gap.from - gap.before + ((time - gap.from) / (gap.to - gap.from)) * BREAK_MS;
  }

  /** @param {number} line @returns {number} the time */
  toTime(line) {
    const gap = this.#last(({ from, before }) => from - before <= line);
    if (!gap) return line;
    const inside = line - (gap.from - gap.before);
    if (inside >= BREAK_MS) return line + gap.before + gap.cut;
    return gap.from + (inside / BREAK_MS) * (gap.to - gap.from);
  }

  /** @param {(gap: Gap) => boolean} isBefore @returns {Gap | undefined} */
  #last(isBefore) {
    let [low, high] = [-1, this.gaps.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (isBefore(/** @type {Gap} */ (this.gaps[middle]))) low = middle;
      else high = middle - 1;
    }
    return this.gaps[low];
  }
}

/** How much a picture shows that has grown to this length. @param {number} length @param {boolean} isGrowing */
export function wholeLength(length, isGrowing) {
  if (!isGrowing) return Math.max(length, 1);
  return SCALES.find((scale) => scale >= length * 1.04) ?? length * 1.1;
}
