// @ts-check
// The open questions of an agent in this process, and which of all its questions the host decides.

import { PendingApprovals } from "../shared.js";

/** @import { Question } from "../index.js" */

/** How many questions of the host are remembered after their answers. */
const MOST_HIDDEN = 10_000;

export class Questions extends PendingApprovals {
  /** @param {(question: Question) => boolean} isForPeople whether a question waits for a person */
  constructor(isForPeople) {
    super();
    this.isForPeople = isForPeople;
    /** The questions that the host decides. A later reader of the events needs them. @type {Set<string>} */
    this.hidden = new Set();
  }

  /** @override @param {Question} question */
  add(question) {
    super.add(question);
    if (this.isForPeople(question)) return;
    this.hidden.add(question.id);
    if (this.hidden.size > MOST_HIDDEN) for (const oldest of this.hidden) return void this.hidden.delete(oldest);
  }
}
