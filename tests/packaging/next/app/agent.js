// Next.js with Turbopack: nothing to configure.
import { Agent, scripted, tool } from "turnwheel";

const add = tool({
  name: "add",
  description: "Adds two numbers",
  parameters: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } }, required: ["a", "b"] },
  execute: ({ a, b }) => a + b,
});

/** An agent with a model for tests; a real one is openai("gpt-5-mini", { apiKey }). */
export function newAgent() {
  const model = scripted([
    { text: "I add. ", toolCalls: [{ toolName: "add", arguments: { a: 17, b: 25 } }] },
    "It is 42.",
  ]);
  return new Agent({ model, tools: [add], systemPrompt: "Be brief." });
}
