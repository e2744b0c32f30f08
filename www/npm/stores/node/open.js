// @ts-check
// An agent that belongs to a lease: restored from it, stored by it, stopped when it is lost.

import { Agent } from "../../core.js";
import { complain, kindOf, misuse, textOf } from "../../shared.js";
import { Drafts } from "../drafts.js";
import { Gate } from "../gate.js";
import { Keeper } from "../keeper.js";

/** @import { AgentOptions, WrappedModelCall, WrappedToolCall } from "../../index.js" */
/** @import { Lease as PublicLease } from "../../stores-node.js" */
/** @import { Lease } from "./lease.js" */

/** @param {PublicLease} given @param {AgentOptions} options */
export function openAgent(given, options) {
  if (typeof given?.save !== "function" || !(given.signal instanceof AbortSignal)) throw misuse(`openAgent takes a lease, as store.claim gives it, got ${kindOf(given)}`);
  const lease = /** @type {Lease} */ (/** @type {unknown} */ (given));
  if (typeof lease.hold !== "function" || !lease.events) throw misuse("openAgent of turnwheel/stores/node takes a lease of its stores; for that of a tab, take openAgent of turnwheel/tabs");
  const { fence } = lease;
  const { wrapTool, wrapModel } = options;
  const gate = new Gate();
  const drafts = new Drafts();
  const keeper = new Keeper(lease, () => agent.checkpoint());
  const own = {
    ...options,
    /** A tool starts only when its announcement is stored, and the lease still holds. @param {WrappedToolCall} call @param {(more?: object) => Promise<unknown>} next */
    wrapTool: (call, next) => gate.enter([...call.path, call.callId], async () => {
      await keeper.change();
      if (!lease.isHeld) throw lease.signal.reason;
      const run = (/** @type {object | undefined} */ more) => next({ fence, ...more });
      return wrapTool ? wrapTool(call, run) : run(undefined);
    }),
    /** @param {WrappedModelCall} call @param {() => Promise<any>} next */
    wrapModel: (call, next) => gate.pass([...call.path, "model"], call.signal, () => (wrapModel ? wrapModel(call, next) : next())),
  };
  const { messages, ...others } = own;
  const agent = lease.checkpoint ? Agent.restore(lease.checkpoint, others) : new Agent(own);
  agent.subscribe((event) => {
    if (!drafts.isChange(event) || !lease.isHeld) return;
    // Nobody waits for this one; the tools and the end of the run wait for theirs.
    const saved = keeper.change();
    return saved.catch((error) => {
      if (!lease.isHeld) return;
      if (event.type === "agent_end") throw error;
      complain(`turnwheel/stores/node: \`${lease.id}\` could not be stored`, textOf(error));
    });
  }, { keep: true });
  const stop = () => agent.abort(lease.signal.reason?.message ?? "the agent was given back");
  lease.hold({ pause: () => gate.close(), stored: () => keeper.pending, stop });
  if (lease.signal.aborted) stop();
  else lease.signal.addEventListener("abort", stop, { once: true });
  return agent;
}
