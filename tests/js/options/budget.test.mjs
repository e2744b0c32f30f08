// Budgets in the package; tests/budget.rs has each kind.
import assert from "node:assert/strict";
import { test } from "node:test";
import { RemoteAgent } from "../../../pkg/remote.js";
import { agentHandler } from "../../../pkg/server.js";
import { Agent, custom, misused, openai, readRun, scripted, subagent, testTool } from "../kit.mjs";

/** A model that asks for `work` for ever; each answer uses 100 tokens. */
const tireless = (seen = { calls: 0 }) => custom("tireless", async function* ({ options }) {
  const number = seen.calls++;
  if (options.toolChoice === "none") {
    yield* [{ type: "text_start", contentIndex: 0 }, { type: "text_delta", contentIndex: 0, delta: "That is all." }, { type: "text_end", contentIndex: 0 }];
    yield { type: "done", stopReason: "stop", usage: { input: 60, output: 40, total: 100 } };
    return;
  }
  yield { type: "tool_call_start", contentIndex: 0, callId: `c${number}`, toolName: "work" };
  yield { type: "tool_call_delta", contentIndex: 0, delta: JSON.stringify({ prompt: "x" }) };
  yield { type: "tool_call_end", contentIndex: 0 };
  yield { type: "done", stopReason: "tool_use", usage: { input: 60, output: 40, total: 100 } };
});
const work = testTool("work", () => "done");

test("a run ends before its budget is exceeded, and says so", async () => {
  const agent = new Agent({ model: tireless(), tools: [work], budget: { tokens: 430, warnAt: 0.5 } });
  const { result, all, end } = await readRun(agent.prompt("Go."));
  assert.equal(result.stopReason, "budget");
  assert.equal(end.usage.total, 300);
  assert.deepEqual(all("budget").map(({ state, kind, limit }) => [state, kind, limit]), [["warn", "tokens", 430], ["exceeded", "tokens", 430]]);
  assert.equal(result.error, undefined);
});

test("a run may wrap up, and calls over the budget get a result that says why", async () => {
  const agent = new Agent({ model: tireless(), tools: [work], budget: { turns: 3, toolCalls: 1, onExceed: "wrap_up" } });
  const { result, all } = await readRun(agent.prompt("Go."));
  assert.equal(result.stopReason, "budget");
  assert.equal(result.text, "That is all.");
  assert.deepEqual(all("tool_execution_end").map(({ result }) => result.cause), [undefined, "budget", "budget"]);
  assert.equal(all("tool_execution_start").length, 1);
});

test("a budget may be for all runs, raised by an assignment, and survives a restore", async () => {
  const options = { model: tireless(), tools: [work], budget: { turns: 3, scope: "agent" } };
  const agent = new Agent(options);
  assert.equal((await agent.prompt("Go.")).turns, 3);
  assert.equal((await agent.prompt("Go on.")).turns, 0);
  const again = await Agent.restore(JSON.stringify(agent.checkpoint()), options);
  assert.equal((await again.prompt("Go on.")).turns, 0);
  again.budget = { ...again.budget, turns: 5 };
  assert.equal((await again.prompt("Go on.")).turns, 2);
  again.reset();
  assert.equal((await again.prompt("Go.")).turns, 5);
  again.budget = undefined;
  assert.equal(again.budget, undefined);
});

test("sub-agents use the budget of the agent around them, three levels deep and at the same time", async () => {
  const inner = { calls: 0 };
  const leaf = () => new Agent({ model: tireless(inner), tools: [work] });
  const mid = () => new Agent({ model: tireless(inner), tools: [subagent({ name: "work", description: "", agent: leaf })] });
  const two = custom("two", async function* () {
    for (const index of [0, 1]) {
      yield { type: "tool_call_start", contentIndex: index, callId: `r${inner.calls++}`, toolName: "work" };
      yield { type: "tool_call_delta", contentIndex: index, delta: JSON.stringify({ prompt: "x" }) };
      yield { type: "tool_call_end", contentIndex: index };
    }
    yield { type: "done", stopReason: "tool_use", usage: { input: 60, output: 40, total: 100 } };
  });
  const agent = new Agent({ model: two, tools: [subagent({ name: "work", description: "", agent: mid })], budget: { tokens: 2_000, toolCalls: 50 } });
  const { result, all } = await readRun(agent.prompt("Go."));
  assert.equal(result.stopReason, "budget");
  assert.ok(result.usage.total <= 2_000, String(result.usage.total));
  assert.ok(result.usage.total >= 1_400, String(result.usage.total));
  assert.ok(all("subagent_event").some(({ event }) => event.type === "agent_end" && event.stopReason === "budget"));
});

test("what is no budget is named", () => {
  const make = (budget) => () => new Agent({ model: tireless(), budget });
  misused(make({ dollars: 1 }), /dollars/);
  misused(make({ tokens: -1 }), /budget\.tokens/);
  misused(make({ warnAt: 80 }), /`budget\.warnAt` must be between 0 and 1, got 80/);
  misused(make({ usd: -1 }), /`budget\.usd` must be a finite number from 0 on, got -1/);
  misused(make({ onExceed: "explode" }), /budget\.onExceed/);
  const unpriced = new Agent({ model: openai("gpt-x", { apiKey: "k" }), budget: { usd: 1 } });
  misused(() => unpriced.prompt("Go."), /`budget\.usd` needs the price of model `gpt-x`/);
  misused(() => {
    unpriced.budget = /** @type {any} */ (5);
  }, /budget/);
});

test("a run may have a budget of its own, which its checkpoint keeps; clients may set it where the host says so", async () => {
  const options = () => ({ model: tireless(), tools: [work], budget: { turns: 5, scope: "agent" } });
  const agent = new Agent(options());
  assert.equal((await agent.prompt("Go.", { budget: { turns: 2 } })).turns, 2);
  assert.equal((await agent.prompt("Go.")).turns, 3, "the next has what is left of the agent's");
  const first = new Agent(options());
  let checkpoint;
  first.subscribe((event) => {
    if (event.type === "tool_execution_start") checkpoint ??= JSON.stringify(first.checkpoint());
  });
  await first.prompt("Go.", { budget: { turns: 2 } });
  assert.equal((await (await Agent.restore(checkpoint, options())).continue()).turns, 2);

  misused(() => agent.prompt("Go.", { budget: { warnAt: 2 } }), /`budget.warnAt` must be between 0 and 1/);
  misused(() => agent.prompt("Go.", { budget: { scope: "agent" } }), /scope/);
  misused(() => new Agent({ model: openai("m", { apiKey: "k", baseUrl: "http://a.localhost" }) }).prompt("Go.", { budget: { usd: 1 } }), /needs the price of model/);

  const asking = new Agent({ model: tireless(), tools: [work] });
  asking.subscribe((event) => event.type === "question_asked" && asking.resolve(event.id, { raise: { turns: 1 } }) && asking.abort());
  const { all } = await readRun(asking.prompt("Go.", { budget: { turns: 1, onExceed: "ask" } }));
  assert.equal(all("question_asked").length, 1);

  for (const runOptions of /** @type {any[]} */ ([undefined, ["budget"]])) {
    const host = new Agent({ model: tireless(), tools: [work], maxTurns: 3 });
    const handler = agentHandler(host, { runOptions });
    const client = new RemoteAgent({ url: "http://a.localhost/x", fetch: (url, init) => handler(new Request(url, init)) });
    const { error, turns } = await client.prompt("Go.", { budget: { turns: 1 } });
    if (runOptions) assert.equal(turns, 1);
    else assert.match(error.message, /clients may not set `budget`; see the option `runOptions`/);
    client[Symbol.dispose]?.();
  }
});

test("a run is warned before it exceeds a budget; so is an agent inside a call, of the budget around it", async () => {
  const usage = { input: 900, output: 100, cacheRead: 0, cacheWrite: 0, total: 1_000 };
  const more = { toolCalls: [{ toolName: "look" }], usage };
  const inner = () => new Agent({ model: scripted([more, more, more, more]), tools: [testTool("look", () => "seen")] });
  const agent = new Agent({
    model: scripted([{ toolCalls: [{ toolName: "research", arguments: { prompt: "Go" } }], usage }, { text: "done", usage }]),
    tools: [subagent({ name: "research", description: "", agent: inner })], budget: { tokens: 3_500, warnAt: 0.5 },
  });
  /** @type {string[]} */
  const heard = [];
  agent.subscribe((event) => {
    const inside = /** @type {any} */ (event.type === "subagent_event" ? event.event : event);
    if (inside.type === "budget") heard.push(`${inside.state} ${inside.used}`);
  });
  await agent.prompt("Go");
  assert.deepEqual(heard.slice(0, 2), ["warn 2000", "exceeded 3000"]);
});
