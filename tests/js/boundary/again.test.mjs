// @ts-check
// The engine keeps what it knows of a history from run to run. However an agent came to its messages: in
// every run its requests must equal those of a new agent with the same messages.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, anthropic, gemini, openaiCompatible, openaiResponses } from "../kit.mjs";
import { dice } from "../dice.mjs";

const frames = (/** @type {any[]} */ events, /** @type {boolean} */ named) => events.map((event) => `${named ? `event: ${event.type}\n` : ""}data: ${JSON.stringify(event)}\n\n`).join("");
const call = { name: "add", input: { n: 1 } };

/** Each wire: its model, and an answer that says something, or calls the tool under an id. @type {[(fetch: any) => any, (id?: string) => string][]} */
const WIRES = [
  [(fetch) => openaiCompatible("m", { baseUrl: "http://x/v1", fetch }), (id) => frames([
    { choices: [{ index: 0, delta: id === undefined ? { content: "so" } : { tool_calls: [{ index: 0, id, function: { name: "add", arguments: '{"n":1}' } }] } }] },
    { choices: [{ index: 0, delta: {}, finish_reason: id === undefined ? "stop" : "tool_calls" }] },
  ], false)],
  [(fetch) => openaiResponses("m", { baseUrl: "http://x/v1", fetch }), (id) => {
    const item = { type: "function_call", id: "fc", call_id: id, name: "add", arguments: '{"n":1}' };
    return frames([
      ...(id === undefined ? [{ type: "response.output_text.delta", output_index: 0, content_index: 0, delta: "so" }] : [
        { type: "response.output_item.added", output_index: 0, item: { ...item, arguments: "" } }, { type: "response.output_item.done", output_index: 0, item },
      ]),
      { type: "response.completed", response: { status: "completed" } },
    ], true);
  }],
  [(fetch) => anthropic("claude-x", { baseUrl: "http://x", fetch }), (id) => frames([
    { type: "message_start", message: { usage: {} } },
    { type: "content_block_start", index: 0, content_block: id === undefined ? { type: "text", text: "so" } : { type: "tool_use", id, ...call } },
    { type: "content_block_stop", index: 0 }, { type: "message_delta", delta: { stop_reason: id === undefined ? "end_turn" : "tool_use" } }, { type: "message_stop" },
  ], true)],
  [(fetch) => gemini("m", { baseUrl: "http://x", fetch }), (id) => frames([
    { candidates: [{ content: { parts: [id === undefined ? { text: "so" } : { functionCall: { id, name: "add", args: call.input } }] }, finishReason: "STOP" }] },
  ], false)],
];

const tools = [1, 2].map((n) => [{ name: "add", description: `Adds ${n}`, parameters: { type: "object" }, execute: () => "added" }]);
const TOO_LONG = JSON.stringify({ error: { code: "context_length_exceeded", message: "This model's maximum context length is 1 token" } });

test("every run asks what a new agent over the same messages asks", async () => {
  let compared = 0;
  for (let seed = 1; seed <= 60; seed++) {
    const roll = dice(seed);
    /** How the server answers the next requests. @type {(() => Response)[]} */
    let script = [];
    /** @type {any} */
    let lastRequest;
    const fetch = async (/** @type {any} */ url, /** @type {any} */ init) => {
      lastRequest ??= { url: String(url), body: new TextDecoder().decode(init.body) };
      return script.shift()?.() ?? new Response("{}", { status: 400 });
    };
    const models = WIRES.map(([make]) => make(fetch));
    let wire = roll(4);
    const options = {
      systemPrompt: "Be brief.", sessionId: "s", retry: { maxAttempts: 1 }, model: models[wire], tools: tools[0], convertToLlm: roll(3) > 0 ? undefined : (/** @type {any} */ m) => (m.role === "custom" ? null : m),
      compaction: { engine: async (/** @type {any[]} */ messages) => ({ messages: messages.slice(-1 - roll(4)) }) },
    };
    const agent = new Agent(options);
    for (let run = 0; run < 8; run++) {
      if (roll(4) === 0) agent.systemPrompt = `Be brief, ${run}.`;
      if (roll(4) === 0) agent.tools = tools[roll(2)];
      if (roll(4) === 0) agent.model = models[(wire = roll(4))];
      const answer = WIRES[wire][1];
      const respond = () => new Response(answer());
      const calls = () => new Response(answer(["a", "b", ""][roll(3)]));
      const cut = () => new Response(answer().slice(0, 60));
      const refuses = () => new Response(TOO_LONG, { status: 400 });
      script = [[respond], [calls, respond], [calls, calls, respond], [cut], [calls, cut], [refuses, respond], [refuses, calls, respond], []][roll(8)];
      /** @type {any} */
      const prompt = [`Go ${run}`, [{ type: "text", text: "See" }, { type: "image", mimeType: "image/png", data: "AAAA" }], { role: "custom", kind: "note", data: run, timestamp: 1 }][roll(8) < 6 ? 0 : 1 + roll(2)];
      const { messages, systemPrompt } = agent;
      const fresh = new Agent({ ...options, model: agent.model, tools: agent.tools, systemPrompt, messages: structuredClone(messages) });
      const own = script;
      script = [];
      lastRequest = undefined;
      await fresh.prompt(prompt);
      const wanted = lastRequest;
      script = own;
      lastRequest = undefined;
      const going = agent.prompt(prompt);
      const stop = roll(6) === 0 ? ["message_update", "tool_execution_start"][roll(2)] : "";
      const leave = agent.subscribe((event) => event.type === stop && agent.abort());
      if (roll(6) === 0) void agent.steer("And this");
      await going;
      leave();
      // A posted message is in the request too, unless the run was stopped before it.
      if (lastRequest && wanted && !lastRequest.body.includes("And this")) {
        assert.equal(lastRequest.body, wanted.body, `seed ${seed}, run ${run}`);
        compared++;
      }
    }
  }
  assert.ok(compared > 300, String(compared));
});
