// Agents inside agents: three levels deep, in parallel, put to sleep at every event, asked about, stopped, counted.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, custom, misused, misusedLater, settle, subagent, tool } from "../kit.mjs";

const USED = { input: 10, output: 5, total: 15 };

/** A model that asks for these calls first, and then repeats what came of them. */
const plan = (callsFor) => custom("plan", async function* ({ messages }) {
  const last = messages.findLastIndex(({ role }) => role === "user");
  const results = messages.slice(last).filter(({ role }) => role === "tool_result");
  if (results.length > 0) {
    const text = results.map(({ content }) => content[0].text).join("+");
    yield* [{ type: "text_start", contentIndex: 0 }, { type: "text_delta", contentIndex: 0, delta: text }, { type: "text_end", contentIndex: 0 }];
    yield { type: "done", stopReason: "stop", usage: USED };
    return;
  }
  const calls = callsFor(messages[last].content[0].text);
  for (const [index, [callId, toolName, prompt]] of calls.entries()) {
    yield { type: "tool_call_start", contentIndex: index, callId, toolName };
    yield { type: "tool_call_delta", contentIndex: index, delta: JSON.stringify({ prompt }) };
    yield { type: "tool_call_end", contentIndex: index };
  }
  yield { type: "done", stopReason: "tool_use", usage: USED };
});

/** The root asks two `mid`s at once, each asks a `leaf`, each leaf works. */
function options(done, { approvals, more } = {}) {
  const work = tool({
    name: "work", description: "", requiresApproval: true, idempotent: true,
    parameters: { type: "object", properties: { prompt: { type: "string" } } },
    execute({ prompt }) {
      done.push(prompt);
      return `did ${prompt}`;
    },
  });
  const leaf = () => new Agent({ model: plan((prompt) => [["w", "work", prompt]]), tools: [work] });
  const mid = () => new Agent({ model: plan((prompt) => [["k", "leaf", prompt]]), tools: [subagent({ name: "leaf", description: "", agent: leaf, approvals })] });
  return { model: plan(() => [["c1", "mid", "a"], ["c2", "mid", "b"]]), tools: [subagent({ name: "mid", description: "", agent: mid })], ...more };
}

const nameOf = (event) => (event.type === "subagent_event" ? `${event.path.join("/")} ${event.event.type}` : event.type);

/** @param {number} times */
async function silence(times) {
  for (let i = 0; i < times; i++) await settle();
}

/** Waits until so many questions are open. */
async function asked(agent, count = 2) {
  while (agent.pendingApprovals.length < count) await settle();
}

/** Waits for an event. */
const heard = (agent, name) => new Promise((resolve) => agent.subscribe((event) => nameOf(event) === name && resolve(undefined)));

function approving(agent) {
  return (event) => {
    if (event.type === "tool_approval_requested") agent.resolve(event.id, "approve");
    if (event.type === "run_resumed") for (const { id } of event.pendingApprovals) agent.resolve(id, "approve");
  };
}

test("questions of agents inside are those of the parent, with their path", async () => {
  const done = [];
  const agent = new Agent(options(done));
  const run = agent.prompt("Go.");
  const events = [];
  agent.subscribe((event) => events.push(event));
  await asked(agent);
  const questions = agent.pendingApprovals;
  assert.deepEqual(questions.map(({ path }) => path.join("/")).sort(), ["c1/k", "c2/k"]);
  assert.deepEqual(agent.pendingQuestions, questions);
  misused(() => agent.resolveTool("w", "approve"), /several agents ask about a call `w`; answer by the id of the question: agent.resolve\(id, …\)/);
  for (const { id } of questions) {
    assert.equal(agent.resolve(id, "approve"), true);
    assert.equal(agent.resolve(id, "approve"), false);
  }
  const result = await run;
  assert.equal(result.text, "did a+did b");
  assert.deepEqual(agent.pendingApprovals, []);
  assert.equal(events.filter(({ type }) => type === "tool_approval_requested").length, 2);
  assert.equal(events.filter(({ type }) => type === "tool_approval_resolved").length, 2);
  assert.equal(result.usage.total, 150);
  assert.equal(result.usage.own.total, 30);
  assert.equal(agent.usage.total, 150);
  assert.equal(agent.usage.own.total, 30);
  await agent.prompt("Go again.", { signal: AbortSignal.abort() });
  assert.equal(agent.usage.own.total, 30);
});

test("the only question about a call is answered by the call's id, wherever it is", async () => {
  const done = [];
  const agent = new Agent({ ...options(done), model: plan(() => [["c1", "mid", "a"]]) });
  agent.subscribe((event) => event.type === "tool_approval_requested" && assert.equal(agent.resolveTool(event.callId, "approve"), true));
  assert.equal((await agent.prompt("Go.")).text, "did a");
});

test("a run with agents inside sleeps at every event; nothing is lost, nothing is done twice", async () => {
  for (const decidesBefore of [true, false]) {
    for (let kill = 0; ; kill++) {
      const done = [];
      const first = new Agent(options(done));
      const approve = approving(first);
      let seen = 0;
      /** @type {any} */
      let checkpoint;
      /** @type {string[]} */
      let before = [];
      first.subscribe((event) => {
        if (checkpoint) return;
        if (decidesBefore) approve(event);
        if (seen++ !== kill) return;
        checkpoint = JSON.parse(JSON.stringify(first.checkpoint()));
        before = [...done];
      });
      const run = first.prompt("Go.", { runId: "r" });
      for (let i = 0; i < 40 && !checkpoint; i++) await settle();
      if (!checkpoint) {
        assert.ok(seen > 40 || !decidesBefore, String(seen));
        break;
      }
      // The process ends here: nothing of it is heard any more. What it has done by now stays done.
      first.abort();
      await run;
      done.splice(0, done.length, ...before);
      const again = await Agent.restore(checkpoint, options(done));
      const told = [];
      again.subscribe((event) => told.push(nameOf(event)));
      again.subscribe(approving(again));
      const where = () => `${decidesBefore ? "decided" : "asked"}, killed after event ${kill}: ${told.join(" ")}`;
      if (!again.canContinue) {
        assert.equal(again.messages.at(-1).content[0].text, "did a+did b", where());
        continue;
      }
      const result = await Promise.race([again.continue({ runId: "r" }), silence(500).then(() => assert.fail(`it hangs: ${where()}`))]);
      const { text } = result;
      assert.equal(text, "did a+did b", where());
      assert.deepEqual([...done].sort(), ["a", "b"], where());
      if (told.length > 2) assert.equal(result.usage.total, 150, where());
    }
  }
});

test("it sleeps again before it has gone on, and after", async () => {
  const done = [];
  const first = new Agent(options(done));
  const run = first.prompt("Go.");
  await asked(first);
  const one = JSON.stringify(first.checkpoint());
  first.abort();
  await run;
  const second = await Agent.restore(one, options(done));
  assert.deepEqual(second.pendingApprovals.map(({ path }) => path.join("/")).sort(), ["c1/k", "c2/k"]);
  const two = JSON.stringify(second.checkpoint());
  assert.deepEqual(JSON.parse(two).metadata.turnwheel.children, JSON.parse(one).metadata.turnwheel.children);
  const third = await Agent.restore(two, options(done));
  const resumed = third.continue();
  await heard(third, "c2/k run_resumed");
  const three = JSON.stringify(third.checkpoint());
  third.abort();
  await resumed;
  const fourth = await Agent.restore(three, options(done));
  // Decided before it goes on.
  for (const { id } of fourth.pendingApprovals) assert.equal(fourth.resolve(id, "approve"), true);
  const { text, usage } = await fourth.continue();
  assert.equal(text, "did a+did b");
  assert.equal(usage.total, 150);
  assert.deepEqual([...done].sort(), ["a", "b"]);
});

/** Plays until both leaves ask, then does something, and returns what was told from there on. */
async function told(more, act) {
  const agent = new Agent(options([], { more }));
  const run = agent.prompt("Go.");
  await asked(agent);
  const events = [];
  agent.subscribe((event) => events.push(event));
  act(agent, events);
  await settle();
  return { agent, run, events, names: events.map(nameOf) };
}

function endsInside(names) {
  const place = (name) => {
    assert.ok(names.includes(name), `${name} is not in ${names}`);
    return names.indexOf(name);
  };
  for (const call of ["c1", "c2"]) {
    assert.ok(place(`${call}/k agent_end`) < place(`${call} tool_execution_end`), names.join(" "));
    assert.ok(place(`${call} agent_end`) < place("tool_execution_end") || place(`${call} agent_end`) < names.lastIndexOf("tool_execution_end"), names.join(" "));
  }
}

test("stopping the parent ends those inside first", async () => {
  const { run, names, events } = await told({}, (agent) => agent.abort("enough"));
  const { stopReason, usage } = await run;
  assert.equal(stopReason, "aborted");
  endsInside(names);
  assert.equal(names.filter((name) => name === "tool_approval_resolved").length, 2);
  assert.equal(usage.total, 75);
  assert.equal(events.at(-1).usage.own.total, 15);
});

test("a message cancels agents that wait for people alone, and they end first", async () => {
  const { agent, run, names } = await told({}, (agent) => agent.steer("Leave it."));
  endsInside(names);
  assert.ok(names.includes("turn_end"));
  assert.ok(agent.pendingApprovals.every(({ path }) => path.length > 0));
  agent.abort();
  await run;
  assert.deepEqual(agent.pendingApprovals, []);
});

test("a message may wait for the agents", async () => {
  const { agent, run, names } = await told({ steering: { when: "after_batch" } }, (agent) => agent.steer("And then?"));
  assert.ok(!names.includes("tool_execution_end"), names.join(" "));
  assert.equal(agent.pendingApprovals.length, 2);
  agent.abort();
  await run;
});

test("a checkpoint taken while they end has the rest of their end", async () => {
  let checkpoint;
  const { run } = await told({}, (agent) => {
    agent.subscribe((event) => {
      if (nameOf(event) === "c1/k agent_end") checkpoint ??= agent.checkpoint();
    });
    agent.steer("Leave it.");
  });
  const again = await Agent.restore(checkpoint, options([]));
  const names = [];
  again.subscribe((event) => names.push(nameOf(event)));
  const resumed = again.continue();
  await heard(again, "turn_end");
  assert.ok(names.indexOf("c1 agent_end") >= 0, names.join(" "));
  assert.ok(names.indexOf("c1 agent_end") < names.indexOf("tool_execution_end"), names.join(" "));
  again.abort();
  await resumed;
  run.abort();
  await run;
});

test("a tool that is gone leaves what had been said", async () => {
  const talk = custom("talk", async function* () {
    yield* [{ type: "text_start", contentIndex: 0 }, { type: "text_delta", contentIndex: 0, delta: "I looked at half of it." }, { type: "text_end", contentIndex: 0 }];
    yield* [{ type: "tool_call_start", contentIndex: 1, callId: "w", toolName: "work" }, { type: "tool_call_end", contentIndex: 1 }, { type: "done", stopReason: "tool_use" }];
  });
  const work = tool({ name: "work", description: "", requiresApproval: true, execute: () => "never" });
  const model = plan(() => [["c1", "mid", "a"]]);
  const first = new Agent({ model, tools: [subagent({ name: "mid", description: "", agent: () => new Agent({ model: talk, tools: [work] }) })] });
  const run = first.prompt("Go.");
  await asked(first, 1);
  const again = await Agent.restore(first.checkpoint(), { model, tools: [tool({ name: "mid", description: "", execute: () => "never" })] });
  assert.deepEqual(again.pendingApprovals, []);
  const { text } = await again.continue();
  assert.match(text, /interrupted.*I looked at half of it\./);
  first.abort();
  await run;
});

test("agents are nested as deep as the outermost allows", async () => {
  const nested = () => new Agent({ model: plan(() => [["c", "inner", "deeper"]]), tools: [subagent({ name: "inner", description: "", agent: nested })], maxDepth: 16 });
  const agent = new Agent({ model: plan(() => [["c", "inner", "deeper"]]), tools: [subagent({ name: "inner", description: "", agent: nested })], maxDepth: 3 });
  let deepest = 0;
  agent.subscribe((event) => event.type === "subagent_event" && (deepest = Math.max(deepest, event.path.length)));
  const { text } = await agent.prompt("Go.");
  assert.equal(text, "Sub-agents are nested too deep: `maxDepth` is 3.");
  assert.equal(deepest, 3);
  misused(() => new Agent({ model: plan(() => []), maxDepth: 17 }), /`maxDepth` must be at most 16, got 17/);
});

test("a checkpoint as deep as may be is read again", async () => {
  const work = tool({ name: "work", description: "", requiresApproval: true, execute: () => "done" });
  const nested = (depth) => () => new Agent(depth === 0
    ? { model: plan(() => [["w", "work", "x"]]), tools: [work] }
    : { model: plan(() => [["c", "inner", "x"]]), tools: [subagent({ name: "inner", description: "", agent: nested(depth - 1) })], maxDepth: 16 });
  const first = nested(16)();
  const run = first.prompt("Go.");
  await asked(first, 1);
  const checkpoint = JSON.stringify(first.checkpoint());
  first.abort();
  await run;
  const again = await Agent.restore(checkpoint, { model: plan(() => [["c", "inner", "x"]]), tools: [subagent({ name: "inner", description: "", agent: nested(15) })], maxDepth: 16 });
  assert.equal(again.pendingApprovals[0].path.length, 16);
  again.subscribe(approving(again));
  assert.equal((await again.continue()).text, "done");
  // One level more is nobody's checkpoint.
  let deep = JSON.parse(checkpoint);
  deep = { ...structuredClone(deep), metadata: { turnwheel: { ...structuredClone(deep.metadata.turnwheel), children: { c: deep } } } };
  await misusedLater(() => Agent.restore(deep, { model: plan(() => []), tools: [subagent({ name: "inner", description: "", agent: nested(1) })] }), /invalid checkpoint payload: its sub-agents are nested too deep/);
});

test("questions that are kept stay inside", async () => {
  const done = [];
  const agent = new Agent(options(done, { approvals: "own" }));
  const inner = new Set();
  agent.subscribe((event) => {
    if (event.type === "subagent_event" && event.event.type === "tool_approval_requested") inner.add(event.path.join("/"));
  });
  const run = agent.prompt("Go.");
  while (inner.size < 2) await settle();
  assert.deepEqual([...inner].sort(), ["c1/k", "c2/k"]);
  assert.deepEqual(agent.pendingApprovals, []);
  agent.abort();
  await run;
});

test("a call that runs an agent has the cause of the stop, whatever event the listener stops it in", async () => {
  const free = () => ({ ...options([]), model: plan(() => [["c1", "mid", "a"]]) });
  // Without questions: the tool runs at once.
  const unasked = () => {
    const work = tool({ name: "work", description: "", parameters: { type: "object", properties: { prompt: { type: "string" } } }, execute: async ({ prompt }) => `did ${prompt}` });
    const mid = () => new Agent({ model: plan((prompt) => [["w", "work", prompt]]), tools: [work] });
    return { ...free(), tools: [subagent({ name: "mid", description: "", agent: mid })] };
  };
  for (let stopAt = 0, isOver = false; !isOver; stopAt++) {
    const agent = new Agent(unasked());
    let seen = 0;
    let result;
    isOver = true;
    agent.subscribe((event) => {
      if (event.type === "tool_execution_end") result = event.result;
      if (seen++ !== stopAt) return;
      isOver = false;
      agent.abort("enough");
    });
    await agent.prompt("Go.");
    // A call that had its result by then keeps it.
    if (result) assert.ok(result.cause === "aborted" || result.content[0].text === "did a", `stopped at event ${stopAt}: ${JSON.stringify(result)}`);
  }
});
