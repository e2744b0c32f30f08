// @ts-check
// What is shown of an agent, built from its events.

import { AgentError, callsOf, Fold, textOf } from "../shared.js";
import { CallList } from "./calls.js";
import { NewestEvents } from "./events.js";
import { ShownHistory } from "./history.js";

/** @import { AgentEvent, AssistantMessage, RunStopReason, ToolResultMessage } from "../index.js" */
/** @import { AgentLike, QueuedInput, StreamingMessage } from "../react.js" */
/**
 * The run of a checkpoint, as far as a view needs it: what has arrived of the answer, or how the calls stand.
 * @typedef {{ content?: AssistantMessage["content"], place?: number, calls?: { callId: string, status: string, result?: ToolResultMessage }[] }} Phase
 */

export class ShownState {
  /** @param {number} maxEvents */
  constructor(maxEvents) {
    this.history = new ShownHistory();
    this.fold = new Fold([]);
    this.calls = new CallList();
    this.events = new NewestEvents(maxEvents);
    /** Messages that were sent into the run and have not been read yet. @type {readonly QueuedInput[]} */
    this.queued = [];
    /** When the answer that is streaming began. */
    this.since = 0;
    /** What is shown of it, until it grows. @type {StreamingMessage | undefined} */
    this.streaming = undefined;
    /** @type {AgentError | undefined} */
    this.error = undefined;
    /** @type {RunStopReason | undefined} */
    this.stopReason = undefined;
  }

  clearOutcome() {
    this.error = this.stopReason = undefined;
  }

  /** @param {unknown} thrown */
  fail(thrown) {
    this.error = AgentError.isInstance(thrown) ? thrown : new AgentError({ code: "unknown", message: textOf(thrown), retryable: false }, thrown);
  }

  /** @param {AgentEvent} event */
  take(event) {
    // The messages are the agent's business; of a run that is over nothing is needed.
    if (event.type === "agent_start") this.fold = new Fold([]);
    this.fold.take(event);
    this.calls.take(event, this.fold.isAnswering);
    this.events.take(event);
    if (event.type === "message_update") this.streaming = undefined;
    else this.#takeRun(event);
  }

  /** @param {AgentEvent} event */
  #takeRun(event) {
    switch (event.type) {
      case "agent_start":
        return this.clearOutcome();
      case "run_resumed":
        this.clearOutcome();
        return this.#beginAnswer();
      case "message_start":
      case "message_reset":
        return this.#beginAnswer();
      case "agent_end":
        this.stopReason = event.stopReason;
        this.error = event.stopReason === "error" && event.error ? new AgentError(event.error) : undefined;
    }
  }

  #beginAnswer() {
    this.since = Date.now();
    this.streaming = undefined;
  }

  /**
   * Catches up with a run that is already in progress. The partial answer is shown if the agent can report
   * it; otherwise the answer appears when it is complete.
   * @param {AgentLike & { checkpoint?(): { metadata: any } }} agent
   */
  catchUp(agent) {
    this.fold = new Fold([]);
    this.calls.begin([]);
    if (!agent.isRunning) return;
    /** @type {Phase} */
    const { content, calls = [], place = -1 } = agent.checkpoint?.().metadata.turnwheel?.run?.phase ?? {};
    if (content) {
      this.fold.resume(0, content);
      this.#beginAnswer();
    }
    if (calls.length > 0) this.calls.begin(callsOf(/** @type {AssistantMessage | undefined} */ (agent.messages[place])));
    for (const { callId, status, result } of calls) {
      if (result) this.calls.change(result, { state: result.isError ? "error" : "done", result });
      else if (status === "running" || status === "elsewhere") this.calls.change({ callId, toolName: "" }, { state: "running" });
    }
    for (const call of agent.pendingApprovals.filter(({ path }) => !path?.length)) this.calls.change(call, { state: "approval", arguments: call.arguments });
  }

  /** The answer that is streaming. Blocks that did not grow are the same objects as before. */
  streamingMessage() {
    const { fold } = this;
    if (!fold.isAnswering) return (this.streaming = undefined);
    if (!this.streaming) {
      const content = fold.partial.content();
      this.calls.takeArguments(content);
      this.streaming = { role: "assistant", streaming: true, content, timestamp: this.since };
    }
    return this.streaming;
  }
}

