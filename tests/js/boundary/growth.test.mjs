// @ts-check
// What a turn, a call or a piece costs in the engine must not grow with their number. Time is too noisy to
// test that; but binaryen can make a module report each function call and each loop iteration, and their
// number is the same in every run.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { before, test } from "node:test";
import { Agent, anthropic, gemini, openaiCompatible, openaiResponses, use } from "../../../pkg/slim.js";

const root = new URL("../../../", import.meta.url);
const FEATURES = ["bulk-memory", "multivalue", "mutable-globals", "nontrapping-float-to-int", "reference-types", "sign-ext"];

let marks = 0;

before(() => {
  const folder = mkdtempSync(join(tmpdir(), "growth-"));
  const out = join(folder, "counting.wasm");
  const tool = new URL("node_modules/binaryen/bin/wasm-opt", root).pathname;
  execFileSync(process.execPath, [tool, new URL("pkg/turnwheel.wasm", root).pathname, ...FEATURES.map((name) => `--enable-${name}`), "--log-execution", "-o", out]);
  const bytes = readFileSync(out);
  rmSync(folder, { recursive: true });
  const { Instance } = WebAssembly;
  WebAssembly.Instance = /** @type {any} */ (function (/** @type {WebAssembly.Module} */ module, /** @type {any} */ imports) {
    for (const names of Object.values(imports)) names.log_execution = () => void marks++;
    return new Instance(module, imports);
  });
  use(() => bytes);
});

const encoder = new TextEncoder();

/** A model that gives each of these answers in turn, event by event. @param {any[][]} answers @param {boolean} named whether each event says its type ahead */
const server = (answers, named) => {
  let at = 0;
  return async () => {
    const events = answers[at++] ?? [];
    const text = events.map((event) => `${named ? `event: ${event.type}\n` : ""}data: ${JSON.stringify(event)}\n\n`).join("");
    return new Response(encoder.encode(text), { headers: { "content-type": "text/event-stream" } });
  };
};

const options = (/** @type {any} */ fetch) => ({ baseUrl: "http://localhost/v1", apiKey: "k", fetch });

/** An answer that calls `add` with these ids, and one that only speaks, as each wire has them. @type {Record<string, { model(fetch: any): any, named: boolean, calls(ids: string[]): any[], words: any[] }>} */
const WIRES = {
  chat: {
    model: (fetch) => openaiCompatible("m", options(fetch)), named: false,
    calls: (ids) => [...ids.map((id, index) => ({ choices: [{ index: 0, delta: { tool_calls: [{ index, id, function: { name: "add", arguments: '{"n":1}' } }] } }] })), { choices: [{ index: 0, delta: {}, finish_reason: "tool_calls" }] }],
    words: [{ choices: [{ index: 0, delta: { content: "done" }, finish_reason: "stop" }] }],
  },
  responses: {
    model: (fetch) => openaiResponses("m", options(fetch)), named: true,
    calls: (ids) => [
      ...ids.flatMap((id, output_index) => {
        const item = { type: "function_call", id: `fc_${id}`, call_id: id, name: "add" };
        return [
          { type: "response.output_item.added", output_index, item: { ...item, arguments: "" } },
          { type: "response.function_call_arguments.delta", output_index, delta: '{"n":1}' },
          { type: "response.output_item.done", output_index, item: { ...item, arguments: '{"n":1}' } },
        ];
      }),
      { type: "response.completed", response: { status: "completed" } },
    ],
    words: [{ type: "response.output_text.delta", output_index: 0, content_index: 0, delta: "done" }, { type: "response.completed", response: { status: "completed" } }],
  },
  anthropic: {
    model: (fetch) => anthropic("claude-x", options(fetch)), named: true,
    calls: (ids) => [
      { type: "message_start", message: { usage: {} } },
      ...ids.flatMap((id, index) => [
        { type: "content_block_start", index, content_block: { type: "tool_use", id, name: "add", input: {} } },
        { type: "content_block_delta", index, delta: { type: "input_json_delta", partial_json: '{"n":1}' } },
        { type: "content_block_stop", index },
      ]),
      { type: "message_delta", delta: { stop_reason: "tool_use" } }, { type: "message_stop" },
    ],
    words: [
      { type: "message_start", message: { usage: {} } }, { type: "content_block_start", index: 0, content_block: { type: "text", text: "done" } },
      { type: "content_block_stop", index: 0 }, { type: "message_delta", delta: { stop_reason: "end_turn" } }, { type: "message_stop" },
    ],
  },
  gemini: {
    model: (fetch) => gemini("m", options(fetch)), named: false,
    calls: (ids) => [...ids.map((id) => ({ candidates: [{ content: { parts: [{ functionCall: { id, name: "add", args: { n: 1 } } }] } }] })), { candidates: [{ finishReason: "STOP" }] }],
    words: [{ candidates: [{ content: { parts: [{ text: "done" }] }, finishReason: "STOP" }] }],
  },
};

const add = { name: "add", description: "adds", parameters: { type: "object", properties: { n: { type: "number" } }, required: ["n"] }, execute: () => "added" };
const upTo = (/** @type {number} */ count) => Array.from({ length: count }, (_, i) => i);

/**
 * The number of marks in one run.
 * @param {any} wire @param {any[][]} answers @param {number} calls that it makes
 * @param {object} [more] options besides @param {(event: any, agent: Agent) => void} [listener]
 */
async function cost(wire, answers, calls, more, listener) {
  const agent = new Agent({ model: wire.model(server(answers, wire.named)), tools: [add], maxTurns: answers.length, ...more });
  if (listener) agent.subscribe((event) => listener(event, agent));
  marks = 0;
  const result = await agent.prompt("Go").result;
  const spent = marks;
  assert.equal(result.stopReason, "completed", result.error?.message);
  assert.equal(result.messages.filter((message) => message.role === "tool_result" && !message.isError).length, calls);
  agent[Symbol.dispose]();
  return spent;
}

/**
 * The cost of one more of something; the first ones are left out, with all costs that occur once.
 * @param {(count: number) => Promise<number>} spent @param {[number, number, number]} [counts]
 */
async function growth(spent, counts = [100, 200, 800]) {
  const [some, more, most] = counts;
  const [first, second, last] = [await spent(some), await spent(more), await spent(most)];
  return { early: (second - first) / (more - some), late: (last - second) / (most - more) };
}

for (const [name, wire] of Object.entries(WIRES)) {
  test(`${name}: a turn costs the same however long the history is`, async () => {
    const turns = (/** @type {number} */ count) => cost(wire, [...upTo(count).map((turn) => wire.calls([`call_${turn}`])), wire.words], count);
    const { early, late } = await growth(turns);
    // Except for one look at each message: whether it is the one that was encoded. On average this compares
    // turn 150 with turn 500, with two messages each.
    const looks = 2 * (500 - 150);
    assert.ok(late < early * 1.01 + looks, `${early.toFixed()} marks for a turn after 100, ${late.toFixed()} after 200`);
  });

  test(`${name}: a turn behind a prompt that is another one each time costs the same but for some looks`, async () => {
    let promptCount = 0;
    const turns = (/** @type {number} */ count) => cost(wire, [...upTo(count).map((turn) => wire.calls([`call_${turn}`])), wire.words], count, { dynamicSystemPrompt: () => `Request ${promptCount++}` });
    const { early, late } = await growth(turns);
    // The list is copied to put the prompt in front, and every encoded message is now at another index.
    const looks = 2 * (500 - 150) * 14;
    assert.ok(late < early * 1.01 + looks, `${early.toFixed()} marks for a turn after 100, ${late.toFixed()} after 200`);
  });

  test(`${name}: a call costs the same however many there are at once`, async () => {
    const calls = (/** @type {number} */ count) => cost(wire, [wire.calls(upTo(count).map((call) => `call_${call}`)), wire.words], count);
    const { early, late } = await growth(calls);
    // The sorted list of running calls adds a logarithm.
    assert.ok(late < early * 1.02, `${early.toFixed()} marks for a call after 100, ${late.toFixed()} after 200`);
  });
}

test("a piece of text and one of arguments cost the same however many there are", async () => {
  const delta = (/** @type {any} */ delta) => ({ choices: [{ index: 0, delta }] });
  const text = (/** @type {number} */ count) => cost(WIRES.chat, [[...upTo(count).map((n) => delta({ content: `word ${n % 10}, ` })), ...WIRES.chat.words]], 0);
  const part = (/** @type {string} */ json) => delta({ tool_calls: [{ index: 0, function: { arguments: json } }] });
  const pieces = (/** @type {number} */ count) => cost(WIRES.chat, [[delta({ tool_calls: [{ index: 0, id: "c", function: { name: "add", arguments: '{"n":1' } }] }), ...upTo(count).map((n) => part(`,"k${n % 10}":[1,2]`)), part("}"), ...WIRES.chat.calls([])], WIRES.chat.words], 1);
  for (const spent of [text, pieces]) {
    // Buffers grow up to some hundred pieces.
    const { early, late } = await growth(spent, [400, 800, 3200]);
    assert.ok(late < early * 1.02, `${early.toFixed()} marks for a piece after 400, ${late.toFixed()} after 800`);
  }
});

const ask = { ...add, requiresApproval: true };
const textBlock = (/** @type {string} */ text) => ({ type: "text", text });

/**
 * What users do in every turn, and how many looks at each message it may cost.
 * @type {Record<string, { looks: number, options?: object, listener?(event: any, agent: Agent): void }>}
 */
const USES = {
  "a decision": { looks: 1, options: { tools: [ask] }, listener: (event, agent) => event.type === "tool_approval_requested" && agent.resolveTool(event.callId, "approve") },
  "a decision by a function": { looks: 1, options: { tools: [ask], approveTool: () => "approve" } },
  "a transformer that changes nothing": { looks: 2, options: { transformContext: (/** @type {any[]} */ messages) => [...messages] } },
  "a window": { looks: 1, options: { transformContext: (/** @type {any[]} */ messages) => messages.slice(-20) } },
  "a hook that is told the request": { looks: 3, options: { hooks: { beforeInference() {} } } },
  "the request as an event": { looks: 3, options: { includeRequests: true } },
  "a policy that is told the history": { looks: 2, options: { policies: { postTurn: [() => undefined] } } },
  "a call without a result long ago": {
    looks: 1, options: { messages: [{ role: "assistant", content: [textBlock("Wait"), { type: "tool_call", callId: "lost", toolName: "add", arguments: {} }], stopReason: "aborted" }] },
  },
  "results in another order than their calls long ago": {
    looks: 1, options: { messages: [
      { role: "assistant", content: ["a", "b"].map((callId) => ({ type: "tool_call", callId, toolName: "add", arguments: {} })), stopReason: "tool_use" },
      ...["b", "a"].map((callId) => ({ role: "tool_result", callId, toolName: "add", content: [textBlock("added")], isError: false })),
    ] },
  },
  "another system prompt": { looks: 1, listener: (event, agent) => event.type === "turn_end" && (agent.systemPrompt = `Turn ${event.turnIndex}`) },
  "other tools": { looks: 1, listener: (event, agent) => event.type === "turn_end" && (agent.tools = [add]) },
  "a result without a call long ago": { looks: 1, options: { messages: [{ role: "tool_result", callId: "lost", toolName: "add", content: [textBlock("added")], isError: false }] } },
};

for (const [name, { looks, options, listener }] of Object.entries(USES)) {
  test(`with ${name} a turn costs the same however long the history is`, async () => {
    const wire = WIRES.chat;
    const turns = (/** @type {number} */ count) => cost(wire, [...upTo(count).map((turn) => wire.calls([`call_${turn}`])), wire.words], count, options, listener);
    const { early, late } = await growth(turns);
    assert.ok(late < early * 1.01 + looks * 2 * (500 - 150), `${early.toFixed()} marks for a turn after 100, ${late.toFixed()} after 200`);
  });
}

/**
 * The ways in which decisions are made.
 * @type {Record<string, { options?: object, listener?(event: any, agent: Agent, ids: string[]): void }>}
 */
const DECISIONS = {
  "by a function": { options: { approveTool: () => "approve" } },
  "one by one, as they are asked for": { listener: (event, agent) => event.type === "tool_approval_requested" && agent.resolveTool(event.callId, "approve") },
  "one by one, when all are asked for": {
    listener: (event, agent, ids) => event.type === "tool_approval_requested" && event.callId === ids.at(-1) && ids.forEach((id) => agent.resolveTool(id, "reject")),
  },
  "all at once": {
    listener: (event, agent, ids) => event.type === "tool_approval_requested" && event.callId === ids.at(-1) && agent.resolveTools(Object.fromEntries(ids.map((id) => [id, "approve"]))),
  },
};

for (const [name, { options, listener }] of Object.entries(DECISIONS)) {
  test(`a decision costs the same however many calls wait: ${name}`, async () => {
    const wire = WIRES.chat;
    const calls = (/** @type {number} */ count) => {
      const ids = upTo(count).map((call) => `call_${call}`);
      return cost(wire, [wire.calls(ids), wire.words], name.includes("when all") ? 0 : count, { tools: [ask], ...options }, (event, agent) => listener?.(event, agent, ids));
    };
    const { early, late } = await growth(calls);
    assert.ok(late < early * 1.02, `${early.toFixed()} marks for a call after 100, ${late.toFixed()} after 200`);
  });
}

test("a letter costs the same however many wait", async () => {
  const wire = WIRES.chat;
  const messages = (/** @type {number} */ count) =>
    cost(wire, upTo(count + 1).map(() => wire.words), 0, { followUp: { delivery: "one_at_a_time" } }, (event, agent) => {
      if (event.type === "agent_start") for (const n of upTo(count)) void agent.followUp(`letter ${n}`);
    });
  const { early, late } = await growth(messages);
  assert.ok(late < early * 1.01 + 2 * (500 - 150), `${early.toFixed()} marks for a letter after 100, ${late.toFixed()} after 200`);
});

test("a run costs the same however long the history is", async () => {
  const wire = WIRES.chat;
  const runs = async (/** @type {number} */ count) => {
    const agent = new Agent({ model: wire.model(server(upTo(count).map(() => wire.words), wire.named)) });
    marks = 0;
    for (const n of upTo(count)) assert.equal((await agent.prompt(`Run ${n}`).result).stopReason, "completed");
    const spent = marks;
    agent[Symbol.dispose]();
    return spent;
  };
  const { early, late } = await growth(runs);
  // The list is copied twice, for the machine and for JavaScript's copy, and each message is
  // looked at for the request.
  const looks = 2 * (500 - 150) * 18;
  assert.ok(late < early * 1.01 + looks, `${early.toFixed()} marks for a run after 100, ${late.toFixed()} after 200`);
});
