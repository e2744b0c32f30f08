// @ts-check
// One agent per Durable Object:   /agents/NAME/prompt, /agents/NAME/events, …   (docs/remote.md)

import { openai, scripted, tool } from "turnwheel";
import { DurableAgent } from "./durable-agent.js";

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

/** The answer if there is no API key, so that the example can be tried without one. @param {any} request */
const scriptedAnswer = ({ messages }) => {
  const last = messages.at(-1);
  const text = last.content[0]?.text ?? "";
  if (last.role === "tool_result") return `Done: ${text}.`;
  if (/refund/i.test(text)) return { text: "I ask first.", toolCalls: [{ toolName: "refund", arguments: { customer: "Ada", amount: 5 } }] };
  if (/time/i.test(text)) return { toolCalls: [{ toolName: "clock" }] };
  return { text: `You said: ${text}`.split(/(?<= )/) };
};

export class Chat extends DurableAgent {
  options() {
    const { OPENAI_API_KEY, MODEL = "gpt-5-mini" } = this.env;
    return {
      model: OPENAI_API_KEY ? openai(MODEL, { apiKey: OPENAI_API_KEY }) : scripted(Array.from({ length: 100 }, () => scriptedAnswer)),
      systemPrompt: "You help the people who answer our customers. Be brief.",
      tools: [clock, refund],
    };
  }
}

export default {
  /** @param {Request} request @param {any} env */
  async fetch(request, env) {
    const { hostname, pathname } = new URL(request.url);
    const [, agents, name] = pathname.split("/");
    if (agents !== "agents" || !name) return Response.json({ error: { code: "invalid_request", message: "ask for /agents/NAME/state" } }, { status: 404 });
    // Authenticate the request here, and check that the user may access NAME.
    const { TOKEN } = env;
    // Without a token it is closed, but for `wrangler dev` on this machine.
    if (!TOKEN && hostname !== "localhost" && hostname !== "127.0.0.1") return Response.json({ error: { code: "auth", message: "the secret TOKEN is not set" } }, { status: 501 });
    if (TOKEN && request.headers.get("authorization") !== `Bearer ${TOKEN}`) return Response.json({ error: { code: "auth", message: "who asks is not allowed to" } }, { status: 401 });
    return env.CHAT.get(env.CHAT.idFromName(name)).fetch(request);
  },
};
