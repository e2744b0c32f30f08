// @ts-check
// Where a run comes from: a prompt, the history alone, or a checkpoint.

import { believable } from "../checkpoint/questions.js";

/** @import { AgentEvent, AgentMessage } from "../index.js" */
/** @import { RestoredRun } from "../checkpoint/format.js" */
/** @import { Fold } from "../events/fold.js" */

export class Origin {
  /** @param {AgentMessage[] | null} prompts @param {RestoredRun | undefined} restored @param {AgentMessage[]} messages the history */
  constructor(prompts, restored, messages) {
    this.prompts = prompts;
    /** The run of the checkpoint, until it resumes. */
    this.restored = restored;
    /** The length of the history before the run. */
    this.length = messages.length;
    /** The history before it was shortened. */
    this.messages = messages;
  }

  /** Restores what this side must know of the turn in which the checkpoint was taken. @param {Fold} fold */
  restoreTurn(fold) {
    const run = this.restored?.run;
    if (!run) return;
    const { turnIndex, turn, phase } = run;
    const last = fold.messages.findLastIndex(({ role }) => role === "assistant");
    const [answer, ...results] = last < 0 ? [] : fold.messages.slice(last);
    if (answer?.role === "assistant") fold.answer = answer;
    for (const message of results) if (message.role === "tool_result") fold.results.set(message.callId, message);
    for (const { result } of phase.calls ?? []) if (result) fold.results.set(result.callId, result);
    if (turn.open) fold.turn = { turnIndex, messageStarted: turn.messageOpen, answered: !turn.messageOpen && phase.kind === "dispatching" };
  }

  /**
   * Returns the events that were never delivered; they follow the one that resumes the run.
   * @param {Extract<AgentEvent, { type: "run_resumed" }>} event @param {string} runId @returns {AgentEvent[]}
   */
  resume(event, runId) {
    const undelivered = believable(this.restored, [...event.pendingApprovals, ...(event.pendingQuestions ?? [])]).map((stored) => ({ ...stored, runId }));
    this.restored = undefined;
    for (const stored of undelivered) {
      if (!("turnIndex" in stored)) continue;
      event.turnIndex = stored.turnIndex;
      break;
    }
    if (undelivered.some(({ type }) => type === "message_start" || type === "message_update")) delete event.partialMessage;
    return undelivered;
  }
}
