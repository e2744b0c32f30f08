// @ts-check
// Misuse fails at the call, with a helpful text.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { inspect, promisify } from "node:util";
import { mcpTools } from "../../../pkg/mcp.js";
import { fromResponse, RemoteAgent } from "../../../pkg/remote.js";
import { Agent, AgentError, agentLoop, agentLoopContinue, anthropic, call, custom, deferred, gemini, misused, openai, openaiCompatible, openaiResponses, readRun, scripted, subagent, testTool, tool } from "../kit.mjs";

const model = scripted([]);

/** @type {[string, any, RegExp][]} */
const OPTIONS = [
  ["nothing", undefined, /options must be an object, got nothing/],
  ["no model", {}, /there is no model; set `model`, for example openai\("gpt-5-mini", \{ apiKey \}\)/],
  ["a model's name", { model: "gpt-5-mini" }, /`model` must be a model such as openai\(.*got a string/],
  ["a model in place of the options", scripted([]), /the options are a model; write new Agent\(\{ model \}\)/],
  ["a model of the AI SDK", { model: { specificationVersion: "v3", provider: "openai", modelId: "gpt-5", doStream() {} } }, /`model` is a model of the AI SDK \(`gpt-5`\); wrap it: fromLanguageModel\(model\) of turnwheel\/ai-sdk/],
  ["a model without a wire", { model: { provider: "x", id: "y" } }, /model `y` has neither a wire nor a streamFn; make it with openai/],
  ["a wrong name", { model, tool: [] }, /unknown option `tool`; did you mean `tools`\?/],
  ["a wrong name in a case of its own", { model, systemprompt: "x" }, /unknown option `systemprompt`; did you mean `systemPrompt`\?/],
  ["a name of nothing near", { model, zzzzzz: 1 }, /unknown option `zzzzzz`$/],
  ["a wrong name inside an option", { model, retry: { maxAttempt: 3 } }, /unknown option `retry.maxAttempt`; did you mean `maxAttempts`\?/],
  ["a wrong name of a policy", { model, policies: { preturn: [] } }, /unknown option `policies.preturn`; did you mean `preTurn`\?/],
  ["policies that are no list", { model, policies: { preTurn: () => {} } }, /`policies.preTurn` must be an array of functions/],
  ["a wrong word", { model, gate: "prefxi" }, /`gate` must be "batch" or "prefix", got "prefxi"/],
  ["a wrong word inside", { model, steering: { when: "soon" } }, /`steering.when` must be "after_tool" or "immediate" or "after_batch" or "now", got "soon"/],
  ["an option that must be an object", { model, timeouts: 5 }, /`timeouts` must be an object, got a number/],
  ["a function that is none", { model, transformContext: {} }, /`transformContext` must be a function, got an object/],
  ["a prompt that is none", { model, systemPrompt: ["x"] }, /`systemPrompt` must be a text, got an array/],
  ["what another package calls it", { model, instructions: "Be brief." }, /unknown option `instructions`; did you mean `systemPrompt`\?/],
  ["what another package calls it, further down", { model, maxSteps: 3 }, /unknown option `maxSteps`; did you mean `maxTurns`\?/],
  ["a part of a name", { model, getApiKe: () => "sk" }, /unknown option `getApiKe`; did you mean `getApiKey`\?/],
  ["what stands in another option", { model, temperature: 0 }, /unknown option `temperature`; did you mean `streamOptions.temperature`\?/],
  ["an option of the stream", { model, streamOptions: { max_tokens: 9 } }, /unknown option `streamOptions.max_tokens`; did you mean `maxTokens`\?/],
  ["an approval mode", { model, approval: { mode: "on" } }, /`approval.mode` must be "smart" or "enabled" or "bypassed", got "on"/],
  ["a rule of the approval", { model, approval: { rules: { pay: "never" } } }, /`approval.rules.pay` must be "approve" or "ask" or "deny", got "never"/],
  ["rules that have no names", { model, approval: { rules: new Map([["pay", "deny"]]) } }, /`approval.rules` must be an object, got an object \(Map\)/],
  ["a state that has no names", { model, sessionState: new Map([["a", 1]]) }, /`sessionState` must be an object, got an object \(Map\)/],
  ["a wrong name of the approval", { model, approval: { rule: {} } }, /unknown option `approval.rule`; did you mean `rules`\?/],
  ["a wrong name of the timeouts", { model, timeouts: { total: 5 } }, /unknown option `timeouts.total`; did you mean `totalMs`\?/],
  ["a time that is a text", { model, timeouts: { totalMs: "5s" } }, /`timeouts.totalMs` must be a number from 0 on, got "5s"/],
  ["a temperature that JSON has no word for", { model, streamOptions: { temperature: Infinity } }, /`streamOptions.temperature` must be a finite number from 0 on, got Infinity/],
  ["a share that is none", { model, streamOptions: { topP: NaN } }, /`streamOptions.topP` must be a finite number from 0 on, got NaN/],
  ["a back-off that knows no bounds", { model, retry: { multiplier: Infinity } }, /`retry.multiplier` must be a finite number from 0 on, got Infinity/],
  ["a cache that is kept for ever", { model, cache: { ttlMs: Infinity } }, /`cache.ttlMs` must be a finite number from 0 on, got Infinity/],
  ["a time before now", { model, retry: { initialBackoffMs: -1 } }, /`retry.initialBackoffMs` must be a number from 0 on, got -1/],
  ["attempts without end", { model, retry: { maxAttempts: Infinity } }, /`retry.maxAttempts` must be a whole number from 1 on, got Infinity/],
  ["a switch that is a text", { model, retry: { jitter: "no" } }, /`retry.jitter` must be true or false, got a string/],
  ["a retry that is a number", { model, retry: 3 }, /`retry` must be a function or an object, got a number/],
  ["a compaction by another word", { model, compaction: "summarise" }, /`compaction` must be "summarize" or an object, got "summarise"/],
  ["a compaction without its engine's name", { model, compaction: { egnine: () => {} } }, /unknown option `compaction.egnine`; did you mean `engine`\?/],
  ["a compaction without an engine", { model, compaction: { maxRecoveriesPerTurn: 2 } }, /`compaction` needs an `engine`; the stock one is "summarize"/],
  ["a hook of no stage", { model, hooks: { beforeInferense: () => {} } }, /unknown option `hooks.beforeInferense`; did you mean `beforeInference`\?/],
  ["a hook of no stage, in a list", { model, hooks: [{}, { onerror: () => {} }] }, /unknown option `hooks\[1\].onerror`; did you mean `onError`\?/],
  ["a hook that is none", { model, hooks: { onError: "log" } }, /`hooks.onError` must be a function, got a string/],
  ["no list of fallbacks", { model, fallback: model }, /`fallback` must be an array, got an object/],
  ["a fallback that is none", { model, fallback: ["gpt-5"] }, /`fallback\[0\]` must be a model such as openai\(.*got a string/],
  ["a cause that there is not", { model, resultTexts: { skiped: () => "" } }, /unknown option `resultTexts.skiped`; did you mean `skipped`\?/],
  ["a tool choice", { model, streamOptions: { toolChoice: "any" } }, /`streamOptions.toolChoice` must be an object or "auto" or "none" or "required", got "any"/],
  ["how much to think", { model, streamOptions: { reasoning: { budget: 3 } } }, /unknown option `streamOptions.reasoning.budget`; did you mean `budgetTokens`\?/],
  ["a host's clock", { model, host: { Now: () => 0 } }, /unknown option `host.Now`; did you mean `now`\?/],
  ["a schema of the answer that is none", { model, output: "json" }, /parameters of `output` must be a JSON Schema object or a Standard Schema/],
  ["turns that cannot be counted", { model, maxTurns: 1.5 }, /`maxTurns` must be a whole number or Infinity, got 1.5/],
  ["two tools of one name", { model, tools: [testTool("go", () => ""), testTool("go", () => "")] }, /two tools are named `go`; names must be unique/],
  ["tools that are none", { model, tools: "all" }, /`tools` must be an array of tools or a record by name, got a string/],
  ["a history that is none", { model, messages: "hi" }, /`messages` must be an array, got a string/],
  ["a message without a role", { model, messages: [{ content: [] }] }, /messages\[0\] must be a message with a role/],
  ["a message of another make", { model, messages: [{ role: "system", content: "x" }] }, /messages\[0\].*got the role `system`/],
  ["a message with a broken block", { model, messages: [{ role: "user", content: [{ type: "txt", text: "x" }] }] }, /messages\[0\]\.content\[0\] must be a block of type text, image, file, got `txt`/],
];
for (const [name, options, pattern] of OPTIONS) {
  test(`options are checked when the agent is made: ${name}`, () => {
    misused(() => new Agent(options), pattern);
    // A single loop accepts two tools with one name: the first one runs.
    if (options && !options.messages && !/two tools/.test(name)) misused(() => agentLoop(["Hi"], options), pattern);
  });
}

test("a model without an address, with a wrong one, with a wrong option", () => {
  misused(() => openaiCompatible("llama", /** @type {any} */ (undefined)), /openaiCompatible\("llama"\) needs the server's address, for example \{ baseUrl: "http:\/\/localhost:11434\/v1" \}/);
  misused(() => openaiCompatible("llama", { baseUrl: "" }), /needs the server's address/);
  assert.equal(openaiCompatible("llama", /** @type {any} */ ({ baseUrl: "http://x/v1", server: undefined })).provider, "openai-compatible");
  misused(() => openaiCompatible("llama", { baseUrl: "localhost:11434/v1" }), /`baseUrl` must begin with http:\/\/ or https:\/\/, got "localhost:11434\/v1"/);
  misused(() => openai("gpt", /** @type {any} */ ({ apikey: "x" })), /model `gpt`: unknown option `apikey`; did you mean `apiKey`\?/);
  misused(() => openai("gpt", { apiKey: /** @type {any} */ (7) }), /`apiKey` must be a text or a function, got a number/);
  misused(() => openai(/** @type {any} */ (undefined)), /a model needs an id, got nothing/);
  misused(() => openai("gpt", /** @type {any} */ ("sk-abc")), /options.*object|must be an object/);
});

test("a model's options, one by one", () => {
  misused(() => openai("gpt", /** @type {any} */ ({ headers: "x" })), /model `gpt`: `headers` must be an object of texts, got a string/);
  for (const headers of [new Headers({ a: "b" }), new Map([["a", "b"]]), { a: 5 }]) {
    misused(() => openai("gpt", /** @type {any} */ ({ headers })), /model `gpt`: `headers` must be an object of texts, got an object/);
    misused(() => new Agent({ model, streamOptions: { headers: /** @type {any} */ (headers) } }), /`streamOptions.headers` must be an object of texts, got an object/);
  }
  openai("gpt", /** @type {any} */ ({ headers: { a: "b", none: undefined } }));
  misused(() => gemini("g", /** @type {any} */ ({ fetch: "x" })), /model `g`: `fetch` must be a function, got a string/);
  misused(() => openaiResponses("r", /** @type {any} */ ({ limits: { lines: 3 } })), /model `r`: unknown option `limits.lines`; did you mean `line`\?/);
  misused(() => anthropic("c", /** @type {any} */ ({ dangerouslyAllowBrowsers: true })), /model `c`: unknown option `dangerouslyAllowBrowsers`; did you mean `dangerouslyAllowBrowser`\?/);
  misused(() => openai("gpt", /** @type {any} */ ({ dangerouslyAllowBrowser: true })), /unknown option `dangerouslyAllowBrowser`/);
  misused(() => custom("m", async function* () {}, /** @type {any} */ ({ supportTools: false })), /model `m`: unknown option `supportTools`; did you mean `supportsTools`\?/);
});

/** @type {[string, any, RegExp][]} */
const SCRIPTS = [
  ["no list", "hello", /scripted needs an array of items, got a string/],
  ["an item that is none", [7], /scripted: item 0 must be a text, an array of events, or \{ text, toolCalls, … \}, got a number/],
  ["a misspelt member", ["a", { toolcalls: [] }], /scripted: item 1: unknown member `toolcalls`; did you mean `toolCalls`\?/],
  ["a misspelt call", [{ toolCalls: [{ toolname: "x" }] }], /scripted: item 0: unknown member of a call `toolname`; did you mean `toolName`\?/],
  ["a call of nothing", [{ toolCalls: [{ arguments: {} }] }], /scripted: item 0: a call needs a `toolName`, got nothing/],
];
for (const [name, items, pattern] of SCRIPTS) test(`a script is checked where it is made: ${name}`, () => misused(() => scripted(items), pattern));

test("what a function of a script gives is checked when it gives it", async () => {
  const { result } = await readRun(new Agent({ model: scripted([() => /** @type {any} */ ({ txt: "x" })]) }).prompt("Go"));
  assert.deepEqual([result.error.code, result.error.message], ["misuse", "scripted: what item 0 gives: unknown member `txt`; did you mean `text`?"]);
});

/** @type {[string, any, RegExp][]} */
const TOOLS = [
  ["a slip", { timeout: 5 }, /tool `go`: unknown option `timeout`; did you mean `timeoutMs`\?/],
  ["a slip in a flag", { requireApproval: true }, /tool `go`: unknown option `requireApproval`; did you mean `requiresApproval`\?/],
  ["a time that is a text", { timeoutMs: "5s" }, /tool `go`: `timeoutMs` must be a number from 0 on, got "5s"/],
  ["an approval that is a word", { requiresApproval: "always" }, /tool `go`: `requiresApproval` must be true or false or a function, got a string/],
  ["a priority that is a word", { priority: "high" }, /tool `go`: `priority` must be a number, got "high"/],
  ["a description that is none", { description: 7 }, /tool `go`: `description` must be a text, got a number/],
  ["parameters by another name", { schema: {}, parameters: undefined }, /tool `go`: unknown option `schema`; did you mean `parameters`\?/],
  ["properties in place of a schema", { parameters: { city: { type: "string" }, unit: { enum: ["C"] } } }, /parameters of tool `go` are properties, no JSON Schema; write \{ type: "object", properties: \{ city: … \} \}/],
  ["parameters that are no object", { parameters: { type: "string" } }, /parameters of tool `go` must describe an object, they describe string/],
  ["a function by another name", { execute: undefined, handler: () => "" }, /tool `go`: unknown option `handler`; did you mean `execute`\?/],
];
for (const [name, more, pattern] of TOOLS) test(`a tool is checked where it is made: ${name}`, () => misused(() => tool(testTool("go", () => "", more)), pattern));

test("a tool may carry what is its host's own; one without a name belongs into a record", () => {
  tool(testTool("go", () => "", { label: "Go!", icon: "arrow", annotations: {} }));
  misused(() => new Agent({ model, tools: /** @type {any} */ ([{ description: "", execute: () => "" }]) }), /a tool needs a `name`, got nothing; those that have none go into a record: \{ get_weather: … \}/);
  misused(() => subagent(/** @type {any} */ ({ name: "x", description: "", agent: new Agent({ model }) })), /subagent needs a function `agent` that gives a new Agent, got an object/);
});

test("the options of a run", () => {
  const agent = new Agent({ model });
  misused(() => agent.prompt("Go", /** @type {any} */ ({ abortSignal: AbortSignal.timeout(5) })), /unknown option `abortSignal`; did you mean `signal`\?/);
  misused(() => agent.prompt("Go", /** @type {any} */ ({ signal: new AbortController() })), /`signal` must be an AbortSignal, got an object \(AbortController\)/);
  misused(() => agent.prompt("Go", /** @type {any} */ ({ runId: 7 })), /`runId` must be a text, got a number/);
  misused(() => agent.prompt("Go", /** @type {any} */ (AbortSignal.timeout(5).aborted)), /the options of a run must be an object, got a boolean/);
  misused(() => agentLoop(/** @type {any} */ ("Hi"), { model }), /agentLoop takes an array of inputs, got a string/);
  misused(() => agentLoopContinue(/** @type {any} */ (undefined), { model }), /agentLoopContinue takes an array of messages, got nothing/);
  assert.equal(agent.isRunning, false);
});

test("decisions about a call that has no id, or in a list", () => {
  const agent = new Agent({ model });
  for (const id of [undefined, null, 7, Symbol("a")]) misused(() => agent.resolveTool(/** @type {any} */ (id), "approve"), /a call's id must be a text, got/);
  for (const list of [["approve"], new Map([["a", "approve"]])]) misused(() => agent.resolveTools(/** @type {any} */ (list)), /the decisions must be an object, got an/);
});

test("a prompt while a run is on, and what to do instead", async () => {
  const agent = new Agent({ model: scripted(["one", "two"]) });
  const run = agent.prompt("Go");
  misused(() => agent.prompt("Again"), /already running; steer it, queue a follow-up, or wait for it/);
  misused(() => agent.continue(), /already running/);
  const outcome = await readRun(run);
  assert.equal(outcome.result.stopReason, "completed");
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
  ["an address for base64", [{ type: "image", mimeType: "image/png", data: "data:image/png;base64,AAAA" }], /input\[0\]: `data` is base64 alone; an address that begins with https:\/\/ goes into `url`/],
  ["a broken block", [{ type: "image", data: "AAAA" }], /a block of type image needs a text `mimeType`, got nothing/],
  ["a block of another kind", [{ type: "tool_call" }], /must be a block of type text, image, file, got `tool_call`/],
  ["a custom message without a kind", { role: "custom", data: 1 }, /custom message needs a `kind`/],
  ["a list with a hole", ["a", null], /input\[1\] must be .*got null/],
  ["what is no JSON", { role: "custom", kind: "k", data: 1n }, /is no JSON: .*BigInt/],
];
for (const [name, input, pattern] of INPUTS) {
  test(`an input that is none is told at the call: ${name}`, () => {
    const agent = new Agent({ model });
    misused(() => agent.prompt(input), pattern);
    if (!Array.isArray(input)) misused(() => agent.steer(input), pattern);
    if (!Array.isArray(input)) misused(() => agent.followUp(input), pattern);
    assert.equal(agent.isRunning, false);
  });
}

test("every form of an input", async () => {
  /** @type {any[]} */
  const inputs = ["text", [{ type: "text", text: "block" }], { role: "user", content: [{ type: "text", text: "message" }], timestamp: 1 }, { role: "user", content: "short" }, ["several", [{ type: "text", text: "of" }], { role: "custom", kind: "k", data: { a: 1 }, timestamp: 3 }]];
  for (const input of inputs) {
    const outcome = await readRun(new Agent({ model: scripted(["ok"]) }).prompt(input));
    assert.equal(outcome.result.stopReason, "completed");
    assert.ok(outcome.result.messages[0].content[0].text.length > 1);
  }
});

test("a history that was changed by hand is told of: the model would not see it", async () => {
  for (const change of [(/** @type {any} */ list) => list.push({ role: "user", content: [], timestamp: 0 }), (/** @type {any} */ list) => void (list.length = 0), (/** @type {any} */ list) => list.pop()]) {
    const agent = new Agent({ model: scripted(["a", "b"]) });
    await agent.prompt("Go");
    change(agent.messages);
    misused(() => agent.prompt("On"), /`agent.messages` was changed, and the engine has its own; make a new Agent\(\{ messages \}\)/);
    agent.reset();
    assert.equal((await agent.prompt("On")).text, "b");
  }
});

test("other misuse of an agent", async () => {
  const agent = new Agent({ model: scripted(["ok", "ok"]) });
  misused(() => agent.subscribe(/** @type {any} */ ("all")), /a subscriber must be a function, got a string/);
  misused(() => agent.resolveTool("c1", /** @type {any} */ ("yes")), /a decision must be "approve", "reject" or/);
  misused(() => agent.resolveTool("c1", /** @type {any} */ ({ action: "approve", args: { n: 1 } })), /unknown member of a decision `args`/);
  misused(() => agent.resolveTool("c1", { action: "approve", arguments: { n: /** @type {any} */ (1n) } }), /the decision is no JSON: .*BigInt/);
  misused(() => new Agent({ model: scripted([]), sessionState: /** @type {any} */ ({ act() {} }) }), /`sessionState` is no JSON: .*could not be cloned/);
  for (const options of [{ sessionState: { n: 1n } }, { streamOptions: { body: { n: 1n } } }]) misused(() => new Agent({ model: scripted([]), .../** @type {any} */ (options) }), /the options are no JSON: .*BigInt/);
  misused(() => { agent.model = /** @type {any} */ (undefined); }, /there is no model/);
  misused(() => { agent.systemPrompt = /** @type {any} */ (7); }, /`systemPrompt` must be a text/);
  misused(() => { agent.tools = [testTool("a", () => ""), testTool("a", () => "")]; }, /two tools are named `a`/);
  await agent.prompt("Go");
  assert.equal((await agent.prompt("Still works")).text, "ok");
});

test("what is no JSON is nobody else's end: other runs go on", async () => {
  const done = deferred();
  const other = new Agent({ model: scripted([call("wait"), "well"]), tools: [testTool("wait", () => done.promise)] }).prompt("Go");
  const approvalAgent = new Agent({ model: scripted([{ toolCalls: [{ callId: "c", toolName: "pay" }] }, "paid"]), tools: [testTool("pay", () => "", { requiresApproval: true })] });
  const bad = { role: "custom", kind: "k", data: 1n, timestamp: 0 };
  const early = new Agent({ model: scripted(["one", "two"]) });
  misused(() => early.steer(/** @type {any} */ (bad)), /no JSON/);
  const receipt = early.steer("a good one");
  approvalAgent.subscribe((event) => {
    if (event.type !== "tool_approval_requested") return;
    misused(() => approvalAgent.steer(/** @type {any} */ (bad)), /the message is no JSON: .*BigInt/);
    misused(() => approvalAgent.resolveTools({ c: { action: "approve", arguments: /** @type {any} */ (bad) } }), /the decision is no JSON/);
    approvalAgent.resolveTool("c", "approve");
  });
  assert.equal((await approvalAgent.prompt("Go")).text, "paid");
  assert.equal((await early.prompt("Go")).text, "two");
  assert.equal((await receipt).delivered, true);
  const { error } = await new Agent({ model: scripted(["never"]), messages: /** @type {any} */ ([bad]) }).prompt("Go");
  assert.deepEqual([error?.code, error?.message.replace(/:.*/, "")], ["misuse", "`messages` are no JSON"]);
  done.resolve("waited");
  assert.equal((await other).text, "well");
});

test("a letter that only the engine can refuse takes no other along", async () => {
  const agent = new Agent({ model: scripted(["one", "two", "three"]) });
  const deep = agent.followUp({ role: "custom", kind: "k", data: JSON.parse("[".repeat(200) + "]".repeat(200)), timestamp: 0 });
  const good = agent.followUp("and then?");
  assert.match((await agent.prompt("Go")).error?.message ?? "", /nested too deep/);
  assert.deepEqual(await deep, { delivered: false, reason: "run_ended" });
  assert.equal((await agent.prompt("Go")).text, "two");
  assert.equal((await good).delivered, true);
  misused(() => agent.continue(), /cannot continue/);
});

test("an AgentError is known across copies of the package", async () => {
  const error = new AgentError({ code: "network", message: "gone", retryable: true }, "cause");
  assert.ok(AgentError.isInstance(error) && error instanceof Error);
  assert.deepEqual([error.code, error.message, error.cause, error.info.retryable, error.name], ["network", "gone", "cause", true, "AgentError"]);
  const other = Object.defineProperty(new Error("x"), Symbol.for("turnwheel.AgentError"), { value: true });
  assert.equal(AgentError.isInstance(other), true);
  for (const value of [null, undefined, "x", {}, new Error("x")]) assert.equal(AgentError.isInstance(value), false);
  const copy = await import("../../../www/npm/errors/errors.js");
  const foreign = copy.misuse("no");
  assert.notEqual(copy.AgentError, AgentError);
  assert.ok(foreign instanceof AgentError && error instanceof copy.AgentError && AgentError.isInstance(foreign));
  class Own extends AgentError {}
  assert.deepEqual([error instanceof Own, new Own(error.info) instanceof Own, new Own(error.info) instanceof AgentError], [false, true, true]);
  const outcome = await readRun(new Agent({ model: custom("m", () => { throw error; }), retry: { maxAttempts: 1 } }).prompt("Go"));
  assert.deepEqual([outcome.result.error.code, outcome.result.error.message, outcome.result.error.cause], ["network", "gone", error]);
});

test("an AgentError says in which phase of the run it happened", async () => {
  const phaseOf = async (/** @type {any} */ options) => {
    const { result } = await readRun(new Agent({ model: scripted([call("go"), "done"]), tools: [testTool("go", () => "")], ...options }).prompt("Go"));
    assert.equal(result.error.phase, result.error.info.phase);
    return [result.error.code, result.error.phase];
  };
  const fails = () => { throw new Error("broke"); };
  assert.deepEqual(await phaseOf({ model: scripted([{ error: { code: "auth", message: "no" } }]) }), ["auth", "model"]);
  assert.deepEqual(await phaseOf({ hooks: { beforeInference: fails } }), ["hook", "hook"]);
  assert.deepEqual(await phaseOf({ tools: [testTool("go", fails, { fatal: true })] }), ["tool", "tool"]);
  assert.deepEqual(await phaseOf({ convertToLlm: fails }), ["hook", "convert_to_llm"]);
  assert.equal(new AgentError({ code: "misuse", message: "x", retryable: false }).phase, undefined);
});

test("classes have their names in the bundle too, and errors are printed with theirs", () => {
  assert.deepEqual([Agent, AgentError, RemoteAgent].map(({ name }) => name), ["Agent", "AgentError", "RemoteAgent"]);
  assert.match(inspect(new AgentError({ code: "auth", message: "no key", retryable: false })), /^AgentError: no key\n/);
});

test("null in the place of options is named, not stumbled over", async () => {
  const agent = new Agent({ model });
  const nothing = /** @type {any} */ (null);
  const cases = [() => agent.resolveTools(nothing), () => custom("mine", async function* () {}, nothing), () => scripted([{ toolCalls: [nothing] }]), () => fromResponse(new Response(""), nothing)];
  for (const act of cases) {
    assert.throws(act, (/** @type {any} */ error) => AgentError.isInstance(error) && error.code === "misuse" && /must be an object, got null/.test(error.message), String(act));
  }
  await assert.rejects(mcpTools({ callTool() {} }, nothing), /the options of mcpTools must be an object, got null/);
});

test("a transformer that gives a list among its messages is told so; a list of two numbers is no run of places", async () => {
  for (const nested of [[{ role: "user", content: "x" }], [0, 1], []]) {
    for (const give of [() => [nested], () => ({ messages: [nested] })]) {
      for (const name of ["transformContext", "asyncTransformContext"]) {
        const agent = new Agent(/** @type {any} */ ({ model: scripted(["Hi."]), [name]: name === "transformContext" ? give : async () => give() }));
        const { error, stopReason } = await agent.prompt("Go");
        assert.equal(stopReason, "error");
        assert.match(error?.message ?? "", /a context transformer must give messages, got an array among them/);
      }
    }
  }
});

test("an address that is none is refused at the call: nothing would come of it", () => {
  for (const baseUrl of ["http://", "http://exa mple/v1", "http://localhost:99999/v1", "https://[::x]/v1"]) {
    misused(() => openaiCompatible("llama", { baseUrl }), /model `llama`: `baseUrl` must be an address, got "http/);
  }
});

test("turnwheel/slim: what is no function, or gives neither bytes nor a module, is named; the right one goes on", async () => {
  const slim = new URL("../../../pkg/slim.js", import.meta.url).href;
  const script = `
    import { readFileSync } from "node:fs";
    import { Agent, scripted, use } from ${JSON.stringify(slim)};
    const said = [];
    const bytes = readFileSync(new URL("turnwheel.wasm", ${JSON.stringify(slim)}));
    const [{ module }] = WebAssembly.Module.imports(new WebAssembly.Module(bytes));
    const other = Buffer.from(bytes.toString("latin1").replaceAll(module, "x".repeat(module.length)), "latin1");
    try { use(bytes); } catch (error) { said.push([error.code, error.message]); }
    for (const load of [() => new Response(bytes), async () => "text", () => undefined, () => new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]), () => other, () => bytes]) {
      use(load);
      const { text, error } = await new Agent({ model: scripted(["Hi."]) }).prompt("Go");
      said.push([error?.code ?? "", error?.message ?? text]);
    }
    console.log(JSON.stringify(said));`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", script]);
  const foreign = ["misuse", "the wasm file is not turnwheel.wasm, or that of another version"];
  const wasmMisuse = (/** @type {string} */ got) => ["misuse", `\`use\` wants a function that gives the wasm file, as bytes or as a compiled module; got ${got}`];
  assert.deepEqual(JSON.parse(stdout), [wasmMisuse("an object (Buffer)"), wasmMisuse("an object (Response)"), wasmMisuse("a string"), wasmMisuse("nothing"), foreign, foreign, ["", "Hi."]]);
});

test("a prompt that says nothing is refused in every form", () => {
  const agent = new Agent({ model: scripted(["never"]) });
  const nothing = /** @type {any[]} */ (["", " \n", [""], ["", " "], [{ type: "text", text: "" }], { role: "user", content: "" }, [{ role: "user", content: [{ type: "text", text: " " }] }], { role: "user", content: [] }]);
  for (const input of nothing) misused(() => agent.prompt(input), /the prompt is an empty text; say something, or go on without a word by agent\.continue\(\)/);
  assert.deepEqual([agent.isRunning, agent.messages], [false, []]);
});
