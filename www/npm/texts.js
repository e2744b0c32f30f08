// @ts-check
// What a run in this process and one elsewhere have in common for who iterates.

export const LATE = "the run has begun to answer, and nobody kept the pieces; iterate it before anything else is awaited, or use agent.subscribe";

/** The text of all answers, as it comes. @param {AsyncIterable<any>} events */
export async function* textsOf(events) {
  for await (const event of events) if (event.type === "message_update" && event.delta.type === "text") yield event.delta.delta;
}
