// @ts-check
// What a client may do, at every door: the table of src/rules/authority.rs. The host's own code may do all of it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fromAGUI, toAGUI } from "../../../pkg/ag-ui.js";
import { agentHandler, fromUIMessages } from "../../../pkg/server.js";
import { Agent, call, deferred, scripted, settle, subagent, testTool } from "../kit.mjs";

/** @typedef {{ agent: Agent, ran: any[], post(name: string, body: any): Promise<number>, state(): Promise<any> }} Served */

/**
 * An agent whose model calls `pay`, behind a handler.
 * @param {any} [options] of the agent @param {any} [door] options of the handler @returns {Served}
 */
function served(options = {}, door = {}) {
  /** @type {any[]} */
  const ran = [];
  const pay = testTool("pay", (args) => (ran.push(args), "paid"), { requiresApproval: true });
  const agent = new Agent({ model: scripted([{ toolCalls: [{ callId: "c1", toolName: "pay", arguments: { n: 1 } }] }, "done"]), tools: [pay], ...options });
  const handler = agentHandler(agent, door);
  const ask = (/** @type {string} */ name, /** @type {any} */ init) => handler(new Request(`http://localhost/a/${name}`, init));
  return {
    agent, ran,
    post: async (name, body) => (await ask(name, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) })).status,
    state: async () => (await ask("state", {})).json(),
  };
}

/** Until something is true. @param {() => unknown} isTrue */
async function until(isTrue) {
  while (!isTrue()) await new Promise((resolve) => setTimeout(resolve, 1));
}

/** Until something is asked. @param {Agent} agent */
async function asked(agent) {
  await until(() => agent.pendingQuestions.length > 0);
  return String(agent.pendingQuestions[0]?.id);
}

/** Every way to send an answer. @param {string} id @param {string} callId @param {any} decision */
const ways = (id, callId, decision) => [{ question: id, decision }, { callId, decision }, { decisions: { [id]: decision } }, { decisions: { [callId]: decision } }];

test("a client approves and rejects; other arguments and results only where the door allows them", async () => {
  const more = { arguments: { action: "approve", arguments: { n: 1000 } }, result: { action: "result", content: "paid already" } };
  for (const [act, decision] of Object.entries(more)) {
    for (const allowed of [undefined, ["tool"], ["tool", "elicitation", "budget"], ["tool", act]]) {
      const { agent, ran, post } = served({}, allowed ? { answers: allowed } : {});
      const run = agent.prompt("Go");
      const id = await asked(agent);
      const mayDo = allowed?.includes(act) === true;
      for (const body of mayDo ? [{ question: id, decision }] : ways(id, "c1", decision)) assert.equal(await post("resolve", body), mayDo ? 202 : 403, `${act} ${JSON.stringify(body)}`);
      assert.equal(ran.length, 0);
      if (!mayDo) assert.equal(await post("resolve", { question: id, decision: "reject" }), 202);
      await run;
      assert.deepEqual(ran, mayDo && act === "arguments" ? [{ n: 1000 }] : []);
    }
  }
});

test("a member beside the action opens no other door", async () => {
  const { agent, ran, post } = served();
  const run = agent.prompt("Go");
  const id = await asked(agent);
  for (const decision of [
    { action: "approve", arguments: null }, { action: "approve", arguments: [] }, { action: "approve", content: "x", arguments: { n: 2 } }, { raise: { usd: 1 }, action: "approve" }, { action: "Approve" }, { action: ["approve"] },
    { action: "accept", content: 1 }, { action: null, arguments: { n: 2 } }, { arguments: { n: 2 } }, "APPROVE", true, null, 1, ["approve"], { action: "reject", reason: { a: 1 } },
  ]) {
    for (const body of ways(id, "c1", decision)) assert.ok([400, 403].includes(await post("resolve", body)), JSON.stringify(body));
  }
  assert.equal(agent.pendingQuestions.length, 1);
  // A no is a no, whatever stands beside it.
  assert.equal(await post("resolve", { question: id, decision: { action: "reject", raise: { usd: 1 }, arguments: { n: 2 }, content: "x" } }), 202);
  await run;
  assert.deepEqual(ran, []);
});

test("a call that `approveTool` decides about is not shown to clients, and no door lets them answer", async () => {
  const door = { answers: ["tool", "elicitation", "arguments", "result", "budget"] };
  const decided = deferred();
  const { agent, ran, post, state } = served({ approveTool: () => decided.promise }, door);
  const events = await (await agentHandler(agent, {})(new Request("http://localhost/a/events"))).body?.getReader();
  const run = agent.prompt("Go");
  const id = await asked(agent);
  assert.notEqual(id, "undefined");
  for (const decision of ["approve", "reject", { action: "approve", arguments: { n: 9 } }, { action: "result", content: "x" }]) {
    for (const body of ways(id, "c1", decision)) assert.equal(await post("resolve", body), 403, JSON.stringify(body));
  }
  assert.deepEqual((await state()).pendingApprovals, []);
  // The other readers of clients' words mark what they give, and the agent knows.
  assert.equal(agent.resolveTools(fromUIMessages([{ role: "assistant", parts: [{ type: "tool-pay", toolCallId: "c1", state: "approval-responded", approval: { id, approved: true } }] }]).decisions), false);
  assert.equal(agent.resolveTools(fromUIMessages([{ role: "assistant", parts: [{ type: "tool-pay", toolCallId: "c1", state: "approval-responded", approval: { id: "c1", approved: true } }] }]).decisions), false);
  const posted = { threadId: "t", runId: "r", messages: [], resume: [{ interruptId: id, status: "resolved", payload: { approved: true } }] };
  const { decisions, refused } = fromAGUI(posted, { agent });
  assert.deepEqual([decisions, Object.keys(refused ?? {})], [{}, [id]]);
  assert.equal(agent.resolveTools(fromAGUI(posted).decisions), false);
  assert.equal(agent.resolveTools(fromAGUI({ ...posted, resume: [{ ...posted.resume[0], interruptId: "c1" }] }).decisions), false);
  await settle();
  assert.deepEqual([ran, agent.isRunning], [[], true]);
  decided.resolve("approve");
  await run;
  assert.deepEqual(ran, [{ n: 1 }]);
  let said = "";
  for (const reader = /** @type {any} */ (events); !said.includes("agent_end"); ) said += new TextDecoder().decode((await reader.read()).value);
  events?.cancel();
  assert.doesNotMatch(said, /tool_approval_requested|tool_approval_resolved/);
});

test("nor one that the `approveTool` of an agent inside a call decides about", async () => {
  for (const more of [{}, { approvals: "own" }]) {
    const decided = deferred();
    /** @type {any[]} */
    const ran = [];
    const pay = testTool("pay", (args) => (ran.push(args), "paid"), { requiresApproval: true });
    const inner = () => new Agent({ model: scripted([{ toolCalls: [{ callId: "in", toolName: "pay", arguments: { n: 1 } }] }, "done"]), tools: [pay], approveTool: () => decided.promise });
    const { agent, post, state } = served({ model: scripted([{ toolCalls: [{ callId: "out", toolName: "clerk", arguments: { prompt: "Pay" } }] }, "done"]), tools: [subagent({ name: "clerk", description: "", agent: inner, ...more })] });
    /** @type {string[]} */
    const ids = [];
    agent.subscribe((event) => void (event.type === "subagent_event" && event.event.type === "tool_approval_requested" && ids.push(event.event.id)));
    const run = agent.prompt("Go");
    await until(() => ids.length > 0);
    await settle();
    for (const body of ways(String(ids[0]), "in", "approve")) assert.ok([403, 409].includes(await post("resolve", body)), JSON.stringify(body));
    assert.deepEqual((await state()).pendingApprovals, []);
    assert.deepEqual(ran, []);
    decided.resolve("approve");
    await run;
    assert.deepEqual(ran, [{ n: 1 }]);
  }
});

/** What an AG-UI client posts that approves. @param {string} interruptId */
const approval = (interruptId) => ({ threadId: "t", runId: "r", messages: [], resume: [{ interruptId, status: "resolved", payload: { approved: true } }] });

test("an answer of a client stays a client's, one by one as docs/ag-ui.md passes them on", async () => {
  for (const early of [false, true]) {
    for (const by of ["question", "call"]) {
      for (const knowsAgent of [false, true]) {
        if (early && by === "question") continue;
        const decided = deferred();
        const waiting = deferred();
        const wait = testTool("wait", () => waiting.promise);
        /** @type {any[]} */
        const ran = [];
        const pay = testTool("pay", (args) => (ran.push(args), "paid"), { requiresApproval: true });
        const model = scripted([call("wait"), { toolCalls: [{ callId: "c1", toolName: "pay", arguments: { n: 1 } }] }, "done"]);
        const agent = new Agent({ model, tools: [wait, pay], approveTool: () => decided.promise, earlyDecisions: "park" });
        const run = agent.prompt("Go");
        if (!early) waiting.resolve("waited");
        if (!early) await asked(agent);
        else await until(() => agent.isRunning);
        await settle();
        const asks = by === "call" ? "c1" : String(agent.pendingApprovals[0]?.id);
        const posted = [{ role: "assistant", parts: [{ type: "tool-pay", toolCallId: "c1", state: "approval-responded", approval: { id: asks, approved: true } }] }];
        const lists = [fromAGUI(approval(asks), knowsAgent ? { agent } : {}).decisions, fromUIMessages(posted).decisions];
        assert.equal(agent.resolveTools({ ...lists[1] }), false);
        for (const [id, decision] of lists.flatMap((decisions) => Object.entries(decisions))) {
          assert.equal(agent.resolveTools({ [id]: decision }), false);
          assert.equal(agent.resolveTool(id, decision), false);
          agent.resolve(id, decision);
        }
        waiting.resolve("waited");
        await asked(agent);
        await settle();
        assert.deepEqual(ran, [], `${early ? "early" : "asked"}, by the id of the ${by}`);
        decided.resolve("reject");
        await run;
        assert.deepEqual(ran, []);
      }
    }
  }
});

/**
 * An agent whose sub-agent calls `pay`; one of the two has an `approveTool`.
 * @param {any} outer options @param {any} inner options
 */
function nested(outer, inner) {
  /** @type {any[]} */
  const ran = [];
  const pay = testTool("pay", (args) => (ran.push(args), "paid"), { requiresApproval: true });
  const make = () => new Agent({ model: scripted([{ toolCalls: [{ callId: "in", toolName: "pay", arguments: { n: 1 } }] }, "done"]), tools: [pay], ...inner });
  const options = { model: scripted([{ toolCalls: [{ callId: "out", toolName: "clerk", arguments: { prompt: "Pay" } }] }, "done"]), tools: [subagent({ name: "clerk", description: "", agent: make })], ...outer };
  return { ran, options };
}

test("a chat is asked what people decide, whichever agent asks, and nothing that the host decides", async () => {
  for (const isHosts of [true, false]) {
    const decided = deferred();
    const approver = { approveTool: () => decided.promise };
    const { ran, options } = isHosts ? nested({}, approver) : nested(approver, {});
    const agent = new Agent(options);
    const run = agent.prompt("Go");
    const [agui, ui] = [run, run].map((source, i) => (i === 0 ? toAGUI(source, { threadId: "t" }) : source.toUIMessageStreamResponse()));
    /** @type {any[]} */
    const events = [];
    const reading = (async () => { for await (const event of /** @type {any} */ (agui)) events.push(event); })();
    let said = "";
    const reader = /** @type {any} */ (ui).body.getReader();
    const hearing = (async () => { for (let piece; !(piece = await reader.read()).done; ) said += new TextDecoder().decode(piece.value); })();
    const id = await asked(agent);
    if (isHosts) {
      for (let i = 0; i < 20; i++) await settle();
      assert.ok(!events.some(({ type }) => type === "RUN_FINISHED"), JSON.stringify(events.at(-1)));
      const { decisions, refused } = fromAGUI(approval("in"), { agent });
      assert.deepEqual([decisions, Object.keys(refused ?? {})], [{}, ["in"]]);
      decided.resolve("approve");
    } else {
      await reading;
      assert.deepEqual(events.at(-1).outcome.interrupts.map((/** @type {any} */ asks) => asks.id), [id]);
      const { decisions } = fromAGUI(approval(id), { agent });
      for (const [key, decision] of Object.entries(decisions)) assert.equal(agent.resolveTools({ [key]: decision }), true);
    }
    await run;
    await Promise.all([reading, hearing]);
    assert.deepEqual(ran, [{ n: 1 }]);
    assert.equal(/tool-approval-request/.test(said), !isHosts, said);
    assert.equal(JSON.stringify(events).includes("interrupts"), !isHosts);
  }
});

test("a restored agent shows and takes nothing about a call that the host of an agent inside decides", async () => {
  const decided = deferred();
  const { options } = nested({}, { approveTool: () => decided.promise });
  const first = new Agent(options);
  const before = first.prompt("Go");
  await asked(first);
  const checkpoint = JSON.stringify(first.checkpoint());
  first.abort();
  await before;
  // As the first one, whose models have spoken already.
  const again = nested({}, { approveTool: () => decided.promise, model: scripted(["done"]) });
  const agent = await Agent.restore(checkpoint, { ...again.options, model: scripted(["done"]) });
  const handler = agentHandler(agent, {});
  const ask = async (/** @type {string} */ name, /** @type {any} */ init) => handler(new Request(`http://localhost/a/${name}`, init));
  const [{ id }] = /** @type {any} */ (agent.pendingApprovals);
  const events = /** @type {any} */ ((await ask("events", {})).body).getReader();
  assert.deepEqual((await (await ask("state", {})).json()).pendingApprovals, []);
  const post = (/** @type {any} */ body) => ask("resolve", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  for (const body of ways(id, "in", "approve")) assert.ok([403, 409].includes((await post(body)).status), JSON.stringify(body));
  const run = agent.continue();
  for (let i = 0; i < 20; i++) await settle();
  assert.deepEqual(again.ran, []);
  assert.deepEqual((await (await ask("state", {})).json()).pendingApprovals, []);
  decided.resolve("approve");
  await run;
  assert.deepEqual(again.ran, [{ n: 1 }]);
  let said = "";
  while (!said.includes(`"runId":"${run.runId}","messages"`) && !/"type":"agent_end"[^\n]*"stopReason":"completed"[^\n]*\n[^]*"type":"agent_end"/.test(said)) said += new TextDecoder().decode((await events.read()).value);
  events.cancel();
  assert.ok(!said.includes(id), "not even by its id");
});

test("no door lets a client raise a budget unasked, and AG-UI says what it left out", async () => {
  const look = testTool("look", () => "nothing");
  const usage = { input: 1000, output: 1000, total: 2000 };
  const raise = { raise: { tokens: 1e9 } };
  for (const answers of [undefined, /** @type {const} */ (["budget"])]) {
    const model = scripted(Array.from({ length: 9 }, (_, i) => ({ ...(i < 5 ? call("look") : { text: "done" }), usage })));
    const { agent, post } = served({ model, tools: [look], budget: { tokens: 3000, onExceed: "ask" } }, answers ? { answers } : {});
    const run = agent.prompt("Go");
    const id = await asked(agent);
    const input = fromAGUI({ threadId: "t", runId: "r", messages: [], resume: [{ interruptId: id, status: "resolved", payload: raise }] }, { agent, ...(answers && { answers }) });
    assert.deepEqual([input.answers, input.decisions], [answers ? { [id]: raise } : {}, {}]);
    assert.equal(input.refused === undefined, answers !== undefined);
    assert.equal(await post("resolve", { question: id, decision: raise }), answers ? 202 : 403);
    if (!answers) agent.resolve(id, "reject");
    assert.equal((await run).stopReason, answers ? "completed" : "budget");
  }
});

test("AG-UI: other arguments only where the host allows them", () => {
  const entry = { interruptId: "q", status: "resolved", payload: { approved: true, arguments: { n: 2 } } };
  const read = (/** @type {any} */ options) => fromAGUI({ threadId: "t", runId: "r", messages: [], resume: [entry] }, options);
  assert.deepEqual([read({}).decisions, Object.keys(read({}).refused ?? {})], [{}, ["q"]]);
  assert.deepEqual(read({ answers: ["arguments"] }).decisions, { q: { action: "approve", arguments: { n: 2 } } });
  assert.throws(() => read({ answers: ["everything"] }), /`answers` must be a list of "tool"/);
});

test("the host's own code answers what it likes", async () => {
  const decided = deferred();
  const { agent, ran } = served({ approveTool: () => decided.promise });
  const run = agent.prompt("Go");
  assert.equal(agent.resolve(await asked(agent), { action: "approve", arguments: { n: 3 } }), true);
  await run;
  assert.deepEqual(ran, [{ n: 3 }]);
});
