// @ts-check
// Which calls were asked about. A client of before names the call and not the question; it is believed only if it cannot
// have seen another question about a call with the same id.

import { RequestError } from "./errors.js";

/** @import { Agent, AgentEvent } from "../index.js" */

/** How many calls are remembered. After these, every decision must name its question. */
const MAX_CALLS = 10_000;

export class AskedCalls {
  /** @param {Agent} agent @param {boolean} hasPast whether clients may have seen questions before */
  constructor(agent, hasPast) {
    this.agent = agent;
    this.hasForgotten = hasPast;
    /** The question about each call. @type {Map<string, string>} */
    this.questions = new Map();
    /** The calls with more than one. @type {Set<string>} */
    this.again = new Set();
    for (const question of agent.pendingApprovals ?? []) this.#note(question);
  }

  /** @param {AgentEvent} event */
  take(event) {
    if (event.type === "tool_approval_requested") this.#note(event);
  }

  /** @param {{ id: string, callId: string }} question */
  #note({ id, callId }) {
    const known = this.questions.get(callId);
    if (known !== undefined && known !== id) this.again.add(callId);
    else if (this.questions.size < MAX_CALLS) this.questions.set(callId, id);
    else this.hasForgotten = true;
  }

  /** Refuses decisions that do not say which question they answer. @param {string[]} keys ids of questions, or of calls */
  check(keys) {
    const open = new Set((this.agent.pendingApprovals ?? []).map(({ id }) => id));
    const unclear = keys.find((key) => !open.has(key) && (this.hasForgotten || this.again.has(key)));
    if (unclear !== undefined) throw new RequestError(409, "misuse", `there may have been more than one question about call ${unclear}; a decision must name the \`question\` that it answers`);
  }
}
