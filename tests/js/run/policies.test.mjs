// @ts-check
// When policies decide: after every subscriber has received the events before.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, call, scripted, testTool } from "../kit.mjs";

/** A policy of each slot, which notes when it decides. @param {string[]} notes */
const noting = (notes) => ({
  preTurn: [() => void notes.push("> preTurn")],
  preDispatch: [() => void notes.push("> preDispatch")],
  postTurn: [() => void notes.push("> postTurn")],
  postLoop: [() => void notes.push("> postLoop")],
});

/** @param {string[]} notes @param {any} options */
const watched = (notes, options) => {
  const agent = new Agent({ policies: noting(notes), ...options });
  agent.subscribe(({ type }) => void (type.startsWith("message_") && type !== "message_end" || notes.push(type)));
  return agent;
};

/** @param {string[]} notes */
const slots = (notes) => notes.filter((note) => note.startsWith(">"));

test("policies of all four slots decide when every subscriber has received the events before", async () => {
  const notes = /** @type {string[]} */ ([]);
  const agent = watched(notes, { model: scripted([call("t"), "done"]), tools: [testTool("t", () => "ok")] });
  await agent.prompt("Go").orThrow();
  assert.deepEqual(notes, [
    "agent_start", "turn_start", "> preTurn",
    "message_end", "tool_calls_proposed", "> preDispatch",
    "tool_execution_start", "tool_execution_end", "> postTurn", "turn_end",
    "turn_start", "> preTurn", "message_end", "> postTurn", "turn_end", "> postLoop", "agent_end",
  ]);
});

test("an abort by a subscriber comes before the policies that would decide about the calls", async () => {
  const notes = /** @type {string[]} */ ([]);
  const agent = watched(notes, { model: scripted([call("t"), "done"]), tools: [testTool("t", () => "ok")] });
  agent.subscribe((event) => void (event.type === "message_end" && agent.abort("enough")));
  const outcome = await agent.prompt("Go");
  assert.equal(outcome.stopReason, "aborted");
  assert.deepEqual(slots(notes), ["> preTurn", "> postTurn"]);
  const end = notes.slice(notes.indexOf("message_end"));
  assert.deepEqual(end, ["message_end", "tool_calls_proposed", "tool_execution_end", "> postTurn", "turn_end", "agent_end"]);
});

test("a message steered by a subscriber of the last result waits until the policies after the turn have decided", async () => {
  const notes = /** @type {string[]} */ ([]);
  const agent = watched(notes, { model: scripted([call("t"), "done"]), tools: [testTool("t", () => "ok")] });
  agent.subscribe((event) => void (event.type === "tool_execution_end" && agent.steer("rather this")));
  const outcome = await agent.prompt("Go");
  assert.equal(outcome.stopReason, "completed");
  assert.deepEqual(slots(notes), ["> preTurn", "> preDispatch", "> postTurn", "> preTurn", "> postTurn", "> postLoop"]);
  assert.deepEqual(agent.messages.map((message) => /** @type {any} */ (message).role), ["user", "assistant", "tool_result", "user", "assistant"]);
});

test("an answer that fails is received before the policies after the turn decide", async () => {
  const notes = /** @type {string[]} */ ([]);
  const agent = watched(notes, { model: scripted([{ error: { code: "auth", message: "no" } }]) });
  assert.equal((await agent.prompt("Go")).stopReason, "error");
  assert.deepEqual(notes, ["agent_start", "turn_start", "> preTurn", "message_end", "> postTurn", "turn_end", "agent_end"]);
});

test("a checkpoint of every event goes on to the same end, and no policy decides twice about the same calls", async () => {
  const options = (/** @type {string[]} */ notes, /** @type {any[]} */ answers) => ({
    model: scripted(answers), tools: [testTool("t", () => "ok")], policies: noting(notes),
  });
  const kept = /** @type {{ at: string; slots: string[]; checkpoint: any; calls: number }[]} */ ([]);
  const notes = /** @type {string[]} */ ([]);
  const agent = new Agent(options(notes, [call("t", "t"), "done"]));
  let calls = 0;
  agent.subscribe((event) => {
    calls += event.type === "message_start" ? 1 : 0;
    if (["message_end", "tool_calls_proposed", "tool_execution_end", "turn_end"].includes(event.type)) {
      kept.push({ at: event.type, slots: slots(notes), checkpoint: agent.checkpoint(), calls });
    }
  });
  await agent.prompt("Go").orThrow();
  const whole = slots(notes);
  assert.equal(kept.length, 7);
  for (const { at, slots: before, checkpoint, calls } of kept) {
    const after = /** @type {string[]} */ ([]);
    const again = await Agent.restore(checkpoint, options(after, calls === 1 ? ["done"] : []));
    await again.continue().orThrow();
    assert.equal(again.messages.length, 5, at);
    const count = (/** @type {string} */ slot) => [...before, ...after].filter((one) => one === slot).length;
    for (const slot of ["> postTurn", "> postLoop"]) {
      assert.equal(count(slot), whole.filter((one) => one === slot).length, `${slot} at ${at}`);
    }
  }
});
