// @ts-check
// What stores keep of an agent, and how it becomes a checkpoint again.

import { AgentError, isSealed, textOf } from "../shared.js";

/** @import { Checkpoint } from "../index.js" */
/** @import { SealedCheckpoint } from "../stores.js" */

/**
 * What is kept of an agent: its checkpoint without the messages, and each of them.
 * @typedef {{ state: string | undefined, messages: string[] }} Kept
 */

/** Names what failed, and where. @template T @param {{ place: string }} shelf @param {string} what @param {string} id @param {() => Promise<T>} work */
export async function attempt({ place }, what, id, work) {
  try {
    return await work();
  } catch (error) {
    if (AgentError.isInstance(error)) throw error;
    throw new AgentError({ code: "unknown", message: `\`${id}\` could not be ${what} ${place}: ${textOf(error)}`, retryable: false }, error);
  }
}

/** The JSON of a message; that of an agent that is stored again and again is written already. @param {unknown} message */
const jsonOf = (message) => (typeof message === "string" ? message : JSON.stringify(message));

/** @param {Checkpoint | SealedCheckpoint} checkpoint @returns {{ state: string, messages: string[] }} */
export function split(checkpoint) {
  const { messages, ...rest } = /** @type {Partial<Checkpoint>} */ (checkpoint);
  return { state: JSON.stringify(rest), messages: (messages ?? []).map(jsonOf) };
}

/** What was kept, put together again. One that was sealed still is. @param {Kept | undefined} kept @returns {any} */
export function whole(kept) {
  if (kept?.state === undefined) return;
  const state = JSON.parse(kept.state);
  return isSealed(state) ? state : { ...state, messages: kept.messages.map((json) => JSON.parse(json)) };
}

/** Whether a run would go on. @param {any} checkpoint */
export function isInProgress(checkpoint) {
  const { run, prompts } = checkpoint?.metadata?.turnwheel ?? {};
  return (run ?? prompts ?? undefined) !== undefined;
}
