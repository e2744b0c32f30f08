// @ts-check
// The run that plays before anybody has asked anything: recorded once (record.mjs), and shown in its own time. Whoever wants
// less motion sees it as it ended, and may play it.

import { Heard } from "./heard.js";
import { pause } from "./pause.js";

/** @typedef {import("../npm/index.js").AgentEvent} AgentEvent */
/** @typedef {import("../npm/inspector.js").InspectorLog} InspectorLog */
/** What record.mjs writes: each event with the milliseconds since the one before. @typedef {{ question: string, events: [number, AgentEvent][] }} Recorded */

/** A pause between two events is not longer than this, in milliseconds: nothing on the page waits without a sign of life. */
const LONGEST_MS = 1000;

export class RecordedRun {
  /**
   * @param {Recorded} recorded
   * @param {{ InspectorLog: typeof import("../npm/inspector.js").InspectorLog, show: (log: InspectorLog) => void, onState: (state: "playing" | "over") => void }} page `show` gets a log that is empty and grows
   */
  constructor({ question, events }, { InspectorLog, show, onState }) {
    this.question = question;
    this.events = events;
    this.InspectorLog = InspectorLog;
    this.show = show;
    this.onState = onState;
    /** What ends the playing. @type {AbortController | undefined} */
    this.playing = undefined;
  }

  /** Shows it as it ended. */
  whole() {
    const log = this.#begin();
    for (let index = 0; index < this.events.length; index++) log.next();
    this.show(log.log);
    this.onState("over");
  }

  /** Plays it from its beginning. */
  async play() {
    const log = this.#begin();
    const playing = (this.playing = new AbortController());
    this.show(log.log);
    this.onState("playing");
    try {
      for (const [ms] of this.events) {
        if (ms > 0) await pause(Math.min(ms, LONGEST_MS), playing.signal);
        log.next();
      }
    } catch {
      // Somebody asked a question, or stopped it.
    }
    if (this.playing === playing) this.playing = undefined;
    this.onState("over");
  }

  stop() {
    this.playing?.abort();
    this.playing = undefined;
  }

  /** An empty log, and what puts the next event into it. */
  #begin() {
    this.stop();
    const log = new this.InspectorLog();
    const heard = new Heard();
    let at = Date.now();
    let index = 0;
    heard.say(this.question, at);
    const next = () => {
      const [ms, event] = /** @type {[number, AgentEvent]} */ (this.events[index++]);
      at += Math.min(ms, LONGEST_MS);
      log.push(event, { at, messages: heard.push(event) });
    };
    return { log, next };
  }
}
