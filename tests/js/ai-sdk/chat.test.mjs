// @ts-check
// `chatTransport` under the real `Chat` of the AI SDK, versions 6 and 7.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Chat as Chat7 } from "@ai-sdk/react";
import * as ai7 from "ai";
import * as ai6 from "ai-6";
import { Chat as Chat6 } from "ai-sdk-react-3";
import { chatTransport } from "../../../pkg/ai-sdk.js";
import { RemoteAgent } from "../../../pkg/remote.js";
import { agentHandler } from "../../../pkg/server.js";
import { Agent, call, deferred, misused, scripted, settle, testTool } from "../kit.mjs";

/** @type {[string, any, any][]} */
const VERSIONS = [["ai 6", Chat6, ai6], ["ai 7", Chat7, ai7]];

/** The parts of messages in short: who, and what is in it. @param {any[]} messages */
const shown = (messages) => messages.map(({ role, parts }) => [role, ...parts.flatMap(short)].join(" | "));

/** @param {any} part */
function short({ type, text, state, output, errorText, toolName }) {
  if (type === "step-start") return [];
  if (type === "text") return [text];
  if (type === "reasoning") return [`(${text})`];
  return [`${toolName ?? type.replace("tool-", "")}:${state}${state === "output-available" ? `=${JSON.stringify(output)}` : errorText ? `=${errorText}` : ""}`];
}

/** Waits until something holds. @param {() => any} holds */
async function until(holds) {
  for (let i = 0; i < 1_000; i++) {
    if (holds()) return;
    await settle();
  }
  assert.fail(`never: ${holds}`);
}

const pay = () => testTool("pay", (/** @type {any} */ { n }) => `paid ${n}`, { requiresApproval: true, parameters: { type: "object", properties: { n: { type: "number" } } } });

/** A model whose text comes when it is let through. @param {any[]} gates */
const gated = (...gates) => scripted(gates.map((gate) => async (/** @type {any} */ request) => (typeof gate === "function" ? gate(request) : gate)));

for (const [name, Chat, ai] of VERSIONS) {
  /** @param {any} agent @param {any} [options] @param {any} [more] */
  const chatOf = (agent, options, more = {}) => {
    /** @type {any[]} */
    const errors = [];
    const chat = new Chat({ transport: chatTransport(agent, options), sendAutomaticallyWhen: ai.lastAssistantMessageIsCompleteWithApprovalResponses, onError: (/** @type {any} */ error) => errors.push(error), ...more });
    return Object.assign(chat, { errors });
  };

  test(`${name}: text, thinking and a tool, over two messages; the agent remembers`, async () => {
    const look = testTool("look", () => ({ seen: 1 }));
    const requests = /** @type {any[]} */ ([]);
    const model = scripted([{ thinking: "hm", text: ["one ", "two"], ...call("look") }, "done", (/** @type {any} */ request) => (requests.push(request), "again")]);
    const agent = new Agent({ model, tools: [look] });
    const chat = chatOf(agent);
    await chat.sendMessage({ text: "Go" });
    assert.equal(chat.status, "ready");
    assert.deepEqual(shown(chat.messages), ["user | Go", 'assistant | (hm) | one two | look:output-available={"seen":1} | done']);
    assert.equal(chat.messages[1].metadata.stopReason, "completed");
    await chat.sendMessage({ text: "More" });
    assert.equal(requests[0].messages.length, 5);
    assert.deepEqual(shown(chat.messages).slice(2), ["user | More", "assistant | again"]);
    assert.deepEqual(chat.errors, []);
    assert.notEqual(chat.messages[1].id, chat.messages[3].id);
  });

  for (const approved of [true, false]) {
    test(`${name}: a person ${approved ? "approves" : "rejects"}, and the answer goes on in the same message`, async () => {
      const agent = new Agent({ model: scripted([{ text: "May I?", ...call(["pay", { n: 1 }], ["pay", { n: 2 }]) }, "Thanks."]), tools: [pay()] });
      const chat = chatOf(agent);
      await chat.sendMessage({ text: "Pay" });
      assert.deepEqual(shown(chat.messages), ["user | Pay", "assistant | May I? | pay:approval-requested | pay:approval-requested"]);
      assert.equal(chat.status, "ready");
      assert.ok(agent.isRunning);
      const asked = chat.lastMessage.parts.filter((/** @type {any} */ { approval }) => approval);
      await chat.addToolApprovalResponse({ id: asked[0].approval.id, approved, reason: "so" });
      assert.ok(agent.isRunning, "the other question is open");
      await chat.addToolApprovalResponse({ id: asked[1].approval.id, approved: true });
      await until(() => !agent.isRunning && chat.status === "ready");
      assert.deepEqual(shown(chat.messages), ["user | Pay", `assistant | May I? | pay:${approved ? 'output-available="paid 1"' : "output-denied"} | pay:output-available="paid 2" | Thanks.`]);
      assert.deepEqual(chat.errors, []);
    });
  }

  test(`${name}: stop ends the run, and the next message begins one`, async () => {
    const gate = deferred();
    const slow = testTool("slow", () => gate.promise);
    const agent = new Agent({ model: scripted([{ text: "Wait.", ...call("slow") }, "Here."]), tools: [slow] });
    const chat = chatOf(agent);
    const sent = chat.sendMessage({ text: "Go" });
    await until(() => chat.lastMessage?.parts.some((/** @type {any} */ { type }) => type === "tool-slow"));
    await chat.stop();
    await sent;
    assert.equal(chat.status, "ready");
    const again = chat.sendMessage({ text: "And now?" });
    await again;
    assert.deepEqual(shown(chat.messages).slice(2), ["user | And now?", "assistant | Here."]);
    assert.deepEqual(chat.errors, []);
    assert.deepEqual(agent.messages.map(({ role }) => role), ["user", "assistant", "tool_result", "user", "assistant"]);
  });

  test(`${name}: a chat that comes back has the whole answer once`, async () => {
    const [first, second] = [deferred(), deferred()];
    const slow = testTool("slow", () => first.promise);
    const agent = new Agent({ model: gated({ text: "Wait.", ...call("slow") }, () => second.promise), tools: [slow] });
    const transport = chatTransport(agent);
    const options = { transport, id: "c" };
    const one = new Chat(options);
    void one.sendMessage({ text: "Go" });
    await until(() => one.lastMessage?.parts.some((/** @type {any} */ { type }) => type === "tool-slow"));
    // The page was left; another component shows the chat now, with the messages as they were.
    const two = new Chat({ ...options, messages: structuredClone(one.messages) });
    const resumed = two.resumeStream();
    first.resolve("slept");
    await until(() => two.lastMessage?.parts.some((/** @type {any} */ { state }) => state === "output-available"));
    second.resolve("Good morning.");
    await resumed;
    assert.deepEqual(shown(two.messages), ["user | Go", 'assistant | Wait. | slow:output-available="slept" | Good morning.']);
    assert.equal(await transport.reconnectToStream({ chatId: "c" }), null, "nothing runs any more");
  });

  test(`${name}: a chat that comes back while a question is open can answer it`, async () => {
    const agent = new Agent({ model: scripted([{ text: "May I?", ...call(["pay", { n: 1 }]) }, { text: "And?", ...call(["pay", { n: 2 }]) }, "Thanks."]), tools: [pay()] });
    const one = chatOf(agent);
    await one.sendMessage({ text: "Pay" });
    await one.addToolApprovalResponse({ id: one.lastMessage.parts.at(-1).approval.id, approved: true });
    await until(() => one.status === "ready" && one.lastMessage.parts.at(-1).state === "approval-requested");
    const two = new Chat({ transport: one.transport, messages: [one.messages[0]], sendAutomaticallyWhen: ai.lastAssistantMessageIsCompleteWithApprovalResponses });
    await two.resumeStream();
    assert.deepEqual(shown(two.messages), ["user | Pay", 'assistant | May I? | pay:output-available="paid 1" | And? | pay:approval-requested']);
    await two.addToolApprovalResponse({ id: two.lastMessage.parts.at(-1).approval.id, approved: true });
    await until(() => !agent.isRunning && two.status === "ready");
    assert.deepEqual(shown(two.messages).slice(1), ['assistant | May I? | pay:output-available="paid 1" | And? | pay:output-available="paid 2" | Thanks.']);
  });

  test(`${name}: a message while the run goes on steers it, and has an answer of its own`, async () => {
    const gate = deferred();
    const slow = testTool("slow", () => gate.promise);
    const requests = /** @type {any[]} */ ([]);
    const agent = new Agent({ model: scripted([{ text: "Wait.", ...call("slow") }, (/** @type {any} */ request) => (requests.push(request), "Changed.")]), tools: [slow] });
    const chat = chatOf(agent);
    const sent = chat.sendMessage({ text: "Go" });
    await until(() => chat.lastMessage?.parts.some((/** @type {any} */ { type }) => type === "tool-slow"));
    const steered = chat.sendMessage({ text: "Rather not" });
    await settle();
    gate.resolve("slept");
    await Promise.all([sent, steered]);
    assert.deepEqual(shown(chat.messages), ["user | Go", 'assistant | Wait. | slow:output-available="slept"', "user | Rather not", "assistant | Changed."]);
    assert.deepEqual(requests[0].messages.map((/** @type {any} */ { role }) => role), ["user", "assistant", "tool_result", "user"]);
    assert.equal(chat.status, "ready");
    assert.deepEqual(chat.errors, []);
  });

  test(`${name}: a follow-up waits for the end; two that are read together have one answer`, async () => {
    const gate = deferred();
    const slow = testTool("slow", () => gate.promise);
    const agent = new Agent({ model: scripted([{ text: "Wait.", ...call("slow") }, "Done.", "Both."]), tools: [slow] });
    const chat = chatOf(agent, { whileRunning: "followUp" });
    const sent = [chat.sendMessage({ text: "Go" })];
    await until(() => chat.lastMessage?.parts.some((/** @type {any} */ { type }) => type === "tool-slow"));
    sent.push(chat.sendMessage({ text: "Then this" }));
    await settle();
    sent.push(chat.sendMessage({ text: "And this" }));
    await settle();
    gate.resolve("slept");
    await Promise.all(sent);
    assert.deepEqual(shown(chat.messages), ["user | Go", 'assistant | Wait. | slow:output-available="slept" | Done.', "user | Then this", "user | And this", "assistant | Both."]);
    assert.deepEqual(chat.errors, []);
  });

  test(`${name}: a message in place of an answer to a question`, async () => {
    const agent = new Agent({ model: scripted([{ text: "May I?", ...call(["pay", { n: 1 }]) }, "Then not."]), tools: [pay()] });
    const chat = chatOf(agent);
    await chat.sendMessage({ text: "Pay" });
    await chat.sendMessage({ text: "Stop that" });
    assert.equal(shown(chat.messages).at(-1), "assistant | Then not.");
    assert.equal(shown(chat.messages).at(-2), "user | Stop that");
    assert.equal(agent.isRunning, false);
    assert.deepEqual(chat.errors, []);
  });

  test(`${name}: regenerate and edit take the history back`, async () => {
    const requests = /** @type {any[]} */ ([]);
    const model = scripted(["One.", "Two.", "Other two.", "Other one.", "Three."].map((text) => (/** @type {any} */ request) => (requests.push(request.messages.map((/** @type {any} */ { content }) => content[0].text)), text)));
    const counted = testTool("x", () => "");
    const agent = new Agent({ model, tools: [counted], sessionState: { a: 1 } });
    const chat = chatOf(agent);
    await chat.sendMessage({ text: "Hi" });
    await chat.sendMessage({ text: "Hi" });
    const { usage } = agent;
    await chat.regenerate();
    assert.deepEqual(requests.at(-1), ["Hi", "One.", "Hi"]);
    assert.deepEqual(shown(chat.messages), ["user | Hi", "assistant | One.", "user | Hi", "assistant | Other two."]);
    assert.equal(agent.messages.length, 4);
    assert.ok(agent.usage.total >= usage.total, "what was used stays");
    await chat.sendMessage({ text: "Hello", messageId: chat.messages[0].id });
    assert.deepEqual(requests.at(-1), ["Hello"]);
    assert.deepEqual(shown(chat.messages), ["user | Hello", "assistant | Other one."]);
    await chat.sendMessage({ text: "Go on" });
    assert.deepEqual(requests.at(-1), ["Hello", "Other one.", "Go on"]);
    assert.deepEqual(chat.errors, []);
  });

  test(`${name}: errors of the run are the chat's; a post that answers nothing is not sent again and again`, async () => {
    const agent = new Agent({ model: scripted([{ text: "half", error: { code: "auth", message: "who are you?" } }, "Better."]), tools: [] });
    const chat = chatOf(agent, { onError: (/** @type {any} */ { message }) => `Sorry: ${message}` });
    await chat.sendMessage({ text: "Go" });
    assert.equal(chat.status, "error");
    assert.equal(chat.error.message, "Sorry: who are you?");
    const asking = new Agent({ model: scripted([{ text: "May I?", ...call(["pay", { n: 1 }]) }, "Thanks."]), tools: [pay()] });
    const late = chatOf(asking);
    await late.sendMessage({ text: "Pay" });
    const { id } = late.lastMessage.parts.at(-1).approval;
    asking.abort();
    await asking.waitForIdle();
    await late.addToolApprovalResponse({ id, approved: true });
    await until(() => late.status === "error");
    assert.match(late.errors[0].message, /answers no open question/);
  });
}

test("an agent elsewhere: text, a question, and an answer again", async () => {
  const agent = new Agent({ model: scripted([{ text: "May I?", ...call(["pay", { n: 1 }]) }, "Thanks.", "Again."]), tools: [pay()] });
  const handler = agentHandler(agent);
  const remote = new RemoteAgent({ url: "http://localhost/agents/1", fetch: /** @type {any} */ (async (/** @type {any} */ url, /** @type {any} */ init) => handler(new Request(url, init))) });
  const chat = new Chat7({ transport: chatTransport(remote), sendAutomaticallyWhen: ai7.lastAssistantMessageIsCompleteWithApprovalResponses });
  await chat.sendMessage({ text: "Pay" });
  assert.deepEqual(shown(chat.messages), ["user | Pay", "assistant | May I? | pay:approval-requested"]);
  await chat.addToolApprovalResponse({ id: /** @type {any} */ (chat.lastMessage?.parts.at(-1)).approval.id, approved: true });
  await until(() => chat.status === "ready" && !agent.isRunning && /Thanks/.test(shown(chat.messages).join()));
  assert.deepEqual(shown(chat.messages), ["user | Pay", 'assistant | May I? | pay:output-available="paid 1" | Thanks.']);
  await chat.regenerate();
  assert.deepEqual([chat.error, agent.messages.length, ...shown(chat.messages)], [undefined, 2, "user | Pay", "assistant | Again."]);
  remote[Symbol.dispose]?.();
  handler[Symbol.dispose]();
});

test("an agent that was restored goes on when the question is answered", async () => {
  const asked = new Agent({ model: scripted([{ text: "May I?", ...call(["pay", { n: 1 }]) }]), tools: [pay()] });
  const before = new Chat7({ transport: chatTransport(asked) });
  await before.sendMessage({ text: "Pay" });
  const saved = JSON.stringify(asked.checkpoint());
  const agent = await Agent.restore(saved, { model: scripted(["Thanks."]), tools: [pay()] });
  const after = new Chat7({ transport: chatTransport(agent), messages: structuredClone(before.messages), sendAutomaticallyWhen: ai7.lastAssistantMessageIsCompleteWithApprovalResponses });
  await after.addToolApprovalResponse({ id: /** @type {any} */ (after.lastMessage?.parts.at(-1)).approval.id, approved: true });
  await until(() => after.status === "ready" && !agent.isRunning && after.messages.length > 1);
  await until(() => /Thanks/.test(shown(after.messages).join()));
  assert.deepEqual(shown(after.messages), ["user | Pay", 'assistant | May I? | pay:output-available="paid 1" | Thanks.']);
});

test("misuse is named", async () => {
  misused(() => chatTransport(/** @type {any} */ ({})), /takes an agent/);
  const agent = new Agent({ model: scripted([]) });
  misused(() => chatTransport(agent, /** @type {any} */ ({ whileRuning: "steer" })), /did you mean `whileRunning`/);
  misused(() => chatTransport(agent, /** @type {any} */ ({ whileRunning: "wait" })), /"steer" or "followUp"/);
});
