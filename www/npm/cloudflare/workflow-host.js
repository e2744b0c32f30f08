// @ts-check
// An agent inside a Cloudflare Workflow: what may not happen twice is a step of the Workflow.

import { kindOf, misuse } from "../shared.js";

/** @import { JsonValue } from "../index.js" */
/** @import { StepOfWorkflow, WorkflowHost } from "../cloudflare.js" */

/** Three more tries for what the engine cannot help (a result that was too large, a lost connection); turnwheel repeats models itself. */
const STEP = { retries: { limit: 3, delay: "1 second", backoff: "exponential" }, timeout: "30 minutes" };
const DECISION_TIMEOUT = "30 days";
/** A result of more than 1 MiB ends the instance. */
const MAX_RESULT_BYTES = 1_000_000;
/** How long names of steps and types of events may be. */
const MAX_NAME = 256;
const MAX_TYPE = 100;

/** The host of an agent in a Workflow. @param {StepOfWorkflow} step @returns {WorkflowHost} */
export function workflowHost(step) {
  if (typeof step?.do !== "function" || typeof step.waitForEvent !== "function") throw misuse(`workflowHost takes the \`step\` that a Workflow's run(event, step) gets, got ${kindOf(step)}`);
  return {
    step: (name, work) => step.do(shortened(name, MAX_NAME), STEP, (/** @type {{ attempt?: number }} */ context) => work(context)),
    sleep: (ms, _signal, name = "sleep") => step.sleep(shortened(name, MAX_NAME), ms),
    /** @param {string} name @returns {Promise<JsonValue>} */
    wait: async (name) => (await step.waitForEvent(shortened(name, MAX_NAME), { type: eventType(name), timeout: DECISION_TIMEOUT })).payload,
    steps: { maxBytes: MAX_RESULT_BYTES },
  };
}

/** The type of the event that answers a question: one for each, for an event wakes one of two who wait for its type. @param {string} name */
const eventType = (name) => shortened(name.replaceAll(/[^\w-]/g, "-"), MAX_TYPE);

/** A name that is too long, as of an agent deep inside others, ends with a digest of itself. @param {string} name @param {number} most */
function shortened(name, most) {
  if (name.length <= most) return name;
  const [high, low] = [digest(name, 0x811c9dc5), digest(name, 0x9747b28c)];
  return `${name.slice(0, most - 17)}-${high}${low}`;
}

/** FNV-1a, in eight hexadecimal digits. @param {string} text @param {number} seed */
function digest(text, seed) {
  let hash = seed;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return (hash >>> 0).toString(16).padStart(8, "0");
}
