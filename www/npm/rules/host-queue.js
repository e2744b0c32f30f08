// @ts-check
// The host's queues, `getSteeringMessages` and `getFollowUpMessages`. They may answer at once or later; an answer
// that comes later is stored, and its number is passed to the effect that waits for it.

import { complain, messagesOf } from "../core.js";

/** @import { AgentMessage, RunInfo } from "../index.js" */
/** @import { CheckedOptions } from "../options/options.js" */
/** @import { Driver } from "../run/driver.js" */
/** @typedef {"getSteeringMessages" | "getFollowUpMessages"} QueueName */

/** The queues of a run. @param {Driver} run @returns {HostQueues} */
export const queuesOf = ({ memory, core }) => (memory.queues ??= new HostQueues(core.options));

/** The pending answers of a run. */
export class HostQueues {
  /** @param {CheckedOptions} options */
  constructor(options) {
    this.options = options;
    /** @type {Map<number, () => Promise<AgentMessage[]>>} */
    this.answers = new Map();
    this.next = 1;
  }

  /** Asks a queue: for messages, or for the number of a pending answer. @param {QueueName} name @param {RunInfo} about @returns {AgentMessage[] | number} */
  ask(name, about) {
    try {
      const answer = /** @type {any} */ (this.options[name]?.(about));
      if (typeof answer?.then !== "function") return messagesOf(answer);
      const read = Promise.resolve(answer).then(messagesOf).catch((error) => noMessages(name, error));
      return this.#later(() => read);
    } catch (error) {
      return noMessages(name, error);
    }
  }

  /** @param {() => Promise<AgentMessage[]>} answer */
  #later(answer) {
    const number = this.next++;
    this.answers.set(number, answer);
    return number;
  }

  /** Takes a pending answer. @param {number} number */
  take(number) {
    const answer = this.answers.get(number);
    this.answers.delete(number);
    return answer?.();
  }
}

/** What a host queue that failed counts as. @param {QueueName} name @param {unknown} error @returns {AgentMessage[]} */
function noMessages(name, error) {
  complain(`turnwheel: \`${name}\` failed and counts as no messages`, error);
  return [];
}
