// turnwheel/cloudflare as a user writes it, with Cloudflare's own types. It is compiled, never run.

import { WorkflowEntrypoint, type WorkflowEvent, type WorkflowStep } from "cloudflare:workers";
import { Agent, scripted, type AgentEvent, type AgentOptions, type ApprovalRequest, type JsonValue } from "turnwheel";
import { decisionType, DurableAgent, route, workflowHost, type ObjectNamespace, type RouteOptions, type StepOfWorkflow, type WorkflowHost } from "turnwheel/cloudflare";
import type { AgentCommand } from "turnwheel/server";

interface Env { CHAT: DurableObjectNamespace<Chat>; WAITING: DurableObjectNamespace<Waiting>; FLOW: Workflow<{ topic: string }>; KEY: string }

export class Chat extends DurableAgent<Env> {
  protected override alarmAfterMs = 5000;

  options({ name }: { name?: string }) {
    return { model: scripted([name ?? this.env.KEY]), systemPrompt: "Be brief." };
  }

  protected override authorize(request: Request, command: AgentCommand) {
    return command === "events" || request.headers.has("authorization");
  }

  protected override limits() {
    return { historyBytes: 10_000, listeners: 3 };
  }

  protected override handlerOptions() {
    return { cors: "*" as const, keepAliveMs: 1000 };
  }

  protected override onEvent(event: AgentEvent) {
    if (event.type === "agent_end") console.log(event.stopReason, this.agent.messages.length, this.ctx.id.name);
  }

  override async alarm(info?: AlarmInvocationInfo) {
    await super.alarm(info);
  }

  /** A method of one's own, for RPC. */
  async last(): Promise<string> {
    return JSON.stringify(this.agent.messages.at(-1));
  }
}

export class Waiting extends DurableAgent<Env> {
  async options(): Promise<AgentOptions> {
    return { model: scripted(["x"]) };
  }
}

// @ts-expect-error it must say which agent it is
export class Nobody extends DurableAgent {}

export class Flow extends WorkflowEntrypoint<Env, { topic: string }> {
  override async run(event: Readonly<WorkflowEvent<{ topic: string }>>, step: WorkflowStep) {
    const part: StepOfWorkflow = step;
    const host: WorkflowHost = workflowHost(part);
    const wait = async (name: string, request: ApprovalRequest): Promise<JsonValue> => host.wait(name, request);
    const agent = new Agent({ model: scripted([]), host: { ...workflowHost(step), wait } });
    return (await agent.prompt(event.payload.topic)).text;
  }
}

export default {
  async fetch(request, env) {
    const chats: ObjectNamespace = env.CHAT;
    const stub = env.CHAT.get(env.CHAT.idFromName("ada"));
    const { runId }: { runId: string } = await stub.prompt("Hello");
    const id: string = await stub.schedule(Date.now() + 60_000, "Good morning");
    const taken: boolean = await stub.unschedule(id);
    await (await env.FLOW.get("a")).sendEvent({ type: decisionType("t1/approve/0"), payload: "approve" });
    // @ts-expect-error a time is a number
    void stub.schedule("noon", "x");
    // @ts-expect-error who may ask is nobody's business
    void stub.authorize;
    const last: string = await stub.last();
    void [chats, runId, taken, last, await env.WAITING.getByName("b").prompt([{ type: "text", text: "x" }])];
    const options: RouteOptions = { prefix: "/chats", authorize: (asked, name) => asked.headers.get("x-user") === name };
    return route(request, env.CHAT, options) ?? route(request, env.WAITING) ?? new Response("not found", { status: 404 });
  },
} satisfies ExportedHandler<Env>;
