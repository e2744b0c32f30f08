// @ts-check
// turnwheel/local with real weights: llama.cpp on its own HTTP server, by the grammar of each request. 20 questions
// and three tools: every answer parses, every run ends within four turns; a table says how many were right.
// SmolLM2-135M comes from a package. `cargo xtask e2e local --gguf FILE` takes other weights: those of
// Qwen2.5-Coder-0.5B-Instruct Q4_K_M are known by their checksum, and must have 15 right.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { after, before, test } from "node:test";
import { Agent, readRun } from "../js/kit.mjs";
import { wllama } from "../../pkg/local.js";
import { MODEL, pythonWith, startServer } from "./python.mjs";

const QWEN = "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32";

const WEATHER = { name: "get_weather", description: "The weather in a city now", parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] } };
const CALCULATE = { name: "calculate", description: "Computes an arithmetic expression", parameters: { type: "object", properties: { expression: { type: "string" } }, required: ["expression"] } };
const TIMER = { name: "set_timer", description: "Starts a timer", parameters: { type: "object", properties: { minutes: { type: "integer", minimum: 1 }, label: { type: "string" } }, required: ["minutes"] } };
const RESULTS = /** @type {{ [name: string]: (given: any) => string }} */ ({ get_weather: ({ city }) => `12 degrees and rain in ${city}`, calculate: () => "391", set_timer: ({ minutes }) => `a timer of ${minutes} minutes is running` });

/** A question, and the calls that are right: each a tool and a word that its arguments have; none if it should talk. @type {[string, ...[string, RegExp][]][]} */
const QUESTIONS = [
  ["What is the weather in Oslo?", ["get_weather", /Oslo/]],
  ["Is it raining in Paris right now?", ["get_weather", /Paris/]],
  ["How warm is it in Tokyo?", ["get_weather", /Tokyo/]],
  ["Do I need an umbrella in London today?", ["get_weather", /London/]],
  ["Tell me the current weather in Nairobi.", ["get_weather", /Nairobi/]],
  ["What is 17 * 23?", ["calculate", /17.*23/]],
  ["Compute 1234 + 5678.", ["calculate", /1234.*5678/]],
  ["How much is 144 divided by 12?", ["calculate", /144.*12/]],
  ["Please calculate (3 + 4) * 5.", ["calculate", /3.*4.*5/]],
  ["What is 2 to the power of 10?", ["calculate", /2.*10/]],
  ["Set a timer for 5 minutes.", ["set_timer", /5/]],
  ["Start a 20 minute timer for the pasta.", ["set_timer", /20/]],
  ["Remind me in 45 minutes.", ["set_timer", /45/]],
  ["Wake me up in 90 minutes.", ["set_timer", /90/]],
  ["Hello, who are you?"],
  ["Thank you very much!"],
  ["Tell me a joke."],
  ["What is the capital of Norway?"],
  ["What is the weather in Paris and in Rome?", ["get_weather", /Paris/], ["get_weather", /Rome/]],
  ["Set a timer for 10 minutes and tell me the weather in Oslo.", ["set_timer", /10/], ["get_weather", /Oslo/]],
];

/** A server of llama.cpp as wllama is used: the same requests, the same chunks. @param {string} url */
const overHttp = (url) => ({
  /** @param {any} params */
  async createChatCompletion({ abortSignal, ...request }) {
    const response = await fetch(`${url}/v1/chat/completions`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(request), signal: abortSignal });
    if (!response.ok || !response.body) throw new Error(await response.text());
    const lines = response.body.pipeThrough(new TextDecoderStream());
    return (async function* () {
      let rest = "";
      for await (const text of lines) {
        const all = (rest + text).split("\n");
        rest = all.pop() ?? "";
        for (const line of all) if (line.startsWith("data: {")) yield JSON.parse(line.slice(6));
      }
    })();
  },
});

/** Which of the questions were answered in form, and right. @param {string} url @param {number} maxCalls */
async function ask(url, maxCalls) {
  const model = wllama(overHttp(url), { maxCalls });
  let [parsed, right, ended, tokens] = [0, 0, 0, 0];
  const start = performance.now();
  for (const [question, ...wanted] of QUESTIONS) {
    const tools = [WEATHER, CALCULATE, TIMER].map((tool) => ({ ...tool, execute: RESULTS[tool.name] }));
    const agent = new Agent({ model, tools: /** @type {any} */ (tools), systemPrompt: "You are a helpful assistant.", streamOptions: { temperature: 0, maxTokens: 200 }, maxTurns: 4, retry: { maxAttempts: 1 } });
    const { result, all } = await readRun(agent.prompt(question));
    const [first] = all("message_end").map(({ message }) => message);
    const calls = first.content.filter((/** @type {any} */ { type }) => type === "tool_call");
    // A text that was cut by its length was in form as far as it came.
    parsed += Number(["stop", "tool_use", "length"].includes(first.stopReason) && !first.content.some((/** @type {any} */ block) => block.type === "text" && /"(calls|arguments)"/.test(block.text)) && first.stopReason !== "error");
    ended += Number(result.stopReason === "completed");
    right += Number(calls.length === wanted.length && wanted.every(([name, word]) => calls.some((/** @type {any} */ call) => call.toolName === name && word.test(JSON.stringify(call.arguments)))));
    tokens += result.usage.output;
  }
  return { parsed, right, ended, tokensPerSecond: tokens / ((performance.now() - start) / 1000) };
}

/** @param {string} file */
async function checksum(file) {
  const hash = createHash("sha256");
  for await (const piece of createReadStream(file)) hash.update(piece);
  return hash.digest("hex");
}

const { python, missing } = pythonWith("the-model", MODEL);
const gguf = process.env.GGUF;

/** @param {string} name @param {string[]} weights @param {number} maxCalls @param {number} least that must be right */
function suite(name, weights, maxCalls, least) {
  test(`${name}: 20 questions, three tools`, { skip: missing, timeout: 20 * 60_000 }, async (t) => {
    const server = await startServer(String(python), "serve_model.py", ["2048", ...weights]);
    after(() => server.stop());
    const { parsed, right, ended, tokensPerSecond } = await ask(server.url, maxCalls);
    t.diagnostic(`${name}: ${parsed} of 20 parse, ${right} right, ${ended} runs ended within four turns, ${tokensPerSecond.toFixed(1)} tokens a second`);
    assert.equal(parsed, 20);
    assert.equal(ended, 20);
    assert.ok(right >= least, `${right} right`);
    const agent = new Agent({ model: wllama(overHttp(server.url)), streamOptions: { maxTokens: 16 } });
    await agent.prompt("Count to three.");
    assert.ok((await agent.prompt("And on.")).usage.cacheRead > 0, "what was read was read again");
    assert.equal((await agent.prompt("word ".repeat(3000))).error?.code, "context_overflow");
  });
}

suite("SmolLM2-135M", [], 1, 1);
if (gguf === undefined) test("larger weights", { skip: "no `--gguf FILE` was given" }, () => {});
else {
  /** @type {string} */
  let sum;
  before(async () => void (sum = await checksum(gguf)));
  test("the weights are those that are known", () => assert.equal(sum, QWEN, "other weights: what is right of theirs is not known"));
  suite("Qwen2.5-Coder-0.5B", [gguf], 4, 15);
}
