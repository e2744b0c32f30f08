// @ts-check
// An agent inside a Cloudflare Workflow: what may not happen twice is a step of the Workflow.

import { kindOf, misuse, sleep } from "../shared.js";

/** @import { JsonValue } from "../index.js" */
/** @import { StepOfWorkflow, WorkflowHost } from "../cloudflare.js" */

/** Three more tries for what only the platform knows of (an eviction, a lost connection): turnwheel itself asks models again. */
const STEP = { retries: { limit: 3, delay: "1 second", backoff: "exponential" }, timeout: "30 minutes" };
const DECISION_TIMEOUT = "30 days";
/** A result of more than 1 MiB ends the instance. */
const MAX_RESULT_BYTES = 1_000_000;
/** How long the type of an event may be. */
const MAX_TYPE = 100;

/** The host of an agent in a Workflow. @param {StepOfWorkflow} step @returns {WorkflowHost} */
export function workflowHost(step) {
  if (typeof step?.do !== "function" || typeof step.waitForEvent !== "function") throw misuse(`workflowHost takes the \`step\` that a Workflow's run(event, step) gets, got ${kindOf(step)}`);
  return {
    step: (name, work) => step.do(name, STEP, (/** @type {{ attempt?: number }} */ context) => work(context)),
    // Without a name, it is no part of the run that waits.
    sleep: (ms, signal, name) => (name === undefined ? sleep({}, ms, signal) : step.sleep(name, ms)),
    /** @param {string} name @returns {Promise<JsonValue>} */
    wait: async (name) => (await step.waitForEvent(name, { type: decisionType(name), timeout: DECISION_TIMEOUT })).payload,
    steps: { maxBytes: MAX_RESULT_BYTES },
  };
}

/**
 * The type of the event that answers a question: one for each, for an event wakes only one of those who wait for its type.
 * @param {string} name of the step that waits
 */
export function decisionType(name) {
  if (typeof name !== "string") throw misuse(`decisionType takes the name that \`host.wait\` got, got ${kindOf(name)}`);
  const type = name.replaceAll(/[^\w-]/g, "-");
  // That of an agent deep inside others ends with a digest of itself.
  return type.length <= MAX_TYPE ? type : `${type.slice(0, MAX_TYPE - 17)}-${digest(name, 0x811c9dc5)}${digest(name, 0x9747b28c)}`;
}

/** FNV-1a, in eight hexadecimal digits. @param {string} text @param {number} seed */
function digest(text, seed) {
  let hash = seed;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return (hash >>> 0).toString(16).padStart(8, "0");
}
