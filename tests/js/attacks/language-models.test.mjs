// @ts-check
// Language models of the AI SDK that keep to no rule: parts that are none, in any order, without an end, errors that cannot be read.
// The run ends, with an error that says what was wrong, and the agent goes on.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fromLanguageModel } from "../../../pkg/ai-sdk.js";
import { Agent, misused } from "../kit.mjs";

/** @typedef {import("../../../pkg/ai-sdk.js").LanguageModelLike} LanguageModelLike */

/** @param {readonly unknown[]} parts @param {string} [version] @param {object} [more] @param {object} [options] */
const modelOf = (parts, version = "v4", more = {}, options = {}) => fromLanguageModel(/** @type {any} */ ({
  specificationVersion: version, provider: "x.chat", modelId: "m", supportedUrls: {}, doGenerate() {},
  doStream: async () => ({ stream: new ReadableStream({ start: (controller) => (parts.forEach((part) => controller.enqueue(part)), controller.close()) }) }),
  ...more,
}), { onWarning() {}, ...options });

const END = { type: "finish", finishReason: { unified: "stop", raw: "stop" }, usage: { inputTokens: { total: 3, noCache: 3 }, outputTokens: { total: 2 } } };
const TEXT = { type: "text-delta", id: "1", delta: "a" };
const call = (/** @type {unknown} */ toolCallId, toolName = "look", /** @type {unknown} */ input = "{}") => ({ type: "tool-call", toolCallId, toolName, input });
const traps = new Proxy({}, { get: () => assert.fail("trap"), has: () => assert.fail("trap"), ownKeys: () => assert.fail("trap"), getPrototypeOf: () => assert.fail("trap") });
const cycle = { type: "error" };
Object.assign(cycle, { cycle });
const unreadable = Object.defineProperty(new Error("x"), "message", { get: () => assert.fail("getter") });
const BIG = "x".repeat(10_000_000);

/** @param {any} model @param {object} [more] */
async function play(model, more = {}) {
  /** @type {unknown[]} */
  const ran = [];
  const tools = ["look", "pay"].map((name) => ({ name, description: "", parameters: { type: "object" }, execute: (/** @type {any} */ args) => (ran.push([name, args]), "ok") }));
  const agent = new Agent({ model, tools, maxTurns: 1, retry: { maxAttempts: 1 }, ...more });
  const { stopReason, error, text, usage } = await agent.prompt("Go");
  assert.ok(Number.isSafeInteger(usage.total) && usage.total >= 0, JSON.stringify(usage));
  assert.equal(agent.isRunning, false);
  return { stopReason, code: error?.code, message: error?.message ?? "", text, ran };
}

/** Whatever is a fault, with the error's words. @type {Record<string, [parts: unknown[], message: RegExp]>} */
const FAULTS = {
  "nothing": [[null, END], /a part that is none: (null|nothing)/], "a number": [[5, END], /a part that is none: a number/], "no type": [[{}, END], /a part that is none: it has no type/],
  "a symbol for a type": [[{ type: Symbol("x") }, END], /a part that is none/], "a part of traps": [[traps, END], /trap/],
  "a delta that is no text": [[{ ...TEXT, delta: { a: 1 } }, END], /needs a text `delta`/], "a tool without a name": [[{ ...call("a"), toolName: undefined }, END], /needs a text `toolName`/],
  "an input that is no JSON": [[call("a", "look", cycle), END], /circular/], "metadata that is no JSON": [[{ ...TEXT, providerMetadata: cycle }, { type: "text-end", id: "1" }, END], /circular/],
  "an error that cannot be read": [[{ type: "error", error: unreadable }, END], /an object was thrown/], "an error of traps": [[{ type: "error", error: traps }], /trap/], "an error that is nothing": [[{ type: "error" }], /undefined/],
  "a long error": [[{ type: "error", error: { message: BIG } }], /^.{1,5000}$/s], "a text of 10 MB": [[{ ...TEXT, delta: BIG }, END], /longer than 8388608 bytes/],
  "an input of 10 MB": [[call("a", "look", JSON.stringify({ BIG })), END], /longer than 8388608 bytes/], "a file of 10 MB": [[{ type: "file", mediaType: "a/b", data: new Uint8Array(10_000_000) }, END], /longer than 8388608 bytes/],
  "a part of the provider of 10 MB": [[{ type: "source", url: BIG }, END], /longer than 8388608 bytes/],
};

test("what cannot be read is an error that says so", async () => {
  for (const [name, [parts, message]] of Object.entries(FAULTS)) {
    for (const version of ["v3", "v4"]) {
      const outcome = await play(modelOf(parts, version));
      assert.equal(outcome.stopReason, "error", name);
      assert.match(outcome.message, message, `${name}: ${outcome.message.slice(0, 200)}`);
      assert.deepEqual(outcome.ran, [], name);
    }
  }
});

test("a large file fits where it is let", async () => {
  const file = [{ type: "file", mediaType: "a/b", data: new Uint8Array(8_000_000) }, END];
  assert.equal((await play(modelOf(file))).stopReason, "error");
  assert.equal((await play(modelOf(file, "v4", {}, { limits: { answer: 20_000_000 } }))).stopReason, "completed");
  for (const limits of [{ answers: 1 }, { answer: -1 }, { answer: "1" }]) misused(() => modelOf([], "v4", {}, { limits }), /limits\.answer/);
});

/** Whatever can be understood, with the text and the calls. @type {Record<string, [parts: unknown[], text: string, ran?: unknown[]]>} */
const ORDERS = {
  "an end without a start": [[{ type: "text-end", id: "1" }, TEXT, { type: "text-end", id: "1" }, END], "a"],
  "two starts": [[{ type: "text-start", id: "1" }, { type: "text-start", id: "1" }, TEXT, END], "a"],
  "a text that goes on after its end": [[{ type: "text-start", id: "1" }, TEXT, { type: "text-end", id: "1" }, TEXT, END], "aa"],
  "a text after the end of all": [[TEXT, END, TEXT, call("late")], "a"],
  "a call twice": [[call("a"), call("a"), END], "", [["look", {}], ["look", {}]]],
  "a call that is another than was announced": [[{ type: "tool-input-start", id: "a", toolName: "look" }, { type: "tool-input-delta", id: "a", delta: '{"x":1}' }, call("a", "pay", '{"x":2}'), END], "", [["look", { x: 1 }]]],
  "a call that never becomes one": [[{ type: "tool-input-start", id: "a", toolName: "pay" }, { type: "tool-input-delta", id: "a", delta: '{"x' }, END], ""],
  "pieces of an unknown call": [[{ type: "tool-input-delta", id: "z", delta: "{" }, TEXT, END], "a"],
  "arguments that are no object": [[call("a", "pay", [1]), call("b", "pay", "5"), END], ""],
  "words of JavaScript for the reason": [[TEXT, { ...END, finishReason: { unified: "constructor" } }], "a"],
  "a reason that is none": [[TEXT, { ...END, finishReason: {} }], "a"],
  "counts that are none": [[TEXT, { ...END, usage: { inputTokens: { total: Number.NaN, cacheRead: -7 }, outputTokens: { total: Infinity } } }], "a"],
  "names of JavaScript in metadata": [[{ ...TEXT, providerMetadata: JSON.parse('{"__proto__":{"x":1}}') }, { ...TEXT, providerMetadata: JSON.parse('{"__proto__":{"y":1}}') }, END], "aa"],
};

test("parts in any order are what they can be", async () => {
  for (const [name, [parts, text, ran = []]] of Object.entries(ORDERS)) {
    for (const version of ["v3", "v4"]) {
      const outcome = await play(modelOf(parts, version));
      assert.deepEqual([outcome.text, outcome.ran, outcome.code], [text, ran, undefined], `${name} (${version}): ${outcome.message}`);
    }
  }
  assert.equal(/** @type {any} */ ({}).x, undefined);
});

test("a chunk that a package refused ends the answer, unless nothing was in it that was not read", async () => {
  const refused = (/** @type {any} */ value) => ({ type: "error", error: Object.assign(new Error("refused"), { [Symbol.for("vercel.ai.error.AI_TypeValidationError")]: true, value }) });
  const item = (/** @type {string} */ text, kind = "done") => refused({ type: `response.output_item.${kind}`, item: { type: "message", content: text ? [{ type: "output_text", text }] : [] } });
  const raw = (/** @type {string} */ type) => ({ type: "raw", rawValue: { type } });
  const broken = { ...END, finishReason: { unified: "error" } };
  /** @type {[parts: unknown[], reason: string][]} */
  const cases = [
    [[refused({ type: "response.created" }), item("", "added"), TEXT, item("a"), raw("response.completed"), broken], "completed"],
    [[TEXT, item("ab"), raw("response.completed"), broken], "error"],
    [[TEXT, item("a"), item("a"), raw("response.completed"), broken], "error"],
    [[item("a", "added"), TEXT, raw("response.completed"), broken], "error"],
    [[TEXT, refused({ type: "response.output_item.done", item: { type: "message", content: [{ type: "refusal", refusal: "no" }] } }), raw("response.completed"), broken], "error"],
    [[TEXT, refused({ type: "response.output_item.done", item: { type: "function_call", name: "pay" } }), raw("response.completed"), broken], "error"],
    // Nobody said that it is whole, or somebody that it is not.
    [[refused({ type: "response.created" }), TEXT, broken], "error"],
    [[refused({ type: "response.created" }), TEXT, raw("response.failed"), broken], "error"],
    [[TEXT, raw("response.completed"), broken], "error"],
  ];
  for (const [i, [parts, reason]] of cases.entries()) {
    for (const version of ["v3", "v4"]) {
      const { stopReason, message } = await play(modelOf(parts, version));
      assert.equal(stopReason, reason, `${i} (${version}): ${message}`);
    }
  }
});

test("a model that never ends is left", async () => {
  /** @type {Record<string, object>} */
  const NEVER = {
    "no stream": { doStream: () => new Promise(() => {}) }, "no part": { doStream: async () => ({ stream: new ReadableStream() }) },
    "no end": { doStream: async () => ({ stream: new ReadableStream({ start: (controller) => controller.enqueue(TEXT) }) }) },
    "a cancel that throws": { doStream: async () => ({ stream: { getReader: () => ({ read: () => new Promise(() => {}), cancel: async () => assert.fail("cancel") }) } }) },
  };
  for (const [name, more] of Object.entries(NEVER)) {
    const { stopReason, code } = await play(modelOf([], "v4", more), { timeouts: { firstChunkMs: 20, chunkMs: 20 } });
    assert.deepEqual([stopReason, code], ["error", "network"], name);
  }
});

test("what a model throws, or gives in place of a stream, is an error", async () => {
  for (const thrown of [traps, unreadable, undefined, cycle, Object.assign(new Error("e"), { [Symbol.for("vercel.ai.error.AI_APICallError")]: true, statusCode: "x", responseHeaders: 5, responseBody: cycle })]) {
    const { stopReason } = await play(modelOf([], "v4", { doStream: () => { throw thrown; } }));
    assert.equal(stopReason, "error");
  }
  for (const given of [null, {}, { stream: {} }, { stream: [TEXT] }]) assert.equal((await play(modelOf([], "v4", { doStream: async () => given }))).stopReason, "error");
});
