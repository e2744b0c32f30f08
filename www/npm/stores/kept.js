// @ts-check
// What stores keep of an agent, and how it becomes a checkpoint again.

import { AgentError, isSealed, misuse, textOf } from "../shared.js";
import { unseal } from "./seal.js";

/** @import { Checkpoint } from "../index.js" */
/** @import { SealedCheckpoint } from "../stores.js" */
/** @import { StoreOptions } from "../stores-node.js" */

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

/** @param {Checkpoint | SealedCheckpoint} checkpoint @returns {{ state: string, messages: string[] }} */
export function split(checkpoint) {
  const { messages, ...rest } = /** @type {Partial<Checkpoint>} */ (checkpoint);
  return { state: JSON.stringify(rest), messages: (messages ?? []).map((message) => JSON.stringify(message)) };
}

/** What was kept, put together again, and opened if it was sealed. @param {Kept | undefined} kept @param {string} id @param {StoreOptions["seal"]} [sealing] @returns {Promise<any>} */
export async function whole(kept, id, sealing) {
  if (kept?.state === undefined) return;
  const state = JSON.parse(kept.state);
  if (isSealed(state)) return sealing ? unseal(state, sealing.key, { context: contextOf(sealing, id) }) : state;
  // Otherwise whoever can write to the database could put one there that nobody sealed.
  if (sealing) throw misuse(`the checkpoint \`${id}\` is not sealed: anybody may have written it`);
  return { ...state, messages: kept.messages.map((json) => JSON.parse(json)) };
}

/** Nobody can put one agent's checkpoint in the place of another's. @param {NonNullable<StoreOptions["seal"]>} sealing @param {string} id */
export const contextOf = ({ context }, id) => (context === undefined ? id : `${context}/${id}`);

/** Whether a run would go on. @param {any} checkpoint */
export function isInProgress(checkpoint) {
  const { run, prompts } = checkpoint?.metadata?.turnwheel ?? {};
  return (run ?? prompts ?? undefined) !== undefined;
}
