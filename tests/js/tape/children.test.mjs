// @ts-check
// The tapes of agents inside calls: each is lived again by itself, by the ids of the calls that lead to it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, call, scripted, subagent, testTool } from "../kit.mjs";
import { cassette, fork, record, replay, Tape } from "../../../pkg/tape.js";

const plain = (/** @type {any} */ value) => JSON.parse(JSON.stringify(value, (key, member) => (key === "at" ? undefined : member)));
const asks = (/** @type {string} */ toolName, /** @type {string} */ callId) => ({ toolCalls: [{ callId, toolName, arguments: { prompt: "go" } }] });

/** @param {any} [options] */
async function nested(options) {
  const innermost = subagent({ name: "innermost", description: "Looks", agent: () => new Agent({ model: scripted(["deep down"]) }) });
  const inner = subagent({
    name: "inner", description: "Asks",
    agent: () => new Agent({ model: scripted([asks("innermost", "b"), call("look"), "seen"]), tools: [innermost, testTool("look", () => "a tree")] }),
  });
  const agent = new Agent({ model: scripted([{ toolCalls: [...asks("inner", "a").toolCalls, ...asks("inner", "c").toolCalls] }, "done"]), tools: [inner] });
  /** @type {any[]} */
  const events = [];
  agent.subscribe((event) => void events.push(structuredClone(event)), { keep: true });
  const recorder = await record(agent, options);
  await agent.prompt("Go").orThrow();
  recorder.stop();
  return { tape: Tape.parse(recorder.toText()), events };
}

test("agents inside calls, at any depth, are lived again by their paths, to the events that their caller told", async () => {
  const { tape, events } = await nested();
  assert.equal(events.length, tape.events);
  const paths = tape.children.map(({ path }) => path.join("/")).sort();
  assert.deepEqual(paths, ["a", "a/b", "c", "c/b"]);
  for (const { path, tape: inner } of tape.children) {
    assert.ok(inner.complete, path.join("/"));
    const again = [];
    for await (const event of replay(inner)) if (event.type !== "subagent_event") again.push(event);
    // What the root said of it.
    const told = events.filter((event) => event.type === "subagent_event" && event.path.join() === path.join());
    assert.ok(told.length > 5);
    assert.deepEqual(plain(again), plain(told.map(({ event }) => event)), path.join("/"));
  }
  const inner = tape.child(["a"]);
  const names = replay(inner).entries().flatMap((entry) => (entry.kind === "start" ? [entry.name] : []));
  assert.ok(names.includes("t0/tool/0-innermost") && names.includes("t1/tool/0-look"), names.join(" "));
  assert.equal((await replay(tape.child(["a", "b"])).result).text, "deep down");
  const frame = replay(inner).seek(inner.events);
  assert.equal(frame.messages.at(-1)?.role, "assistant");
  assert.throws(() => tape.child(["x"]), /no agent inside the call \["x"\]; it has: .*\["a"\]/);
});

test("an agent inside a call is forked and served from its tape", async () => {
  const { tape } = await nested();
  const inner = tape.child(["a"]);
  const at = inner.events - 1;
  assert.equal(replay(inner).seek(at).messages.at(-1)?.role, "assistant");
  const other = await fork(inner, { at: 2, model: scripted(["something else"]), tools: [] });
  assert.equal((await other.continue()).text, "something else");
  const { model, tools } = cassette(inner);
  assert.deepEqual(tools().map(({ name }) => name), ["innermost", "look"]);
  assert.equal((await new Agent({ model, tools: tools() }).prompt("go")).text, "seen");
});

test("without `children` there are none, and a tape of a run that is stopped within a call has the rest", async () => {
  const { tape } = await nested({ children: false });
  assert.deepEqual(tape.children, []);
  assert.throws(() => tape.child(["a"]), /it has none \(record with `children: true`\)/);
  const inner = subagent({ name: "inner", description: "Waits", agent: () => new Agent({ model: scripted([call("wait")]), tools: [testTool("wait", () => new Promise(() => {}))] }) });
  const agent = new Agent({ model: scripted([asks("inner", "a")]), tools: [inner] });
  const recorder = await record(agent);
  const run = agent.prompt("Go");
  for await (const event of run) if (event.type === "subagent_event" && event.event.type === "tool_execution_start") run.abort("enough");
  recorder.stop();
  const stopped = recorder.toTape();
  assert.equal((await replay(stopped).result).stopReason, "aborted");
  assert.equal((await replay(stopped.child(["a"])).result).stopReason, "aborted");
});

test("keys and redacted texts are on no inner tape", async () => {
  const inner = subagent({ name: "inner", description: "Says", agent: () => new Agent({ model: scripted(["I am An", "na"]), systemPrompt: "You are Anna." }) });
  const agent = new Agent({ model: scripted([asks("inner", "a"), "Anna says"]), tools: [inner] });
  const recorder = await record(agent, { redact: (_where, text) => text.replaceAll("Anna", "A.") });
  await agent.prompt("Go");
  recorder.stop();
  assert.ok(!recorder.toText().includes("Anna"), recorder.toText());
  assert.equal(recorder.toTape().children.length, 1);
});
