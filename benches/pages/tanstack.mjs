import { chat, maxIterations } from "@tanstack/ai";
import { createOpenaiChatCompletions } from "@tanstack/ai-openai";

export async function start(baseUrl, onDelta) {
  const weather = {
    name: "weather", description: "Weather", needsApproval: true,
    inputSchema: { type: "object", properties: { city: { type: "string" } } },
    execute: ({ city }) => `sunny in ${city}`,
  };
  const adapter = createOpenaiChatCompletions("m", "none", { baseURL: baseUrl, dangerouslyAllowBrowser: true, maxRetries: 0 });
  const stream = chat({ adapter, systemPrompts: ["s"], messages: [{ role: "user", content: "hi" }], tools: [weather], agentLoopStrategy: maxIterations(10) });
  for await (const event of stream) {
    if (event.type === "TEXT_MESSAGE_CONTENT") onDelta(event.delta);
    else if (event.type === "RUN_ERROR") throw new Error(event.message ?? event.error?.message);
  }
}
