// An agent as a tool of another agent.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, custom, scripted, subagent } from "../../../pkg/entry/node.js";

const asks = () => scripted([{ toolCalls: [{ callId: "c", toolName: "helper", arguments: { prompt: "count" } }] }, (request) => request.messages.at(-1).content[0].text]);

async function play(child) {
  const helper = subagent({ name: "helper", description: "helps", agent: () => new Agent({ model: child }) });
  const agent = new Agent({ model: asks(), tools: [helper] });
  const events = [];
  agent.subscribe((event) => events.push(event));
  return { events, result: await agent.prompt("Go.", { runId: "r" }) };
}

test("the events of a sub-agent reach the parent inside its call", async () => {
  const { events, result } = await play(scripted(["three"]));
  assert.equal(result.text, "three");
  const from = events.findIndex((event) => event.type === "tool_execution_start");
  const to = events.findIndex((event) => event.type === "tool_execution_end");
  const inside = events.slice(from + 1, to);
  assert.ok(inside.every((event) => event.type === "subagent_event" && event.callId === "c" && event.runId === "r" && event.event.runId === "r/c"));
  const names = inside.map((event) => event.event.type);
  assert.deepEqual(names, ["agent_start", "turn_start", "message_start", "message_update", "message_end", "turn_end", "agent_end"]);
});

test("a sub-agent that fails is an error result, and the parent goes on", async () => {
  const { result } = await play(scripted([{ error: { code: "auth", message: "no key" } }]));
  assert.equal(result.stopReason, "completed");
  assert.equal(result.text, "Sub-agent error: no key");
});

test("a sub-agent that stops before it said anything is no empty answer", async () => {
  const look = { name: "look", description: "looks", parameters: { type: "object" }, execute: () => "seen" };
  const child = () => new Agent({ model: scripted([{ toolCalls: [{ toolName: "look" }] }]), tools: [look], maxTurns: 1 });
  const agent = new Agent({ model: asks(), tools: [subagent({ name: "helper", description: "helps", agent: child })] });
  assert.equal((await agent.prompt("Go.")).text, "Sub-agent stopped without an answer: max_turns");
  const [result] = agent.messages.filter(({ role }) => role === "tool_result");
  assert.equal(result.isError, true);
});

test("stopping the parent stops the sub-agent in the middle of its answer", async () => {
  let agent;
  const stopped = deferred();
  const silent = custom("silent", async function* (_, { signal }) {
    queueMicrotask(() => agent.abort());
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    stopped.resolve();
  });
  const helper = subagent({ name: "helper", description: "helps", agent: () => new Agent({ model: silent }) });
  agent = new Agent({ model: asks(), tools: [helper] });
  const result = await agent.prompt("Go.");
  assert.equal(result.stopReason, "aborted");
  await stopped.promise;
});

test("a sub-agent that is none is named", async () => {
  const helper = subagent({ name: "helper", description: "helps", agent: () => {} });
  const { text } = await new Agent({ model: asks(), tools: [helper] }).prompt("Go.");
  assert.equal(text, "tool `helper` failed: `agent` must give an Agent, got nothing");
});

test("parameters that are undefined are those of a sub-agent", () => {
  const helper = subagent({ name: "helper", description: "helps", parameters: undefined, agent: () => new Agent({ model: scripted([]) }) });
  assert.deepEqual(helper.parameters.required, ["prompt"]);
});

function deferred() {
  let resolve;
  const promise = new Promise((settle) => (resolve = settle));
  return { promise, resolve };
}
