// @ts-check
// An agent as a tool of another: each call runs a new agent, and the parent emits its
// events as `subagent_event`.

import { CORE, coreIn, kindOf, misuse, VERSION } from "../shared.js";
import { checkShape } from "../options/shape.js";
import { SUB_AGENT, tool } from "./tool.js";

/** @import { Agent, AgentOptions, Checkpoint, RunOptions, ToolContext } from "../index.js" */
/** @import { Scope } from "../boundary/engine.js" */
/** @import { Driver } from "../run/driver.js" */

/** The key under which a tool's context holds the call, for the agent inside it. @type {unique symbol} */
const PARENT = Symbol.for("turnwheel.parent");
/** The key under which the options of a run say that it is inside a call. @type {unique symbol} */
export const INSIDE = Symbol.for("turnwheel.inside");
/**
 * What an observer sets around the execution of every tool, in agents inside too: `work` does it, and is called at once.
 * @typedef {(runId: string, call: { callId: string, toolName: string, arguments: unknown }, work: () => unknown) => unknown} Within
 */
/**
 * What stands around execution, the path of this agent from the root (the ids of the calls), how many there may be, and the run
 * around this one, with the slot of the call.
 * @typedef {{ wrapTool?: AgentOptions["wrapTool"] | undefined, wrapModel?: AgentOptions["wrapModel"] | undefined, within?: Within | undefined, path: string[], maxDepth: number, run?: Driver | undefined, slot?: number }} Around
 */
/** A call that may run an agent. @typedef {{ run: Driver, slot: number, callId: string }} Parent */
/**
 * Where a run is inside: what it shares with the run around it, the checkpoint from which it goes on, and who is told that it
 * is there.
 * @typedef {{ scope: Scope, around: Around, checkpoint: Checkpoint | undefined, adopt(driver: Driver): void }} Inside
 */

/** Lets the sub-agent of a tool live where its agent lives. @param {object} context @param {Parent} parent */
export function setParent(context, parent) {
  /** @type {{ [PARENT]?: Parent }} */ (context)[PARENT] = parent;
}

const PARAMETERS = {
  type: "object",
  properties: { prompt: { type: "string", description: "What the agent is to do, with all it needs to know" } },
  required: ["prompt"],
};

/**
 * Makes a tool that runs an agent. `agent` returns a new one for every call; its last answer is the result.
 * @param {any} definition
 */
export function subagent(definition) {
  const { agent, approvals, parameters = PARAMETERS, toPrompt = (/** @type {any} */ args) => args.prompt, ...rest } = definition ?? {};
  if (typeof agent !== "function") throw misuse(`subagent needs a function \`agent\` that gives a new Agent, got ${kindOf(agent)}`);
  checkShape("approvals", approvals, ["own"]);
  return tool({
    ...rest,
    parameters,
    [SUB_AGENT]: VERSION,
    /** @param {any} args @param {ToolContext} context */
    async execute(args, context) {
      const parent = /** @type {{ [PARENT]?: Parent }} */ (context)[PARENT];
      const { path = [], maxDepth = 1 } = parent?.run.around ?? {};
      if (path.length >= maxDepth) return failure(`Sub-agents are nested too deep: \`maxDepth\` is ${maxDepth}.`);
      /** @type {Agent} */
      const child = await agent(args, context);
      // A function body in braces without a `return` is an easy mistake.
      if (typeof child?.prompt !== "function") throw misuse(`\`agent\` must give an Agent, got ${kindOf(child)}`);
      if (CORE in child) coreIn(child, "the agent inside the call");
      const inside = parent && (await enter(parent, approvals === "own"));
      const { metadata } = context;
      /** @type {RunOptions & { [INSIDE]?: Inside | undefined }} */
      const options = { signal: context.signal, runId: `${context.runId}/${context.callId}`, ...(metadata !== undefined && { metadata }), [INSIDE]: inside };
      const run = inside?.checkpoint ? child.continue(options) : child.prompt(toPrompt(args), options);
      const { stopReason, text, error } = await run.result;
      // The run around it was stopped and ends this call, with its own cause, as soon as its listeners are done.
      if (stopReason === "aborted" && parent?.run.abortion.isAsked) return new Promise(() => {});
      if (stopReason === "aborted") return failure("Sub-agent cancelled.");
      if (error) return failure(`Sub-agent error: ${error.message}`);
      return text || stopReason === "completed" ? text : failure(`Sub-agent stopped without an answer: ${stopReason}`);
    },
  });
}

/** @param {Parent} parent @param {boolean} keepsQuestions @returns {Promise<Inside>} */
async function enter({ run, slot, callId }, keepsQuestions) {
  const { Children } = await import("../run/children.js");
  Children.count(run);
  const { around, core, waitingChildren } = run;
  return {
    scope: core.registration.scope, around: { ...around, path: [...around.path, callId], run, slot }, checkpoint: waitingChildren[callId],
    adopt(driver) {
      // The call may have been cancelled meanwhile: then so is the signal.
      if (run.engineRun.slots.has(slot)) (run.children ??= new Children(run)).adopt(slot, callId, driver, keepsQuestions);
    },
  };
}

/** @param {string} text */
function failure(text) {
  return { content: [{ type: "text", text }], isError: true };
}
