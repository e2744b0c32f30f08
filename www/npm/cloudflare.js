// @ts-check
// turnwheel/cloudflare: an agent in a Durable Object, and one in a Workflow.

export { DurableAgent } from "./cloudflare/durable-agent.js";
export { route } from "./cloudflare/route.js";
export { decisionType, workflowHost } from "./cloudflare/workflow-host.js";
