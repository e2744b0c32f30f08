// @ts-check
// node ai-sdk-lowest.mjs ROOT, in a folder with the lowest versions: each first version of a specification answers and calls a tool,
// and a chat of ai 6.0.0 asks a person. tests/e2e/ai-sdk.mjs runs it.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
// @ts-ignore: of this folder
import { Chat } from "@ai-sdk/react";
// @ts-ignore: of this folder
import { lastAssistantMessageIsCompleteWithApprovalResponses, safeValidateUIMessages } from "ai";

const root = String(process.argv[2]);
const load = (/** @type {string} */ path) => import(pathToFileURL(join(root, path)).href);
const [{ Agent, scripted }, { chatTransport, fromLanguageModel, toUIMessages }] = await Promise.all([load("pkg/entry/node.js"), load("pkg/ai-sdk.js")]);

/** @param {string} name */
const recording = (name) => readFileSync(join(root, `tests/data/fixtures/${name}.sse`));
for (const version of [3, 4]) {
  const { createOpenAI } = await import(`openai-${version}`);
  const { createAnthropic } = await import(`anthropic-${version}`);
  const fetch = (/** @type {string} */ name) => async () => new Response(recording(name), { headers: { "content-type": "text/event-stream" } });
  const models = [
    [createOpenAI({ apiKey: "k", fetch: fetch("openai-chat/openai-interleaved-text-tool") }).chat("gpt-4.1"), "openai-chat/openai-interleaved-text-tool"],
    [createOpenAI({ apiKey: "k", fetch: fetch("openai-responses/parallel-tools") }).responses("gpt-5"), "openai-responses/parallel-tools"],
    [createAnthropic({ apiKey: "k", fetch: fetch("anthropic/thinking-text-tool") })("claude"), "anthropic/thinking-text-tool"],
  ];
  for (const [model, name] of models) {
    const { tool_calls: calls } = JSON.parse(readFileSync(join(root, `tests/data/fixtures/${name}.expect.json`), "utf8"));
    const ran = /** @type {any[]} */ ([]);
    const tools = [...new Set(calls.map((/** @type {any} */ call) => call.name))].map((tool) => ({ name: tool, description: "d", parameters: { type: "object" }, execute: (/** @type {any} */ args) => void ran.push([tool, args]) }));
    assert.equal(model.specificationVersion, `v${version}`);
    await new Agent({ model: fromLanguageModel(model), tools, maxTurns: 1 }).prompt("Go");
    assert.deepEqual(ran, calls.map((/** @type {any} */ call) => [call.name, call.arguments]), `v${version} ${name}`);
  }
}

const pay = { name: "pay", description: "Pays", parameters: { type: "object" }, requiresApproval: true, execute: () => "paid" };
const agent = new Agent({ model: scripted([{ text: "May I?", toolCalls: [{ toolName: "pay" }] }, "Thanks."]), tools: [pay] });
const chat = new Chat({ transport: chatTransport(agent), sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses });
await chat.sendMessage({ text: "Pay" });
await chat.addToolApprovalResponse({ id: chat.lastMessage.parts.at(-1).approval.id, approved: true });
while (agent.isRunning || chat.status !== "ready") await new Promise((wake) => setTimeout(wake, 5));
assert.equal(chat.lastMessage.parts.at(-1).text, "Thanks.");
assert.equal((await safeValidateUIMessages({ messages: toUIMessages(agent.messages) })).success, true);
console.log("all as expected");
