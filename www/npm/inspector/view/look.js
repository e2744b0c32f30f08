// @ts-check
// How spans and marks look, and what they are called; where a list of them begins to matter.

import { duration, inWords } from "../model/words.js";

/** @import { Mark, SpanKind } from "../model/lanes.js" */

const MARKS = { said: "message", steer: "steering", follow_up: "follow-up", stop: "stop", note: "note", budget: "budget", resumed: "resumed" };
/** The colour of each kind of span; those with `hatch` are drawn in outline. @type {Record<SpanKind, [colour: string, hatch?: true]>} */
export const LOOK = {
  waiting: ["waiting"], thinking: ["violet"], text: ["accent"], tool_call: ["sky"], running: ["blue"], done: ["blue"], failed: ["red"], cut: ["amber", true],
  asked: ["amber"], approved: ["amber"], rejected: ["red", true], retry: ["red", true], compaction: ["violet"],
};

/** The index of the first of them that is not over before a time. @param {readonly { end: number }[]} list in order @param {number} time */
export function firstAfter(list, time) {
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (/** @type {{ end: number }} */ (list[middle]).end < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** 4 min, 2 min 30 s, 3 h. @param {number} ms */
export const minutes = (ms) => duration(ms).replace(/ 0 (?:s|min)$/, "");

/** The kind of a span in words. @param {SpanKind} kind */
export const kindInWords = (kind) => ({ running: "runs", done: "done", failed: "failed", cut: "cut short", asked: "waits for a person", approved: "approved", rejected: "rejected", retry: "waits to retry", compaction: "compaction" })[/** @type {"done"} */ (kind)] ?? inWords(kind);

/** @param {Mark["kind"]} kind */
export const markInWords = (kind) => MARKS[kind];
