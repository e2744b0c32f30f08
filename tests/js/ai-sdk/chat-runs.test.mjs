// @ts-check
// A chat shows the run of its agent, whoever began it: the app, another tab, a checkpoint; stop stops it, whoever else reads.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Chat as Chat7 } from "@ai-sdk/react";
import * as ai7 from "ai";
import * as ai6 from "ai-6";
import { Chat as Chat6 } from "ai-sdk-react-3";
import { chatTransport, toUIMessages } from "../../../pkg/ai-sdk.js";
import { RemoteAgent } from "../../../pkg/remote.js";
import { agentHandler } from "../../../pkg/server.js";
import { Agent, call, deferred, scripted, settle, subagent, testTool } from "../kit.mjs";

/** @type {[string, any, any][]} */
const VERSIONS = [["ai 6", Chat6, ai6], ["ai 7", Chat7, ai7]];
/** @param {() => any} holds */
async function until(holds) {
  for (let i = 0; i < 2_000 && !holds(); i++) await settle();
  assert.ok(holds(), String(holds));
}
/** @param {any} chat */
const texts = (chat) => chat.messages.map((/** @type {any} */ { role, parts }) => `${role}: ${parts.flatMap((/** @type {any} */ part) => part.text ?? (part.state ? `[${part.state}]` : [])).join(" ")}`);
const pay = () => testTool("pay", () => "paid", { requiresApproval: true });

for (const [name, Chat, ai] of VERSIONS) {
  const options = { sendAutomaticallyWhen: ai.lastAssistantMessageIsCompleteWithApprovalResponses };

  test(`${name}: a message into a run of the app, or of another tab, has its answer where it was asked`, async () => {
    for (const [isElsewhere, isHeard] of [[false, false], [true, false], [true, true]]) {
      const gate = deferred();
      const agent = new Agent({ model: scripted([async () => (await gate.promise, "Good morning!"), "It is noon."]) });
      const handler = agentHandler(agent);
      const client = isElsewhere ? new RemoteAgent({ url: "http://a.localhost/x", fetch: (url, init) => handler(new Request(url, init)) }) : agent;
      const chat = new Chat({ ...options, transport: chatTransport(client) });
      agent.prompt("Greet the person.");
      await settle();
      // The page may hear of it already.
      if (isHeard) client.subscribe(() => {});
      if (isHeard) await until(() => client.isRunning);
      const sent = chat.sendMessage({ text: "What time is it?" });
      await until(() => client.isRunning);
      await settle();
      gate.resolve();
      await sent;
      assert.deepEqual([chat.status, ...texts(chat)], ["ready", "user: What time is it?", "assistant: It is noon."]);
      client[Symbol.dispose]?.();
      handler[Symbol.dispose]();
    }
  });

  test(`${name}: what the app goes on with from a checkpoint is resumed with its question, and answered`, async () => {
    const before = new Agent({ model: scripted([{ text: "May I?", ...call("pay") }]), tools: [pay()] });
    before.prompt("Pay.");
    await until(() => before.pendingQuestions.length > 0);
    const agent = await Agent.restore(before.checkpoint(), { model: scripted(["It is paid."]), tools: [pay()] });
    const chat = new Chat({ ...options, transport: chatTransport(agent), messages: toUIMessages(agent.messages) });
    agent.continue();
    await settle();
    await chat.resumeStream();
    assert.deepEqual(texts(chat), ["user: Pay.", "assistant: May I? [approval-requested]"]);
    await chat.addToolApprovalResponse({ id: chat.lastMessage.parts.at(-1).approval.id, approved: true });
    await until(() => chat.status === "ready" && !agent.isRunning);
    assert.match(texts(chat)[1] ?? "", /May I\? \[output-available\] It is paid\./);
  });

  test(`${name}: stop after a resume stops the run, though the page that was left still reads`, async () => {
    const slow = testTool("slow", (/** @type {any} */ _, /** @type {any} */ { signal }) => new Promise((__, reject) => signal.addEventListener("abort", () => reject(signal.reason))));
    const agent = new Agent({ model: scripted([{ text: "Wait.", ...call("slow") }]), tools: [slow] });
    const transport = chatTransport(agent);
    const left = new Chat({ transport, id: "c" });
    void left.sendMessage({ text: "Go" });
    await until(() => left.lastMessage?.parts.some((/** @type {any} */ { type }) => type === "tool-slow"));
    const back = new Chat({ transport, id: "c", messages: structuredClone(left.messages) });
    void back.resumeStream();
    await until(() => back.status === "streaming");
    await back.stop();
    await new Promise((wake) => setTimeout(wake, 20));
    assert.equal(agent.isRunning, false);
  });

  test(`${name}: a text that was cut off by a failed attempt streams no more`, async () => {
    const host = { sleep: async () => {}, random: () => 0.5 };
    const agent = new Agent({ model: scripted([{ text: "Half an ans", error: { code: "network", message: "the line went dead" } }, "A whole answer."]), host: /** @type {any} */ (host) });
    const chat = new Chat({ transport: chatTransport(agent) });
    await chat.sendMessage({ text: "Go" });
    const parts = chat.lastMessage.parts.filter((/** @type {any} */ { type }) => type === "text");
    assert.deepEqual(parts.map((/** @type {any} */ { state }) => state).filter((/** @type {any} */ state) => state !== "done"), []);
    assert.equal(parts.at(-1).text, "A whole answer.");
  });

  test(`${name}: a question of an agent inside a call ends the stream, and is answered`, async () => {
    const inner = () => new Agent({ model: scripted([call("pay"), "Inside."]), tools: [pay()] });
    const agent = new Agent({ model: scripted([call(["clerk", { prompt: "x" }]), "Done."]), tools: [subagent({ name: "clerk", description: "", agent: inner })] });
    const chat = new Chat({ ...options, transport: chatTransport(agent) });
    await chat.sendMessage({ text: "Go" });
    const asked = chat.lastMessage.parts.at(-1);
    assert.deepEqual([asked.type, asked.state], ["tool-pay", "approval-requested"]);
    agent.resolve(asked.approval.id, "approve");
    await agent.waitForIdle();
  });
}
