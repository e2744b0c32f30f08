import { Agent, openaiCompatible, tool } from "turnwheel";

const order = tool({
  name: "order_pizza",
  description: "Orders a pizza",
  parameters: { type: "object", properties: { kind: { type: "string" } }, required: ["kind"] },
  requiresApproval: true,
  execute: ({ kind }) => `One ${kind} is on its way.`,
});

/** Any model works. This one runs in Ollama on this machine: no key is needed, and nothing leaves the machine. */
export const newAgent = (messages = []) =>
  new Agent({
    model: openaiCompatible("qwen3:4b", { baseUrl: process.env.NEXT_PUBLIC_MODEL_URL ?? "http://localhost:11434/v1", compat: { server: "ollama" } }),
    systemPrompt: "Be brief.",
    tools: [order],
    messages,
  });
