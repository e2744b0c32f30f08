// What was used is known even where nobody tells it: answers that are cut, aborted or lost, servers that never tell.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, anthropic, openai, readRun, scripted, settle } from "../kit.mjs";

const encoder = new TextEncoder();
const price = { input: 1, output: 10 };
const LONG = "The quick brown fox jumps over the lazy dog. ".repeat(20);

/** A `fetch` that sends these pieces; then it ends, breaks, or stays silent. @param {(string | Error)[]} pieces @param {"ends" | "stays"} [then] */
const server = (pieces, then = "ends") => async () => new Response(new ReadableStream({
  async start(controller) {
    for (const piece of pieces) {
      if (piece instanceof Error) return controller.error(piece);
      controller.enqueue(encoder.encode(piece));
      await settle();
    }
    if (then === "ends") controller.close();
  },
}), { headers: { "content-type": "text/event-stream" } });

const chat = (delta, more = {}) => `data: ${JSON.stringify({ choices: [{ index: 0, delta, ...more }] })}\n\n`;
const openaiCompatible = (fetch, options = {}) => openai("m", { apiKey: "k", fetch, price, ...options });
const once = { retry: { maxAttempts: 1 } };

/** @param {string[]} events */
const claude = (...events) => events.map((event) => `event: ${JSON.parse(event).type}\ndata: ${event}\n\n`);
const CLAUDE_START = JSON.stringify({ type: "message_start", message: { id: "msg_1", type: "message", role: "assistant", model: "c", content: [], usage: { input_tokens: 321, output_tokens: 1 } } });
const CLAUDE_TEXT = [
  JSON.stringify({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }),
  JSON.stringify({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: LONG } }),
];

test("an answer that was cut has what the wire told, and the rest estimated", async () => {
  const model = anthropic("c", { apiKey: "k", price, fetch: server([...claude(CLAUDE_START, ...CLAUDE_TEXT), new Error("cut")]) });
  const { result, all } = await readRun(new Agent({ model, ...once }).prompt("Say it."));
  const { usage } = all("message_end")[0].message;
  assert.equal(result.stopReason, "error");
  assert.equal(usage.estimated, true);
  assert.equal(usage.input, 321);
  assert.ok(Math.abs(usage.output - 200) < 5, String(usage.output));
  assert.equal(usage.total, usage.input + usage.output);
  assert.ok(Math.abs(usage.cost - (usage.input + 10 * usage.output) / 1e6) < 1e-12, String(usage.cost));
  assert.deepEqual(result.usage, usage);
});

test("an aborted answer is never free", async () => {
  const model = openaiCompatible(server([chat({ content: LONG })], "stays"));
  const agent = new Agent({ model, ...once });
  const run = agent.prompt("Say it. " + LONG);
  agent.subscribe((event) => event.type === "message_update" && agent.abort());
  const { result } = await readRun(run);
  assert.equal(result.stopReason, "aborted");
  assert.equal(result.usage.estimated, true);
  assert.ok(result.usage.input > 200 && result.usage.output >= 200, JSON.stringify(result.usage));
  assert.equal(agent.usage.estimated, true);
});

test("attempts that failed count, and those that were refused do not", async () => {
  let calls = 0;
  const good = [chat({ content: "Yes." }), chat({}, { finish_reason: "stop" }), `data: ${JSON.stringify({ choices: [], usage: { prompt_tokens: 50, completion_tokens: 3, total_tokens: 53 } })}\n\n`, "data: [DONE]\n\n"];
  const fetch = (first) => async () => (calls++ === 0 ? first() : server(good)());
  const run = async (first) => {
    calls = 0;
    const model = openaiCompatible(fetch(first));
    const { result } = await readRun(new Agent({ model, retry: { initialBackoffMs: 1 } }).prompt("Say it. " + LONG));
    assert.equal(result.text, "Yes.");
    return result.usage;
  };
  const cut = await run(server([chat({ content: LONG }), new Error("cut")]));
  assert.equal(cut.estimated, true);
  assert.ok(cut.input > 250 && cut.output >= 200, JSON.stringify(cut));
  const failed = await run(async () => new Response("{}", { status: 503 }));
  assert.equal(failed.estimated, true);
  assert.ok(failed.input > 250 && failed.output === 3, JSON.stringify(failed));
  const refused = await run(async () => new Response("{}", { status: 429 }));
  assert.deepEqual([refused.estimated, refused.input, refused.output], [undefined, 50, 3]);
});

test("a server that never tells is estimated, and what it measured once is believed", async () => {
  const silent = server([chat({ content: LONG }), chat({}, { finish_reason: "stop" }), "data: [DONE]\n\n"]);
  const agent = new Agent({ model: openaiCompatible(silent), ...once });
  const { usage } = await agent.prompt("Say it.");
  assert.equal(usage.estimated, true);
  assert.ok(usage.input > 0 && Math.abs(usage.output - 200) < 5, JSON.stringify(usage));
  const told = { role: "assistant", content: [{ type: "text", text: LONG }], provider: "openai", model: "m", stopReason: "stop", timestamp: 0, usage: { input: 1_000, output: 300, cacheRead: 0, cacheWrite: 0, total: 1_300 } };
  const measured = new Agent({ model: openaiCompatible(silent), ...once, messages: [{ role: "user", content: [{ type: "text", text: "Say it." }], timestamp: 0 }, told] });
  const next = await measured.prompt("And again.");
  assert.ok(next.usage.input > 1_300 && next.usage.input < 1_320, JSON.stringify(next.usage));
  assert.ok(Math.abs(next.usage.output - 300) < 5, JSON.stringify(next.usage));
});

test("a model that is no server tells itself what it used", async () => {
  const { usage } = await new Agent({ model: scripted([LONG]) }).prompt("Say it.");
  assert.deepEqual(usage, { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 });
});

test("what a summary used that is given up counts", async () => {
  const refusal = { error: { code: "context_length_exceeded", message: "This model's maximum context length is 10 tokens." } };
  const answers = [async () => new Response(JSON.stringify(refusal), { status: 400, headers: { "content-type": "application/json" } }), server([chat({ role: "assistant", content: LONG }), new Error("cut")])];
  const model = openaiCompatible(() => answers.shift()?.());
  const long = (role) => ({ role, content: [{ type: "text", text: LONG.repeat(9) }] });
  const { result } = await readRun(new Agent({ model, ...once, messages: ["user", "assistant", "user", "assistant"].map(long), compaction: "summarize" }).prompt("go"));
  assert.match(result.error?.message ?? "", /the compaction engine failed/);
  assert.equal(answers.length, 0);
  const { input, output, estimated, cost } = result.usage;
  assert.ok(input > 500 && output > 100 && estimated === true && Number(cost) > 0, JSON.stringify(result.usage));
});
