// @ts-check
// The calls of a run that wait for a decision.

/** @import { AgentEvent, ToolCallBlock } from "../index.js" */

export class PendingApprovals {
  constructor() {
    /** @type {Map<string, ToolCallBlock>} */
    this.calls = new Map();
  }

  /** @param {AgentEvent} event */
  take(event) {
    if (event.type === "tool_approval_requested") {
      const { callId, toolName } = event;
      this.add({ type: "tool_call", callId, toolName, arguments: event.arguments });
    } else if (event.type === "tool_approval_resolved") this.calls.delete(event.callId);
    else if (event.type === "run_resumed") event.pendingApprovals.forEach((call) => this.add(call));
  }

  /** @param {ToolCallBlock} call */
  add(call) {
    this.calls.set(call.callId, call);
  }

  /** Replaces all. @param {readonly ToolCallBlock[]} calls */
  replace(calls) {
    this.calls.clear();
    calls.forEach((call) => this.add(call));
  }

  list() {
    return [...this.calls.values()];
  }
}
