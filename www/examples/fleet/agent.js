// What you change: the model, the tools, who may use which agent.

import { openai, scripted, tool } from "turnwheel";

const { MODEL = "gpt-5-mini", OPENAI_API_KEY, TOKEN } = process.env;

const clock = tool({
  name: "clock", description: "The time now, in UTC", idempotent: true,
  parameters: { type: "object", properties: {} },
  execute: () => new Date().toISOString(),
});
const refund = tool({
  name: "refund", description: "Pays money back to a customer", requiresApproval: true,
  parameters: { type: "object", properties: { customer: { type: "string" }, amount: { type: "number" } }, required: ["customer", "amount"] },
  // Not idempotent: if the process is killed while it runs, it is not run again, and the model is told so. `callId` and `fence`
  // are for the server that pays: it refuses a call that it knows, and a fence that is lower than one that it has seen.
  execute: ({ customer, amount }, { callId, fence }) => `paid ${amount} to ${customer} (call ${callId}, fence ${fence})`,
});

/** The answer if there is no API key, so that the example can be tried without one. */
function scriptedAnswer({ messages }) {
  const last = messages.at(-1);
  const text = last.content[0]?.text ?? "";
  if (last.role === "tool_result") return `Done: ${text}.`;
  if (/refund/i.test(text)) return { text: "I ask first.", toolCalls: [{ toolName: "refund", arguments: { customer: "Ada", amount: 5 } }] };
  if (/time/i.test(text)) return { toolCalls: [{ toolName: "clock" }] };
  return { text: `You said: ${text}`.split(/(?<= )/) };
}

/** The options of the agent with this id; called when this process has claimed it. */
export const agentOptions = (_id) => ({
  model: OPENAI_API_KEY ? openai(MODEL, { apiKey: OPENAI_API_KEY }) : scripted(Array.from({ length: 1000 }, () => scriptedAnswer)),
  systemPrompt: "You help the people who answer our customers. Be brief.",
  tools: [clock, refund],
});

/**
 * Whether a request may use the agent with this id. It is asked before the agent is claimed. Without a TOKEN, only this machine
 * may: behind a router or a proxy on this machine, set one.
 */
export function mayUse(request, _id) {
  if (TOKEN) return request.headers.get("authorization") === `Bearer ${TOKEN}`;
  return ["localhost", "127.0.0.1", "[::1]"].includes(new URL(request.url).hostname);
}
