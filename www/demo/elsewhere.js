// @ts-check
// The page's side of an agent that runs in a Worker.

/** @typedef {import("../npm/remote.js").RemoteAgent} RemoteAgent */
/** @typedef {import("../npm/index.js").AgentEvent} AgentEvent */
/** @typedef {import("../npm/index.js").AgentMessage} AgentMessage */

export class RemoteConversation {
  /**
   * @param {typeof import("../npm/remote.js")} remote
   * @param {string} worker its address
   * @param {{ id?: string, onError: (error: unknown) => void, begin?: { settings: import("./agent.js").Settings, messages: readonly AgentMessage[], hold: number } }} options
   *   with `begin` a new conversation, without it the one with that id
   */
  constructor(remote, worker, { id = crypto.randomUUID(), onError, begin }) {
    this.id = id;
    this.url = `${worker}/${id}`;
    this.begin = begin;
    /** Settles when the Worker has its configuration. @type {Promise<void> | undefined} */
    this.configured = undefined;
    this.agent = new remote.RemoteAgent({
      url: this.url, reconnects: { maxAttempts: 3 }, onError,
      // No other request is sent before.
      fetch: async (...request) => {
        await (this.configured ??= this.#configure(this.begin));
        return fetch(...request);
      },
    });
  }

  /** @param {number} hold how long the tools are held */
  pace(hold) {
    if (this.begin) this.begin.hold = hold;
    // An agent that is not configured yet gets this with the rest of its settings.
    if (this.configured || !this.begin) this.configured = this.#configure({ hold });
  }

  /** @param {object | undefined} settings */
  async #configure(settings) {
    if (!settings) return;
    try {
      const response = await fetch(`${this.url}/configure`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(settings) });
      if (!response.ok) throw new Error(`the Worker refused it (${response.status})`);
    } catch (error) {
      this.configured = undefined;
      throw error;
    }
  }

  /** Attaches to the current run and replays it from its beginning: this page no longer knows it. */
  attach() {
    const run = new HeardRun(this.agent);
    run.leave = this.agent.subscribe((event) => run.push(event));
    return run;
  }

  leave() {
    this.agent[Symbol.dispose]();
  }
}

/** The events of a run that this page did not start: another tab did, or this one before it was reloaded. */
export class HeardRun {
  /** @param {Pick<RemoteAgent, "abort">} agent */
  constructor(agent) {
    this.agent = agent;
    /** @type {AgentEvent[]} */
    this.events = [];
    this.wake = () => {};
    this.leave = () => {};
    this.isOver = false;
    /** @type {(result: { stopReason: string, error?: unknown }) => void} */
    this.settle = () => {};
    /** @type {Promise<{ stopReason: string, error?: any }>} */
    this.result = new Promise((resolve) => (this.settle = resolve));
  }

  /** Whether more has happened than was taken: the page catches up. */
  get isBehind() {
    return this.events.length > 0;
  }

  /** @param {AgentEvent} event */
  push(event) {
    this.events.push(event);
    this.wake();
  }

  async *[Symbol.asyncIterator]() {
    for (;;) {
      // An event may arrive while the previous one is being shown.
      const event = this.events.shift();
      if (event) {
        yield event;
        if (event.type === "agent_end") this.end({ stopReason: event.stopReason, error: event.error });
      } else if (this.isOver) return;
      else await new Promise((resolve) => (this.wake = () => resolve(undefined)));
    }
  }

  /** @param {{ stopReason: string, error?: unknown }} result */
  end(result) {
    this.isOver = true;
    this.leave();
    this.settle(result);
    this.wake();
  }

  /** The arguments were streaming already when the page began to listen. */
  partialArguments() {
    return undefined;
  }

  /** @param {unknown} reason */
  abort(reason) {
    void this.agent.abort(reason instanceof Error ? reason.message : reason);
  }
}

/**
 * Rebuilds the events of a run that nobody listened to, from the messages that it left.
 * @param {readonly AgentMessage[]} messages @param {string} runId @returns {AgentEvent[]}
 */
export function eventsOf(messages, runId) {
  /** @type {any[]} */
  const events = [{ type: "agent_start" }];
  let turnIndex = -1;
  /** @type {any[]} */
  let open = [];
  const endTurn = () => {
    if (turnIndex >= 0) events.push({ type: "turn_end", turnIndex, message: null, toolResults: [], reason: open.length > 0 ? "tools_executed" : "complete" });
  };
  let total = 0;
  for (const message of messages) {
    if (message.role === "assistant") {
      endTurn();
      turnIndex += 1;
      total += message.usage.total;
      open = message.content.filter((block) => block.type === "tool_call");
      events.push({ type: "turn_start", turnIndex }, { type: "message_start" });
      message.content.forEach((block, contentIndex) => {
        const delta = block.type === "text" ? { type: "text", delta: block.text } : block.type === "thinking" ? { type: "thinking", delta: block.thinking } : block.type === "tool_call" ? { type: "tool_call", callId: block.callId, toolName: block.toolName, delta: JSON.stringify(block.arguments) } : undefined;
        if (delta) events.push({ type: "message_update", delta: { ...delta, contentIndex } });
      });
      events.push({ type: "message_end", message });
      for (const { callId, toolName, arguments: given } of open) events.push({ type: "tool_execution_start", callId, toolName, arguments: given });
    } else if (message.role === "tool_result") {
      events.push({ type: "tool_execution_end", callId: message.callId, toolName: message.toolName, result: message, isError: message.isError });
    }
  }
  endTurn();
  const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total };
  events.push({ type: "agent_end", messages: [], stopReason: "completed", usage, turns: turnIndex + 1 });
  return events.map((event) => ({ ...event, runId }));
}
