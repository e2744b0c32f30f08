// @ts-check
// What the iterators of local and remote runs have in common.

export const LATE = "the run has begun to answer, and nobody kept the pieces; iterate it before anything else is awaited, or use agent.subscribe";

/**
 * Yields the text of all answers, as it arrives.
 * @param {any} events an iterator over the events, already requested
 */
export function textsOf(events) {
  const texts = textDeltas(events);
  const returnTexts = texts.return;
  // A generator learns of `return` only at its next piece, or never if it was not started. Streams are
  // cancelled this way, so the iterator of the events is notified directly.
  texts.return = (value) => (events.return(), returnTexts.call(texts, value));
  return texts;
}

/** @param {AsyncIterable<any>} events */
async function* textDeltas(events) {
  for await (const event of events) if (event.type === "message_update" && event.delta.type === "text") yield event.delta.delta;
}
