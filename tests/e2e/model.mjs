// @ts-check
// The package against a real model on this machine: SmolLM2-135M on llama.cpp's own HTTP server, over the
// three wires that it speaks. What the model says does not matter here; the shape of a run does.
// `GGUF=FILE` uses other weights.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { Agent, anthropic, openaiCompatible, openaiResponses, readRun, textOf } from "../js/kit.mjs";
import { MODEL, pythonWith, startServer } from "./python.mjs";

const CONTEXT = 512;
/** @type {Awaited<ReturnType<typeof startServer>>} */
let server;
const weights = process.env.GGUF ? [process.env.GGUF] : [];
const { python, missing } = pythonWith("the-model", MODEL);
if (missing) test("a real model", { skip: missing });
else {
  before(async () => void (server = await startServer(python, "serve_model.py", [String(CONTEXT), ...weights])));
  after(() => server?.stop());
  suite("chat", openaiCompatible, "/v1");
  suite("responses", openaiResponses, "/v1");
  suite("messages", anthropic, "");
  test("npx turnwheel smoke", smoke);
}

/** The checks that do not depend on what a model of this size makes of tools and schemas. */
async function smoke() {
  const cli = fileURLToPath(new URL("../../pkg/cli.mjs", import.meta.url));
  const file = join(mkdtempSync(join(tmpdir(), "turnwheel-smoke-")), "told.json");
  const words = [cli, "smoke", "--server", "llama.cpp", "--base-url", `${server.url}/v1`, "--model", "smollm2", "--only", "text,abort,overflow,image", "--timeout", "120", "--out", file];
  const { code, said } = await new Promise((resolve) => execFile(process.execPath, words, { timeout: 600_000 }, (error, stdout, stderr) => resolve({ code: error ? error.code : 0, said: stdout + stderr })));
  assert.equal(code, 0, said);
  const { model, checks } = JSON.parse(readFileSync(file, "utf8"));
  const results = Object.fromEntries(checks.map((/** @type {any} */ { name, result }) => [name, result]));
  // Other weights may see, or have a context that is longer than the prompt of the check.
  if (weights.length === 0) assert.deepEqual([model, results], ["smollm2", { text: "passed", abort: "passed", overflow: "passed", image: "skipped" }], said);
}

/** @param {string} wire @param {(id: string, options: any) => any} make @param {string} path */
function suite(wire, make, path) {
  const check = (/** @type {string} */ name, /** @type {() => Promise<void>} */ act) => test(`${wire}: ${name}`, act);
  /** @param {any} [streamOptions] @param {any} [options] */
  function agentWith(streamOptions, options) {
    const model = make("smollm2", { baseUrl: server.url + path });
    return new Agent({ model, maxTurns: 4, streamOptions: { maxTokens: 24, temperature: 0, ...streamOptions }, ...options });
  }

  /** Whether the server's only slot is busy. */
  async function isBusy() {
    const [slot] = await (await fetch(`${server.url}/slots`)).json();
    return slot.is_processing;
  }

  async function becomesIdle() {
    const end = Date.now() + 20_000;
    while (await isBusy()) assert.ok(Date.now() < end, "the server goes on with what nobody wants");
  }

  /** Writes endlessly unless it is stopped. */
  const ENDLESS = { maxTokens: CONTEXT - 100, body: { ignore_eos: true } };

  check("a text turn: its events in order, its pieces and its usage told", async () => {
    const outcome = await readRun(agentWith().prompt("Say hello."));
    assert.deepEqual(outcome.names, ["agent_start", "turn_start", "message_start", "message_update", "message_end", "turn_end", "agent_end"]);
    const { message } = outcome.all("message_end")[0];
    assert.ok(outcome.text.length > 0);
    assert.equal(outcome.text, textOf(message));
    assert.ok(outcome.all("message_update").length > 1, "it came in one piece");
    assert.ok(["stop", "length"].includes(message.stopReason));
    assert.equal(outcome.end.stopReason, "completed");
    const { input, output, cacheRead, total } = outcome.result.usage;
    assert.ok(input > 0 && output > 0 && output <= 24);
    assert.equal(input + cacheRead + output, total);
    assert.deepEqual(message.usage, outcome.result.usage);
  });

  check("what the server still knows of a conversation is told apart", async () => {
    const agent = agentWith({ maxTokens: 8 });
    await agent.prompt("Count to three.");
    const { usage } = await agent.prompt("And on.");
    assert.ok(usage.cacheRead > 0 && usage.input > 0);
    assert.deepEqual(agent.messages.map((message) => message.role), ["user", "assistant", "user", "assistant"]);
  });

  check("an answer that reaches maxTokens stops by length, and the run completes", async () => {
    const outcome = await readRun(agentWith({ maxTokens: 5, body: { ignore_eos: true } }).prompt("Tell a story."));
    // Over Responses, llama.cpp reports every answer as completed.
    assert.equal(outcome.all("message_end")[0].message.stopReason, wire === "responses" ? "stop" : "length");
    assert.equal(outcome.result.usage.output, 5);
    assert.deepEqual([outcome.end.stopReason, outcome.all("turn_end")[0].reason], ["completed", "complete"]);
  });

  check("an answer that fills the context stops by length too", async () => {
    const outcome = await readRun(agentWith({ ...ENDLESS, maxTokens: CONTEXT }).prompt("word ".repeat(CONTEXT - 100)));
    // Over the other two, llama.cpp does not distinguish this end from others.
    if (wire === "chat") assert.equal(outcome.all("message_end")[0].message.stopReason, "length");
    assert.ok(outcome.result.usage.output > 0 && outcome.result.usage.output < CONTEXT);
  });

  check("an abort in mid-stream keeps what had come, and the server stops at once", async () => {
    const run = agentWith(ENDLESS).prompt("Tell a long story.");
    /** @type {number[]} */
    const times = [];
    let shown = "";
    for await (const event of run) {
      if (event.type !== "message_update") continue;
      times.push(performance.now());
      shown += event.delta.delta;
      if (times.length === 10) run.abort("enough");
    }
    const result = await run;
    const message = /** @type {any} */ (result.messages.at(-1));
    assert.equal(result.stopReason, "aborted");
    assert.deepEqual([message.role, message.stopReason], ["assistant", "aborted"]);
    assert.ok(textOf(message).length > 0 && textOf(message).startsWith(shown));
    assert.equal(result.text, textOf(message));

    // If the slot were still busy, the next answer would have to wait for the remaining hundreds of tokens.
    const perToken = (times[9] - times[0]) / 9;
    const start = performance.now();
    const next = await agentWith({ maxTokens: 2 }).prompt("Say yes.");
    assert.equal(next.stopReason, "completed", next.error?.message);
    assert.ok(performance.now() - start < (perToken * ENDLESS.maxTokens) / 2, "the next answer had to wait");
  });

  check("who leaves the iteration frees the server as well", async () => {
    const run = agentWith(ENDLESS).prompt("Tell a long story.");
    for await (const event of run) if (event.type === "message_update") break;
    assert.equal((await run).stopReason, "aborted");
    await becomesIdle();
  });

  check("an aborted conversation goes on from what had come", async () => {
    const agent = agentWith({ maxTokens: 40, body: { ignore_eos: true } });
    const run = agent.prompt("Tell a story.");
    for await (const event of run) if (event.type === "message_update") run.abort();
    const next = await readRun(agent.prompt("Shorter, please."));
    assert.equal(next.result.stopReason, "completed", next.result.error?.message);
    assert.deepEqual(agent.messages.map((message) => message.role), ["user", "assistant", "user", "assistant"]);
  });

  check("what is said during a text turn is heard after it, in the same run", async () => {
    const agent = agentWith({ maxTokens: 8 });
    /** @type {any} */
    let receipt;
    agent.subscribe((event) => void (event.type === "message_update" && (receipt ??= agent.steer("Now in French."))));
    const outcome = await readRun(agent.prompt("Say hello."));
    assert.deepEqual(await receipt, { delivered: true, turnIndex: 1 });
    assert.equal(outcome.result.turns, 2);
    assert.deepEqual(outcome.all("turn_end").map((turn) => turn.reason), ["complete", "complete"]);
    assert.deepEqual(agent.messages.map((message) => message.role), ["user", "assistant", "user", "assistant"]);
    assert.ok(outcome.result.usage.output <= 16);
  });

  check("a prompt that does not fit is an overflow, told at once", async () => {
    const outcome = await readRun(agentWith().prompt("word ".repeat(2 * CONTEXT)));
    assert.equal(outcome.result.error.code, "context_overflow");
    assert.equal(outcome.result.error.info.retryable, false);
    assert.deepEqual([outcome.end.stopReason, outcome.all("turn_end")[0].reason, outcome.all("retry_attempt").length], ["error", "error", 0]);
  });

  check("an overflow is mended in the same turn where a transformer can", async () => {
    const old = { role: "user", content: [{ type: "text", text: "word ".repeat(2 * CONTEXT) }], timestamp: 1 };
    /** @type {(messages: readonly any[], overflowed: boolean) => any} */
    const transformContext = (messages, overflowed) => (overflowed ? { messages: messages.slice(-1), report: { text: "the oldest left out" } } : undefined);
    const outcome = await readRun(agentWith({}, { messages: [old], transformContext }).prompt("Say hello."));
    assert.equal(outcome.result.stopReason, "completed", outcome.result.error?.message);
    assert.deepEqual([outcome.all("turn_start").length, outcome.all("message_start").length, outcome.all("context_compacted").length], [1, 1, 1]);
  });

  check("two runs at once share the one slot, and both end", async () => {
    const outcomes = await Promise.all(["Say yes.", "Say no."].map((prompt) => readRun(agentWith({ maxTokens: 6 }).prompt(prompt))));
    assert.deepEqual(outcomes.map(({ result }) => result.stopReason), ["completed", "completed"]);
  });

  check("offered tools, whatever the model makes of them, the run ends and every call has its result", async () => {
    const tool = {
      name: "add",
      description: "Adds two numbers.",
      parameters: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } }, required: ["a", "b"] },
      execute: (/** @type {any} */ { a, b }) => String(a + b),
    };
    const outcome = await readRun(agentWith({ maxTokens: 64 }, { tools: [tool], retry: { maxAttempts: 1 } }).prompt("What is 3 plus 4? Use the tool."));
    assert.ok(["completed", "max_turns", "error"].includes(outcome.result.stopReason));
    const calls = outcome.all("message_end").flatMap(({ message }) => message.content.filter((/** @type {any} */ block) => block.type === "tool_call"));
    assert.deepEqual(calls.map((call) => call.callId), outcome.all("tool_execution_end").map((event) => event.callId));
  });
}
