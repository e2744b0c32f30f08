// @ts-check
// What the inspector shows until somebody asks: a recorded run that plays.

import { byId } from "./dom.js";
import { RecordedRun } from "./recorded.js";
import { OPENING } from "./suggestions.js";

/** @typedef {import("../npm/inspector.js").TurnwheelInspector} Inspector */

export class Opening {
  /** @param {Inspector} inspector @param {typeof import("../npm/inspector.js").InspectorLog} InspectorLog @param {HTMLTextAreaElement} box in which the question stands */
  constructor(inspector, InspectorLog, box) {
    this.inspector = inspector;
    this.InspectorLog = InspectorLog;
    this.isOpen = false;
    this.title = byId("timeline-title", HTMLElement);
    this.button = byId("play", HTMLButtonElement);
    this.button.addEventListener("click", () => this.#toggle());
    this.isCalm = matchMedia("(prefers-reduced-motion: reduce)");
    this.box = box;
    /** Whether nobody has done anything in the box: then what is typed replaces the question. */
    this.isUntouched = true;
    const touched = () => void (this.isUntouched = false);
    box.addEventListener("pointerdown", touched);
    box.addEventListener("keydown", ({ key }) => void (/^(Arrow|Home|End|Backspace|Delete)/.test(key) && touched()));
    box.addEventListener("beforeinput", ({ inputType }) => {
      if (this.isOpen && this.isUntouched && inputType.startsWith("insert") && inputType !== "insertLineBreak" && box.value === OPENING) box.value = "";
      touched();
    });
    /** @type {RecordedRun | undefined} */
    this.run = undefined;
    /** @type {"playing" | "over"} */
    this.state = "over";
  }

  /** Whether the question stands in the box as it was put there. */
  get isOffered() {
    return this.isOpen && this.box.value === OPENING;
  }

  /** Plays the recorded run; for whoever wants less motion, shows it as it ended. */
  begin() {
    this.isOpen = this.isUntouched = true;
    this.box.value ||= OPENING;
    this.title.textContent = "A recorded run";
    byId("elapsed", HTMLElement).textContent = "drag the slider to look inside";
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
    // It also stands there in a tab that comes to a run that is on, where it would steer.
    if (this.box.value === OPENING && this.isUntouched) this.box.value = "";
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
        this.button.textContent = state === "playing" ? "Stop" : "Play again";
        this.button.dataset["state"] = state;
      },
    }));
  }
}
