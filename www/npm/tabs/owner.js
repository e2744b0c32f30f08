// @ts-check
// The tab that owns the agent: makes it from what is stored, stores what it does, answers the others. Loaded beside the rest,
// for a tab that only follows does without.

import { agentHandler } from "../server/server.js";
import { kindOf, misuse } from "../shared.js";
import { Lease } from "../stores/lease.js";
import { StoredEvents } from "./log.js";

/** @import { Agent } from "../index.js" */
/** @import { AgentHandlerOptions } from "../server.js" */
/** @import { Claimed } from "../stores/locked.js" */
/** @import { MakeAgent } from "../tabs.js" */
/** @typedef {{ agent: Agent, handler: import("../server.js").AgentHandler, lease: Lease }} Owned */

/** A listener that hears nothing learns that often that somebody is there. */
const KEEP_ALIVE_MS = 15_000;

/** @param {Claimed} claimed @param {MakeAgent} make @param {AgentHandlerOptions} options @returns {Promise<Owned>} */
export async function own({ lease, log }, make, options) {
  const agent = await make(/** @type {any} */ (lease));
  if (typeof agent?.checkpoint !== "function") throw misuse(`the function that \`shared\` is given must return an Agent, got ${kindOf(agent)}`);
  if (!lease.isOpened) throw misuse("the agent of `shared` is made with openAgent(lease, options): one that is made otherwise would start tools before anything is stored");
  if (agent.isRunning) throw misuse("the function that `shared` is given only makes the agent; a run that was in progress is continued afterwards");
  const handler = agentHandler(agent, { ...options, events: new StoredEvents(lease, agent, log), keepAliveMs: KEEP_ALIVE_MS });
  // Nobody waits for this run here; who listens hears of it.
  if (agent.canContinue) agent.continue();
  return { agent, handler, lease };
}

/** What a tab has that is alone: nothing is stored, and nobody can take it away. @param {string} id @returns {Claimed} */
export function alone(id) {
  const shelf = { place: "nowhere", save: async () => true, renew: async () => true, release: async () => {} };
  return { lease: new Lease({ shelf, ttlMs: Infinity }, id, 1, [], undefined, 0), log: { first: Date.now() * 1000, entries: [] }, at: performance.now() };
}
