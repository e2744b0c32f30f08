// @ts-check
// The host's synchronous rules, called from inside a step of the engine: JSON in, JSON out. Nothing here may wait,
// or call the engine except to post commands.

import { OUTPUT_TOOL } from "../boundary/protocol.js";
import { callText } from "../messages/call-text.js";
import { flawOf, kindOf, limitError, misuse } from "../core.js";
import { callHost, handled } from "./host-call.js";
import { queuesOf } from "./host-queue.js";
import { callPolicy, runPolicies } from "./policies.js";
import { transformAnswer } from "./transform.js";

/** @import { AgentMessage } from "../index.js" */
/** @import { RuleName } from "../boundary/protocol.js" */
/** @import { Core } from "../agent/core.js" */
/** @import { Driver } from "../run/driver.js" */

/**
 * Calls one rule.
 * @param {Core} core @param {RuleName} name @param {string} json
 * @returns {string | undefined}
 */
export function callRule(core, name, json) {
  return callHost(core, () => {
    const answer = RULES[name](core, JSON.parse(json));
    return answer === undefined ? undefined : JSON.stringify(answer);
  });
}

/** What the rule is told about the run. @param {Core} core */
const aboutRun = (core) => activeRun(core).about();

/** The run whose step calls the rule. @param {Core} core */
function activeRun({ runs }) {
  return /** @type {Driver} */ (runs.active);
}

/**
 * The rules by name. The engine calls only those that the host has; what it sends is JSON, and what a rule gives
 * is the host's.
 * @type {Record<RuleName, (core: Core, input: any) => any>}
 */
const RULES = {
  convertToLlm(core, message) {
    const answer = handled(core.options.convertToLlm?.(message, aboutRun(core)));
    return answer === message ? true : answer ?? null;
  },

  transformContext(core, { overflow, cached, messages }) {
    const history = activeRun(core).fold.messages;
    /** @type {AgentMessage[]} */
    const given = messages ?? history.slice();
    const { length } = given;
    return transformAnswer(handled(core.options.transformContext?.(given, overflow, { cachedMessages: cached, ...aboutRun(core) })), history, length);
  },

  preTurn: (core, context) => runPolicies(core.options.policies?.preTurn ?? [], { ...aboutRun(core), ...context }),
  postLoop: (core, context) => runPolicies(core.options.policies?.postLoop ?? [], { ...aboutRun(core), ...context }),
  postTurn,

  preDispatch(core, { policy, ...call }) {
    const context = { ...aboutRun(core), ...call };
    const { stop, skip, inject, arguments: args } = callPolicy(() => core.options.policies?.preDispatch?.[policy]?.(context)) ?? {};
    if (stop !== undefined) return { stop };
    if (skip !== undefined) return { skip };
    // The call would run, and be shown, with null.
    const flaw = args && flawOf(args, "`arguments`");
    if (flaw) return { skip: `invalid arguments for \`${call.toolName}\`: a policy gave what is no JSON: ${flaw}` };
    return { ...(args && { arguments: args }), inject };
  },

  steering: (core) => queuesOf(activeRun(core)).ask("getSteeringMessages", aboutRun(core)),
  followUp: (core) => queuesOf(activeRun(core)).ask("getFollowUpMessages", aboutRun(core)),

  dynamicSystemPrompt(core) {
    const text = handled(core.options.dynamicSystemPrompt?.(aboutRun(core))) ?? "";
    if (typeof text !== "string") throw misuse(`it must give a text at once, got ${kindOf(text)}`);
    return text;
  },

  resultTexts: (core, { cause, call, detail }) => handled(/** @type {Record<string, Function | undefined>} */ (core.options.resultTexts)[cause]?.(call, detail, aboutRun(core))),

  retry(core, { error, attempt }) {
    const { retry } = core.options;
    const delay = typeof retry === "function" && handled(retry(error, attempt, aboutRun(core)));
    return typeof delay === "number" ? Math.max(0, Math.round(delay)) : false;
  },

  toolExecution(core, calls) {
    const { toolExecution } = core.options;
    return typeof toolExecution === "function" && handled(toolExecution(calls, aboutRun(core)));
  },

  requiresApproval,
};

/** @param {Core} core @param {any} input */
function postTurn(core, { known, rest, ...given }) {
  const turn = { ...aboutRun(core), ...given };
  const history = activeRun(core).fold.messages;
  /** @type {AgentMessage[] | undefined} */
  let messages;
  Object.defineProperty(turn, "messages", { enumerable: true, get: () => (messages ??= [...history.slice(0, known), ...rest]) });
  const isCall = (/** @type {any} */ block) => block.type === "tool_call";
  const calls = turn.message.content.filter(isCall).map(callText);
  const verdict = runPolicies(core.options.policies?.postTurn ?? [], turn);
  // Calls of this turn are passed by their index: the engine has them as the model wrote them.
  const toIndex = (/** @type {any} */ block) => (isCall(block) && calls.includes(callText(block)) ? calls.indexOf(callText(block)) : block);
  const inject = verdict?.inject?.map((message) => (message.role === "assistant" ? { ...message, content: message.content.map(toIndex) } : message));
  return inject ? { inject } : verdict;
}

/** @param {Core} core @param {{ tools: number, tool: string, arguments: unknown }} input */
function requiresApproval(core, { tools, tool, arguments: args }) {
  const prepared = core.settings.tools.of(tools, tool);
  if (!prepared) return;
  const { definition, self, check } = prepared;
  const rule = definition.requiresApproval ?? definition.needsApproval;
  // The rule sees what the tool will get, with the schema's defaults and transforms. If the schema is
  // asynchronous, that is not known yet.
  const checked = handled(check(args));
  if (checked instanceof Promise || typeof rule !== "function") return;
  return handled(rule.call(self, "error" in checked ? args : checked.value, aboutRun(core))) !== false;
}

/**
 * Validates the arguments of a call, and keeps the schema's output until the tool
 * starts. Returns what is wrong.
 * @param {Core} core @param {number} version of the tools @param {string} call JSON: its id, its tool, its arguments
 * @returns {string | undefined}
 */
export function validate(core, version, call) {
  const { tools, output } = core.settings;
  return callHost(core, () => {
    const [callId, toolName, args] = JSON.parse(call);
    const prepared = tools.of(version, toolName);
    if (toolName === OUTPUT_TOOL && !prepared) return output.take(args);
    if (!prepared) return `the tool \`${toolName}\` is not there any more`;
    const answer = prepared.check(args);
    if ("error" in answer) return limitError(answer.error);
    // An asynchronous schema is awaited when the tool starts.
    tools.checked.set(callId, { prepared, checked: handled(answer) });
  });
}
