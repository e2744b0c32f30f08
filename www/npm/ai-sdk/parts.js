// @ts-check
// The chunks of a UI message as the parts of a text stream, and as the result of a call.

/** @import { Chunk } from "../response/uimessages.js" */
/** @typedef {{ type: string } & Record<string, any>} Part */

export class Parts {
  constructor() {
    /** The calls, by id. @type {Map<string, { toolCallId: string, toolName: string, input: any, dynamic: true }>} */
    this.calls = new Map();
    /** What the steps consist of. @type {{ content: Part[], finishReason: string }[]} */
    this.steps = [];
    this.finishReason = "other";
    /** @type {any} */
    this.usage = usageOf({});
    /** @type {unknown} */
    this.output = undefined;
    /** What the run failed with. @type {string | undefined} */
    this.error = undefined;
  }

  /** A chunk as ai 6 expects it of tools that it does not know. @param {Chunk} chunk @returns {Chunk} */
  dynamic(chunk) {
    return chunk.type === "tool-input-start" || chunk.type === "tool-input-available" ? { ...chunk, dynamic: true } : chunk;
  }

  /** @param {any} chunk @returns {Part[]} */
  of(chunk) {
    const { type, id, delta, toolCallId, toolName } = chunk;
    const call = this.calls.get(toolCallId) ?? { toolCallId, toolName: toolName ?? "", input: undefined, dynamic: true };
    switch (type) {
      case "start":
        return [{ type }];
      case "start-step":
        this.steps.push({ content: [], finishReason: "other" });
        return [{ type, request: {}, warnings: [] }];
      case "text-start":
      case "reasoning-start":
        this.#add({ type: type.slice(0, -"-start".length), text: "" });
        return [chunk];
      case "text-delta":
      case "reasoning-delta":
        /** @type {any} */ (this.steps.at(-1)?.content.at(-1)).text += delta;
        return [{ type, id, text: delta }];
      case "tool-input-start":
        return [{ type, id: toolCallId, toolName, dynamic: true }];
      case "tool-input-delta":
        return [{ type, id: toolCallId, delta: chunk.inputTextDelta }];
      case "tool-input-available":
        this.calls.set(toolCallId, { toolCallId, toolName, input: chunk.input, dynamic: true });
        return [this.#add({ type: "tool-call", toolCallId, toolName, input: chunk.input, dynamic: true })];
      case "tool-approval-request":
        return [this.#add({ type, approvalId: chunk.approvalId, toolCall: { type: "tool-call", ...call } })];
      case "tool-approval-response":
        return [{ type, approvalId: chunk.approvalId, approved: chunk.approved, toolCall: { type: "tool-call", ...call } }];
      case "tool-output-available": {
        const result = { type: "tool-result", ...call, output: chunk.output, ...(chunk.preliminary && { preliminary: true }) };
        return [chunk.preliminary ? result : this.#add(result)];
      }
      case "tool-output-error":
        return [this.#add({ type: "tool-error", ...call, error: chunk.errorText })];
      case "tool-output-denied":
        return [{ type, toolCallId, toolName: call.toolName }];
      case "finish-step":
        return [{ type, finishReason: "other", usage: usageOf({}), response: {} }];
      case "message-metadata":
        this.#take(chunk.messageMetadata);
        return [];
      case "finish":
        this.#take(chunk.messageMetadata);
        this.finishReason = chunk.finishReason;
        return [{ type, finishReason: chunk.finishReason, totalUsage: this.usage }];
      case "error":
        this.finishReason = "error";
        this.error = chunk.errorText;
        return [{ type, error: new Error(chunk.errorText) }];
      case "text-end":
      case "reasoning-end":
      case "abort":
        return [chunk];
      default:
        // A stream of parts cannot take anything back, and has no data of one's own.
        return [];
    }
  }

  /** @param {Part} part */
  #add(part) {
    if (this.steps.length === 0) this.steps.push({ content: [], finishReason: "other" });
    this.steps.at(-1)?.content.push(part);
    return part;
  }

  /** @param {any} metadata of the message, as the run's end has it */
  #take(metadata) {
    if (metadata?.usage) this.usage = usageOf(metadata.usage);
    if (metadata?.output !== undefined) this.output = metadata.output;
  }

  /** The result of `generate`. */
  result() {
    if (this.error !== undefined) throw new Error(this.error);
    const steps = this.steps.map(({ content }) => ({
      content,
      text: textOf(content, "text"),
      reasoningText: textOf(content, "reasoning") || undefined,
      toolCalls: content.filter(({ type }) => type === "tool-call"),
      toolResults: content.filter(({ type }) => type === "tool-result"),
    }));
    const last = steps.at(-1) ?? { content: [], text: "", reasoningText: undefined, toolCalls: [], toolResults: [] };
    return { ...last, steps, finishReason: this.finishReason, usage: this.usage, totalUsage: this.usage, output: this.output, warnings: [] };
  }
}

/** @param {Part[]} content @param {string} kind */
const textOf = (content, kind) => content.filter(({ type }) => type === kind).map(({ text }) => text).join("");

/** @param {any} usage of a run */
function usageOf({ input = 0, output = 0, cacheRead = 0, cacheWrite = 0, reasoning, total = 0 }) {
  return {
    inputTokens: input + cacheRead + cacheWrite,
    inputTokenDetails: { noCacheTokens: input, cacheReadTokens: cacheRead, cacheWriteTokens: cacheWrite },
    outputTokens: output,
    outputTokenDetails: { textTokens: output - (reasoning ?? 0), reasoningTokens: reasoning },
    totalTokens: total,
  };
}
