// @ts-check
// Plays the set `approval_policy`: whether a call runs, is asked about or is denied, in a run of one call.

import { Agent, scripted } from "../../../pkg/entry/node.js";

/** @typedef {{ approval: any } | { unreachable: string }} Options */

/**
 * The options of an agent for a policy of the vectors.
 * @param {any} policy @returns {Options}
 */
export function policyOptions(policy) {
  if (policy === "all") return { approval: { default: "approve" } };
  if (policy === "none") return { approval: { default: "ask" } };
  if (policy === "defaults") return { unreachable: "the package names no tools of others: it has no such list of rules" };
  if (policy.allowlist) return { approval: { rules: allOf(policy.allowlist), default: "deny" } };
  if (policy.base !== undefined) return { unreachable: "rules are one table of the host's: there is nothing to put a second one on" };
  return { approval: { rules: policy.rules ?? {}, default: policy.default } };
}

/** @param {string[]} names */
const allOf = (names) => Object.fromEntries(names.map((name) => [name.trim(), "approve"]).filter(([name]) => name !== ""));

/** @param {any} value */
export const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** Why a case cannot be played by the package. @param {any} input @returns {string | undefined} */
export function unreachable({ policy, tool_name: name, arguments: given = {} }) {
  if (/__/.test(name)) return "rules are by the whole name of a tool: the package cuts off no server's";
  if (!isObject(given)) return "arguments that are no object are refused before a rule is asked";
  const options = policyOptions(policy);
  return "unreachable" in options ? options.unreachable : undefined;
}

/** @param {any} input */
export async function play({ policy, tool_name: name, arguments: given = {} }) {
  /** @type {string | undefined} */
  let action;
  const agent = new Agent({
    model: scripted([{ toolCalls: [{ callId: "a", toolName: name, arguments: given }] }, "done"]),
    tools: [{ name, description: "", parameters: {}, execute: () => void (action ??= "approve") }],
    ...policyOptions(policy),
  });
  for await (const event of agent.prompt("go")) {
    if (event.type === "tool_approval_requested") {
      action = "ask";
      agent.resolveTool("a", "reject");
    }
    if (event.type === "tool_execution_end" && event.result.cause === "denied") action = "deny";
  }
  // No prefix was cut off: such names are not played.
  return { action, stripped_name: name };
}
