// @ts-check
// What a cassette does not have is asked for real, once, and is on the tape from then on.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, call, custom, openai, scripted, testTool } from "../kit.mjs";
import { cassette, record, replay, Tape } from "../../../pkg/tape.js";

const asks = { toolCalls: [{ callId: "a", toolName: "weather", arguments: { city: "Oslo" } }] };
const weather = (/** @type {string[]} */ ran = []) => testTool("weather", ({ city }) => (ran.push(city), `rain in ${city}`), { parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] } });
const none = () => custom("m", async function* () {
  assert.fail("the real model is not asked");
});

test("without a tape everything is asked for, and the next time nothing is", async () => {
  /** @type {string[]} */
  const ran = [];
  const first = cassette(undefined, { record: "missing", model: scripted([asks, "It rains."]), tools: [weather(ran)] });
  const { text } = await new Agent({ model: first.model, tools: first.tools() }).prompt("Oslo?").orThrow();
  assert.deepEqual([text, ran, first.added], ["It rains.", ["Oslo"], 3]);
  for (const match of /** @type {const} */ (["order", "request"])) {
    const again = cassette(Tape.parse(first.toText()), { match });
    assert.deepEqual(again.tools().map(({ name }) => name), ["weather"]);
    assert.equal((await new Agent({ model: again.model, tools: again.tools() }).prompt("Oslo?").orThrow()).text, "It rains.");
    assert.deepEqual([again.unused, again.added], [[], 0], match);
    assert.equal(again.toText(), first.toText());
  }
});

test("a tape that has a part is added to, and still lives again", async () => {
  const agent = new Agent({ model: scripted(["It rains."]) });
  const recorder = await record(agent);
  await agent.prompt("Oslo?");
  recorder.stop();
  const tape = recorder.toTape();
  const served = cassette(tape, { match: "request", record: "missing", model: scripted(["It snows."]) });
  assert.equal((await new Agent({ model: served.model }).prompt("Oslo?").orThrow()).text, "It rains.");
  assert.equal((await new Agent({ model: served.model }).prompt("Bergen?").orThrow()).text, "It snows.");
  assert.equal(served.added, 1);
  const grown = served.toTape();
  assert.ok(grown.complete);
  assert.equal((await replay(grown).result).text, "It rains.");
  const again = cassette(grown, { match: "request", record: "missing", model: { ...none(), id: "scripted", provider: "scripted" } });
  assert.equal((await new Agent({ model: again.model }).prompt("Bergen?").orThrow()).text, "It snows.");
  assert.equal(again.added, 0);
});

test("a model of a wire is asked too, without its key on the tape, and without its tools being run", async () => {
  const KEY = "sk-live-0123456789abcdef";
  /** @type {any[]} */
  const asked = [];
  const sse = (/** @type {any[]} */ ...deltas) => new Response(`${deltas.map((delta) => `data: ${JSON.stringify({ choices: [{ index: 0, delta }] })}\n\n`).join("")}data: ${JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: deltas[0].tool_calls ? "tool_calls" : "stop" }], usage: { prompt_tokens: 3, completion_tokens: 4 } })}\n\ndata: [DONE]\n\n`, { headers: { "content-type": "text/event-stream" } });
  const fetch = async (/** @type {any} */ _url, /** @type {any} */ init) => {
    asked.push(JSON.parse(new TextDecoder().decode(init.body)));
    return asked.length === 1 ? sse({ tool_calls: [{ index: 0, id: "c1", function: { name: "weather", arguments: '{"city":"Oslo"}' } }] }) : sse({ content: "It " }, { content: "rains." });
  };
  /** @type {string[]} */
  const ran = [];
  const served = cassette(undefined, { record: "missing", model: openai("gpt-5-mini", { apiKey: KEY, fetch }), tools: [weather(ran)], redact: (_where, text) => text.replaceAll("Anna", "A.") });
  const { text, usage } = await new Agent({ model: served.model, tools: served.tools(), systemPrompt: "You are Anna's." }).prompt("Oslo?").orThrow();
  assert.deepEqual([text, ran, asked.length, usage.output], ["It rains.", ["Oslo"], 2, 8]);
  assert.equal(asked[0].messages[0].content, "You are Anna's.");
  assert.equal(asked[0].tools[0].function.name, "weather");
  assert.ok(!served.toText().includes(KEY) && !served.toText().includes("Anna"));
  const again = cassette(served.toTape());
  assert.equal((await new Agent({ model: again.model, tools: again.tools() }).prompt("Oslo?").orThrow()).text, "It rains.");
});

test("a failed answer of the real model is not kept, a failure of a tool is", async () => {
  const failing = testTool("look", () => { throw new Error("no light"); });
  const served = cassette(undefined, { record: "missing", model: scripted([{ error: { code: "auth", message: "no" } }, call("look"), "Dark."]), tools: [failing] });
  const agent = () => new Agent({ model: served.model, tools: served.tools(), retry: { maxAttempts: 1 } });
  assert.equal((await agent().prompt("Look")).error?.code, "auth");
  assert.equal(served.added, 0);
  assert.equal((await agent().prompt("Look").orThrow()).text, "Dark.");
  assert.equal(served.added, 3);
  const again = cassette(served.toTape());
  const { messages } = await new Agent({ model: again.model, tools: again.tools() }).prompt("Look").orThrow();
  assert.match(JSON.stringify(messages), /no light/);
});

test("a live model of a wire is compared with the tape", async () => {
  const body = (/** @type {string} */ content) => new Response(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason: "stop" }] })}\n\ndata: [DONE]\n\n`, { headers: { "content-type": "text/event-stream" } });
  const agent = new Agent({ model: scripted(["It rains."]) });
  const recorder = await record(agent);
  await agent.prompt("Oslo?");
  recorder.stop();
  const live = (/** @type {string} */ text) => openai("m", { apiKey: "sk-0123456789", fetch: async () => body(text) });
  assert.equal((await replay(recorder.toTape(), { model: live("It rains.") }).result).text, "It rains.");
  await assert.rejects(replay(recorder.toTape(), { model: live("It snows.") }).result, { code: "tape_divergence", expected: "It rains.", got: "It snows." });
});

test("what differs is told of the request that is most alike, where it begins to differ", async () => {
  const described = (/** @type {string} */ description) => ({ name: "look", description, parameters: { type: "object" }, execute: () => "x" });
  const agent = new Agent({ model: scripted(["It rains.", "It snows."]), tools: [described(`${"a ".repeat(300)}long story`)] });
  const recorder = await record(agent);
  await agent.prompt("Oslo?");
  agent.reset();
  await agent.prompt("Bergen?");
  recorder.stop();
  const { model } = cassette(recorder.toTape(), { match: "request" });
  const { error } = await new Agent({ model, tools: [described(`${"a ".repeat(300)}short story`)] }).prompt("Bergen?");
  assert.match(error?.message ?? "", /no answer to this request: `tools` is ….* a short story".*, on the tape it is ….* a long story"/);
});
