// @ts-check
// The state that a UI shows of an agent: built from its events, updated at most once per
// frame. Independent of React.

import { AgentError, kindOf, misuse, PartialJson, textOf, toMessages } from "../shared.js";

/** @typedef {import("../react.js").AgentView<any>} View */
/** @typedef {import("../react.js").AgentCall} AgentCall */
/** @typedef {import("../react.js").UseAgentOptions} Options */

/** @type {readonly any[]} */
const NONE = Object.freeze([]);
/** How many events are kept; consecutive pieces of one block count as one. */
const MAX_EVENTS = 200;

export class AgentStore {
  /**
   * @param {any} given an agent, or a function that makes one, which is then disposed of with the component
   * @param {Options} [options]
   */
  constructor(given, options = {}) {
    this.make = typeof given === "function" ? given : undefined;
    this.agent = this.make ? given() : given;
    // A function body in braces without a `return` is an easy mistake.
    if (typeof this.agent?.subscribe !== "function") throw misuse(`useAgent takes an agent or a function that makes one, got ${this.make ? "a function that gives " : ""}${kindOf(this.agent)}`);
    /** The agent before this one, which a hidden component has disposed of. @type {any} */
    this.former = undefined;
    this.maxEvents = options.events ?? MAX_EVENTS;
    this.schedule = options.schedule ?? nextFrame;
    /** @type {Set<() => void>} */
    this.listeners = new Set();
    /** Cancels the scheduled frame. @type {(() => void) | undefined} */
    this.cancel = undefined;
    /** Unsubscribes from the agent. @type {(() => void) | undefined} */
    this.unsubscribe = undefined;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.leaveTimer = undefined;
    this.#reset();
    this.actions = this.#actions();
    /** The snapshot that is shown. @type {View} */
    this.shown = this.#view();
    const first = this.shown;
    this.subscribe = this.subscribe.bind(this);
    this.getSnapshot = () => this.shown;
    /** The server's page and the browser's first render, which must match it, know of no events. */
    this.getServerSnapshot = () => first;
  }

  #reset() {
    /**
     * The copy of the history that is shown, and what it was copied from.
     * @type {{ source: readonly any[], length: number, last: any, copy: readonly any[] }}
     */
    this.history = { source: NONE, length: 0, last: undefined, copy: NONE };
    /**
     * Messages that were sent and are not in the history yet.
     * @type {{ messages: any[], last: any, length: number } | undefined}
     */
    this.outbox = undefined;
    /** The message that is streaming. @type {Streaming | undefined} */
    this.streaming = undefined;
    /** The calls of the turn. @type {Map<string, AgentCall>} */
    this.calls = new Map();
    this.isCallsStale = false;
    /** @type {readonly any[]} */
    this.queued = NONE;
    /** @type {any[]} */
    this.events = [];
    this.isEventsStale = false;
    /** @type {AgentError | undefined} */
    this.error = undefined;
    /** @type {any} */
    this.stopReason = undefined;
  }

  /** @param {() => void} listener */
  subscribe(listener) {
    this.listeners.add(listener);
    clearTimeout(this.leaveTimer);
    this.leaveTimer = undefined;
    if (!this.unsubscribe) this.#attach();
    return () => {
      this.listeners.delete(listener);
      // In development React unmounts and remounts every component; only a component still
      // gone a moment later is gone.
      if (this.listeners.size === 0) this.leaveTimer ??= setTimeout(() => this.#detach(), 0);
    };
  }

  #attach() {
    const isRemounted = this.agent === undefined;
    if (isRemounted) {
      // Remounted after all, by <Activity>: a new agent continues the old one's conversation.
      // The last rendering may lack what the old one said, or kept when it was stopped.
      this.agent = this.make({ messages: [...this.former.messages] });
      this.#reset();
    }
    this.#catchUp();
    this.unsubscribe = this.agent.subscribe((/** @type {any} */ event) => this.#handleEvent(event));
    // The history of a remote agent is known once it has answered.
    this.agent.ready?.().then(() => this.#scheduleUpdate(), (/** @type {unknown} */ thrown) => {
      this.error = errorOf(thrown);
      this.#scheduleUpdate();
    });
    this.shown = this.#view();
  }

  /**
   * Catches up with a run that is already in progress. The partial answer is shown if the agent can report
   * it; otherwise the answer appears when it is complete.
   */
  #catchUp() {
    const { agent } = this;
    this.streaming = undefined;
    this.#setCalls(NONE);
    if (!agent.isRunning) return;
    const { content, calls = [], place } = agent.checkpoint?.().metadata.turnwheel?.run?.phase ?? {};
    if (content) this.streaming = Streaming.from({ content });
    if (calls.length > 0) this.#setCalls(callsOf(agent.messages[place]));
    for (const { callId, status, result } of calls) {
      if (result) this.#setCall(result, { state: result.isError ? "error" : "done", result });
      else if (status === "running") this.#setCall({ callId, toolName: "" }, { state: status });
    }
    for (const call of agent.pendingApprovals) this.#setCall(call, { state: "approval", arguments: call.arguments });
  }

  #detach() {
    this.leaveTimer = undefined;
    this.cancel?.();
    this.cancel = undefined;
    this.unsubscribe?.();
    this.unsubscribe = undefined;
    if (!this.make) return;
    const { agent } = this;
    // Disposing stops a local run; a remote agent's run goes on, without this listener.
    (agent[Symbol.dispose ?? Symbol.for("Symbol.dispose")] ?? agent.dispose)?.call(agent);
    this.former = agent;
    this.agent = undefined;
  }

  /** Schedules an update for the next frame. */
  #scheduleUpdate() {
    if (!this.unsubscribe || this.cancel) return;
    let isShown = false;
    const cancel = this.schedule(() => {
      isShown = true;
      this.cancel = undefined;
      this.#update();
    });
    // A test may run every frame synchronously.
    if (!isShown) this.cancel = cancel;
  }

  #update() {
    const view = this.#view();
    if (view === this.shown) return;
    this.shown = view;
    for (const listener of [...this.listeners]) listener();
  }

  // ---- incoming events

  /** @param {any} event */
  #handleEvent(event) {
    this.#note(event);
    this.#keep(event);
    this.#scheduleUpdate();
  }

  /** @param {any} event */
  #note(event) {
    switch (event.type) {
      case "agent_start":
      case "run_resumed":
        this.error = this.stopReason = undefined;
        if (event.partialMessage) this.streaming = Streaming.from(event.partialMessage);
        return;
      case "turn_start":
        this.streaming = undefined;
        return this.#setCalls(NONE);
      case "message_start":
        return void (this.streaming = new Streaming());
      case "message_reset":
        this.streaming = new Streaming();
        return this.#setCalls(NONE);
      case "message_update": {
        const { delta } = event;
        if (!this.streaming?.grow(delta)) return;
        if (delta.type === "tool_call" && !this.calls.has(delta.callId)) this.#setCall(delta, { state: "streaming", arguments: {} });
        return;
      }
      case "message_end":
        this.streaming = undefined;
        return this.#setCalls(callsOf(event.message));
      case "tool_approval_requested":
        return this.#setCall(event, { state: "approval", arguments: event.arguments });
      case "tool_approval_resolved":
        return this.#setCall(event, { state: "waiting" });
      case "tool_execution_start":
        return this.#setCall(event, { state: "running", arguments: event.arguments });
      case "tool_execution_update":
        return this.#setCall(event, { update: event.update });
      case "tool_execution_end":
        return this.#setCall(event, { state: event.isError ? "error" : "done", result: event.result });
      case "agent_end":
        this.streaming = undefined;
        this.stopReason = event.stopReason;
        this.error = event.stopReason === "error" && event.error ? new AgentError(event.error) : undefined;
    }
  }

  /** @param {readonly any[]} calls of a new message */
  #setCalls(calls) {
    if (calls.length === 0 && this.calls.size === 0) return;
    this.isCallsStale = true;
    this.calls = new Map(calls.map(({ callId, toolName, arguments: given }) => [callId, { callId, toolName, arguments: given, state: "waiting" }]));
  }

  /** @param {{ callId: string, toolName: string }} call @param {Partial<AgentCall>} change */
  #setCall({ callId, toolName }, change) {
    this.isCallsStale = true;
    const before = this.calls.get(callId) ?? /** @type {AgentCall} */ ({ callId, toolName, arguments: {}, state: "waiting" });
    this.calls.set(callId, { ...before, ...change });
  }

  /** Keeps the newest events. When a long block is cut off, only its beginning is lost. @param {any} event */
  #keep(event) {
    if (this.maxEvents <= 0) return;
    const { events } = this;
    const last = events.at(-1);
    this.isEventsStale = true;
    if (event.type === "message_update" && last?.type === "message_update" && isSameBlock(last.delta, event.delta)) {
      events[events.length - 1] = { ...last, delta: { ...last.delta, delta: last.delta.delta + event.delta.delta } };
      return;
    }
    // Trimmed now and then, so that an event costs nothing extra.
    if (events.push(event) >= 2 * this.maxEvents) events.splice(0, events.length - this.maxEvents);
  }

  // ---- actions

  #requireAgent() {
    if (!this.agent) throw misuse("the component of this agent is gone, and the agent with it; make the agent outside of it to keep it");
    return this.agent;
  }

  #actions() {
    const track = (/** @type {any} */ run) => {
      this.error = this.stopReason = undefined;
      this.#scheduleUpdate();
      const finish = (/** @type {any} */ result) => {
        this.outbox = undefined;
        if (result.stopReason === "error" && result.error) this.error = result.error;
        this.#scheduleUpdate();
      };
      run.result.then(finish, (/** @type {unknown} */ thrown) => finish({ stopReason: "error", error: errorOf(thrown) }));
      return run.result;
    };
    const post = (/** @type {"steer" | "followUp"} */ kind, /** @type {any} */ input) => {
      const receipt = this.#requireAgent()[kind](input);
      const message = { kind: kind === "steer" ? "steer" : "follow_up", input };
      const settled = () => {
        this.queued = this.queued.filter((other) => other !== message);
        this.#scheduleUpdate();
      };
      this.queued = [...this.queued, message];
      this.#scheduleUpdate();
      receipt.then(settled, settled);
      return receipt;
    };
    return {
      send: (/** @type {any} */ input, /** @type {any} */ options) => {
        const { messages } = this.#requireAgent();
        const [last, length] = [messages.at(-1), messages.length];
        const started = this.agent.prompt(input, options);
        const timestamp = Date.now();
        this.outbox = { messages: toMessages(input).map((message) => ({ ...message, timestamp: message.timestamp || timestamp })), last, length };
        return track(started);
      },
      resume: (/** @type {any} */ options) => track(this.#requireAgent().continue(options)),
      steer: (/** @type {any} */ input) => post("steer", input),
      followUp: (/** @type {any} */ input) => post("followUp", input),
      // May be called after the component is gone; then there is nothing to stop.
      stop: (/** @type {unknown} */ reason) => this.agent?.abort(reason),
      approve: (/** @type {string} */ callId, /** @type {any} */ given) => this.#requireAgent().resolveTool(callId, given === undefined ? "approve" : { action: "approve", arguments: given }),
      deny: (/** @type {string} */ callId, /** @type {string | undefined} */ reason) => this.#requireAgent().resolveTool(callId, reason === undefined ? "reject" : { action: "reject", reason }),
    };
  }

  // ---- snapshots

  /** @returns {View} the previous one, if nothing changed */
  #view() {
    const { shown, agent, actions, error, stopReason, queued } = this;
    const history = this.#historyNow();
    const outbox = this.outbox?.messages ?? NONE;
    const streaming = this.streaming?.view((block) => this.#setCall(block, { arguments: block.arguments }));
    const calls = this.isCallsStale || !shown ? Object.freeze([...this.calls.values()]) : shown.calls;
    const events = this.isEventsStale || !shown ? Object.freeze(this.events.slice(-this.maxEvents)) : shown.events;
    this.isCallsStale = this.isEventsStale = false;
    const pendingApprovals = reuseList(shown?.pendingApprovals, agent.pendingApprovals, (a, b) => a.callId === b.callId);
    const usage = reuseUsage(shown?.usage, agent.usage);
    const { isRunning } = agent;
    const status = statusOf(isRunning, error, pendingApprovals, calls, streaming);
    const view = { agent, history, outbox, streaming, calls, events, pendingApprovals, queued, usage, isRunning, status, error, stopReason };
    if (shown && Object.entries(view).every(([name, value]) => /** @type {any} */ (shown)[name] === value)) return shown;
    /** @type {readonly any[] | undefined} */
    let messages;
    return /** @type {any} */ ({
      ...view, ...actions,
      // Built on demand: only those who want everything in one array pay for it.
      get messages() {
        return (messages ??= outbox.length === 0 && !streaming ? history : Object.freeze([...history, ...outbox, ...(streaming ? [streaming] : [])]));
      },
    });
  }

  /** Returns a copy of the history: the same one until something is added. */
  #historyNow() {
    const source = /** @type {readonly any[]} */ (this.agent.messages);
    const { history, outbox } = this;
    const last = source.at(-1);
    if (outbox && (outbox.last !== last || outbox.length !== source.length)) this.outbox = undefined;
    // Other agents may return a new array each time.
    if (history.length === source.length && history.last === last && (history.source === source || source.every((message, i) => message === history.copy[i]))) {
      history.source = source;
      return history.copy;
    }
    this.history = { source, length: source.length, last, copy: Object.freeze([...source]) };
    return this.history.copy;
  }
}

/** @param {any} message @returns {any[]} */
const callsOf = (message) => message?.content.filter((/** @type {any} */ block) => block.type === "tool_call") ?? [];

/** A message that is streaming in. */
class Streaming {
  constructor() {
    this.timestamp = Date.now();
    /** @type {Map<number, { block: any, json?: PartialJson, isStale: boolean }>} */
    this.blocks = new Map();
    /** @type {any} */
    this.shown = undefined;
  }

  /** Starts from what had arrived before the run was interrupted. @param {any} message */
  static from(message) {
    const streaming = new Streaming();
    message.content.forEach((/** @type {any} */ block, /** @type {number} */ index) => streaming.blocks.set(index, { block: { ...block }, isStale: false }));
    return streaming;
  }

  /** @param {any} delta @returns {true} */
  grow({ type, contentIndex, delta, callId, toolName }) {
    let entry = this.blocks.get(contentIndex);
    if (!entry) {
      const block = type === "tool_call" ? { type, callId, toolName, arguments: {} } : { type, [type]: "" };
      this.blocks.set(contentIndex, (entry = { block, isStale: true, ...(type === "tool_call" && { json: new PartialJson() }) }));
    } else if (!entry.isStale) entry.block = { ...entry.block };
    entry.isStale = true;
    this.shown = undefined;
    if (type === "tool_call") entry.json?.feed(delta);
    else entry.block[type] += delta;
    return true;
  }

  /**
   * Returns the message so far. Blocks that did not grow are the same objects as before.
   * @param {(block: any) => void} onGrown called for calls whose arguments grew
   */
  view(onGrown) {
    if (this.shown) return this.shown;
    for (const entry of this.blocks.values()) {
      if (entry.isStale && entry.json) {
        entry.block.arguments = argumentsOf(entry.json);
        onGrown(entry.block);
      }
      entry.isStale = false;
    }
    const content = [...this.blocks].sort(([a], [b]) => a - b).map(([, { block }]) => block);
    return (this.shown = { role: "assistant", streaming: true, content, timestamp: this.timestamp });
  }
}

/**
 * Returns an immutable snapshot of partial arguments: open containers are copied, complete ones shared.
 * @param {PartialJson} json
 */
function argumentsOf({ stack, value }) {
  /** @type {any} */
  let copy;
  for (const { node, key } of stack.toReversed()) {
    const next = Array.isArray(node) ? [...node] : { ...node };
    if (copy !== undefined) Object.defineProperty(next, key, { value: copy, enumerable: true, configurable: true, writable: true });
    copy = next;
  }
  const snapshot = copy ?? value;
  return typeof snapshot === "object" && snapshot !== null ? snapshot : {};
}

/** @returns {View["status"]} @param {boolean} isRunning @param {unknown} error @param {readonly any[]} pendingApprovals @param {readonly AgentCall[]} calls @param {any} streaming */
function statusOf(isRunning, error, pendingApprovals, calls, streaming) {
  if (!isRunning) return error ? "error" : "idle";
  if (calls.some(({ state }) => state === "running")) return "tools";
  if (pendingApprovals.length > 0) return "approval";
  return streaming?.content.length > 0 ? "streaming" : "submitted";
}

/**
 * Returns the previous list if the new one is equal.
 * @param {readonly any[] | undefined} before @param {readonly any[]} now
 * @param {(a: any, b: any) => boolean} equal
 */
function reuseList(before, now, equal) {
  return before && before.length === now.length && now.every((one, i) => equal(one, before[i])) ? before : now;
}

/** @param {any} before @param {any} now */
function reuseUsage(before, now) {
  return before && now && Object.keys(now).every((key) => before[key] === now[key]) ? before : now;
}

/** @param {any} a @param {any} b */
function isSameBlock(a, b) {
  return a.type === b.type && a.contentIndex === b.contentIndex && a.callId === b.callId;
}

/** @param {unknown} thrown */
function errorOf(thrown) {
  return AgentError.isInstance(thrown) ? thrown : new AgentError({ code: "unknown", message: textOf(thrown), retryable: false }, thrown);
}

/**
 * Runs work in the next frame, or after a short delay where no frame comes: a background page gets none, and
 * a page may move to the background while it waits.
 * @param {() => void} work
 */
function nextFrame(work) {
  const hasFrames = typeof requestAnimationFrame === "function";
  let frame = 0;
  const cancel = () => {
    clearTimeout(timer);
    if (hasFrames) cancelAnimationFrame(frame);
  };
  const run = () => {
    cancel();
    work();
  };
  const timer = setTimeout(run, hasFrames && !globalThis.document?.hidden ? 200 : 16);
  if (hasFrames) frame = requestAnimationFrame(run);
  return cancel;
}
