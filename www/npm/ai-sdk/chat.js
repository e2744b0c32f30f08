// @ts-check
// The transport of a useChat that is in the same page as its agent.

import { fromUIMessages } from "../server/fromuimessages.js";
import { checkNames, isForPeople, kindOf, misuse } from "../shared.js";
import { Recording } from "./recording.js";

/** @import { Agent, AgentEvent, AgentMessage, AgentRun, ToolCallAnswer, ToolDecision, UserMessage } from "../index.js" */
/** @import { ChatTransportLike, ChatTransportOptions } from "../ai-sdk.js" */

/** @typedef {{ prompt: UserMessage | undefined, decisions: { [id: string]: ToolDecision }, answers?: { [id: string]: ToolCallAnswer }, before: AgentMessage[], change: "again" | "anew" | undefined, signal: AbortSignal | undefined }} Posted */

const OPTIONS = ["messageMetadata", "onError", "toolOutput", "whileRunning"];

/** @param {any} agent an Agent or a RemoteAgent @param {ChatTransportOptions} [options] @returns {ChatTransportLike} */
export function chatTransport(agent, options = {}) {
  if (typeof agent?.prompt !== "function" || typeof agent.subscribe !== "function") throw misuse(`chatTransport takes an agent, got ${kindOf(agent)}`);
  checkNames("chatTransport: unknown option", options, OPTIONS);
  const { whileRunning = "steer" } = options;
  if (whileRunning !== "steer" && whileRunning !== "followUp") throw misuse(`chatTransport: \`whileRunning\` must be "steer" or "followUp", got ${JSON.stringify(whileRunning)}`);
  const chat = new Chat(agent, options, whileRunning);
  return {
    resumeStreamIsReplay: true,
    sendMessages: (request) => chat.send(request),
    reconnectToStream: ({ abortSignal }) => chat.reconnect(abortSignal),
  };
}

/** One conversation, which the agent keeps and the AI SDK sends whole each time. */
class Chat {
  /** @param {Agent} agent @param {ChatTransportOptions} options @param {"steer" | "followUp"} whileRunning */
  constructor(agent, options, whileRunning) {
    this.agent = agent;
    this.options = options;
    this.whileRunning = whileRunning;
    /** The last run of the agent, also one that the chat did not begin. @type {Recording | undefined} */
    this.recording = undefined;
    /** Ends listening to an agent elsewhere, which is heard only while a chat needs it. @type {(() => void) | undefined} */
    this.leave = undefined;
    if (!isElsewhere(agent)) agent.subscribe((event) => this.#hear(event), { keep: true });
  }

  /** Called when a run is heard of that is not known yet. */
  #begun = () => {};

  /** A run begins that the chat did not begin: the app's, another tab's, one of a checkpoint. @param {AgentEvent} event */
  #hear(event) {
    const { agent, recording } = this;
    // The first event that is heard of it: of one elsewhere it may be in the middle.
    const isNew = event.runId !== "" && event.type !== "agent_end" && recording?.run.runId !== event.runId;
    if (isNew) this.recording = new Recording(agent, runOf(agent, event.runId), this.options, event.type === "agent_start" ? `${event.runId}/0` : null, [event]);
    if (isNew) this.#begun();
    if (event.type === "agent_end" && this.leave) {
      this.leave();
      this.leave = undefined;
    }
  }

  /** Of a run elsewhere that others began, nothing may have been heard yet. */
  async #heard() {
    if (!isElsewhere(this.agent) || (this.recording && !this.recording.isOver)) return;
    await Promise.race([new Promise((heard) => (this.#begun = () => heard(undefined))), this.agent.waitForIdle()]);
  }

  /** What goes on elsewhere is known once it was asked for. */
  async #follow() {
    if (!isElsewhere(this.agent)) return;
    this.leave ??= this.agent.subscribe((event) => this.#hear(event), { keep: true });
    await this.agent.ready();
    if (this.agent.isRunning) return;
    this.leave?.();
    this.leave = undefined;
  }

  /** @param {{ trigger: string, messageId?: string | undefined, messages: any[], abortSignal?: AbortSignal | undefined }} request */
  send({ trigger, messageId, messages, abortSignal }) {
    const { prompt, decisions, answers, messages: before } = fromUIMessages(messages, { agent: this.agent });
    const change = trigger === "regenerate-message" ? "again" : messageId !== undefined ? "anew" : undefined;
    return this.#submit({ prompt, decisions, answers, before, change, signal: abortSignal });
  }

  /**
   * What the AI SDK has posted, in turnwheel's words. `change`: the prompt is the answered one again, or stands for another.
   * @param {Posted} posted
   */
  async #submit({ prompt, decisions, answers = {}, before, change, signal: abortSignal }) {
    if (!this.recording || this.recording.isOver) await this.#follow();
    if (!prompt) return this.#decide(decisions, answers, abortSignal);
    // A run that was stopped may not have ended yet; of one whose beginning changes nobody wants the end.
    if (this.agent.isRunning && (change || this.recording?.isStopped)) {
      this.agent.abort("the conversation continues elsewhere");
      await this.agent.waitForIdle();
    }
    if (change) await this.#cut(prompt, before, change === "again");
    if (this.agent.isRunning) return this.#interrupt(prompt, abortSignal);
    return this.#begin(this.agent.prompt(prompt), undefined).stream({ signal: abortSignal });
  }

  /** @param {AbortSignal | undefined} signal */
  async reconnect(signal) {
    if (!this.recording || this.recording.isOver) await this.#follow();
    if (this.agent.isRunning) await this.#heard();
    return this.agent.isRunning && this.recording && !this.recording.isOver ? this.recording.stream({ signal, isReplay: true }) : null;
  }

  /** @param {AgentRun<any>} run @param {string | null | undefined} id of the message; null: it goes on with the last one */
  #begin(run, id) {
    return (this.recording = new Recording(this.agent, run, this.options, id === undefined ? `${run.runId}/0` : id));
  }

  /**
   * A person answered questions, or the page gave results of calls.
   * @param {{ [id: string]: ToolDecision }} decisions @param {{ [id: string]: ToolCallAnswer }} outputs @param {AbortSignal | undefined} signal
   */
  async #decide(decisions, outputs, signal) {
    const { agent } = this;
    const open = new Set(agent.pendingQuestions.map(({ id }) => id));
    const decided = Object.entries(decisions).filter(([id]) => open.has(id));
    const answers = [...decided, ...Object.entries(outputs)];
    // An empty answer would be sent again and again by a chat that sends by itself.
    if (answers.length === 0) throw misuse("nothing of what was posted is new: the last message is no message of the user, and answers no open question");
    // Elsewhere, an answer may come too late.
    if (decided.length > 0) await agent.resolveTools(Object.fromEntries(decided));
    for (const [id, output] of Object.entries(outputs)) await agent.resolve(id, output);
    // A run of a checkpoint goes on with the message that the page has restored.
    const recording = agent.isRunning ? this.recording : this.#begin(agent.continue(), null);
    return recording ? recording.stream({ signal, answered: answers.map(([id]) => id) }) : empty();
  }

  /**
   * A message while the run goes on: what was there before it ends with the turn in which it is read, and the rest of the run is its
   * answer.
   * @param {UserMessage} prompt @param {AbortSignal | undefined} signal
   */
  async #interrupt(prompt, signal) {
    const receipt = this.agent[this.whileRunning](prompt);
    await this.#heard();
    const { recording } = this;
    if (!recording || recording.isOver) return empty();
    return recording.after(receipt, { signal, orElse: async () => {
      // It came too late.
      await this.agent.waitForIdle();
      return this.#begin(this.agent.prompt(prompt), undefined).stream({ signal });
    } });
  }

  /**
   * Takes back the history from a message of the user on, which is sent again or anew.
   * @param {UserMessage} prompt @param {AgentMessage[]} before the messages that stay, as the page has them @param {boolean} isAgain
   */
  async #cut(prompt, before, isAgain) {
    const to = this.#placeOf(prompt, before, isAgain);
    if (to >= 0) await this.agent.rewind(to);
  }

  /**
   * Where the history has a message of the user that the page sends again, or replaces; −1 if it has none. If the page has another id
   * for it, the place is found by what was said there: the history may have messages that the page does not know.
   * @param {UserMessage} prompt @param {AgentMessage[]} before @param {boolean} isAgain
   */
  #placeOf(prompt, before, isAgain) {
    const { messages } = this.agent;
    const named = messages.findIndex((message) => message.role === "user" && message.id !== undefined && message.id === prompt.id);
    if (named >= 0) return named;
    const users = before.filter(({ role }) => role === "user");
    const last = isAgain ? prompt : users.at(-1);
    if (!last) return messages.findIndex(({ role }) => role === "user");
    const count = [...users, ...(isAgain ? [prompt] : [])].filter((message) => textOf(message) === textOf(last)).length;
    const places = messages.flatMap((message, at) => (textOf(message) === textOf(last) ? [at] : []));
    const place = places[count - 1] ?? places.at(-1) ?? -1;
    return isAgain || place < 0 ? place : messages.findIndex(({ role }, at) => role === "user" && at > place);
  }
}

/** Whether an agent is one elsewhere, which must be asked what it does. @param {any} agent @returns {agent is import("../remote.js").RemoteAgent} */
const isElsewhere = (agent) => typeof agent.ready === "function";

/** A run that somebody else began, as far as a chat needs it. @param {any} agent @param {string} runId */
const runOf = (agent, runId) => ({
  runId,
  abort: (/** @type {unknown} */ reason) => agent.abort(reason),
  isForPeople: (/** @type {string} */ id) => {
    const question = agent.pendingQuestions.find((/** @type {import("../index.js").Question} */ one) => one.id === id);
    return question === undefined || isForPeople(agent, question);
  },
});

/** What a user said, to compare. @param {AgentMessage} message */
const textOf = (message) => (message.role === "user" ? JSON.stringify(message.content) : undefined);

/** @returns {ReadableStream<never>} */
const empty = () => new ReadableStream({ start: (controller) => controller.close() });
