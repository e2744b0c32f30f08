// @ts-check
// The agent in a workflow of DBOS: every call of the model, every tool and the decision are steps in your PostgreSQL.
//
//   POST /orders { "customer": "Ada" }                                begins one, and says its id
//   GET  /orders/ID                                                   how far it is
//   POST /orders/ID/decision { "name": …, "decision": "approve" }     the name is in the question that `tell` was told

import { createServer } from "node:http";
import { json } from "node:stream/consumers";
import { DBOS } from "@dbos-inc/dbos-sdk";
import { Agent } from "turnwheel";
import { dbos } from "turnwheel/durable";
import { instructions, model, tell, tools } from "./agent.js";

const order = DBOS.registerWorkflow(async (/** @type {string} */ customer) => {
  const id = String(DBOS.workflowID);
  const own = dbos(DBOS);
  /** @type {import("turnwheel").AgentHost} */
  const host = {
    ...own,
    // Tells people what is asked. That is a step, too, so that they are told once. DBOS goes by the order in which steps are called:
    // both are called at once.
    wait: async (name, request) => {
      const told = own.step?.(`${name}/tell`, () => tell({ id, name, request }), { kind: "host" });
      const [decision] = await Promise.all([own.wait?.(name, request), told]);
      return decision ?? null;
    },
  };
  const agent = new Agent({ model, tools, systemPrompt: instructions, host });
  const { text, stopReason, error } = await agent.prompt(`What about the order of ${customer}?`);
  if (error) throw error.cause ?? error;
  return { text, stopReason, messages: JSON.stringify(agent.messages) };
}, { name: "order" });

const server = createServer(async (request, response) => {
  const answer = (/** @type {unknown} */ value, status = 200) => response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value ?? null));
  try {
    // Authenticate the request here: whoever can reach it decides about refunds.
    const [, orders, id, what] = new URL(request.url ?? "/", "http://x").pathname.split("/");
    if (orders !== "orders") return answer({ error: "ask for /orders" }, 404);
    const body = request.method === "POST" ? /** @type {any} */ (await json(request)) : {};
    if (id === undefined) return answer({ id: (await DBOS.startWorkflow(order)(body.customer)).workflowID });
    if (what === "decision") await DBOS.send(id, body.decision, body.name);
    const status = await DBOS.getWorkflowStatus(id);
    answer({ status: status?.status, output: status?.output, error: status?.error });
  } catch (error) {
    answer({ error: String(error) }, 500);
  }
});

// A process that starts goes on with what another one of the same version began.
DBOS.setConfig({ name: "orders", systemDatabaseUrl: process.env.DATABASE_URL ?? "postgres://localhost/orders", applicationVersion: "1" });
await DBOS.launch();
server.listen(Number(process.env.PORT ?? 8080), process.env.HOST ?? "localhost");
