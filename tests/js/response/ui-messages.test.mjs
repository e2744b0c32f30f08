// @ts-check
// Runs as the UI message stream, read by the AI SDK's own parser and schema.

import assert from "node:assert/strict";
import { test } from "node:test";
import * as ai7 from "ai";
import * as ai6 from "ai-6";
import { fromUIMessages } from "../../../pkg/server.js";
import { Agent, call, deferred, misused, scripted, settle, testTool } from "../kit.mjs";

/**
 * Reads a response with the AI SDK: its chunks, each checked, and the message.
 * @param {Response} response @param {any} [message] the one that it continues @param {any} [ai] the version of the SDK
 */
async function read(response, message, ai = ai7) {
  const { parseJsonEventStream, readUIMessageStream, uiMessageChunkSchema } = ai;
  assert.equal(response.headers.get("x-vercel-ai-ui-message-stream"), "v1");
  assert.equal(response.headers.get("content-type"), "text/event-stream");
  /** @type {any[]} */
  const chunks = [];
  const stream = parseJsonEventStream({ stream: /** @type {any} */ (response.body), schema: uiMessageChunkSchema }).pipeThrough(new TransformStream({
    transform(part, controller) {
      if (!part.success) throw part.error;
      chunks.push(part.value);
      controller.enqueue(part.value);
    },
  }));
  let last = message;
  /** @type {string | undefined} */
  let error;
  for await (const next of readUIMessageStream({ message, stream: /** @type {any} */ (stream), onError: (thrown) => void (error = /** @type {any} */ (thrown).message) })) last = next;
  return { chunks, message: last, error, types: chunks.map(({ type }) => type).filter((type, i, all) => type !== all[i - 1]) };
}

/** The parts of a message, without what is unset. @param {any} message */
const partsOf = (message) => JSON.parse(JSON.stringify(message.parts));

test("text, thinking and a tool, over two steps", async () => {
  const look = testTool("look", (/** @type {any} */ _, /** @type {any} */ { update }) => (update({ half: true }), { seen: 1 }));
  const model = scripted([
    { thinking: "hm", text: ["one ", "two"], toolCalls: [{ callId: "a", toolName: "look", arguments: { at: "north" }, chunks: ['{"at":', '"north"}'] }] },
    { text: ["all ", "done"], usage: { input: 3, output: 2 } },
  ]);
  const run = new Agent({ model, tools: [look] }).prompt("Go");
  const { message, types, chunks } = await read(run.toUIMessageStreamResponse());
  assert.deepEqual(types, [
    "start", "start-step", "reasoning-start", "reasoning-delta", "reasoning-end", "text-start", "text-delta", "tool-input-start",
    "tool-input-delta", "text-end", "tool-input-available", "tool-output-available", "finish-step", "start-step", "text-start", "text-delta", "text-end", "finish-step", "finish",
  ]);
  assert.equal(chunks.find(({ preliminary }) => preliminary).output.half, true);
  assert.deepEqual(partsOf(message), [
    { type: "step-start" }, { type: "reasoning", id: "reasoning-1", text: "hm", state: "done" }, { type: "text", text: "one two", state: "done" },
    { type: "tool-look", toolCallId: "a", state: "output-available", input: { at: "north" }, output: { seen: 1 } },
    { type: "step-start" }, { type: "text", text: "all done", state: "done" },
  ]);
  const { usage } = await run;
  assert.deepEqual(message.metadata, { runId: run.runId, stopReason: "completed", turns: 2, usage });
});

test("errors of tools and of the run, lengths and aborts are told as such", async () => {
  const failing = testTool("fail", () => { throw new Error("no luck"); });
  const first = await read(new Agent({ model: scripted([call("fail", "nope"), { text: "cut", stopReason: "length" }]), tools: [failing] }).prompt("Go").toUIMessageStreamResponse());
  const [, failed, unknown] = partsOf(first.message);
  assert.deepEqual([failed.state, failed.errorText], ["output-error", "tool `fail` failed: no luck"]);
  assert.equal(unknown.state, "output-error");
  assert.equal(first.chunks.at(-1).finishReason, "length");
  const broken = () => new Agent({ model: scripted([{ text: "half", error: { code: "auth", message: "who are you?" } }]) }).prompt("Go");
  const second = await read(broken().toUIMessageStreamResponse());
  assert.equal(second.error, "who are you?");
  assert.equal(second.message.metadata.stopReason, "error");
  assert.equal((await read(broken().toUIMessageStreamResponse({ onError: () => "Sorry." }))).error, "Sorry.");
  const agent = new Agent({ model: scripted([call("wait")]), tools: [testTool("wait", () => new Promise(() => {}))] });
  const run = agent.prompt("Go");
  agent.subscribe(({ type }) => { if (type === "tool_execution_start") run.abort("enough"); });
  const third = await read(run.toUIMessageStreamResponse());
  assert.equal(third.chunks.at(-1).type, "abort");
  assert.equal(third.error, undefined);
});

test("what an attempt that failed had shown is taken back", async () => {
  const model = scripted([[{ type: "start" }, { type: "text_start", contentIndex: 0 }, { type: "text_delta", contentIndex: 0, delta: "wrong" }, { type: "error", error: { code: "network", message: "cut", retryable: true } }], { text: "right" }]);
  const { message, types } = await read(new Agent({ model, host: { sleep: async () => {} } }).prompt("Go").toUIMessageStreamResponse());
  assert.ok(types.includes("reset-step"));
  assert.deepEqual(partsOf(message).map((/** @type {any} */ { text }) => text), [undefined, "right"]);
});

/**
 * Does what useChat does with a user's decision.
 * @param {any} message @param {string} toolCallId @param {boolean} approved @param {string} [reason]
 */
function withDecision(message, toolCallId, approved, reason) {
  const copy = structuredClone(message);
  const part = copy.parts.find((/** @type {any} */ one) => one.toolCallId === toolCallId);
  assert.equal(part.state, "approval-requested");
  part.state = "approval-responded";
  part.approval = { id: part.approval.id, approved, ...(reason && { reason }) };
  return copy;
}

for (const [approved, aiVersion, ai] of /** @type {[boolean, 6 | 7, any][]} */ ([[true, 7, ai7], [false, 7, ai7], [true, 6, ai6], [false, 6, ai6]])) {
  test(`a question: it ends there, and what useChat posts back goes on with it (${approved ? "approved" : "rejected"}, ai ${aiVersion})`, async () => {
    const pay = testTool("pay", () => "paid", { requiresApproval: true });
    const agent = new Agent({ model: scripted([{ text: "May I?", toolCalls: [{ callId: "p", toolName: "pay", arguments: { n: 5 } }, { callId: "q", toolName: "pay" }] }, "Thanks."]), tools: [pay] });
    const run = agent.prompt("Pay");
    const response = await read(run.toUIMessageStreamResponse({ aiVersion }), undefined, ai);
    assert.ok(agent.isRunning, "the run waits");
    assert.deepEqual(response.chunks.slice(-2), [{ type: "finish-step" }, { type: "finish", finishReason: "tool-calls" }]);
    const posted = withDecision(withDecision(response.message, "p", approved, "too much"), "q", true);
    const { prompt, decisions } = fromUIMessages([{ id: "u", role: "user", parts: [{ type: "text", text: "Pay" }] }, posted]);
    assert.equal(prompt, undefined);
    const [p, q] = agent.pendingQuestions.map(({ id }) => id);
    assert.deepEqual(decisions, { [String(p)]: approved ? { action: "approve" } : { action: "reject", reason: "too much" }, [String(q)]: { action: "approve" } });
    agent.resolveTools(decisions);
    const [one, two] = await Promise.all([1, 2].map(() => read(run.toUIMessageStreamResponse({ aiVersion }), structuredClone(posted), ai)));
    assert.deepEqual(one?.chunks, two?.chunks, "several may read it");
    const parts = partsOf(one?.message);
    assert.equal(parts.find((/** @type {any} */ { toolCallId }) => toolCallId === "p").state, approved ? "output-available" : "output-denied");
    assert.equal(parts.find((/** @type {any} */ { toolCallId }) => toolCallId === "q").output, "paid");
    assert.deepEqual(parts.filter((/** @type {any} */ { type }) => type === "text").map((/** @type {any} */ { text }) => text), ["May I?", "Thanks."]);
    assert.equal(parts.filter((/** @type {any} */ { type }) => type === "tool-pay").length, 2, "no part comes twice");
  });
}

test("a question that somebody in the program answers does not end it; neither does one where nobody asks a person", async () => {
  const pay = testTool("pay", () => "paid", { requiresApproval: true });
  const script = () => scripted([call("pay"), "Thanks."]);
  const listening = new Agent({ model: script(), tools: [pay] });
  listening.subscribe((event) => { if (event.type === "tool_approval_requested") listening.resolveTool(event.callId, "approve"); });
  const autoApproving = new Agent({ model: script(), tools: [pay], approveTool: async () => (await settle(), "approve") });
  const waiting = new Agent({ model: script(), tools: [pay] });
  waiting.subscribe((event) => { if (event.type === "tool_approval_requested") setTimeout(() => waiting.resolveTool(event.callId, "approve")); });
  for (const agent of [listening, autoApproving, waiting]) {
    const { message } = await read(agent.prompt("Pay").toUIMessageStreamResponse({ waitsForApproval: agent === waiting }));
    assert.equal(partsOf(message).at(-1).text, "Thanks.");
  }
});

test("a question that waits for days: another process goes on with the same message", async () => {
  const tools = [testTool("pay", () => "paid", { requiresApproval: true })];
  const agent = new Agent({ model: scripted([{ text: "May I?", ...call("pay") }]), tools });
  const response = await read(agent.prompt("Pay").toUIMessageStreamResponse());
  const saved = JSON.stringify(agent.checkpoint());
  const posted = withDecision(response.message, "c1", true);
  const restored = await Agent.restore(saved, { model: scripted(["Thanks."]), tools });
  restored.resolveTools(fromUIMessages([posted]).decisions);
  const { message, error } = await read(restored.continue().toUIMessageStreamResponse(), structuredClone(posted));
  assert.equal(error, undefined);
  const parts = partsOf(message);
  assert.deepEqual([parts.length, parts[2].state, parts[2].output, parts.at(-1).text], [5, "output-available", "paid", "Thanks."]);
});

test("a response that is asked for again tells the same from its start", async () => {
  const gate = deferred();
  const run = new Agent({ model: scripted([{ text: "hm", ...call("wait") }, "done"]), tools: [testTool("wait", () => gate.promise)] }).prompt("Go");
  const first = read(run.toUIMessageStreamResponse());
  await settle();
  const second = read(run.toUIMessageStreamResponse());
  gate.resolve("ok");
  assert.deepEqual((await first).chunks, (await second).chunks);
  assert.deepEqual((await read(run.toUIMessageStreamResponse())).chunks, (await first).chunks, "also when it is over");
});

test("ai 6 is told nothing that it refuses", async () => {
  const begun = [{ type: "start" }, { type: "text_start", contentIndex: 0 }, { type: "text_delta", contentIndex: 0, delta: "wrong" }, { type: "error", error: { code: "network", message: "cut", retryable: true } }];
  const pay = testTool("pay", () => "paid", { requiresApproval: true });
  const agent = new Agent({ model: scripted([/** @type {any} */ (begun), call("pay"), "right"]), tools: [pay], host: { sleep: async () => {} } });
  agent.subscribe((event) => { if (event.type === "tool_approval_requested") agent.resolve(event.id, "approve"); });
  const { message, types } = await read(agent.prompt("Go").toUIMessageStreamResponse({ aiVersion: 6 }), undefined, ai6);
  assert.ok(!types.includes("reset-step") && !types.includes("tool-approval-response"));
  assert.deepEqual(partsOf(message).filter(({ type }) => type === "text").map(({ text }) => text), ["wrong", "right"]);
  const odd = new Agent({ model: scripted(["a"]) }).prompt("Go").toUIMessageStreamResponse({ aiVersion: /** @type {any} */ (5) });
  await assert.rejects(odd.text(), /`aiVersion` must be 6 or 7, got 5/);
});

test("texts that come by turns stay whole, each in its place", async () => {
  const delta = (/** @type {"text" | "thinking"} */ type, /** @type {number} */ contentIndex, /** @type {string} */ delta) => ({ type: /** @type {any} */ (`${type}_delta`), contentIndex, delta });
  const start = (/** @type {"text" | "thinking"} */ type, /** @type {number} */ contentIndex) => ({ type: /** @type {any} */ (`${type}_start`), contentIndex });
  const events = [start("text", 0), delta("text", 0, "a1 "), start("text", 1), delta("text", 1, "b1 "), delta("text", 0, "a2"), start("thinking", 2), delta("thinking", 2, "hm"), delta("text", 1, "b2"), { type: "done", stopReason: "stop" }];
  for (const [aiVersion, ai] of /** @type {[6 | 7, any][]} */ ([[6, ai6], [7, ai7]])) {
    const { message } = await read(new Agent({ model: scripted([/** @type {any} */ (events)]) }).prompt("Go").toUIMessageStreamResponse({ aiVersion }), undefined, ai);
    assert.deepEqual(partsOf(message).map(({ type, text, state }) => [type, text, state]), [["step-start", undefined, undefined], ["text", "a1 a2", "done"], ["text", "b1 b2", "done"], ["reasoning", "hm", "done"]]);
  }
});

test("parts of one's own are in the message, made of events", async () => {
  const look = testTool("look", (/** @type {any} */ _, /** @type {any} */ { update }) => (update({ percent: 50 }), { content: [{ type: "text", text: "ok" }], details: { rows: 3 } }));
  const agent = new Agent({ model: scripted([call("look"), "done"]), tools: [look] });
  const dataParts = (/** @type {any} */ event) => {
    if (event.type === "tool_execution_update") return { type: "data-progress", id: event.callId, data: event.update };
    if (event.type === "tool_execution_end") return [{ type: "data-progress", id: event.callId, data: { percent: 100 } }, { type: "data-rows", data: event.result.details }];
    if (event.type === "agent_end") return { type: "data-turns", data: event.turns, transient: true };
  };
  const run = agent.prompt("Go");
  const { message, types } = await read(run.toUIMessageStreamResponse({ dataParts: /** @type {any} */ (dataParts) }));
  assert.deepEqual(partsOf(message).filter(({ type }) => type.startsWith("data-")), [{ type: "data-progress", id: "c1", data: { percent: 100 } }, { type: "data-rows", data: { rows: 3 } }]);
  assert.deepEqual(types.slice(-2), ["data-turns", "finish"]);
  for (const [part, text] of /** @type {[any, RegExp][]} */ ([[{ type: "weather", data: 1 }, /got the type "weather"/], [{ type: "data-x" }, /got the type "data-x" without `data`/], [7, /got a number/]])) {
    const response = new Agent({ model: scripted(["a"]) }).prompt("Go").toUIMessageStreamResponse({ dataParts: () => part });
    await assert.rejects(response.text(), text);
  }
});

test("a response that is asked for too late says so, while the run goes on and when it is over", async () => {
  const run = new Agent({ model: scripted(["one"]) }).prompt("Go");
  for await (const event of run) {
    if (event.type === "message_start") misused(() => run.toUIMessageStreamResponse(), /begins with its run, which has begun; ask for it right after `prompt`, before any `await`/);
  }
  misused(() => run.toUIMessageStreamResponse(), /which has begun/);
});

test("what useChat posts is read: words, pictures, files, a whole conversation", async () => {
  const user = { id: "1", role: "user", parts: [{ type: "text", text: "See" }, { type: "file", mediaType: "image/png", url: "data:image/png;base64,AAAA" }, { type: "file", mediaType: "application/pdf", filename: "a.pdf", url: "data:application/pdf;base64,BBBB" }] };
  const { prompt } = fromUIMessages([user]);
  assert.deepEqual(prompt, { role: "user", id: "1", timestamp: 0, content: [{ type: "text", text: "See" }, { type: "image", mimeType: "image/png", data: "AAAA" }, { type: "file", mimeType: "application/pdf", data: "BBBB", name: "a.pdf" }] });
  const source = new Agent({ model: scripted([{ thinking: "hm", text: "one", ...call("look", "fail") }, "two"]), tools: [testTool("look", () => ({ a: 1 })), testTool("fail", () => { throw new Error("no"); })] });
  const { message } = await read(source.prompt("Go").toUIMessageStreamResponse());
  const { messages, prompt: next } = fromUIMessages([{ role: "user", parts: [{ type: "text", text: "Go" }] }, message, { role: "user", parts: [{ type: "text", text: "On" }] }]);
  const shape = (/** @type {readonly any[]} */ list) => list.map(({ role, content, isError }) => [role, content, isError]);
  assert.deepEqual(shape(messages), shape(JSON.parse(JSON.stringify(source.messages))));
  const agent = new Agent({ model: scripted([(request) => `${request.messages.length}`]), messages });
  assert.equal((await agent.prompt(/** @type {any} */ (next))).text, "6");
  misused(() => fromUIMessages(/** @type {any} */ ("x")), /takes the messages that useChat posts, got a string/);
  misused(() => fromUIMessages([{ role: "user", content: "x" }]), /messages\[0\] has no parts/);
  for (const part of [null, "x", {}, { type: 5 }]) for (const role of ["user", "assistant"]) misused(() => fromUIMessages([{ role, parts: [part] }]), /messages\[0\] has a part without a type/);
  const odd = fromUIMessages([{ role: "assistant", parts: [{ type: "tool-pay", toolCallId: "c", state: "output-error", input: "{bad", errorText: "no JSON" }] }]);
  assert.deepEqual(odd.messages[0].content[0].arguments, {});
  const silent = fromUIMessages([{ role: "assistant", parts: [{ type: "tool-pay", toolCallId: "c", state: "approval-responded" }] }]);
  assert.deepEqual(silent.decisions, { c: { action: "reject" } });
  // From a form, for example, whose values are texts.
  const word = fromUIMessages([{ role: "assistant", parts: [{ type: "tool-go", toolCallId: "c", state: "approval-responded", approval: { id: "c", approved: /** @type {any} */ ("false") } }] }]);
  assert.deepEqual(word.decisions, { c: { action: "reject" } });
  for (const mediaType of [undefined, "", "image", "image/*", "a b/c", "text/html,<b>", 5]) misused(() => fromUIMessages([{ role: "user", parts: [{ type: "file", mediaType, url: "data:;base64,AA" }] }]), /a file needs a `mediaType` such as image\/png, got /);
  misused(() => fromUIMessages([{ role: "user", parts: [{ type: "file", mediaType: "image/png", url: "data:image/png;base64,https://x" }] }]), /must come as a data: address in base64/);
  const linked = fromUIMessages([{ role: "user", parts: [{ type: "file", mediaType: "image/png", url: "https://x.example/a.png" }, { type: "file", mediaType: "application/pdf", filename: "a.pdf", url: "https://x.example/a.pdf" }] }]);
  assert.deepEqual(linked.prompt?.content, [{ type: "image", mimeType: "image/png", url: "https://x.example/a.png" }, { type: "file", mimeType: "application/pdf", url: "https://x.example/a.pdf", name: "a.pdf" }]);
  for (const url of ["http://x.example/a.png", "http://localhost/a.png", "file:///etc/passwd", "blob:x", undefined]) {
    misused(() => fromUIMessages([{ role: "user", parts: [{ type: "file", mediaType: "image/png", url }] }]), /must come as a data: address in base64, or be at an address that begins with https:/);
  }
  const image = { type: "image", mimeType: "image/png", data: "AAAA" };
  const results = fromUIMessages([{ role: "assistant", parts: [
    { type: "tool-draw", toolCallId: "a", state: "output-available", input: {}, output: [{ type: "text", text: "here" }, image] },
    { type: "tool-draw", toolCallId: "b", state: "output-available", input: {}, output: [1, 2] },
    { type: "tool-draw", toolCallId: "c", state: "output-available", input: {}, output: { half: true }, preliminary: true },
  ] }]).messages.slice(1);
  assert.deepEqual(results.map((/** @type {any} */ { content }) => content), [[{ type: "text", text: "here" }, image], [{ type: "text", text: "[1,2]" }]]);
});
