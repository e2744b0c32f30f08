import { Agent, openaiCompatible, tool } from "turnwheel";

export function start(baseUrl, onDelta) {
  const weather = tool({
    name: "weather", description: "Weather", requiresApproval: true,
    parameters: { type: "object", properties: { city: { type: "string" } } },
    execute: ({ city }) => `sunny in ${city}`,
  });
  const agent = new Agent({ model: openaiCompatible("m", { baseUrl, apiKey: "none" }), systemPrompt: "s", tools: [weather], approveTool: () => ({ decision: "accept" }) });
  agent.subscribe((event) => {
    if (event.type === "message_update" && event.delta.type === "text") onDelta(event.delta.delta);
  });
  document.addEventListener("click", () => agent.steer("Stop."));
  return agent.prompt("hi").result;
}
