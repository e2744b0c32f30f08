// @ts-check
// Things that happen at the same moment: tools that end together, state, policies, queues,
// structured output, hand-overs.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, agentLoop, call, custom, readRun, scripted, testTool, textOf, transferTo } from "../kit.mjs";

/** The results of the first turn, as `text` or `error: text`. @param {any} outcome */
const results = (outcome) => outcome.all("turn_end")[0].toolResults.map((/** @type {any} */ result) => (result.isError ? `error: ${textOf(result)}` : textOf(result)));

const forever = () => new Promise(() => {});

test("tools that end at the same moment all count, also beside one that steers", async () => {
  const tools = [testTool("a", () => { agent.steer("Wait"); return "A"; }), testTool("b", async () => "B"), testTool("c", forever)];
  const agent = new Agent({ model: scripted([call("a", "b", "c"), "done"]), tools });
  const outcome = await readRun(agent.prompt("Go"));
  assert.deepEqual(results(outcome), ["A", "B", "error: tool call cancelled: user requested steering interrupt"]);
  assert.equal(outcome.all("turn_end")[0].reason, "steering_interrupt");
});

test("a tool that stops the run and then returns has its result, and its siblings were begun", async () => {
  const begun = /** @type {string[]} */ ([]);
  const tools = [
    testTool("a", async () => { begun.push("a"); agent.abort("enough"); await undefined; return "A"; }),
    testTool("b", () => { begun.push("b"); return forever(); }),
  ];
  const agent = new Agent({ model: scripted([call("a", "b")]), tools });
  const outcome = await readRun(agent.prompt("Go"));
  assert.deepEqual(begun, ["a", "b"]);
  assert.equal(results(outcome)[0], "A");
  assert.match(results(outcome)[1], /^error: /);
  assert.equal(outcome.result.stopReason, "aborted");
});

test("a listener that stops the run at the start of a tool keeps it from beginning", async () => {
  const begun = /** @type {string[]} */ ([]);
  const agent = new Agent({ model: scripted([call("a", "b")]), tools: ["a", "b"].map((name) => testTool(name, () => { begun.push(name); return forever(); })) });
  agent.subscribe((event) => void (event.type === "tool_execution_start" && event.toolName === "b" && agent.abort("not that")));
  await readRun(agent.prompt("Go"));
  assert.equal(begun.includes("b"), false);
});

test("what a tool has shown is told, also when something else ends it", async () => {
  const tools = [
    testTool("a", (/** @type {any} */ _, /** @type {any} */ { update }) => { update("one"); update("two"); return forever(); }),
    testTool("b", () => { agent.abort(); return "B"; }),
  ];
  const agent = new Agent({ model: scripted([call("a", "b")]), tools });
  const outcome = await readRun(agent.prompt("Go"));
  assert.deepEqual(outcome.all("tool_execution_update").map((event) => event.update), ["one", "two"]);
});

test("session state counts when it is set, not when the tool ends; after the end it is nobody's", async () => {
  /** @type {any} */
  let late;
  const seen = /** @type {any[]} */ ([]);
  const tools = [
    testTool("keeper", (/** @type {any} */ _, /** @type {any} */ { state }) => { late = state; state.set("k", 1); return forever(); }),
    testTool("last", (/** @type {any} */ _, /** @type {any} */ { state }) => { state.set("k", 2); state.delete("gone"); agent.steer("Go on"); }),
    testTool("reader", (/** @type {any} */ _, /** @type {any} */ { state }) => { late.set("k", 9); seen.push(state.get("k"), state.get("gone"), state.get("constructor")); }),
  ];
  const agent = new Agent({ model: scripted([call("keeper", "last"), call("reader"), "done"]), tools, sessionState: { gone: true } });
  const outcome = await readRun(agent.prompt("Go"));
  assert.deepEqual(outcome.all("state_changed").map((event) => event.changes), [{ k: 2, gone: null }]);
  assert.deepEqual(seen, [2, undefined, undefined]);
  agent.reset();
  agent.model = scripted([call("reader"), "done"]);
  await agent.prompt("Again");
  assert.deepEqual(seen.slice(3, 5), [undefined, true]);
});

test("an answer may be replaced if its calls stay, however the model wrote them", async () => {
  const odd = '{ "b": 1.0, "a": [12345678901234567890] }';
  const events = [
    { type: "tool_call_start", contentIndex: 0, callId: "x", toolName: "t" },
    { type: "tool_call_delta", contentIndex: 0, delta: odd },
    { type: "tool_call_end", contentIndex: 0 },
    { type: "done", stopReason: "tool_use" },
  ];
  const replace = (/** @type {any} */ blocks) => (/** @type {any} */ { message, toolResults }) => toolResults.length > 0 ? { inject: [{ ...message, content: [{ type: "text", text: "R" }, ...blocks(message)] }] } : undefined;
  const calls = (/** @type {any} */ { content }) => content.filter((/** @type {any} */ block) => block.type === "tool_call");
  const reworded = (/** @type {any} */ message) => calls(message).map((/** @type {any} */ block) => ({ ...block, arguments: { ...block.arguments, more: 1 } }));
  for (const [blocks, text] of /** @type {const} */ ([[calls, "R"], [(/** @type {any} */ m) => structuredClone(calls(m)), "R"], [() => [], ""], [reworded, ""]])) {
    const agent = new Agent({ model: scripted([/** @type {any} */ (events), "done"]), tools: [testTool("t", () => "T")], policies: { postTurn: [replace(blocks)] } });
    const outcome = await readRun(agent.prompt("Go"));
    assert.equal(textOf(outcome.all("turn_end")[0].message), text);
    assert.equal(textOf(agent.messages[1]), text);
  }
});

test("a policy that skips a call drops what others injected about it; what a policy changes without giving it back is nothing", async () => {
  const given = /** @type {any[]} */ ([]);
  const preDispatch = [
    (/** @type {any} */ call) => { call.arguments.mine = 1; call.arguments = { other: 1 }; return { inject: ["Mind the gap"] }; },
    (/** @type {any} */ call) => { given.push({ ...call.arguments }); return { arguments: { n: 2 } }; },
    (/** @type {any} */ call) => { given.push({ ...call.arguments }); call.arguments.n = 3; throw new Error("half-way"); },
    (/** @type {any} */ call) => { given.push({ ...call.arguments }); return call.toolName === "b" ? { skip: "not now" } : undefined; },
  ];
  const tools = ["a", "b"].map((name) => testTool(name, (/** @type {any} */ args) => JSON.stringify(args)));
  const agent = new Agent({ model: scripted([call(["a", { n: 1 }], ["b", { n: 1 }]), "done"]), tools, policies: { preDispatch } });
  const warn = console.error;
  console.error = () => {};
  const outcome = await readRun(agent.prompt("Go")).finally(() => (console.error = warn));
  assert.deepEqual(given, [1, 2, 2, 1, 2, 2].map((n) => ({ n })));
  assert.deepEqual(results(outcome), ['{"n":2}', "error: not now"]);
  assert.deepEqual(agent.messages.filter(({ role }) => role === "user").map(textOf), ["Go", "Mind the gap"]);
});

test("a policy that sees a call may put words into the model's mouth; what it injects and is no message counts for nothing", async (t) => {
  const logged = t.mock.method(console, "error", () => {});
  const answer = { role: "assistant", content: [{ type: "text", text: "I must be careful." }], provider: "", model: "", usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 }, stopReason: "stop", timestamp: 1 };
  const preDispatch = [() => ({ inject: [/** @type {any} */ (answer)] }), () => ({ inject: [/** @type {any} */ ({ role: "system" })] })];
  const { result } = await readRun(new Agent({ model: scripted([call("go"), "done"]), tools: [testTool("go", () => "went")], policies: { preDispatch } }).prompt("Go"));
  assert.deepEqual(result.messages.map((/** @type {any} */ message) => textOf(message)), ["Go", "", "went", "I must be careful.", "done"]);
  assert.match(String(logged.mock.calls[0]?.arguments[1]), /a message with role `system` cannot be an input/);
});

test("continue takes what a queue of the host's gave and no turn took", async () => {
  let queued = ["one", "two"];
  const agent = new Agent({
    model: scripted(["first", "second", "third"]), followUp: { delivery: "one_at_a_time" },
    getFollowUpMessages: () => queued.splice(0),
    policies: { postTurn: [({ turnIndex }) => (turnIndex === 1 ? { stop: "enough" } : undefined)] },
  });
  await agent.prompt("Go");
  assert.deepEqual(agent.messages.map(textOf), ["Go", "first", "one", "second"]);
  await agent.continue();
  assert.deepEqual(agent.messages.map(textOf), ["Go", "first", "one", "second", "two", "third"]);
});

const CITY = { type: "object", properties: { city: { type: "string" } }, required: ["city"], additionalProperties: false };

test("a structured answer: as JSON, between fences, by its tool, after a miss", async () => {
  for (const script of [
    ['{"city":"Oslo"}'],
    ['```json\n{ "city": "Oslo" }\n```'],
    [call(["__structured_output", { city: "Oslo" }])],
    ["Oslo, I think.", call(["__structured_output", { town: "Oslo" }]), '{"city":"Oslo"}'],
  ]) {
    const { result } = await readRun(new Agent({ model: scripted(/** @type {any} */ (script)), output: CITY }).prompt("Where?"));
    assert.deepEqual(result.output, { city: "Oslo" });
    assert.deepEqual(JSON.parse(result.text), { city: "Oslo" });
    assert.equal(result.stopReason, "completed");
  }
});

test("a structured answer that never comes is an error, after so many tries", async () => {
  const agent = new Agent({ model: scripted(["no", "no", "no", "fine"]), output: CITY, outputRetries: 1 });
  const { result } = await readRun(agent.prompt("Where?"));
  assert.equal(result.stopReason, "error");
  assert.equal(result.output, undefined);
  assert.match(result.error?.message ?? "", /no answer that fits the output schema in 2 tries/);
  agent.output = undefined;
  assert.equal((await agent.prompt("Never mind.")).output, undefined);
  assert.equal(agent.messages.at(-1)?.role, "assistant");
});

test("a structured answer may have a Standard Schema, whose value is the output", async () => {
  const schema = /** @type {any} */ ({
    "~standard": {
      version: 1, vendor: "own", jsonSchema: { input: () => CITY },
      validate: (/** @type {any} */ value) => (typeof value?.city === "string" ? { value: value.city.toUpperCase() } : { issues: [{ message: "a city, please" }] }),
    },
  });
  const { result } = await readRun(new Agent({ model: scripted(["{}", '{"city":"Oslo"}']), output: schema }).prompt("Where?"));
  assert.equal(result.output, "OSLO");
  assert.match(textOf(result.messages[2]), /a city, please/);
});

test("a transformer is told how much of the conversation is cached", async () => {
  const cachedCounts = /** @type {number[]} */ ([]);
  const note = (/** @type {any} */ { cachedMessages }) => void cachedCounts.push(cachedMessages);
  const agent = new Agent({
    model: scripted([call("t"), call("t"), "done"]), tools: [testTool("t", () => "T")], cache: { minTokens: 1, intervals: 2 },
    transformContext: (_messages, _overflow, info) => note(info),
    asyncTransformContext: async (_messages, _overflow, _signal, info) => note(info),
  });
  const outcome = await readRun(agent.prompt("A prompt of some length"));
  assert.deepEqual(outcome.all("cache_action").map((event) => event.action), ["write", "read", "write"]);
  assert.deepEqual(cachedCounts, [0, 0, 1, 1, 1, 1]);
});

test("a tool hands the conversation over; one back to where it came from is refused; a value with such a member is a value", async () => {
  const to = (/** @type {any} */ value) => [testTool("hand", () => value)];
  const over = await readRun(new Agent({ model: scripted([call("hand")]), tools: to(transferTo("bob", { reason: "knows more" })) }).prompt("Go"));
  assert.equal(over.result.stopReason, "transfer");
  assert.deepEqual(over.all("transfer_initiated").map(({ to, reason }) => [to, reason]), [["bob", "knows more"]]);
  const back = await readRun(new Agent({ model: scripted([call("hand"), "stayed"]), tools: to(transferTo("bob")), transfer: { agentName: "me", chain: ["bob"] } }).prompt("Go"));
  assert.equal(back.result.text, "stayed");
  assert.match(results(back)[0], /^error: .*bob/);
  for (const value of [{ transfer: { to: "bob", amount: 5 } }, { transfer: { to: "bob" } }, JSON.parse(JSON.stringify(transferTo("bob")))]) {
    const bank = await readRun(new Agent({ model: scripted([call("hand"), "paid"]), tools: to(value) }).prompt("Go"));
    assert.deepEqual(JSON.parse(results(bank)[0]), value);
  }
});

test("a run knows the whole conversation, also what a transformer left of it", async () => {
  const run = agentLoop(["one", "two"], { model: scripted(["three"]), transformContext: (messages) => (messages.length > 1 ? { messages: messages.slice(1) } : undefined) });
  await run;
  assert.deepEqual(run.messages.map(textOf), ["two", "three"]);
});

test("the loop takes two tools of one name and runs the first; a model that knows no tools is offered none", async () => {
  const offered = /** @type {any[]} */ ([]);
  const model = (/** @type {any} */ options) => custom("m", async function* ({ tools, messages }) {
    offered.push(tools.map((tool) => tool.name));
    if (messages.length === 1) {
      yield { type: "tool_call_start", contentIndex: 0, callId: "x", toolName: "t" };
      yield { type: "tool_call_end", contentIndex: 0 };
    }
    yield { type: "done", stopReason: "stop" };
  }, options);
  const tools = [testTool("t", () => "first"), testTool("t", () => "second")];
  assert.deepEqual(results(await readRun(agentLoop(["Go"], { model: model({}), tools }))), ["first"]);
  await agentLoop(["Go"], { model: model({ supportsTools: false, provider: "old" }), tools: [testTool("t", () => "first")] });
  assert.deepEqual(offered, [["t", "t"], ["t", "t"], [], []]);
});
