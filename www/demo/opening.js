// @ts-check
// What the inspector shows until somebody asks: a recorded run that plays.

import { byId } from "./dom.js";
import { RecordedRun } from "./recorded.js";
import { OPENING } from "./suggestions.js";

/** @typedef {import("../npm/inspector.js").TurnwheelInspector} Inspector */

export class Opening {
  /** @param {Inspector} inspector @param {typeof import("../npm/inspector.js").InspectorLog} InspectorLog */
  constructor(inspector, InspectorLog) {
    this.inspector = inspector;
    this.InspectorLog = InspectorLog;
    this.question = OPENING;
    this.isOpen = false;
    this.title = byId("timeline-title", HTMLElement);
    this.button = byId("play", HTMLButtonElement);
    this.button.addEventListener("click", () => this.#toggle());
    this.isCalm = matchMedia("(prefers-reduced-motion: reduce)");
    /** @type {RecordedRun | undefined} */
    this.run = undefined;
    /** @type {"playing" | "over"} */
    this.state = "over";
  }

  /** Plays the recorded run; for whoever wants less motion, shows it as it ended. */
  begin() {
    this.isOpen = true;
    this.title.textContent = "A recorded run";
    this.button.hidden = false;
    void this.#load().then((run) => {
      if (!this.isOpen) return;
      if (this.isCalm.matches) run.whole();
      else void run.play();
    }, () => {
      // Without its recording the page begins with an empty timeline.
      this.button.hidden = true;
    });
  }

  end() {
    this.isOpen = false;
    this.run?.stop();
    this.title.textContent = "Timeline";
    this.button.hidden = true;
  }

  #toggle() {
    if (this.state === "playing") this.run?.stop();
    else void this.run?.play();
  }

  async #load() {
    if (this.run) return this.run;
    const recorded = await (await fetch("./recorded.json")).json();
    return (this.run ??= new RecordedRun(recorded, {
      InspectorLog: this.InspectorLog,
      show: (log) => void (this.inspector.source = log),
      onState: (state) => {
        this.state = state;
        this.button.textContent = state === "playing" ? "Pause" : "Play again";
        this.button.dataset["state"] = state;
      },
    }));
  }
}
