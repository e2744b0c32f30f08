// @ts-check
// One answer of a model as AG-UI messages: its blocks as they stream in, and what its end adds.

import { callsOf } from "../shared.js";

/** @import { AssistantMessage, Delta, ToolCallBlock } from "../index.js" */
/** @import { Lane } from "./lane.js" */
/** @typedef {{ kind: "text" | "thinking", contentIndex: number, id: string }} Block a text or a thought that is open */
/** @typedef {{ id: string, hasArguments: boolean }} OpenCall */

export class Message {
  /**
   * @param {Lane} lane @param {string} id of the AG-UI message that has the calls and the first text
   */
  constructor(lane, id) {
    this.lane = lane;
    this.id = id;
    /** What is being written. Texts and thoughts end where the next block begins. @type {Block | undefined} */
    this.open = undefined;
    /** Calls stay open until the answer ends: pieces of several may alternate. @type {Map<string, OpenCall>} */
    this.calls = new Map();
    /** The ids of texts and thoughts, in the order of their beginning. @type {Block[]} */
    this.blocks = [];
  }

  /** @param {Delta} piece */
  update(piece) {
    const { lane } = this;
    if (piece.type === "tool_call") {
      const call = this.calls.get(piece.callId) ?? this.#beginCall(piece.callId, piece.toolName);
      if (piece.delta === "") return;
      call.hasArguments = true;
      return lane.send({ type: "TOOL_CALL_ARGS", toolCallId: call.id, delta: piece.delta });
    }
    // An empty delta is refused.
    if (piece.delta === "") return;
    const { id } = this.#begin(piece.type, piece.contentIndex);
    lane.send({ type: piece.type === "text" ? "TEXT_MESSAGE_CONTENT" : "REASONING_MESSAGE_CONTENT", messageId: id, delta: piece.delta });
  }

  /** What the answer says when it is whole: calls and blocks that no pieces came of, and signatures. @param {AssistantMessage} message */
  end(message) {
    const { lane } = this;
    const { content } = message;
    for (const kind of /** @type {const} */ (["thinking", "text"])) {
      if (this.blocks.some((block) => block.kind === kind)) continue;
      content.forEach((block, contentIndex) => {
        if (block.type === kind) this.update({ type: kind, contentIndex, delta: block.type === "text" ? block.text : block.thinking });
        // A thought may have nothing but its signature.
        if (block.type === "thinking" && kind === "thinking" && block.signature && block.thinking === "") this.#begin(kind, contentIndex);
      });
    }
    this.close();
    for (const call of callsOf(message)) this.#endCall(call);
    // An answer that was cut may have begun calls that it does not have.
    this.#dropCalls();
    content.forEach((block, contentIndex) => {
      if (block.type !== "text" && block.type !== "thinking") return;
      const entityId = this.blocks.findLast((shown) => shown.kind === block.type && shown.contentIndex === contentIndex)?.id;
      if (block.signature && entityId) lane.send({ type: "REASONING_ENCRYPTED_VALUE", subtype: "message", entityId, encryptedValue: block.signature });
    });
  }

  /** The attempt failed: nothing stays open, and its calls will never have a result of their own. */
  takeBack() {
    this.close();
    this.#dropCalls();
    return this.blocks.map(({ id }) => id);
  }

  /** Ends the text or thought that is open. */
  close() {
    const { open, lane } = this;
    this.open = undefined;
    if (open?.kind === "text") lane.send({ type: "TEXT_MESSAGE_END", messageId: open.id });
    if (open?.kind !== "thinking") return;
    lane.send({ type: "REASONING_MESSAGE_END", messageId: open.id });
    lane.send({ type: "REASONING_END", messageId: open.id });
  }

  /** @param {"text" | "thinking"} kind @param {number} contentIndex @returns {Block} */
  #begin(kind, contentIndex) {
    const { lane } = this;
    if (this.open?.kind === kind && this.open.contentIndex === contentIndex) return this.open;
    this.close();
    const count = this.blocks.filter((block) => block.kind === kind).length;
    const id = kind === "thinking" ? `${this.id}.thinking-${count + 1}` : count === 0 ? this.id : `${this.id}.text-${count + 1}`;
    const block = { kind, contentIndex, id };
    this.blocks.push(block);
    this.open = block;
    if (kind === "text") lane.send({ type: "TEXT_MESSAGE_START", messageId: id, role: "assistant" });
    else {
      lane.send({ type: "REASONING_START", messageId: id });
      lane.send({ type: "REASONING_MESSAGE_START", messageId: id, role: "reasoning" });
    }
    return block;
  }

  /** @param {string} callId @param {string} toolName */
  #beginCall(callId, toolName) {
    this.close();
    const id = this.lane.nameCall(callId, toolName);
    const call = { id, hasArguments: false };
    this.calls.set(callId, call);
    this.lane.send({ type: "TOOL_CALL_START", toolCallId: id, toolCallName: toolName, parentMessageId: this.id });
    return call;
  }

  /** @param {ToolCallBlock} block */
  #endCall({ callId, toolName, arguments: args, metadata }) {
    const { lane } = this;
    const { id, hasArguments } = this.calls.get(callId) ?? this.#beginCall(callId, toolName);
    if (!hasArguments) lane.send({ type: "TOOL_CALL_ARGS", toolCallId: id, delta: JSON.stringify(args) });
    lane.send({ type: "TOOL_CALL_END", toolCallId: id });
    this.calls.delete(callId);
    if (metadata !== undefined) lane.send({ type: "REASONING_ENCRYPTED_VALUE", subtype: "tool-call", entityId: id, encryptedValue: JSON.stringify(metadata) });
  }

  /** Ends calls that are no calls after all. A client waits for the result of every call that it was shown. */
  #dropCalls() {
    for (const { id } of this.calls.values()) {
      this.lane.send({ type: "TOOL_CALL_END", toolCallId: id });
      this.lane.send({ type: "TOOL_CALL_RESULT", messageId: `${id}.result`, toolCallId: id, role: "tool", content: "This call did not run: the answer that made it was cut off." });
    }
    this.calls.clear();
  }
}
