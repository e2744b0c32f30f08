// Questions of every kind: those of tools and of budgets, in checkpoints, in sub-agents, after a steering message.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, call, custom, isOpen, misused, readRun, scripted, settle, subagent, testTool } from "../kit.mjs";

const schema = { type: "object", properties: { branch: { type: "string" } } };
const asks = (more = {}, heard = /** @type {any[]} */ ([])) => testTool("ask", async (/** @type {any} */ _, /** @type {any} */ context) => {
  const answer = await context.ask({ message: "Which branch?", schema });
  heard.push(answer);
  return JSON.stringify(answer);
}, more);

/** A model that asks for `work` for ever; each answer uses 100 tokens. */
const tireless = () => {
  let calls = 0;
  return custom("tireless", async function* () {
    yield { type: "tool_call_start", contentIndex: 0, callId: `c${calls++}`, toolName: "work" };
    yield { type: "tool_call_delta", contentIndex: 0, delta: '{"prompt":"x"}' };
    yield { type: "tool_call_end", contentIndex: 0 };
    yield { type: "done", stopReason: "tool_use", usage: { input: 60, output: 40, total: 100 } };
  });
};
const work = testTool("work", () => "done");

test("a tool asks a person, and gets what is answered", async () => {
  const agent = new Agent({ model: scripted([call("ask"), "Done."]), tools: [asks()] });
  agent.subscribe((event) => {
    if (event.type !== "question_asked") return;
    const [question] = agent.pendingQuestions;
    const { type, runId, ...shown } = event;
    assert.deepEqual(question, shown);
    assert.deepEqual([shown.kind, shown.callId, shown.toolName, shown.message, shown.schema, shown.path], ["elicitation", "c1", "ask", "Which branch?", schema, []]);
    assert.deepEqual(agent.pendingApprovals, []);
    misused(() => agent.resolve(event.id, "approve"), /a tool's: answer \{ action: "accept", content \}/);
    misused(() => agent.resolve(event.id, { raise: { usd: 1 } }), /a tool's/);
    assert.equal(agent.resolve(event.id, { action: "accept", content: { branch: "main" } }), true);
    assert.equal(agent.resolve(event.id, { action: "decline" }), false, "it has an answer");
  });
  const { all } = await readRun(agent.prompt("Go."));
  assert.equal(all("tool_execution_end")[0].result.content[0].text, '{"action":"accept","content":{"branch":"main"}}');
  assert.deepEqual(all("question_resolved").map(({ kind, callId, accepted, by, path }) => [kind, callId, accepted, by, path]), [["elicitation", "c1", true, "command", []]]);
  assert.equal(all("command_refused").length, 1);
});

test("a no is an answer, and a question ends with its call", async () => {
  /** @type {any[]} */
  const heard = [];
  const answers = [{ action: "decline" }, { action: "cancel" }, "reject"];
  const agent = new Agent({ model: scripted([call("ask", "ask", "ask"), "Done."]), tools: [asks({}, heard)] });
  agent.subscribe((event) => {
    if (event.type === "question_asked") agent.resolve(event.id, /** @type {any} */ (answers.shift()));
  });
  await agent.prompt("Go.");
  assert.deepEqual(heard, [{ action: "decline" }, { action: "cancel" }, { action: "decline" }]);

  /** @type {any[]} */
  const failed = [];
  const other = new Agent({ model: scripted([call("ask"), "Done."]), tools: [testTool("ask", (/** @type {any} */ _, /** @type {any} */ { ask }) => ask({ message: "?" }).catch((/** @type {any} */ error) => failed.push(error.message)))] });
  const run = other.prompt("Go.");
  other.subscribe((event) => event.type === "question_asked" && run.abort("enough"));
  const { all, result } = await readRun(run);
  assert.equal(result.stopReason, "aborted");
  assert.deepEqual(all("question_resolved").map(({ accepted, by }) => [accepted, by]), [[false, "abort"]]);
  assert.deepEqual(other.pendingQuestions, []);
  await settle();
  assert.deepEqual(failed, ["enough"]);
});

test("an answer that does not fit the form of a server is refused with what is wrong, and the question stays open", async () => {
  const form = { type: "object", properties: { size: { type: "string", enum: ["s", "m"] }, count: { type: "integer", default: 1 } }, required: ["size", "count"] };
  /** @type {any[]} */
  const heard = [];
  const tool = testTool("ask", async (/** @type {any} */ _, /** @type {any} */ { ask }) => void heard.push(await ask({ message: "Which?", schema: form, [Symbol.for("turnwheel.form")]: true }), await ask({ message: "How?", schema: { type: "string", pattern: "(a)\\1" }, [Symbol.for("turnwheel.form")]: true })));
  const agent = new Agent({ model: scripted([call("ask"), "Done."]), tools: [tool] });
  const run = agent.prompt("Go.");
  while (!agent.pendingQuestions[0]) await settle();
  const { id } = /** @type {any} */ (agent.pendingQuestions[0]);
  for (const content of [{ size: "xl" }, {}, null, "s", [1], { size: "s", count: "two" }]) misused(() => agent.resolve(id, { action: "accept", content: /** @type {any} */ (content) }), /the answer to question `.*` does not fit what is asked: .*(size|count|object)/);
  misused(() => agent.resolve(id, { action: "accept" }), /does not fit/);
  assert.equal(agent.pendingQuestions.length, 1);
  assert.equal(agent.resolve(id, { action: "accept", content: { size: "s" } }), true);
  while (/** @type {any} */ (agent.pendingQuestions[0])?.message !== "How?") await settle();
  // A schema that cannot be checked checks nothing.
  agent.resolve(/** @type {any} */ (agent.pendingQuestions[0]).id, { action: "accept", content: "x" });
  await run;
  assert.deepEqual(heard, [{ action: "accept", content: { size: "s" } }, { action: "accept", content: "x" }]);
});

test("wrong questions name what is wrong", async () => {
  const wrong = [undefined, {}, { message: "" }, { message: "x", shema: {} }, { message: "x", schema: 1 }, { message: "x".repeat(70_000) }];
  const tool = testTool("ask", async (/** @type {any} */ _, /** @type {any} */ { ask }) => {
    const texts = [];
    for (const question of wrong) await ask(question).catch((/** @type {any} */ error) => texts.push(error.message));
    return texts.join("\n");
  });
  const { all } = await readRun(new Agent({ model: scripted([call("ask"), "Done."]), tools: [tool] }).prompt("Go."));
  const text = all("tool_execution_end")[0].result.content[0].text;
  for (const part of [/takes \{ message, schema\? \}/, /must be a text, got nothing/, /got an empty one/, /did you mean `schema`/, /must be a JSON Schema, got/, /65536 characters/]) assert.match(text, part);
});

test("the time limit of a call stands still while a person thinks", async () => {
  /** @type {{ ms: number, wake: () => void }[]} */
  const sleeping = [];
  let now = 1_000_000;
  const host = {
    now: () => now,
    /** @param {number} ms @param {AbortSignal} signal */
    sleep: (ms, signal) => new Promise((resolve) => {
      const sleep = { ms, wake: () => resolve(undefined) };
      sleeping.push(sleep);
      signal.addEventListener("abort", () => sleeping.splice(sleeping.indexOf(sleep), 1));
    }),
  };
  const agent = new Agent({ model: scripted([call("ask"), "Done."]), tools: [asks({ timeoutMs: 100 })], host: /** @type {any} */ (host) });
  const run = agent.prompt("Go.");
  await settle();
  await settle();
  const [question] = agent.pendingQuestions;
  assert.deepEqual(sleeping.map(({ ms }) => ms), [], "its timer is gone");
  now += 1_000_000;
  agent.resolve(question.id, { action: "accept" });
  assert.equal((await run).stopReason, "completed");
});

test("steering does not wait for a person, and a question of a sub-agent rises", async () => {
  const inner = () => new Agent({ model: scripted([call("ask"), (/** @type {any} */ request) => request.messages.at(-1).content[0].text]), tools: [asks()] });
  const outer = () => new Agent({ model: scripted([call(["clerk", { prompt: "x" }]), "Done."]), tools: [subagent({ name: "clerk", description: "", agent: inner })] });
  const agent = outer();
  agent.subscribe((event) => {
    if (event.type !== "question_asked") return;
    assert.deepEqual(event.path, ["c1"]);
    agent.resolve(event.id, { action: "accept", content: "main" });
  });
  const { all } = await readRun(agent.prompt("Go."));
  assert.equal(all("tool_execution_end")[0].result.content[0].text, '{"action":"accept","content":"main"}');
  assert.equal(all("question_resolved").length, 1);

  const steered = outer();
  const run = steered.prompt("Go.");
  steered.subscribe((event) => event.type === "question_asked" && steered.steer("Never mind."));
  const { all: told, result } = await readRun(run);
  assert.equal(told("tool_execution_end")[0].result.cause, "steering");
  assert.equal(result.stopReason, "completed");
  assert.deepEqual(steered.pendingQuestions, []);
});

test("a budget asks, and is raised or not", async () => {
  for (const answer of /** @type {any[]} */ ([{ raise: { tokens: 200 } }, "reject"])) {
    const agent = new Agent({ model: tireless(), tools: [work], budget: { tokens: 350, onExceed: "ask" } });
    let asked = 0;
    agent.subscribe((event) => {
      if (event.type !== "question_asked") return;
      assert.equal(event.kind, "budget");
      misused(() => agent.resolve(event.id, "approve"), /about a budget: answer \{ raise/);
      misused(() => agent.resolve(event.id, { raise: {} }), /how much more/);
      misused(() => agent.resolve(event.id, { raise: { tokens: -1 } }), /how much more/);
      misused(() => agent.resolve(event.id, /** @type {any} */ ({ raise: { token: 1 } })), /did you mean `tokens`/);
      misused(() => agent.resolve(event.id, /** @type {any} */ ({ raise: 5 })), /`raise` must be an object, such as \{ usd: 1 \}, got a number/);
      misused(() => agent.resolve(event.id, { raise: { usd: 1 } }), /about the `tokens` of a budget: answer \{ raise: \{ tokens: … \} \}/);
      assert.equal(agent.resolve(event.id, ++asked === 1 ? answer : "reject"), true);
    });
    const { result, all } = await readRun(agent.prompt("Go."));
    const isRaised = typeof answer === "object";
    assert.equal(result.stopReason, "budget");
    assert.equal(result.usage.total, isRaised ? 500 : 300);
    assert.deepEqual(all("question_asked").map(({ budget }) => [budget.kind, budget.limit]), isRaised ? [["tokens", 350], ["tokens", 550]] : [["tokens", 350]]);
    assert.deepEqual(all("budget").filter(({ state }) => state !== "warn").map(({ state, limit }) => [state, limit]), isRaised ? [["exceeded", 350], ["raised", 550], ["exceeded", 550]] : [["exceeded", 350]]);
  }
});

test("more of a budget is no answer to a call, also before anything was asked of a budget", async () => {
  const agent = new Agent({ model: scripted([call("pay"), "done"]), tools: [{ ...work, name: "pay", requiresApproval: true }] });
  agent.subscribe((event) => {
    if (event.type !== "tool_approval_requested") return;
    misused(() => agent.resolve(event.id, { raise: { usd: 1 } }), /"approve", "reject" or \{ action/);
    assert.equal(agent.resolve("nobody asked", { raise: { usd: 1 } }), false);
    assert.equal(agent.resolve(event.id, "reject"), true);
  });
  const { result } = await readRun(agent.prompt("Go."));
  assert.equal(result.stopReason, "completed");
});

test("the question of a budget sleeps in a checkpoint", async () => {
  const options = () => ({ model: tireless(), tools: [work], budget: /** @type {any} */ ({ turns: 1, onExceed: "ask" }) });
  const first = new Agent(options());
  let saved = "";
  const run = first.prompt("Go.");
  for await (const event of run) {
    if (event.type !== "question_asked") continue;
    saved = JSON.stringify(first.checkpoint());
    break;
  }
  for (const early of [true, false]) {
    const agent = await Agent.restore(saved, options());
    const [question] = agent.pendingQuestions;
    assert.deepEqual([question?.kind, /** @type {any} */ (question).budget], ["budget", { kind: "turns", used: 1, limit: 1 }]);
    assert.deepEqual(agent.pendingApprovals, []);
    const answer = () => agent.resolve(String(question?.id), { raise: { turns: 1 } });
    if (early) assert.equal(answer(), true);
    const again = agent.continue();
    if (!early) {
      assert.equal(await isOpen(again.result), true);
      assert.equal(agent.pendingQuestions[0]?.id, question?.id);
      assert.equal(answer(), true);
    }
    agent.subscribe((event) => event.type === "question_asked" && agent.resolve(event.id, "reject"));
    const asked = [];
    for await (const event of again) if (event.type === "question_asked" && event.kind === "budget") asked.push(event.budget?.limit);
    const result = await again;
    assert.equal(result.stopReason, "budget");
    assert.equal(result.turns, 2);
    assert.deepEqual(asked, [2], "what was raised stays raised");
  }
});

test("calls over a budget are asked about before the next answer", async () => {
  const agent = new Agent({ model: tireless(), tools: [work], budget: { toolCalls: 1, onExceed: "ask" } });
  let asked = 0;
  agent.subscribe((event) => {
    if (event.type === "question_asked") agent.resolve(event.id, asked++ ? "reject" : { raise: { toolCalls: 2 } });
  });
  const { all } = await readRun(agent.prompt("Go."));
  assert.deepEqual(all("tool_execution_end").map(({ result }) => result.cause), [undefined, "budget", undefined, undefined, "budget"]);
  assert.equal(asked, 2);
});

test("a sub-agent asks for the budget around it", async () => {
  const inner = () => new Agent({ model: tireless(), tools: [work] });
  const agent = new Agent({ model: scripted([call(["clerk", { prompt: "x" }]), "Done."]), tools: [subagent({ name: "clerk", description: "", agent: inner })], budget: { tokens: 100_000, turns: 3, onExceed: "ask" } });
  /** @type {any[]} */
  const asked = [];
  agent.subscribe((event) => {
    if (event.type !== "question_asked") return;
    asked.push([event.path, event.budget?.limit]);
    agent.resolve(event.id, asked.length === 1 ? { raise: { turns: 1 } } : asked.length === 2 ? "reject" : { raise: { turns: 1 } });
  });
  const { result } = await readRun(agent.prompt("Go."));
  assert.deepEqual(asked, [[["c1"], 3], [["c1"], 4], [[], 4]]);
  assert.equal(result.text, "Done.");
});
