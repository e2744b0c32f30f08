// @ts-check
// A call of a language model: the request as its options, its stream as the events of an answer.

import { callOptions } from "./call-options.js";
import { AnswerReader } from "./stream.js";

/** @import { AssistantMessageEvent, ModelRequest } from "../index.js" */
/** @import { LanguageModelLike, LanguageModelOptions } from "../ai-sdk.js" */
/** @typedef {{ type: string } & Record<string, any>} Part a part of the stream, as the model's version defines it */

/**
 * @param {LanguageModelLike} model @param {string} provider @param {LanguageModelOptions} options @param {ModelRequest} request @param {AbortSignal} signal
 * @returns {AsyncGenerator<AssistantMessageEvent>}
 */
export async function* answer(model, provider, options, request, signal) {
  const given = callOptions(model, provider, options, request);
  const { stream } = /** @type {{ stream: ReadableStream<Part> }} */ (await model.doStream(/** @type {any} */ ({ ...given, abortSignal: signal })));
  const reader = stream.getReader();
  // A model may not look at its signal; then nothing else would end the read.
  const leave = () => void reader.cancel(signal.reason).catch(() => {});
  signal.addEventListener("abort", leave, { once: true });
  try {
    const answer = new AnswerReader(model, options.onWarning);
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      yield* answer.take(value);
      if (answer.isOver) return;
    }
    if (!signal.aborted) yield* answer.end();
  } finally {
    signal.removeEventListener("abort", leave);
    leave();
  }
}
