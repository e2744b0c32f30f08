// @ts-check
// The state that a UI shows of an agent: built from its events, updated at most once per frame. Independent of
// React.

import { kindOf, misuse } from "../shared.js";
import { makeActions } from "./actions.js";
import { nextFrame } from "./frame.js";
import { ShownState } from "./state.js";

/** @import { AgentMessage, Question, Usage } from "../index.js" */
/** @import { AgentCall, AgentLike, AgentView, ShownMessage, StreamingMessage, UseAgentOptions } from "../react.js" */
/** @typedef {AgentView<AgentLike>} View */
/**
 * An agent may have more than a view needs: a remote one says when its history is known, and most can be disposed of.
 * @typedef {AgentLike & { ready?(): Promise<void>, dispose?(): void, [Symbol.dispose]?(): void }} Agent
 */
/** @typedef {(earlier?: { messages: AgentMessage[] }) => Agent} MakeAgent */

/** How many events are kept; consecutive pieces of one block count as one. */
const MAX_EVENTS = 200;

export class AgentStore {
  /**
   * @param {Agent | MakeAgent} given an agent, or a function that makes one, which is then disposed of with the component
   * @param {UseAgentOptions} [options]
   */
  constructor(given, options = {}) {
    this.make = typeof given === "function" ? given : undefined;
    /** Undefined while the component is gone that the agent was made for. @type {Agent | undefined} */
    this.agent = typeof given === "function" ? given() : given;
    // A function body in braces without a `return` is an easy mistake.
    if (typeof this.agent?.subscribe !== "function") throw misuse(`useAgent takes an agent or a function that makes one, got ${this.make ? "a function that gives " : ""}${kindOf(this.agent)}`);
    /** The agent before this one, which a hidden component has disposed of. @type {Agent | undefined} */
    this.former = undefined;
    this.options = { events: options.events ?? MAX_EVENTS, schedule: options.schedule ?? nextFrame };
    this.listeners = new Listeners();
    this.attachment = new Attachment();
    this.state = new ShownState(this.options.events);
    this.actions = makeActions(this);
    /** The snapshot that is shown. */
    this.shown = this.#view(this.agent);
    const first = this.shown;
    this.subscribe = this.subscribe.bind(this);
    this.getSnapshot = () => this.shown;
    /** The server's page and the browser's first render, which must match it, know of no events. */
    this.getServerSnapshot = () => first;
  }

  /** @param {() => void} listener */
  subscribe(listener) {
    this.listeners.add(listener);
    if (!this.attachment.isAttached) this.#attach();
    // In development React unmounts and remounts every component; only a component still gone a moment later is gone.
    return () => this.listeners.remove(listener, () => this.#detach());
  }

  #attach() {
    let { agent } = this;
    if (!agent) {
      // Remounted after all, by <Activity>: a new agent continues the old one's conversation.
      // The last rendering may lack what the old one said, or kept when it was stopped.
      agent = this.agent = /** @type {MakeAgent} */ (this.make)({ messages: [.../** @type {Agent} */ (this.former).messages] });
      this.state = new ShownState(this.options.events);
    }
    const { state } = this;
    state.catchUp(agent);
    this.attachment.unsubscribe = agent.subscribe((event) => {
      state.take(event);
      this.scheduleUpdate();
    }, { keep: true });
    // The history of a remote agent is known once it has answered.
    agent.ready?.().then(() => this.scheduleUpdate(), (thrown) => {
      state.fail(thrown);
      this.scheduleUpdate();
    });
    this.shown = this.#view(agent);
  }

  #detach() {
    this.attachment.end();
    if (!this.make) return;
    const { agent } = this;
    // Disposing stops a local run; a remote agent's run goes on, without this listener.
    (agent?.[Symbol.dispose ?? Symbol.for("Symbol.dispose")] ?? agent?.dispose)?.call(agent);
    this.former = agent;
    this.agent = undefined;
  }

  /** Schedules an update for the next frame. */
  scheduleUpdate() {
    const { attachment } = this;
    if (!attachment.isAttached || attachment.cancel) return;
    let isShown = false;
    const cancel = this.options.schedule(() => {
      isShown = true;
      attachment.cancel = undefined;
      this.#update();
    });
    // A test may run every frame synchronously.
    if (!isShown) attachment.cancel = cancel;
  }

  #update() {
    if (!this.agent) return;
    const view = this.#view(this.agent);
    if (view === this.shown) return;
    this.shown = view;
    this.listeners.call();
  }

  /** @param {Agent} agent @returns {View} the previous one, if nothing changed */
  #view(agent) {
    const { shown, actions, state } = this;
    const { isRunning } = agent;
    const history = state.history.of(agent.messages);
    const outbox = state.history.waiting();
    const streaming = state.streamingMessage();
    const calls = state.calls.list();
    const pendingApprovals = reuseList(shown?.pendingApprovals, agent.pendingApprovals, (a, b) => a.callId === b.callId && a.id === b.id);
    const pendingQuestions = reuseList(shown?.pendingQuestions, agent.pendingQuestions ?? agent.pendingApprovals, (a, b) => a.id === b.id);
    const usage = reuseUsage(shown?.usage, agent.usage);
    const { error, stopReason, queued } = state;
    const status = statusOf(isRunning, error, pendingQuestions, calls, streaming);
    const view = { agent, history, outbox, streaming, calls, events: state.events.list(), pendingApprovals, pendingQuestions, queued, usage, isRunning, status, error, stopReason };
    if (shown && Object.entries(view).every(([name, value]) => shown[/** @type {keyof View} */ (name)] === value)) return shown;
    /** @type {readonly ShownMessage[] | undefined} */
    let messages;
    return {
      ...view, ...actions,
      // Built on demand: only those who want everything in one array pay for it.
      get messages() {
        return (messages ??= outbox.length === 0 && !streaming ? history : Object.freeze([...history, ...outbox, ...(streaming ? [streaming] : [])]));
      },
    };
  }
}

/** The components that show the state. */
class Listeners {
  constructor() {
    /** @type {Set<() => void>} */
    this.listeners = new Set();
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.leaveTimer = undefined;
  }

  /** @param {() => void} listener */
  add(listener) {
    this.listeners.add(listener);
    clearTimeout(this.leaveTimer);
    this.leaveTimer = undefined;
  }

  /** @param {() => void} listener @param {() => void} left called if nobody comes back in a moment */
  remove(listener, left) {
    this.listeners.delete(listener);
    if (this.listeners.size > 0) return;
    this.leaveTimer ??= setTimeout(() => {
      this.leaveTimer = undefined;
      left();
    }, 0);
  }

  call() {
    for (const listener of [...this.listeners]) listener();
  }
}

/** What a store holds while a component shows it. */
class Attachment {
  constructor() {
    /** Unsubscribes from the agent. @type {(() => void) | undefined} */
    this.unsubscribe = undefined;
    /** Cancels the scheduled frame. @type {(() => void) | undefined} */
    this.cancel = undefined;
  }

  get isAttached() {
    return this.unsubscribe !== undefined;
  }

  end() {
    this.cancel?.();
    this.cancel = undefined;
    this.unsubscribe?.();
    this.unsubscribe = undefined;
  }
}

/**
 * @param {boolean} isRunning @param {unknown} error @param {readonly Question[]} questions
 * @param {readonly AgentCall[]} calls @param {StreamingMessage | undefined} streaming @returns {View["status"]}
 */
function statusOf(isRunning, error, questions, calls, streaming) {
  if (!isRunning) return error ? "error" : "idle";
  // A call that runs may wait for a person itself.
  const asking = new Set(questions.map(({ path, callId }) => path?.[0] ?? callId));
  if (calls.some(({ state, callId }) => state === "running" && !asking.has(callId))) return "tools";
  if (questions.length > 0) return "approval";
  return streaming && streaming.content.length > 0 ? "streaming" : "submitted";
}

/**
 * Returns the previous list if the new one is equal.
 * @template T @param {readonly T[] | undefined} before @param {readonly T[]} now
 * @param {(a: T, b: T) => boolean} equal
 */
function reuseList(before, now, equal) {
  return before && before.length === now.length && now.every((one, i) => equal(one, /** @type {T} */ (before[i]))) ? before : now;
}

/** @param {Usage | undefined} before @param {Usage} now */
function reuseUsage(before, now) {
  const isSame = before && now && Object.entries(now).every(([key, count]) => before[/** @type {keyof Usage} */ (key)] === count);
  return isSame ? before : now;
}
