// @ts-check
// An agent that belongs to a lease: restored from it, stored by it, stopped when it is lost. What that takes, the lease brings
// with it.

import { Agent } from "../core.js";
import { kindOf, misuse } from "../shared.js";

/** @import { AgentOptions } from "../index.js" */
/** @import { Lease as PublicLease } from "../stores.js" */
/** @import { Lease } from "./lease.js" */

/** @param {PublicLease} given @param {AgentOptions} options @returns {Promise<Agent>} */
export async function openAgent(given, options) {
  const lease = /** @type {Lease} */ (/** @type {unknown} */ (given));
  if (typeof lease?.hold !== "function") throw misuse(`openAgent takes a lease, as store.claim gives it, got ${kindOf(given)}`);
  const { checkpoint, signal } = lease;
  /** @type {Agent | undefined} */
  let agent;
  const { around, hear, stop } = lease.hold(options, () => agent);
  const { messages, ...own } = { ...options, ...around };
  agent = checkpoint ? await Agent.restore(checkpoint, own) : new Agent({ ...own, messages });
  agent.subscribe(hear, { keep: true });
  if (signal.aborted) stop();
  else signal.addEventListener("abort", stop, { once: true });
  return agent;
}
