import { readFileSync } from "node:fs";
import { Agent, anthropic, gemini, openai, openaiResponses } from "../kit.mjs";
import { fromLanguageModel } from "../../../pkg/ai-sdk.js";
import { languageModel } from "./providers.mjs";
const WIRES = { "openai-chat": openai, "openai-responses": openaiResponses, anthropic, gemini };
const IDS = { "openai-chat": "gpt-4.1", "openai-responses": "gpt-5", anthropic: "claude-sonnet-4-5", gemini: "gemini-3-pro-preview" };
const [v, ...names] = process.argv.slice(2);
for (const name of names) {
  const expected = JSON.parse(readFileSync(`tests/data/fixtures/${name}.expect.json`));
  const body = readFileSync(`tests/data/fixtures/${name}.sse`);
  const bodies = [];
  for (const make of [(w, f) => WIRES[w](IDS[w], { apiKey: "k", fetch: f }), (w, f) => fromLanguageModel(languageModel(v, w, IDS[w], f), {onWarning: console.log})]) {
    const seen = [];
    const fetch = async (url, init) => { seen.push(await new Response(init.body).json()); return new Response(seen.length === 1 ? body : body, { headers: { "content-type": "text/event-stream" } }); };
    const tools = [...new Set((expected.tool_calls ?? []).map((c) => c.name))].map((name) => ({ name, description: "d", parameters: { type: "object", properties: {} }, execute: () => "done" }));
    const agent = new Agent({ model: make(expected.wire, fetch), tools, systemPrompt: "S", maxTurns: 1, retry: { maxAttempts: 1 } });
    const r = await agent.prompt("Go");
    const r2 = await agent.prompt("And?");
    if (r2.error && seen.length < 2) console.log(r2.error);
    bodies.push(seen[1]);
  }
  const show = (b) => JSON.stringify(b, null, 1).split("\n");
  console.log("=====", name);
  const { writeFileSync } = await import("node:fs"); const { execSync } = await import("node:child_process");
  const sorted = (x) => Array.isArray(x) ? x.map(sorted) : x && typeof x === "object" ? Object.fromEntries(Object.keys(x).sort().map((k) => [k, sorted(x[k])])) : x;
  writeFileSync("/tmp/a.json", JSON.stringify(sorted(bodies[0]), null, 1)); writeFileSync("/tmp/b.json", JSON.stringify(sorted(bodies[1]), null, 1));
  try { execSync("diff /tmp/a.json /tmp/b.json", { encoding: "utf8" }); console.log("SAME"); } catch (e) { console.log(e.stdout.replace(/.{300,}/g, (t) => t.slice(0, 300))); }
}
