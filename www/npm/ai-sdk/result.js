// @ts-check
// A call of an agent as the AI SDK makes it, and what it gives: version 7 reads the parts of a stream, version 6 the chunks of a UI
// message.

import { misuse } from "../shared.js";
import { postedOf } from "./model-messages.js";
import { Parts } from "./parts.js";

/** @import { Chunk } from "../response/uimessages.js" */
/** @import { Chat } from "./chat.js" */

/** What a result has as promises. */
const MEMBERS = ["text", "reasoningText", "content", "toolCalls", "toolResults", "finishReason", "usage", "totalUsage", "steps", "output", "warnings"];

/** @param {Chat} chat @param {any} call */
export async function begin(chat, call) {
  if (call?.experimental_steering) throw misuse("`experimental_steering` is for a ToolLoopAgent; steer this agent by agent.steer(…)");
  const posted = postedOf(call);
  const change = posted.prompt && chat.knows(posted.prompt, posted.before) ? "again" : undefined;
  return new Result(await chat.submit({ ...posted, change, signal: call.abortSignal }));
}

/** The result of a call. Its stream can be read once, in either form. */
class Result {
  /** @param {ReadableStream<Chunk>} chunks */
  constructor(chunks) {
    this.chunks = chunks;
    this.parts = new Parts();
    /** @type {Promise<any> | undefined} */
    this.end = undefined;
    for (const name of MEMBERS) Object.defineProperty(this, name, { get: async () => (await this.whole())[name] });
  }

  /** For ai 6. */
  toUIMessageStream() {
    return this.chunks.pipeThrough(new TransformStream({ transform: (chunk, controller) => controller.enqueue(this.parts.dynamic(chunk)) }));
  }

  /** For ai 7. */
  get stream() {
    return this.chunks.pipeThrough(new TransformStream({
      transform: (chunk, controller) => {
        for (const part of this.parts.of(chunk)) controller.enqueue(part);
      },
    }));
  }

  get fullStream() {
    return this.stream;
  }

  get textStream() {
    return this.stream.pipeThrough(new TransformStream({ transform: (part, controller) => (part.type === "text-delta" ? controller.enqueue(part.text) : undefined) }));
  }

  /** The result when the run is over, or waits for a person. */
  whole() {
    return (this.end ??= (async () => {
      const reader = this.stream.getReader();
      while (!(await reader.read()).done);
      return this.parts.result();
    })());
  }

  async consumeStream() {
    await this.whole();
  }
}
