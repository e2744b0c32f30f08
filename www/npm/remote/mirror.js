// @ts-check
// What is known here of an agent elsewhere: its history, its open approvals, its usage, its run.

import { addUsage, noUsage, PendingApprovals } from "../shared.js";
import { protocolError } from "./check-event.js";
import { SaidMessages } from "./history-change.js";

/** @import { AgentEvent, AgentMessage, Question, Receipt, ToolQuestion, Usage } from "../index.js" */
/** @import { AgentEnd } from "../shared.js" */
/** @import { HistoryChange } from "./history-change.js" */
/**
 * The agent as the server describes it to a new listener. `told` says how many events of the run were sent, or null if
 * nobody knows; `ended` is the end of the last run, with the number of its messages.
 * @typedef {object} Snapshot
 * @property {AgentMessage[]} messages
 * @property {ToolQuestion[]} pendingApprovals
 * @property {Question[]} [pendingQuestions] the others
 * @property {Usage} usage
 * @property {{ runId: string, told: number | null, turnIndex?: number }} [run]
 * @property {{ [id: string]: Awaited<Receipt> }} [receipts] what became of those that were posted last
 * @property {string[]} openLetters the ids of posted messages that nobody has read yet
 * @property {Omit<AgentEnd, "messages"> & { messages: number }} [ended]
 */

export class Mirror {
  constructor() {
    /** @type {readonly AgentMessage[]} */
    this.messages = [];
    this.approvals = new PendingApprovals();
    this.usage = noUsage();
    /** The id of the agent's current run. @type {string | undefined} */
    this.running = undefined;
    /** The id of a run that was started from here and has sent no event yet. @type {string | undefined} */
    this.starting = undefined;
    /** The change to the history that belongs to the next event. @type {HistoryChange | undefined} */
    this.change = undefined;
    this.said = new SaidMessages();
    /** The lengths of the messages as JSON, and their sum. @type {number[]} */
    this.sizes = [];
    this.size = 0;
    /** The length of the questions and results since they were last forgotten. */
    this.loose = 0;
  }

  get isRunning() {
    return this.running !== undefined || this.starting !== undefined;
  }

  /** Nothing of it runs, as far as is known here. */
  stop() {
    this.starting = undefined;
    this.running = undefined;
  }

  /** @param {Snapshot} snapshot */
  replace({ messages, pendingApprovals, pendingQuestions = [], usage, run }) {
    this.messages = messages;
    this.#measure(0, messages);
    this.approvals.replace([...pendingApprovals, ...pendingQuestions]);
    this.usage = usage;
    this.running = run?.runId;
    this.change = undefined;
    this.said.clear();
  }

  /** Throws if the events that nothing takes away grow without end. @param {AgentEvent} event @param {string} data its text @param {number} limit */
  measure({ type }, data, limit) {
    if (type === "agent_start" || type === "run_resumed" || type === "agent_end") this.loose = 0;
    else if (type === "tool_approval_requested" || type === "question_asked" || type === "tool_execution_end") this.loose += data.length;
    if (this.loose > limit) throw protocolError(`the calls of a run have more than ${limit} bytes; see the option \`limits.runBytes\``);
  }

  /** Throws if the history is too long. @param {number} limit */
  checkSize(limit) {
    if (this.size > limit) throw protocolError(`the history of the agent has more than ${limit} bytes; see the option \`limits.historyBytes\``);
  }

  /** Measures the messages that came in place of those from an index on. @param {number} at @param {AgentMessage[]} added */
  #measure(at, added) {
    for (const size of this.sizes.splice(at)) this.size -= size;
    for (const message of added) {
      const size = JSON.stringify(message).length;
      this.sizes.push(size);
      this.size += size;
    }
  }

  /** @param {AgentEvent} event */
  take(event) {
    this.#takeRun(event);
    this.approvals.take(event);
    this.said.take(event);
    this.#takeChange();
    if (event.type === "turn_end") this.said.endTurn();
  }

  /** @param {AgentEvent} event */
  #takeRun(event) {
    const { runId } = event;
    if (event.type === "agent_start" || event.type === "run_resumed") {
      this.running = runId;
      if (this.starting === runId) this.starting = undefined;
      this.said.endTurn();
    } else if (event.type === "agent_end") {
      if (this.running === runId) this.running = undefined;
      if (this.starting === runId) this.starting = undefined;
      this.approvals.replace([]);
      this.usage = addUsage(this.usage, event.usage);
    }
  }

  #takeChange() {
    const { change } = this;
    this.change = undefined;
    if (!change) return;
    const added = change.add.map((ref) => this.said.resolve(ref));
    if (change.at > this.messages.length || added.includes(/** @type {any} */ (undefined))) throw protocolError("the server changed a message of the history that there is not");
    this.messages = [...this.messages.slice(0, change.at), ...added];
    this.#measure(change.at, added);
  }
}
