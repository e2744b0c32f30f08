// @ts-check
// Tools: schemas of every kind, return values, their context, approval.

import assert from "node:assert/strict";
import { test } from "node:test";
import { toStandardJsonSchema } from "@valibot/to-json-schema";
import * as v from "valibot";
import { z } from "zod";
import { Agent, call, deferred, misused, readRun, scripted, settle, testTool, textOf, tool } from "../kit.mjs";

/** Runs one call of one tool. @param {any} tool @param {any} [args] @param {any} [options] */
async function once(tool, args = {}, options = {}) {
  const outcome = await readRun(new Agent({ model: scripted([call([tool.name, args]), "done"]), tools: [tool], ...options }).prompt("Go"));
  const [result] = outcome.all("turn_end")[0].toolResults;
  return { ...outcome, toolResult: result, text: textOf(result) };
}

/** @param {() => any} make @returns {Promise<any>} */
const gives = async (make) => (await once(testTool("give", make))).toolResult;

test("what a tool gives: a text, JSON, nothing, blocks", async () => {
  assert.deepEqual((await gives(() => "text")).content, [{ type: "text", text: "text" }]);
  assert.deepEqual((await gives(() => 7)).content, [{ type: "text", text: "7" }]);
  assert.deepEqual((await gives(() => null)).content, [{ type: "text", text: "null" }]);
  assert.deepEqual((await gives(() => false)).content, [{ type: "text", text: "false" }]);
  assert.deepEqual((await gives(() => ({ a: [1, { b: "é" }] }))).content, [{ type: "text", text: '{"a":[1,{"b":"é"}]}' }]);
  assert.deepEqual((await gives(() => [1, 2])).content, [{ type: "text", text: "[1,2]" }]);
  assert.deepEqual((await gives(() => undefined)).content, [{ type: "text", text: "" }]);
  assert.deepEqual((await gives(() => new Date(0))).content, [{ type: "text", text: '"1970-01-01T00:00:00.000Z"' }]);
  const content = [{ type: "text", text: "a" }, { type: "image", mimeType: "image/png", data: "AAAA" }];
  const whole = await gives(() => ({ content, details: { n: 1 } }));
  assert.deepEqual([whole.content, whole.details, whole.isError], [content, { n: 1 }, false]);
  assert.equal((await gives(() => ({ content: [{ type: "text", text: "no such file" }], isError: true }))).isError, true);
});

test("an object of a class is what its members are, as rows of a database come", async () => {
  class Row {
    id = 7;
    name = "Ada";
  }
  assert.equal(textOf(await gives(() => new Row())), '{"id":7,"name":"Ada"}');
  assert.equal(textOf(await gives(() => [new Row()])), '[{"id":7,"name":"Ada"}]');
});

const cycle = /** @type {any} */ ({ a: {} });
cycle.a.b = cycle;
class Own {}
/** @type {[string, () => any, RegExp][]} */
const NO_JSON = [
  ["a Map", () => new Map([[1, 2]]), /an object \(Map\)/],
  ["a cycle", () => cycle, /the result\.a\.b contains itself/],
  ["a function", () => () => {}, /is a function/],
  ["a symbol", () => Symbol("x"), /is a symbol/],
  ["a BigInt", () => ({ n: [1n] }), /the result\.n\[0\] is a bigint/],
  ["NaN", () => ({ n: NaN }), /the result\.n is NaN/],
  ["an object of a class that shows nothing", () => [new Own()], /the result\[0\] is an object \(Own\)/],
  ["an Error", () => new Error("x"), /an object \(Error\)/],
  ["an Error with members", () => ({ error: Object.assign(new Error("x"), { code: "ENOENT" }) }), /the result\.error is an object \(Error\)/],
  ["bytes", () => new Uint8Array(2), /Uint8Array/],
  ["details that are no JSON", () => ({ content: [], details: new Set() }), /details is an object \(Set\)/],
];
for (const [name, make, pattern] of NO_JSON) {
  test(`what is no JSON is an error result that says so: ${name}`, async () => {
    const result = await gives(make);
    assert.equal(result.isError, true);
    assert.match(textOf(result), pattern);
  });
}

test("blocks that are none are an error result", async () => {
  for (const content of [[{ type: "text" }], [{ type: "image", data: "AAAA" }]]) assert.equal((await gives(() => ({ content }))).isError, true);
});

test("what cannot even be looked at is an error result, and the run goes on", async () => {
  const hostile = { get x() { throw new Error("hands off"); } };
  const nasty = { toJSON() { throw new Error("no JSON of me"); } };
  for (const made of [hostile, nasty, { state: nasty }]) {
    const result = await gives(() => made);
    assert.equal(result.isError, true);
    assert.match(textOf(result), /hands off|no JSON of me/);
  }
});

test("a result that is too long is cut, with a note", async () => {
  const { text } = await once(testTool("long", () => "x".repeat(5000), { maxResultBytes: 100 }));
  assert.ok(text.length < 400 && /trunc|cut|bytes/i.test(text), text);
});

test("the text of a failure is cut like a result", async () => {
  const fails = testTool("fails", () => { throw new Error("y".repeat(5000)); }, { maxResultBytes: 100 });
  const { text } = await once(fails);
  assert.ok(text.length < 200 && text.startsWith("tool `fails` failed: yyy"), text);
});

test("JSON Schema: what the model may send, and what it is told when it sends something else", async () => {
  const parameters = { type: "object", properties: { city: { type: "string", minLength: 2 }, days: { type: "integer", enum: [1, 3] }, tags: { type: "array", items: { type: "string" } } }, required: ["city"], additionalProperties: false };
  const weather = { name: "weather", description: "", parameters, execute: (/** @type {any} */ args) => args };
  assert.equal((await once(weather, { city: "Oslo", days: 3, tags: ["a"] })).text, '{"city":"Oslo","days":3,"tags":["a"]}');
  for (const [args, pattern] of /** @type {[any, RegExp][]} */ ([[{}, /city/], [{ city: "O" }, /city.*(short|2)/], [{ city: "Oslo", days: 2 }, /days/], [{ city: "Oslo", tags: [1] }, /tags\/0.*string/s], [{ city: "Oslo", town: "x" }, /town/]])) {
    const { toolResult, text } = await once(weather, args);
    assert.equal(toolResult.cause, "invalid_arguments");
    assert.match(text, pattern);
  }
});

/** @type {[string, string[], string[]][]} */
const FORMATS = [
  ["date", ["2024-02-29"], ["2024-02-30", "2023-02-29", "2024-1-1", "tomorrow", "2024-13-01"]],
  ["time", ["12:00:00Z", "23:59:59.5+02:00", "00:00:00z"], ["12:00:00", "25:00:00Z", "noon"]],
  ["date-time", ["2024-02-29T12:00:00+02:00", "2024-02-29 12:00:00Z"], ["2024-02-30T12:00:00Z", "2024-02-29", "2024-02-29T12:00", "2024-02-29x12:00:00Z"]],
  ["email", ["ada@example.org"], ["ada", "ada@", "a b@c"]],
  ["uri", ["https://example.org/a?b#c", "mailto:ada@example.org"], ["example.org", "/a", "https://a b"]],
  ["uuid", ["123e4567-e89b-12d3-a456-426614174000"], ["123e4567", "123e4567-e89b-12d3-a456-42661417400g"]],
  ["ipv4", ["1.2.3.4", "255.255.255.0"], ["1.2.3", "1.2.3.256", "1.2.3.4."]],
  ["of-our-own", ["anything"], []],
];
for (const [format, right, wrong] of FORMATS) {
  test(`JSON Schema: the format ${format}`, async () => {
    const tool = { name: "go", description: "", parameters: { type: "object", properties: { at: { type: "string", format } } }, execute: () => "gone" };
    for (const at of right) assert.equal((await once(tool, { at })).text, "gone", at);
    for (const at of wrong) assert.equal((await once(tool, { at })).toolResult.cause, "invalid_arguments", at);
  });
}

test("$ref and $defs in a JSON Schema", async () => {
  const parameters = { type: "object", $defs: { point: { type: "object", properties: { x: { type: "number" } }, required: ["x"] } }, properties: { at: { $ref: "#/$defs/point" } } };
  const go = { name: "go", description: "", parameters, execute: () => "gone" };
  assert.equal((await once(go, { at: { x: 1 } })).text, "gone");
  assert.equal((await once(go, { at: {} })).toolResult.cause, "invalid_arguments");
});

test("a JSON Schema that is frozen", async () => {
  const at = Object.freeze({ type: "integer", minimum: 3 });
  const go = { name: "go", description: "", parameters: Object.freeze({ type: "object", properties: Object.freeze({ at }) }), execute: () => "gone" };
  assert.equal((await once(go, { at: 3 })).text, "gone");
  assert.match((await once(go, { at: 2 })).text, /at 2 is less than 3/);
});

test("a JSON Schema that nobody can check is told as such, not as wrong arguments alone", async () => {
  const go = (/** @type {any} */ at) => ({ name: "go", description: "", parameters: { type: "object", properties: { at } }, execute: () => "gone" });
  for (const at of [{ $ref: "#/nowhere" }, { $id: "http://[" }]) {
    const { text } = await once(go(at), { at: "x" });
    assert.match(text, /the parameters of tool `go` are no JSON Schema: (Unresolved \$ref|Invalid URL)/);
  }
  assert.throws(() => tool(go({ type: "string", pattern: "(" })), /the parameters of tool `go` are no JSON Schema.*the pattern "\(": Invalid regular expression/);
});

test("zod: the schema is shown as JSON Schema, defaults and transforms reach the tool", async () => {
  const parameters = z.object({ city: z.string().describe("where"), days: z.number().default(3), when: z.string().transform((text) => text.length).optional() });
  /** @type {any[]} */
  const got = [];
  const weather = tool({ name: "weather", description: "", parameters, execute: (args) => void got.push(args) });
  /** @type {any} */
  let request;
  const model = scripted([(received) => ((request = received), call(["weather", { city: "Oslo", when: "soon" }])), "done"]);
  await readRun(new Agent({ model, tools: [weather] }).prompt("Go"));
  assert.deepEqual(got, [{ city: "Oslo", days: 3, when: 4 }]);
  const shown = request.tools[0].parameters;
  assert.equal(shown.properties.city.description, "where");
  assert.deepEqual(shown.required, ["city"]);
  assert.equal("$schema" in shown, false);
  const { text, toolResult } = await once(weather, { city: 7 });
  assert.equal(toolResult.cause, "invalid_arguments");
  assert.match(text, /city: .*string/);
});

test("zod: checks that answer later are waited for", async () => {
  const parameters = z.object({ name: z.string().refine(async (name) => { await settle(); return name !== "taken"; }, "the name is taken") });
  const make = tool({ name: "make", description: "", parameters, execute: ({ name }) => `made ${name}` });
  assert.equal((await once(make, { name: "free" })).text, "made free");
  const { text, toolResult } = await once(make, { name: "taken" });
  assert.match(text, /name: the name is taken/);
  assert.equal(toolResult.cause, "invalid_arguments");
});

test("a schema that promises in its own way is waited for too", async () => {
  const validate = (/** @type {any} */ value) => ({ then: (/** @type {any} */ done) => done({ value: { ...value, seen: true } }) });
  const parameters = { "~standard": { version: 1, vendor: "mine", jsonSchema: { input: () => ({ type: "object" }) }, validate } };
  assert.equal((await once(testTool("look", (/** @type {any} */ args) => args, { parameters }), { a: 1 })).text, '{"a":1,"seen":true}');
});

test("a tool may be an object of a class, in a list, in a record, and when it is given back", async () => {
  class Counter {
    description = "counts";
    parameters = { type: "object" };
    #count = 0;
    requiresApproval() { return this.#count > 5; }
    execute() { return (this.#count += 1); }
  }
  const counter = new Counter();
  const named = Object.assign(new Counter(), { name: "named" });
  const agent = new Agent({ model: scripted([call("count", "count"), "one", call("other"), "two"]), tools: { count: counter } });
  const shown = async () => (await agent.prompt("Go")).messages.filter(({ role }) => role === "tool_result").map(textOf);
  assert.deepEqual(await shown(), ["1", "2"]);
  agent.tools = /** @type {any} */ ({ other: agent.tools[0], named });
  assert.deepEqual(await shown(), ["3"]);
  assert.equal((await once(named)).text, "1");
});

test("tools in any list: a Set does", () => {
  const tools = /** @type {any} */ (new Set([testTool("a", () => ""), testTool("b", () => "")]));
  assert.deepEqual(new Agent({ model: scripted([]), tools }).tools.map(({ name }) => name), ["a", "b"]);
});

test("valibot, with its JSON Schema", async () => {
  const parameters = toStandardJsonSchema(v.object({ n: v.pipe(v.number(), v.minValue(3, "too small")) }));
  const count = tool({ name: "count", description: "", parameters, execute: ({ n }) => n + 1 });
  assert.equal((await once(count, { n: 4 })).text, "5");
  assert.match((await once(count, { n: 1 })).text, /n: too small/);
  misused(() => tool({ name: "bare", description: "", parameters: /** @type {any} */ (v.object({})), execute: () => "" }), /the schema of tool `bare` \(valibot\) cannot give its JSON Schema.*pass plain JSON Schema/);
});

test("tools of the AI SDK, by name", async () => {
  const tools = { look: { description: "looks", inputSchema: z.object({ at: z.string() }), execute: (/** @type {any} */ { at }, /** @type {any} */ { toolCallId, abortSignal }) => `${at} ${toolCallId} ${abortSignal.aborted}` } };
  const outcome = await readRun(new Agent({ model: scripted([call(["look", { at: "it" }]), "done"]), tools }).prompt("Go"));
  assert.equal(textOf(outcome.all("turn_end")[0].toolResults[0]), "it c1 false");
});

test("a tool knows its call, its run, its session, and what was said", async () => {
  /** @type {any} */
  let seen;
  const agent = new Agent({ model: scripted([call("look"), "done"]), sessionId: "s1", tools: [testTool("look", (/** @type {any} */ _, /** @type {any} */ context) => { seen = { ...context, said: context.messages.map((/** @type {any} */ m) => m.role) }; })] });
  const run = agent.prompt("Go", { runId: "r1" });
  await run;
  const { callId, toolName, runId, sessionId, signal, said } = seen;
  assert.deepEqual({ callId, toolName, runId, sessionId, said }, { callId: "c1", toolName: "look", runId: "r1", sessionId: "s1", said: ["user", "assistant"] });
  assert.equal(signal.aborted, false);
});

test("session state: set, read by the next tool, told as state_changed, seen by policies", async () => {
  /** @type {any[]} */
  const seen = [];
  const tools = [
    testTool("write", (/** @type {any} */ _, /** @type {any} */ { state }) => { state.set("n", 1); state.set("gone", 1); state.delete("gone"); state.delete("old"); }),
    testTool("read", (/** @type {any} */ _, /** @type {any} */ { state }) => [state.get("n"), state.get("old") ?? "none"]),
  ];
  const agent = new Agent({ model: scripted([call("write"), call("read"), "done"]), tools, sessionState: { old: true }, policies: { preTurn: [({ state }) => void seen.push(state)] } });
  const outcome = await readRun(agent.prompt("Go"));
  assert.equal(textOf(outcome.all("turn_end")[1].toolResults[0]), '[1,"none"]');
  assert.equal(outcome.all("state_changed")[0].changes.n, 1);
  assert.deepEqual(seen.slice(0, 2), [{ old: true }, { n: 1 }]);
});

test("session state that is no JSON is refused, and what was there stays", async () => {
  for (const [value, flaw] of [[new Map([[1, 2]]), "an object (Map)"], [{ n: NaN }, "NaN"], [() => 1, "a function"], [1n, "a bigint"]]) {
    const write = testTool("write", (/** @type {any} */ _, /** @type {any} */ { state }) => state.set("n", value));
    const { text, all } = await once(write, {}, { sessionState: { n: "before" } });
    assert.ok(text.includes("the session state takes JSON only: the value") && text.endsWith(`is ${flaw}`), text);
    assert.equal(all("state_changed").length, 0);
  }
});

test("what a tool does to its list of messages changes nothing else", async () => {
  const pops = testTool("pops", (/** @type {any} */ _, /** @type {any} */ context) => {
    const { messages } = context;
    messages.splice(0, 2);
    assert.equal(context.messages, messages);
    return messages.length;
  });
  const { text, result } = await once(pops);
  assert.equal(text, "0");
  assert.deepEqual(result.messages.map((/** @type {any} */ message) => message.role), ["user", "assistant", "tool_result", "assistant"]);
});

test("a decision with wrong arguments is misuse at the call, also before the first run", async () => {
  const ask = testTool("ask", () => "ran", { requiresApproval: true });
  const agent = new Agent({ model: scripted([call("ask"), "done"]), tools: [ask], approveTool: () => "approve" });
  const wrong = /** @type {any} */ ({ action: "approve", arguments: ["no object"] });
  const text = /the decision about `c1`: the `arguments` of a decision must be an object, got an array/;
  misused(() => agent.resolveTool("c1", wrong), text);
  misused(() => agent.resolveTools({ c0: "approve", c1: wrong }), text);
  const run = agent.prompt("Go");
  misused(() => agent.resolveTool("c1", wrong), text);
  assert.equal((await readRun(run)).result.stopReason, "completed");
});

test("approval: asked, approved with other arguments, refused, answered, by callback and by command", async () => {
  /** @type {any[]} */
  const ran = [];
  const ask = testTool("ask", (/** @type {any} */ args) => (ran.push(args), "ran"), { requiresApproval: true });
  const decide = async (/** @type {any} */ decision) => once(ask, { n: 1 }, { approveTool: async (/** @type {any} */ request) => { assert.deepEqual([request.toolName, request.arguments, request.requiresApproval], ["ask", { n: 1 }, true]); return decision; } });
  assert.equal((await decide("approve")).text, "ran");
  assert.equal((await decide({ action: "approve", arguments: { n: 2 } })).text, "ran");
  assert.deepEqual(ran, [{ n: 1 }, { n: 2 }]);
  assert.equal((await decide("reject")).toolResult.cause, "rejected");
  assert.match((await decide({ action: "reject", reason: "too dear" })).text, /too dear/);
  assert.deepEqual((await decide({ action: "result", content: "said for it" })).text, "said for it");
  const drawn = { content: [{ type: "text", text: "drawn" }], details: { n: [1] } };
  assert.deepEqual((await decide({ action: "result", content: drawn })).toolResult.details, { n: [1] });
  assert.equal((await decide("maybe")).toolResult.cause, "rejected");

  const agent = new Agent({ model: scripted([call("ask"), "done"]), tools: [ask] });
  const run = agent.prompt("Go");
  const requested = deferred();
  agent.subscribe((event) => { if (event.type === "tool_approval_requested") requested.resolve(); });
  requested.promise.then(() => {
    assert.deepEqual(agent.pendingApprovals.map((block) => [block.callId, block.toolName]), [["c1", "ask"]]);
    agent.resolveTool("c1", "approve");
  });
  const outcome = await readRun(run);
  assert.deepEqual(outcome.all("tool_approval_resolved").map((event) => [event.approved, event.by]), [[true, "command"]]);
  assert.deepEqual(agent.pendingApprovals, []);
});

test("a tool may say of each call whether it must be asked for", async () => {
  const pay = testTool("pay", () => "paid", { requiresApproval: (/** @type {any} */ { sum }) => sum > 10 });
  /** @type {any[]} */
  const sums = [];
  const approveTool = (/** @type {any} */ request) => (sums.push(request.arguments.sum), "approve");
  for (const sum of [5, 50]) await once(pay, { sum }, { approveTool });
  assert.deepEqual(sums, [50]);
});

test("what says whether a call must be asked for judges what the tool would get", async () => {
  const amount = z.number().default(900);
  /** @type {[any, any, boolean][]} */
  const cases = [
    [z.object({ amount }), {}, true], [z.object({ amount }), { amount: 5 }, false],
    [z.object({ sum: z.number() }).transform(({ sum }) => ({ amount: sum })), { sum: 900 }, true],
    [z.object({ amount: z.string().transform(Number) }), { amount: "5" }, false],
    // The result is not known yet.
    [z.object({ amount: z.number().transform(async (sum) => sum) }), { amount: 5 }, true],
    // Arguments that do not match are judged as they came, and never run.
    [z.object({ amount }), { amount: "much" }, false],
  ];
  for (const [parameters, args, isAsked] of cases) {
    let approvals = 0;
    const pay = tool({ name: "pay", description: "", parameters, requiresApproval: ({ amount }) => amount > 100, execute: () => "paid" });
    const { toolResult } = await once(pay, args, { approveTool: () => (approvals++, "reject") });
    assert.equal(approvals, isAsked ? 1 : 0, JSON.stringify(args));
    assert.equal(toolResult.cause, isAsked ? "rejected" : args.amount === "much" ? "invalid_arguments" : undefined);
  }
});

test("a name that every object has is a tool like any other", async () => {
  assert.equal((await once(testTool("constructor", () => "built"))).text, "built");
  const outcome = await readRun(new Agent({ model: scripted([call("toString", "__proto__"), "done"]), tools: [testTool("go", () => "")] }).prompt("Go"));
  assert.deepEqual(outcome.all("turn_end")[0].toolResults.map((/** @type {any} */ result) => result.cause), ["unknown_tool", "unknown_tool"]);
});

/** @type {[string, any, RegExp][]} */
const BAD_TOOLS = [
  ["no object", "weather", /a tool must be an object, got a string/],
  ["no name", { execute: () => "" }, /needs a `name`/],
  ["no execute", { name: "go" }, /tool `go` needs an `execute` function, got nothing/],
  ["no function", { name: "go", execute: "x" }, /`execute` of tool `go` must be a function, got a string; leave it out if/],
  ["a schema that is a text", { name: "go", parameters: "object", execute: () => "" }, /parameters of tool `go` must be a JSON Schema object or a Standard Schema.*got a string/],
  ["a schema of a library without a standard, as zod 3 was", { name: "go", parameters: new (class ZodObject { _def = {}; parse() {} })(), execute: () => "" }, /must be a JSON Schema object or a Standard Schema \(zod 4, .*got an object \(ZodObject\)/],
  ["a schema of an unknown type", { name: "go", parameters: { type: "objekt" }, execute: () => "" }, /no JSON Schema: `type` is "objekt"/],
  ["a schema whose properties are a list", { name: "go", parameters: { type: "object", properties: [] }, execute: () => "" }, /`properties` must be an object, got an array/],
  ["a schema that contains itself", { name: "go", parameters: (() => { const schema = /** @type {any} */ ({ type: "object" }); schema.properties = { self: schema }; return schema; })(), execute: () => "" }, /no JSON/],
];
for (const [name, bad, pattern] of BAD_TOOLS) {
  test(`a tool that is none is refused where it is made, and by the agent: ${name}`, () => {
    misused(() => tool(bad), pattern);
    misused(() => new Agent({ model: scripted([]), tools: [bad] }), pattern);
  });
}

test("what a schema of plain words says of arguments, the quick way and the long way", async () => {
  const types = { title: "T", type: "object", properties: { n: { type: "integer" }, s: { type: "string", enum: ["a", "b"] }, list: { type: "array", items: { type: "number" } }, deep: { type: "object", properties: { flag: { type: "boolean" }, none: { type: "null" } }, required: ["flag"], additionalProperties: false } }, required: ["n"] };
  /** @type {[any, boolean][]} */
  const cases = [
    [{ n: 1 }, true], [{ n: 1.0, s: "a", list: [1, 2.5], deep: { flag: false, none: null } }, true], [{ n: -3, more: "yes" }, true], [{ n: 1, list: [] }, true],
    [{}, false], [{ n: 1.5 }, false], [{ n: "1" }, false], [{ n: null }, false], [{ n: 1, s: "c" }, false], [{ n: 1, s: 1 }, false], [{ n: 1, list: [1, "2"] }, false],
    [{ n: 1, list: { 0: 1 } }, false], [{ n: 1, deep: [] }, false], [{ n: 1, deep: {} }, false], [{ n: 1, deep: { flag: true, extra: 1 } }, false], [{ n: 1, deep: null }, false],
    [{ n: 1, deep: { flag: true, none: 0 } }, false], [JSON.parse('{"n":1,"__proto__":{"s":"c"}}'), true], [JSON.parse('{"__proto__":{"n":1}}'), false],
  ];
  // A keyword that the fast check does not know sends the same schema to the validator.
  for (const parameters of [types, { ...types, minProperties: 0 }, { ...types, type: ["object"] }, { ...types, properties: { ...types.properties, list: { type: ["array"], items: { type: "number" } } } }]) {
    for (const [args, fits] of cases) {
      let ran = false;
      const agent = new Agent({ model: scripted([call(["check", args]), "done"]), tools: [{ name: "check", description: "", parameters, execute: () => ((ran = true), "ok") }] });
      const outcome = await readRun(agent.prompt("Go"));
      assert.equal(ran, fits, JSON.stringify(args));
      assert.equal(outcome.all("tool_execution_end")[0].result.cause, fits ? undefined : "invalid_arguments", JSON.stringify(args));
    }
  }
});

test("schemas that are strange further down are the validator's, and nothing throws", async () => {
  for (const odd of [true, null, {}, { type: ["integer", "null"] }, { type: "array", items: [{ type: "string" }] }, { type: "integer", enum: 1 }, { type: "object", properties: null }]) {
    const agent = new Agent({ model: scripted([call(["check", { x: 1 }]), "done"]), tools: [{ name: "check", description: "", parameters: { type: "object", properties: { x: odd } }, execute: () => "ok" }] });
    const outcome = await readRun(agent.prompt("Go"));
    assert.equal(outcome.result.text, "done", JSON.stringify(odd));
  }
});

test("an empty `content` beside other members is a value like any other", async () => {
  const texts = async (/** @type {any} */ value) => {
    const { messages } = await new Agent({ model: scripted([call("list"), "done"]), tools: [testTool("list", () => value)] }).prompt("Go");
    return messages.find(({ role }) => role === "tool_result")?.content.map((/** @type {any} */ { text }) => text);
  };
  assert.deepEqual(await texts({ content: [], total: 7 }), ['{"content":[],"total":7}']);
  assert.deepEqual(await texts({ content: [], details: 7 }), []);
  assert.deepEqual(await texts({ content: [] }), []);
  assert.deepEqual(await texts({ content: [{ type: "text", text: "seen" }], total: 7 }), ["seen"]);
});

test("the list of an agent's tools is not the place to put one: it says so", () => {
  const agent = new Agent({ model: scripted([]), tools: [testTool("one", () => "")] });
  assert.throws(() => agent.tools.push(testTool("two", () => "")), TypeError);
  agent.tools = [...agent.tools, testTool("two", () => "")];
  assert.deepEqual(agent.tools.map(({ name }) => name), ["one", "two"]);
});

test("a Standard Schema of which nobody can make JSON Schema checks all the same, and a warning says what the model does not see", async (t) => {
  const warned = t.mock.method(console, "warn", () => {});
  const validate = (/** @type {any} */ { n }) => (n > 0 ? { value: { n: n * 10 } } : { issues: [{ message: "must be above 0", path: ["n"] }] });
  const parameters = { "~standard": { version: /** @type {const} */ (1), vendor: "mine", validate } };
  const ten = tool({ name: "ten", description: "", parameters, execute: ({ n }) => n });
  assert.equal((await once(ten, { n: 2 })).text, "20");
  assert.match((await once(ten, { n: 0 })).text, /n: must be above 0/);
  const answer = await new Agent({ model: scripted(['{"n":3}']), output: parameters }).prompt("Go");
  assert.deepEqual(answer.output, { n: 30 });
  assert.match(warned.mock.calls[0]?.arguments[0], /the schema of tool `ten` \(mine\) cannot give its JSON Schema, which the model needs/);
  assert.equal(warned.mock.callCount(), 2);
});

test("a schema that has no JSON Schema is refused with the tool's name", () => {
  misused(() => tool({ name: "book", description: "", parameters: z.object({ day: z.date() }), execute: () => "" }), /the schema of tool `book` \(zod\) cannot give its JSON Schema.*Date cannot be represented/);
});

test("very many updates in a row are joined: none is lost, and 128 are told at most", async () => {
  const tool = testTool("work", (/** @type {any} */ _, /** @type {any} */ { update }) => {
    for (let i = 0; i < 10_000; i++) update(`${i} `);
    return "ok";
  });
  const { all } = await readRun(new Agent({ model: scripted([call("work"), "Done."]), tools: [tool] }).prompt("Go."));
  const updates = all("tool_execution_update").map(({ update }) => update);
  assert.equal(updates.length, 128);
  assert.equal(updates.join(""), Array.from({ length: 10_000 }, (_, i) => `${i} `).join(""));
});
