// @ts-check
// How an answer is read: what arrives together is passed to the engine together, what arrives
// alone is delivered alone.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, checkRun, clock, openaiCompatible, readRun, settle } from "../kit.mjs";

const encoder = new TextEncoder();

/** One event of a stream that says a word. @param {string} content */
const word = (content) => encoder.encode(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`);
const END = encoder.encode('data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n');

/** An agent whose answers are these bodies, one after the other. @param {ReadableStream<Uint8Array>[]} bodies @param {any} [options] */
function agentThatReads(bodies, options) {
  const fetch = async () => new Response(bodies.shift(), { headers: { "content-type": "text/event-stream" } });
  return new Agent({ model: openaiCompatible("m", { baseUrl: "http://model.invalid", fetch }), ...options });
}

/** A body that has the next piece as soon as it is asked for. @param {Uint8Array[]} pieces @param {unknown} [error] that it breaks with */
const atOnce = (pieces, error) => new ReadableStream({
  pull(controller) {
    const piece = pieces.shift();
    if (piece) controller.enqueue(piece);
    else if (error) controller.error(error);
    else controller.close();
  },
}, { highWaterMark: 0 });

/**
 * Reads a run as a subscriber, and as an iterator.
 * @type {[string, (agent: Agent) => Promise<ReturnType<typeof checkRun>>][]}
 */
const WAYS = [
  ["told to a subscriber", async (agent) => {
    /** @type {any[]} */
    const events = [];
    agent.subscribe((event) => void events.push(event));
    const result = await agent.prompt("Go");
    return checkRun(events, result);
  }],
  ["iterated", (agent) => readRun(agent.prompt("Go"))],
];

/** The words in the order of the events. @param {any} outcome @returns {string[]} */
const textsOf = (outcome) => outcome.all("message_update").map((/** @type {any} */ event) => event.delta.delta);

/** @param {number} n */
const words = (n) => Array.from({ length: n }, (_, i) => `w${i} `);

for (const [mode, readBy] of WAYS) {
  for (const [name, through] of /** @type {[string, (body: ReadableStream<Uint8Array>) => ReadableStream<Uint8Array>][]} */ ([
    ["as they are", (body) => body],
    ["through three more streams", (body) => body.pipeThrough(new TransformStream()).pipeThrough(new TransformStream()).pipeThrough(new TransformStream())],
  ])) {
    test(`pieces that come in one go come out one by one, in order, ${name}, ${mode}`, async () => {
      // About 20 KB: more than is passed on at once.
      const expected = words(300);
      const outcome = await readBy(agentThatReads([through(atOnce([...expected.map(word), END]))]));
      assert.deepEqual(textsOf(outcome), expected);
      assert.equal(outcome.result.text, expected.join(""));
    });
  }

  test(`a piece larger than all that is handed on at once, ${mode}`, async () => {
    const long = "x".repeat(200_000);
    const outcome = await readBy(agentThatReads([atOnce([word("a"), word(long), word("b"), END])]));
    assert.deepEqual(textsOf(outcome), ["a", long, "b"]);
  });

  test(`what came before a stream breaks is told before it is taken back, ${mode}`, async () => {
    const { host } = clock();
    const bodies = [atOnce([word("half "), word("an answer")], new Error("the line is cut")), atOnce([word("whole"), END])];
    const outcome = await readBy(agentThatReads(bodies, { host }));
    assert.deepEqual(textsOf(outcome), ["half ", "an answer", "whole"]);
    assert.deepEqual(outcome.names.filter((name) => /message_|retry/.test(name)), ["message_start", "message_update", "message_reset", "retry_attempt", "message_update", "message_end"]);
    assert.equal(outcome.result.text, "whole");
  });
}

test("a piece that comes alone is told before the next one comes", async () => {
  /** @type {ReadableStreamDefaultController<Uint8Array>} */
  let controller = /** @type {any} */ (undefined);
  const agent = agentThatReads([new ReadableStream({ start: (given) => void (controller = given) })]);
  /** @type {string[]} */
  const received = [];
  agent.subscribe((event) => {
    if (event.type === "message_update") received.push(event.delta.delta);
  });
  const run = agent.prompt("Go");
  for (const text of ["one", "two", "three"]) {
    await settle();
    controller.enqueue(word(text));
    await settle();
    assert.equal(received.at(-1), text);
  }
  controller.enqueue(END);
  controller.close();
  assert.equal((await run).text, "onetwothree");
});

test("an abort at the first of many that come in one go: few of the others are told, and the answer is what was told", async () => {
  const agent = agentThatReads([atOnce([...words(1000).map(word), END])]);
  /** @type {any[]} */
  const events = [];
  agent.subscribe((event) => {
    events.push(event);
    if (event.type === "message_update") run.abort("enough");
  });
  const run = agent.prompt("Go");
  const outcome = checkRun(events, await run);
  assert.equal(outcome.result.stopReason, "aborted");
  assert.ok(textsOf(outcome).length < 100, `${textsOf(outcome).length} were told`);
  assert.equal(outcome.result.text, textsOf(outcome).join(""));
});

test("who iterates and leaves at the first piece has heard one, and the next ones are not read", async () => {
  const run = agentThatReads([atOnce([...words(20).map(word), END])]).prompt("Go");
  for await (const event of run) if (event.type === "message_update") break;
  const { stopReason, text } = await run.result;
  assert.equal(stopReason, "aborted");
  assert.match(text, /^w0 (w[1-4] )*$/);
});

test("who iterates sees the arguments of a call grow, piece by piece", async () => {
  const piece = (/** @type {string} */ text, more = {}) => encoder.encode(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { tool_calls: [{ index: 0, ...more, function: { ...(more && { name: "go" }), arguments: text } }] } }] })}\n\n`);
  const end = encoder.encode('data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}\n\ndata: [DONE]\n\n');
  const pieces = ['{"a":', "1", ',"b":"', "two", '"}'];
  const tools = [{ name: "go", description: "", parameters: { type: "object" }, execute: () => "ok" }];
  const run = agentThatReads([atOnce([...pieces.map((text, i) => piece(text, i === 0 ? { id: "c1" } : {})), end])], { tools, maxTurns: 1 }).prompt("Go");
  /** @type {Set<string>} */
  const seen = new Set();
  for await (const event of run) {
    if (event.type === "message_update" && event.delta.type === "tool_call") seen.add(JSON.stringify(run.partialArguments(event.delta.callId)));
  }
  assert.deepEqual([[...seen][0], [...seen].at(-1)], ["{}", '{"a":1,"b":"two"}']);
  assert.ok(seen.size > 2, `${[...seen]}`);
});
