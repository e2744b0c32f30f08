// @ts-check
// The tool calls of a turn, as a UI shows them.

import { callsOf } from "../shared.js";

/** @import { AgentEvent, ToolCallBlock } from "../index.js" */
/** @import { AgentCall } from "../react.js" */
/** @import { ShownBlock } from "../shared.js" */

export class CallList {
  constructor() {
    /** @type {Map<string, AgentCall>} */
    this.calls = new Map();
    /** The list that is shown, until a call changes. @type {readonly AgentCall[] | undefined} */
    this.shown = undefined;
  }

  /** The same list until a call changes. */
  list() {
    return (this.shown ??= Object.freeze([...this.calls.values()]));
  }

  /** Shows the calls of a new answer. @param {readonly ToolCallBlock[]} calls */
  begin(calls) {
    if (calls.length === 0 && this.calls.size === 0) return;
    this.shown = undefined;
    this.calls = new Map(calls.map(({ callId, toolName, arguments: given }) => [callId, { callId, toolName, arguments: given, state: "waiting" }]));
  }

  /** @param {{ callId: string, toolName: string }} call @param {Partial<AgentCall>} change */
  change({ callId, toolName }, change) {
    const before = this.calls.get(callId) ?? { callId, toolName, arguments: {}, state: "waiting" };
    this.shown = undefined;
    this.calls.set(callId, { ...before, ...change });
  }

  /** Takes an event. A piece counts only if the answer that it belongs to is known. @param {AgentEvent} event @param {boolean} isAnswering */
  take(event, isAnswering) {
    switch (event.type) {
      case "turn_start":
      case "message_reset":
        return this.begin([]);
      case "message_update": {
        const { delta } = event;
        if (isAnswering && delta.type === "tool_call" && !this.calls.has(delta.callId)) this.change(delta, { state: "streaming", arguments: {} });
        return;
      }
      case "message_end":
        return this.begin(callsOf(event.message));
      case "tool_approval_requested":
        // Of an agent inside a call: that call is shown, and it runs.
        if (event.path?.length) return;
        return this.change(event, { state: "approval", arguments: event.arguments });
      case "tool_approval_resolved":
        if (event.path?.length) return;
        return this.change(event, { state: "waiting" });
      case "tool_execution_start":
        return this.change(event, { state: "running", arguments: event.arguments });
      case "tool_execution_update":
        return this.change(event, { update: event.update });
      case "tool_execution_end":
        return this.change(event, { state: event.isError ? "error" : "done", result: event.result });
    }
  }

  /** Takes over the arguments of an answer that is streaming. @param {readonly ShownBlock[]} content */
  takeArguments(content) {
    for (const block of content) {
      if (block.type !== "tool_call") continue;
      const call = this.calls.get(block.callId);
      if (call && call.arguments !== block.arguments) this.change(block, { arguments: block.arguments });
    }
  }
}
