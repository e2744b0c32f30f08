// @ts-check
// Tools of the AI SDK, made by the real package and used unchanged.

import assert from "node:assert/strict";
import { test } from "node:test";
import { dynamicTool, jsonSchema, tool as aiTool, zodSchema } from "ai";
import { z } from "zod";
import { Agent, call, misused, readRun, scripted, textOf, tool } from "../kit.mjs";

/** One call of a tool in a record. @param {any} given @param {any} [args] @param {any} [options] */
async function once(given, args = {}, options = {}) {
  const outcome = await readRun(new Agent({ model: scripted([call(["look", args]), "done"]), tools: { look: given }, ...options }).prompt("Go"));
  const [result] = outcome.all("turn_end")[0].toolResults;
  return { ...outcome, toolResult: result, text: textOf(result) };
}

test("tool() with zod: its schema is shown and checked, defaults reach it, its options are those it knows", async () => {
  /** @type {any} */
  let seen;
  /** @type {any} */
  let request;
  const weather = aiTool({
    description: "The weather", inputSchema: z.object({ city: z.string(), days: z.number().default(2) }),
    execute: async ({ city, days }, options) => ((seen = options), { city, days }),
  });
  const model = scripted([{ thinking: "hm", text: "I look.", ...call(["look", { city: "Oslo" }]) }, (received) => ((request = received), call(["look", { city: "Bergen" }])), "done"]);
  const agent = new Agent({ model, tools: { look: weather } });
  const { result, all } = await readRun(agent.prompt([{ type: "text", text: "Go" }, { type: "image", mimeType: "image/png", data: "AAAA" }]));
  assert.equal(result.stopReason, "completed");
  assert.equal(textOf(all("turn_end")[0].toolResults[0]), '{"city":"Oslo","days":2}');
  assert.deepEqual([request.tools[0].name, request.tools[0].description, request.tools[0].parameters.required], ["look", "The weather", ["city"]]);
  const { toolCallId, messages, abortSignal } = seen;
  assert.ok(toolCallId && abortSignal instanceof AbortSignal);
  assert.deepEqual(messages, [
    { role: "user", content: [{ type: "text", text: "Go" }, { type: "image", image: "AAAA", mediaType: "image/png" }] },
    { role: "assistant", content: [{ type: "reasoning", text: "hm" }, { type: "text", text: "I look." }, { type: "tool-call", toolCallId: "c1", toolName: "look", input: { city: "Oslo" } }] },
    { role: "tool", content: [{ type: "tool-result", toolCallId: "c1", toolName: "look", output: { type: "text", value: '{"city":"Oslo","days":2}' } }] },
  ]);
  assert.equal((await once(weather, { city: 7 })).toolResult.cause, "invalid_arguments");
});

test("jsonSchema, zodSchema and lazy schemas; a check that comes with them decides", async () => {
  const schema = { type: /** @type {const} */ ("object"), properties: { n: { type: /** @type {const} */ ("number") } }, required: ["n"] };
  const execute = async (/** @type {any} */ { n }) => n + 1;
  for (const inputSchema of [jsonSchema(schema), zodSchema(z.object({ n: z.number() })), () => zodSchema(z.object({ n: z.number() }))]) {
    const add = aiTool({ inputSchema: /** @type {any} */ (inputSchema), execute });
    assert.equal((await once(add, { n: 1 })).text, "2");
    assert.equal((await once(add, { n: "1" })).toolResult.cause, "invalid_arguments");
  }
  const doubled = jsonSchema(schema, { validate: async (/** @type {any} */ value) => (value.n < 5 ? { success: true, value: { n: value.n * 2 } } : { success: false, error: new Error("too many") }) });
  assert.equal((await once(dynamicTool({ inputSchema: doubled, execute: async (/** @type {any} */ { n }) => n }), { n: 3 })).text, "6");
  const { text, toolResult } = await once(dynamicTool({ inputSchema: doubled, execute: async () => 0 }), { n: 9 });
  assert.deepEqual([toolResult.cause, /too many/.test(text)], ["invalid_arguments", true]);
});

test("a generator shows how far it is, and its last value is the result", async () => {
  const slow = aiTool({ inputSchema: z.object({}), async *execute() { yield "a third"; yield "half"; yield "all"; } });
  const { text, all } = await once(slow);
  assert.deepEqual([text, all("tool_execution_update").map(({ update }) => update)], ["all", ["a third", "half", "all"]]);
});

test("toModelOutput: a text, JSON, an error, a picture", async () => {
  const made = (/** @type {any} */ output) => aiTool({ inputSchema: z.object({}), execute: async () => ({ raw: 1 }), toModelOutput: ({ output: { raw } }) => ({ ...output, ...(output.value === undefined && { value: raw }) }) });
  assert.equal((await once(made({ type: "text", value: "in words" }))).text, "in words");
  assert.equal((await once(made({ type: "json" }))).text, "1");
  const refused = await once(made({ type: "error-text", value: "no" }));
  assert.deepEqual([refused.text, refused.toolResult.isError], ["no", true]);
  const { toolResult } = await once(made({ type: "content", value: [{ type: "text", text: "see" }, { type: "file", mediaType: "image/png", data: { type: "data", data: "AAAA" } }] }));
  assert.deepEqual(toolResult.content, [{ type: "text", text: "see" }, { type: "image", mimeType: "image/png", data: "AAAA" }]);
});

test("needsApproval asks, for a call or for all", async () => {
  /** @type {any[]} */
  const sums = [];
  const approveTool = (/** @type {any} */ { arguments: args }) => (sums.push(args.sum), "approve");
  const pay = (/** @type {any} */ needsApproval) => aiTool({ inputSchema: z.object({ sum: z.number() }), needsApproval, execute: async () => "paid" });
  for (const needsApproval of [true, false, (/** @type {any} */ { sum }) => sum > 10]) for (const sum of [5, 50]) await once(pay(needsApproval), { sum }, { approveTool });
  assert.deepEqual(sums, [5, 50, 50]);
  await once(pay(async () => false), { sum: 7 }, { approveTool });
  assert.equal(sums.pop(), 7, "a promise counts as yes");
});

test("one that throws, one that nobody runs here, one with a name of ours", async () => {
  const bad = aiTool({ inputSchema: z.object({}), execute: async () => { throw new Error("broke"); } });
  assert.match((await once(bad)).text, /broke/);
  const elsewhere = new Agent({ model: scripted([call("ask"), "done"]), tools: { ask: aiTool({ inputSchema: z.object({}), outputSchema: z.string() }) } });
  elsewhere.subscribe((event) => event.type === "question_asked" && elsewhere.resolve(event.id, { output: "said" }));
  assert.match(JSON.stringify((await elsewhere.prompt("Go")).messages), /"said"/);
  const named = tool(/** @type {any} */ ({ name: "look", ...aiTool({ inputSchema: z.object({}), description: () => "as it is", execute: async () => "seen" }) }));
  const agent = new Agent({ model: scripted([call("look"), "done"]), tools: [named] });
  assert.equal((await agent.prompt("Go")).text, "done");
  assert.equal(agent.tools[0]?.description, "as it is");
});

test("a record may hold tools of both kinds, and names them", async () => {
  const ours = tool({ name: "other", description: "", parameters: { type: "object" }, execute: () => "ours" });
  const theirs = aiTool({ inputSchema: z.object({}), execute: async () => "theirs" });
  const agent = new Agent({ model: scripted([call("a", "b"), "done"]), tools: { a: ours, b: theirs } });
  const outcome = await readRun(agent.prompt("Go"));
  assert.deepEqual(outcome.all("turn_end")[0].toolResults.map(textOf), ["ours", "theirs"]);
  assert.deepEqual(agent.tools.map(({ name }) => name), ["a", "b"]);
});
