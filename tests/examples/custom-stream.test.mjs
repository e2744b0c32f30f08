// @ts-check
// The custom model against a server that speaks Ollama's API: pieces cut anywhere, thinking, calls without
// ids, a stream that breaks off, errors, abort.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { join } from "node:path";
import { Agent, clock, deferred, readRun, testTool } from "../js/kit.mjs";
import { mlcEngine } from "../js/local/doubles.mjs";
import { serve } from "../js/server.mjs";
import { clean, install, run } from "./kit.mjs";

after(clean);
const folder = await install("custom-stream");
const { ollama } = await import(join(folder, "ollama.js"));
const { webLlm } = await import(join(folder, "web-llm.js"));
const ndjson = (/** @type {any[]} */ ...lines) => lines.map((line) => `${JSON.stringify(line)}\n`).join("");
const END = { done: true, done_reason: "stop", prompt_eval_count: 7, eval_count: 3 };

test("the program says what the model says, with a tool in between", { timeout: 60_000 }, async (t) => {
  const server = await serve(t, [
    { body: ndjson({ message: { role: "assistant", content: "", tool_calls: [{ function: { name: "clock", arguments: { zone: "Europe/Oslo" } } }] } }, END), cut: 5 },
    { body: ndjson({ message: { content: "It is " } }, { message: { content: "spät 😀." } }, END), cut: 1 },
  ]);
  const { stdout, stderr } = await run(process.execPath, ["main.js", "Oslo?"], { cwd: folder, env: { ...process.env, OLLAMA_URL: server.url, MODEL: "m" } });
  assert.deepEqual([stdout, stderr], ["It is spät 😀.\n20 tokens\n", ""]);
  const [first, second] = server.requests;
  assert.equal(first?.path, "/api/chat");
  assert.equal(first?.body.tools[0].function.name, "clock");
  assert.deepEqual(second?.body.messages.slice(1).map((/** @type {any} */ message) => [message.role, message.tool_name ?? message.tool_calls?.[0].function.name]), [["assistant", "clock"], ["tool", "clock"]]);
  assert.match(second?.body.messages[2].content, /^\d\d:\d\d:\d\d$/);
});

test("thinking, text and two calls of one answer, in their order", async (t) => {
  const call = (/** @type {number} */ n) => ({ function: { name: "add", arguments: { n } } });
  const server = await serve(t, [
    ndjson({ message: { thinking: "h" } }, { message: { thinking: "m" } }, { message: { content: "Both." } }, { message: { tool_calls: [call(1), call(2)] } }, END),
    ndjson({ message: { content: "Done." } }, END),
  ]);
  const { result, all } = await readRun(new Agent({ model: ollama("m", { url: server.url }), tools: [testTool("add", (/** @type {any} */ { n }) => `${n}`)] }).prompt("Go"));
  assert.equal(result.text, "Done.");
  assert.deepEqual(all("message_end")[0].message.content.map((/** @type {any} */ block) => block.thinking ?? block.text ?? block.arguments), ["hm", "Both.", { n: 1 }, { n: 2 }]);
  assert.equal(new Set(all("tool_execution_start").map((event) => event.callId)).size, 2);
});

test("a server that is busy and a stream that breaks off are asked again; a refusal is told", async (t) => {
  const server = await serve(t, [
    { status: 503, body: "busy" },
    ndjson({ message: { content: "Half an ans" } }),
    ndjson({ message: { content: "A whole answer." } }, END),
    { status: 404, body: "no such model" },
  ]);
  const { host } = clock();
  const agent = new Agent({ model: ollama("m", { url: server.url }), host });
  const { result, names } = await readRun(agent.prompt("Go"));
  assert.deepEqual([result.text, names.filter((name) => name === "retry_attempt").length], ["A whole answer.", 2]);
  const refused = await readRun(agent.prompt("Go"));
  assert.deepEqual([refused.result.error.code, refused.result.error.message], ["invalid_request", "no such model"]);
});

test("an abort hangs up", async (t) => {
  const open = deferred();
  const server = await serve(t, [{ body: ndjson({ message: { content: "On and " } }), until: () => open.promise }]);
  const begun = new Agent({ model: ollama("m", { url: server.url }) }).prompt("Go");
  for await (const piece of begun.textStream) if (piece) break;
  const { stopReason, text } = await begun;
  assert.deepEqual([stopReason, text, await server.requests[0]?.closed], ["aborted", "On and ", "left"]);
  open.resolve();
});

test("web-llm: text streams, answers wait for each other, and an abort interrupts and drains the engine", async () => {
  const engine = mlcEngine(() => "A long story. ".repeat(20));
  let loads = 0;
  const model = webLlm("small", async () => (loads++, engine));
  const agent = new Agent({ model, systemPrompt: "Be brief." });
  const results = await Promise.all([agent.prompt("Go"), new Agent({ model }).prompt("Go too")]);
  assert.deepEqual([results.map(({ text }) => text.length), loads], [[280, 280], 1]);
  assert.deepEqual(engine.asked[0].messages.map((/** @type {any} */ { role }) => role), ["system", "user"]);
  assert.ok((results[0]?.usage.output ?? 0) > 0);
  const run = agent.prompt("Again");
  for await (const piece of run.textStream) if (piece) run.abort();
  assert.deepEqual([(await run).stopReason, engine.interrupted], ["aborted", 1]);
  assert.equal((await agent.prompt("Once more")).stopReason, "completed");
});
