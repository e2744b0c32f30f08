// @ts-check
// turnwheel/local: the form of an answer, what holds a model to it, what is read from it; the engines, by doubles
// that behave as the real ones were seen to.

import assert from "node:assert/strict";
import { test } from "node:test";
import { brotliCompressSync } from "node:zlib";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { grammarOf, schemaOf, spaced } from "../../www/npm/local/grammar.js";
import { Reader } from "../../www/npm/local/reader.js";
import { jsonSchemaValidator } from "../../pkg/mcp.js";
import { answer, dice, tools as randomTools } from "./local/random-tools.mjs";
import { xgrammar } from "./local/xgrammar.mjs";

/** @param {Iterable<string>} pieces */
function read(pieces) {
  const reader = new Reader(false);
  const found = [...[...pieces].flatMap((piece) => reader.push(piece)), ...reader.end()];
  const calls = found.flatMap((piece) => (piece.kind === "call_end" ? [{ name: piece.name, arguments: JSON.parse(piece.json) }] : []));
  const streamed = found.flatMap((piece) => (piece.kind === "arguments" ? [piece.json] : [])).join("");
  return { said: found.flatMap((piece) => (piece.kind === "text" ? [piece.text] : [])).join(""), calls, streamed, isWhole: reader.isWhole, found };
}

// A sample; `LOCAL_SEEDS=1000` takes as many.
const SEEDS = Number(process.env.LOCAL_SEEDS ?? 40);

test("what a random set of tools may be called with is in the grammar, and is read back however it is cut", async () => {
  const grammarEngine = await xgrammar();
  for (let seed = 0; seed < SEEDS; seed++) {
    const thrown = dice(seed);
    const tools = randomTools(thrown);
    const form = { tools: tools.map(({ name, description, schema }) => ({ name, description, parameters: schema })), calls: 1 + thrown.below(4), output: undefined, mustCall: false };
    const accepts = await grammarEngine(grammarOf(form, { bounded: seed % 10 === 0 }));
    for (let i = 0; i < 2; i++) {
      const { text, said, calls } = answer(thrown, tools, form.calls);
      const named = `seed ${seed}: ${text}\n${grammarOf(form, { bounded: false })}`;
      assert.ok(await accepts(text), `not in the grammar: ${named}`);
      for (const wrong of [text.slice(0, -1), `${text} `, text.replace("{", "{ ")]) assert.ok(!(await accepts(wrong)), `in the grammar: ${wrong}`);
      // Everywhere in some, at a few places in the others.
      const step = seed % 10 === 0 ? 1 : 1 + Math.floor(text.length / 6);
      for (let cut = thrown.below(step); cut <= text.length; cut += step) {
        const { found, ...seen } = read([text.slice(0, cut), text.slice(cut)]);
        assert.deepEqual({ said: seen.said, calls: seen.calls, isWhole: seen.isWhole }, { said, calls, isWhole: true }, named);
        assert.equal(seen.streamed, calls.map((call) => spaced(call.arguments)).join(""));
      }
      assert.deepEqual(read(text).calls, calls, named);
      // Cut off, it is not whole, and no call is told that is not.
      const half = read([text.slice(0, Math.floor(text.length * 0.6))]);
      assert.ok(!half.isWhole && half.calls.length <= calls.length);
    }
  }
});

test("the JSON Schema of the form takes the same answers", async () => {
  for (let seed = 0; seed < 200; seed++) {
    const thrown = dice(seed);
    const tools = randomTools(thrown);
    const form = { tools: tools.map(({ name, description, schema }) => ({ name, description, parameters: schema })), calls: 4, output: undefined, mustCall: false };
    const validate = jsonSchemaValidator.getValidator(/** @type {any} */ (schemaOf(form)));
    const { text } = answer(thrown, tools, 4);
    assert.ok(validate(JSON.parse(text)).valid, text);
    for (const wrong of [{}, { say: "" }, { calls: [] }, { calls: [{ name: "other", arguments: {} }] }, { say: "x", calls: [] }]) assert.ok(!validate(wrong).valid, JSON.stringify(wrong));
  }
});

test("what nobody held to the form is read too", () => {
  /** @type {[string, string, any[]][]} */
  const cases = [
    ["plain text", "plain text", []],
    ["`code` first", "`code` first", []],
    ['  ```json\n{ "say" : "in a fence" }\n```', "in a fence", []],
    ['{"name": "a", "arguments": {"x": 1}}', "", [{ name: "a", arguments: { x: 1 } }]],
    ['{ "arguments": {"x": 1}, "name": "a" }', "", [{ name: "a", arguments: { x: 1 } }]],
    ['{"thought": {"a": ["}"]}, "calls": [ {"name": "a"} , {"id": 7, "name": "b", "arguments": {}} ] }', "", [{ name: "a", arguments: {} }, { name: "b", arguments: {} }]],
    ['{"say": 12}', "12", []],
    ['{"say": "\\u00e9\\ud83d\\ude42\\q"}', "é🙂q", []],
    ["", "", []],
  ];
  for (const [text, said, calls] of cases) for (const pieces of [[text], text]) assert.deepEqual([read(pieces).said, read(pieces).calls], [said, calls], text);
});

test("a schema that cannot be held to is any JSON, and one that contains itself ends", async () => {
  const grammarEngine = await xgrammar();
  const tree = { type: "object", properties: { next: { $ref: "#" }, not: { not: {} } }, required: ["next"] };
  const form = (/** @type {any} */ parameters) => ({ tools: [{ name: "t", description: "", parameters }], calls: 1, output: undefined, mustCall: true });
  const call = (/** @type {any} */ given) => spaced({ calls: [{ name: "t", arguments: given }] });
  const nested = (/** @type {number} */ depth) => /** @type {any} */ ({ next: depth === 0 ? "any JSON from here on" : nested(depth - 1) });
  const accepts = await grammarEngine(grammarOf(form(tree), { bounded: false }));
  assert.ok(await accepts(call(nested(20))));
  assert.ok(!(await accepts(call({}))) && !(await accepts(call({ next: {} }))));
  for (const parameters of [{}, true, { type: "string" }, { type: "object", properties: Object.fromEntries(Array.from({ length: 900 }, (_, i) => [`p${i}`, {}])) }]) {
    const text = grammarOf(form(parameters), { bounded: true });
    assert.ok(text.length < 60_000);
    assert.ok(await (await grammarEngine(text))(call({})), text);
  }
});

test("an app that uses one engine ships little", async () => {
  const sizes = [];
  for (const name of ["promptApi", "transformers", "webLlm", "wllama"]) {
    const contents = `export { ${name} } from "./local.js";`;
    const folder = fileURLToPath(new URL("../../www/npm", import.meta.url));
    const { outputFiles } = await build({ stdin: { contents, resolveDir: folder }, bundle: true, minify: true, format: "esm", external: ["../shared.js"], write: false });
    sizes.push(brotliCompressSync(outputFiles[0]?.contents ?? new Uint8Array()).length);
  }
  assert.ok(Math.max(...sizes) <= 8200, `bytes: ${sizes.join(", ")}`);
});
