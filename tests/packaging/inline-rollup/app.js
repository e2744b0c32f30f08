// Rollup with turnwheel/inline: one file, no asset.
import { Agent, scripted, tool } from "turnwheel/inline";

const add = tool({
  name: "add",
  description: "Adds two numbers",
  parameters: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } }, required: ["a", "b"] },
  execute: ({ a, b }) => a + b,
});

// A model for tests; a real one is openai("gpt-5-mini", { apiKey }).
const model = scripted([
  { text: "I add. ", toolCalls: [{ toolName: "add", arguments: { a: 17, b: 25 } }] },
  "It is 42.",
]);
const agent = new Agent({ model, tools: [add], systemPrompt: "Be brief." });

const output = document.querySelector("output");
for await (const event of agent.prompt("What is 17 + 25?")) {
  if (event.type === "message_update" && event.delta.type === "text") output.append(event.delta.delta);
  if (event.type === "tool_execution_end") output.append(`(${event.result.content[0].text}) `);
  if (event.type === "agent_end" && event.error) output.append(event.error.message);
}
output.dataset.done = "";
