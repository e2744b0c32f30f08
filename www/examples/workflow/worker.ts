// An agent in a Workflow: it looks up three things at once, asks a person, and carries out what was decided. Every step is
// stored, so that it goes on in another process wherever the last one ended.
//
//   POST /orders { "customer": "Ada" }         begins one, and says its id
//   GET  /orders/ID                            how far it is
//   POST /orders/ID/decision { "type": …, "decision": "approve" }     the type is in the question that `tell` was told

import { WorkflowEntrypoint, type WorkflowEvent, type WorkflowStep } from "cloudflare:workers";
import { Agent, openai, scripted, tool, type AgentHost, type ApprovalRequest, type Model, type ModelRequest, type ScriptItem } from "turnwheel";
import { decisionType, workflowHost } from "turnwheel/cloudflare";

interface Order { customer: string }
interface Env {
  ORDERS: Workflow<Order>;
  OPENAI_API_KEY?: string;
  /** Where people are told of questions, such as a chat's webhook, and where orders are looked up and paid back. */
  OFFICE?: Fetcher;
}

const parameters = { type: "object", properties: { customer: { type: "string" } }, required: ["customer"] } as const;

/** The tools ask the office, if there is one. */
function tools({ OFFICE }: Env) {
  const ask = async (what: string, customer: string) => (OFFICE ? await (await OFFICE.fetch(`http://office/${what}/${customer}`)).text() : `${what} of ${customer}`);
  const look = (name: string) => tool({ name, description: `Looks up the ${name} of a customer`, parameters, idempotent: true, execute: ({ customer }) => ask(name, customer) });
  return [
    look("order"), look("payment"), look("delivery"),
    // Not idempotent: if the process ends while it runs, it is not run again, and the model is told so.
    tool({ name: "refund", description: "Pays an order back", parameters, requiresApproval: true, execute: ({ customer }) => ask("refund", customer) }),
  ];
}

/** The answer if there is no API key. It depends on the conversation alone, so that it is the same in every process. */
function scriptedAnswer({ messages }: ModelRequest): ScriptItem {
  const customer = /Ada|Grace/.exec(JSON.stringify(messages))?.[0] ?? "nobody";
  const call = (toolName: string) => ({ callId: toolName, toolName, arguments: { customer } });
  const results = messages.filter(({ role }) => role === "tool_result").length;
  if (results === 0) return { text: "I look.", toolCalls: ["order", "payment", "delivery"].map(call) };
  if (results === 3) return { text: "It never came. I ask.", toolCalls: [call("refund")] };
  return "Done.";
}

const model = ({ OPENAI_API_KEY }: Env): Model => (OPENAI_API_KEY ? openai("gpt-5-mini", { apiKey: OPENAI_API_KEY }) : scripted(Array.from({ length: 100 }, () => scriptedAnswer)));

export class Orders extends WorkflowEntrypoint<Env, Order> {
  override async run({ payload, instanceId }: Readonly<WorkflowEvent<Order>>, step: WorkflowStep) {
    const own = workflowHost(step);
    const host: AgentHost = {
      ...own,
      // Tells people what is asked. That is a step, too, so that they are told once.
      wait: async (name, request) => {
        await step.do(`${name}/tell`, () => this.tell({ instanceId, type: decisionType(name), request }));
        return own.wait(name, request);
      },
    };
    const agent = new Agent({ model: model(this.env), tools: tools(this.env), host, systemPrompt: "You look after orders. Look first, then pay back what never came." });
    const { text, stopReason, messages, error } = await agent.prompt(`What about the order of ${payload.customer}?`);
    if (error) throw error.cause ?? error;
    return { text, stopReason, messages: JSON.stringify(messages) };
  }

  async tell(question: { instanceId: string; type: string; request: ApprovalRequest }) {
    console.log("somebody has to decide:", JSON.stringify(question));
    await this.env.OFFICE?.fetch("http://office/question", { method: "POST", body: JSON.stringify(question) });
  }
}

export default {
  async fetch(request, env) {
    // Authenticate the request here: whoever can reach it decides about refunds.
    const [, orders, id, what] = new URL(request.url).pathname.split("/");
    if (orders !== "orders") return Response.json({ error: "ask for /orders" }, { status: 404 });
    if (request.method === "POST" && id === undefined) {
      const { customer } = await request.json<Order>();
      return Response.json({ id: (await env.ORDERS.create({ params: { customer } })).id });
    }
    if (id === undefined) return Response.json({ error: "post { customer }" }, { status: 405 });
    const instance = await env.ORDERS.get(id);
    if (request.method === "POST" && what === "decision") {
      const { type, decision } = await request.json<{ type: string; decision: string }>();
      await instance.sendEvent({ type, payload: decision });
    }
    return Response.json(await instance.status());
  },
} satisfies ExportedHandler<Env>;
