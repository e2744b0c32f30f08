// @ts-check
// turnwheel/local: the form of an answer, what holds a model to it, what is read from it; the engines, by doubles
// that behave as the real ones were seen to.

import assert from "node:assert/strict";
import { test } from "node:test";
import { readdir, readFile } from "node:fs/promises";
import { basename } from "node:path";
import { brotliCompressSync, constants } from "node:zlib";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { grammarOf } from "../../../www/npm/local/grammar.js";
import { Reader } from "../../../www/npm/local/reader.js";
import { schemaOf } from "../../../www/npm/local/schema.js";
import { formOf, spaced } from "../../../www/npm/local/shape.js";
import { jsonSchemaValidator } from "../../../pkg/mcp.js";
import { answer, dice, tools as randomTools } from "./random-tools.mjs";
import { xgrammar } from "./xgrammar.mjs";

/** The form of an answer that may call these tools. @param {any[]} tools @param {number} calls @param {any} [toolChoice] */
const formFor = (tools, calls, toolChoice = "auto") => formOf({ tools: tools.map(({ name, schema }) => ({ name, description: "", parameters: schema })), options: { toolChoice }, output: undefined }, calls);

/** Texts without a longest length: XGrammar compiles for seconds over each. @param {string} grammar */
const unbounded = (grammar) => grammar.replace(/char\{\d+,\d+\}/g, "char*");

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
    const form = formFor(tools, 1 + thrown.below(4));
    const accepts = await grammarEngine(seed % 10 === 0 ? grammarOf(form) : unbounded(grammarOf(form)));
    for (let i = 0; i < 2; i++) {
      const { text, said, calls } = answer(thrown, tools, form.calls);
      const named = `seed ${seed}: ${text}\n${grammarOf(form)}`;
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
    const form = formFor(tools, 4);
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
    ["   ", "", []],
    ["```\nno form", "```\nno form", []],
    // What is no JSON is text, unless something was told already.
    ["{'say': 'hi'}", "{'say': 'hi'}", []],
    ["{thinking} Hello", "{thinking} Hello", []],
    ['{"say": "Hello", oops}', "Hello", []],
    ['{"say": "one"} {"say": "two"}', "one", []],
    ["[1, 2]", "[1, 2]", []],
  ];
  for (const [text, said, calls] of cases) for (const pieces of [[text], text]) assert.deepEqual([read(pieces).said, read(pieces).calls], [said, calls], text);
});

test("a call whose arguments are no JSON is told as it stands, so that the loop can say so", () => {
  for (const pieces of [(/** @type {string} */ text) => [text], (/** @type {string} */ text) => text]) {
    const reader = new Reader(false);
    const found = [...[...pieces('{"calls": [{"name": "a", "arguments": {x: 1}}]}')].flatMap((piece) => reader.push(piece)), ...reader.end()];
    assert.deepEqual(found.at(-1), { kind: "call_end", name: "a", json: "{x: 1}}]}" });
    assert.ok(reader.isWhole && reader.hasCalls);
  }
});

test("a megabyte of what small models repeat is read in a moment, and never kept twice", () => {
  const many = 1_000_000;
  /** @type {[string, (told: ReturnType<typeof read>) => boolean][]} */
  const cases = [
    [" ".repeat(many), ({ said }) => said === ""],
    [`\`\`\`json${"\n".repeat(many)}`, ({ said }) => said.length > many],
    [`{"say": "${"la ".repeat(many / 3)}`, ({ said, isWhole }) => said.length > many - 3 && !isWhole],
    [`{"thought": "${"hm ".repeat(many / 3)}`, ({ said, isWhole }) => said === "" && !isWhole],
    ["{".repeat(many), ({ said }) => said.length === many],
    [`{"calls": [{"name": "a", "arguments": ${'{"x": '.repeat(many / 6)}`, ({ calls, isWhole }) => isWhole && calls.length === 1],
    [`{"calls": [${'{"name": "a", "arguments": {}}, '.repeat(many / 32)}`, ({ calls, isWhole }) => calls.length === many / 32 && !isWhole],
    ["<|im_end|>".repeat(many / 10), ({ said }) => said.length === many],
  ];
  for (const [text, holds] of cases) {
    const reader = new Reader(false);
    const found = [];
    for (let at = 0; at < text.length; at += 4) found.push(...reader.push(text.slice(at, at + 4)));
    found.push(...reader.end());
    const calls = found.filter(({ kind }) => kind === "call_end");
    const said = found.map((piece) => (piece.kind === "text" ? piece.text : "")).join("");
    assert.ok(holds({ said, calls, isWhole: reader.isWhole, streamed: "", found }), `${text.slice(0, 40)}: ${said.length} letters, ${calls.length} calls, ${reader.isWhole}`);
  }
});

test("a schema that cannot be held to is any JSON, and one that contains itself ends", async () => {
  const grammarEngine = await xgrammar();
  const tree = { type: "object", properties: { next: { $ref: "#" }, not: { not: {} } }, required: ["next"] };
  const form = (/** @type {any} */ schema) => formFor([{ name: "t", schema }], 1, "required");
  const call = (/** @type {any} */ given) => spaced({ calls: [{ name: "t", arguments: given }] });
  const nested = (/** @type {number} */ depth) => /** @type {any} */ ({ next: depth === 0 ? "any JSON from here on" : nested(depth - 1) });
  const accepts = await grammarEngine(grammarOf(form(tree)));
  assert.ok(await accepts(call(nested(20))));
  assert.ok(!(await accepts(call({}))) && !(await accepts(call({ next: {} }))));
  for (const parameters of [{}, true, { type: "string" }, { type: "object", properties: Object.fromEntries(Array.from({ length: 900 }, (_, i) => [`p${i}`, {}])) }]) {
    const text = grammarOf(form(parameters));
    assert.ok(text.length < 60_000);
    assert.ok(await (await grammarEngine(text))(call({})), text);
  }
});

/** What a page loads that imports this from the package: at once, and all that it can load later. @param {string} code @returns {Promise<{ atOnce: number, later: Map<string, number> }>} */
async function loaded(code) {
  const { outputFiles, metafile: { outputs } } = await build({ stdin: { contents: code, resolveDir: fileURLToPath(new URL("../../../pkg", import.meta.url)) }, bundle: true, splitting: true, minify: true, format: "esm", platform: "node", packages: "external", outdir: "/out", write: false, metafile: true, logLevel: "silent", absWorkingDir: "/" });
  const bytes = new Map(outputFiles.map(({ path, contents }) => [basename(path), brotliCompressSync(contents, { params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: contents.length } }).length]));
  const reached = (/** @type {string[]} */ kinds, /** @type {Set<string>} */ seen = new Set(), name = Object.keys(outputs).find((each) => outputs[each]?.entryPoint === "<stdin>") ?? "") => {
    if (!seen.has(name)) seen.add(name) && outputs[name]?.imports.filter(({ kind }) => kinds.includes(kind)).forEach(({ path }) => reached(kinds, seen, path));
    return seen;
  };
  const first = reached(["import-statement"]);
  const sizeOf = (/** @type {string} */ name) => bytes.get(basename(name)) ?? 0;
  return { atOnce: [...first].reduce((sum, name) => sum + sizeOf(name), 0), later: new Map([...reached(["import-statement", "dynamic-import"])].filter((name) => !first.has(name)).map((name) => [Object.keys(outputs[name]?.inputs ?? {}).map((input) => basename(input)).join(), sizeOf(name)])) };
}

test("an app that uses one engine ships little", async (t) => {
  const main = await loaded('export * from "./entry/web.js";');
  const native = await nativeFile();
  for (const name of ["promptApi", "wllama"]) {
    const { atOnce, later } = await loaded(`export * from "./entry/web.js"; export { ${name} } from "./local.js";`);
    const added = [...later].filter(([inputs]) => !main.later.has(inputs));
    const [own, inAll] = [atOnce - main.atOnce, atOnce - main.atOnce + added.filter(([inputs]) => inputs !== native).reduce((sum, [, size]) => sum + size, 0)];
    t.diagnostic(`${name}: ${own} bytes at once, ${inAll} with what its first answer loads`);
    assert.ok(own <= 3000 && inAll <= 8200, `${name}: ${own} bytes at once, ${inAll} in all`);
    assert.ok(added.length >= 2, "the answers are loaded later");
  }
});

/** The file of calls that engines read themselves, which no other app loads. */
async function nativeFile() {
  const folder = new URL("../../../pkg/", import.meta.url);
  for (const name of await readdir(folder)) if (name.startsWith("core-") && (await readFile(new URL(name, folder), "utf8")).includes("// local/native.js")) return name;
}
