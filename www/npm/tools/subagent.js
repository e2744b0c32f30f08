// @ts-check
// An agent as a tool of another: each call runs a new agent, and the parent emits its
// events as `subagent_event`.

import { kindOf, misuse } from "../shared.js";
import { tool } from "./tool.js";

/** @import { Agent, AgentEvent, AgentOptions, ToolContext } from "../index.js" */
/** @import { Scope } from "../boundary/engine.js" */

/** The key under which a tool's context holds what its sub-agents share with the agent. @type {unique symbol} */
const PARENT = Symbol("turnwheel.parent");
/** The key under which the options of a run hold the scope of the agent that calls this one. @type {unique symbol} */
export const SCOPE = Symbol("turnwheel.scope");
/** The key under which the options of a run hold what stands around the execution of the agent that calls this one. @type {unique symbol} */
export const AROUND = Symbol("turnwheel.around");
/**
 * What stands around execution, and the path of this agent from the root: the ids of the calls.
 * @typedef {{ wrapTool?: AgentOptions["wrapTool"] | undefined, wrapModel?: AgentOptions["wrapModel"] | undefined, path: string[] }} Around
 */
/** @typedef {{ scope: Scope, around: Around, callId: string, metadata: import("../index.js").RunOptions["metadata"], emit(event: AgentEvent): void }} Parent */

/** Lets the sub-agents of a tool emit their events in the run of its agent, and live where that agent lives. @param {object} context @param {Parent} parent */
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
  const { agent, parameters = PARAMETERS, toPrompt = (/** @type {any} */ args) => args.prompt, ...rest } = definition ?? {};
  if (typeof agent !== "function") throw misuse(`subagent needs a function \`agent\` that gives a new Agent, got ${kindOf(agent)}`);
  return tool({
    ...rest,
    parameters,
    /** @param {any} args @param {ToolContext} context */
    async execute(args, context) {
      /** @type {Agent} */
      const child = await agent(args, context);
      // A function body in braces without a `return` is an easy mistake.
      if (typeof child?.prompt !== "function") throw misuse(`\`agent\` must give an Agent, got ${kindOf(child)}`);
      const parent = /** @type {{ [PARENT]?: Parent }} */ (context)[PARENT];
      const unsubscribe = child.subscribe((event) => parent?.emit(event));
      try {
        const metadata = parent?.metadata;
        const options = { signal: context.signal, runId: `${context.runId}/${context.callId}`, ...(metadata !== undefined && { metadata }), [SCOPE]: parent?.scope, [AROUND]: parent && { ...parent.around, path: [...parent.around.path, context.callId] } };
        const run = child.prompt(toPrompt(args), options);
        const { stopReason, text, error } = await run.result;
        if (stopReason === "aborted") return failure("Sub-agent cancelled.");
        if (error) return failure(`Sub-agent error: ${error.message}`);
        return text || stopReason === "completed" ? text : failure(`Sub-agent stopped without an answer: ${stopReason}`);
      } finally {
        unsubscribe();
      }
    },
  });
}

/** @param {string} text */
function failure(text) {
  return { content: [{ type: "text", text }], isError: true };
}
