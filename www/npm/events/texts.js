// @ts-check
// The text of a run alone.

/** @import { AgentEvent } from "../index.js" */

/**
 * Yields the text of all answers, as it arrives.
 * @param {AsyncIterableIterator<AgentEvent> & { return(value?: any): unknown }} events already requested
 * @returns {AsyncGenerator<string, any, any>}
 */
export function textsOf(events) {
  const texts = textDeltas(events);
  const returnTexts = texts.return;
  // A generator learns of `return` only at its next piece, or never if it was not started. Streams are
  // cancelled this way, so the iterator of the events is notified directly.
  texts.return = (value) => (events.return(), returnTexts.call(texts, value));
  return texts;
}

/** @param {AsyncIterable<AgentEvent>} events @returns {AsyncGenerator<string, any, any>} */
async function* textDeltas(events) {
  for await (const event of events) if (event.type === "message_update" && event.delta.type === "text") yield event.delta.delta;
}
