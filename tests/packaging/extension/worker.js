// The extension's service worker has an agent of its own, which answers messages.
import { Agent, scripted, tool } from "turnwheel";

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

chrome.runtime.onMessage.addListener((question, _sender, reply) => {
  agent.prompt(question).then(({ text, error }) => reply(error ? error.message : text));
  return true;
});
