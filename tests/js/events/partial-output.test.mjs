// @ts-check
// A structured answer while it streams in.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, custom, misused, openai, scripted } from "../kit.mjs";

const LIST = { type: "object", properties: { title: { type: "string" }, items: { type: "array", items: { type: "string" } } }, required: ["title"] };

/** @param {any} model @param {any} output */
async function partials(model, output) {
  const run = new Agent({ model, output, host: { sleep: async () => {} } }).prompt("Go");
  const seen = [];
  for await (const value of run.partialOutput) seen.push(value);
  return { seen, result: await run };
}

const byTool = (/** @type {string[]} */ ...chunks) => ({ toolCalls: [{ toolName: "__structured_output", arguments: {}, chunks }] });

test("it grows with each piece of the call, and each value stays as it was", async () => {
  const { seen, result } = await partials(scripted([byTool('{"title":"a', 'b","items":["x"', ',"y"]}')]), LIST);
  assert.deepEqual(seen, [{ title: "a" }, { title: "ab", items: ["x"] }, { title: "ab", items: ["x", "y"] }]);
  assert.deepEqual(result.output, seen.at(-1));
});

test("a model that answers with text is read alike, also between a fence and sentences", async () => {
  const text = (/** @type {string[]} */ ...pieces) => custom("t", async function* () {
    yield { type: "text_start", contentIndex: 0 };
    for (const delta of pieces) yield { type: "text_delta", contentIndex: 0, delta };
    yield { type: "done", stopReason: "stop" };
  }, { supportsTools: false });
  const { seen, result } = await partials(text("Here:\n```json\n", '{"title":', '"a"}', "\n```\nDone {or not}."), LIST);
  assert.deepEqual(seen, [{}, { title: "a" }]);
  assert.deepEqual(result.output, { title: "a" });
  const list = await partials(text("[1,", "2]"), { type: "array", items: { type: "number" } });
  assert.deepEqual([list.seen.at(-1), list.result.output], [[1, 2], [1, 2]]);
});

test("what is no object comes out of the member it is in", async () => {
  const { seen, result } = await partials(scripted([byTool('{"value":["a', '","b"]}')]), { type: "array", items: { type: "string" } });
  assert.deepEqual([seen, result.output], [[["a"], ["a", "b"]], ["a", "b"]]);
});

test("calls of other tools and failed attempts are not part of it", async () => {
  const cut = [{ type: "start" }, { type: "tool_call_start", contentIndex: 0, callId: "x", toolName: "__structured_output" }, { type: "tool_call_delta", contentIndex: 0, delta: '{"title":"wro' }, { type: "error", error: { code: "network", message: "cut", retryable: true } }];
  const { seen } = await partials(scripted([/** @type {any} */ (cut), { toolCalls: [{ toolName: "nope", arguments: { title: "no" } }] }, byTool('{"title":"right"}')]), LIST);
  assert.deepEqual(seen, [{ title: "wro" }, { title: "right" }]);
});

test("without a schema it says what is missing", async () => {
  const run = new Agent({ model: scripted(["a"]) }).prompt("Go");
  await assert.rejects(async () => { for await (const _ of run.partialOutput); }, /`partialOutput` needs a schema: new Agent\(\{ output \}\)/);
  misused(() => run.partialOutput[Symbol.asyncIterator](), /./);
});

test("what a model of OpenAI is asked for is its schema, closed and strict", async () => {
  /** @type {any} */
  let sent;
  const fetch = async (/** @type {any} */ _, /** @type {any} */ init) => ((sent = JSON.parse(new TextDecoder().decode(init.body))), new Response(`data: ${JSON.stringify({ choices: [{ delta: { content: '{"a":1}' }, finish_reason: "stop" }] })}\n\ndata: [DONE]\n\n`));
  const output = { type: "object", properties: { a: { type: "number", minimum: 0 } }, required: ["a"] };
  const { seen, result } = await partials(openai("gpt-5-mini", { apiKey: "k", fetch: /** @type {any} */ (fetch) }), output);
  assert.deepEqual([seen.at(-1), result.output], [{ a: 1 }, { a: 1 }]);
  assert.deepEqual(sent.response_format.json_schema, { name: "output", schema: { ...output, additionalProperties: false }, strict: true });
  assert.equal(sent.tools, undefined);
});
