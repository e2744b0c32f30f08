// @ts-check
// An agent that has lived a part of a tape, and goes on for real.

import { Agent } from "../core.js";
import { kindOf, misuse } from "../shared.js";
import { isTape, replay } from "./replay.js";

/** @import { AgentOptions } from "../index.js" */
/** @import { Tape } from "../tape.js" */

/** @param {Tape} tape @param {{ at: number } & AgentOptions} options */
export async function fork(tape, options) {
  if (!isTape(tape)) throw misuse(`fork needs a tape, got ${kindOf(tape)}; Tape.parse(text) makes one of a text`);
  const { at, ...own } = options ?? {};
  if (typeof at !== "number") throw misuse(`fork needs \`at\`, the number of events that the agent has lived: fork(tape, { at: 5, model }); got ${kindOf(at)}`);
  return Agent.restore(replay(tape).seek(at).checkpoint, /** @type {AgentOptions} */ (own));
}
