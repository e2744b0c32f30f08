// @ts-check
// The host's policies. One that throws has no say.

import { complain, misuse, toMessage } from "../core.js";
import { handled } from "./host-call.js";

/** @import { AgentMessage, Verdict } from "../index.js" */
/** @typedef {{ stop?: string | undefined, skip?: string | undefined, arguments?: object | undefined, inject?: AgentMessage[] | undefined }} CheckedVerdict */

/**
 * Runs the policies of a slot in order. The first stop wins, and drops the injections before it.
 * @template Context @param {((context: Context) => Verdict)[]} policies @param {Context} context
 * @returns {{ stop?: string, inject?: AgentMessage[] } | undefined}
 */
export function runPolicies(policies, context) {
  const inject = [];
  for (const policy of policies) {
    const verdict = callPolicy(() => policy(context));
    if (verdict?.stop !== undefined) return { stop: verdict.stop };
    inject.push(...(verdict?.inject ?? []));
  }
  return inject.length > 0 ? { inject } : undefined;
}

/** @param {() => unknown} call @returns {CheckedVerdict | undefined} */
export function callPolicy(call) {
  try {
    return checkVerdict(call());
  } catch (error) {
    complain("turnwheel: a policy threw and counts as `continue`", error);
    return undefined;
  }
}

/**
 * Checks a verdict. An injected value that is not a message is an error of this policy only.
 * @param {any} verdict @returns {CheckedVerdict}
 */
function checkVerdict(verdict) {
  if (typeof handled(verdict)?.then === "function") {
    // An error is better than a stop that is never obeyed.
    throw misuse("a policy must decide at once, it gave a promise; only hooks are waited for");
  }
  const { stop, skip, inject, arguments: args } = verdict ?? {};
  const textOf = (/** @type {unknown} */ word) => (word === undefined ? undefined : String(word));
  return { stop: textOf(stop), skip: textOf(skip), arguments: args, inject: inject?.map((/** @type {any} */ message) => (message?.role === "assistant" ? message : toMessage(message, "inject"))) };
}
