// @ts-check
// The moment that is shown, in a line: which event, when, what it was; and in a few figures.

import { cost, duration, grouped, inWords, short, summary } from "../model/words.js";
import { h, say } from "./dom.js";

/** @import { InspectorFrame } from "../../inspector.js" */
/** @import { InspectorLog } from "../model/log.js" */

export class MomentLine {
  constructor() {
    this.where = h("span", { class: "where" });
    this.happened = h("span", { class: "event" });
    this.facts = h("div", { class: "facts", part: "facts" });
    /** All of it, for a screen reader. */
    this.text = "";
  }

  clear() {
    say(this.where, "No run yet");
    this.happened.replaceChildren();
    this.facts.replaceChildren();
  }

  /** @param {InspectorLog} log @param {InspectorFrame} frame @param {number} zero from when on times are told */
  show(log, frame, zero) {
    const { n, at, event, usage, phase } = frame;
    const time = n > log.first ? duration(at - zero) : "0 s";
    const what = event ? short(summary(event)) : "";
    const type = event?.type ?? "before the first event";
    this.text = `event ${n} of ${log.end}, ${time}: ${type} ${what}`;
    say(this.where, `${grouped(n)} of ${grouped(log.end)} · ${time}`);
    this.happened.replaceChildren(h("code", {}, type), what && ` ${what}`);
    const facts = [
      h("span", { class: "phase", "data-phase": phase }, frame.isRunning ? phase : frame.stopReason ? inWords(frame.stopReason) : "idle"),
      frame.isRunning && h("span", {}, `turn ${frame.turnIndex}`),
      h("span", {}, `${grouped(usage.input + usage.cacheRead + usage.cacheWrite)} tokens in`), h("span", {}, `${grouped(usage.output)} out`),
      usage.cost !== undefined && h("span", {}, `cost ${cost(usage.cost)}`),
      frame.pendingQuestions.length > 0 && h("span", {}, `${frame.pendingQuestions.length} to decide`),
      frame.error && h("span", { class: "bad" }, frame.error.code),
    ];
    this.facts.replaceChildren(.../** @type {Node[]} */ (facts.filter(Boolean)));
  }
}
