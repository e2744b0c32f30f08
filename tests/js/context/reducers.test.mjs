// @ts-check
// The reducers, and what recovers from an overflow.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, budgetTrim, call, keepLast, misused, pruneToolResults, readRun, reduce, scripted, settle, slidingWindow, testTool, textOf } from "../kit.mjs";

const tooLong = { error: { code: /** @type {const} */ ("context_overflow"), message: "too long" } };
const user = (/** @type {string} */ text) => /** @type {any} */ ({ role: "user", content: [{ type: "text", text }], timestamp: 1 });
const outline = (/** @type {any} */ messages) => messages.map((/** @type {any} */ message) => (message.role === "assistant" && textOf(message) === "" ? `[${message.content.map((/** @type {any} */ each) => each.callId)}]` : `${message.role[0]}:${textOf(message)}`)).join(" ");

/** Seven requests in a run of six calls. @param {any} transformContext @param {object} [more] */
async function sixCalls(transformContext, more = {}) {
  /** @type {any[]} */
  const asked = [];
  const answer = (/** @type {any} */ given) => (/** @type {any} */ request) => (asked.push(request.messages), given);
  const calls = Array.from({ length: 6 }, (_, i) => answer({ toolCalls: [{ callId: `c${i}`, toolName: "t" }] }));
  const agent = new Agent({ model: scripted([...calls, answer("done")]), tools: [testTool("t", async () => "x".repeat(40))], transformContext, ...more });
  const { events, result } = await readRun(agent.prompt("the question"));
  return { asked, events, result, agent };
}

test("a transformer recovers by a shorter list in its three forms", async () => {
  for (const [answer, kept, reports] of /** @type {[any, number, number][]} */ ([
    [(/** @type {any[]} */ messages) => messages.slice(-1), 4, 0],
    [(/** @type {any[]} */ messages) => ({ messages: messages.slice(-1) }), 2, 0],
    [(/** @type {any[]} */ messages) => ({ messages: messages.slice(-1), report: { text: "cut" } }), 2, 1],
  ])) {
    /** @type {any[]} */
    const asked = [];
    const agent = new Agent({
      model: scripted([(request) => (asked.push(request.messages.length), tooLong), (request) => (asked.push(request.messages.length), "fits")]),
      messages: [user("a"), user("b")], compaction: { engine: async () => assert.fail("not asked") },
      transformContext: (messages, overflow) => (overflow ? answer(messages) : undefined),
    });
    const { events, result } = await readRun(agent.prompt("go"));
    assert.deepEqual([result.text, asked, agent.messages.length], ["fits", [3, 1], kept]);
    assert.equal(events.filter(({ type }) => type === "context_compacted").length, reports);
  }
});

test("a list that is not shorter leaves it to the engine; an empty one is an error", async () => {
  const engine = async (/** @type {any} */ messages) => ({ messages: messages.slice(-1) });
  const same = new Agent({ model: scripted([tooLong, "fits"]), messages: [user("a")], compaction: { engine }, transformContext: (messages, overflow) => (overflow ? messages.slice() : undefined) });
  assert.deepEqual([(await same.prompt("go")).text, same.messages.length], ["fits", 2]);
  for (const empty of [[], { messages: [] }]) {
    const agent = new Agent({ model: scripted(["never"]), transformContext: () => empty });
    const { error } = await agent.prompt("go");
    assert.match(String(error?.message), /context transformer failed: it left no message/);
    assert.equal(agent.messages[0]?.role, "user");
  }
});

test("the window keeps an exchange whole where only its newest results fit", async () => {
  const long = "x".repeat(400);
  const result = (/** @type {string} */ callId) => ({ role: "tool_result", callId, toolName: "look", content: [{ type: "text", text: long }], isError: false, timestamp: 1 });
  const calls = ["t1", "t2"].map((callId) => ({ type: "tool_call", callId, toolName: "look", arguments: {} }));
  const messages = /** @type {any[]} */ ([user(long), { role: "assistant", content: [{ type: "text", text: long }, ...calls] }, result("t1"), result("t2"), user("q")]);
  // Of about 400 tokens, 150 have room for the question and one result; 20 only for the question.
  /** @param {number} tokens what the model is shown of it */
  const kept = async (tokens) => {
    /** @type {string[]} */
    const shown = [];
    const model = scripted([(request) => (shown.push(...request.messages.map(({ role }) => role)), "done")]);
    await new Agent({ model, messages: messages.slice(0, -1), transformContext: slidingWindow({ tokens, anchor: 0 }) }).prompt("q").result;
    return shown.join(" ");
  };
  assert.equal(await kept(150), "assistant tool_result tool_result user");
  assert.equal(await kept(20), "user");
});

test("reducers run in every turn, never split a call from its result, keep the question, and report", async () => {
  const { asked, events, result, agent } = await sixCalls(reduce([pruneToolResults({ keepLast: 1 }), slidingWindow({ tokens: 16, anchor: 0 })]));
  assert.equal(result.text, "done");
  assert.equal(asked.length, 7);
  for (const messages of asked) {
    assert.ok(outline(messages).includes("u:the question"), outline(messages));
    const calls = messages.flatMap((/** @type {any} */ { role, content }) => (role === "assistant" ? content.map((/** @type {any} */ each) => each.callId) : []));
    assert.deepEqual(messages.flatMap((/** @type {any} */ { role, callId }) => (role === "tool_result" ? [callId] : [])), calls);
  }
  assert.ok(asked[6].length < 13 && outline(asked[6]).includes("x".repeat(40)), outline(asked[6]));
  assert.ok(events.filter(({ type }) => type === "context_compacted").every((/** @type {any} */ { report }) => report.tokensAfter <= report.tokensBefore));
  assert.ok(events.filter(({ type }) => type === "context_compacted").length >= 5);
  assert.equal(agent.messages.length, 14);
});

test("each reducer does what it says, also as an asynchronous transformer", async () => {
  const long = "x".repeat(40);
  const pruned = await sixCalls(undefined, { asyncTransformContext: pruneToolResults({ keepLast: 2 }) });
  assert.equal(outline(pruned.asked[6]), `u:the question [c0] t:[trimmed] [c1] t:[trimmed] [c2] t:[trimmed] [c3] t:[trimmed] [c4] t:${long} [c5] t:${long}`);
  const kept = await sixCalls(keepLast(2));
  assert.equal(outline(kept.asked[6]), `u:the question [c4] t:${long} [c5] t:${long}`);
  const trimmed = await sixCalls(budgetTrim({ contextWindow: 440, maxOutputTokens: 0, fraction: 0.5, keepLast: 1 }));
  assert.match(outline(trimmed.asked[6]), /^u:the question \[c0\] t:\[trimmed\] /);
  assert.equal(outline(trimmed.asked[1]), `u:the question [c0] t:${long}`);
});

test("reducers that make no room leave it to the engine", async () => {
  const agent = new Agent({
    model: scripted([call("t"), call("t"), tooLong, "fits"]), tools: [testTool("t", async () => "result")],
    transformContext: pruneToolResults({ keepLast: 1 }), compaction: { engine: async () => ({ messages: [user("notes")] }) },
  });
  assert.equal((await agent.prompt("go")).text, "fits");
  assert.equal(outline(agent.messages), "u:notes a:fits");
});

test("wrong options are refused, and a direct call works once the reducers are there", async () => {
  for (const make of [() => slidingWindow(/** @type {any} */ (undefined)), () => slidingWindow(/** @type {any} */ ({ tokens: "1" })), () => keepLast(/** @type {any} */ (-1)), () => pruneToolResults(/** @type {any} */ ({})), () => budgetTrim(/** @type {any} */ ({})), () => reduce(/** @type {any} */ ([1]))]) misused(make, /`/);
  const reducer = keepLast(0);
  await settle();
  assert.equal(reducer([user("a")], false), undefined);
});
