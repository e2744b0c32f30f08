// @ts-check
// What a run in this process and one elsewhere have in common for who iterates.

export const LATE = "the run has begun to answer, and nobody kept the pieces; iterate it before anything else is awaited, or use agent.subscribe";

/** The text of all answers, as it comes. @param {any} events an iterator of them, which is asked for already */
export function textsOf(events) {
  const texts = only(events);
  const leave = texts.return;
  // A generator would hear of it when the next piece comes, or never, if it was not asked for the first. Streams leave so.
  texts.return = (value) => (events.return(), leave.call(texts, value));
  return texts;
}

/** @param {AsyncIterable<any>} events */
async function* only(events) {
  for await (const event of events) if (event.type === "message_update" && event.delta.type === "text") yield event.delta.delta;
}
