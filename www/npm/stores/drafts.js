// @ts-check
// Which events change what a checkpoint says. An answer that was cut off is requested again, so of its pieces only the first
// one does: it has begun.

/** @import { AgentEvent } from "../index.js" */

export class Drafts {
  /** The agents, by the calls that lead to them, whose answer has begun. @type {Set<string>} */
  #begun = new Set();

  /** @param {AgentEvent} event */
  isChange(event) {
    const [path, inner] = event.type === "subagent_event" ? [JSON.stringify(event.path), event.event] : ["", event];
    // What a tool reports is not kept: it runs again, or is interrupted.
    if (inner.type === "tool_execution_update") return false;
    if (inner.type !== "message_update") {
      this.#begun.delete(path);
      return true;
    }
    const isFirst = !this.#begun.has(path);
    this.#begun.add(path);
    return isFirst;
  }
}
