// @ts-check
// Questions of every kind where the agent is elsewhere: remote, in a React page, in a UI message stream.

import assert from "node:assert/strict";
import { test } from "node:test";
import { AgentStore } from "../../../pkg/react-store.js";
import { RemoteAgent } from "../../../pkg/remote.js";
import { agentHandler } from "../../../pkg/server.js";
import { Agent, call, custom, misused, scripted, settle, testTool } from "../kit.mjs";

const schema = { type: "object", properties: { branch: { type: "string" } } };
const asks = (/** @type {any[]} */ heard = []) => testTool("ask", async (/** @type {any} */ _, /** @type {any} */ { ask }) => {
  const answer = await ask({ message: "Which branch?", schema });
  heard.push(answer);
  return answer.action;
});
const work = testTool("work", () => "done");

/** A model that asks for `work` for ever. */
const tireless = () => {
  let calls = 0;
  return custom("tireless", async function* () {
    yield { type: "tool_call_start", contentIndex: 0, callId: `c${calls++}`, toolName: "work" };
    yield { type: "tool_call_end", contentIndex: 0 };
    yield { type: "done", stopReason: "tool_use", usage: { input: 60, output: 40, total: 100 } };
  });
};

/** An agent and a client of it. @param {Agent} agent @param {any} [options] */
function elsewhere(agent, options) {
  const handler = agentHandler(agent, options);
  return new RemoteAgent({ url: "http://a.localhost/x", fetch: (url, init) => handler(new Request(url, init)) });
}

/** Waits until a question is open there. @param {any} agent @returns {Promise<any>} */
async function question(agent) {
  for (let i = 0; i < 20_000; i++) {
    if (agent.pendingQuestions[0]) return agent.pendingQuestions[0];
    await settle();
  }
  throw new Error("nothing is asked");
}

test("a client answers the question of a tool, once", async () => {
  /** @type {any[]} */
  const heard = [];
  const client = elsewhere(new Agent({ model: scripted([call("ask"), "Done."]), tools: [asks(heard)] }));
  const run = client.prompt("Go.");
  const asked = await question(client);
  assert.deepEqual([asked.kind, asked.message, asked.schema, asked.toolName, asked.path], ["elicitation", "Which branch?", schema, "ask", []]);
  misused(() => client.resolve(asked.id, "approve"), /a tool's/);
  await client.resolve(asked.id, { action: "accept", content: { branch: "main" } });
  await assert.rejects(async () => client.resolve(asked.id, { action: "decline" }), /no open question has this id|already/);
  assert.equal((await run).text, "Done.");
  assert.deepEqual(heard, [{ action: "accept", content: { branch: "main" } }]);
  assert.deepEqual(client.pendingQuestions, []);
  client[Symbol.dispose]?.();
});

test("a client raises a budget only where the host says so; a no is always an answer", async () => {
  for (const answers of /** @type {any[]} */ ([undefined, ["budget"]])) {
    const agent = new Agent({ model: tireless(), tools: [work], budget: { turns: 1, onExceed: "ask" } });
    const client = elsewhere(agent, { answers });
    const run = client.prompt("Go.");
    const asked = await question(client);
    assert.deepEqual([asked.kind, asked.budget], ["budget", { kind: "turns", used: 1, limit: 1 }]);
    const raised = client.resolve(asked.id, { raise: { turns: 1 } });
    if (answers) {
      await raised;
      const next = await (async () => {
        for (;;) {
          const open = await question(client);
          if (open.id !== asked.id) return open;
          await settle();
        }
      })();
      await client.resolve(next.id, "reject");
    } else {
      await assert.rejects(raised, /clients may not answer questions of the kind "budget"; see the option `answers`/);
      await client.resolve(asked.id, "reject");
    }
    const { stopReason, turns } = await run;
    assert.deepEqual([stopReason, turns], ["budget", answers ? 2 : 1]);
    client[Symbol.dispose]?.();
  }
});

test("a page shows questions of every kind, and answers them by their ids", async () => {
  const agent = new Agent({ model: tireless(), tools: [work], budget: { turns: 1, onExceed: "ask" } });
  /** @type {(() => void)[]} */
  let due = [];
  const store = new AgentStore(agent, { schedule: (/** @type {() => void} */ work) => (due.push(work), () => void (due = due.filter((one) => one !== work))) });
  const leave = store.subscribe(() => {});
  const view = () => /** @type {any} */ (store.getSnapshot());
  const frame = () => due.splice(0).forEach((work) => work());
  const done = view().send("Go.");
  const asked = await question(agent);
  frame();
  assert.deepEqual(view().pendingQuestions.map(({ id, kind }) => [id, kind]), [[asked.id, "budget"]]);
  assert.deepEqual(view().pendingApprovals, []);
  assert.equal(agent.resolve(asked.id, "reject"), true);
  await done;
  frame();
  assert.deepEqual(view().pendingQuestions, []);
  leave();
});

test("a UI message stream has a data part for each question that is not about a call, and says when it is closed", async () => {
  const agent = new Agent({ model: scripted([call("ask"), "Done."]), tools: [asks()] });
  agent.subscribe((event) => event.type === "question_asked" && agent.resolve(event.id, { action: "accept", content: { branch: "main" } }));
  const text = await agent.prompt("Go.").toUIMessageStreamResponse().text();
  const parts = text.split("\n").filter((line) => line.startsWith("data: {")).map((line) => JSON.parse(line.slice(6))).filter(({ type }) => type === "data-question");
  assert.equal(parts.length, 2);
  const [open, closed] = parts;
  assert.equal(open.id, closed.id);
  assert.deepEqual([open.data.state, open.data.kind, open.data.message, open.data.schema, open.data.callId], ["open", "elicitation", "Which branch?", schema, "c1"]);
  assert.deepEqual(closed.data, { id: open.id, kind: "elicitation", state: "accepted" });
});
