// @ts-check
// The configuration of this demo's agent, wherever it runs.

import { modelOf, rowOf } from "./models.js";
import { demoTools } from "./tools.js";

/** The system prompt for every model, on the page and in the terminal. */
export const SYSTEM_PROMPT = "You are the agent of a small demonstration. Use the tools for everything they can do, several in one answer where they do not depend on each other, and answer from their results. Be short and plain.";

/** What a small model reads: every word of it costs time. */
const SHORT_PROMPT = "You are a helpful assistant in a web page. Be short and plain.";

/** What a run may use, by the name of the setting. @type {Record<string, import("../npm/index.js").Budget>} */
const BUDGETS = {
  ask: { turns: 1, onExceed: "ask" },
  wrap_up: { toolCalls: 2, turns: 2, onExceed: "wrap_up" },
};

/**
 * The user's settings, as they are also sent to a Worker.
 * @typedef {{ choice: import("./models.js").Choice, inFlight: string, budget?: string }} Settings
 */

/**
 * @param {import("./engine.js").Turnwheel} turnwheel
 * @param {Settings} settings
 * @param {{ pace: () => number, rename: (title: string) => void, device?: import("./device.js").OnDevice | undefined }} callbacks
 */
export function agentOptions(turnwheel, { choice, inFlight, budget = "" }, { pace, rename, device }) {
  // Holding longer than usual applies to the tools only.
  const means = { pace: () => Math.min(1, pace()), device };
  const here = rowOf(choice.row).wire === "device" && device;
  return {
    model: modelOf(turnwheel, choice, means),
    systemPrompt: here ? SHORT_PROMPT : SYSTEM_PROMPT,
    tools: here && !here.takesTools ? [] : demoTools({ tool: turnwheel.tool, pace, rename, brief: choice.row === "small" }),
    ...(here && { streamOptions: here.streamOptions }),
    ...(BUDGETS[budget] && { budget: BUDGETS[budget] }),
    // The inspector shows each request as it was sent.
    includeRequests: true,
    // Calls that need no approval do not wait for those that do.
    gate: /** @type {const} */ ("prefix"),
    // Immediate, so that the page's one slow tool can be cut short.
    steering: { when: /** @type {const} */ ("immediate"), inFlight: inFlight === "finish" ? /** @type {const} */ ("finish") : /** @type {const} */ ("cancel") },
  };
}
