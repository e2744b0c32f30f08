// @ts-check
// The loop, over scripted models: text, tools, steering, follow-ups, the host's
// functions, subscribers, limits.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, CANCELLED, agentLoop, agentLoopContinue, call, checkRun, clock, custom, deferred, isOpen, misused, openaiCompatible, readRun, scripted, settle, testTool, textOf } from "../kit.mjs";

const user = (/** @type {string} */ text) => ({ role: "user", content: [{ type: "text", text }], timestamp: 1 });

/** Roles and texts of messages. @param {readonly any[]} messages */
const outline = (messages) => messages.map((message) => (message.role === "custom" ? `custom ${message.kind}` : `${message.role} ${textOf(message)}`.trim()));

test("a text turn: every event in its order, and the result", async () => {
  const outcome = await readRun(new Agent({ model: scripted([{ text: ["Hel", "lo"], usage: { input: 3, output: 2 } }]) }).prompt("Hi"));
  assert.deepEqual(outcome.names, ["agent_start", "turn_start", "message_start", "message_update", "message_end", "turn_end", "agent_end"]);
  assert.equal(outcome.text, "Hello");
  assert.equal(outcome.result.text, "Hello");
  assert.equal(outcome.result.stopReason, "completed");
  assert.equal(outcome.result.turns, 1);
  assert.deepEqual(outcome.result.usage, { input: 3, output: 2, cacheRead: 0, cacheWrite: 0, total: 5 });
  assert.deepEqual(outline(outcome.result.messages), ["user Hi", "assistant Hello"]);
  assert.equal("error" in outcome.result, false);
});

test("tools run at the same time, their results stand in the order of the calls", async () => {
  const gates = [deferred(), deferred(), deferred()];
  let running = 0;
  let most = 0;
  const tools = ["a", "b", "c"].map((name, i) => testTool(name, async () => {
    most = Math.max(most, ++running);
    await gates[i]?.promise;
    running -= 1;
    return name;
  }));
  const agent = new Agent({ model: scripted([call("a", "b", "c"), "done"]), tools });
  const run = agent.prompt("Go");
  agent.subscribe((event) => {
    if (event.type === "tool_execution_start" && event.toolName === "c") queueMicrotask(async () => {
      for (const i of [2, 0, 1]) { gates[i]?.resolve(); await settle(); }
    });
  });
  const outcome = await readRun(run);
  assert.equal(most, 3);
  assert.deepEqual(outcome.all("tool_execution_end").map((event) => event.toolName), ["c", "a", "b"]);
  assert.deepEqual(outcome.all("turn_end")[0].toolResults.map(textOf), ["a", "b", "c"]);
  assert.deepEqual(outline(agent.messages), ["user Go", "assistant", "tool_result a", "tool_result b", "tool_result c", "assistant done"]);
});

test("with one tool at a time the second starts when the first is done", async () => {
  for (const options of [{ toolExecution: "sequential" }, { maxConcurrentTools: 1 }]) {
    const outcome = await readRun(new Agent({ model: scripted([call("a", "b"), "done"]), tools: [testTool("a", async () => settle()), testTool("b", () => "b")], .../** @type {any} */ (options) }).prompt("Go"));
    assert.deepEqual(outcome.events.filter((event) => event.type.startsWith("tool_execution")).map((event) => `${event.toolName} ${event.type.slice(15)}`), ["a start", "a end", "b start", "b end"]);
  }
});

test("a queue of the host's is heard before the next tool, whether it answers at once or takes its time", async () => {
  for (const options of [{ toolExecution: "sequential" }, { maxConcurrentTools: 1 }]) {
    for (const takesTime of [false, true]) {
      /** @type {string[]} */
      const ran = [];
      const steering = ["not b"];
      const tools = ["a", "b"].map((name) => testTool(name, () => (ran.push(name), settle())));
      const queued = () => (ran.length ? steering.splice(0) : []);
      const getSteeringMessages = takesTime ? async () => (await settle(), queued()) : queued;
      const outcome = await readRun(new Agent({ model: scripted([call("a", "b"), "done"]), tools, getSteeringMessages, .../** @type {any} */ (options) }).prompt("Go"));
      assert.deepEqual(ran, ["a"]);
      assert.deepEqual(outcome.all("tool_execution_start").map((event) => event.toolName), ["a"]);
      assert.equal(outcome.all("turn_end")[0].reason, "steering_interrupt");
      assert.deepEqual(outline(outcome.result.messages).slice(-2), ["user not b", "assistant done"]);
    }
  }
});

test("groups of the host's own making, and an impossible one", async () => {
  const tools = ["a", "b", "c"].map((name) => testTool(name, async () => { await settle(); return name; }));
  const order = async (/** @type {any} */ toolExecution) => readRun(new Agent({ model: scripted([call("a", "b", "c"), "done"]), tools, toolExecution }).prompt("Go"));
  const outcome = await order((/** @type {any[]} */ calls) => [calls.flatMap((c, i) => (c.toolName === "c" ? [i] : [])), [0, 1]]);
  assert.deepEqual(outcome.all("tool_execution_start").map((event) => event.toolName), ["c", "a", "b"]);
  const broken = await order(() => [[0], [0, 7]]);
  assert.equal(broken.all("tool_execution_start").length, 0);
  assert.match(textOf(broken.all("turn_end")[0].toolResults[0]), /invalid partition/);
});

test("updates come before the end of their tool, and what is no JSON says so", async () => {
  const tool = testTool("count", async (/** @type {any} */ _, /** @type {any} */ context) => {
    context.update("one");
    context.update({ n: 2 });
    await settle();
    context.update(undefined);
    context.update(new Map());
    return "counted";
  });
  const outcome = await readRun(new Agent({ model: scripted([call("count"), "done"]), tools: [tool] }).prompt("Go"));
  assert.deepEqual(outcome.all("tool_execution_update").map((event) => event.update), ["one", { n: 2 }, "", "the tool's update is no JSON: the update is an object (Map)"]);
});

test("an update after the end of the tool is nothing", async () => {
  let late = () => {};
  const tool = testTool("go", (/** @type {any} */ _, /** @type {any} */ { update }) => { late = () => update("too late"); return "gone"; });
  const agent = new Agent({ model: scripted([call("go"), () => (late(), "done")]), tools: [tool] });
  assert.equal((await readRun(agent.prompt("Go"))).all("tool_execution_update").length, 0);
});

test("steering cancels the tools that run, keeps those that are done, and is in the next call", async () => {
  /** @type {any} */
  let request;
  const never = deferred();
  /** @type {any} */
  let signal;
  const model = scripted([call("quick", "stuck", "deaf"), (received) => ((request = received), "as you wish")]);
  const tools = [
    testTool("quick", async () => { await settle(); return "quick done"; }),
    testTool("stuck", (/** @type {any} */ _, /** @type {any} */ context) => { signal = context.signal; return never.promise; }),
    testTool("deaf", () => never.promise),
  ];
  const agent = new Agent({ model, tools });
  const run = agent.prompt("Go");
  const receipt = deferred();
  agent.subscribe((event) => {
    if (event.type === "tool_execution_start" && event.toolName === "deaf") agent.steer("Stop that").then(receipt.resolve);
  });
  const outcome = await readRun(run);
  const [first] = outcome.all("turn_end");
  assert.equal(first.reason, "steering_interrupt");
  assert.deepEqual(first.toolResults.map((/** @type {any} */ result) => [textOf(result), result.cause]), [
    ["quick done", undefined],
    ["tool call cancelled: user requested steering interrupt", "steering"],
    ["tool call cancelled: user requested steering interrupt", "steering"],
  ]);
  assert.equal(signal.aborted, true);
  assert.deepEqual(await receipt.promise, { delivered: true, turnIndex: 1 });
  assert.deepEqual(outline(request.messages).at(-1), "user Stop that");
  assert.equal(outcome.result.text, "as you wish");
});

test("with `immediate` steering does not wait for a tool", async () => {
  const agent = new Agent({ model: scripted([call("stuck"), "fine"]), tools: [testTool("stuck", () => new Promise(() => {}))], steering: { when: "immediate" } });
  const run = agent.prompt("Go");
  agent.subscribe((event) => { if (event.type === "tool_execution_start") agent.steer("Enough"); });
  const outcome = await readRun(run);
  assert.equal(outcome.all("turn_end")[0].reason, "steering_interrupt");
});

test("steering after a text turn, then a follow-up, each with its receipt", async () => {
  const agent = new Agent({ model: scripted(["one", "two", "three"]) });
  const run = agent.prompt("Go");
  const follow = agent.followUp("And then?");
  const steer = deferred();
  agent.subscribe((event) => {
    if (event.type === "message_end" && event.message.content[0]?.type === "text" && textOf(event.message) === "one") agent.steer("Wait").then(steer.resolve);
  });
  const outcome = await readRun(run);
  assert.deepEqual(outline(outcome.result.messages), ["user Go", "assistant one", "user Wait", "assistant two", "user And then?", "assistant three"]);
  assert.deepEqual(await steer.promise, { delivered: true, turnIndex: 1 });
  assert.deepEqual(await follow, { delivered: true, turnIndex: 2 });
});

test("a letter that nobody awaits and a letter of nothing", async () => {
  const agent = new Agent({ model: scripted(["one"]) });
  const empty = agent.steer("  ");
  await readRun(agent.prompt("Go"));
  assert.deepEqual(outline(agent.messages), ["user Go", "assistant one"]);
  assert.equal((await empty).delivered, false);
});

test("cleared queues, also before the first run", async () => {
  const agent = new Agent({ model: scripted(["one", "two"]) });
  const before = agent.steer("never");
  agent.clearQueues();
  assert.deepEqual(await before, { delivered: false, reason: "cleared" });
  const run = agent.prompt("Go");
  const follow = agent.followUp("never either");
  agent.subscribe((event) => { if (event.type === "message_end") agent.clearQueues(); });
  await readRun(run);
  assert.deepEqual(await follow, { delivered: false, reason: "cleared" });
  assert.equal(agent.messages.length, 2);
});

test("one letter at a time, or all at once", async () => {
  for (const [delivery, turns] of /** @type {const} */ ([["all", 2], ["one_at_a_time", 3]])) {
    const agent = new Agent({ model: scripted(["a", "b", "c"]), followUp: { delivery } });
    const run = agent.prompt("Go");
    agent.followUp("x");
    agent.followUp("y");
    assert.equal((await readRun(run)).result.turns, turns);
  }
});

test("continue takes what waits in the queues, steering first", async () => {
  const agent = new Agent({ model: scripted(["a", "b"]) });
  await readRun(agent.prompt("Go"));
  misused(() => agent.continue(), /cannot continue when the last message is an assistant message/);
  agent.followUp("second");
  agent.steer("first");
  await readRun(agent.continue());
  assert.deepEqual(outline(agent.messages).slice(2), ["user first", "user second", "assistant b"]);
});

test("canContinue says beforehand whether continue would throw", async () => {
  const tools = [testTool("go", () => "gone")];
  const model = () => scripted([call("go"), "b", "c"]);
  const agent = new Agent({ model: model(), tools, maxTurns: 1 });
  const agrees = (/** @type {any} */ one, /** @type {boolean} */ can) => {
    assert.equal(one.canContinue, can);
    if (!can) assert.throws(() => one.continue());
  };
  agrees(agent, false);
  const run = agent.prompt("Go");
  agrees(agent, false);
  /** @type {string[]} */
  const saved = [];
  agent.subscribe((event) => void saved.push(JSON.stringify(agent.checkpoint()), event.type));
  assert.equal((await run).stopReason, "max_turns");
  agrees(agent, true);
  assert.equal((await agent.continue()).text, "b");
  agrees(agent, false);
  agent.followUp("more");
  agrees(agent, true);
  agent.clearQueues();
  agrees(agent, false);
  const before = (/** @type {string} */ type) => Agent.restore(saved[saved.indexOf(type) - 1] ?? "", { model: scripted(["c"]), tools });
  agrees(await before("turn_start"), true);
  agrees(await before("tool_execution_start"), true);
  const ended = await Agent.restore(saved.at(-2) ?? "", { model: model() });
  agrees(ended, false);
  agent.steer("x");
  agent[Symbol.dispose ?? Symbol.for("Symbol.dispose")]();
  agrees(agent, false);
});

test("the host's own queues are asked", async () => {
  const steering = ["look here"];
  const agent = new Agent({
    model: scripted(["a", "b", "c"]),
    getSteeringMessages: async () => steering.splice(0),
    getFollowUpMessages: () => (agent.messages.length < 5 ? [{ role: "user", content: [{ type: "text", text: "more" }], timestamp: 5 }] : []),
  });
  await readRun(agent.prompt("Go"));
  assert.deepEqual(outline(agent.messages), ["user Go", "assistant a", "user look here", "assistant b", "user more", "assistant c"].slice(0, agent.messages.length));
});

test("an unknown tool, invalid arguments, a tool that throws, one that rejects: errors for the model, siblings go on", async () => {
  const thrown = new Error("it broke");
  const tools = [
    testTool("throws", () => { throw thrown; }),
    testTool("rejects", async () => { throw "no reason"; }),
    { name: "checks", description: "", parameters: { type: "object", properties: { n: { type: "integer", minimum: 3 } }, required: ["n"] }, execute: () => "never" },
    testTool("works", () => "worked"),
  ];
  const agent = new Agent({ model: scripted([call("nope", ["checks", { n: 1 }], ["checks", {}], "throws", "rejects", "works"), "done"]), tools });
  const outcome = await readRun(agent.prompt("Go"));
  const results = outcome.all("turn_end")[0].toolResults;
  assert.deepEqual(results.map((/** @type {any} */ result) => [result.cause, result.isError]), [["unknown_tool", true], ["invalid_arguments", true], ["invalid_arguments", true], ["threw", true], ["threw", true], [undefined, false]]);
  const texts = results.map(textOf);
  assert.match(texts[0], /nope.*throws.*works/s);
  assert.match(texts[1], /n.*3/);
  assert.match(texts[2], /"n"|`n`/);
  assert.match(texts[3], /it broke/);
  assert.match(texts[4], /no reason/);
  assert.deepEqual(outcome.all("tool_execution_start").map((event) => event.toolName), ["throws", "rejects", "works"]);
  assert.equal(outcome.result.stopReason, "completed");
});

test("a fatal tool ends the run with what it threw", async () => {
  const thrown = new Error("the disk is full");
  const outcome = await readRun(new Agent({ model: scripted([call("save"), "never"]), tools: [testTool("save", () => { throw thrown; }, { fatal: true })] }).prompt("Go"));
  assert.equal(outcome.result.stopReason, "error");
  assert.equal(outcome.result.error.code, "tool");
  assert.equal(outcome.result.error.cause, thrown);
});

test("the cause of an error is what was thrown for it, however much was thrown before", async () => {
  const grumble = testTool("grumble", () => { throw new Error("no"); });
  const refused = await new Agent({ model: scripted([call("grumble"), { error: { code: "auth", message: "no such key" } }]), tools: [grumble] }).prompt("Go");
  assert.deepEqual([refused.error?.message, refused.error?.cause], ["no such key", undefined]);
  let tries = 0;
  const model = custom("m", async function* () { throw Object.assign(new Error(`number ${++tries}.`), { code: tries < 100 ? "network" : "auth" }); });
  const { error } = await new Agent({ model, retry: ({ code }) => code === "network" && 0 }).prompt("Go");
  assert.deepEqual([error?.code, /** @type {any} */ (error?.cause).message], ["auth", "number 100."]);
});

test("CANCELLED ends the run as by abort", async () => {
  const outcome = await readRun(new Agent({ model: scripted([call("stop", "other"), "never"]), tools: [testTool("stop", () => CANCELLED), testTool("other", () => new Promise(() => {}))] }).prompt("Go"));
  assert.equal(outcome.result.stopReason, "aborted");
  assert.equal(outcome.all("turn_end")[0].reason, "aborted");
});

test("a tool's time limit is an error result", async () => {
  const { host } = clock();
  const outcome = await readRun(new Agent({ model: scripted([call("slow"), "done"]), host, tools: [testTool("slow", () => new Promise(() => {}), { timeoutMs: 50 })] }).prompt("Go"));
  assert.equal(outcome.all("turn_end")[0].toolResults[0].cause, "timeout");
  assert.equal(outcome.result.stopReason, "completed");
});

test("maxTurns: 0 calls nobody, 1 stops before the second call, Infinity does not stop", async () => {
  const make = (/** @type {number} */ maxTurns) => new Agent({ model: scripted([...Array.from({ length: 120 }, () => call("go")), "done"]), tools: [testTool("go", () => "gone")], maxTurns });
  const none = await readRun(make(0).prompt("Go"));
  assert.deepEqual([none.result.stopReason, none.result.turns], ["max_turns", 0]);
  assert.equal(none.all("turn_end")[0].message, null);
  const one = await readRun(make(1).prompt("Go"));
  assert.deepEqual([one.result.stopReason, one.result.turns, one.result.error], ["max_turns", 1, undefined]);
  assert.equal((await make(Infinity).prompt("Go")).turns, 121);
  assert.equal((await new Agent({ model: scripted([...Array.from({ length: 120 }, () => call("go"))]), tools: [testTool("go", () => "gone")] }).prompt("Go")).turns, 100);
});

test("convertToLlm is asked once per message; custom messages are kept and not sent", async () => {
  /** @type {any[]} */
  const requests = [];
  /** @type {string[]} */
  const seen = [];
  const agent = new Agent({
    model: scripted([(r) => (requests.push(r), call("go")), (r) => (requests.push(r), "done")]),
    tools: [testTool("go", () => "gone")],
    convertToLlm(message) {
      seen.push(message.role);
      if (message.role === "custom") return message.kind === "note" ? { role: "user", content: [{ type: "text", text: `note: ${message.data}` }], timestamp: 0 } : null;
      return message;
    },
  });
  const outcome = await readRun(agent.prompt([user("Go"), { role: "custom", kind: "note", data: "x", timestamp: 0 }, { role: "custom", kind: "hidden", data: null, timestamp: 0 }]));
  assert.deepEqual(outline(outcome.result.messages).slice(0, 3), ["user Go", "custom note", "custom hidden"]);
  assert.deepEqual(requests.map((request) => request.messages.map(textOf).filter(Boolean).join("|")), ["Go\nnote: x", "Go\nnote: x|gone"].map((text, i) => requests[i].messages.length === (i === 0 ? 1 : 3) ? text : text.replace("\n", "|")));
  assert.deepEqual(seen, ["user", "custom", "custom", "assistant", "tool_result"]);
});

test("transformContext: a view is for one request, an object replaces the history", async () => {
  /** @type {number[]} */
  const sizes = [];
  const model = scripted([1, 2, 3].map((n) => (/** @type {any} */ request) => (sizes.push(request.messages.length), `answer ${n}`)));
  /** @type {any} */
  let answer = (/** @type {readonly any[]} */ messages) => messages.slice(-1);
  const agent = new Agent({ model, transformContext: (messages) => answer(messages) });
  await readRun(agent.prompt("one"));
  const view = await readRun(agent.prompt("two"));
  assert.deepEqual(sizes, [1, 1]);
  assert.equal(agent.messages.length, 4);
  assert.equal(view.all("context_compacted").length, 0);
  answer = (/** @type {readonly any[]} */ messages) => ({ messages: [user("summary"), ...messages.slice(-1)], report: { text: "shorter", tokensBefore: 9, tokensAfter: 4 } });
  const replaced = await readRun(agent.prompt("three"));
  assert.deepEqual(outline(agent.messages), ["user summary", "user three", "assistant answer 3"]);
  assert.deepEqual(replaced.all("context_compacted")[0].report, { text: "shorter", droppedCount: 3, tokensBefore: 9, tokensAfter: 4, overflow: false });
  assert.deepEqual(outline(replaced.result.messages), ["user three", "assistant answer 3"]);
});

test("a transformer may work on the list that it receives: that is a view, and no change of the history", async () => {
  const splices = (/** @type {any} */ messages) => (messages.splice(0, messages.length - 1), messages);
  const ignored = (/** @type {any} */ messages) => void messages.reverse();
  for (const [transform, seen] of /** @type {[any, number[]][]} */ ([[splices, [1, 1]], [ignored, [1, 3]]])) {
    for (const name of ["transformContext", "asyncTransformContext"]) {
      /** @type {number[]} */
      const sizes = [];
      const model = scripted([1, 2].map((n) => (/** @type {any} */ request) => (sizes.push(request.messages.length), `answer ${n}`)));
      const given = name === "transformContext" ? transform : async (/** @type {any} */ messages) => transform(messages);
      const agent = new Agent({ model, [name]: given });
      await readRun(agent.prompt("one"));
      await readRun(agent.prompt("two"));
      assert.deepEqual(sizes, seen, name);
      assert.deepEqual(outline(agent.messages), ["user one", "assistant answer 1", "user two", "assistant answer 2"], name);
    }
  }
});

test("two transformers that replace the history: each reports what it dropped", async () => {
  const agent = new Agent({
    model: scripted(["done"]), messages: Array.from({ length: 10 }, (_, i) => user(`${i}`)),
    asyncTransformContext: async (messages) => ({ messages: messages.slice(-5), report: {} }),
    transformContext: (messages) => ({ messages: messages.slice(-3), report: {} }),
  });
  const { all } = await readRun(agent.prompt("one"));
  assert.deepEqual(all("context_compacted").map(({ report }) => report.droppedCount), [6, 2]);
});

test("a queue of the host that fails counts as empty, and says so on the console", async (t) => {
  const told = t.mock.method(console, "error", () => {});
  const fails = () => { throw new Error("the queue is down"); };
  const queues = [fails, async () => fails(), () => /** @type {any} */ ([{ role: "user" }])];
  for (const getSteeringMessages of queues) {
    const { result } = await readRun(new Agent({ model: scripted(["done"]), getSteeringMessages }).prompt("one"));
    assert.equal(result.text, "done");
    assert.match(told.mock.calls.at(-1)?.arguments[0], /`getSteeringMessages` failed and counts as no messages/);
  }
});

test("onError hears of a run that cannot begin, and nothing that it does changes that", async () => {
  const model = openaiCompatible("m", { baseUrl: "http://localhost/v1", compat: /** @type {any} */ ({ cacheTtl: "1h" }) });
  const fails = () => { throw new Error("no hook today"); };
  /** @type {any[]} */
  const seen = [];
  const onError = (/** @type {any} */ context) => void seen.push(context);
  const agent = new Agent({ model, hooks: [{ onError: fails }, { onError: async () => fails() }, {}, { onError }] });
  const { result } = await readRun(agent.prompt("one", { runId: "r1" }));
  assert.equal(result.error.code, "misuse");
  assert.deepEqual(seen, [{ runId: "r1", sessionId: agent.sessionId, turnIndex: 0, error: result.error.info }]);
});

test("asyncTransformContext goes first, and may fail", async () => {
  /** @type {string[]} */
  const order = [];
  const agent = new Agent({
    model: scripted(["fine", "never"]),
    asyncTransformContext: async (messages) => { order.push(`async ${messages.length}`); await settle(); if (messages.length > 2) throw new Error("no summary today"); },
    transformContext: (messages) => void order.push(`sync ${messages.length}`),
  });
  await readRun(agent.prompt("one"));
  assert.deepEqual(order, ["async 1", "sync 1"]);
  const outcome = await readRun(agent.prompt("two"));
  assert.equal(outcome.result.error.code, "hook");
  assert.match(outcome.result.error.message, /no summary today/);
});

test("a transformer that gives nonsense ends the run with a text that helps", async () => {
  for (const transformContext of [() => 7, () => ({ message: [] }), async () => []]) {
    const outcome = await readRun(new Agent({ model: scripted(["never"]), transformContext: /** @type {any} */ (transformContext) }).prompt("one"));
    assert.match(outcome.result.error.message, /context transformer .*must give/);
  }
});

test("the dynamic prompt is asked once per turn and is not kept", async () => {
  /** @type {any[]} */
  const first = [];
  let n = 0;
  const agent = new Agent({
    model: scripted([(r) => (first.push(textOf(r.messages[0])), call("go")), (r) => (first.push(textOf(r.messages[0])), "done")]),
    tools: [testTool("go", () => "gone")], dynamicSystemPrompt: () => `it is ${++n} o'clock`,
  });
  await readRun(agent.prompt("Go"));
  assert.match(first[0], /^it is 1 o'clock/);
  assert.match(first[1], /^it is 2 o'clock/);
  assert.equal(agent.messages.length, 4);
});

test("subscribers are told in order; one that throws or rejects is removed, the others hear on", async (t) => {
  const reported = t.mock.method(console, "error", () => {});
  const agent = new Agent({ model: scripted(["one", "two"]) });
  /** @type {string[]} */
  const received = [];
  agent.subscribe(() => { received.push("throws"); throw new Error("broken listener"); });
  agent.subscribe(/** @type {any} */ (async (/** @type {any} */ event) => { if (event.type === "turn_start") throw new Error("broken later"); }));
  agent.subscribe((event) => void received.push(event.type));
  const result = await agent.prompt("Go");
  assert.equal(result.stopReason, "completed");
  assert.deepEqual(received, ["throws", "agent_start", "turn_start", "message_start", "message_update", "message_end", "turn_end", "agent_end"]);
  assert.equal(reported.mock.callCount(), 2);
});

test("subscribing and unsubscribing inside a dispatch", async () => {
  const agent = new Agent({ model: scripted(["one"]) });
  /** @type {string[]} */
  const received = [];
  const stopFirst = agent.subscribe((event) => {
    received.push(`first ${event.type}`);
    if (event.type === "turn_start") {
      stopSecond();
      agent.subscribe((event) => void received.push(`third ${event.type}`));
      stopFirst();
    }
  });
  const stopSecond = agent.subscribe((event) => void received.push(`second ${event.type}`));
  await agent.prompt("Go");
  assert.deepEqual(received.slice(0, 5), ["first agent_start", "second agent_start", "first turn_start", "second turn_start", "third message_start"]);
  assert.deepEqual([...new Set(received.slice(4).map((line) => line.split(" ")[0]))], ["third"]);
});

test("what a subscriber does to a message keeps no call from running", async () => {
  for (const spoil of [(/** @type {any} */ message) => (message.content.length = 0), (/** @type {any} */ message) => delete message.content]) {
    const agent = new Agent({ model: scripted([call("go", "go"), "done"]), tools: [testTool("go", () => "gone")] });
    agent.subscribe((event) => void (event.type === "message_end" && event.message.stopReason === "tool_use" && spoil(event.message)));
    /** @type {any[]} */
    const received = [];
    agent.subscribe((event) => void received.push(event));
    const { text } = await agent.prompt("Go");
    assert.deepEqual(received.find(({ type }) => type === "tool_calls_proposed").calls.map((/** @type {any} */ { callId }) => callId), ["c1", "c2"]);
    assert.deepEqual([received.filter(({ type }) => type === "tool_execution_end").length, text], [2, "done"]);
  }
});

test("what a subscriber does at turn_start counts before the model is called", async () => {
  const agent = new Agent({ model: scripted(["never"]) });
  const run = agent.prompt("Go");
  let called = false;
  agent.model = scripted([() => ((called = true), "never")]);
  agent.subscribe((event) => { if (event.type === "turn_start") run.abort(); });
  const outcome = await readRun(run);
  assert.equal(outcome.result.stopReason, "aborted");
  assert.equal(called, false);
});

test("who hears of the end may begin the next run at once", async () => {
  const agent = new Agent({ model: scripted(["one", "two"]) });
  const next = deferred();
  const stop = agent.subscribe((event) => {
    if (event.type !== "agent_end") return;
    stop();
    assert.equal(agent.isRunning, false);
    next.resolve({ run: agent.prompt("And?") });
  });
  await readRun(agent.prompt("Go"));
  const { run } = await next.promise;
  assert.equal((await run).text, "two");
  assert.deepEqual(outline(agent.messages), ["user Go", "assistant one", "user And?", "assistant two"]);
});

test("for await and await, in either order, both at once, or neither", async () => {
  const agent = new Agent({ model: scripted(["a", "b", "c", "d"]) });
  assert.equal((await agent.prompt("1")).text, "a");
  const both = agent.prompt("2");
  const [events, result] = await Promise.all([Array.fromAsync ? collect(both) : collect(both), both]);
  checkRun(events, result);
  const run = agent.prompt("3");
  await run.result;
  agent.prompt("4");
  await agent.waitForIdle();
  assert.equal(agent.messages.length, 8);
});

/** @param {any} run */
async function collect(run) {
  const events = [];
  for await (const event of run) events.push(event);
  return events;
}

test("a run has one iterator, and textStream is one", async () => {
  const agent = new Agent({ model: scripted([{ text: ["a", "b", "c"] }, "x", { text: ["d", "e"] }]) });
  let text = "";
  const run = agent.prompt("1");
  for await (const piece of run.textStream) text += piece;
  assert.equal(text, "abc");
  misused(() => run[Symbol.asyncIterator](), /iterated once/);
  const twice = agent.prompt("2");
  twice[Symbol.asyncIterator]();
  await assert.rejects(async () => { for await (const _ of twice.textStream); }, /iterated once/);
  await twice;
  const left = agent.prompt("3");
  for await (const piece of left.textStream) if (piece === "d") break;
  assert.equal((await left).stopReason, "aborted");
});

test("who iterates late hears the beginning all the same, or is told that pieces are lost", async () => {
  const speak = deferred();
  const slow = custom("slow", async function* () {
    await speak.promise;
    yield { type: "text_start", contentIndex: 0 };
    yield { type: "text_delta", contentIndex: 0, delta: "a" };
    yield { type: "text_end", contentIndex: 0 };
    yield { type: "done", stopReason: "stop" };
  });
  const early = new Agent({ model: slow }).prompt("1");
  await settle();
  const hearing = readRun(early);
  speak.resolve();
  assert.deepEqual((await hearing).names, ["agent_start", "turn_start", "message_start", "message_update", "message_end", "turn_end", "agent_end"]);
  const failed = new Agent({ model: custom("broken", () => { throw new Error("no model"); }) }).prompt("2");
  await failed;
  assert.equal((await readRun(failed)).end.stopReason, "error");
  const over = new Agent({ model: scripted(["a"]) }).prompt("3");
  await over;
  misused(() => over[Symbol.asyncIterator](), /has begun to answer, and nobody kept the pieces/);
  await assert.rejects(async () => { for await (const _ of over.textStream); }, /has begun to answer/);
  // Whoever asks for the text gets all of it, whenever it is read.
  const run = new Agent({ model: scripted([{ text: ["a", "b"] }]) }).prompt("4");
  const texts = run.textStream[Symbol.asyncIterator]();
  await run;
  assert.deepEqual([await texts.next(), await texts.next(), await texts.next()].map(({ value }) => value), ["a", "b", undefined]);
});

test("an iterator may be asked ahead of the events, and is done when it was left", async () => {
  const run = new Agent({ model: scripted(["a"]) }).prompt("1");
  const iterator = run[Symbol.asyncIterator]();
  const steps = await Promise.all(Array.from({ length: 9 }, () => iterator.next()));
  assert.deepEqual(steps.map((step) => step.value?.type ?? "done"), ["agent_start", "turn_start", "message_start", "message_update", "message_end", "turn_end", "agent_end", "done", "done"]);
  const other = new Agent({ model: scripted(["a"]) }).prompt("1");
  const leaving = other[Symbol.asyncIterator]();
  const waiting = leaving.next();
  await leaving.return?.();
  assert.equal((await waiting).done || (await waiting).value.type === "agent_start", true);
  assert.deepEqual(await leaving.next(), { done: true, value: undefined });
  assert.equal((await other).stopReason, "aborted");
});

test("a slow iterator gets every event, pieces of one block joined", async () => {
  const pieces = Array.from({ length: 5000 }, (_, i) => `${i} `);
  const run = new Agent({ model: scripted([{ text: pieces }]) }).prompt("Go");
  const iterator = run[Symbol.asyncIterator]();
  const first = await iterator.next();
  await run;
  const events = [first.value];
  for (let step = await iterator.next(); !step.done; step = await iterator.next()) events.push(step.value);
  const outcome = checkRun(events, await run);
  assert.equal(outcome.text, pieces.join(""));
  assert.ok(events.length < 1100, `${events.length} events waited`);
});

test("partialArguments is one live value that grows", async () => {
  const agent = new Agent({ model: scripted([{ toolCalls: [{ toolName: "go", callId: "c1", chunks: ['{"text":"ab', 'c\\u00e9","list":[1,', '{"x":tr', 'ue}]', "}"] }] }, "done"]), tools: [testTool("go", () => "gone")] });
  const run = agent.prompt("Go");
  /** @type {any[]} */
  const seen = [];
  /** @type {Set<any>} */
  const objects = new Set();
  agent.subscribe((event) => {
    if (event.type !== "message_update" || event.delta.type !== "tool_call") return;
    const value = run.partialArguments("c1");
    objects.add(value);
    seen.push(JSON.stringify(value));
  });
  await readRun(run);
  assert.equal(objects.size, 1);
  assert.deepEqual(seen, ['{"text":"ab"}', '{"text":"abcé","list":[1]}', '{"text":"abcé","list":[1,{}]}', '{"text":"abcé","list":[1,{"x":true}]}', '{"text":"abcé","list":[1,{"x":true}]}']);
  assert.equal(run.partialArguments("nobody"), undefined);
});

test("partialArguments costs as much as the text is long", async () => {
  const time = async (/** @type {number} */ n) => {
    const chunks = ['{"text":"', ...Array.from({ length: n }, () => "0123456789"), '"}'];
    const agent = new Agent({ model: scripted([{ toolCalls: [{ toolName: "go", callId: "c1", chunks }] }, "done"]), tools: [testTool("go", () => "gone")] });
    const run = agent.prompt("Go");
    let read = 0;
    let spent = 0n;
    agent.subscribe((event) => {
      if (event.type !== "message_update" || event.delta.type !== "tool_call") return;
      const from = process.hrtime.bigint();
      if (run.partialArguments("c1")) read += 1;
      spent += process.hrtime.bigint() - from;
    });
    await run;
    assert.ok(read >= n);
    return Number(spent) / n;
  };
  await time(2000);
  const [few, many] = [await time(1000), await time(16_000)];
  assert.ok(many < few * 8 + 20_000, `${few} ns a piece for few, ${many} ns for many`);
});

test("agentLoop and agentLoopContinue", async () => {
  const outcome = await readRun(agentLoop(["Hi", user("there")], { model: scripted([(r) => `${r.systemPrompt} ${r.messages.length}`]), systemPrompt: "Be brief." }));
  assert.match(outcome.result.text, /^Be brief. [12]$/);
  const more = await readRun(agentLoopContinue([user("Hi")], { model: scripted(["Hello"]) }));
  assert.deepEqual(outline(more.result.messages), ["assistant Hello"]);
  misused(() => agentLoop(/** @type {any} */ ("Hi"), { model: scripted([]) }), /agentLoop takes an array of inputs, got a string/);
  misused(() => agentLoopContinue([], { model: scripted([]) }), /empty message history/);
  misused(() => agentLoopContinue(outcome.result.messages, { model: scripted([]) }), /last message is an assistant message/);
});

test("model, tools and system prompt changed in mid-run count from the next turn on", async () => {
  /** @type {any[]} */
  const requests = [];
  const note = (/** @type {any} */ answer) => (/** @type {any} */ request) => (requests.push(request), answer);
  const agent = new Agent({ model: scripted([note(call("old"))]), tools: [testTool("old", () => "old result")], systemPrompt: "first" });
  const run = agent.prompt("Go");
  agent.subscribe((event) => {
    if (event.type !== "message_start" || event.runId !== run.runId || requests.length > 1) return;
    agent.model = scripted([note("new")]);
    agent.tools = [testTool("fresh", () => "")];
    agent.systemPrompt = "second";
  });
  const outcome = await readRun(run);
  assert.deepEqual(requests.map((request) => [request.systemPrompt, request.tools.map((/** @type {any} */ tool) => tool.name)]), [["first", ["old"]], ["second", ["fresh"]]]);
  assert.equal(textOf(outcome.all("turn_end")[0].toolResults[0]), "old result");
  assert.equal(outcome.result.text, "new");
  assert.deepEqual(agent.tools.map((tool) => tool.name), ["fresh"]);
});

test("reset forgets history and queues, also from inside a run", async () => {
  const agent = new Agent({ model: scripted(["one", { text: ["two", "more"], usage: { input: 9 } }, { text: "three", usage: { input: 2 } }]) });
  await readRun(agent.prompt("Go"));
  const receipt = agent.steer("later");
  agent.reset();
  assert.deepEqual(agent.messages, []);
  assert.equal(agent.usage.total, 0);
  assert.deepEqual(await receipt, { delivered: false, reason: "cleared" });
  const run = agent.prompt("Again");
  const stop = agent.subscribe((event) => {
    if (event.type !== "message_update") return;
    stop();
    agent.reset();
    assert.equal(agent.isRunning, false);
    agent.prompt("Anew");
  });
  const outcome = await readRun(run);
  assert.equal(outcome.result.stopReason, "aborted");
  await agent.waitForIdle();
  assert.deepEqual(outline(agent.messages), ["user Anew", "assistant three"]);
  assert.equal(agent.usage.total, 2, "without the tokens of the run that was stopped");
});

test("dispose ends a run, settles the letters and refuses what comes after", async () => {
  const agent = new Agent({ model: scripted([call("stuck")]), tools: [testTool("stuck", () => new Promise(() => {}))] });
  const run = agent.prompt("Go");
  const receipt = agent.followUp("never");
  agent.subscribe((event) => { if (event.type === "tool_execution_start") agent[Symbol.dispose](); });
  const outcome = await readRun(run);
  assert.equal(outcome.result.stopReason, "aborted");
  assert.deepEqual(await receipt, { delivered: false, reason: "disposed" });
  misused(() => agent.prompt("Again"), /disposed of/);
  misused(() => agent.steer("Again"), /disposed of/);
  agent[Symbol.dispose]();
});

test("waitForIdle waits for the run, and not without one", async () => {
  const gate = deferred();
  const agent = new Agent({ model: scripted([call("wait"), "done"]), tools: [testTool("wait", () => gate.promise)] });
  await agent.waitForIdle();
  const run = agent.prompt("Go");
  const idle = agent.waitForIdle();
  assert.equal(await isOpen(idle), true);
  assert.equal(agent.isRunning, true);
  gate.resolve("ok");
  await idle;
  assert.equal(agent.isRunning, false);
  await run;
});

test("agent.usage is what all runs used", async () => {
  const agent = new Agent({ model: scripted([{ text: "a", usage: { input: 1, output: 2 } }, { text: "b", usage: { input: 10, output: 20, cacheRead: 5 } }]) });
  await agent.prompt("1");
  await agent.prompt("2");
  assert.deepEqual(agent.usage, { input: 11, output: 22, cacheRead: 5, cacheWrite: 0, total: 38 });
});

test("coalesceMs joins pieces; a held piece comes before any other event", async () => {
  const due = deferred();
  const host = { sleep: () => due.promise };
  const agent = new Agent({ model: scripted([{ thinking: "hm", text: ["a", "b", "c"], toolCalls: [{ toolName: "go" }] }, { text: ["d", "e"] }]), tools: [testTool("go", () => "gone")], coalesceMs: 20, host });
  const outcome = await readRun(agent.prompt("Go"));
  assert.deepEqual(outcome.all("message_update").map((event) => event.delta.delta), ["hm", "abc", "{}", "de"]);
});

test("coalesceMs lets a piece go when its time has come", async () => {
  const due = deferred();
  const gate = deferred();
  const model = { provider: "own", id: "m", async *streamFn() {
    yield { type: "start" };
    yield { type: "text_start", contentIndex: 0 };
    yield { type: "text_delta", contentIndex: 0, delta: "early" };
    await gate.promise;
    yield { type: "text_delta", contentIndex: 0, delta: " late" };
    yield { type: "done", stopReason: "stop" };
  } };
  const agent = new Agent({ model: /** @type {any} */ (model), coalesceMs: 20, host: { sleep: () => due.promise } });
  /** @type {string[]} */
  const pieces = [];
  agent.subscribe((event) => { if (event.type === "message_update") pieces.push(event.delta.delta); });
  const run = agent.prompt("Go");
  await settle();
  assert.deepEqual(pieces, []);
  due.resolve();
  await settle();
  assert.deepEqual(pieces, ["early"]);
  gate.resolve();
  await run;
  assert.deepEqual(pieces, ["early", " late"]);
});

test("includeRequests tells what the model is sent, and only then", async () => {
  for (const includeRequests of [true, false]) {
    const outcome = await readRun(new Agent({ model: scripted([call("go"), "done"]), tools: [testTool("go", () => "gone")], systemPrompt: "Be brief.", includeRequests }).prompt("Go"));
    const requestEvents = outcome.all("before_llm_call");
    assert.equal(requestEvents.length, includeRequests ? 2 : 0);
    if (includeRequests) assert.deepEqual(requestEvents.map((event) => [event.systemPrompt, event.model, outline(event.messages)]), [["Be brief.", "scripted", ["user Go"]], ["Be brief.", "scripted", ["user Go", "assistant", "tool_result gone"]]]);
  }
});

test("ids and time come from the host", async () => {
  let n = 0;
  const agent = new Agent({ model: scripted(["a", "b"]), host: { id: () => `id-${++n}`, now: () => 42 }, sessionId: "s" });
  const run = agent.prompt("Go");
  assert.equal(run.runId, "id-1");
  const outcome = await readRun(run);
  assert.deepEqual(outcome.result.messages.map((/** @type {any} */ message) => message.timestamp), [42, 42]);
  assert.equal((await agent.prompt("Go", { runId: "mine" })).runId, "mine");
});

test("a history that is given is gone on from", async () => {
  const messages = [user("Hi"), { role: "assistant", content: [{ type: "text", text: "Hello" }], provider: "x", model: "y", usage: { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, total: 2 }, stopReason: "stop", timestamp: 2 }];
  const agent = new Agent({ model: scripted([(r) => String(r.messages.length)]), messages: /** @type {any} */ (messages) });
  const outcome = await readRun(agent.prompt("And you?"));
  assert.equal(outcome.result.text, "3");
  assert.deepEqual(outline(outcome.result.messages), ["user And you?", "assistant 3"]);
  assert.equal(agent.messages.length, 4);
  assert.equal(messages.length, 2);
});

test("many agents at once do not disturb each other, also when one calls another from a rule", async () => {
  const inner = new Agent({ model: scripted(Array.from({ length: 9 }, (_, i) => `inner ${i}`)) });
  /** @type {Promise<any>[]} */
  const asked = [];
  const agents = Array.from({ length: 20 }, (_, i) =>
    new Agent({
      model: scripted([call("go"), `done ${i}`]), tools: [testTool("go", async () => { await settle(); return `r${i}`; })],
      transformContext() {
        inner.steer(`from ${i}`);
        if (!inner.isRunning) asked.push(inner.prompt("Go").result);
        else inner.abort("another one wants it");
      },
    }));
  const results = await Promise.all(agents.map((agent) => readRun(agent.prompt("Go"))));
  assert.deepEqual(results.map((outcome) => outcome.result.text), agents.map((_, i) => `done ${i}`));
  await Promise.all(asked);
});
