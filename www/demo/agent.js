// @ts-check
// The configuration of this demo's agent, wherever it runs.

import { modelOf } from "./models.js";
import { demoTools } from "./tools.js";

/** The system prompt for every model, on the page and in the terminal. */
export const SYSTEM_PROMPT = "You are the agent of a small demonstration. Use the tools for everything they can do, several in one answer where they do not depend on each other, and answer from their results. Be short and plain.";

/**
 * The user's settings, as they are also sent to a Worker.
 * @typedef {{ choice: import("./models.js").Choice, inFlight: string }} Settings
 */

/**
 * @param {import("./engine.js").Turnwheel} turnwheel
 * @param {Settings} settings
 * @param {{ pace: () => number, rename: (title: string) => void }} callbacks
 */
export function agentOptions(turnwheel, { choice, inFlight }, { pace, rename }) {
  return {
    // Holding longer than usual applies to the tools only.
    model: modelOf(turnwheel, choice, () => Math.min(1, pace())),
    systemPrompt: SYSTEM_PROMPT,
    tools: demoTools({ tool: turnwheel.tool, pace, rename }),
    // The inspector shows each request as it was sent.
    includeRequests: true,
    // Calls that need no approval do not wait for those that do.
    gate: /** @type {const} */ ("prefix"),
    // Immediate, so that the page's one slow tool can be cut short.
    steering: { when: /** @type {const} */ ("immediate"), inFlight: inFlight === "finish" ? /** @type {const} */ ("finish") : /** @type {const} */ ("cancel") },
  };
}
