// The service worker: the agent lives here. A service worker may not `import()`, so it is bundled into one file,
// where esbuild puts in what the package loads on demand.
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

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
self.addEventListener("fetch", (event) => {
  if (new URL(event.request.url).pathname !== "/agent") return;
  event.respondWith(event.request.text().then((question) => agent.prompt(question).toResponse()));
});
