// @ts-check
// The history is taken back between two runs: what else the agent has stays, and what was cut can be gone back to.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Chat } from "@ai-sdk/react";
import { chatTransport } from "../../../pkg/ai-sdk.js";
import { RemoteAgent } from "../../../pkg/remote.js";
import { AgentStore } from "../../../pkg/react-store.js";
import { agentHandler } from "../../../pkg/server.js";
import { record, replay } from "../../../pkg/tape.js";
import { Agent, call, deferred, misused, scripted, settle, testTool } from "../kit.mjs";

/** A model that says what it was shown. @param {any} request */
const shown = ({ messages }) => messages.flatMap((/** @type {any} */ { role, content }) => (role === "user" ? [content.map((/** @type {any} */ { text }) => text).join()] : [])).join(" ");
/** @param {any} [more] */
const options = (more) => ({ model: scripted(Array.from({ length: 20 }, () => shown)), ...more });

/** @param {Agent} agent */
const roles = (agent) => agent.messages.map(({ role }) => role);

test("what was cut is given back, and can be gone back to; usage, session, state and listeners stay", async () => {
  const note = testTool("note", (/** @type {any} */ _, /** @type {any} */ { state }) => (state.set("noted", 1), "ok"));
  const agent = new Agent(options({ tools: [note], model: scripted([call("note"), "noted", shown, shown, shown]) }));
  /** @type {any[]} */
  const events = [];
  agent.subscribe((event) => events.push(event));
  await agent.prompt("one");
  const { usage, sessionId } = agent;
  await agent.prompt("two");
  const total = agent.usage;
  const two = agent.rewind(4);
  assert.deepEqual([roles(agent), two.map(({ role }) => role)], [["user", "assistant", "tool_result", "assistant"], ["user", "assistant"]]);
  assert.deepEqual(events.at(-1), { type: "history_rewound", runId: "", length: 4, cut: 2, added: 0 });
  assert.deepEqual([agent.usage, agent.sessionId], [total, sessionId]);
  assert.notDeepEqual(usage, undefined);
  assert.equal((await agent.prompt("three")).text, "one three");
  assert.deepEqual(/** @type {any} */ (agent.checkpoint().metadata).turnwheel.session, { noted: 1 });
  const three = agent.rewind(4, two);
  assert.deepEqual(agent.messages.slice(4), two);
  assert.equal((await agent.prompt("four")).text, "one two four");
  assert.equal(three.length, 2);
  const restored = await Agent.restore(agent.checkpoint(), options());
  assert.deepEqual(restored.messages, agent.messages);
});

test("what is no length is refused, and so is a run in progress; before the first run it is a list", async () => {
  const gate = deferred();
  const agent = new Agent(options({ messages: [{ role: "user", content: "a", timestamp: 1 }, { role: "user", content: "b", timestamp: 1 }], model: scripted([async (/** @type {any} */ request) => (await gate.promise, shown(request))]) }));
  for (const wrong of [-1, 3, 0.5, "1", undefined, Number.NaN]) misused(() => agent.rewind(/** @type {any} */ (wrong)), /`rewind` takes how many messages stay, a whole number from 0 to 2, got/);
  misused(() => agent.rewind(1, /** @type {any} */ ([{ role: "nobody" }])), /role/);
  agent.rewind(1);
  const run = agent.prompt("c");
  misused(() => agent.rewind(0), /a run is in progress; abort\(\) it, await waitForIdle\(\), and rewind then/);
  gate.resolve();
  assert.equal((await run).text, "a c");
  agent[Symbol.dispose]();
  misused(() => agent.rewind(0), /disposed/);
});

test("a run of a checkpoint is given up, with its questions; what waits in the queues waits still", async () => {
  const pay = testTool("pay", () => "paid", { requiresApproval: true });
  for (const isRestored of [true, false]) {
    const agent = new Agent(options({ tools: [pay], model: scripted(["hello", call("pay"), shown]) }));
    await agent.prompt("one");
    const run = agent.prompt("pay");
    while (agent.pendingQuestions.length === 0) await settle();
    agent.followUp("later");
    await settle();
    const saved = agent.checkpoint();
    run.abort();
    await run;
    if (isRestored) {
      const again = await Agent.restore(saved, options({ tools: [pay] }));
      assert.equal(again.pendingQuestions.length, 1);
      again.rewind(2);
      assert.deepEqual([again.pendingQuestions, again.canContinue], [[], true], "a message waits");
      assert.equal((await again.prompt("two")).messages.filter(({ role }) => role === "user").length, 2);
      assert.equal(again.resolve(/** @type {any} */ (saved.metadata).turnwheel.run.phase.calls[0].question.id, "approve"), false);
    } else {
      agent.rewind(2);
      const { messages } = await agent.prompt("two");
      assert.deepEqual(messages.filter(({ role }) => role === "user").length, 2, "the follow-up is read behind it");
    }
  }
});

test("a client takes it back, and goes back; what it may not is named", async () => {
  const agent = new Agent(options());
  const handler = agentHandler(agent, { authorize: (_, command) => command !== "rewind" || allowed });
  let allowed = true;
  const client = new RemoteAgent({ url: "http://a.localhost/x", fetch: (url, init) => handler(new Request(url, init)), onError() {} });
  /** @type {any[]} */
  const events = [];
  client.subscribe((event) => events.push(event));
  await client.prompt("one");
  await client.prompt("two");
  const cut = await client.rewind(2);
  const until = async (/** @type {() => boolean} */ holds) => {
    for (let i = 0; i < 1_000 && !holds(); i++) await settle();
    assert.ok(holds(), String(holds));
  };
  await until(() => client.messages.length === 2);
  assert.deepEqual([cut.length, agent.messages.length, events.at(-1)], [2, 2, { type: "history_rewound", runId: "", length: 2, cut: 2, added: 0 }]);
  assert.equal((await client.prompt("three")).text, "one three");
  await client.rewind(2, cut);
  await until(() => client.messages.length === 4 && JSON.stringify(client.messages).includes("two"));
  assert.equal((await client.prompt("four")).text, "one two four");
  await assert.rejects(client.rewind(2, [.../** @type {any} */ (cut)]), /goes back to what its own `rewind` has cut/);
  await assert.rejects(client.rewind(99), /a whole number from 0 to 6, got 99/);
  allowed = false;
  await assert.rejects(client.rewind(0), /.*/);
  assert.equal(agent.messages.length, 6);
  // Somebody who comes later sees it as it is.
  const late = new RemoteAgent({ url: "http://a.localhost/x", fetch: (url, init) => handler(new Request(url, init)) });
  await late.ready();
  assert.deepEqual(late.messages, agent.messages);
  for (const one of [client, late]) one[Symbol.dispose]?.();
});

test("a component takes it back; the store shows what is left", async () => {
  const agent = new Agent(options());
  const store = new AgentStore(/** @type {any} */ (agent));
  const leave = store.subscribe(() => {});
  const view = () => /** @type {any} */ (store.getSnapshot());
  await view().send("one");
  await view().send("two");
  const cut = view().rewind(2);
  await settle();
  await new Promise((wake) => setTimeout(wake, 30));
  assert.deepEqual([view().history.length, cut.length], [2, 2]);
  leave();
});

test("a chat that regenerates or edits takes the agent's own history back, here and elsewhere", async () => {
  for (const isRemote of [false, true]) {
    const agent = new Agent(options());
    const handler = agentHandler(agent);
    const client = isRemote ? new RemoteAgent({ url: "http://a.localhost/x", fetch: (url, init) => handler(new Request(url, init)) }) : agent;
    /** @type {any[]} */
    const errors = [];
    const chat = new Chat({ transport: chatTransport(client), onError: (error) => errors.push(error) });
    await chat.sendMessage({ text: "one" });
    await chat.sendMessage({ text: "two" });
    await chat.regenerate();
    assert.equal(agent.messages.length, 4);
    await chat.sendMessage({ text: "another", messageId: chat.messages[2]?.id ?? "" });
    assert.deepEqual(errors, []);
    assert.deepEqual(chat.messages.map(({ parts }) => parts.flatMap((/** @type {any} */ part) => part.text ?? []).join()), ["one", "one", "another", "one another"]);
    assert.equal(agent.messages.length, 4);
    client[Symbol.dispose]?.();
  }
});

test("the tape of an agent whose history was taken back plays as it was", async () => {
  const agent = new Agent(options());
  const recorder = await record(agent);
  await agent.prompt("one");
  await agent.prompt("two");
  agent.rewind(2);
  await agent.prompt("three");
  recorder.stop();
  const tape = recorder.toTape();
  assert.deepEqual(replay(tape).seek(tape.events).messages?.map(({ content }) => content), agent.messages.map((/** @type {any} */ { content }) => content));
});
