// @ts-check
// The ids of messages: the same in the stream, in the history, after a reload, after a resume, in another process.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Chat as Chat7 } from "@ai-sdk/react";
import { Chat as Chat6 } from "ai-sdk-react-3";
import { chatTransport, toUIMessages } from "../../../pkg/ai-sdk.js";
import { RemoteAgent } from "../../../pkg/remote.js";
import { agentHandler } from "../../../pkg/server.js";
import { Agent, call, deferred, scripted, settle, testTool } from "../kit.mjs";

/** @param {readonly { id?: string, role: string }[]} messages */
const ids = (messages) => messages.map(({ id, role }) => `${role} ${id}`);

for (const [name, Chat] of /** @type {[string, any][]} */ ([["ai 6", Chat6], ["ai 7", Chat7]])) {
  test(`${name}: a reload shows the same ids as the chat had, here and elsewhere, also after a restore`, async () => {
    for (const isElsewhere of [false, true]) {
      const tools = [testTool("look", () => "seen")];
      const model = () => scripted([{ text: "Let me see.", ...call("look") }, "Noon.", "One."]);
      const agent = new Agent({ model: model(), tools });
      const handler = agentHandler(agent);
      const client = isElsewhere ? new RemoteAgent({ url: "http://a.localhost/x", fetch: (url, init) => handler(new Request(url, init)) }) : agent;
      const chat = new Chat({ transport: chatTransport(client) });
      await chat.sendMessage({ text: "What time is it?" });
      await chat.sendMessage({ text: "And now?" });
      assert.equal(chat.messages.length, 4);
      const shown = ids(chat.messages);
      assert.equal(new Set(shown).size, 4);
      assert.deepEqual(ids(toUIMessages(agent.messages)), shown);
      assert.deepEqual(ids(toUIMessages(client.messages)), shown);
      const restored = await Agent.restore(JSON.stringify(agent.checkpoint()), { model: model(), tools });
      assert.deepEqual(ids(toUIMessages(restored.messages)), shown);
      client[Symbol.dispose]?.();
      handler[Symbol.dispose]();
    }
  });

  test(`${name}: a run that the app began has its id when a chat resumes it, before and after its first answer`, async () => {
    const [first, second] = [deferred(), deferred()];
    const agent = new Agent({ model: scripted([async () => (await first.promise, { text: "Let me see.", ...call("look") }), async () => (await second.promise, "Noon.")]), tools: [testTool("look", () => "seen")] });
    const transport = chatTransport(agent);
    const run = agent.prompt("What time is it?");
    await settle();
    const early = new Chat({ transport, messages: toUIMessages(agent.messages) });
    const resumed = early.resumeStream();
    first.resolve();
    for (let i = 0; i < 20; i++) await settle();
    const late = new Chat({ transport, messages: toUIMessages(agent.messages) });
    const again = late.resumeStream();
    second.resolve();
    await Promise.all([run, resumed, again]);
    for (const chat of [early, late]) assert.deepEqual(ids(chat.messages), ids(toUIMessages(agent.messages)));
  });

  test(`${name}: what a person edits is found by its id, though another message says the same`, async () => {
    const agent = new Agent({ model: scripted(Array.from({ length: 4 }, () => (/** @type {any} */ request) => `${request.messages.length}`)) });
    const chat = new Chat({ transport: chatTransport(agent) });
    for (const text of ["Again", "Again", "Again"]) await chat.sendMessage({ text });
    await chat.sendMessage({ text: "Other", messageId: chat.messages[2].id });
    assert.deepEqual(agent.messages.map(({ content }) => /** @type {any} */ (content)[0].text), ["Again", "1", "Other", "3"]);
    assert.deepEqual(ids(chat.messages), ids(toUIMessages(agent.messages)));
  });
}

test("an answer is called by its run and its turn, what the user says by the run and its place, and an id that was given stays", async () => {
  const agent = new Agent({ model: scripted([{ ...call("look") }, "Noon."]), tools: [testTool("look", () => "seen")] });
  /** @type {any[]} */
  const ended = [];
  agent.subscribe((event) => void (event.type === "message_end" && ended.push(event.message.id)));
  await agent.prompt([{ role: "user", content: "Hello", timestamp: 0 }, { role: "user", content: "Time?", timestamp: 0, id: "mine" }], { runId: "r" });
  assert.deepEqual(ids(/** @type {any} */ (agent.messages)), ["user r/m0", "user mine", "assistant r/0", "tool_result undefined", "assistant r/1"]);
  assert.deepEqual(ended, ["r/0", "r/1"]);
});

test("a client cannot send an id that is no text or too long", async () => {
  const handler = agentHandler(new Agent({ model: scripted(["x"]) }));
  for (const id of [5, {}, "x".repeat(201)]) {
    const response = await handler(new Request("http://a.localhost/prompt", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ input: { role: "user", content: "x", id } }) }));
    assert.equal(response.status, 400);
    assert.match((await response.json()).error.message, /id must be a text of at most 200 characters/);
  }
  handler[Symbol.dispose]();
});
