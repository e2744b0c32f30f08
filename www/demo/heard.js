// @ts-check
// The history of the conversation as its events tell it, so that it is the same whether the loop runs here, in the Worker, or
// ran before the page was reloaded.

/** @typedef {import("../npm/index.js").AgentEvent} AgentEvent */
/** @typedef {import("../npm/index.js").AgentMessage} AgentMessage */
/** @typedef {import("../npm/index.js").ToolResultMessage} ToolResultMessage */

export class Heard {
  constructor() {
    /** @type {AgentMessage[]} */
    this.messages = [];
    /** The results of the open turn, by call. @type {Map<string, ToolResultMessage>} */
    this.results = new Map();
  }

  /** @param {string} text @param {number} timestamp */
  say(text, timestamp) {
    this.messages = [...this.messages, { role: "user", content: [{ type: "text", text }], timestamp }];
  }

  /** @param {AgentEvent} event */
  push(event) {
    if (event.type === "turn_start") this.results.clear();
    else if (event.type === "message_end") this.messages = [...this.messages, event.message];
    else if (event.type === "tool_execution_end") this.results.set(event.callId, event.result);
    else if (event.type === "turn_end") {
      const calls = event.message?.content.flatMap((block) => (block.type === "tool_call" ? [block.callId] : [])) ?? [];
      this.messages = [...this.messages, ...calls.flatMap((callId) => this.results.get(callId) ?? [])];
    }
    return this.messages;
  }

  /** Takes over what the agent was told in the middle of the run, and has read. @param {readonly AgentMessage[]} messages its history */
  read(messages) {
    const isUser = (/** @type {AgentMessage} */ { role }) => role === "user";
    this.messages = [...this.messages, ...messages.filter(isUser).slice(this.messages.filter(isUser).length)];
  }
}
