// @ts-check
// What the engine itself waits for, and is no step: decisions of people, and delays between attempts. They come whenever they
// like, and in another life at another time. So that they enter at the same place again, they ride in the record of the next step
// that ends, like mail; an engine that fixes the order of results fixes theirs too.

import { arrived } from "./step.js";

/** @import { Journal } from "./journal.js" */
/** @import { RunSteps } from "./run.js" */
/** A decision, or why there is none. @typedef {{ value?: any, error?: string }} Answer */
/** One that has come. @typedef {{ name: string, arrival: number, answer: Answer }} Come */
/** @typedef {{ steps: RunSteps, enter(answer: Answer): void, arrival: number, answer?: Answer, isRiding?: boolean }} Waiting */

export class Outside {
  /** @param {Journal} journal */
  constructor(journal) {
    this.journal = journal;
    /** @type {Map<string, Waiting>} */
    this.waiting = new Map();
  }

  get size() {
    return this.waiting.size;
  }

  /** @returns {Come[]} */
  get come() {
    return [...this.waiting].flatMap(([name, { arrival, answer }]) => (answer ? [{ name, arrival, answer }] : []));
  }

  /** Waits for a promise of the engine. @param {RunSteps} steps @param {string} name @param {Promise<Answer>} promise @param {(answer: Answer) => void} enter */
  add(steps, name, promise, enter) {
    /** @type {Waiting} */
    const one = { steps, enter, arrival: 0 };
    this.waiting.set(name, one);
    promise.then((answer) => {
      one.answer = answer;
      one.arrival = arrived();
      this.journal.pump();
    });
  }

  /** Nobody waits any more. @param {string} name */
  drop(name) {
    this.waiting.delete(name);
  }

  /** @param {string} name @param {Answer} answer */
  enter(name, answer) {
    const one = this.waiting.get(name);
    this.waiting.delete(name);
    one?.enter(answer);
    this.journal.pump();
  }

  /** All open steps are at work in this process: what has come rides in the record of the first that ends. */
  ride() {
    for (const [name, one] of this.waiting) {
      if (!one.answer || one.isRiding) continue;
      one.isRiding = true;
      this.journal.note(one.steps, { kind: "come", name, answer: one.answer }, () => this.enter(name, /** @type {Answer} */ (one.answer)));
    }
  }

  /**
   * No step is open. The only one that can come may enter; of several, a step says which did.
   * @param {RunSteps | undefined} outermost
   */
  comesIn(outermost) {
    const [first] = this.come;
    if (!first) return false;
    if (this.size === 1) this.enter(first.name, first.answer);
    else {
      this.ride();
      outermost?.waitForMail();
    }
    return true;
  }
}
