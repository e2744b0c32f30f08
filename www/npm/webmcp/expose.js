// @ts-check
// An agent's tools for the page: scripts, extensions and the browser's own agent may call them.

import { Agent, scripted } from "../core.js";
import { complain, kindOf, misuse } from "../shared.js";
import { exposed, fromPages, modelContext } from "./context.js";

/** @import { ApprovalRequest, JsonSchema, ToolDefinition } from "../index.js" */
/** @import { ExposeOptions } from "../webmcp.js" */

const OPTIONS = ["only", "exposedTo", "annotations", "confirm"];
/** How many calls from outside may run at once. */
const MAX_CALLS = 8;

/**
 * Registers tools with the page. Returns a function that takes them back.
 * @param {readonly ToolDefinition[]} tools @param {ExposeOptions} [options]
 */
export async function expose(tools, options = {}) {
  if (!Array.isArray(tools)) throw misuse(`expose takes a list of tools, got ${kindOf(tools)}`);
  for (const name of Object.keys(options)) if (!OPTIONS.includes(name)) throw misuse(`unknown option \`${name}\` of expose; there are ${OPTIONS.join(", ")}`);
  const { only, exposedTo, annotations, confirm } = options;
  if (confirm !== undefined && typeof confirm !== "function") throw misuse(`\`confirm\` must be a function, got ${kindOf(confirm)}`);
  const context = modelContext("expose", "registerTool");
  const chosen = tools.filter((tool) => !fromPages.has(tool) && (!only || only.includes(tool.name)));
  const schemas = await schemasOf(chosen);
  const controller = new AbortController();
  const running = { count: 0 };
  /** @type {string[]} */
  const names = [];
  const withdraw = () => {
    controller.abort();
    for (const name of names.splice(0)) release(name);
  };
  try {
    for (const definition of chosen) {
      const { name, description } = definition;
      hold(name);
      names.push(name);
      await context.registerTool({
        name, description: description || name, inputSchema: schemas.get(name) ?? { type: "object" },
        annotations: { ...(definition.requiresApproval && { consequentialHint: true }), ...annotations?.(definition) },
        execute: (/** @type {unknown} */ input, /** @type {{ signal?: AbortSignal } | undefined} */ info) => answer(definition, input, confirm, running, info?.signal),
      }, { signal: controller.signal, ...(exposedTo && { exposedTo }) });
    }
  } catch (error) {
    withdraw();
    throw misuse(`the page does not take the tool \`${names.at(-1) ?? "?"}\`: ${/** @type {Error} */ (error)?.message}`, error);
  }
  return withdraw;
}

/** @param {string} name */
const hold = (name) => exposed.set(name, (exposed.get(name) ?? 0) + 1);
/** @param {string} name */
function release(name) {
  const left = (exposed.get(name) ?? 1) - 1;
  if (left > 0) exposed.set(name, left);
  else exposed.delete(name);
}

/** The schemas of the tools as JSON Schema, whichever library wrote them: a model would be sent them. @param {readonly ToolDefinition[]} tools */
async function schemasOf(tools) {
  /** @type {Map<string, JsonSchema>} */
  const schemas = new Map();
  if (tools.length === 0) return schemas;
  const model = scripted([(request) => {
    for (const { name, parameters } of request.tools) schemas.set(name, parameters);
    return "";
  }]);
  await new Agent({ model, tools: [...tools] }).prompt("Which tools are there?");
  return schemas;
}

/**
 * Does one call as an agent would, in a run of one turn: the browser checks nothing. Arguments are validated, what requires
 * approval is asked, and the limits of the tool hold.
 * @param {ToolDefinition} definition @param {unknown} input @param {ExposeOptions["confirm"]} confirm @param {{ count: number }} running @param {AbortSignal} [signal]
 */
async function answer(definition, input, confirm, running, signal) {
  if (running.count >= MAX_CALLS) throw new Error(`${MAX_CALLS} calls of the page's tools are running; wait for one`);
  running.count++;
  try {
    const approveTool = async (/** @type {ApprovalRequest} */ request) => ((await confirm?.(request)) === true ? "approve" : { action: "reject", reason: confirm ? "the person said no" : "nobody can be asked" });
    const toolCalls = [{ callId: "page", toolName: definition.name, arguments: input ?? {} }];
    const agent = new Agent({ model: scripted([/** @type {any} */ ({ toolCalls })]), tools: [definition], maxTurns: 1, approveTool: /** @type {any} */ (approveTool) });
    const run = agent.prompt("A call of the page.", signal && { signal });
    const { messages, error } = await run;
    signal?.throwIfAborted();
    const result = messages.find((message) => message.role === "tool_result");
    if (!result) throw error ?? new Error(`\`${definition.name}\` did not run`);
    if (result.isError) throw new Error(result.content.map((block) => (block.type === "text" ? block.text : "")).join("\n"));
    const [only, another] = result.content;
    return only?.type === "text" && !another ? only.text : { content: result.content };
  } catch (error) {
    // The browser tells the caller that it failed, and nobody why.
    if (!signal?.aborted) complain(`turnwheel/webmcp: a call of \`${definition.name}\` failed`, error);
    throw error;
  } finally {
    running.count--;
  }
}
