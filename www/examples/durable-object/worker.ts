// One agent per Durable Object:   /agents/NAME/prompt, /agents/NAME/events, …   (docs/cloudflare.md)

import { openai, scripted, tool, type ModelRequest, type ScriptItem } from "turnwheel";
import { DurableAgent, route } from "turnwheel/cloudflare";

interface Env {
  CHAT: DurableObjectNamespace<Chat>;
  OPENAI_API_KEY?: string;
  MODEL?: string;
  /** What clients send as `authorization: Bearer TOKEN`. */
  TOKEN?: string;
}

const clock = tool({
  name: "clock", description: "The time now, in UTC", idempotent: true,
  parameters: { type: "object", properties: {} },
  execute: () => new Date().toISOString(),
});
const refund = tool({
  name: "refund", description: "Pays money back to a customer", requiresApproval: true,
  parameters: { type: "object", properties: { customer: { type: "string" }, amount: { type: "number" } }, required: ["customer", "amount"] },
  // Not idempotent: if the object is evicted while it runs, it is not run again, and the model is told so.
  execute: ({ customer, amount }) => `paid ${amount} to ${customer}`,
});

/** The answer if there is no API key, so that the example can be tried without one. */
function scriptedAnswer({ messages }: ModelRequest): ScriptItem {
  const last = messages.at(-1);
  const [block] = last?.content ?? [];
  const text = block?.type === "text" ? block.text : "";
  if (last?.role === "tool_result") return `Done: ${text}.`;
  if (/refund/i.test(text)) return { text: "I ask first.", toolCalls: [{ toolName: "refund", arguments: { customer: "Ada", amount: 5 } }] };
  if (/time/i.test(text)) return { toolCalls: [{ toolName: "clock" }] };
  return { text: `You said: ${text}`.split(/(?<= )/) };
}

export class Chat extends DurableAgent<Env> {
  options() {
    const { OPENAI_API_KEY, MODEL = "gpt-5-mini" } = this.env;
    return {
      model: OPENAI_API_KEY ? openai(MODEL, { apiKey: OPENAI_API_KEY }) : scripted(Array.from({ length: 100 }, () => scriptedAnswer)),
      systemPrompt: "You help the people who answer our customers. Be brief.",
      tools: [clock, refund],
    };
  }
}

const refuse = (status: number, code: string, message: string) => Response.json({ error: { code, message } }, { status });

export default {
  async fetch(request, env) {
    // Authenticate the request here, and check that the user may access NAME.
    const { hostname } = new URL(request.url);
    const { TOKEN } = env;
    // Without a token it is closed, but for `wrangler dev` on this machine.
    if (!TOKEN && hostname !== "localhost" && hostname !== "127.0.0.1") return refuse(501, "auth", "the secret TOKEN is not set");
    if (TOKEN && request.headers.get("authorization") !== `Bearer ${TOKEN}`) return refuse(401, "auth", "who asks is not allowed to");
    return route(request, env.CHAT) ?? refuse(404, "invalid_request", "ask for /agents/NAME/state");
  },
} satisfies ExportedHandler<Env>;
