// @ts-check
// What listeners are told of an agent: its events, with what each did to the history, and snapshots for those who come
// late.

import { joinTexts } from "../shared.js";
import { SaidMessages } from "../remote/history-change.js";
import { Letters } from "./letters.js";

/** @import { Agent, AgentEvent, AgentMessage, AssistantMessage, Receipt, Usage } from "../index.js" */
/** @import { AgentEnd } from "../shared.js" */
/** @import { HistoryChange, MessageRef } from "../remote/history-change.js" */
/** @import { Snapshot } from "../remote/mirror.js" */
/** @import { EventLog } from "../server.js" */
/** @typedef {{ list: readonly AgentMessage[], length: number }} SentHistory */
/**
 * Where a new listener starts: at the beginning of the current run, or of one of its turns.
 * @typedef {SentHistory & { at: number, usage: Usage, run: NonNullable<Snapshot["run"]> }} Base
 */

export class Feed {
  /** @param {Agent} agent @param {EventLog} log @param {number} maxEvents */
  constructor(agent, log, maxEvents) {
    this.agent = agent;
    this.log = log;
    this.maxEvents = maxEvents;
    this.letters = new Letters();
    /** How much of the history was sent. Unset if another instance sent it. @type {SentHistory | undefined} */
    this.sent = log.last > log.first ? undefined : { list: agent.messages, length: agent.messages.length };
    this.said = new SaidMessages();
    /** @type {Base | undefined} */
    this.base = undefined;
    /** The end of the last run. @type {Snapshot["ended"]} */
    this.ended = undefined;
    /** The current run, and how many of its events were sent. */
    this.run = { runId: "", count: 0, turnIndex: 0 };
    /** Whether an event could not be stored, so that listeners need a full snapshot. */
    this.hasGap = false;
    /** Callbacks waiting for the next event. @type {Set<() => void>} */
    this.waiting = new Set();
  }

  wake() {
    for (const wake of this.waiting) wake();
    this.waiting.clear();
  }

  // ---- events

  /** @param {AgentEvent} event */
  take(event) {
    this.catchUp();
    const { log, agent, sent, run } = this;
    if (event.type === "agent_start" || event.type === "run_resumed") this.#beginRun(event, { list: sent?.list ?? agent.messages, length: sent?.length ?? agent.messages.length });
    this.said.take(event);
    this.run.count += 1;
    const change = this.#historyChange();
    this.append("message", event.type === "agent_end" ? { ...event, ...outputOf(agent, event) } : event, change);
    if (event.type === "turn_end") this.#endTurn(event.turnIndex);
    else if (event.type === "turn_start") run.turnIndex = event.turnIndex;
    else if (event.type === "agent_end") {
      this.base = undefined;
      this.ended = { ...event, messages: event.messages.length };
    }
    this.#settleByText(change?.add ?? []);
    if (log.last - log.first > this.maxEvents * 1.25) log.trim(log.last - this.maxEvents);
  }

  /** @param {Extract<AgentEvent, { type: "agent_start" | "run_resumed" }>} event @param {SentHistory} before */
  #beginRun(event, before) {
    const { runId } = event;
    const isResumed = event.type === "run_resumed";
    this.run = { runId, count: 0, turnIndex: isResumed ? event.turnIndex : 0 };
    this.base = { at: this.log.last, ...before, usage: this.agent.usage, run: { runId, told: isResumed ? null : 0 } };
  }

  /** A listener that joins a long run starts at one of its turns. @param {number} turnIndex */
  #endTurn(turnIndex) {
    const { log, base, sent, run } = this;
    this.said.endTurn();
    if (!base || !sent || log.last - base.at <= this.maxEvents / 4) return;
    this.base = { at: log.last, ...sent, usage: this.agent.usage, run: { runId: run.runId, told: run.count, turnIndex: turnIndex + 1 } };
  }

  /** @param {string} type @param {unknown} value @param {HistoryChange} [history] */
  append(type, value, history) {
    try {
      this.log.append({ id: this.log.last + 1, type, data: JSON.stringify(value), ...(history && { history: JSON.stringify(history) }) });
    } catch (error) {
      this.hasGap = true;
      return console.error("turnwheel: an event could not be kept", error);
    }
    this.wake();
  }

  /**
   * Returns how the history changed since the last event. Messages that the events carry
   * themselves are only referred to.
   * @returns {HistoryChange | undefined}
   */
  #historyChange() {
    const { sent, said } = this;
    const list = this.agent.messages;
    let at = sent?.length ?? 0;
    if (sent && sent.list !== list) {
      const shortest = Math.min(sent.length, list.length);
      for (at = 0; at < shortest && sent.list[at] === list[at]; ) at += 1;
    }
    const isSame = sent !== undefined && at === sent.length && list.length === at;
    this.sent = { list, length: list.length };
    return isSame ? undefined : { at, add: list.slice(at).map((message) => said.refTo(message)) };
  }

  // ---- snapshots

  /** Sends a snapshot of the agent in place of events that could not be stored. */
  catchUp() {
    if (!this.hasGap) return;
    this.hasGap = false;
    const { agent, run, ended } = this;
    const { messages, pendingApprovals, usage } = agent;
    const isRunning = run.runId !== "" && ended?.runId !== run.runId;
    // The listeners' history is now this list, and later changes must not refer to earlier events.
    this.sent = { list: messages, length: messages.length };
    this.said.clear();
    this.append("state", { messages, pendingApprovals, usage, openLetters: this.letters.ids(), ended, ...(isRunning && { run: { runId: run.runId, told: null, turnIndex: run.turnIndex } }) });
  }

  /** The agent as a new listener must see it, and the event after which it goes on from there. */
  snapshot() {
    const { agent, base, ended, log } = this;
    const openLetters = this.letters.ids();
    if (base && base.at >= log.first) {
      const { list, length, usage, run, at } = base;
      return { at, state: { messages: list.slice(0, length), pendingApprovals: [], usage, run, openLetters, ended } };
    }
    const { messages, pendingApprovals, usage } = agent;
    // The start of this turn is no longer stored, so later changes must not refer to it.
    if (base) this.said.clear();
    const run = base && { ...base.run, told: base.run.told === null ? null : this.run.count, turnIndex: this.run.turnIndex };
    return { at: log.last, state: { messages, pendingApprovals, usage, run, openLetters, ended } };
  }

  /** The agent was reset. */
  reset() {
    const { messages, pendingApprovals, usage } = this.agent;
    this.base = undefined;
    this.sent = { list: messages, length: 0 };
    this.append("state", { messages, pendingApprovals, usage, openLetters: [] });
  }

  // ---- receipts

  /** @param {string} id @param {Awaited<Receipt>} receipt */
  settle(id, receipt) {
    if (this.letters.remove(id)) this.append("receipt", { id, receipt });
  }

  /**
   * Settles messages that another instance posted: its receipts are gone, so texts are compared.
   * @param {MessageRef[]} added
   */
  #settleByText(added) {
    for (const message of added) {
      if (typeof message === "string" || message.role !== "user") continue;
      const text = JSON.stringify(message.content);
      const letter = this.letters.foreign().find((each) => each.text === text);
      if (letter) this.settle(letter.id, { delivered: true, turnIndex: this.run.turnIndex });
    }
  }
}

/** The structured answer, if it is the text of the last answer. @param {Agent} agent @param {AgentEnd} event */
function outputOf(agent, { messages, stopReason }) {
  if (agent.output === undefined || stopReason !== "completed") return {};
  const answer = /** @type {AssistantMessage | undefined} */ (messages.findLast(({ role }) => role === "assistant"));
  try {
    return { output: JSON.parse(joinTexts(answer?.content ?? [])) };
  } catch {
    return {};
  }
}
