import { Agent } from "@earendil-works/pi-agent-core";
import { streamSimple } from "@earendil-works/pi-ai/api/openai-completions";
import { Type } from "@earendil-works/pi-ai";

export function start(baseUrl, onDelta) {
  const weather = {
    name: "weather", label: "Weather", description: "Weather", parameters: Type.Object({ city: Type.String() }),
    execute: async (_id, { city }) => ({ content: [{ type: "text", text: `sunny in ${city}` }], details: undefined }),
  };
  const model = { id: "m", name: "m", api: "openai-completions", provider: "p", baseUrl, reasoning: false, input: ["text"], cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }, contextWindow: 1e5, maxTokens: 4096 };
  const agent = new Agent({
    initialState: { systemPrompt: "s", thinkingLevel: "off", model, tools: [weather] },
    beforeToolCall: async () => undefined,
    streamFn: (m, context, options) => streamSimple(m, context, { ...options, apiKey: "none" }),
  });
  agent.subscribe((event) => {
    if (event.type === "message_update" && event.assistantMessageEvent.type === "text_delta") onDelta(event.assistantMessageEvent.delta);
  });
  document.addEventListener("click", () => agent.steer({ role: "user", content: "Stop.", timestamp: Date.now() }));
  return agent.prompt("hi");
}
