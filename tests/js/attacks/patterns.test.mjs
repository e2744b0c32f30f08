// @ts-check
// Patterns that a backtracking engine works on for centuries, from the author of a tool, from an MCP server, in an
// output; with texts that make them. Each answer comes at once, and it is the right one.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { jsonSchemaValidator, mcpTools } from "../../../pkg/mcp.js";
import { dice } from "../dice.mjs";
import { Agent, call, readRun, scripted, testTool, textOf, tool, misused } from "../kit.mjs";

/** Patterns, a text without a match, and one with a match. @type {[string, string, string][]} */
const CATASTROPHES = [
  ["^(a+)+$", `${"a".repeat(50_000)}!`, "aaa"],
  ["(a|a)*b", "a".repeat(50_000), "aab"],
  ["^(.*?,){20}x", ",".repeat(20_000), `${",".repeat(20)}x`],
  ["^(a|aa)+$", `${"a".repeat(50_000)}!`, "aaaa"],
  ["^(\\w+\\s?)*$", `${"word ".repeat(10_000)}!`, "a few words"],
  ["(x+x+)+y", "x".repeat(50_000), "xxy"],
  ["^\\s*\\s*\\s*\\s*$", `${" ".repeat(50_000)}!`, "   "],
  ["a*a*a*a*b$", "a".repeat(50_000), "ab"],
  ["[a-z]+@", "a".repeat(90_000), "a@"],
  ["^(?=(a+)+$)", `${"a".repeat(50_000)}!`, "aaa"],
  ["^(?!(a|a)*b)a", `${"a".repeat(30_000)}b`, "aaa"],
  ["(?<=^(a+)+)b", `${"a".repeat(30_000)}!b`, "aab"],
  ["^([a-zA-Z0-9]+\\.?)+@", "a".repeat(50_000), "a.b@"],
  ["^(([a-z])+.)+[A-Z]([a-z])+$", "a".repeat(50_000), "aaBb"],
  ["^(?:.*a){12}$", "a".repeat(11) + "b".repeat(20_000), "a".repeat(12)],
];

const OBJECT = (/** @type {string} */ pattern) => ({ type: "object", properties: { text: { type: "string", pattern } } });

/** @param {any} parameters @param {any} args */
async function result(parameters, args) {
  const { result } = await readRun(new Agent({ model: scripted([call(["go", args]), "done"]), tools: [testTool("go", () => "gone", { parameters })] }).prompt("Go"));
  return textOf(result.messages[2]);
}

for (const [pattern, evil, good] of CATASTROPHES) {
  test(`a pattern is checked in linear time: ${pattern}`, async () => {
    // In a process of its own, which can be stopped.
    const code = `
      import { Agent, scripted } from ${JSON.stringify(new URL("../../../pkg/entry/node.js", import.meta.url).href)};
      const [parameters, texts] = JSON.parse(process.env.GIVEN);
      const tools = [{ name: "go", description: "", parameters, execute: () => "gone" }];
      const calls = texts.map((text) => ({ toolCalls: [{ callId: "c", toolName: "go", arguments: text }] }));
      const { messages } = await new Agent({ model: scripted([...calls, "done"]), tools }).prompt("Go");
      console.log(JSON.stringify(messages.filter(({ role }) => role === "tool_result").map(({ content }) => content[0].text)));`;
    const property = { type: "object", patternProperties: { [pattern]: { type: "number" } } };
    for (const [schema, of] of /** @type {[any, (text: string) => any][]} */ ([[OBJECT(pattern), (text) => ({ text })], [property, (text) => ({ [text]: "no number" })]])) {
      const given = JSON.stringify([schema, [of(evil), of(good)]]);
      const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", code], { env: { ...process.env, GIVEN: given }, timeout: 15_000, maxBuffer: 2 ** 24 });
      const [first, second] = JSON.parse(stdout);
      const [refused, accepted] = schema === property ? [second, first] : [first, second];
      assert.match(refused, /does not match (pattern|associated schema)|matches pattern|too many steps/);
      assert.equal(accepted, "gone");
    }
  });
}

test("the linear engine finds what the host's own finds", async () => {
  const { compile, statesOf } = await import("../../../pkg/linear.js");
  const below = dice(20261123);
  /** @template T @param {T[]} list @returns {T} */
  const pick = (list) => /** @type {T} */ (list[below(list.length)]);
  const ATOMS = ["a", "b", "c", ".", "[ab]", "[^a]", "\\w", "\\d", "\\s", "😀", "\\u{61}", "\\ud83d\\ude00", "-", "\\x61", "\\p{L}", "[a-c\\]]", "[😀b]", "\\n"];
  const PLACES = ["^", "$", "\\b", "\\B"];
  /** @param {number} deep @returns {string} */
  const pattern = (deep) => Array.from({ length: 1 + below(2) }, () => Array.from({ length: below(4) }, () => part(deep)).join("")).join("|");
  /** @param {number} deep */
  function part(deep) {
    const kind = below(deep > 0 ? 4 : 3);
    if (kind === 0) return pick(PLACES);
    const open = pick(["(", "(?:", "(?<n>", "(?=", "(?!", "(?<=", "(?<!"]);
    const atom = kind < 3 ? pick(ATOMS) : `${open}${pattern(deep - 1)})`;
    return kind === 3 && /[=!]$/.test(open) ? atom : atom + pick(["", "", "", "*", "+", "?", "{2}", "{1,2}", "{0,}", "*?", "+?", "{0}", "{0,2}", "{3,}"]);
  }
  let matches = 0;
  for (let i = 0; i < 8_000; i++) {
    const source = pattern(2);
    let own;
    try {
      own = new RegExp(source, "u");
    } catch {
      continue; // Two groups of one name.
    }
    const isMatch = compile(source);
    assert.ok(statesOf(source) > 0);
    for (let j = 0; j < 4; j++) {
      const text = Array.from({ length: below(7) }, () => pick(["a", "b", "c", "-", "1", " ", "😀", "\n", "\ud83d", "é"])).join("");
      const found = own.exec(text);
      // V8 finds places between the two halves of a character, where the specification has none.
      if (found && /[\ud800-\udbff]/.test(text.charAt(found.index - 1)) && /[\udc00-\udfff]/.test(text.charAt(found.index))) continue;
      assert.equal(isMatch(text, () => {}), found !== null, `${JSON.stringify(source)} on ${JSON.stringify(text)}`);
      matches += Number(found !== null);
    }
  }
  assert.ok(matches > 5_000, `${matches} matches`);
});

/** Patterns that repeat what takes no character more often than there is time for, or are too much in another way; a text with a match, if they are taken. @type {[string, string, string | RegExp][]} */
const ENDLESS = [
  ["nothing", "(?:){9007199254740991}", "x"],
  ["nothing, at least so often", "(?:){9007199254740991,}x", "x"],
  ["nothing, at most so often", "^(?:){0,9007199254740991}x$", "x"],
  ["a group of nothing", "(){9007199254740991}", "x"],
  ["nothing or nothing", "(?:|){9007199254740991}", "x"],
  ["a part that is left out", "^(?:a{0}){999999999}x$", "x"],
  ["a class that is left out", "^(?:[a-z]{0}(?:b{0,0})){999999999}x$", "x"],
  ["nothing in nothing", `${"(?:".repeat(200)}${"){1000}".repeat(200)}x`, "x"],
  ["nothing beside a character", "^(?:(?:){9007199254740991}x){2}$", "xx"],
  ["nothing without an end, deep", `${"(".repeat(240)}${")*".repeat(240)}x`, "x"],
  ["a start", "(?:^){1000000000000000}x", "x"],
  ["an end", "x(?:$){9007199254740991}", "x"],
  ["an edge of a word", "(?:\\b){9007199254740991}x", "x"],
  ["no edge of a word", "x(?:\\B|\\b){9007199254740991,}y", "xy"],
  ["a look ahead", "(?:(?=x)){9007199254740991}", "x"],
  ["a look behind", "x(?:(?<=x)(?<!y)){9007199254740991}", "x"],
  ["in a look ahead", "(?=(?:){9007199254740991}x)", "x"],
  ["in a look behind", "(?<!(?:^){9007199254740991}y)x", "x"],
  ["nothing or a start", "(?:|^|(?=y)){9007199254740991}x", "x"],
  ["alternatives without end, repeated", `^(?:${"|".repeat(40_000)}x)*$`, "x"],
  ["a large class", `^[${"xy".repeat(20_000)}]+(?:z|y)$`, "xy"],
  ["a character", "a{9007199254740991}", /more than 5000 states/],
  ["a character, and more digits than a number has", `a{${"9".repeat(400)}}`, /more than 5000 states/],
  ["a count that overflows", "(?:ab?){99999999999999999999}", /more than 5000 states/],
  ["what may be empty", "(?:a?){9007199254740991}", /more than 5000 states/],
  ["what may be empty, deep", `${"(?:".repeat(50)}a?${"){1000}".repeat(50)}`, /more than 5000 states/],
  ["starts beside a character", `(?:${"^".repeat(1000)}a){4000}`, /more than 5000 states/],
  ["plain classes", `^${"[ab]{999}".repeat(1000)}$`, /more than 5000 states/],
  ["too many alternatives", `^(?:${"a|".repeat(20_000)}b)+$`, /more than 5000 states/],
  ["too deep", `${"(".repeat(5_000)}x${")".repeat(5_000)}`, /nested deeper than 250/],
  ["too long", `^x*${"x".repeat(100_000)}$`, /100004 characters; the limit is 50000/],
];

test("a pattern that repeats nothing for ever is built at once or refused: by its author, by a server, in the names of members", async () => {
  // In a process of its own, which can be stopped.
  const code = `
    import { readFileSync } from "node:fs";
    import { tool, Agent, scripted } from ${JSON.stringify(new URL("../../../pkg/entry/node.js", import.meta.url).href)};
    import { jsonSchemaValidator, mcpTools } from ${JSON.stringify(new URL("../../../pkg/mcp.js", import.meta.url).href)};
    const answers = [];
    for (const [name, pattern, text] of JSON.parse(readFileSync(process.argv[1], "utf8"))) {
      const shapes = [[{ text: { type: "string", pattern } }, {}, { text }], [{}, { patternProperties: { [pattern]: { type: "number" } } }, { [text]: 1 }], [{}, { propertyNames: { pattern } }, { [text]: 1 }]];
      for (const [properties, more, args] of shapes) {
        const parameters = { type: "object", properties, ...more };
        let answer;
        try {
          const go = tool({ name: "go", description: "", parameters, execute: () => "gone" });
          const { messages } = await new Agent({ model: scripted([{ toolCalls: [{ callId: "c", toolName: "go", arguments: args }] }, "done"]), tools: [go] }).prompt("Go");
          answer = messages.find(({ role }) => role === "tool_result").content[0].text;
        } catch (error) {
          answer = String(error);
        }
        const client = { transport: {}, callTool() {}, getServerVersion: () => ({ name: "s" }), getServerCapabilities: () => ({ tools: {} }), setRequestHandler() {}, removeRequestHandler() {}, listTools: async () => ({ tools: [{ name: "t", inputSchema: parameters }] }) };
        let listed = "gone";
        await mcpTools(client, { prefix: "s", onError: (error) => void (listed = String(error)) });
        const { valid, errorMessage } = jsonSchemaValidator.getValidator(parameters)(args);
        answers.push([name, answer, listed, valid ? "gone" : errorMessage]);
      }
    }
    console.log(JSON.stringify(answers));`;
  const given = JSON.stringify(ENDLESS.map(([name, pattern, text]) => [name, pattern, typeof text === "string" ? text : "x"]));
  const folder = await mkdtemp(join(tmpdir(), "patterns-"));
  await writeFile(join(folder, "given.json"), given);
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", code, join(folder, "given.json")], { timeout: 60_000, maxBuffer: 2 ** 24 });
  await rm(folder, { recursive: true });
  const wanted = new Map(ENDLESS.map(([name, , text]) => [name, typeof text === "string" ? /^gone$/ : text]));
  /** @type {[string, ...string[]][]} */
  const answers = JSON.parse(stdout);
  assert.equal(answers.length, 3 * ENDLESS.length);
  for (const [name, ...said] of answers) for (const text of said) assert.match(text, /** @type {RegExp} */ (wanted.get(name)), `${name}: ${text}`);
});

test("steps are counted by the work, also where alternatives lead to the same place", async () => {
  const { compile } = await import("../../../pkg/linear.js");
  const isMatch = compile(`^(?:${"(?:^|b?)|".repeat(1_000)}a)*c$`);
  let steps = 0;
  isMatch("a".repeat(20), (/** @type {number} */ more) => void (steps += more));
  assert.ok(steps > 20 * 1_000, `${steps} steps`);
});

test("what refers back to a group is refused when the tool is made, with the tool, the pattern and the way out", () => {
  for (const pattern of ["^(a+)\\1$", "(?<n>a+)\\k<n>", "(?:(b)|\\1)+", "\\\\(a)\\1"]) {
    for (const make of [
      () => tool({ name: "go", description: "", parameters: OBJECT(pattern), execute: () => "" }),
      () => new Agent({ model: scripted([]), tools: [testTool("go", () => "", { parameters: { type: "object", patternProperties: { [pattern]: {} } } })] }),
    ]) assert.throws(make, (/** @type {any} */ error) => error.code === "misuse" && error.message.includes("tool `go`") && error.message.includes(JSON.stringify(pattern)) && /refers back.*check it in `execute`/.test(error.message));
    assert.throws(() => new Agent({ model: scripted([]), output: OBJECT(pattern) }), /`output`.*refers back/);
  }
  // No references: a backslash before a digit, a property of that name, values that look like one.
  for (const parameters of [OBJECT("^\\\\1$"), { type: "object", properties: { pattern: { type: "string" } }, default: { pattern: "(a)\\1" }, examples: [{ pattern: "(" }] }]) tool({ name: "go", description: "", parameters, execute: () => "" });
});

test("a text that is too long for its pattern is an error of the call", async () => {
  for (const pattern of ["^[a-z]+$", "^(a+)+$"]) {
    assert.equal(await result(OBJECT(pattern), { text: "a".repeat(99_000) }), "gone");
    assert.match(await result(OBJECT(pattern), { text: "a".repeat(100_001) }), /100001 characters is too long for its pattern; the limit is 100000/);
  }
});

test("repetitions that come to millions of states are an error, not a full memory", () => {
  // Refused when the tool is made, for the linear engine is there: turnwheel/mcp brings it.
  assert.throws(() => tool({ name: "go", description: "", parameters: OBJECT("^((a?){900}b?){900}$"), execute: () => "" }), /repetitions come to more than 5000 states/);
});

/** A pattern of 3,002 states, whose text is `a` 1,000 times. @param {number} i */
const large = (i) => `^(?:a|b){1000}(?:x${i})?$`;
/** @param {number} count @param {number} [from] */
const many = (count, from = 0) => ({ type: "object", properties: Object.fromEntries(Array.from({ length: count }, (_, i) => [`p${i}`, { type: "string", pattern: large(from + i) }])) });

test("the patterns of a schema have a limit together, which the error names", () => {
  tool({ name: "go", description: "", parameters: many(15), execute: () => "" });
  assert.throws(() => tool({ name: "go", description: "", parameters: many(20), execute: () => "" }), /tool `go`.*the patterns of the schema come to \d+ states; the limit is 50000/);
  const plain = { type: "object", properties: Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`p${i}`, { pattern: `^[ab]{999}[cd]{999}[ef]{999}x{${i}}$` }])) };
  assert.throws(() => tool({ name: "go", description: "", parameters: plain, execute: () => "" }), /states; the limit is 50000/);
});

test("a list of tools compiles no pattern; what is used is compiled then, and only the last of it is kept", async () => {
  const code = `
    import { Agent, scripted } from ${JSON.stringify(new URL("../../../pkg/entry/node.js", import.meta.url).href)};
    import { mcpTools } from ${JSON.stringify(new URL("../../../pkg/mcp.js", import.meta.url).href)};
    const large = ${large};
    const many = ${many};
    const tools = Array.from({ length: 300 }, (_, i) => ({ name: "t" + i, inputSchema: many(15, 20 * i) }));
    const client = { transport: {}, callTool: async () => ({ content: [{ type: "text", text: "called" }] }), getServerVersion: () => ({ name: "s" }), getServerCapabilities: () => ({ tools: {} }), setRequestHandler() {}, removeRequestHandler() {}, listTools: async () => ({ tools }) };
    const found = await mcpTools(client, { approval: "never", onError(error) { throw error; } });
    const args = Object.fromEntries(Array.from({ length: 15 }, (_, i) => ["p" + i, "a".repeat(1000)]));
    const call = (i, more) => ({ toolCalls: [{ callId: "c" + i, toolName: "t" + i, arguments: { ...args, ...more } }] });
    const { messages } = await new Agent({ model: scripted([...Array.from({ length: 60 }, (_, i) => call(i)), call(7, { p3: "c" }), "done"]), tools: found }).prompt("Go");
    const results = messages.filter(({ role }) => role === "tool_result").map(({ content }) => content[0].text);
    console.log(JSON.stringify([found.tools.length, results.filter((text) => text === "called").length, results.at(-1)]));
    process.exit(0);`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--max-old-space-size=128", "--input-type=module", "--eval", code], { timeout: 60_000, maxBuffer: 2 ** 24 });
  const [listed, called, refused] = JSON.parse(stdout);
  assert.deepEqual([listed, called], [300, 60]);
  assert.match(refused, /p3 .*does not match pattern/);
});

test("a structured output has them too, also one that is set in the middle of a run", async () => {
  const output = OBJECT("^(a+)+$");
  const evil = JSON.stringify({ text: `${"a".repeat(50_000)}!` });
  const { result: first } = await readRun(new Agent({ model: scripted([evil, '{"text":"aa"}']), output }).prompt("Go"));
  assert.deepEqual(first.output, { text: "aa" });
  const agent = new Agent({ model: scripted([call("go"), evil, '{"text":"aa"}']), tools: [testTool("go", () => ((agent.output = output), "gone"))] });
  assert.deepEqual((await agent.prompt("Go")).output, { text: "aa" });
});

/** A server with these tools. @param {any[]} tools @param {any} [answer] */
async function serverWith(tools, answer = { content: [{ type: "text", text: "served" }] }) {
  const server = new Server({ name: "stranger", version: "1" }, { capabilities: { tools: {} } });
  server.setRequestHandler(ListToolsRequestSchema, async () => ({ tools }));
  server.setRequestHandler(CallToolRequestSchema, async () => answer);
  const [own, other] = InMemoryTransport.createLinkedPair();
  await server.connect(other);
  return own;
}

test("an MCP server's evil pattern costs no time; a tool that cannot be checked is left out aloud, the others work", async () => {
  /** @type {any[]} */
  const refused = [];
  /** @type {any} */
  let deep = { type: "string" };
  for (let i = 0; i < 300; i++) deep = { type: "object", properties: { a: deep } };
  const tools = await mcpTools(await serverWith([
    { name: "fine", inputSchema: { type: "object" } },
    { name: "evil", inputSchema: OBJECT("^(a+)+$") },
    { name: "back", inputSchema: OBJECT("^(a+)\\1$") },
    { name: "key", inputSchema: { type: "object", patternProperties: { "(": {} } } },
    { name: "states", inputSchema: OBJECT("^((a?){900}b?){900}$") },
    { name: "deep", inputSchema: deep },
  ]), { onError: (error) => void refused.push(String(error)), approval: "never" });
  assert.deepEqual(tools.tools.map(({ name }) => name), ["fine", "evil"]);
  for (const name of ["back", "key", "states", "deep"]) assert.ok(refused.some((text) => text.includes(`its tool \`${name}\` is left out`)), name);
  await tools.refresh();
  assert.equal(refused.length, 4, "told once");
  const model = scripted([call(["evil", { text: `${"a".repeat(50_000)}!` }]), call(["evil", { text: "aa" }]), call("fine"), "done"]);
  const { result } = await readRun(new Agent({ model, tools }).prompt("Go"));
  assert.match(textOf(result.messages[2]), /does not match pattern/);
  assert.deepEqual([textOf(result.messages[4]), textOf(result.messages[6]), result.text], ["served", "served", "done"]);
  await tools.dispose();
});

test("an MCP server's evil output schema costs no time, and one that cannot be checked costs its own tool alone", async () => {
  const evil = { ...OBJECT("^(a+)+$"), required: ["text"] };
  const content = { content: [], structuredContent: { text: `${"a".repeat(50_000)}!` } };
  const tools = await mcpTools(await serverWith([
    { name: "evil", inputSchema: { type: "object" }, outputSchema: evil }, { name: "back", inputSchema: { type: "object" }, outputSchema: OBJECT("(a)\\1") },
    { name: "fine", inputSchema: { type: "object" } },
  ], content), { approval: "never" });
  const { result } = await readRun(new Agent({ model: scripted([call("evil"), call("back"), call("fine"), "done"]), tools }).prompt("Go"));
  assert.match(textOf(result.messages[2]), /does not match/);
  assert.match(textOf(result.messages[4]), /refers back/);
  assert.equal(result.text, "done");
  assert.equal(jsonSchemaValidator.getValidator(OBJECT("^(a+)+$"))({ text: "aa" }).valid, true);
  await tools.dispose();
});

test("sets of Unicode are counted over the schema: the host's engine takes long to compile each", () => {
  const make = (/** @type {any} */ properties) => new Agent({ model: scripted([]), tools: [{ name: "t", description: "", parameters: { type: "object", properties }, execute: () => "" }] });
  const text = (/** @type {string} */ pattern) => ({ type: "string", pattern });
  for (const properties of [
    { a: text(`^[${"\\p{L}".repeat(251)}]`) }, { a: text(`[${"\\P{L}".repeat(9_990)}]+x?`) }, { a: text(`^${"[\\p{L}]".repeat(7_000)}`) },
    { a: text(`(?:${Array.from({ length: 300 }, (_, i) => `[\\p{L}${String.fromCodePoint(0x4e00 + i)}]`).join("|")})x`) },
    Object.fromEntries(Array.from({ length: 26 }, (_, i) => [`p${i}`, text(`^[${"\\p{L}".repeat(10)}]{${i + 1}}$`)])),
    { a: { type: "object", patternProperties: { [`^[${"\\p{L}".repeat(251)}]`]: {} } } },
  ]) misused(() => make(properties), /tool `t`.*name \d+ sets such as `\\p\{L\}`; the limit is 250/s);
  make(Object.fromEntries(Array.from({ length: 25 }, (_, i) => [`p${i}`, text(`^[${"\\p{L}".repeat(10)}]{${i + 1}}$`)])));
});

test("a class is bounded, and so are the patterns of a schema together", () => {
  const make = (/** @type {string[]} */ patterns) => new Agent({ model: scripted([]), tools: [{ name: "t", description: "", parameters: { type: "object", properties: Object.fromEntries(patterns.map((pattern, i) => [`p${i}`, { type: "string", pattern }])) }, execute: () => "" }] });
  // Never two that touch, the last first: the host's engine takes quadratic time.
  const down = (/** @type {number} */ length) => Array.from({ length }, (_, i) => String.fromCodePoint(0xd000 - 2 * i)).join("");
  misused(() => make([`[${down(2_001)}]x|y`]), /tool `t`.*a class in it has more than 2000 characters/s);
  misused(() => make([`x[^\\]${down(2_001)}`]), /a class in it has more than 2000 characters/);
  make([`[${down(1_900)}]x|y`, `(?:[${down(1_900)}]|\\[${"a".repeat(3_000)}\\])x`]);
  misused(() => make(Array.from({ length: 5 }, (_, i) => `[${"ab".repeat(22_000)}]${i}`)), /with it, the patterns of the schema have 220015 characters; the limit is 200000/);
  const schema = { type: "object", properties: { a: { type: "string", pattern: `[${down(2_001)}]x|y` } } };
  assert.match(String(jsonSchemaValidator.getValidator(schema)({ a: "x" }).errorMessage), /more than 2000 characters/);
});

test("asking the host's engine about a character counts as more than a step", () => {
  const many = Array.from({ length: 20_000 }, (_, i) => String.fromCodePoint(0x4e00 + i)).join("");
  for (const pattern of [`(?:${Array.from({ length: 1_000 }, (_, i) => `[^${String.fromCodePoint(0x4e00 + i)}]`).join("|")})*!`, `(?:${Array.from({ length: 249 }, (_, i) => `[\\p{L}${String.fromCodePoint(0x100 + i)}]`).join("|")})*!`]) {
    const { errorMessage } = jsonSchemaValidator.getValidator({ type: "string", pattern })(many);
    assert.match(String(errorMessage), /too many steps/);
  }
  // A text in many scripts is no attack.
  const mixed = jsonSchemaValidator.getValidator({ type: "string", pattern: "^(?:[\\p{L}\\p{N}]|[^a-z]|\\s)+$" })(many.repeat(5).slice(0, 100_000));
  assert.equal(mixed.errorMessage, undefined);
});
