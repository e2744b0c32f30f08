// @ts-check
// Tools without `execute`: a call is a question, and whoever answers it gives the result; at every door.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Chat } from "@ai-sdk/react";
import * as ai from "ai";
import { chatTransport } from "../../../pkg/ai-sdk.js";
import { RemoteAgent } from "../../../pkg/remote.js";
import { AgentStore } from "../../../pkg/react-store.js";
import { agentHandler, fromUIMessages } from "../../../pkg/server.js";
import { record, replay } from "../../../pkg/tape.js";
import { Agent, call, misused, peek, readRun, scripted, settle, subagent, testTool } from "../kit.mjs";

const where = { name: "where", description: "Where the user is", parameters: { type: "object", properties: { exact: { type: "boolean" } } } };
const look = testTool("look", () => "seen");

/** What the model was shown as the results of its calls. @param {any} request */
const heard = (request) => request.messages.filter((/** @type {any} */ { role }) => role === "tool_result").map(({ content }) => content.map((/** @type {any} */ block) => block.text ?? block.type).join());

/** A model that calls, and then says what it was told. @param {any} calls */
const calling = (calls) => scripted(Array.from({ length: 2 }, () => (/** @type {any} */ request) => (heard(request).length > 0 ? heard(request).join(" and ") : calls)));

/** @param {any} [more] */
const options = (more) => ({ model: calling(call(["where", { exact: true }], "look")), tools: [where, look], ...more });

/** Answers each call that is asked about. @param {any} agent @param {any} answer */
const answers = (agent, answer) => agent.subscribe((/** @type {any} */ event) => {
  if (event.type === "question_asked" && event.kind === "tool_call") agent.resolve(event.id, answer);
}, { keep: true });

/** Waits until a call is asked about. @param {any} agent @returns {Promise<any>} */
async function asked(agent) {
  for (let i = 0; i < 5_000; i++) {
    const question = agent.pendingQuestions.find((/** @type {any} */ { kind }) => kind === "tool_call");
    if (question) return question;
    await settle();
  }
  throw new Error("nothing is asked");
}

test("a call of a tool without `execute` is a question; what is answered is its result, as a tool returns it", async () => {
  const png = { type: "image", mimeType: "image/png", data: "AAAA" };
  /** @type {[any, string, any?][]} */
  const cases = [
    [{ output: "in Oslo" }, "in Oslo"], [{ output: { lat: 1 } }, '{"lat":1}'], [{ output: undefined }, ""], [{ output: null }, "null"], [{ output: [1] }, "[1]"],
    [{ output: { content: [{ type: "text", text: "here" }, png], details: { map: 1 } } }, "here,image", { details: { map: 1 } }],
    [{ output: "no", isError: true }, "no", { isError: true }], [{ error: "nobody knows" }, "nobody knows", { isError: true }],
    ["reject", "tool call `where` was rejected", { isError: true, cause: "rejected" }], [{ action: "reject", reason: "private" }, "private", { isError: true, cause: "rejected" }],
  ];
  for (const [answer, text, more = {}] of cases) {
    const agent = new Agent(options());
    agent.subscribe((event) => {
      if (event.type !== "question_asked") return;
      const { type, runId, ...question } = event;
      assert.deepEqual(agent.pendingQuestions, [question]);
      assert.deepEqual({ ...question, id: "", askedAt: 0 }, { id: "", kind: "tool_call", path: [], callId: "c1", toolName: "where", arguments: { exact: true }, askedAt: 0 });
      assert.deepEqual(agent.pendingApprovals, []);
      assert.equal(agent.resolve(event.id, answer), true);
      assert.equal(agent.resolve(event.id, answer), false, "it has an answer");
    });
    const { all, names, text: said } = await readRun(agent.prompt("Go."));
    const { result } = all("tool_execution_end").find(({ callId }) => callId === "c1");
    const { isError, details, cause, content } = result;
    assert.equal(content.map((/** @type {any} */ block) => block.text ?? block.type).join().includes(text), true, JSON.stringify(content));
    assert.deepEqual({ isError, details, cause }, { isError: false, details: undefined, cause: undefined, ...more });
    assert.match(said, /seen/);
    assert.deepEqual(names.filter((name) => /question|execution/.test(name)), ["tool_execution_start", "question_asked", "tool_execution_start", "question_resolved", "tool_execution_end", "tool_execution_end"]);
  }
});

test("what is no result is refused, and the question stays open", async () => {
  const agent = new Agent(options());
  const run = agent.prompt("Go.");
  const { id } = await asked(agent);
  /** @type {[any, RegExp][]} */
  const wrong = [
    ["approve", /for the result of a call: answer \{ output \}, \{ error \} or "reject"/], [{ action: "accept", content: 1 }, /for the result of a call/], [{ raise: { usd: 1 } }, /for the result of a call/],
    [{ output: new Map() }, /`output` of the answer is no JSON: it is an object \(Map\)/], [{ output: 1, error: "x" }, /not both/],
    [{ output: 1, isError: "no" }, /`isError` of an answer must be a boolean, got a string/], [{ outputs: 1 }, /a decision must be/], [{ output: 1, detail: 2 }, /unknown member of an answer/],
    [{ output: Number.NaN }, /no JSON: it is NaN/], [{ output: { content: [{ type: "image", mimeType: "image/png", data: "A".repeat(9_000_000) }] } }, /too long: an image/],
  ];
  for (const [answer, why] of wrong) misused(() => agent.resolve(id, answer), why);
  assert.equal(agent.resolve("other", { output: 1 }), false);
  agent.resolve(id, { output: "in Oslo" });
  assert.equal((await run).text, "in Oslo and seen");
});

test("the id of the call does as well, with a decision that is a result", async () => {
  const agent = new Agent(options());
  const run = agent.prompt("Go.");
  await asked(agent);
  misused(() => agent.resolveTool("c1", "approve"), /for the result of a call/);
  assert.equal(agent.resolveTools({ c1: { action: "result", content: { content: [{ type: "text", text: "in Oslo" }], details: 1 } } }), true);
  const { text, messages } = await run;
  assert.deepEqual([text, /** @type {any} */ (messages.find((/** @type {any} */ { callId }) => callId === "c1")).details], ["in Oslo and seen", 1]);
});

test("the tool's definition: no `execute` or a function, approval first, arguments that fit, its own time limit", async () => {
  misused(() => new Agent(options({ tools: [{ ...where, execute: "x" }] })), /`execute` of tool `where` must be a function, got a string; leave it out if/);
  misused(() => new Agent(options({ tools: [{ ...where, handler: () => 1 }] })), /did you mean `execute`/);

  const approved = new Agent(options({ tools: [{ ...where, requiresApproval: true }, look], approveTool: () => "approve" }));
  answers(approved, { output: "in Oslo" });
  const { names } = await readRun(approved.prompt("Go."));
  assert.ok(names.indexOf("tool_approval_resolved") < names.indexOf("question_asked"));

  const unfit = new Agent(options({ model: scripted([call(["where", { exact: "yes" }]), "Sorry."]) }));
  const { all } = await readRun(unfit.prompt("Go."));
  assert.deepEqual([all("question_asked").length, all("tool_execution_end")[0].result.cause], [0, "invalid_arguments"]);

  const late = new Agent(options({ tools: [{ ...where, timeoutMs: 20 }, look], timeouts: { toolMs: 1 } }));
  const told = await readRun(late.prompt("Go."));
  assert.equal(told.all("tool_execution_end").find(({ callId }) => callId === "c1").result.cause, "timeout");
  assert.deepEqual(late.pendingQuestions, []);
});

test("after a restart at any event it is the same question, for `peek` too; it is answered before or after the run goes on", async () => {
  const before = new Agent(options());
  let count = 0;
  before.subscribe(() => void count++);
  before.prompt("Go.");
  await asked(before);
  await settle();
  for (let kill = 1; kill <= count; kill++) {
    for (const isEarly of [true, false]) {
      const agent = new Agent(options());
      let seen = 0;
      /** @type {any} */
      let saved;
      agent.subscribe(() => {
        if (++seen === kill) saved = JSON.stringify(agent.checkpoint());
      });
      agent.prompt("Go.");
      while (!saved) await settle();
      const known = peek(saved).pendingQuestions;
      const again = await Agent.restore(saved, options());
      assert.deepEqual(again.pendingQuestions, known, `killed at ${kill}`);
      const open = known.find(({ kind }) => kind === "tool_call");
      if (!open) answers(again, { output: "in Oslo" });
      const resolve = () => {
        if (!open) return;
        assert.equal(again.resolve(open.id, { output: "in Oslo" }), true);
        assert.equal(again.resolve(open.id, { output: "twice" }), false);
      };
      if (isEarly) resolve();
      const run = again.continue();
      if (!isEarly) setTimeout(resolve);
      const result = await run;
      assert.match(result.text, /^in Oslo and /, `killed at ${kill}`);
      assert.deepEqual(again.pendingQuestions, []);
    }
  }
});

test("one inside a sub-agent is answered at the outermost agent, also after a restart", async () => {
  const outer = () => ({ model: calling(call(["clerk", { prompt: "x" }])), tools: [subagent({ name: "clerk", description: "", agent: () => new Agent(options()) })] });
  const agent = new Agent(outer());
  const run = agent.prompt("Go.");
  const question = await asked(agent);
  assert.deepEqual([question.path, question.callId], [["c1"], "c1"]);
  const saved = JSON.stringify(agent.checkpoint());
  agent.resolve(question.id, { output: "in Oslo" });
  assert.match((await run).text, /^in Oslo and/);

  const again = await Agent.restore(saved, outer());
  assert.deepEqual(again.pendingQuestions, [question]);
  again.resolve(question.id, { output: "in Bergen" });
  assert.match((await again.continue()).text, /^in Bergen and/);
});

test("a client answers it where its door lets it; the mirror shows it; a store too", async () => {
  for (const allowed of [undefined, ["tool"]]) {
    const agent = new Agent(options());
    const handler = agentHandler(agent, /** @type {any} */ ({ answers: allowed }));
    const client = new RemoteAgent({ url: "http://a.localhost/x", fetch: (url, init) => handler(new Request(url, init)), onError() {} });
    const store = new AgentStore(/** @type {any} */ (client));
    const leave = store.subscribe(() => {});
    const run = client.prompt("Go.");
    const question = await asked(client);
    assert.deepEqual({ ...question, id: "", askedAt: 0 }, { id: "", kind: "tool_call", path: [], callId: "c1", toolName: "where", arguments: { exact: true }, askedAt: 0 });
    while (/** @type {any} */ (store.getSnapshot()).status !== "approval") await settle();
    misused(() => client.resolve(question.id, "approve"), /for the result of a call/);
    if (allowed) {
      await assert.rejects(async () => client.resolve(question.id, { output: "in Oslo" }), /clients may not give the result of a call; see the option `answers`/);
      await client.resolve(question.id, "reject");
      assert.match((await run).text, /rejected/);
    } else {
      await client.resolve(question.id, { output: { content: [{ type: "text", text: "in Oslo" }], details: { n: 1 } } });
      await assert.rejects(async () => client.resolve(question.id, { error: "x" }), /no open question has this id|already/);
      assert.equal((await run).text, "in Oslo and seen");
      assert.deepEqual(agent.messages.find((/** @type {any} */ message) => message.callId === "c1"), { ...(/** @type {any} */ (agent.messages.find((/** @type {any} */ message) => message.callId === "c1"))), details: { n: 1 }, isError: false });
    }
    leave();
    client[Symbol.dispose]?.();
  }
});

/** The result of the last call was given here; the call around it has none yet. @param {any} chat */
const isAnswered = ({ messages }) => messages.at(-1).parts.at(-1).type === "tool-where" && messages.at(-1).parts.at(-1).state === "output-available";

for (const isNested of [false, true]) {
  test(`a page of the AI SDK gives the result with \`addToolOutput\`${isNested ? ", of an agent inside a call" : ""}`, async () => {
    const inner = () => new Agent(options());
    const agent = isNested ? new Agent({ model: calling(call(["clerk", { prompt: "x" }])), tools: [subagent({ name: "clerk", description: "", agent: inner })] }) : inner();
    /** @type {any[]} */
    const errors = [];
    const chat = /** @type {any} */ (new Chat({
      transport: chatTransport(agent), sendAutomaticallyWhen: isNested ? isAnswered : ai.lastAssistantMessageIsCompleteWithToolCalls, onError: (error) => errors.push(error),
      onToolCall: ({ toolCall }) => {
        if (toolCall.toolName === "where") void chat.addToolOutput({ tool: "where", toolCallId: toolCall.toolCallId, output: { city: "Oslo" } });
      },
    }));
    await chat.sendMessage({ text: "Go" });
    while (chat.status !== "ready" || agent.isRunning) await settle();
    const parts = chat.messages.at(-1).parts;
    assert.deepEqual(errors, []);
    assert.match(parts.at(-1).text, /^\{"city":"Oslo"\} and/);
    assert.deepEqual(parts.filter((/** @type {any} */ { type }) => type === "tool-where").map((/** @type {any} */ { state, output }) => [state, output]), [["output-available", { city: "Oslo" }]]);
  });
}

test("a server of useChat reads results for calls that wait for one, and no others", async () => {
  const agent = new Agent(options());
  const run = agent.prompt("Go.");
  const response = run.toUIMessageStreamResponse();
  const text = await response.text();
  assert.match(text, /"type":"finish","finishReason":"tool-calls"/);
  const { id } = await asked(agent);
  const posted = (/** @type {any[]} */ ...parts) => [{ role: "assistant", parts }];
  const part = { type: "tool-where", toolCallId: "c1", state: "output-available", output: "in Oslo", input: {} };
  assert.deepEqual(fromUIMessages(posted(part)).answers, {});
  assert.deepEqual(fromUIMessages(posted({ ...part, toolCallId: "c2" }, { ...part, state: "input-available" }), { agent }).answers, {});
  assert.deepEqual(fromUIMessages(posted({ ...part, state: "output-error", errorText: "no" }), { agent }).answers, { [id]: { error: "no" } });
  const { answers } = fromUIMessages(posted(part), { agent });
  assert.deepEqual(answers, { [id]: { output: "in Oslo" } });
  for (const [question, answer] of Object.entries(answers)) agent.resolve(question, answer);
  assert.match(await run.toUIMessageStreamResponse().text(), /"toolCallId":"c1","output":"in Oslo"/);
  assert.equal((await run).text, "in Oslo and seen");
});

test("in a durable run it is answered in this process or a later one, and is recorded", async () => {
  for (const kill of [false, true]) {
    /** @type {Map<string, any>} */
    const records = new Map();
    let isDead = false;
    const step = async (/** @type {string} */ name, /** @type {(info?: any) => Promise<any>} */ work) => {
      if (!records.has(name)) {
        const record = await work();
        if (isDead) return new Promise(() => {});
        records.set(name, JSON.parse(JSON.stringify(record)));
      }
      return structuredClone(records.get(name));
    };
    const durable = () => options({ host: { step } });
    const agent = new Agent(durable());
    const run = agent.prompt("Go.");
    const question = await asked(agent);
    await settle();
    if (!kill) {
      assert.equal(agent.resolve(question.id, { output: "in Oslo" }), true);
      assert.equal((await run).text, "in Oslo and seen");
    } else isDead = true;
    const recorded = records.size;
    isDead = false;
    const again = new Agent(durable());
    const second = again.prompt("Go.");
    if (kill) again.resolve((await asked(again)).id, { output: "in Oslo" });
    assert.equal((await second).text, "in Oslo and seen", kill ? "killed" : "repeated");
    if (!kill) assert.equal(records.size, recorded, "nothing was done again");
  }
});

test("`host.wait` of a durable engine is asked for the result, too; without steps, it is asked for approvals alone", async () => {
  for (const isDurable of [false, true]) {
    /** @type {string[]} */
    const waited = [];
    const wait = async (/** @type {string} */ name, /** @type {any} */ { toolName, kind }) => (waited.push(`${name} ${toolName}`), kind === "tool_call" ? { output: "in Oslo" } : "approve");
    const step = async (/** @type {string} */ _, /** @type {(info?: any) => Promise<any>} */ work) => JSON.parse(JSON.stringify((await work()) ?? null));
    const agent = new Agent(options({ host: { wait, ...(isDurable && { step }) }, tools: [{ ...where, requiresApproval: true }, look] }));
    const run = agent.prompt("Go.");
    if (!isDurable) assert.equal(agent.resolve((await asked(agent)).id, { output: "in Oslo" }), true);
    assert.equal((await run).text, "in Oslo and seen");
    assert.deepEqual(waited, ["t0/approve/0 where", ...(isDurable ? ["t0/answer/0-where where"] : [])]);
  }
});

test("its tape plays as it was, with the question where it was open", async () => {
  const agent = new Agent(options());
  const recorder = await record(agent);
  answers(agent, { output: "in Oslo" });
  await agent.prompt("Go.");
  recorder.stop();
  const tape = recorder.toTape();
  const player = replay(tape);
  const open = Array.from({ length: tape.events }, (_, n) => player.seek(n)).filter(({ pendingQuestions }) => pendingQuestions.some(({ kind }) => kind === "tool_call"));
  assert.ok(open.length > 0);
  assert.equal(JSON.stringify(player.seek(tape.events).messages), JSON.stringify(agent.messages));
});
