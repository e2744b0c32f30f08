// @ts-check
// An answer that is streaming in: its blocks, and the arguments of its calls, as far as they have arrived.

import { emptyList } from "../v8.js";
import { PartialJson, snapshotOf } from "./partial-json.js";

/** @import { AssistantMessage, Delta, TextBlock, ThinkingBlock, ToolCallBlock } from "../index.js" */
/** @typedef {TextBlock | ThinkingBlock | ToolCallBlock} ShownBlock */

/** The arguments of a call so far: pieces, or the value built from them once somebody has asked for it. */
class PartialArguments {
  constructor() {
    /** @type {string[]} */
    this.pieces = emptyList();
    /** @type {PartialJson | undefined} */
    this.json = undefined;
  }

  /** @param {string} piece */
  push(piece) {
    if (this.json) this.json.feed(piece);
    else this.pieces.push(piece);
  }

  /** @returns {PartialJson} */
  parse() {
    if (!this.json) {
      this.json = new PartialJson();
      for (const piece of this.pieces) this.json.feed(piece);
      this.pieces.length = 0;
    }
    return this.json;
  }
}

/** A block so far. A snapshot of it is the same object until the block grows. */
class PartialBlock {
  /**
   * @param {Delta["type"]} type @param {string} callId @param {string} toolName both empty unless it is a call
   * @param {PartialArguments | undefined} args of a call
   */
  constructor(type, callId, toolName, args) {
    this.type = type;
    this.callId = callId;
    this.toolName = toolName;
    this.arguments = args;
    this.text = "";
    /** The block of a checkpoint that this one continues. @type {ShownBlock | undefined} */
    this.before = undefined;
    /** @type {ShownBlock | undefined} */
    this.shown = undefined;
  }

  /** Adds a piece. @param {string} piece */
  push(piece) {
    if (this.type === "tool_call") this.arguments?.push(piece);
    else this.text += piece;
    this.shown = undefined;
  }

  /** @returns {ShownBlock} */
  snapshot() {
    return (this.shown ??= this.#show());
  }

  /** @returns {ShownBlock} */
  #show() {
    const { type, before, callId, toolName } = this;
    if (type !== "tool_call") return /** @type {ShownBlock} */ ({ ...before, type, [type]: this.text });
    if (before) return { ...before };
    const value = this.arguments ? snapshotOf(this.arguments.parse()) : undefined;
    return { type, callId, toolName, arguments: typeof value === "object" && value !== null ? value : {} };
  }
}

/** What has arrived of an answer. */
export class PartialAnswer {
  constructor() {
    /** The blocks by their index in the answer. @type {Map<number, PartialBlock>} */
    this.blocks = new Map();
    /** The arguments by call id. @type {Map<string, PartialArguments>} */
    this.arguments = new Map();
  }

  clear() {
    this.blocks.clear();
    this.arguments.clear();
  }

  /** Starts from what had arrived before the run was interrupted. @param {readonly AssistantMessage["content"][number][]} content */
  restore(content) {
    this.clear();
    content.forEach((block, contentIndex) => {
      if (block.type === "raw") return;
      const partial = new PartialBlock(block.type, "", "", undefined);
      partial.before = block;
      partial.text = block.type === "text" ? block.text : block.type === "thinking" ? block.thinking : "";
      this.blocks.set(contentIndex, partial);
    });
  }

  /** Begins a call. @param {number} contentIndex @param {string} callId @param {string} toolName */
  beginCall(contentIndex, callId, toolName) {
    const args = this.arguments.get(callId) ?? new PartialArguments();
    this.arguments.set(callId, args);
    const block = new PartialBlock("tool_call", callId, toolName, args);
    this.blocks.set(contentIndex, block);
    return block;
  }

  /** Adds a piece. @param {Delta} delta */
  grow(delta) {
    const { type, contentIndex } = delta;
    let block = this.blocks.get(contentIndex);
    if (!block && type === "tool_call") block = this.beginCall(contentIndex, delta.callId, delta.toolName);
    if (!block) this.blocks.set(contentIndex, (block = new PartialBlock(type, "", "", undefined)));
    block.push(delta.delta);
  }

  /** The blocks so far, in order. @returns {ShownBlock[]} */
  content() {
    return [...this.blocks].sort(([a], [b]) => a - b).map(([, block]) => block.snapshot());
  }
}
