// @ts-check
// What listeners are told of an agent: its events, with what each did to the history, and snapshots for those who come
// late.

import { joinTexts, noUsage } from "../shared.js";
import { SaidMessages } from "../remote/history-change.js";
import { sse } from "../response/sse.js";
import { Letters } from "./letters.js";
import { questionsOf } from "./questions.js";
import { Window } from "./window.js";

/** @import { Agent, AgentEvent, AgentMessage, AssistantMessage, ErrorInfo, Receipt, Usage } from "../index.js" */
/** @import { AgentEnd } from "../shared.js" */
/** @import { HistoryChange, MessageRef } from "../remote/history-change.js" */
/** @import { Snapshot } from "../remote/mirror.js" */
/** @import { EventLog } from "../server.js" */
/** @typedef {{ list: readonly AgentMessage[], length: number }} SentHistory */
/**
 * Where a new listener starts: at the beginning of the current run, or of one of its turns.
 * @typedef {SentHistory & { at: number, appended: number, usage: Usage, run: NonNullable<Snapshot["run"]> }} Base
 */

const MAX_RUN_IDS = 10_000;
/** Why a run ended, once nothing that was said in it may be told. @type {ErrorInfo} */
const FORGOTTEN = { code: "aborted", message: "the agent was reset", retryable: false };

export class Feed {
  /** @param {Agent} agent @param {EventLog} log @param {{ events: number, logBytes: number }} limits */
  constructor(agent, log, limits) {
    this.agent = agent;
    this.log = log;
    this.window = new Window(log, limits);
    this.letters = new Letters();
    /** How much of the history was sent. Unset if another instance sent it. @type {SentHistory | undefined} */
    this.sent = log.last > log.first ? undefined : { list: agent.messages, length: agent.messages.length };
    /** The last message of the conversation when it was last looked at. */
    this.newest = agent.messages.at(-1);
    /** Called before the log forgets everything. @type {() => void} */
    this.onForget = () => {};
    /** Called when it is known what became of a posted message. @type {(id: string, receipt: Awaited<Receipt>) => void} */
    this.onSettled = () => {};
    /** Called after something was appended. @type {() => void} */
    this.onAppend = () => {};
    /** Called when not even a state could be kept in place of events. @type {() => void} */
    this.onUnkept = () => {};
    /** How often the conversation was forgotten. */
    this.resets = 0;
    /** The run that a reset stopped: what it still has to say belongs to a conversation that is forgotten. */
    this.forgottenRun = "";
    /** The ids of the runs so far; of very many, the newest. @type {Set<string>} */
    this.runIds = new Set();
    /** The text of the last snapshot, which listeners share. */
    this.shown = { key: "", text: "" };
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
    if (event.type === "history_rewound") return this.append("message", event, this.#historyChange());
    this.catchUp();
    if (event.type === "agent_start" && event.runId === this.forgottenRun) this.forgottenRun = "";
    if (event.runId === this.forgottenRun) return;
    const { agent, sent, run } = this;
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
  }

  /** @param {Extract<AgentEvent, { type: "agent_start" | "run_resumed" }>} event @param {SentHistory} before */
  #beginRun(event, before) {
    const { runId } = event;
    const isResumed = event.type === "run_resumed";
    this.runIds.add(runId);
    if (this.runIds.size > MAX_RUN_IDS) this.runIds.delete(/** @type {string} */ (this.runIds.values().next().value));
    this.run = { runId, count: 0, turnIndex: isResumed ? event.turnIndex : 0 };
    this.base = { at: this.log.last, appended: this.window.appended, ...before, usage: this.agent.usage, run: { runId, told: isResumed ? null : 0 } };
  }

  /** A listener that joins a long run starts at one of its turns. @param {number} turnIndex */
  #endTurn(turnIndex) {
    const { log, base, sent, run, window } = this;
    const { maxEvents, maxBytes, appended } = window;
    this.said.endTurn();
    if (!base || !sent || (log.last - base.at <= maxEvents / 4 && appended - base.appended <= maxBytes / 4)) return;
    this.base = { at: log.last, appended, ...sent, usage: this.agent.usage, run: { runId: run.runId, told: run.count, turnIndex: turnIndex + 1 } };
  }

  /** Returns whether it could be kept. @param {string} type @param {unknown} value @param {HistoryChange} [history] */
  append(type, value, history) {
    const entry = { id: this.log.last + 1, type, data: JSON.stringify(value), ...(history && { history: JSON.stringify(history) }) };
    let isKept = true;
    try {
      this.log.append(entry);
      this.window.count(entry);
      this.window.trim();
    } catch (error) {
      this.hasGap = true;
      isKept = false;
      console.error("turnwheel: an event could not be kept", error);
    }
    this.wake();
    if (isKept) this.onAppend();
    return isKept;
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
    this.newest = list.at(-1);
    return isSame ? undefined : { at, add: list.slice(at).map((message) => said.refTo(message)) };
  }

  // ---- snapshots

  /** Forgets a conversation that the agent does not have any more; sends a snapshot in place of events that could not be stored. */
  catchUp() {
    if (this.#isForgotten()) this.reset();
    if (!this.hasGap) return;
    this.hasGap = false;
    const { agent, run, ended } = this;
    const { messages, usage } = agent;
    const isRunning = run.runId !== "" && ended?.runId !== run.runId;
    // The listeners' history is now this list, and later changes must not refer to earlier events.
    this.sent = { list: messages, length: messages.length };
    this.said.clear();
    const isKept = this.append("state", { messages, ...questionsOf(agent), usage, ...this.letters.told(), ended, ...(isRunning && { run: { runId: run.runId, told: null, turnIndex: run.turnIndex } }) });
    if (!isKept) this.onUnkept();
  }

  /** The agent as a new listener must see it, and the event after which it goes on from there. */
  snapshot() {
    const { agent, base, ended, log } = this;
    const letters = this.letters.told();
    if (base && base.at >= log.first) {
      const { list, length, usage, run, at } = base;
      return { at, state: { messages: list.slice(0, length), pendingApprovals: [], usage, run, ...letters, ended } };
    }
    const { messages, usage } = agent;
    // The start of this turn is no longer stored, so later changes must not refer to it.
    if (base) this.said.clear();
    const run = base && { ...base.run, told: base.run.told === null ? null : this.run.count, turnIndex: this.run.turnIndex };
    return { at: log.last, state: { messages, ...questionsOf(agent), usage, run, ...letters, ended } };
  }

  /** A snapshot as it is sent, which is long: those who need the same one share its text. */
  snapshotText() {
    const { at, state } = this.snapshot();
    const key = `${at} ${this.log.last} ${state.openLetters.join()}`;
    if (this.hasGap || this.shown.key !== key) this.shown = { key, text: sse(at, JSON.stringify(state), "state") };
    return { at, text: this.shown.text };
  }

  // ---- forgetting

  /** Whether nothing is left of the conversation that the listeners were told of: the agent was reset, by a command or by its host. */
  #isForgotten() {
    const { newest, sent, agent } = this;
    if (newest === undefined) return false;
    const list = agent.messages;
    // As long as a list grows, nothing of it is gone. One that was compacted still has its newest messages, and one whose last
    // answer was aborted its first.
    return sent?.list === list && list.length >= sent.length ? false : !list.includes(newest) && (list.length === 0 || list[0] !== sent?.list[0]);
  }

  /** The agent was reset: nobody can read any more what was said before, from wherever they continue. */
  reset() {
    const { log, run, ended } = this;
    const { messages, usage } = this.agent;
    for (const { id } of this.letters.foreign()) this.settle(id, { delivered: false, reason: "cleared" });
    const isStopped = run.runId !== "" && ended?.runId !== run.runId;
    this.forgottenRun = isStopped ? run.runId : "";
    // Who still waits for the end of a run learns how it ended, and nothing of what was said in it.
    const end = isStopped ? { runId: run.runId, stopReason: /** @type {const} */ ("aborted"), usage: noUsage(), turns: run.turnIndex } : ended;
    this.base = undefined;
    this.ended = end && { type: "agent_end", runId: end.runId, at: Date.now(), messages: 0, stopReason: end.stopReason, usage: end.usage, turns: end.turns, ...(end.stopReason !== "completed" && { error: FORGOTTEN }) };
    this.run = { runId: "", count: 0, turnIndex: 0 };
    this.said.clear();
    this.resets += 1;
    this.shown = { key: "", text: "" };
    this.sent = { list: messages, length: messages.length };
    this.newest = messages.at(-1);
    this.forgetTo(log.last);
    this.onForget();
    this.append("state", { messages, ...questionsOf(this.agent), usage, ...this.letters.told(), ended: this.ended });
  }

  /** Nobody can continue before this id any more. @param {number} id */
  forgetTo(id) {
    if (this.log.last < id) this.append("command", {});
    this.window.trimTo(id);
  }

  // ---- receipts

  /** @param {string} id @param {Awaited<Receipt>} receipt */
  settle(id, receipt) {
    if (!this.letters.remove(id)) return;
    this.letters.settle(id, receipt);
    this.append("receipt", { id, receipt });
    this.onSettled(id, receipt);
  }

  /** Settles messages that the agent had read when another instance ended, before that could be told. */
  settleRead() {
    const { messages } = this.agent;
    const foreign = this.letters.foreign();
    if (foreign.length === 0) return;
    const isWaiting = waitingIn(this.agent);
    for (const { id, text, from } of foreign) {
      const at = messages.findIndex((message, i) => i >= from && message.role === "user" && JSON.stringify(message.content) === text);
      if (at < 0 && !isWaiting(text)) this.settle(id, { delivered: false, reason: "lost" });
      if (at >= 0) this.settle(id, { delivered: true, turnIndex: messages.slice(from, at).filter(({ role }) => role === "assistant").length });
    }
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

/** Says whether a message with this content waits in the agent, which may have been restored without it. @param {Agent} agent */
function waitingIn(agent) {
  const { mail = [], run } = /** @type {any} */ (agent.checkpoint?.())?.metadata?.turnwheel ?? {};
  const letters = [...mail.map((/** @type {any} */ { letter }) => letter), ...(run?.steering ?? []), ...(run?.followUp ?? []), ...(run?.pending ?? [])];
  const texts = new Set(letters.map((letter) => JSON.stringify(letter?.message?.content ?? letter?.message)));
  return (/** @type {string | undefined} */ text) => agent.checkpoint === undefined || texts.has(String(text));
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
