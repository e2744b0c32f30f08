// @ts-check
// A run as the page shows it: made of its events, and of nothing else, so that a process that replays it shows the same.

/** @typedef {import("../npm/index.js").AgentEvent} AgentEvent */
/** @typedef {import("../npm/index.js").ToolQuestion} ToolQuestion */
/** @typedef {import("./ledger.js").OrderState} OrderState */
/** @typedef {{ kind: "person" | "agent" | "call", text: string, state?: string, callId?: string }} Line */

export class RunView {
  /** @param {typeof import("../npm/inspector.js").InspectorLog} InspectorLog @param {{ at: number, text: string }[]} marks what was pressed when */
  constructor(InspectorLog, marks) {
    this.log = new InspectorLog();
    this.marks = [...marks];
    /** @type {Line[]} */
    this.lines = [];
    /** What the agent says at the moment. */
    this.streaming = "";
    /** The open question, if there is one. @type {{ id: string, callId: string, toolName: string, arguments: any } | undefined} */
    this.question = undefined;
    /** The last question that was asked. */
    this.lastQuestion = "";
    /** By invoice. @type {Map<string, OrderState>} */
    this.states = new Map();
    this.isOffline = false;
  }

  /** Adds an event, and before it the marks that were made earlier. @param {AgentEvent} event @param {number} at on the clock of the lanes */
  push(event, at) {
    while (this.marks[0] && this.marks[0].at <= at) {
      const mark = /** @type {{ at: number, text: string }} */ (this.marks.shift());
      this.log.mark("note", mark.text, mark.at);
    }
    this.log.push("at" in event ? { ...event, at } : event, { at });
    this.#fold(event);
  }

  /** @param {AgentEvent} event */
  #fold(event) {
    switch (event.type) {
      case "message_start":
        this.streaming = "";
        break;
      case "message_update":
        if (event.delta.type === "text") this.streaming += event.delta.delta;
        break;
      case "message_reset":
        this.streaming = "";
        break;
      case "message_end":
        this.streaming = "";
        this.isOffline = false;
        this.#add("agent", event.message.content.map((block) => (block.type === "text" ? block.text : "")).join("").trim());
        break;
      case "retry_attempt":
        this.isOffline = true;
        break;
      case "tool_approval_requested":
        this.ask(/** @type {any} */ (event));
        break;
      case "tool_approval_resolved":
        this.question = undefined;
        break;
      case "tool_execution_start":
        this.#call(event.callId, event.toolName, event.arguments, "running");
        if (event.toolName === "pay_invoice") this.states.set(String(event.arguments["invoice"]), "ordered");
        break;
      case "tool_execution_end":
        this.#ended(event);
        break;
    }
  }

  /** A question is open. @param {{ id: string, callId: string, toolName: string, arguments: any }} question */
  ask(question) {
    this.question = question;
    this.lastQuestion = question.id;
    this.states.set(String(question.arguments?.invoice), "asked");
    this.#call(question.callId, question.toolName, question.arguments, "asked");
  }

  /** @param {Extract<AgentEvent, { type: "tool_execution_end" }>} event */
  #ended({ callId, toolName, result }) {
    const text = result.content.map((block) => (block.type === "text" ? block.text : "")).join("\n");
    const line = this.#call(callId, toolName, {}, result.isError ? "failed" : "done");
    line.text = `${toolName}: ${text}`;
    if (this.question?.callId === callId) this.question = undefined;
    const [invoice] = /INV-\d+/.exec(text) ?? [];
    for (const [known, state] of this.states) {
      if (state === "asked" && result.cause === "rejected" && !this.question) this.states.set(known, "rejected");
    }
    if (toolName === "pay_invoice" && result.isError && invoice && result.cause !== "rejected") this.states.set(invoice, "refused");
  }

  /** The line of a call. @param {string} callId @param {string} toolName @param {any} given @param {string} state @returns {Line} */
  #call(callId, toolName, given, state) {
    let line = this.lines.find((line) => line.callId === callId);
    if (!line) this.lines.push((line = { kind: "call", callId, text: `${toolName} ${given.invoice ?? ""}`.trim() }));
    line.state = state;
    return line;
  }

  /** @param {Line["kind"]} kind @param {string} text */
  #add(kind, text) {
    if (text !== "") this.lines.push({ kind, text });
  }
}
