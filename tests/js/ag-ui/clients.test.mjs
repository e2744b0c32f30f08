// @ts-check
// turnwheel/ag-ui, read and answered by both versions of the AG-UI client.

import assert from "node:assert/strict";
import { test } from "node:test";
import { HttpAgent } from "@ag-ui/client";
import * as old from "ag-ui-client-0.0.59";
import { frontendTools, fromAGUI, toAGUI, toAGUIResponse } from "../../../pkg/ag-ui.js";
import { serveAgents } from "./serve.mjs";
import { CLIENTS, refusal } from "./verify.mjs";
import { Agent, call, custom, deferred, misused, scripted, settle, subagent, testTool } from "../kit.mjs";

/** @type {[string, any][]} */
const HTTP_AGENTS = [["1.0.0", HttpAgent], ["0.0.59", old.HttpAgent]];

/** @param {any} run @param {any} [options] */
async function read(run, options) {
  /** @type {any[]} */
  const events = [];
  for await (const event of toAGUI(run, options)) events.push(event);
  for (const [version, verify, schemas] of CLIENTS) assert.equal(await refusal(events, verify, schemas), "", `@ag-ui/client ${version}`);
  return events;
}

/** The types of events, without repetitions. @param {any[]} events */
const typesOf = (events) => events.map(({ type }) => type).filter((type, i, all) => type !== all[i - 1]);
const pay = (/** @type {any} */ execute = ({ /** @type {any} */ n }) => `paid ${n}`) =>
  testTool("pay", execute, { requiresApproval: true, parameters: { type: "object", properties: { n: { type: "number" } } } });
const pays = (/** @type {number[]} */ ...amounts) => ({ toolCalls: amounts.map((n) => ({ callId: `p${n}`, toolName: "pay", arguments: { n } })) });

test("text, thinking and a tool, over two turns", async () => {
  const look = testTool("look", () => ({ seen: 1 }));
  const model = scripted([
    { thinking: "hm", text: ["one ", "two"], toolCalls: [{ callId: "a", toolName: "look", arguments: { at: "north" }, chunks: ['{"at":', '"north"}'] }] },
    { text: ["all ", "done"], usage: { input: 3, output: 2, cacheRead: 4 } },
  ]);
  const run = new Agent({ model, tools: [look] }).prompt("Go");
  const events = await read(run, { threadId: "chat", runId: "mine" });
  assert.deepEqual(typesOf(events), [
    "RUN_STARTED", "STEP_STARTED", "REASONING_START", "REASONING_MESSAGE_START", "REASONING_MESSAGE_CONTENT", "REASONING_MESSAGE_END", "REASONING_END",
    "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT", "STEP_FINISHED",
    "STEP_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "STEP_FINISHED", "RUN_FINISHED",
  ]);
  const [started, finished] = [events[0], events.at(-1)];
  assert.deepEqual(started, { type: "RUN_STARTED", threadId: "chat", runId: "mine", protocolVersion: "1.0" });
  assert.equal(finished.runId, "mine");
  assert.equal(finished.result.stopReason, "completed");
  assert.equal(finished.usage[0].cachedInputTokens, 4, "the input has what came from a cache");
  const { usage } = await run;
  assert.equal(finished.usage[0].inputTokens, usage.input + usage.cacheRead + usage.cacheWrite);
  const start = events.find(({ type }) => type === "TOOL_CALL_START");
  const text = events.find(({ type }) => type === "TEXT_MESSAGE_START");
  assert.equal(start.parentMessageId, text.messageId, "the text and the calls are one message");
  assert.equal(events.find(({ type }) => type === "TOOL_CALL_RESULT").content, '{"seen":1}');
});

test("a judge that accepts everything would be none: damaged streams are refused by both clients", async () => {
  const run = new Agent({ model: scripted(["Hello."]) }).prompt("Hi");
  const events = await read(run);
  for (const [, verify, schemas] of CLIENTS) {
    for (const lost of ["RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_END", "STEP_FINISHED", "RUN_FINISHED"]) {
      assert.notEqual(await refusal(events.filter(({ type }) => type !== lost), verify, schemas), "", lost);
    }
  }
});

test("signatures and metadata go along, for a thought without words too", async () => {
  const model = custom("m", async function* () {
    yield { type: "thinking_start", contentIndex: 0 };
    yield { type: "thinking_end", contentIndex: 0, signature: "sealed", redacted: true };
    yield { type: "text_start", contentIndex: 1 };
    yield { type: "text_delta", contentIndex: 1, delta: "Hi" };
    yield { type: "text_end", contentIndex: 1 };
    yield { type: "tool_call_start", contentIndex: 2, callId: "a", toolName: "nope" };
    yield { type: "tool_call_end", contentIndex: 2, metadata: { thought: "x" } };
    yield { type: "done", stopReason: "tool_use" };
  });
  const events = await read(new Agent({ model, maxTurns: 1 }).prompt("Hi"));
  const values = events.filter(({ type }) => type === "REASONING_ENCRYPTED_VALUE").map(({ subtype, encryptedValue }) => [subtype, encryptedValue]);
  assert.deepEqual(values, [["tool-call", '{"thought":"x"}'], ["message", "sealed"]]);
  assert.deepEqual(events.filter(({ type }) => type === "TOOL_CALL_ARGS").map(({ delta }) => delta), ["{}"], "a call without pieces has its arguments");
});

test("an attempt that is taken back leaves nothing open, and its ids are not used again", async () => {
  let attempts = 0;
  const model = custom("m", async function* () {
    yield { type: "text_start", contentIndex: 0 };
    yield { type: "text_delta", contentIndex: 0, delta: "Let me see" };
    yield { type: "text_end", contentIndex: 0 };
    yield { type: "tool_call_start", contentIndex: 1, callId: "a", toolName: "look" };
    if (++attempts === 1) {
      yield { type: "tool_call_delta", contentIndex: 1, delta: '{"x' };
      return yield { type: "error", error: { code: "network", message: "cut", retryable: true } };
    }
    yield { type: "tool_call_delta", contentIndex: 1, delta: '{"x":1}' };
    yield { type: "tool_call_end", contentIndex: 1 };
    yield { type: "done", stopReason: "tool_use" };
  });
  const look = testTool("look", () => "seen");
  const events = await read(new Agent({ model, tools: [look], maxTurns: 1, retry: { initialBackoffMs: 0 } }).prompt("Hi"));
  const ids = (/** @type {string} */ type, /** @type {string} */ key) => events.filter((event) => event.type === type).map((event) => event[key]);
  assert.equal(new Set(ids("TEXT_MESSAGE_START", "messageId")).size, 2);
  assert.deepEqual(ids("TOOL_CALL_START", "toolCallId"), ["a", "a~2"]);
  assert.deepEqual(ids("TOOL_CALL_RESULT", "toolCallId"), ["a", "a~2"], "each call has a result");
  const reset = events.find(({ name }) => name === "turnwheel.message_reset");
  assert.deepEqual(reset.value.messageIds, [ids("TEXT_MESSAGE_START", "messageId")[0]]);
  const retry = events.find(({ name }) => name === "turnwheel.retry_attempt");
  assert.equal(retry.value.code, "network");
});

test("errors are told in the host's words; an abort is an outcome for clients that know it", async () => {
  const busy = () => new Agent({ model: scripted([{ error: { code: "auth", message: "key sk-123" } }]) }).prompt("Hi");
  const failed = (await read(busy(), { onError: ({ code }) => `Sorry: ${code}` })).at(-1);
  assert.equal(failed.type, "RUN_ERROR");
  assert.equal(failed.message, "Sorry: auth");
  assert.equal(failed.code, "auth");
  for (const protocolVersion of ["1.0", undefined]) {
    const never = deferred();
    const run = new Agent({ model: scripted([call("wait")]), tools: [testTool("wait", () => never.promise)] }).prompt("Hi");
    const events = [];
    for await (const event of toAGUI(run, { input: { threadId: "t", runId: "r", tools: [], ...(protocolVersion && { protocolVersion }) } })) {
      events.push(event);
      if (event.type === "TOOL_CALL_END") run.abort();
    }
    const [version, verify, schemas] = /** @type {any} */ (CLIENTS[protocolVersion ? 0 : 1]);
    assert.equal(await refusal(events, verify, schemas), "", version);
    assert.deepEqual(events.at(-1)?.outcome, protocolVersion ? { type: "cancelled" } : undefined);
  }
});

test("state: a snapshot of the session, then patches, with escaped keys", async () => {
  const write = testTool("write", (/** @type {any} */ _, /** @type {any} */ { state }) => {
    state.set("a/b~c", 1);
    state.set("count", 2);
    state.delete("old");
  });
  const agent = new Agent({ model: scripted([call("write"), "Done."]), tools: [write], sessionState: { count: 1, old: true } });
  const events = await read(agent.prompt("Go"));
  assert.deepEqual(events.filter(({ type }) => type.startsWith("STATE")).map(({ snapshot, delta }) => snapshot ?? delta), [
    { count: 1, old: true },
    [{ op: "add", path: "/a~1b~0c", value: 1 }, { op: "replace", path: "/count", value: 2 }, { op: "remove", path: "/old" }],
  ]);
  // A host that keeps no state does not overwrite what the client has; the first change shows all of it.
  const late = await read(new Agent({ model: scripted([call("write"), "Done."]), tools: [write] }).prompt("Go"));
  assert.deepEqual(late.filter(({ type }) => type.startsWith("STATE")).map(({ snapshot }) => snapshot), [{ "a/b~c": 1, count: 2 }]);
});

test("questions end the response, and the next one goes on; ids are those of the questions", async () => {
  const agent = new Agent({ model: scripted([pays(1, 2), "Done."]), tools: [pay()] });
  const run = agent.prompt("Pay");
  const first = await read(run);
  const { outcome } = first.at(-1);
  assert.deepEqual(outcome.interrupts.map((/** @type {any} */ { id }) => id), agent.pendingQuestions.map(({ id }) => id));
  assert.deepEqual(outcome.interrupts.map((/** @type {any} */ { reason, toolCallId }) => [reason, toolCallId]), [["tool_call", "p1"], ["tool_call", "p2"]]);
  // Somebody who comes back meanwhile is asked the same.
  const again = await read(run);
  assert.deepEqual(typesOf(again), ["RUN_STARTED", "RUN_FINISHED"]);
  assert.deepEqual(again.at(-1).outcome, outcome);
  const [one, two] = agent.pendingQuestions;
  agent.resolve(/** @type {any} */ (one).id, "approve");
  agent.resolve(/** @type {any} */ (two).id, { action: "reject", reason: "too much" });
  const rest = await read(run);
  assert.deepEqual(typesOf(rest), ["RUN_STARTED", "CUSTOM", "STEP_STARTED", "TOOL_CALL_RESULT", "STEP_FINISHED", "STEP_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "STEP_FINISHED", "RUN_FINISHED"]);
  assert.equal(new Set([first, again, rest].map((events) => events[0].runId)).size, 3, "each response is a run of its own");
  assert.equal((await run).stopReason, "completed");
});

test("a callback that decides needs no client, and a listener may decide at once", async () => {
  const wait = deferred();
  const asked = new Agent({ model: scripted([pays(1), "Done."]), tools: [pay()], approveTool: async () => (await wait.promise, "approve") }).prompt("Pay");
  settle().then(() => wait.resolve());
  assert.equal((await read(asked)).at(-1).result.stopReason, "completed");
  const agent = new Agent({ model: scripted([pays(1), "Done."]), tools: [pay()] });
  agent.subscribe((event) => void (event.type === "tool_approval_requested" && Promise.resolve().then(() => agent.resolve(event.id, "approve"))));
  assert.equal((await read(agent.prompt("Pay"))).at(-1).result.stopReason, "completed");
});

test("agents inside calls: their events are theirs, equal call ids are told apart, their questions interrupt the run", async () => {
  const clerk = (/** @type {string} */ name) =>
    subagent({ name, description: name, agent: () => new Agent({ model: scripted([pays(1), `${name} is done.`]), tools: [pay()] }) });
  const boss = new Agent({
    model: scripted([{ toolCalls: ["ann", "bob"].map((toolName, i) => ({ callId: `c${i}`, toolName, arguments: { prompt: "Pay" } })) }, "All done."]),
    tools: [clerk("ann"), clerk("bob")],
  });
  const run = boss.prompt("Pay");
  const first = await read(run);
  const { interrupts } = first.at(-1).outcome;
  assert.deepEqual(interrupts.map((/** @type {any} */ { toolCallId, subagentRunId }) => [toolCallId, subagentRunId]), [["c0/p1", `${run.runId}/c0`], ["c1/p1", `${run.runId}/c1`]]);
  // They run at the same time. Bun may finish imports that are asked for together in any order; elsewhere they begin in that of the calls.
  const inOrder = (/** @type {any[]} */ list) => (process.versions.bun ? list.sort((a, b) => String(a.parentToolCallId).localeCompare(b.parentToolCallId)) : list);
  const started = inOrder(first.filter(({ type }) => type === "SUBAGENT_STARTED"));
  assert.deepEqual(started.map(({ name, parentToolCallId }) => [name, parentToolCallId]), [["ann", "c0"], ["bob", "c1"]]);
  const outcomes = started.map(({ subagentRunId }) => first.find((event) => event.type === "SUBAGENT_FINISHED" && event.subagentRunId === subagentRunId).outcome);
  assert.deepEqual(outcomes, interrupts.map((/** @type {any} */ { id }) => ({ type: "suspended", interruptIds: [id] })));
  if (!process.versions.bun) assert.deepEqual(first.filter(({ type }) => type === "SUBAGENT_FINISHED").map(({ outcome }) => outcome), outcomes);
  // One answer is not enough for the other.
  boss.resolve(interrupts[0].id, "approve");
  const second = await read(run);
  assert.deepEqual(second.at(-1).outcome.interrupts.map((/** @type {any} */ { id }) => id), [interrupts[1].id]);
  boss.resolve(interrupts[1].id, "reject");
  const third = await read(run);
  assert.equal(third.at(-1).result.stopReason, "completed");
  assert.deepEqual(third.filter(({ type }) => type === "SUBAGENT_STARTED").map(({ subagentRunId }) => subagentRunId), [`${run.runId}/c1`]);
  assert.ok([...first, ...second].some(({ type, delta, subagentRunId }) => type === "TEXT_MESSAGE_CONTENT" && delta === "ann is done." && subagentRunId === `${run.runId}/c0`));
});

test("a sub-agent that fails is told as such, three deep too", async () => {
  const nest = (/** @type {number} */ depth) => {
    /** @returns {any} */
    const agent = (/** @type {number} */ left) => new Agent({ model: scripted(left === 0 ? [{ error: { code: "auth", message: "no key" } }] : [{ toolCalls: [{ callId: "x", toolName: "down", arguments: { prompt: "Go" } }] }, "Up."]), tools: left === 0 ? [] : [subagent({ name: "down", description: "", agent: () => agent(left - 1) })] });
    return agent(depth);
  };
  const events = await read(nest(3).prompt("Go"));
  const started = events.filter(({ type }) => type === "SUBAGENT_STARTED");
  assert.deepEqual(started.map(({ parentSubagentRunId }) => parentSubagentRunId), [undefined, started[0].subagentRunId, started[1].subagentRunId]);
  assert.deepEqual(events.filter(({ type }) => type === "SUBAGENT_ERROR").map(({ subagentRunId, code }) => [subagentRunId, code]), [[started[2].subagentRunId, "auth"]]);
});

const ask = () => testTool("ask", async (/** @type {any} */ _, /** @type {any} */ { ask }) => JSON.stringify(await ask({ message: "Which branch?", schema: { type: "string" } })));

test("a budget, and what a tool wants to know, are questions for the client too", async () => {
  const agent = new Agent({ model: scripted([call("ask"), "Done."]), tools: [ask()], budget: { turns: 1, onExceed: "ask" } });
  const run = agent.prompt("Go");
  const [elicited] = (await read(run)).at(-1).outcome.interrupts;
  const [question] = agent.pendingQuestions;
  assert.deepEqual(elicited, {
    id: question?.id, reason: "input_required", toolCallId: "c1", message: "Which branch?",
    responseSchema: { type: "object", properties: { content: { type: "string" } }, required: ["content"] },
  });
  const answers = (/** @type {string} */ interruptId, /** @type {any} */ payload) => fromAGUI({ threadId: "t", runId: "r", resume: [{ interruptId, status: "resolved", payload }] }, { answers: ["elicitation", "budget"] }).answers;
  assert.equal(agent.resolve(elicited.id, /** @type {any} */ (answers(elicited.id, { content: "main" })[elicited.id])), true);
  const second = await read(run);
  assert.equal(second.find(({ type }) => type === "TOOL_CALL_RESULT").content, '{"action":"accept","content":"main"}');
  const [budget] = second.at(-1).outcome.interrupts;
  assert.equal(budget.reason, "turnwheel.budget");
  assert.deepEqual(budget.metadata, { budget: { kind: "turns", used: 1, limit: 1 } });
  assert.deepEqual(budget.responseSchema.properties.raise.required, ["turns"]);
  assert.equal(budget.toolCallId, undefined);
  assert.equal(agent.resolve(budget.id, /** @type {any} */ (answers(budget.id, { raise: { turns: 1 } })[budget.id])), true);
  const last = await read(run);
  assert.equal(last.at(-1).result.stopReason, "completed");
  assert.deepEqual(last.find(({ name }) => name === "turnwheel.question_resolved").value, { id: budget.id, kind: "budget", accepted: true, by: "command" });
});

test("they are asked with `approveTool` too, which decides about calls alone; a listener may answer at once", async () => {
  const budget = /** @type {const} */ ({ turns: 1, onExceed: "ask" });
  const decided = new Agent({ model: scripted([pays(1), "Done."]), tools: [pay()], approveTool: () => "approve", budget });
  const run = decided.prompt("Pay");
  assert.deepEqual((await read(run)).at(-1).outcome.interrupts.map((/** @type {any} */ { reason }) => reason), ["turnwheel.budget"]);
  decided.resolve(/** @type {any} */ (decided.pendingQuestions[0]).id, "reject");
  assert.equal((await read(run)).at(-1).result.stopReason, "budget");
  const listened = new Agent({ model: scripted([pays(1), "Done."]), tools: [pay()], approval: { mode: "bypassed" }, budget });
  listened.subscribe((event) => void (event.type === "question_asked" && Promise.resolve().then(() => listened.resolve(event.id, { raise: { turns: 1 } }))));
  assert.equal((await read(listened.prompt("Pay"))).at(-1).result.stopReason, "completed");
});

test("while another tool runs, a tool that asks does not end the response", async () => {
  const slow = deferred();
  const agent = new Agent({ model: scripted([call("ask", "slow"), "Done."]), tools: [ask(), testTool("slow", () => slow.promise)] });
  const run = agent.prompt("Go");
  /** @type {any[]} */
  const events = [];
  const reading = (async () => {
    for await (const event of toAGUI(run)) events.push(event);
  })();
  await settle();
  assert.ok(!events.some(({ type }) => type === "RUN_FINISHED"));
  slow.resolve("at last");
  await reading;
  assert.equal(events.at(-1).outcome.type, "interrupt");
  run.abort();
  assert.equal((await run).stopReason, "aborted");
});

test("questions of every kind of an agent inside, also after a restore", async () => {
  const script = [call("ask"), "Asked."];
  // Another process goes on where this one was.
  const inner = () => new Agent({ model: scripted(script.splice(0, 1)), tools: [ask()], budget: { turns: 1, onExceed: "ask" } });
  const clerk = () => subagent({ name: "clerk", description: "", agent: inner });
  const options = () => ({ tools: [clerk()] });
  const agent = new Agent({ ...options(), model: scripted([{ toolCalls: [{ callId: "c", toolName: "clerk", arguments: { prompt: "Go" } }] }, "All done."]) });
  const run = agent.prompt("Go");
  const inside = `${run.runId}/c`;
  const first = await read(run);
  const [elicited] = first.at(-1).outcome.interrupts;
  assert.deepEqual([elicited.reason, elicited.toolCallId, elicited.subagentRunId], ["input_required", "c/c1", inside]);
  assert.deepEqual(first.find(({ type }) => type === "SUBAGENT_FINISHED").outcome, { type: "suspended", interruptIds: [elicited.id] });
  agent.resolve(elicited.id, { action: "decline" });
  const [budget] = (await read(run)).at(-1).outcome.interrupts;
  assert.deepEqual([budget.reason, budget.subagentRunId], ["turnwheel.budget", inside]);
  const saved = JSON.stringify(agent.checkpoint());
  agent.resolve(budget.id, "reject");
  assert.equal((await read(run)).at(-1).result.stopReason, "completed");
  const again = await Agent.restore(saved, { ...options(), model: scripted(["All done again."]) });
  const continued = again.continue();
  const [asked] = (await read(continued)).at(-1).outcome.interrupts;
  assert.deepEqual([asked.reason, asked.subagentRunId], ["turnwheel.budget", inside]);
  again.resolve(asked.id, { raise: { turns: 1 } });
  assert.equal((await read(continued)).at(-1).result.stopReason, "completed");
});

test("a restored run goes on in the middle of a turn", async () => {
  const first = new Agent({ model: scripted([pays(1)]), tools: [pay()] });
  await read(first.prompt("Pay"));
  const saved = JSON.stringify(first.checkpoint());
  const agent = await Agent.restore(saved, { model: scripted(["Done."]), tools: [pay()] });
  const run = agent.continue();
  const asked = await read(run);
  const [{ id, toolCallId }] = asked.at(-1).outcome.interrupts;
  assert.equal(toolCallId, "p1");
  agent.resolve(id, "approve");
  assert.equal((await read(run)).at(-1).result.stopReason, "completed");
});

for (const [version, Client] of HTTP_AGENTS) {
  test(`HttpAgent ${version}: two questions, one approved and one cancelled`, async (t) => {
    const paid = /** @type {number[]} */ ([]);
    const { url, inputs } = await serveAgents(t, () => new Agent({ model: scripted([{ text: "I will pay.", ...pays(1, 2) }, "One is paid."]), tools: [pay(({ n }) => (paid.push(n), `paid ${n}`))] }));
    const client = new Client({ url, threadId: "chat" });
    client.addMessage({ id: "u1", role: "user", content: "Pay both" });
    await client.runAgent();
    const asked = client.pendingInterrupts ?? [];
    assert.deepEqual(asked.map(({ toolCallId }) => toolCallId), ["p1", "p2"]);
    await client.runAgent({
      resume: [{ interruptId: asked[0].id, status: "resolved", payload: { approved: true } }, { interruptId: asked[1].id, status: "cancelled" }],
    });
    assert.deepEqual(paid, [1]);
    assert.deepEqual(client.messages.map(({ role }) => role), ["user", "assistant", "tool", "tool", "assistant"]);
    assert.deepEqual(client.messages.filter(({ role }) => role === "tool").map(({ content }) => content), ["tool call `pay` was rejected", "paid 1"]);
    assert.equal(client.messages.at(-1).content, "One is paid.");
    assert.equal(client.messages[1].content, "I will pay.");
    assert.equal(inputs.length, 2);
  });

  test(`HttpAgent ${version}: a tool asks, a budget is raised, and another is not`, async (t) => {
    const { url } = await serveAgents(t, () => new Agent({ model: scripted([call("ask"), call("ask"), "Never said."]), tools: [ask()], budget: { turns: 1, onExceed: "ask" } }));
    const client = new Client({ url, threadId: "chat" });
    client.addMessage({ id: "u1", role: "user", content: "Go" });
    await client.runAgent();
    const reasons = [];
    for (const answer of [{ payload: { content: "main" } }, { payload: { raise: { turns: 1 } } }, { payload: "yes" }, { status: "cancelled" }]) {
      const [interrupt] = client.pendingInterrupts;
      reasons.push(interrupt.reason);
      await client.runAgent({ resume: [{ interruptId: interrupt.id, status: "resolved", ...answer }] });
    }
    assert.deepEqual(reasons, ["input_required", "turnwheel.budget", "input_required", "turnwheel.budget"]);
    assert.deepEqual(client.messages.filter(({ role }) => role === "tool").map(({ content }) => content), ['{"action":"accept","content":"main"}', '{"action":"decline"}']);
    assert.deepEqual(client.pendingInterrupts ?? [], []);
  });

  test(`HttpAgent ${version}: an abort stops the run`, async (t) => {
    const never = deferred();
    const { url, threads } = await serveAgents(t, () => new Agent({ model: scripted([call("wait")]), tools: [testTool("wait", () => never.promise)] }), { abortOnLeave: true });
    const client = new Client({ url, threadId: "chat" });
    client.addMessage({ id: "u1", role: "user", content: "Wait" });
    const over = client.runAgent({}, { onToolCallEndEvent: () => void setImmediate(() => client.abortRun()) }).catch(() => {});
    await over;
    const { run } = /** @type {any} */ (threads.get("chat"));
    assert.equal((await run).stopReason, "aborted");
  });

  test(`HttpAgent ${version}: state, a sub-agent with a question, and a second prompt`, async (t) => {
    const clerk = subagent({ name: "clerk", description: "", agent: () => new Agent({ model: scripted([pays(7), "The clerk has paid."]), tools: [pay()] }) });
    const note = testTool("note", (/** @type {any} */ _, /** @type {any} */ { state }) => void state.set("noted", { at: 1 }));
    const model = scripted([{ toolCalls: [{ callId: "c", toolName: "clerk", arguments: { prompt: "Pay" } }, { callId: "n", toolName: "note" }] }, "All done.", "You are welcome."]);
    const { url, threads } = await serveAgents(t, () => new Agent({ model, tools: [clerk, note], sessionState: { user: "u" } }));
    const client = new Client({ url, threadId: "chat" });
    client.addMessage({ id: "u1", role: "user", content: "Pay" });
    await client.runAgent();
    assert.equal(client.state.user, "u");
    const [interrupt] = client.pendingInterrupts;
    assert.equal(interrupt.toolCallId, "c/p7");
    await client.runAgent({ resume: [{ interruptId: interrupt.id, status: "resolved", payload: { approved: true } }] });
    assert.deepEqual(client.state, { user: "u", noted: { at: 1 } });
    assert.equal(client.messages.at(-1).content, "All done.");
    client.addMessage({ id: "u2", role: "user", content: "Thanks" });
    await client.runAgent();
    assert.equal(client.messages.at(-1).content, "You are welcome.");
    const { agent } = /** @type {any} */ (threads.get("chat"));
    assert.deepEqual(agent.messages.filter((/** @type {any} */ { role }) => role === "user").map((/** @type {any} */ { content }) => content[0].text), ["Pay", "Thanks"]);
  });

  test(`HttpAgent ${version}: a tool that runs in the client`, async (t) => {
    const { url } = await serveAgents(t, ({ tools }) => new Agent({ model: scripted([{ toolCalls: [{ callId: "m1", toolName: "show_map", arguments: { city: "Oslo" } }] }, "There it is."]), tools: frontendTools(tools) }));
    const client = new Client({ url, threadId: "chat" });
    const tools = [{ name: "show_map", description: "Shows a city", parameters: { type: "object", properties: { city: { type: "string" } } } }];
    client.addMessage({ id: "u1", role: "user", content: "Where is Oslo?" });
    await client.runAgent({ tools });
    assert.deepEqual(client.pendingInterrupts ?? [], [], "the call of the client's own tool is no question");
    assert.deepEqual(client.messages.at(-1).toolCalls.map((/** @type {any} */ { id, function: { arguments: args } }) => [id, args]), [["m1", '{"city":"Oslo"}']]);
    client.addMessage({ id: "t1", role: "tool", toolCallId: "m1", content: "shown" });
    await client.runAgent({ tools });
    assert.equal(client.messages.at(-1).content, "There it is.");
    assert.equal(client.messages.filter((/** @type {any} */ { role, toolCallId }) => role === "tool" && toolCallId === "m1").length > 0, true);
  });

  test(`HttpAgent ${version}: what a client has kept of a conversation is a history again`, async (t) => {
    const model = () => scripted([{ thinking: "hm", text: "Looking.", toolCalls: [{ callId: "a", toolName: "look", arguments: { at: 1 } }] }, "Seen."]);
    const { url, threads } = await serveAgents(t, () => new Agent({ model: model(), tools: [testTool("look", () => "it is there")] }));
    const client = new Client({ url, threadId: "chat" });
    client.addMessage({ id: "u1", role: "user", content: [{ type: "text", text: "Look" }, { type: "image", source: { type: "data", value: "QUJD", mimeType: "image/png" } }] });
    await client.runAgent();
    const { messages, prompt } = fromAGUI({ threadId: "t", runId: "r", messages: [...client.messages, { id: "u2", role: "user", content: "More" }] });
    const { agent } = /** @type {any} */ (threads.get("chat"));
    const plain = (/** @type {any[]} */ list) => list.map(({ role, content, callId, toolName, isError }) => JSON.parse(JSON.stringify({ role, content, callId, toolName, isError })));
    assert.deepEqual(plain(messages), plain(agent.messages));
    assert.deepEqual(prompt?.map(({ content }) => content), [[{ type: "text", text: "More" }]]);
  });
}

test("fromAGUI: what is no input is refused; yes is only yes; files must come with their data", () => {
  const input = (/** @type {any} */ more) => fromAGUI({ threadId: "t", runId: "r", messages: [], ...more });
  misused(() => fromAGUI("x"), /parsed body of a request: .*, got a string/);
  misused(() => fromAGUI({ messages: [] }), /`threadId` must be a text, got nothing/);
  misused(() => input({ messages: {} }), /`messages` must be an array/);
  misused(() => input({ messages: [{}] }), /messages\[0\] has no role/);
  misused(() => input({ messages: Array.from({ length: 10_001 }, () => ({ role: "user", content: "" })) }), /`messages` has 10001 members; at most 10000 are read/);
  misused(() => input({ resume: [{}] }), /resume\[0\] names no interrupt/);
  misused(() => input({ tools: [{}] }), /tools\[0\] has no name/);
  misused(() => input({ messages: [{ role: "user", content: [{ type: "image", source: { type: "url", value: "http://x" } }] }] }), /must come with its data/);
  const decided = (/** @type {any} */ entry, /** @type {any} */ options) => fromAGUI({ threadId: "t", runId: "r", messages: [], resume: [{ interruptId: "q", ...entry }] }, options).decisions["q"];
  // An object, which can carry the mark of a client's answer.
  assert.deepEqual(decided({ status: "resolved", payload: { approved: true } }), { action: "approve" });
  assert.deepEqual(decided({ status: "resolved", payload: true }), { action: "approve" });
  assert.deepEqual(decided({ status: "resolved", payload: { approved: true, arguments: { n: 1 } } }, { answers: ["tool", "arguments"] }), { action: "approve", arguments: { n: 1 } });
  for (const no of [{ status: "cancelled", payload: { approved: true } }, { status: "resolved" }, { status: "resolved", payload: { approved: "true" } }, { status: "resolved", payload: "yes" }, {}]) {
    assert.deepEqual(decided(no), { action: "reject" });
  }
  assert.deepEqual(decided({ status: "resolved", payload: { approved: false, reason: "too much" } }), { action: "reject", reason: "too much" });
  // What is no decision about a call is an answer of its own, for the questions that want it.
  const answered = (/** @type {any} */ entry) => fromAGUI({ threadId: "t", runId: "r", messages: [], resume: [{ interruptId: "q", ...entry }] }, { answers: ["elicitation", "budget"] });
  assert.deepEqual(answered({ status: "resolved", payload: { raise: { usd: 1 } } }).answers, { q: { raise: { usd: 1 } } });
  assert.deepEqual(answered({ status: "resolved", payload: { content: null } }).answers, { q: { action: "accept", content: null } });
  assert.deepEqual(answered({ status: "resolved", payload: { content: 1 } }).decisions, {});
  assert.deepEqual(answered({ status: "cancelled", payload: { raise: { usd: 1 } } }), { ...answered({ status: "cancelled" }), answers: {} });
});

test("what a client posts as a result counts for its own tools only, of calls that wait for it", async () => {
  /** @type {unknown[]} */
  const paid = [];
  const pay = { name: "pay", description: "", parameters: { type: "object" }, requiresApproval: true, execute: (/** @type {any} */ args) => paid.push(args) && "paid" };
  const asks = { toolCalls: [{ callId: "m", toolName: "show", arguments: {} }, { callId: "p", toolName: "pay", arguments: {} }] };
  const agent = new Agent({ model: scripted([asks, "Done."]), gate: "prefix", tools: [pay, ...frontendTools([{ name: "show", description: "" }])] });
  const run = agent.prompt("Go");
  await read(run);
  // The client says that `pay` is a tool of its own, and that it has run.
  const posted = {
    threadId: "t", runId: "r", tools: [{ name: "show" }, { name: "pay" }],
    messages: [
      { role: "assistant", toolCalls: [{ id: "m", function: { name: "show" } }, { id: "p", function: { name: "pay" } }, { id: "x", function: { name: "show" } }] },
      { role: "tool", toolCallId: "m", content: "shown" }, { role: "tool", toolCallId: "p", content: "paid" }, { role: "tool", toolCallId: "x", content: "?" }, { role: "tool", toolCallId: { toString: 1 }, content: "?" },
    ],
  };
  assert.deepEqual(fromAGUI(posted).decisions, {});
  assert.deepEqual(fromAGUI(posted, { agent: (threadId) => (threadId === "other" ? agent : undefined) }).decisions, {});
  const input = fromAGUI(posted, { agent: () => agent });
  assert.deepEqual(input.decisions, { m: { action: "result", content: "shown" } });
  assert.deepEqual(fromAGUI(posted, { agent, answers: ["tool"] }).decisions, input.decisions, "of its own tools the client always may");
  agent.resolveTools(input.decisions);
  agent.resolveTools({ p: "reject" });
  const { messages } = await run;
  const results = messages.flatMap((message) => (message.role === "tool_result" ? [[message.callId, message.content[0]]] : []));
  assert.deepEqual(results.find(([callId]) => callId === "m"), ["m", { type: "text", text: "shown" }]);
  assert.deepEqual(paid, []);
  misused(() => fromAGUI(posted, /** @type {any} */ ({ agents: agent })), /fromAGUI: unknown option `agents`; did you mean `agent`\?/);
});

test("pictures and files of tools pass in both directions; what cannot be used is left out", async () => {
  const picture = { type: "image", source: { type: "data", value: "iVBORw0KGgo=", mimeType: "image/png" } };
  const paper = { type: "document", source: { type: "data", value: "JVBERg==", mimeType: "application/pdf" }, metadata: { filename: "a.pdf" } };
  const model = scripted([{ toolCalls: [{ callId: "s", toolName: "shoot", arguments: {} }] }, "I see."]);
  const agent = new Agent({ model, tools: frontendTools([{ name: "shoot", description: "" }]) });
  const run = agent.prompt("Go");
  await read(run);
  const { decisions } = fromAGUI({ threadId: "t", runId: "r", messages: [{ role: "tool", toolCallId: "s", content: [{ type: "text", text: "one" }, picture, { type: "image", source: { type: "url", value: "https://a.example/x.png" } }, paper, { type: "video" }] }] }, { agent });
  agent.resolveTools(decisions);
  await run;
  const shown = [{ type: "text", text: "one" }, { type: "image", mimeType: "image/png", data: "iVBORw0KGgo=" }, { type: "file", mimeType: "application/pdf", data: "JVBERg==", name: "a.pdf" }];
  assert.deepEqual(/** @type {any} */ (model).requests[1].messages.at(-1).content, shown);
  // What the server sends, a client keeps and gives back.
  const draw = testTool("draw", () => ({ content: shown }));
  const drawing = fromAGUI({ threadId: "t", runId: "r", protocolVersion: "1.0.0", messages: [{ role: "user", content: "Draw." }] });
  /** @type {any} */
  let sent;
  for await (const event of toAGUI(new Agent({ model: scripted([call("draw"), "There."]), tools: [draw] }).prompt(/** @type {any} */ (drawing.prompt)), { input: drawing })) if (event.type === "TOOL_CALL_RESULT") sent = event["content"];
  const kept = fromAGUI({ threadId: "t", runId: "r", messages: [{ role: "assistant", toolCalls: [{ id: "d", function: { name: "draw" } }] }, { role: "tool", toolCallId: "d", content: sent }, { role: "user", content: "So?" }] });
  assert.deepEqual(/** @type {any} */ (kept.messages[1]).content, shown);
});

test("a tool of the host without `execute` is answered as a call or as an interrupt, where clients may", async () => {
  const asks = { toolCalls: [{ callId: "m", toolName: "sign", arguments: {} }] };
  for (const how of ["message", "interrupt"]) {
    const agent = new Agent({ model: scripted([asks, "Done."]), tools: [{ name: "sign", description: "", parameters: { type: "object" } }] });
    const run = agent.prompt("Go");
    const [interrupt] = (await read(run)).at(-1).outcome.interrupts;
    assert.deepEqual(interrupt, { id: agent.pendingQuestions[0]?.id, reason: "turnwheel.tool_call", toolCallId: "m", message: "What is the result of `sign`?", responseSchema: { type: "object", properties: { output: {} }, required: ["output"] } });
    const answer = how === "message" ? { messages: [{ role: "assistant", toolCalls: [{ id: "m", function: { name: "sign" } }] }, { role: "tool", toolCallId: "m", content: "", error: "no pen" }] } : { messages: [], resume: [{ interruptId: interrupt.id, status: "resolved", payload: { output: { by: "me" } } }] };
    const posted = { threadId: "t", runId: "r", ...answer };
    assert.match(fromAGUI(posted, { agent, answers: ["tool"] }).refused?.[interrupt.id] ?? "", /clients may not give the result of a call/);
    const { answers, decisions } = fromAGUI(posted, { agent });
    assert.deepEqual([answers, decisions], how === "message" ? [{}, { m: { action: "result", content: "no pen", isError: true } }] : [{ [interrupt.id]: { output: { by: "me" } } }, {}]);
    agent.resolveTools(decisions);
    for (const [id, answer] of Object.entries(answers)) agent.resolve(id, answer);
    assert.equal((await run).text, "Done.");
  }
});

test("misuse is named", async () => {
  const run = new Agent({ model: scripted(["Hi."]) }).prompt("Hi");
  misused(() => toAGUI(/** @type {any} */ ({})), /a run is needed/);
  misused(() => toAGUI(run, /** @type {any} */ ({ thread: "x" })), /unknown option `thread`; did you mean `threadId`\?/);
  misused(() => toAGUIResponse(run, /** @type {any} */ ({ lastEventId: 1 })), /unknown option `lastEventId`/);
  const events = await read(run);
  assert.equal(events.at(-1).type, "RUN_FINISHED");
});
