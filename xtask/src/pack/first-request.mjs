// Prints which functions of the engine run until a first request has left: `node first-request.mjs FACADE TRACED`, where
// FACADE is the folder of the joined scripts and TRACED a module whose functions note that they were entered.
//
// A request of a kind that is not here is not wrong: it leaves once the rest of the engine is there (run/ahead.js).
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [facade, traced] = process.argv.slice(2);
const { Agent, anthropic, gemini, openai, openaiCompatible, openaiResponses, tool, use } = await import(pathToFileURL(join(facade, "slim.js")).href);

const ENTERED = "entered:";
/** The exports of the instances. @type {Record<string, any>[]} */
const instances = [];
const { Instance } = WebAssembly;
WebAssembly.Instance = /** @type {any} */ (function (module, imports) {
  const instance = new Instance(module, imports);
  instances.push(instance.exports);
  return instance;
});
const module = new WebAssembly.Module(readFileSync(traced));
use(() => module);

const flags = () => instances.flatMap((exports) => Object.entries(exports).filter(([name]) => name.startsWith(ENTERED)));

const image = { type: "image", data: "aGk=", mimeType: "image/png" };
const call = { type: "tool_call", callId: "c1", toolName: "weather", arguments: { city: "Oslo" } };
const weather = tool({
  name: "weather", description: "The weather\nin a city.", requiresApproval: true,
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  execute: () => "rain",
});
const search = tool({
  name: "search", description: "Searches.",
  parameters: {
    type: "object", additionalProperties: false, required: ["query"], $defs: { day: { type: "string", format: "date" } },
    properties: {
      query: { type: "string", minLength: 1, description: "é \"quoted\"\n" }, limit: { type: "integer", minimum: 1, maximum: 1.5e3, default: 10 },
      tags: { type: "array", items: { enum: ["a", "b", null, 1, false] } }, day: { $ref: "#/$defs/day" }, either: { anyOf: [{ type: "null" }, { const: {} }] },
    },
  },
  execute: () => ({}),
});
const usage = { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, total: 2 };
const history = (provider) => [
  { role: "user", content: [{ type: "text", text: "é \"quoted\"" }, image] },
  { role: "assistant", content: [{ type: "text", text: "I look." }, call], provider, model: "m", usage, stopReason: "tool_use" },
  { role: "tool_result", callId: "c1", toolName: "weather", content: [{ type: "text", text: "rain" }], isError: false },
  { role: "assistant", content: [{ type: "text", text: "Rain." }], provider, model: "m", usage, stopReason: "stop" },
];

const clock = tool({ name: "clock", description: "The time.", parameters: { type: "object" }, execute: () => "12" });

/** Options of an agent, for a model of this provider. */
const AGENTS = [
  () => ({}),
  () => ({ systemPrompt: "Be brief.\n", tools: [weather], approval: { mode: "smart" }, steering: { when: "immediate" } }),
  (provider) => ({ messages: history(provider), tools: [weather], streamOptions: { temperature: 0.5, maxTokens: 100, reasoning: "low", toolChoice: "auto" } }),
  () => ({ systemPrompt: "x", tools: [clock], approveTool: () => true }),
  () => ({ tools: [weather, clock], approveTool: () => true, approval: { mode: "enabled" }, steering: { when: "after_tool", inFlight: "finish" } }),
  () => ({ systemPrompt: "", tools: [search], streamOptions: { topP: 1, toolChoice: { toolName: "search" }, parallelToolCalls: false, reasoning: "high", cache: "auto", stop: ["."], body: { seed: 1.5, list: [true, null, -3, 1e21] } } }),
  () => ({ timeouts: { totalMs: 60_000, firstChunkMs: 10_000 }, retry: { maxAttempts: 3 }, maxTurns: 5 }),
];
const INPUTS = [["One.", "Two."], "x".repeat(5000), "What is the weather in Oslo? é\n", { role: "user", content: [{ type: "text", text: "And this?" }, image] }];
const MODELS = [
  ["openai", openai],
  ["openrouter", (id, options) => openaiCompatible(id, { server: "openrouter", ...options })],
  ["own", (id, options) => openaiCompatible(id, { baseUrl: "http://127.0.0.1:9/v1", ...options })],
  ["ollama", (id, options) => openaiCompatible(id, { server: "ollama", ...options })],
  ["openai", openaiResponses],
  ["anthropic", (id, options) => anthropic(id, { dangerouslyAllowBrowser: true, ...options })],
  ["gemini", gemini],
];

/** @type {Set<number>} */
const entered = new Set();
for (const [provider, make] of MODELS) {
  for (const options of AGENTS) {
    for (const input of INPUTS) await request(make, options(provider), input);
  }
}
console.log(JSON.stringify([...entered].sort((a, b) => a - b)));

/** Sends a first request, and notes what ran before it left. */
async function request(make, options, input) {
  let isSent = false;
  const fetch = async () => {
    if (!isSent) for (const [name, flag] of flags()) if (flag.value === 1) entered.add(Number(name.slice(ENTERED.length)));
    isSent = true;
    throw new Error("enough");
  };
  const agent = new Agent({ ...options, model: make("m", { apiKey: "not-a-real-key", fetch }), retry: { maxAttempts: 1 } });
  const run = agent.prompt(input);
  const { error } = await run.result;
  if (!isSent) throw new Error(`no request was sent: ${error?.message}`);
  for (const [, flag] of flags()) flag.value = 0;
}
