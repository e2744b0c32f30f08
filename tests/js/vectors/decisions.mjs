// @ts-check
// Plays the set `approval_fsm`: decisions about the calls of one answer, in a run whose tools each wait until they are pulled.

import { Agent, custom } from "../../../pkg/entry/node.js";
import { quiet } from "../rig/clock.mjs";
import { isObject, policyOptions } from "./policy.mjs";
import { decisionOf } from "./run.mjs";

/** A refused decision has a reason in the package's own words. */
export const HIDDEN = ["error", "tool_call_id", "message"];

/** Why a case cannot be played by the package. @param {any} input @returns {string | undefined} */
export function unreachable({ policy, tool_calls: calls, ops }) {
  const options = policyOptions(policy);
  if ("unreachable" in options) return options.unreachable;
  if (typeof policy === "object" && calls.some((/** @type {any} */ { name }) => /__/.test(name))) return "rules are by the whole name of a tool: the package cuts off no server's";
  if (calls.some((/** @type {any} */ call) => !isObject(call.arguments ?? {}))) return "arguments that are no object are refused before a rule is asked";
  if (ops.some((/** @type {any} */ { decisions }) => decisions && Object.keys(decisions).length === 0)) return "`resolveTools({})` is `false`: it has answered nothing";
  const { rules = {}, default: otherwise } = options.approval;
  const allowed = new Set(calls.filter((/** @type {any} */ { name }) => (rules[name] ?? otherwise) === "approve").map((/** @type {any} */ { id }) => id));
  const decided = ops.flatMap((/** @type {any} */ { id, decisions = {} }) => [id, ...Object.keys(decisions)]);
  if (decided.some((/** @type {any} */ id) => allowed.has(id))) return "a call that a rule allows is no open question: there is nothing to decide about it";
  if (ops.some((/** @type {any} */ { op }) => op === "other_command")) return "decisions are methods of the agent: there is no command that is none";
  return undefined;
}

/** @param {any} input */
export async function play(input) {
  const outcome = await new Table(input).play();
  return input.repeat ? { distinct_outcomes: [outcome] } : outcome;
}

class Table {
  /** Calls that may be pulled, in order; those that run are let go then. @type {{ shown: any, letGo?: () => void }[]} */ #ready = [];
  /** @type {Set<string>} */ #begun = new Set();
  /** @type {any[]} */ #dispatched = [];
  /** @type {any[]} */ #refused = [];
  /** @type {string[]} */ #proposed = [];
  /** @type {any} */ #agent;

  /** @param {any} input */
  constructor(input) {
    this.input = input;
  }

  async play() {
    const { tool_calls: calls, ops, policy } = this.input;
    const names = [...new Set(calls.map((/** @type {any} */ { name }) => name))];
    this.#agent = new Agent({
      model: asking(calls), gate: "prefix", toolExecution: "sequential", .../** @type {any} */ (policyOptions(policy)),
      tools: names.map((name) => ({ name, description: "", parameters: {}, execute: (/** @type {any} */ _, /** @type {any} */ { callId }) => this.#begin(callId, name) })),
    });
    this.#agent.subscribe((/** @type {any} */ event) => this.#hear(event));
    const run = this.#agent.prompt("go");
    await quiet();
    const initial = this.#state();
    const results = [];
    for (const op of ops) {
      const result = await this.#apply(op);
      results.push({ result, state: this.#state() });
    }
    run.abort();
    await run.result;
    return { initial, results, dispatch_order: this.#dispatched, proposed: this.#proposed };
  }

  /** @param {any} event */
  #hear(event) {
    if (event.type === "tool_calls_proposed") this.#proposed = event.calls.map((/** @type {any} */ { callId }) => callId);
    if (event.type === "command_refused") this.#refused.push({ message: event.reason });
    if (event.type === "tool_execution_end" && !this.#begun.has(event.callId)) this.#ready.push({ shown: settled(event) });
  }

  /** @param {string} id @param {any} name @returns {Promise<any>} */
  #begin(id, name) {
    this.#begun.add(id);
    return new Promise((resolve) => this.#ready.push({ shown: { id, name, decision: { action: "accept" } }, letGo: () => resolve("done") }));
  }

  #state() {
    const pending = this.#agent.pendingApprovals.map((/** @type {any} */ { callId }) => callId);
    return { pending, waiting_for_user: pending.length > 0, complete: this.#dispatched.length === this.input.tool_calls.length };
  }

  /** @param {any} op */
  async #apply({ op, id, decision, decisions }) {
    if (op === "next_ready") return (await this.#pull()) ?? null;
    if (op === "drain") {
      const pulled = [];
      for (let next = await this.#pull(); next; next = await this.#pull()) pulled.push(next);
      return pulled;
    }
    const isTaken = op === "resolve_many"
      ? this.#agent.resolveTools(Object.fromEntries(Object.entries(decisions).map(([call, value]) => [call, decisionOf(value)])))
      : this.#agent.resolveTool(id, decisionOf(decision));
    await quiet();
    return isTaken ? "ok" : this.#refused.pop();
  }

  /** The next call that may run, or has its result. */
  async #pull() {
    const next = this.#ready.shift();
    if (!next) return undefined;
    this.#dispatched.push(next.shown);
    next.letGo?.();
    await quiet();
    return next.shown;
  }
}

/** @param {any} event */
function settled({ callId: id, toolName: name, result }) {
  const isRejected = result.cause === "rejected" || result.cause === "denied";
  return { id, name, decision: isRejected ? { action: "reject" } : { action: "custom_result", content: result.content[0]?.text ?? "" } };
}

/** A model that asks for these calls, and then says nothing any more. @param {any[]} calls */
function asking(calls) {
  let isFirst = true;
  return custom("m", async function* (_, { signal }) {
    if (isFirst && calls.length > 0) {
      isFirst = false;
      for (const [contentIndex, { id, name, arguments: given = {} }] of calls.entries()) {
        yield { type: "tool_call_start", contentIndex, callId: id, toolName: name };
        yield { type: "tool_call_delta", contentIndex, delta: JSON.stringify(given) };
        yield { type: "tool_call_end", contentIndex };
      }
      return yield { type: "done", stopReason: "tool_use" };
    }
    await new Promise((_, reject) => signal.addEventListener("abort", reject, { once: true }));
  });
}
