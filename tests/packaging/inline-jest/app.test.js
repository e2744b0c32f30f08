// Jest as it comes, in CommonJS.
const { Agent, scripted, tool } = require("turnwheel/inline");

test("an agent adds", async () => {
  const add = tool({ name: "add", description: "Adds two numbers", parameters: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } } }, execute: ({ a, b }) => a + b });
  const model = scripted([{ toolCalls: [{ toolName: "add", arguments: { a: 17, b: 25 } }] }, "It is 42."]);
  const { text, messages } = await new Agent({ model, tools: [add] }).prompt("What is 17 + 25?");
  expect([messages[2].content[0].text, text]).toEqual(["42", "It is 42."]);
});
