// @ts-check
// What a tool throws or gives, in the words that the model reads: the reasons, and the way out.

import assert from "node:assert/strict";
import { test } from "node:test";
import * as mini from "zod/mini";
import { z } from "zod";
import { Agent, custom, misused, scripted, settle, testTool } from "../kit.mjs";

/** What the model reads of a tool. @param {() => unknown} execute */
async function read(execute) {
  const agent = new Agent({ model: scripted([{ toolCalls: [{ toolName: "t" }] }, "done"]), tools: [testTool("t", execute)] });
  const { messages } = await agent.prompt("Go");
  const result = /** @type {any} */ (messages.find(({ role }) => role === "tool_result"));
  return `${result.isError ? "error: " : ""}${result.content[0].text}`;
}

/** @type {[string, () => unknown, string][]} */
const THROWN = [
  ["an AggregateError of Node, which has no message", () => { throw Object.assign(new AggregateError([new Error("connect ECONNREFUSED ::1:9"), new Error("connect ECONNREFUSED 127.0.0.1:9")], ""), { code: "ECONNREFUSED" }); }, "AggregateError ECONNREFUSED (connect ECONNREFUSED ::1:9; connect ECONNREFUSED 127.0.0.1:9)"],
  ["Promise.any", () => Promise.any([Promise.reject(new Error("a: expired")), Promise.reject(new Error("b: 403"))]), "All promises were rejected (a: expired; b: 403)"],
  ["a cause", () => { throw new Error("cannot save", { cause: new Error("disk full") }); }, "cannot save (disk full)"],
  ["a cause whose words stand there already", () => { throw new Error("cannot save: disk full", { cause: new Error("disk full") }); }, "cannot save: disk full"],
  ["a cause without end", () => { const error = new Error("round"); error.cause = error; throw error; }, "round"],
  ["a Response", () => { throw new Response("no such order", { status: 404, statusText: "Not Found" }); }, "the response is 404 Not Found"],
  ["a code alone", () => { throw Object.assign(new Error(""), { code: "EPIPE" }); }, "Error EPIPE"],
  ["a promise", () => { throw Promise.reject(new Error("lost")); }, "a promise was thrown; await it first"],
];

for (const [name, execute, text] of THROWN) {
  test(`thrown: ${name}`, async () => {
    assert.equal(await read(execute), `error: tool \`t\` failed: ${text}`);
  });
}

test("a model's error has its reasons too", async () => {
  const { error } = await new Agent({ model: custom("m", async function* () { throw new AggregateError([new Error("connect ECONNREFUSED 127.0.0.1:9")], ""); }), retry: { maxAttempts: 1 } }).prompt("Go");
  assert.match(String(error?.message), /AggregateError \(connect ECONNREFUSED 127\.0\.0\.1:9\)/);
});

test("bytes are no JSON, whatever they are called, and the text names the way out", async () => {
  const bytes = Buffer.from("0123456789".repeat(1_000));
  const way = `bytes are base64 in { content: [{ type: "file", mimeType, data }] }, or of type "image"`;
  assert.equal(await read(() => bytes), `error: the tool's result is no JSON: the result is an object (Buffer); ${way}`);
  assert.equal(await read(() => ({ name: "logo.png", data: bytes })), `error: the tool's result is no JSON: the result.data is an object (Buffer); ${way}`);
  assert.equal(await read(() => new Uint8Array(3)), `error: the tool's result is no JSON: the result is an object (Uint8Array); ${way}`);
});

test("a promise that was not awaited is named, and ends nothing but its call", async () => {
  const lost = () => Promise.reject(new Error("no database"));
  assert.equal(await read(() => ({ rows: lost() })), "error: the tool's result is no JSON: the result.rows is a promise; await it first");
  const agent = new Agent({ model: scripted([{ toolCalls: [{ toolName: "t" }] }, "done"]), tools: [testTool("t", (/** @type {any} */ _, /** @type {any} */ { update }) => (update({ rows: lost() }), "ok"))] });
  assert.equal((await agent.prompt("Go")).text, "done");
  await settle();
});

test("zod/mini, and what JSON Schema has no form for, are refused with the way out", () => {
  const make = (/** @type {any} */ parameters) => () => new Agent({ model: scripted([]), tools: [testTool("t", () => "", { parameters })] });
  misused(make(mini.object({ city: mini.string() })), /one of zod\/mini gives it by `z\.toJSONSchema\(schema\)`: pass that/);
  make(mini.toJSONSchema(mini.object({ city: mini.string() })))();
  misused(make(z.object({ day: z.date() })), /`z\.iso\.datetime\(\)` for `z\.date\(\)`, or pass `z\.toJSONSchema\(schema, \{ unrepresentable: "any" \}\)`/);
});

test("only errors are reasons: what else hangs on an error is not shown, a long reason is cut, and a getter that throws hides no words", async () => {
  assert.equal(await read(() => { throw new Error("no", { cause: { headers: { authorization: "Bearer no-real-key" } } }); }), "error: tool `t` failed: no");
  assert.equal((await read(() => { throw new Error("no", { cause: new Error("x".repeat(100_000)) }); })).length, "error: tool `t` failed: no ()".length + 500);
  assert.equal(await read(() => { throw Object.defineProperty(new Error("real words"), "cause", { get() { throw 1; } }); }), "error: tool `t` failed: real words");
});
