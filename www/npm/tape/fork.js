// @ts-check
// An agent that has lived a part of a tape, and goes on for real.

import { Agent } from "../core.js";
import { misuse } from "../shared.js";
import { replay } from "./replay.js";

/** @import { AgentOptions } from "../index.js" */
/** @import { Tape } from "../tape.js" */

/** @param {Tape} tape @param {{ at: number } & AgentOptions} options */
export function fork(tape, options) {
  const { at, ...own } = options ?? {};
  if (typeof at !== "number") throw misuse("fork needs `at`, the number of events that the agent has lived");
  return Agent.restore(replay(tape).seek(at).checkpoint, /** @type {AgentOptions} */ (own));
}
