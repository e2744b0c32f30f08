// @ts-check
// turnwheel/cloudflare where there is no `cloudflare:workers`: what needs none works, so that a Worker's other code can be
// tested, and a Durable Object says where it lives.

import { misuse } from "./shared.js";

export { route } from "./cloudflare/route.js";
export { decisionType, workflowHost } from "./cloudflare/workflow-host.js";

export class DurableAgent {
  constructor() {
    throw misuse('DurableAgent of turnwheel/cloudflare is a Durable Object, which only Cloudflare Workers have. In Node, Deno or Bun, serve an agent with `agentHandler` of turnwheel/server, and store it with turnwheel/stores/node. If this is a Worker, its bundler left out the condition "workerd", which Wrangler sets: for esbuild, write conditions: ["workerd"]');
  }
}
