// @ts-check
// Language models of the AI SDK as models of an agent: what is sent, what comes back, and what fails, with the providers' own
// packages in both versions of the specification. tests/js/ai-sdk/fixtures.mjs plays the recorded answers.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fromLanguageModel } from "../../../pkg/ai-sdk.js";
import { comparable, nativeModel, play } from "./outcome.mjs";
import { languageModel, VERSIONS } from "./providers.mjs";
import { Agent, anthropic, gemini, misused, openai, openaiResponses, readRun, testTool } from "../kit.mjs";

/** @typedef {import("./providers.mjs").Version} Version */
/** @typedef {import("./providers.mjs").Wire} Wire */

/** @type {Record<Wire, [string, (id: string, options: any) => any]>} */
const NATIVE = { "openai-chat": ["gpt-4.1", openai], "openai-responses": ["gpt-5", openaiResponses], anthropic: ["claude-sonnet-4-5", anthropic], gemini: ["gemini-3-pro-preview", gemini] };

const events = { headers: { "content-type": "text/event-stream" } };
/** @param {string} name */
const recording = (name) => readFileSync(new URL(`../../data/fixtures/${name}.sse`, import.meta.url));
/** @param {string} name */
const expectation = (name) => JSON.parse(readFileSync(new URL(`../../data/fixtures/${name}.expect.json`, import.meta.url), "utf8"));

/** A `fetch` that gives answers in turn and notes the requests. @param {...(string | Uint8Array | (() => Response))} answers */
function server(...answers) {
  /** @type {any[]} */
  const requests = [];
  const fetch = async (/** @type {any} */ url, /** @type {any} */ init) => {
    requests.push({ url: String(url), headers: Object.fromEntries(new Headers(init.headers)), body: await new Response(init.body).json(), signal: init.signal });
    const answer = answers[Math.min(requests.length, answers.length) - 1];
    return typeof answer === "function" ? answer() : new Response(/** @type {any} */ (answer), events);
  };
  return { fetch: /** @type {any} */ (fetch), requests };
}

/** @param {Version} version @param {Wire} wire @param {any} fetch @param {any} [options] @param {string} [id] */
const bridged = (version, wire, fetch, options, id = NATIVE[wire][0]) => fromLanguageModel(languageModel(version, wire, id, fetch), options);

/** The messages of a request, without what the two sides write differently and mean alike. @param {Wire} wire @param {any} body */
function conversation(wire, body) {
  const plain = (/** @type {any} */ value) => JSON.parse(JSON.stringify(value), (key, inner) => (["cache_control", "caller", "id", "annotations"].includes(key) ? undefined : inner));
  if (wire === "openai-chat") return body.messages.filter((/** @type {any} */ { role }) => role !== "developer" && role !== "system");
  if (wire === "anthropic") {
    return plain(body.messages).map((/** @type {any} */ message) => ({ ...message, content: message.content.filter?.((/** @type {any} */ block) => block.text?.trim() !== "").map((/** @type {any} */ block) => (typeof block.content === "string" ? { ...block, content: [{ type: "text", text: block.content }] } : block)) ?? message.content }));
  }
  if (wire === "gemini") return plain(body.contents).map((/** @type {any} */ content) => ({ ...content, parts: content.parts.map((/** @type {any} */ part) => (part.functionResponse ? { ...part, functionResponse: { name: part.functionResponse.name, response: part.functionResponse.response.result ?? part.functionResponse.response.content } } : part)) }));
  const text = (/** @type {any} */ content) => (typeof content === "string" ? content : content?.map((/** @type {any} */ part) => part.text).join(""));
  const ids = (/** @type {any} */ item) => (item.type === "reasoning" ? item.id : undefined);
  return body.input.filter((/** @type {any} */ { role }) => role !== "developer" && role !== "system").map((/** @type {any} */ item) => ({ ...plain(item), id: ids(item), type: item.role ? "message" : item.type, ...(item.role && { content: text(item.content) }) }));
}

/** @type {[Wire, string][]} */
const PAIRS = [["anthropic", "anthropic/thinking-tool-raw"], ["anthropic", "anthropic/redacted-thinking"], ["anthropic", "anthropic/server-web-search"], ["gemini", "gemini/gemini3-tool"], ["openai-responses", "openai-responses/reasoning-encrypted-tools-turn1"], ["openai-chat", "openai-chat/openai-interleaved-text-tool"]];
for (const [wire, name] of PAIRS) {
  for (const version of VERSIONS) {
    test(`${name} (${version}): the second request sends back what the wire of the package sends back`, async () => {
      const expected = expectation(name);
      const tools = [...new Set((expected.tool_calls ?? []).map((/** @type {any} */ call) => call.name))].map((tool) => testTool(/** @type {string} */ (tool), () => "done"));
      const [own, other] = await Promise.all([false, true].map(async (isBridge) => {
        const { fetch, requests } = server(recording(name));
        const model = isBridge ? bridged(version, wire, fetch) : NATIVE[wire][1](NATIVE[wire][0], { apiKey: "k", fetch });
        const agent = new Agent({ model, tools, systemPrompt: "Be brief.", maxTurns: 1 });
        await agent.prompt("Go");
        await agent.prompt("And?");
        assert.equal(requests.length, 2);
        return conversation(wire, requests[1].body);
      }));
      assert.deepEqual(other, own);
    });
  }
}

test("what a call asks for reaches the provider, in each version", async () => {
  const streamOptions = { temperature: 0.5, topP: 0.9, maxTokens: 99, stop: ["END"], toolChoice: /** @type {const} */ ({ toolName: "look" }), parallelToolCalls: false, headers: { "x-team": "blue" } };
  const tools = [testTool("look", () => "")];
  for (const version of VERSIONS) {
    const { fetch, requests } = server(recording("openai-chat/azure-text"), recording("anthropic/text"));
    await new Agent({ model: bridged(version, "openai-chat", fetch, { call: { seed: 7, presencePenalty: 0.1, frequencyPenalty: 0.2 } }), tools, streamOptions }).prompt("Go");
    const [{ body, headers }] = requests;
    assert.deepEqual([body.temperature, body.top_p, body.max_tokens ?? body.max_completion_tokens, body.stop, body.seed, body.presence_penalty, body.frequency_penalty], [0.5, 0.9, 99, ["END"], 7, 0.1, 0.2]);
    assert.deepEqual(body.tool_choice, { type: "function", function: { name: "look" } });
    assert.deepEqual([body.parallel_tool_calls, headers["x-team"], body.tools[0].function.name], [false, "blue", "look"]);
    await new Agent({ model: bridged(version, "anthropic", fetch, { providerOptions: { anthropic: { metadata: { userId: "u" } } }, call: { topK: 5 } }), tools, systemPrompt: "S", streamOptions: { parallelToolCalls: false } }).prompt("Go");
    const claude = requests[1].body;
    assert.deepEqual([claude.top_k, claude.metadata?.user_id, claude.tool_choice?.disable_parallel_tool_use], [5, "u", true], version);
    assert.deepEqual([claude.system[0].cache_control, claude.messages[0].content[0].cache_control], [{ type: "ephemeral" }, { type: "ephemeral" }]);
    await new Agent({ model: bridged(version, "anthropic", fetch), streamOptions: { cache: "none" }, systemPrompt: "S" }).prompt("Go");
    assert.doesNotMatch(JSON.stringify(requests[2].body), /cache_control/);
  }
});

test("how much to think is said in each provider's way", async () => {
  /** @type {[Wire, any, (body: any) => any, any][]} */
  const cases = [
    ["openai-responses", "low", (body) => body.reasoning?.effort, "low"],
    ["openai-responses", { budgetTokens: 9_000 }, (body) => body.reasoning?.effort, "medium"],
    ["anthropic", { budgetTokens: 2_000 }, (body) => body.thinking?.budget_tokens, 2_000],
    ["anthropic", "off", (body) => body.thinking?.type ?? "disabled", "disabled"],
    ["gemini", "low", (body) => body.generationConfig?.thinkingConfig?.thinkingLevel, "low"],
  ];
  for (const version of VERSIONS) {
    for (const [wire, reasoning, read, wanted] of cases) {
      const { fetch, requests } = server(() => new Response("", { status: 400 }));
      await new Agent({ model: bridged(version, wire, fetch), streamOptions: { reasoning } }).prompt("Go");
      assert.equal(read(requests[0].body), wanted, `${version} ${wire} ${JSON.stringify(reasoning)}`);
    }
  }
});

test("pictures, files and results of tools with pictures, in each version", async () => {
  const png = "iVBORw0KGgo=";
  const picture = testTool("look", () => ({ content: [{ type: "text", text: "a cat" }, { type: "image", mimeType: "image/png", data: png }] }));
  for (const version of VERSIONS) {
    for (const wire of /** @type {Wire[]} */ (["anthropic", "openai-chat", "openai-responses", "gemini"])) {
      const { fetch, requests } = server(() => new Response("", { status: 400 }));
      const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
      const messages = /** @type {any[]} */ ([
        { role: "user", content: [{ type: "text", text: "This?" }, { type: "image", mimeType: "image/png", data: png }, { type: "file", mimeType: "application/pdf", data: "JVBERg==", name: "a.pdf" }], timestamp: 0 },
        { role: "assistant", content: [{ type: "tool_call", callId: "c1", toolName: "look", arguments: {} }], provider: "x", model: "y", usage, stopReason: "tool_use", timestamp: 0 },
        { role: "tool_result", callId: "c1", toolName: "look", content: [{ type: "text", text: "a cat" }, { type: "image", mimeType: "image/png", data: png }], isError: false, timestamp: 0 },
      ]);
      const { error } = await new Agent({ model: bridged(version, wire, fetch), tools: [picture], messages }).continue();
      assert.equal(requests.length, 1, `${version} ${wire}: ${error?.message}`);
      const text = JSON.stringify(requests[0].body);
      assert.equal(text.split(png.slice(0, 10)).length - 1, 2, `${version} ${wire}: both pictures are there once`);
      assert.match(text, /JVBERg/);
      if (wire === "openai-chat") {
        const { role, content } = requests[0].body.messages.at(-1);
        assert.deepEqual([role, content[1].type], ["user", "image_url"], "a tool message takes only text");
      }
    }
  }
});

test("files in the results of tools, in each version: texts as texts, others as they are", async () => {
  const base64 = (/** @type {string} */ text) => Buffer.from(text).toString("base64");
  const [pdf, remote] = [base64("%PDF-1.7 one page"), "https://files.example/plan.pdf"];
  const content = [
    { type: "text", text: "three files" }, { type: "file", mimeType: "text/csv", name: "sums.csv", data: base64("a,b\n1,2 \u20ac") },
    { type: "file", mimeType: "application/pdf", name: "plan.pdf", data: pdf }, { type: "image", mimeType: "image/png", data: base64("picture!") },
  ];
  for (const version of VERSIONS) {
    for (const wire of /** @type {Wire[]} */ (["anthropic", "openai-chat", "openai-responses", "gemini"])) {
      const { fetch, requests } = server(() => new Response("", { status: 400 }));
      const messages = /** @type {any[]} */ ([
        { role: "user", content: [{ type: "text", text: "Which?" }], timestamp: 0 },
        { role: "assistant", content: [{ type: "tool_call", callId: "c1", toolName: "look", arguments: {} }], provider: "x", model: "y", usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 }, stopReason: "tool_use", timestamp: 0 },
        { role: "tool_result", callId: "c1", toolName: "look", content, isError: false, timestamp: 0 },
      ]);
      const { error } = await new Agent({ model: bridged(version, wire, fetch), tools: [testTool("look", () => "")], messages }).continue();
      assert.equal(requests.length, 1, `${version} ${wire}: ${error?.message}`);
      const sent = JSON.stringify(requests[0].body);
      for (const part of [pdf, base64("picture!"), JSON.stringify("sums.csv:\n\na,b\n1,2 \u20ac").slice(1, -1), "three files"]) {
        assert.equal(sent.split(part).length - 1, 1, `${version} ${wire}: ${part} is there once: ${sent}`);
      }
      if (wire === "openai-chat") assert.deepEqual(requests[0].body.messages.map((/** @type {any} */ { role }) => role).slice(-2), ["tool", "user"], "a tool message takes only text");
    }
  }
  // A result that is nothing but a file, and one that is not here.
  const [only] = await Promise.all([[{ type: "file", mimeType: "application/pdf", url: remote }]].map(async (content) => {
    const { fetch, requests } = server(() => new Response("", { status: 400 }));
    const messages = /** @type {any[]} */ ([
      { role: "user", content: [{ type: "text", text: "Which?" }], timestamp: 0 },
      { role: "assistant", content: [{ type: "tool_call", callId: "c1", toolName: "look", arguments: {} }], provider: "x", model: "y", usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 }, stopReason: "tool_use", timestamp: 0 },
      { role: "tool_result", callId: "c1", toolName: "look", content, isError: false, timestamp: 0 },
    ]);
    await new Agent({ model: bridged("v3", "anthropic", fetch), tools: [testTool("look", () => "")], messages }).continue();
    return JSON.stringify(requests[0].body);
  }));
  assert.match(only ?? "", /"url":"https:\/\/files\.example\/plan\.pdf/);
});

test("529, then an answer: the run goes on by itself", async () => {
  for (const version of VERSIONS) {
    const overloaded = () => new Response('{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}', { status: 529 });
    const { fetch, requests } = server(overloaded, recording("anthropic/text"));
    const { result, all } = await readRun(new Agent({ model: bridged(version, "anthropic", fetch), host: { sleep: async () => {} } }).prompt("Go"));
    assert.deepEqual([result.stopReason, requests.length], ["completed", 2]);
    assert.deepEqual(all("retry_attempt").map(({ error }) => [error.code, error.provider?.status]), [["overloaded", 529]]);
  }
});

test("how long the server asks to wait is known, and a dead network is one", async () => {
  for (const version of VERSIONS) {
    const limited = () => new Response('{"error":{"message":"slow down","type":"requests","code":"rate_limit_exceeded"}}', { status: 429, headers: { "retry-after": "7" } });
    const waits = /** @type {number[]} */ ([]);
    const { fetch } = server(limited, recording("openai-chat/azure-text"));
    await new Agent({ model: bridged(version, "openai-chat", fetch), host: { sleep: async (ms) => void waits.push(ms) } }).prompt("Go");
    assert.deepEqual(waits, [7_000], version);
    const dead = bridged(version, "openai-chat", async () => { throw new TypeError("fetch failed"); });
    const { error } = await new Agent({ model: dead, retry: { maxAttempts: 1 } }).prompt("Go");
    assert.deepEqual([error?.code, error?.info.retryable], ["network", true], version);
  }
});

test("an abort at each event of an answer ends it with what there is", async () => {
  for (const version of VERSIONS) {
    for (const [wire, name] of /** @type {[Wire, string][]} */ ([["anthropic", "anthropic/thinking-text-tool"], ["openai-responses", "openai-responses/reasoning-summary"]])) {
      const whole = await readRun(new Agent({ model: bridged(version, wire, server(recording(name)).fetch), maxTurns: 1 }).prompt("Go"));
      const count = whole.events.findIndex(({ type }) => type === "message_end");
      for (let at = 1; at < count; at += Math.max(1, Math.floor(count / 12))) {
        const { fetch, requests } = server(recording(name));
        const agent = new Agent({ model: bridged(version, wire, fetch), maxTurns: 1 });
        let seen = 0;
        agent.subscribe(() => void (++seen === at && agent.abort("enough")));
        const { result, end } = await readRun(agent.prompt("Go"));
        assert.equal(result.stopReason, "aborted", `${version} ${name} at ${at}`);
        assert.ok(end.messages.length >= 1);
        assert.ok(requests.length === 0 || requests[0].signal.aborted || requests[0].signal === undefined);
      }
    }
  }
});

test("an answer that was cut is never taken for a whole one", async () => {
  for (const name of ["openai-chat/openai-interleaved-text-tool", "openai-chat/length-openai", "openai-responses/text-pydantic", "gemini/thinking-long", "anthropic/text"]) {
    const text = recording(name).toString();
    const { wire } = expectation(name);
    const ends = [...text.matchAll(/\r\n\r\n|\n\n/g)].map((match) => match.index + match[0].length);
    for (let i = 1; i < ends.length - 3; i += Math.max(1, Math.floor(ends.length / 6))) {
      const { fetch } = server(() => new Response(text.slice(0, ends[i]), events));
      const native = comparable(await play(nativeModel(wire, fetch), {}), {});
      for (const version of VERSIONS) {
        const bridge = comparable(await play(bridged(version, wire, fetch, undefined, "recorded"), {}), {});
        assert.equal(bridge.stop === "error", native.stop === "error", `${version} ${name} at ${i}`);
      }
    }
  }
});

/** @param {string} word */
const chat = (word) => `data: {"id":"a","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"},"finish_reason":null}]}\n\ndata: {"id":"a","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"${word}"}]}\n\ndata: [DONE]\n\n`;
/** @param {string} word @param {string} parts */
const google = (word, parts = '{"text":"Hi"}') => `data: {"candidates":[{"content":{"parts":[${parts}],"role":"model"},"finishReason":"${word}","index":0}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":2,"totalTokenCount":5}}\r\n\r\n`;
/** @param {string} word */
const claude = (word) => `event: message_start\ndata: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"c","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":1}}}\n\nevent: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\nevent: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}\n\nevent: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\nevent: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"${word}","stop_sequence":null},"usage":{"output_tokens":2}}\n\nevent: message_stop\ndata: {"type":"message_stop"}\n\n`;

test("a provider's word for the end means what it means on the wire of the package", async () => {
  /** @type {[Wire, (word: string) => string, string[]][]} */
  const words = [
    ["openai-chat", chat, ["stop", "length", "content_filter", "tool_calls", "error", "abort", "insufficient_system_resource", "model_length", "sensitive", "max_tokens", "weird"]],
    ["gemini", google, ["STOP", "MAX_TOKENS", "SAFETY", "LANGUAGE", "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "OTHER", "weird"]],
    // Of an answer without content, the packages of the SDK do not say that it is none; the wire asks again.
    ["gemini", (word) => google(word, ""), ["MAX_TOKENS", "SAFETY"]],
    ["anthropic", claude, ["end_turn", "stop_sequence", "max_tokens", "refusal", "tool_use", "weird"]],
  ];
  for (const [wire, body, list] of words) {
    for (const word of list) {
      const { fetch } = server(body(word));
      const native = comparable(await play(nativeModel(wire, fetch), {}), {});
      for (const version of VERSIONS) {
        const bridge = comparable(await play(bridged(version, wire, fetch, undefined, "recorded"), {}), {});
        assert.deepEqual([bridge.stop, bridge.error], [native.stop, native.error], `${version} ${wire} ${word}`);
      }
    }
  }
  for (const version of VERSIONS) {
    assert.equal((await play(bridged(version, "anthropic", server(claude("pause_turn")).fetch), {})).message.stopReason, "pause");
  }
});

test("another model in the middle: what only the first one understands stays behind", async () => {
  for (const version of VERSIONS) {
    const first = server(recording("anthropic/thinking-tool-raw"));
    const [{ name: toolName }] = expectation("anthropic/thinking-tool-raw").tool_calls;
    const agent = new Agent({ model: bridged(version, "anthropic", first.fetch), tools: [testTool(toolName, () => "done")], maxTurns: 1 });
    await agent.prompt("Go");
    const { requests, fetch } = server(() => new Response("", { status: 400 }));
    const others = [bridged(version, "openai-responses", fetch), bridged(version, "anthropic", fetch, undefined, "claude-haiku-4-5"), anthropic("claude-sonnet-4-5", { apiKey: "k", fetch }), bridged(version, "gemini", fetch)];
    for (const model of others) {
      agent.model = model;
      await agent.prompt("And?");
      const text = JSON.stringify(requests.at(-1).body);
      assert.doesNotMatch(text, /signature"?:"?(?!skip)[A-Za-z0-9+/]{20}|"thinking"/, model.provider);
      assert.match(text, new RegExp(toolName));
    }
    assert.equal(requests.length, others.length);
  }
});

test("tools that the provider runs are passed on, and what they did is sent back", async () => {
  const { anthropic: theirs } = await import("@ai-sdk/anthropic");
  const { fetch, requests } = server(recording("anthropic/server-web-search"));
  const model = bridged("v4", "anthropic", fetch, { tools: { web_search: theirs.tools.webSearch_20250305({ maxUses: 2 }) } });
  const agent = new Agent({ model, tools: [testTool("look", () => "")] });
  const { messages } = await agent.prompt("Go");
  assert.deepEqual(requests[0].body.tools.map((/** @type {any} */ { name, type }) => type ?? name), ["look", "web_search_20250305"]);
  const raw = /** @type {any[]} */ (messages[1]?.content).filter(({ type }) => type === "raw").map(({ data }) => data.type);
  assert.ok(raw.includes("tool-call") && raw.includes("tool-result"), String(raw));
  await agent.prompt("More");
  assert.match(JSON.stringify(requests[1].body.messages), /"server_tool_use".*"web_search_tool_result"/);
  // One that the agent runs itself is described by the provider.
  const own = bridged("v4", "anthropic", fetch, { tools: { bash: theirs.tools.bash_20250124({}) } });
  await new Agent({ model: own, tools: [testTool("bash", () => "")] }).prompt("Go");
  assert.deepEqual(requests.at(-1).body.tools.map((/** @type {any} */ { type }) => type), ["bash_20250124"]);
});

/** A model of a version whose stream has these parts. @param {Version} specificationVersion @param {any[]} parts */
const made = (specificationVersion, parts) => /** @type {any} */ ({
  specificationVersion, provider: "mine.chat", modelId: "m",
  doStream: async () => ({ stream: new ReadableStream({ start(controller) { for (const part of parts) controller.enqueue(part); controller.close(); } }) }),
});
const finish = { type: "finish", finishReason: { unified: "stop", raw: "stop" }, usage: { inputTokens: { total: 3, noCache: 3 }, outputTokens: { total: 2 } } };

test("parts that only some providers send: approvals are refused, files and sources are kept, warnings are heard", async () => {
  const warned = /** @type {any[]} */ ([]);
  const parts = [
    { type: "stream-start", warnings: [{ type: "unsupported", feature: "seed" }] }, { type: "ping" }, { type: "response-metadata", id: "r" },
    { type: "source", sourceType: "url", id: "s", url: "https://example.com" },
    { type: "file", mediaType: "image/png", data: { type: "data", data: new Uint8Array([1, 2]) } },
    { type: "tool-result", toolCallId: "x", toolName: "t", result: { half: true }, preliminary: true },
    { type: "text-delta", id: "unknown", delta: "Hello" }, { type: "something-new" }, finish,
  ];
  const { result } = await readRun(new Agent({ model: fromLanguageModel(made("v4", parts), { onWarning: (warning) => warned.push(warning) }) }).prompt("Go"));
  assert.deepEqual(warned, [{ type: "unsupported", feature: "seed" }]);
  assert.deepEqual(/** @type {any} */ (result.messages[1]).content, [
    { type: "raw", data: { type: "source", sourceType: "url", id: "s", url: "https://example.com" } },
    { type: "raw", data: { type: "file", mediaType: "image/png", data: { type: "data", data: "AQI=" } } },
    { type: "text", text: "Hello" },
  ]);
  const asking = made("v4", [{ type: "tool-call", toolCallId: "x", toolName: "mcp", input: "{}", providerExecuted: true }, { type: "tool-approval-request", approvalId: "a", toolCallId: "x" }, finish]);
  const { error } = await new Agent({ model: fromLanguageModel(asking) }).prompt("Go");
  assert.deepEqual([error?.code, error?.info.retryable], ["invalid_request", false]);
  assert.match(String(error?.message), /asks whether it may run a tool itself/);
});

test("thoughts that a package leaves unread are read, and those that it reads are there once", async () => {
  const chunk = (/** @type {any} */ delta) => ({ type: "raw", rawValue: { choices: [{ delta }] } });
  const read = [chunk({ reasoning_content: "hm" }), { type: "reasoning-start", id: "r" }, { type: "reasoning-delta", id: "r", delta: "hm" }, chunk({ reasoning_content: "m" }), { type: "reasoning-delta", id: "r", delta: "m" }, { type: "reasoning-end", id: "r" }, chunk({ content: "Hi" }), { type: "text-delta", id: "t", delta: "Hi" }, finish];
  const unread = read.filter(({ type }) => !type.startsWith("reasoning"));
  for (const parts of [read, unread]) {
    const { messages } = await new Agent({ model: fromLanguageModel(made("v4", parts)) }).prompt("Go");
    assert.deepEqual(/** @type {any} */ (messages[1]).content, [{ type: "thinking", thinking: "hmm" }, { type: "text", text: "Hi" }]);
  }
});

test("what was used is known: as told, with a price, or estimated", async () => {
  const price = { input: 1, output: 10 };
  const told = await new Agent({ model: fromLanguageModel(made("v4", [{ type: "text-delta", id: "t", delta: "Hi" }, finish]), { price }) }).prompt("Go");
  assert.deepEqual([told.usage.input, told.usage.output, told.usage.cost, told.usage.estimated], [3, 2, 23e-6, undefined]);
  const untold = { ...finish, usage: { inputTokens: {}, outputTokens: {} } };
  const estimated = await new Agent({ model: fromLanguageModel(made("v3", [{ type: "text-delta", id: "t", delta: "Hi there" }, untold])) }).prompt("Go");
  assert.ok(estimated.usage.estimated && estimated.usage.total > 0);
  misused(() => new Agent({ model: fromLanguageModel(made("v4", [])), budget: { usd: 1 } }).prompt("Go"), /price of model `m`/);
});

test("misuse is named", async () => {
  const model = made("v4", []);
  misused(() => fromLanguageModel(/** @type {any} */ ("openai/gpt-5")), /got the text "openai\/gpt-5"/);
  misused(() => fromLanguageModel(/** @type {any} */ ({})), /a language model of the AI SDK/);
  misused(() => fromLanguageModel({ ...model, specificationVersion: "v2" }), /specification version "v2"/);
  misused(() => fromLanguageModel(model, /** @type {any} */ ({ providerOption: {} })), /did you mean `providerOptions`/);
  misused(() => fromLanguageModel(model, /** @type {any} */ ({ call: { topk: 1 } })), /did you mean `topK`/);
  misused(() => fromLanguageModel(model, { contextWindow: 0 }), /contextWindow/);
  misused(() => fromLanguageModel(model, { tools: { a: /** @type {any} */ ({ execute() {} }) } }), /tools of your own are an option of the agent/);
  const { error } = await new Agent({ model: fromLanguageModel(model), streamOptions: { body: { service_tier: "flex" } } }).prompt("Go");
  assert.deepEqual([error?.code, /service_tier/.test(String(error?.message))], ["misuse", true]);
});
