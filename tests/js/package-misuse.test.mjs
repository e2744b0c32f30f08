// @ts-check
// Misuse is told at the call, in words that help.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, AgentError, agentLoop, custom, hear, misused, openai, openaiCompatible, say, scripted } from "./kit.mjs";

const model = scripted([]);

/** @type {[string, any, RegExp][]} */
const OPTIONS = [
  ["nothing", undefined, /options must be an object, got nothing/],
  ["no model", {}, /there is no model; set `model`, for example openai\("gpt-5-mini", \{ apiKey \}\)/],
  ["a model's name", { model: "gpt-5-mini" }, /`model` must be a model such as openai\(.*got a string/],
  ["a model without a wire", { model: { provider: "x", id: "y" } }, /model `y` has neither a wire nor a streamFn/],
  ["a wrong name", { model, tool: [] }, /unknown option `tool`; did you mean `tools`\?/],
  ["a wrong name in a case of its own", { model, systemprompt: "x" }, /unknown option `systemprompt`; did you mean `systemPrompt`\?/],
  ["a name of nothing near", { model, zzzzzz: 1 }, /unknown option `zzzzzz`$/],
  ["a wrong name inside an option", { model, retry: { maxAttempt: 3 } }, /unknown option `retry.maxAttempt`; did you mean `maxAttempts`\?/],
  ["a wrong name of a policy", { model, policies: { preturn: [] } }, /unknown option `policies.preturn`; did you mean `preTurn`\?/],
  ["policies that are no list", { model, policies: { preTurn: () => {} } }, /`policies.preTurn` must be an array of functions/],
  ["a wrong word", { model, gate: "prefxi" }, /`gate` must be "batch" or "prefix", got "prefxi"/],
  ["a wrong word inside", { model, steering: { when: "now" } }, /`steering.when` must be "after_tool" or "immediate", got "now"/],
  ["an option that must be an object", { model, timeouts: 5 }, /`timeouts` must be an object, got a number/],
  ["a function that is none", { model, transformContext: {} }, /`transformContext` must be a function, got an object/],
  ["a prompt that is none", { model, systemPrompt: ["x"] }, /`systemPrompt` must be a text, got an array/],
  ["turns that cannot be counted", { model, maxTurns: 1.5 }, /`maxTurns` must be a whole number or Infinity, got 1.5/],
  ["two tools of one name", { model, tools: [say("go", () => ""), say("go", () => "")] }, /two tools are named `go`; names must be unique/],
  ["tools that are none", { model, tools: "all" }, /`tools` must be an array of tools or a record by name, got a string/],
  ["a history that is none", { model, messages: "hi" }, /`messages` must be an array, got a string/],
  ["a message without a role", { model, messages: [{ content: [] }] }, /messages\[0\] must be a message with a role/],
  ["a message of another make", { model, messages: [{ role: "system", content: "x" }] }, /messages\[0\].*got the role `system`/],
  ["a message with a broken block", { model, messages: [{ role: "user", content: [{ type: "txt", text: "x" }] }] }, /messages\[0\]\.content\[0\] must be a block of type text, image, file, got `txt`/],
];
for (const [name, options, words] of OPTIONS) {
  test(`options are checked when the agent is made: ${name}`, () => {
    misused(() => new Agent(options), words);
    // A single loop takes two tools of one name: the first of them runs.
    if (options && !options.messages && !/two tools/.test(name)) misused(() => agentLoop(["Hi"], options), words);
  });
}

test("a model without an address, with a wrong one, with a wrong option", () => {
  misused(() => openaiCompatible("llama", /** @type {any} */ (undefined)), /openaiCompatible\("llama"\) needs the server's address, for example \{ baseUrl: "http:\/\/localhost:11434\/v1" \}/);
  misused(() => openaiCompatible("llama", { baseUrl: "" }), /needs the server's address/);
  misused(() => openaiCompatible("llama", { baseUrl: "localhost:11434/v1" }), /`baseUrl` must begin with http:\/\/ or https:\/\/, got "localhost:11434\/v1"/);
  misused(() => openai("gpt", /** @type {any} */ ({ apikey: "x" })), /model `gpt`: unknown option `apikey`; did you mean `apiKey`\?/);
  misused(() => openai("gpt", { apiKey: /** @type {any} */ (7) }), /`apiKey` must be a text or a function, got a number/);
  misused(() => openai(/** @type {any} */ (undefined)), /a model needs an id, got nothing/);
  misused(() => openai("gpt", /** @type {any} */ ("sk-abc")), /options.*object|must be an object/);
});

test("a prompt while a run is on, and what to do instead", async () => {
  const agent = new Agent({ model: scripted(["one", "two"]) });
  const run = agent.prompt("Go");
  misused(() => agent.prompt("Again"), /already running; steer it, queue a follow-up, or wait for it/);
  misused(() => agent.continue(), /already running/);
  const heard = await hear(run);
  assert.equal(heard.result.stopReason, "completed");
  assert.equal((await agent.prompt("Again")).text, "two");
});

test("continue without a history", () => {
  misused(() => new Agent({ model }).continue(), /cannot continue with an empty message history; use prompt/);
});

/** @type {[string, any, RegExp][]} */
const INPUTS = [
  ["nothing", undefined, /input must be a text, an array of blocks, or a message, got nothing/],
  ["a number", 7, /got a number/],
  ["an empty list", [], /at least one message, got an empty array/],
  ["an answer of a model", { role: "assistant", content: [] }, /a message with role `assistant` cannot be an input; only `user` and `custom` can/],
  ["a broken block", [{ type: "image", data: "AAAA" }], /image block needs a text `mimeType`, got nothing/],
  ["a block of another kind", [{ type: "tool_call" }], /must be a block of type text, image, file, got `tool_call`/],
  ["a custom message without a kind", { role: "custom", data: 1 }, /custom message needs a `kind`/],
  ["a list with a hole", ["a", null], /input\[1\] must be .*got null/],
];
for (const [name, input, words] of INPUTS) {
  test(`an input that is none is told at the call: ${name}`, () => {
    const agent = new Agent({ model });
    misused(() => agent.prompt(input), words);
    if (!Array.isArray(input)) misused(() => agent.steer(input), words);
    if (!Array.isArray(input)) misused(() => agent.followUp(input), words);
    assert.equal(agent.isRunning, false);
  });
}

test("every form of an input", async () => {
  /** @type {any[]} */
  const inputs = ["text", [{ type: "text", text: "block" }], { role: "user", content: [{ type: "text", text: "message" }], timestamp: 1 }, { role: "user", content: "short" }, ["several", [{ type: "text", text: "of" }], { role: "custom", kind: "k", data: { a: 1 }, timestamp: 3 }]];
  for (const input of inputs) {
    const heard = await hear(new Agent({ model: scripted(["ok"]) }).prompt(input));
    assert.equal(heard.result.stopReason, "completed");
    assert.ok(heard.result.messages[0].content[0].text.length > 1);
  }
});

test("other misuse of an agent", async () => {
  const agent = new Agent({ model: scripted(["ok", "ok"]) });
  misused(() => agent.subscribe(/** @type {any} */ ("all")), /a subscriber must be a function, got a string/);
  misused(() => agent.resolveTool("c1", /** @type {any} */ ("yes")), /a decision must be "approve", "reject" or/);
  misused(() => { agent.model = /** @type {any} */ (undefined); }, /there is no model/);
  misused(() => { agent.systemPrompt = /** @type {any} */ (7); }, /`systemPrompt` must be a text/);
  misused(() => { agent.tools = [say("a", () => ""), say("a", () => "")]; }, /two tools are named `a`/);
  await agent.prompt("Go");
  assert.equal((await agent.prompt("Still works")).text, "ok");
});

test("an AgentError is known across copies of the package", async () => {
  const error = new AgentError({ code: "network", message: "gone", retryable: true }, "cause");
  assert.ok(AgentError.isInstance(error) && error instanceof Error);
  assert.deepEqual([error.code, error.message, error.cause, error.info.retryable, error.name], ["network", "gone", "cause", true, "AgentError"]);
  const other = Object.defineProperty(new Error("x"), Symbol.for("turnwheel.AgentError"), { value: true });
  assert.equal(AgentError.isInstance(other), true);
  for (const value of [null, undefined, "x", {}, new Error("x")]) assert.equal(AgentError.isInstance(value), false);
  const heard = await hear(new Agent({ model: custom("m", () => { throw error; }), retry: { maxAttempts: 1 } }).prompt("Go"));
  assert.deepEqual([heard.result.error.code, heard.result.error.message, heard.result.error.cause], ["network", "gone", error]);
});
