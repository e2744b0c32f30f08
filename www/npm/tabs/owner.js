// @ts-check
// The tab that owns the agent: makes it from what is stored, stores what it does, answers the others. Loaded beside the rest,
// for a tab that only follows does without.

import { getEngine } from "../core.js";
import { agentHandler } from "../server/server.js";
import { kindOf, misuse } from "../shared.js";
import { Lease } from "../stores/lease.js";
import { Answers, requestOf } from "./answers.js";

/** @import { Agent } from "../index.js" */
/** @import { Claim, Claims } from "../stores/locked.js" */
/** @import { Answerer } from "./answers.js" */
/** @import { TabOptions } from "./tab.js" */
/** @import { Channels } from "./channel.js" */
/** @typedef {{ agent: Agent, handler: import("../server.js").AgentHandler, lease: Lease, answer: Answerer, answers: Answers }} Owned */

export { Watch } from "./watch.js";

/** A page that has not gone by then stays. */
const LEAVE_MS = 2000;
/** A listener that hears nothing learns that often that somebody is there. */
const KEEP_ALIVE_MS = 15_000;

/** Gets ready what takes longest when a tab becomes the owner: the engine, and the place where the agent is kept. @param {Claims} claims @param {string} id */
export async function warmUp(claims, id) {
  const engine = async () => (await getEngine()).whole();
  await Promise.all([claims.open(id), engine()]);
}

/** @param {Claim} claim @param {TabOptions} options @param {Channels} channels @returns {Promise<Owned>} */
export async function own({ lease }, { make, handler: options, waiting }, channels) {
  const agent = await make(/** @type {any} */ (lease));
  if (typeof agent?.checkpoint !== "function") throw misuse(`the function given to \`shared\` must return an Agent, got ${kindOf(agent)}`);
  if (!lease.isOpened) throw misuse("the agent of `shared` is made with openAgent(lease, options): otherwise tools would start before anything is stored");
  if (agent.isRunning) throw misuse("the function given to `shared` only makes the agent; a run in progress is continued afterwards");
  const handler = agentHandler(agent, {
    ...options, events: lease.events, keepAliveMs: KEEP_ALIVE_MS,
    // In the same task, when what was said still waits to be read: a decision that was read, and has not led to anything yet, is
    // asked for again after a restore.
    commit: () => lease.save(agent.checkpoint()),
  });
  // Firefox ends all requests of a page that is about to be left. The failures of tools that follow from it are nothing to store.
  const pause = () => (lease.isHeld ? lease.pause(LEAVE_MS) : globalThis.removeEventListener("beforeunload", pause));
  globalThis.addEventListener?.("beforeunload", pause);
  // Nobody waits for this run here; who listens hears of it.
  if (agent.canContinue) agent.continue();
  /** @type {Answerer} */
  const answer = (asked) => handler(requestOf(asked));
  return { agent, handler, lease, answer, answers: new Answers(channels, answer, lease.fence, waiting) };
}

/** What a tab has that is alone: nothing is stored, and nobody can take it away. @param {string} id @returns {Claim} */
export function alone(id) {
  const now = Date.now() * 1000;
  const shelf = { place: "nowhere", save: async () => true, renew: async () => true, release: async () => {}, events: async () => [] };
  return { lease: new Lease({ shelf, ttlMs: Infinity }, id, { fence: 1, messages: [], first: now, last: now, bytes: 0 }, [], undefined, 0), at: performance.now() };
}
