// @ts-check
// What the package promises for all wires: keys are never shown, prices become costs, servers are known by
// name, and the proxy example does what it promises.

import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { Agent, anthropic, clock, gemini, misused, openai, openaiCompatible, openaiResponses, readRun, textOf } from "../kit.mjs";
import worker, { proxy } from "../../../www/examples/proxy/worker.js";

const KEY = "sk-this-must-never-be-seen-0123456789";
const ONCE = { maxAttempts: 1 };

/** @param {any[]} frames */
const sse = (...frames) => frames.map((frame) => `data: ${JSON.stringify(frame)}\n\n`).join("");

/** Each wire: how a model on it is made, a whole answer of 1000 tokens in (400 from a cache) and 10 out, the header of the key. @type {Record<string, [(id: string, options: any) => any, string, string]>} */
const WIRES = {
  chat: [openai, sse({ choices: [{ index: 0, delta: { content: "hi" }, finish_reason: "stop" }], usage: { prompt_tokens: 1000, completion_tokens: 10, prompt_tokens_details: { cached_tokens: 400 } } }), "authorization"],
  responses: [openaiResponses, sse(
    { type: "response.output_text.delta", output_index: 0, delta: "hi" },
    { type: "response.completed", response: { status: "completed", usage: { input_tokens: 1000, output_tokens: 10, input_tokens_details: { cached_tokens: 400 } } } },
  ), "authorization"],
  messages: [anthropic, sse(
    { type: "message_start", message: { id: "m", usage: { input_tokens: 600, cache_read_input_tokens: 400, output_tokens: 1 } } },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "hi" } },
    { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 10 } }, { type: "message_stop" },
  ), "x-api-key"],
  gemini: [gemini, sse({ candidates: [{ content: { parts: [{ text: "hi" }] }, finishReason: "STOP" }], usageMetadata: { promptTokenCount: 1000, candidatesTokenCount: 10, cachedContentTokenCount: 400 } }), "x-goog-api-key"],
};

const answer = (/** @type {string} */ body, status = 200, headers = {}) => new Response(body, { status, headers });

/** How servers and hosts echo a key. @type {Record<string, () => Response | Promise<Response>>} */
const ECHOES = {
  "in the words of a refusal": () => answer(JSON.stringify({ error: { message: `Incorrect API key provided: ${KEY}` } }), 401),
  "in the names of a refusal": () => answer(JSON.stringify({ error: { message: "no", type: KEY, code: `key ${KEY}`, status: KEY } }), 400),
  "in a page": () => answer(`<html><title>${KEY}</title></html>`, 502),
  "in plain words": () => answer(`who is ${KEY}?`, 429, { "retry-after": "0" }),
  "in a header": () => answer("{}", 400, { "x-request-key": KEY }),
  "in the stream": () => answer(sse({ type: "error", error: { message: `bad key ${KEY}`, type: KEY } })),
  "in place of a stream": () => answer(`Bearer ${KEY}`),
  "beside a stream": () => answer(`data: {"type":"ping"}\n\nBearer ${KEY}`),
  "by a fetch that throws": () => Promise.reject(new Error(`cannot send ${KEY}`)),
};

for (const [wire, [make, whole, header]] of Object.entries(WIRES)) {
  test(`${wire}: nothing that can be seen of a run shows the key`, async (t) => {
    /** @type {string[]} */
    const logged = [];
    for (const level of /** @type {const} */ (["log", "info", "warn", "error", "debug"])) t.mock.method(console, level, (/** @type {any[]} */ ...words) => void logged.push(inspect(words, { depth: 20 })));
    for (const [how, respond] of Object.entries({ ...ECHOES, "not at all": () => answer(whole) })) {
      for (const apiKey of [KEY, () => KEY, async () => `${KEY}\n`, undefined]) {
        /** @type {any[]} */
        const sent = [];
        /** @type {any} */
        const recorded = { events: [], hooks: [] };
        const model = make("m", { apiKey, fetch: async (/** @type {any} */ url, /** @type {any} */ init) => (sent.push([url, init.headers[header]]), respond()) });
        const agent = new Agent({
          model, retry: { maxAttempts: 2 }, host: clock().host, includeRequests: true, ...(apiKey === undefined && { getApiKey: () => KEY }),
          hooks: { onError: ({ error }) => void recorded.hooks.push(error), beforeInference: (context) => void recorded.hooks.push(context), afterInference: (context) => void recorded.hooks.push(context) },
        });
        agent.subscribe((event) => void recorded.events.push(event));
        const outcome = await readRun(agent.prompt("Hello"));
        assert.ok(sent.every(([url, value]) => value.endsWith(KEY) && !url.includes(KEY)), `${how}: the key is sent, in its header alone`);
        const { error, ...result } = outcome.result;
        // What a host's own function threw is returned as it is.
        const errorParts = error && [error.message, error.stack, error.info, error.code];
        const seen = [JSON.stringify([recorded, outcome.events, result, agent.messages, errorParts]), inspect([agent, agent.model, result, recorded], { depth: 20 }), String(error), ...logged].join("\n");
        assert.ok(!seen.includes(KEY), `the key is shown: ${how}`);
        if (how === "not at all") assert.equal(outcome.result.text, "hi");
        else assert.equal(outcome.result.stopReason, "error", how);
      }
    }
  });

  test(`${wire}: a price makes a cost, exactly`, async () => {
    const costs = async (/** @type {any} */ price) => {
      const agent = new Agent({ model: make("m", { apiKey: KEY, price, fetch: async () => answer(whole) }) });
      const outcome = await readRun(agent.prompt("Hello"));
      const { cost } = outcome.all("message_end")[0].message.usage;
      assert.deepEqual([outcome.end.usage.cost, agent.usage.cost], [cost, cost]);
      const again = await readRun(agent.prompt("Hello"));
      assert.equal(again.result.usage.cost, cost);
      if (cost !== undefined) assert.ok(Math.abs((agent.usage.cost ?? NaN) - 2 * cost) < 1e-12);
      // The cost in a message is read back as it was written.
      const next = new Agent({ model: make("m", { apiKey: KEY, fetch: async () => answer(whole) }), messages: agent.messages.slice(0, 2) });
      assert.deepEqual(next.messages[1], agent.messages[1]);
      return cost;
    };
    assert.equal(await costs({ input: 1.25, output: 10, cacheRead: 0.125 }), 0.0009);
    assert.equal(await costs({ input: 3, output: 15 }), 0.00315);
    assert.equal(await costs({ input: 0, output: 0 }), 0);
    assert.equal(await costs({ input: 1e-6, output: 0, cacheRead: 0 }), 6e-10);
    assert.equal(await costs(undefined), undefined);
  });

  test(`${wire}: a switch that it does not have is refused by name, and so is a wrong value`, async () => {
    misused(() => make("m", { compat: { paralelToolCalls: true } }), /unknown `compat` switch `paralelToolCalls`; did you mean `parallelToolCalls`/);
    const wrong = { chat: "cacheTtl", responses: "toolIds", messages: "store", gemini: "strict" }[wire] ?? "";
    for (const [compat, pattern] of /** @type {[any, RegExp][]} */ ([[{ [wrong]: true }, new RegExp(`\`${wrong}\` of this wire; it has `)], [{ reasoning: "much" }, /`compat.reasoning` must be one of/]])) {
      const { result } = await readRun(new Agent({ model: make("m", { compat }) }).prompt("Hello"));
      assert.equal(result.error.code, "misuse");
      assert.match(result.error.message, pattern);
    }
  });
}

for (const [wire, [make, whole]] of Object.entries(WIRES)) {
  test(`${wire}: a part of a schema that is left out is named once, and the arguments are checked by the whole`, async (t) => {
    /** @type {string[]} */
    const warned = [];
    t.mock.method(console, "warn", (/** @type {string} */ text) => void warned.push(text));
    /** @type {any[]} */
    const sent = [];
    const fetch = async (/** @type {any} */ _, /** @type {any} */ { body }) => (sent.push(new TextDecoder().decode(body)), answer(whole));
    const odd = { type: "object", properties: { word: { type: "string", pattern: "^(?!no).*$" } } };
    const tools = [["fine", { type: "object" }], [`odd_${wire}`, odd]].map(([name, parameters]) => ({ name, description: "", parameters, execute: () => "" }));
    const agent = new Agent({ model: make("m", { apiKey: KEY, fetch }), tools });
    for (const prompt of ["one", "two"]) assert.equal((await agent.prompt(prompt)).stopReason, "completed");
    // The warnings are loaded with the first.
    for (let i = 0; i < 100 && warned.length === 0; i++) await new Promise((done) => setTimeout(done, 5));
    assert.equal(sent.length, 2);
    assert.ok(sent.every((body) => body.includes(`odd_${wire}`) && !body.includes("pattern")));
    assert.equal(warned.length, 1, warned.join("\n"));
    assert.match(warned[0], new RegExp(`\\bodd_${wire}\\b.* without a \`pattern\`.*checked by the whole schema`));
    // Another agent with the same tool says nothing more.
    await new Agent({ model: make("m", { apiKey: KEY, fetch }), tools }).prompt("three");
    assert.equal(warned.length, 1);
  });
}

test("an answer without end is given up at its limits, which are options, and is not asked for again", async () => {
  const call = (/** @type {number} */ index, /** @type {string} */ text) => sse({ choices: [{ index: 0, delta: { tool_calls: [{ index, id: `c${index}`, function: { name: "t", arguments: text } }] } }] });
  /** @type {[any, () => string, RegExp][]} */
  const cases = [
    [{ line: 1000 }, () => "x".repeat(300), /a line of the stream is longer than 1000 bytes/],
    [{ line: 1000 }, () => `:${"x".repeat(300)}`, /a line of the stream is longer than 1000 bytes/],
    [{ calls: 5 }, () => call(n++, "{}"), /more than 5 tool calls/],
    [{ arguments: 2000 }, () => call(0, "x".repeat(300)), /arguments of the tool calls are longer than 2000 bytes/],
  ];
  let n = 0;
  for (const [limits, piece, pattern] of cases) {
    const bytes = new TextEncoder();
    const endless = () => new Response(new ReadableStream({ pull: (controller) => controller.enqueue(bytes.encode(piece())) }));
    const { result, all } = await readRun(new Agent({ model: openai("m", { limits, fetch: async () => endless() }), host: clock().host }).prompt("Hello"));
    assert.match(result.error.message, pattern);
    assert.deepEqual([result.error.info.retryable, all("retry_attempt").length], [false, 0]);
  }
});

test("a price that is none is refused", () => {
  for (const price of [1, {}, { input: 1 }, { input: -1, output: 1 }, { input: "1", output: 2 }, { input: NaN, output: 1 }]) {
    misused(() => openai("m", /** @type {any} */ ({ price })), /`price` must be/);
  }
});

/** The address and the body that a model of a server sends. @param {any} make @param {any} options @param {any} [streamOptions] */
async function sentRequest(make, options, streamOptions = {}) {
  /** @type {any} */
  let sent;
  const model = make("m", { apiKey: KEY, ...options, fetch: async (/** @type {string} */ url, /** @type {any} */ init) => ((sent = { url, headers: init.headers, body: JSON.parse(new TextDecoder().decode(init.body)) }), answer("{}", 400)) });
  const tools = [{ name: "t", description: "", parameters: { type: "object" }, execute: () => "" }];
  const outcome = await readRun(new Agent({ model, tools, retry: ONCE, streamOptions: { maxTokens: 9, ...streamOptions }, sessionId: "s1" }).prompt("Hello"));
  return { ...sent, model, provider: outcome.all("message_end")[0].message.provider };
}

test("servers are known by their name: the address, the switches, the name in messages", async () => {
  const addresses = {
    ollama: "http://localhost:11434/v1", "llama.cpp": "http://localhost:8080/v1", lmstudio: "http://localhost:1234/v1", vllm: "http://localhost:8000/v1",
    openrouter: "https://openrouter.ai/api/v1", groq: "https://api.groq.com/openai/v1", mistral: "https://api.mistral.ai/v1", deepseek: "https://api.deepseek.com",
    xai: "https://api.x.ai/v1", together: "https://api.together.xyz/v1",
  };
  for (const [server, address] of Object.entries(addresses)) {
    const named = await sentRequest(openaiCompatible, { server });
    assert.deepEqual([named.url, named.provider, named.model.provider], [`${address}/chat/completions`, server, server]);
    // Recognised by its address, the server is the same.
    const { body } = await sentRequest(openaiCompatible, { baseUrl: address }, { reasoning: "low", parallelToolCalls: true });
    assert.deepEqual((await sentRequest(openaiCompatible, { server, baseUrl: "https://example.com/v1" }, { reasoning: "low", parallelToolCalls: true })).body, body, server);
    assert.equal((await sentRequest(openaiResponses, { server })).url, `${address}/responses`);
  }
});

test("servers with a part of one's own in their address want it, and say in which form", async () => {
  misused(() => openaiCompatible("m", { server: "azure" }), /server `azure`.*baseUrl: "https:\/\/RESOURCE\.openai\.azure\.com"/);
  misused(() => openaiCompatible("m", { server: "workers-ai" }), /accounts\/ACCOUNT\/ai\/v1/);
  misused(() => openaiCompatible("m", { server: "ai-gateway" }), /gateway\.ai\.cloudflare\.com\/v1\/ACCOUNT\/GATEWAY\/PROVIDER/);
  misused(() => openaiCompatible("m", /** @type {any} */ ({ server: "olama" })), /unknown server "olama".*did you mean `ollama`/);
  misused(() => openaiCompatible("m", /** @type {any} */ ({ server: "toString" })), /unknown server/);
  misused(() => openaiCompatible("m", /** @type {any} */ ({})), /its name/);
  const azure = await sentRequest(openaiCompatible, { server: "azure", baseUrl: "https://r.openai.azure.com" });
  assert.deepEqual([azure.url, azure.headers["api-key"], azure.body.max_completion_tokens], ["https://r.openai.azure.com/openai/v1/chat/completions", KEY, 9]);
  const groq = await sentRequest(openaiCompatible, { server: "ai-gateway", baseUrl: "https://gateway.ai.cloudflare.com/v1/a/g/groq" });
  assert.deepEqual([groq.provider, groq.body.stream_options], ["groq", { include_usage: true }]);
  const workers = await sentRequest(openaiCompatible, { server: "workers-ai", baseUrl: "https://api.cloudflare.com/client/v4/accounts/a/ai/v1" });
  assert.deepEqual([workers.provider, workers.body.max_tokens], ["workers-ai", 9]);
});

test("OpenAI keeps the caches of sessions apart, and nobody else is told of them", async () => {
  assert.equal((await sentRequest(openai, {})).body.prompt_cache_key, "s1");
  assert.equal((await sentRequest(openaiResponses, {})).body.prompt_cache_key, "s1");
  assert.equal((await sentRequest(openai, {}, { cache: "none" })).body.prompt_cache_key, undefined);
  assert.equal((await sentRequest(openaiCompatible, { server: "groq" })).body.prompt_cache_key, undefined);
});

test("Anthropic's header for browsers is sent only to those who asked for it by name", async () => {
  const name = "anthropic-dangerous-direct-browser-access";
  assert.equal((await sentRequest(anthropic, {})).headers[name], undefined);
  assert.equal((await sentRequest(anthropic, { dangerouslyAllowBrowser: false })).headers[name], undefined);
  assert.equal((await sentRequest(anthropic, { dangerouslyAllowBrowser: true })).headers[name], "true");
  misused(() => openai("m", /** @type {any} */ ({ dangerouslyAllowBrowser: true })), /unknown option/);
});

const ORIGIN = "https://app.example";
const ENV = { OPENAI_API_KEY: KEY, ANTHROPIC_API_KEY: KEY, GEMINI_API_KEY: KEY, ALLOWED_ORIGINS: `https://other.example ${ORIGIN}` };

test("behind the proxy of the examples every wire works, and the page has no key", async () => {
  const targets = { chat: "api.openai.com/v1/chat/completions", responses: "api.openai.com/v1/responses", messages: "api.anthropic.com/v1/messages", gemini: "generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent?alt=sse" };
  for (const [wire, [make, whole, header]] of Object.entries(WIRES)) {
    /** @type {any[]} */
    const forwarded = [];
    const forward = async (/** @type {any} */ url, /** @type {any} */ init) => {
      forwarded.push({ url, headers: Object.fromEntries(init.headers) });
      return forwarded.length > 1 ? answer(whole, 200, { "set-cookie": "a=b" }) : answer("{}", 429, { "retry-after": "7" });
    };
    const { host, slept } = clock();
    const folder = { chat: "openai", responses: "openai", messages: "anthropic", gemini: "gemini" }[wire];
    const model = make("m", {
      baseUrl: `https://proxy.example/${folder}`,
      fetch: async (/** @type {any} */ url, /** @type {any} */ init) => {
        const request = new Request(url, init);
        const headers = new Headers(request.headers);
        headers.set("origin", ORIGIN);
        headers.set("cookie", "session=1");
        const given = await proxy(new Request(request, { headers }), ENV, forward);
        assert.deepEqual([given.headers.get("access-control-allow-origin"), given.headers.get("set-cookie")], [ORIGIN, null]);
        return given;
      },
    });
    const outcome = await readRun(new Agent({ model, host }).prompt("Hello"));
    assert.deepEqual([outcome.result.text, slept], ["hi", [7000]], outcome.result.error?.message);
    const last = forwarded.at(-1);
    assert.equal(last.url, `https://${targets[/** @type {keyof typeof targets} */ (wire)]}`);
    assert.ok(last.headers[header].endsWith(KEY));
    assert.deepEqual(Object.keys(last.headers).filter((name) => !["content-type", "anthropic-version", header].includes(name)), []);
  }
});

test("behind the proxy a page hears that the provider cannot be reached", async () => {
  const askProxy = (/** @type {any} */ forward) => proxy(new Request("https://proxy.example/anthropic/v1/messages", { method: "POST", headers: { origin: ORIGIN }, body: "{}" }), ENV, forward);
  const given = await askProxy(async () => { throw new TypeError("fetch failed: key sk-1"); });
  assert.deepEqual([given.status, given.headers.get("access-control-allow-origin"), await given.text()], [502, ORIGIN, "anthropic cannot be reached"]);
});

test("the proxy refuses other pages, other paths and other methods", async () => {
  const ask = (/** @type {string} */ path, /** @type {any} */ init, origin = ORIGIN) => proxy(new Request(`https://proxy.example${path}`, { method: "POST", headers: { origin }, ...init }), ENV, async () => assert.fail("it was forwarded"));
  assert.equal((await ask("/openai/chat/completions", {}, "https://evil.example")).status, 403);
  for (const path of ["/openai/files", "/openai/chat/completions/../../models", "/toString/x", "/gemini/models/m:embedContent", "/"]) assert.equal((await ask(path, {})).status, 404, path);
  assert.equal((await ask("/openai/responses", { method: "GET" })).status, 404);
  const preflight = await ask("/openai/responses", { method: "OPTIONS" });
  assert.deepEqual([preflight.status, preflight.headers.get("access-control-allow-origin")], [204, ORIGIN]);
  assert.equal((await worker.fetch(new Request("https://proxy.example/"), ENV)).status, 403);
});

test("a piece of an answer is heard before the rest of it has come, and an abort lets go of the body", async () => {
  /** @type {ReadableStreamDefaultController<Uint8Array>} */
  let server = /** @type {any} */ (undefined);
  let isLetGo = false;
  const body = new ReadableStream({ start: (controller) => void (server = controller), cancel: () => void (isLetGo = true) });
  const send = (/** @type {string} */ content) => server.enqueue(new TextEncoder().encode(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`));
  const fetch = async () => new Response(body, { headers: { "content-type": "text/event-stream" } });
  const run = new Agent({ model: openaiCompatible("m", { baseUrl: "https://models.example/v1", apiKey: "k", fetch }) }).prompt("Go");
  const pieces = run.textStream[Symbol.asyncIterator]();
  for (const piece of ["one ", "two ", "three"]) {
    send(piece);
    assert.equal((await pieces.next()).value, piece);
  }
  run.abort();
  const { stopReason, messages } = await run;
  assert.deepEqual([stopReason, textOf(messages.at(-1))], ["aborted", "one two three"]);
  await new Promise((resolve) => setTimeout(resolve));
  assert.equal(isLetGo, true);
});
