// @ts-check
// Tools that return, report or throw too much: it is cut, or an error of that call, before it is copied into the engine.

import assert from "node:assert/strict";
import { test } from "node:test";
import { getEngine } from "../../../pkg/core.js";
import { Agent, call, scripted, testTool, textOf } from "../kit.mjs";

const size = () => /** @type {any} */ (getEngine())?.memory.buffer.byteLength ?? 0;
const MB = 1 << 20;

/** What becomes of what a tool does. @param {any} execute @param {any} [more] @param {any} [answer] */
async function resultOf(execute, more, answer = call("go")) {
  const agent = new Agent({ model: scripted([answer, "done"]), tools: [testTool("go", execute, more)] });
  /** @type {any[]} */
  const updates = [];
  agent.subscribe((event) => { if (event.type === "tool_execution_update") updates.push(event); });
  const run = await agent.prompt("Go");
  assert.equal(run.stopReason, "completed", run.error?.message);
  const result = /** @type {any} */ (run.messages.find((message) => message.role === "tool_result"));
  agent[Symbol.dispose]();
  return { result, text: textOf(result), updates };
}

test("a text of 400 MB is cut before it reaches the engine, and the note has its length", async () => {
  await resultOf(() => "warm");
  const before = size();
  const { text, result } = await resultOf(() => "a".repeat(400_000_000), { maxResultBytes: 1_000 });
  assert.equal(text, `${"a".repeat(1_000)}\n[truncated: 1000 of 400000000 bytes shown]`);
  assert.equal(result.isError, false);
  assert.ok(size() - before < 8 * MB, `${size() - before} bytes`);
});

test("without a limit of its own, a tool has the default one", async () => {
  const before = size();
  const { text } = await resultOf(() => "a".repeat(100_000_000));
  assert.ok(text.length < 9 * MB && text.endsWith(" of 100000000 bytes shown]"));
  assert.ok(size() - before < 100 * MB, `${size() - before} bytes`);
});

test("a character is never cut in two, whichever form the text has", async () => {
  for (const [one, bytes] of /** @type {const} */ ([["é", 2], ["語", 3], ["😀", 4]])) {
    const long = one.repeat(300_000);
    for (const output of [long, { content: [{ type: "text", text: long }] }, { content: [{ type: "text", text: "b" }, { type: "text", text: long }, { type: "text", text: "c" }] }]) {
      const { text } = await resultOf(() => output, { maxResultBytes: 1_001 });
      assert.ok(!text.includes("\ufffd") && text.includes(` of ${300_000 * bytes} bytes shown]`), text.slice(-120));
      assert.ok(new TextEncoder().encode(text).length < 1_200);
    }
  }
});

test("Infinity takes the limit away", async () => {
  const { text } = await resultOf(() => "a".repeat(20_000_000), { maxResultBytes: Infinity });
  assert.equal(text.length, 20_000_000);
});

test("JSON that is long is cut like a text, and JSON that cannot be written is an error of the call", async () => {
  const { text } = await resultOf(() => ({ list: new Array(100_000).fill("a") }), { maxResultBytes: 100 });
  assert.match(text, /^\{"list":\[.*\n\[truncated: 100 of 400010 bytes shown\]$/s);
  const huge = "a".repeat(300_000_000);
  const { result } = await resultOf(() => ({ a: huge, b: huge }));
  assert.equal(result.isError, true);
  /** @type {any} */
  const deep = {};
  let inner = deep;
  for (let i = 0; i < 100_000; i++) inner = inner.a = {};
  assert.equal((await resultOf(() => deep)).result.isError, true);
});

test("details and images that are too long are an error of the call that says so", async () => {
  const before = size();
  const details = await resultOf(() => ({ content: [{ type: "text", text: "ok" }], details: { list: "a".repeat(50 * MB) } }));
  assert.match(details.text, /`details` of the result are longer than/);
  const image = await resultOf(() => ({ content: [{ type: "image", mimeType: "image/png", data: "a".repeat(50 * MB) }] }));
  assert.match(image.text, /image of the result is longer than/);
  assert.ok(details.result.isError && image.result.isError);
  assert.ok(size() - before < 8 * MB, `${size() - before} bytes`);
});

test("reports of progress are bounded, one by one and together", async () => {
  const before = size();
  const { updates } = await resultOf((/** @type {any} */ _args, /** @type {any} */ context) => {
    for (let i = 0; i < 50; i++) context.update("a".repeat(10 * MB));
    for (let i = 0; i < 2_000; i++) context.update("b".repeat(100_000));
    return "ok";
  });
  assert.ok(updates.every((event) => JSON.stringify(event).length < 2 * MB));
  assert.ok(size() - before < 60 * MB, `${size() - before} bytes`);
});

test("a value of the session state is bounded", async () => {
  const { text, result } = await resultOf((/** @type {any} */ _args, /** @type {any} */ { state }) => state.set("a", "b".repeat(50 * MB)));
  assert.ok(result.isError);
  assert.match(text, /a value of the session state may have/);
});

test("whatever an error says is bounded: thrown, rejected, of a schema, of a check", async () => {
  const long = "x".repeat(30 * MB);
  const standard = { "~standard": { version: 1, vendor: "mine", validate: () => ({ issues: [{ message: long }] }), jsonSchema: { input: () => ({ type: "object" }) } } };
  const late = { "~standard": { ...standard["~standard"], validate: async () => ({ issues: [{ message: long, path: [long] }] }) } };
  /** @type {[any, any][]} */
  const cases = [
    [() => { throw new Error(long); }, {}],
    [() => { throw long; }, {}],
    [() => Promise.reject({ message: long }), {}],
    [() => "", { parameters: standard }],
    [() => "", { parameters: late }],
    [() => "", { parameters: { "~standard": { ...standard["~standard"], validate: () => { throw new Error(long); } } } }],
  ];
  const before = size();
  for (const [execute, more] of cases) {
    for (const limit of [undefined, 200]) {
      const { result, text } = await resultOf(execute, { ...more, ...(limit && { maxResultBytes: limit }) });
      assert.ok(result.isError);
      assert.ok(text.length <= (limit ?? 65_536) + 100, `${text.length} characters`);
    }
  }
  assert.ok(size() - before < 16 * MB, `${size() - before} bytes`);
});

test("what a model sends is not echoed at length: arguments, names, ids", async () => {
  const long = "x".repeat(MB);
  const strict = { parameters: { type: "object", properties: { a: { type: "number" } }, additionalProperties: false } };
  /** @type {[any, any][]} */
  const cases = [
    [call(["go", { [long]: 1 }]), strict],
    [call(["go", { a: long }]), strict],
    [call(long), {}],
    [{ toolCalls: [{ callId: "c1", toolName: "go", chunks: [`{"a": ${long}`] }] }, {}],
    [{ toolCalls: [{ callId: "c1", toolName: "go", chunks: [`["${long}"]`] }] }, {}],
    [{ toolCalls: [{ callId: long, toolName: "nobody", arguments: {} }] }, {}],
  ];
  for (const [answer, more] of cases) {
    const { result, text } = await resultOf(() => "ran", more, answer);
    assert.ok(result.isError);
    assert.ok(text.length <= 65_700, `${text.length} characters`);
  }
});

test("images and files have a limit together, with their names and types, and so has the number of blocks", async () => {
  const image = (/** @type {number} */ length) => ({ type: "image", mimeType: "image/png", data: "A".repeat(length) });
  /** @type {[any[], RegExp][]} */
  const cases = [
    [Array.from({ length: 12 }, () => image(2_000_000)), /the images and files of the result have 2400\d+ characters together; at most 8388608 are taken: raise `maxResultBytes`/],
    [[{ type: "image", mimeType: `image/png${"a".repeat(12_000_000)}`, data: "AAAA" }], /characters together/],
    [[{ type: "file", mimeType: "application/pdf", name: "n".repeat(12_000_000), data: "AAAA" }], /characters together/],
    [Array.from({ length: 400_000 }, () => ({ type: "text", text: "" })), /the result has 400000 blocks; at most 10000 are taken/],
  ];
  for (const [content, why] of cases) {
    const { result, text } = await resultOf(() => ({ content }), { maxResultBytes: 1_000 });
    assert.equal(result.isError, true);
    assert.match(text, why);
  }
  // Whoever raises the limit of the texts raises that of the images.
  const { result } = await resultOf(() => ({ content: Array.from({ length: 6 }, () => image(2_000_000)) }), { maxResultBytes: 50_000_000 });
  assert.deepEqual([result.isError, result.content.length], [false, 6]);
});
