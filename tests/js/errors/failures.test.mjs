// @ts-check
// Failures show: results that throw, assertions in scripts, decisions that nobody makes, callbacks that fail, keys that are missing.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createServer } from "node:http";
import { test } from "node:test";
import { Agent, AgentError, anthropic, call, gemini, openai, openaiCompatible, openaiResponses, scripted, settle, testTool } from "../kit.mjs";

const entry = new URL("../../../pkg/entry/node.js", import.meta.url).href;
/** Runs a program. @param {string} code */
const ran = (code) => spawnSync(process.execPath, ["--input-type=module", "-e", `import { Agent, scripted, tool } from ${JSON.stringify(entry)};\n${code}`], { encoding: "utf8" });

test("orThrow gives the result, or throws the error of a run that failed or was aborted", async () => {
  const agent = new Agent({ model: scripted(["hi", ["no event"]]) });
  assert.equal((await agent.prompt("go").orThrow()).text, "hi");
  await assert.rejects(agent.prompt("go").orThrow(), (error) => AgentError.isInstance(error));
  const aborted = new Agent({ model: scripted(["hi"]) }).prompt("go");
  aborted.abort("enough");
  await assert.rejects(aborted.orThrow(), { code: "aborted" });
});

test("textStream.orThrow gives the text first, throws at the end, and stops the run when it is left", async () => {
  const fails = { text: ["a", "b"], error: { code: /** @type {const} */ ("invalid_request"), message: "no" } };
  const pieces = [];
  await assert.rejects(async () => {
    for await (const piece of new Agent({ model: scripted([fails]) }).prompt("go").textStream.orThrow()) pieces.push(piece);
  }, { code: "invalid_request", message: "no" });
  assert.deepEqual(pieces, ["a", "b"]);
  const run = new Agent({ model: scripted([{ text: ["a", "b"] }]) }).prompt("go");
  for await (const piece of run.textStream.orThrow()) {
    assert.equal(piece, "a");
    break;
  }
  assert.equal((await run).stopReason, "aborted");
});

test("an assertion that fails in a script fails the process; another error ends the run alone", () => {
  const failed = ran(`import assert from "node:assert"; await new Agent({ model: scripted([() => assert.equal(1, 2)]) }).prompt("go"); await new Promise((wake) => setTimeout(wake, 50)); console.log("went on");`);
  assert.notEqual(failed.status, 0);
  assert.match(failed.stderr, /AssertionError/);
  const other = ran(`const { error } = await new Agent({ model: scripted([() => { throw new Error("other"); }]), retry: { maxAttempts: 1 } }).prompt("go"); await new Promise((wake) => setTimeout(wake, 50)); console.log(error.message);`);
  assert.deepEqual([other.status, other.stdout.trim()], [0, "other"]);
});

test("a decision that nobody can make is named when Node ends for it, and only then", () => {
  const agent = `const pay = tool({ name: "pay", description: "", parameters: { type: "object" }, requiresApproval: true, execute: () => "paid" });
    const agent = new Agent({ model: scripted([{ toolCalls: [{ toolName: "pay" }] }, "done"]), tools: [pay] });`;
  const silent = ran(`${agent} await agent.prompt("go");`);
  assert.equal(silent.status, 13);
  assert.match(silent.stderr, /turnwheel: a run waits for a decision about `pay`.*agent\.resolve.*approveTool/);
  const decided = ran(`${agent} agent.subscribe((event) => { if (event.type === "tool_approval_requested") agent.resolve(event.id, "approve"); }); await agent.prompt("go"); await new Promise(() => {});`);
  assert.equal(decided.status, 13);
  assert.doesNotMatch(decided.stderr, /decision/);
});

test("what approveTool gives by mistake, or throws, is on the console", async (t) => {
  const error = t.mock.method(console, "error", () => {});
  for (const approveTool of [() => /** @type {any} */ (true), () => { throw new Error("the dialog is broken"); }]) {
    const agent = new Agent({ model: scripted([call("pay"), "done"]), tools: [testTool("pay", () => "paid", { requiresApproval: true })], approveTool });
    assert.equal((await agent.prompt("go")).text, "done");
  }
  const told = error.mock.calls.map(({ arguments: [text, thrown] }) => `${text} ${thrown.message}`);
  assert.equal(told.length, 2);
  assert.match(told[0], /approveTool failed: a decision must be "approve"/);
  assert.match(told[1], /approveTool failed: the dialog is broken/);
});

test("a missing key is an error before the request leaves; a fetch of one's own may add it", async (t) => {
  const sent = t.mock.method(globalThis, "fetch", async () => new Response("{}", { status: 401 }));
  for (const make of [openai, anthropic, gemini]) {
    const { error } = await new Agent({ model: make("m") }).prompt("go");
    assert.equal(error?.code, "auth");
    assert.match(error?.message ?? "", /there is no key for [a-z.]+; give the model an `apiKey`, or the agent `getApiKey`/);
  }
  assert.equal(sent.mock.callCount(), 0);
  await new Agent({ model: openai("m", { apiKey: "k" }) }).prompt("go");
  await new Agent({ model: openai("m"), getApiKey: () => "k" }).prompt("go");
  await new Agent({ model: openai("m", { headers: { authorization: "Bearer k" } }) }).prompt("go");
  await new Agent({ model: openai("m", { baseUrl: "http://localhost:1/v1" }), retry: { maxAttempts: 1 } }).prompt("go");
  assert.equal(sent.mock.callCount(), 4);
  let own = 0;
  await new Agent({ model: openai("m", { fetch: /** @type {any} */ (async () => (own++, new Response("{}", { status: 401 }))) }) }).prompt("go");
  assert.equal(own, 1);
});

test("who refuses a request in which there was no key is answered with the way to give one, beside the server's own words", async () => {
  const refusals = [['{"error":{"message":"Unauthorized","type":"authentication_error"}}', /^Unauthorized \(/], ["Forbidden", /^Forbidden \(/], ["", /^https?:\/\/[^ ]+ answered 401 without saying why \(/], ['[{"error":{"message":"Login first","code":401}}]', /^Login first \(/], ['"no"', /^no \(/], ["null", /without saying why \(/]];
  for (const [body, words] of /** @type {[string, RegExp][]} */ (refusals)) {
    for (const make of [openai, openaiResponses, anthropic, gemini, (/** @type {string} */ id, /** @type {any} */ more) => openaiCompatible(id, { server: "vllm", ...more })]) {
      const fetch = async () => new Response(body, { status: 401 });
      const { error } = await new Agent({ model: make("m", { fetch }) }).prompt("go");
      assert.equal(error?.code, "auth");
      assert.match(error.message, words);
      assert.match(error.message, /no key was given to the model: its `apiKey`, or `getApiKey` of the agent\)$/);
      // Who has sent one is told what the server says, and nothing else.
      const other = await new Agent({ model: make("m", { fetch, apiKey: "k-123456789" }) }).prompt("go");
      assert.doesNotMatch(other.error?.message ?? "", /no key was given/);
    }
  }
});

test("a refusal without a word names the address and the status, and nothing of its query", async (t) => {
  const bodies = ["", "{ }", "[]", "[{}]", "null", "false", '""', '{"error":{}}', '{"error":null}', ' {"error": {"message": ""}}\n'];
  const server = createServer((request, response) => response.writeHead(Number(request.url?.slice(1, 4))).end(bodies[Number(request.url?.slice(4, 5))]));
  await new Promise((ready) => server.listen(0, () => ready(undefined)));
  t.after(() => server.close());
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  const paths = { "/chat/completions": openai, "/responses": openaiResponses, "/messages": anthropic, "/models/m:streamGenerateContent": gemini };
  for (const [path, make] of Object.entries(paths)) {
    for (const status of [400, 401, 404, 500]) {
      for (let i = status === 400 ? 1 : 0; i < bodies.length; i++) {
        const { error } = await new Agent({ model: make("m", { apiKey: "k", baseUrl: `http://127.0.0.1:${port}/${status}${i}?tenant=t` }), retry: { maxAttempts: 1 } }).prompt("go");
        assert.match(error?.message ?? "", new RegExp(`^http://127.0.0.1:${port}/${status}${i}(/v1)?${path} answered ${status} without saying why`));
        assert.doesNotMatch(error?.message ?? "", /tenant/);
      }
    }
  }
});

test("a request without any message is an error that says so", async () => {
  const agent = new Agent({ model: openai("m", { apiKey: "k", baseUrl: "http://localhost:1/v1" }), convertToLlm: () => null });
  const { error } = await agent.prompt("go");
  assert.deepEqual([error?.code, error?.message], ["invalid_request", "there is no message to send: the context transformers or `convert_to_llm` left none"]);
});

test("updates of tools that nobody reads are joined: what waits for a slow iterator has an end", async () => {
  const total = 20_000;
  const chatty = (/** @type {string} */ name) => testTool(name, async (/** @type {any} */ _, /** @type {any} */ { update }) => {
    for (let i = 0; i < total; i++) {
      update(`${i % 10}`);
      if (i % 50 === 0) await settle();
    }
    return "done";
  });
  const agent = new Agent({ model: scripted([call("a", "b"), "done"]), tools: [chatty("a"), chatty("b")] });
  const run = agent.prompt("go");
  const iterator = run[Symbol.asyncIterator]();
  await iterator.next();
  assert.equal((await run).text, "done");
  const [events, texts] = [/** @type {any[]} */ ([]), /** @type {Record<string, string>} */ ({})];
  for (let step = await iterator.next(); !step.done; step = await iterator.next()) {
    events.push(step.value.type);
    if (step.value.type === "tool_execution_update") texts[step.value.toolName] = (texts[step.value.toolName] ?? "") + step.value.update;
  }
  assert.ok(events.length < 1_500, `${events.length} events wait`);
  assert.deepEqual(Object.values(texts).map((text) => text.length), [total, total]);
  assert.equal(events.at(-1), "agent_end");
});

test("a page in place of the wasm file is named", () => {
  const slim = new URL("../../../pkg/slim.js", import.meta.url).href;
  const code = `import { Agent, scripted, use } from ${JSON.stringify(slim)}; use(() => new TextEncoder().encode("<!doctype html><title>404</title>")); console.log((await new Agent({ model: scripted(["hi"]) }).prompt("go")).error.message);`;
  const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", code], { encoding: "utf8" });
  assert.match(stdout, /what was loaded is no wasm file, .*is the address that of turnwheel\.wasm\?/, stderr);
});

test("a 400 without a body is a conversation that is too long, as Cerebras says it", async () => {
  let asked = 0;
  /** @type {any} */
  const fetch = async () => (asked++, new Response(null, { status: 400 }));
  /** @type {boolean[]} */
  const overflows = [];
  const agent = new Agent({ model: openai("m", { apiKey: "k", fetch }), transformContext: (_, overflow) => void overflows.push(overflow) });
  const { error } = await agent.prompt("go");
  assert.deepEqual([error?.code, asked, overflows], ["context_overflow", 1, [false, true]]);
});
