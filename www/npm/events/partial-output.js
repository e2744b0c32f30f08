// @ts-check
// A structured answer while it arrives: as a call of the tool for it, or as a text. Loaded when somebody reads one.

/** @import { AgentEvent, JsonSchema } from "../index.js" */
/** @import { PartialJson } from "./partial-json.js" */

/** The tool whose arguments are the answer. */
const OUTPUT_TOOL = "__structured_output";

/**
 * Yields the answer each time it has grown: snapshots, each of which stays as it is. An attempt that fails is followed by
 * the beginning of the next.
 * @param {AsyncIterable<AgentEvent>} events @param {JsonSchema} schema
 * @param {() => PartialJson} begin the parser is part of what every page has
 * @param {(json: PartialJson) => any} snapshotOf so is this @returns {AsyncGenerator<any, void>}
 */
export async function* outputsOf(events, schema, begin, snapshotOf) {
  const isList = schema["type"] === "array";
  /** The blocks of the message, by their index. @type {Map<number, Growing>} */
  const blocks = new Map();
  for await (const event of events) {
    if (event.type === "message_start" || event.type === "message_reset") blocks.clear();
    if (event.type !== "message_update") continue;
    const { delta } = event;
    if (delta.type === "thinking" || (delta.type === "tool_call" && delta.toolName !== OUTPUT_TOOL)) continue;
    const block = blocks.get(delta.contentIndex) ?? new Growing(begin(), snapshotOf, delta.type === "tool_call" || !isList ? "{" : "[");
    blocks.set(delta.contentIndex, block);
    const value = block.grow(delta.delta);
    if (value === undefined) continue;
    // What is no object goes into the member of one.
    const isWrapped = delta.type === "tool_call" && (schema["type"] ? schema["type"] !== "object" : schema["anyOf"] ?? schema["oneOf"]);
    const output = isWrapped ? value.value : value;
    if (output !== undefined) yield output;
  }
}

/** JSON that grows, after whatever is written before it. */
class Growing {
  /** @param {PartialJson} json @param {(json: PartialJson) => any} snapshotOf @param {string} open the character that begins it */
  constructor(json, snapshotOf, open) {
    this.snapshotOf = snapshotOf;
    this.open = open;
    this.hasBegun = false;
    this.json = json;
  }

  /** @param {string} piece @returns {any} */
  grow(piece) {
    let text = piece;
    if (!this.hasBegun) {
      const at = piece.indexOf(this.open);
      if (at < 0) return;
      this.hasBegun = true;
      text = piece.slice(at);
    }
    // Behind its end there may be more words.
    if (this.json.stack.length === 0 && this.json.value !== undefined) return;
    this.json.feed(text);
    return this.snapshotOf(this.json);
  }
}
