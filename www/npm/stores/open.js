// @ts-check
// An agent that belongs to a lease: restored from it, stored by it, stopped when it is lost.

import { Agent } from "../core.js";
import { complain, kindOf, misuse } from "../shared.js";

/** @import { AgentOptions, WrappedToolCall } from "../index.js" */
/** @import { Lease } from "../stores.js" */

/** What is no reason to store anything: pieces of an answer, and what tools report. */
const PIECES = new Set(["message_update", "tool_execution_update", "subagent_event"]);

/** @param {Lease} lease @param {AgentOptions} options */
export function openAgent(lease, options) {
  if (typeof lease?.save !== "function" || !(lease.signal instanceof AbortSignal)) throw misuse(`openAgent takes a lease, as store.claim gives it, got ${kindOf(lease)}`);
  const { wrapTool } = options;
  /** The write that is on, and the one that begins after it. @type {Promise<void> | undefined} */
  let current;
  /** @type {Promise<void> | undefined} */
  let next;
  /** Resolves when what holds now is stored. What happens while one is written is stored together, by the next. */
  const stored = () => {
    const before = current?.catch(() => {}) ?? Promise.resolve();
    return (next ??= before.then(() => {
      next = undefined;
      return (current = write());
    }));
  };
  async function write() {
    if (!lease.isHeld) throw lease.signal.reason ?? misuse(`the lease of \`${lease.id}\` was given back`);
    await lease.save(agent.checkpoint());
  }
  const own = {
    ...options,
    /** A tool starts only when its announcement is stored, and the lease still holds. @param {WrappedToolCall} call @param {() => Promise<unknown>} next */
    async wrapTool(call, next) {
      await stored();
      if (!lease.isHeld) throw lease.signal.reason;
      return wrapTool ? wrapTool(call, next) : next();
    },
  };
  const { messages, ...others } = own;
  const agent = lease.checkpoint ? Agent.restore(lease.checkpoint, others) : new Agent(own);
  agent.subscribe((event) => {
    const kind = event.type === "subagent_event" ? event.event.type : event.type;
    if (PIECES.has(kind) || !lease.isHeld) return;
    // Nobody waits for this one; the tools and the end of the run wait for theirs.
    const saved = stored();
    if (event.type === "agent_end") return saved;
    saved.catch((error) => {
      if (lease.isHeld) complain(`turnwheel: \`${lease.id}\` could not be stored`, error);
    });
  }, { keep: true });
  lease.beforeRelease?.(() => next ?? current);
  const stop = () => agent.abort(lease.signal.reason?.message ?? "the lease is lost");
  if (lease.signal.aborted) stop();
  else lease.signal.addEventListener("abort", stop, { once: true });
  return agent;
}
