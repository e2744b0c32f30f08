import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { jsonSchema, tool, ToolLoopAgent } from "ai";

export async function start(baseUrl, onDelta) {
  const weather = tool({
    description: "Weather", needsApproval: true,
    inputSchema: jsonSchema({ type: "object", properties: { city: { type: "string" } } }),
    execute: async ({ city }) => `sunny in ${city}`,
  });
  const agent = new ToolLoopAgent({ model: createOpenAICompatible({ name: "p", baseURL: baseUrl, apiKey: "none" })("m"), instructions: "s", tools: { weather } });
  const result = await agent.stream({ prompt: "hi" });
  for await (const delta of result.textStream) onDelta(delta);
}
