// @ts-check
// turnwheel/cloudflare: an agent in a Durable Object, and one in a Workflow.

import { useServer } from "./core.js";
import { workflowHost as host } from "./cloudflare/workflow-host.js";

export { DurableAgent } from "./cloudflare/durable-agent.js";
export { route } from "./cloudflare/route.js";
export { decisionType } from "./cloudflare/workflow-host.js";

/**
 * The host of an agent in a Workflow. The server engine is named in here, so that a Worker without Workflows does not carry it.
 * @param {import("./cloudflare.js").StepOfWorkflow} step
 */
export function workflowHost(step) {
  useServer(async () => (await import("./turnwheel-server.wasm")).default);
  return host(step);
}
