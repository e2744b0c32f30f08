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

/** SQLSTATE: a value, a constraint, rights, a database, a statement, a limit; what two connections do to each other is left out. Then files. */
const LASTING = /^(22|23(?!505)|28|3[DF]|42(?!P05)|0A|54)...$|^(EROFS|EISDIR|ENOTDIR|ENAMETOOLONG)$/;
/** The same of SQLite, by its numbers. */
const SQLITE_LASTING = [1, 3, 8, 11, 18, 19, 20, 25, 26];
const NETWORK = /fetch|network|load failed/i;

/** Whether a write that failed will fail again, however often it is tried: by its types, its rights, its words. @param {any} error */
export function isLasting(error) {
  const { code, errcode = 0, name, message } = error?.cause ?? error ?? {};
  // A request that a server did not get is a TypeError, too.
  if (/^(Type|Range)Error$/.test(name)) return !NETWORK.test(message);
  return code === "misuse" || LASTING.test(code) || SQLITE_LASTING.includes(errcode & 255);
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
