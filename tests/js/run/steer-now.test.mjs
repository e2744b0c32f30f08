// @ts-check
// A message that cuts a streaming answer off, on every wire: what stays, what the next request says, what the server sees.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, anthropic, custom, gemini, openai, openaiResponses, readRun, scripted, settle } from "../kit.mjs";

const encoder = new TextEncoder();
const sse = (/** @type {any[]} */ ...frames) => frames.map((frame) => (frame.type ? `event: ${frame.type}\n` : "") + `data: ${JSON.stringify(frame)}\n\n`);
const price = { input: 1, output: 10 };

const claude = [
  { type: "message_start", message: { id: "m", type: "message", role: "assistant", content: [], model: "c", usage: { input_tokens: 7, output_tokens: 1 } } },
  { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
  { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "I will" } },
];
const items = [
  { type: "response.created", response: { id: "r", status: "in_progress", output: [] } },
  { type: "response.output_item.added", output_index: 0, item: { type: "message", id: "i", role: "assistant", content: [], status: "in_progress" } },
  { type: "response.content_part.added", output_index: 0, content_index: 0, item_id: "i", part: { type: "output_text", text: "" } },
  { type: "response.output_text.delta", output_index: 0, content_index: 0, item_id: "i", delta: "I will" },
];
const chunk = (/** @type {any} */ delta) => ({ choices: [{ index: 0, delta }] });
const parts = (/** @type {any[]} */ ...parts) => ({ candidates: [{ index: 0, content: { role: "model", parts } }] });

/** By wire: the model, the pieces before the cut, those of the next answer, and what the second request says of the conversation. @type {Record<string, any>} */
const WIRES = {
  "chat completions": [(/** @type {any} */ fetch) => openai("gpt-4o", { apiKey: "k", price, fetch }), [chunk({ content: "I will" })], [chunk({ content: "Oslo." }), { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }],
    (/** @type {any} */ body) => body.messages.map((/** @type {any} */ { role, content }) => [role, content])],
  "responses": [(/** @type {any} */ fetch) => openaiResponses("gpt-4o", { apiKey: "k", price, fetch }), items, [
    items[0], { type: "response.output_text.delta", output_index: 0, content_index: 0, item_id: "i", delta: "Oslo." },
    { type: "response.completed", response: { id: "r", status: "completed", output: [] } },
  ], (/** @type {any} */ body) => body.input.map((/** @type {any} */ { role, content }) => [role, typeof content === "string" ? content : content[0].text])],
  "anthropic": [(/** @type {any} */ fetch) => anthropic("claude-sonnet-4-5", { apiKey: "k", price, fetch }), claude, [
    claude[0], claude[1], { ...claude[2], delta: { type: "text_delta", text: "Oslo." } }, { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 3 } }, { type: "message_stop" },
  ], (/** @type {any} */ body) => body.messages.map((/** @type {any} */ { role, content }) => [role, typeof content === "string" ? content : content[0].text])],
  "gemini": [(/** @type {any} */ fetch) => gemini("gemini-2.5-flash", { apiKey: "k", price, fetch }), [parts({ text: "I will" })], [{ candidates: [{ ...parts({ text: "Oslo." }).candidates[0], finishReason: "STOP" }] }],
    (/** @type {any} */ body) => body.contents.map((/** @type {any} */ { role, parts }) => [role === "model" ? "assistant" : role, parts[0].text])],
};

for (const [wire, [makeModel, first, second, saidIn]] of Object.entries(WIRES)) {
  test(`${wire}: what has arrived stays, the connection ends, and the next request has the message`, async () => {
    /** @type {any[]} */
    const bodies = [];
    let end = () => {};
    const ended = new Promise((resolve) => (end = () => resolve(undefined)));
    const fetch = async (/** @type {any} */ _, /** @type {any} */ { body }) => {
      bodies.push(await new Response(body).json());
      const frames = bodies.length === 1 ? sse(...first) : sse(...second);
      const isFirst = bodies.length === 1;
      return new Response(new ReadableStream({
        start(controller) {
          for (const frame of frames) controller.enqueue(encoder.encode(frame));
          if (!isFirst) controller.close();
        },
        cancel: () => end(),
      }), { headers: { "content-type": "text/event-stream" } });
    };
    const agent = new Agent({ model: makeModel(fetch) });
    const run = agent.prompt("Go to Rome.");
    /** @type {any} */
    let receipt;
    agent.subscribe((event) => {
      if (event.type === "message_update") receipt ??= agent.steer("Not Rome. Oslo.", { when: "now" });
    });
    const { result, all } = await readRun(run);
    assert.equal(result.stopReason, "completed", result.error?.message);
    assert.deepEqual(await receipt, { delivered: true, turnIndex: 1 });
    // The facade gives an answer a moment in which its last bytes may come, with a timer that keeps no process alive.
    const alive = setTimeout(() => {}, 60_000);
    await ended;
    clearTimeout(alive);
    assert.deepEqual(saidIn(bodies[1]).filter((/** @type {any} */ [role]) => role !== "system"), [["user", "Go to Rome."], ["assistant", "I will"], ["user", "Not Rome. Oslo."]]);
    const [cut, last] = all("message_end").map(({ message }) => message);
    assert.deepEqual([cut.stopReason, cut.content, cut.error], ["interrupted", [{ type: "text", text: "I will" }], undefined]);
    assert.ok(cut.usage.input > 0 && cut.usage.output > 0 && cut.usage.cost > 0, JSON.stringify(cut.usage));
    assert.equal(last.content[0].text, "Oslo.");
    assert.deepEqual(all("turn_end").map(({ reason }) => reason), ["steering_interrupt", "complete"]);
  });
}

/** Answers with a text that never ends, then with one that does. */
const talker = () => {
  let calls = 0;
  return custom("talker", async function* (_, { signal }) {
    yield { type: "text_start", contentIndex: 0 };
    const isFirst = calls++ === 0;
    do {
      yield { type: "text_delta", contentIndex: 0, delta: isFirst ? "la " : "stopped" };
      await settle();
    } while (isFirst && !signal.aborted);
    yield { type: "text_end", contentIndex: 0 };
    yield { type: "done", stopReason: "stop" };
  });
};

test("the rule of the agent counts where a message names no time, and a message may be more patient", async () => {
  for (const [rule, when] of /** @type {const} */ ([["now", undefined], ["after_tool", "now"]])) {
    const agent = new Agent({ model: talker(), steering: { when: rule } });
    const run = agent.prompt("Sing.");
    const leave = agent.subscribe(({ type }) => {
      if (type !== "message_update") return;
      leave();
      void agent.steer("Stop.", when && { when });
    });
    const { text, stopReason } = await run;
    assert.deepEqual([text, stopReason], ["stopped", "completed"]);
  }
});

test("a word that is none is refused with those that are", () => {
  const agent = new Agent({ model: scripted(["x"]) });
  assert.throws(() => agent.steer("x", { when: /** @type {any} */ ("soon") }), /`when` must be "after_tool" or "immediate" or "after_batch" or "now", got "soon"/);
});

test("ten thousand messages that wait for nothing are all read, in order", async () => {
  const agent = new Agent({ model: talker() });
  const run = agent.prompt("Sing.");
  let isFirst = true;
  agent.subscribe(({ type }) => {
    if (type !== "message_update" || !isFirst) return;
    isFirst = false;
    for (let i = 0; i < 10_000; i++) void agent.steer(`m${i}`, { when: "now" });
  });
  assert.equal((await run).stopReason, "completed");
  const said = agent.messages.filter(({ role }) => role === "user").map(({ content }) => /** @type {any} */ (content)[0].text);
  assert.deepEqual(said.slice(1), Array.from({ length: 10_000 }, (_, i) => `m${i}`));
  assert.equal(agent.messages.filter(({ role }) => role === "assistant").length, 2);
});
