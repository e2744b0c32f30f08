// @ts-check
// A model in the page: the real wllama, real weights (SmolLM2-135M, or those of `--gguf FILE`), Chromium. First the whole example;
// then agents with tools: held to its form, the model makes calls that run, and every run ends. What it says does not matter here.

import assert from "node:assert/strict";
import { symlink } from "node:fs/promises";
import { join } from "node:path";
import { after, test } from "node:test";
import { chromium } from "playwright-core";
import { clean, install, site } from "../examples/kit.mjs";
import { packagesOf } from "./npm.mjs";
import { MODEL, pythonWith, weightsOf } from "./python.mjs";

const { folder: peers, missing: noWllama } = packagesOf("wllama", ["@wllama/wllama@3.8.1"]);
const { python, missing: noWeights } = process.env.GGUF ? { python: "" } : pythonWith("the-model", MODEL);
const missing = noWllama ?? noWeights;

test("a model in the page", { skip: missing, timeout: 10 * 60_000 }, async (t) => {
  after(clean);
  const folder = await install("wllama", { "@wllama/wllama": join(String(peers), "node_modules/@wllama/wllama") });
  await symlink(process.env.GGUF ?? weightsOf(String(python)), join(folder, "model.gguf"));
  const address = await site(folder, t);
  const browser = await chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"] });
  t.after(() => browser.close());
  const page = await browser.newPage();
  page.setDefaultTimeout(4 * 60_000);
  const [answer, state] = [page.locator("#answer"), page.locator("#state")];
  const becomes = (/** @type {RegExp} */ what) => page.waitForFunction((source) => new RegExp(source).test(document.getElementById("state")?.textContent ?? ""), what.source);
  await page.goto(`${address}/`);
  await page.click("#load");
  await becomes(/ready|[Ee]rror/);
  assert.equal(await state.textContent(), "ready");

  await t.test("it streams, and is stopped in the middle", async () => {
    await page.fill("#question", "Tell me a long story about the sea.");
    await page.click("#ask");
    await page.waitForFunction(() => (document.getElementById("answer")?.textContent ?? "").length > 10);
    await page.click("#stop");
    await becomes(/tokens/);
    assert.match((await state.textContent()) ?? "", /^aborted/);
    assert.ok(((await answer.textContent()) ?? "").length > 10);
  });

  await t.test("the next answer comes to its end, with its usage", async () => {
    await page.fill("#question", "Say hello in three words.");
    await page.click("#ask");
    await becomes(/completed|[Ee]rror/);
    assert.match((await state.textContent()) ?? "", /^completed, [1-9]\d* tokens$/);
    assert.ok(((await answer.textContent()) ?? "").length > 0);
  });

  await t.test("what does not fit is told", async () => {
    await page.fill("#question", "word ".repeat(3000));
    await page.click("#ask");
    await becomes(/exceeds/);
  });

  await t.test("held to its form it calls a tool, which runs, and every run ends within four turns", async (t) => {
    for (const [question, toolName] of /** @type {const} */ ([["What is 17 * 23?", "calculate"], ["What is the weather in Oslo?", "get_weather"], ["Hello, who are you?", undefined]])) {
      const { stopReason, turns, ran, calls, text, usage } = await page.evaluate(asks, { question, toolName });
      t.diagnostic(`${question} → ${JSON.stringify(calls)}; ${turns} turns, ${stopReason}: ${text.slice(0, 80)}`);
      assert.equal(stopReason, "completed");
      assert.ok(turns <= 4 && text.length > 0 && !/"(calls|arguments)"/.test(text), text);
      assert.deepEqual(ran, calls, "what was called has run, with those arguments");
      if (toolName) assert.equal(calls[0]?.[0], toolName);
      if (turns > 1) assert.ok(usage.cacheRead > 0, "what was read was read again");
    }
  });

  await t.test("an abort is over within 100 ms, and the next turn has in the cache what was read", async (t) => {
    const { tookMs, aborted, next } = await page.evaluate(aborts);
    t.diagnostic(`aborted in ${tookMs.toFixed(1)} ms; then ${next.usage.cacheRead} of ${next.usage.cacheRead + next.usage.input} tokens were in the cache`);
    assert.equal(aborted, "aborted");
    assert.ok(tookMs < 100, `${tookMs} ms`);
    assert.equal(next.stopReason, "completed");
    assert.ok(next.usage.cacheRead > 0);
  });

  await t.test("how fast it reads and writes", async (t) => {
    const { prompt_n, prompt_per_second, predicted_per_second } = await page.evaluate(speed);
    t.diagnostic(`it reads ${prompt_per_second.toFixed(1)} tokens a second (${prompt_n} of them) and writes ${predicted_per_second.toFixed(1)}`);
    assert.ok(prompt_per_second > 0 && predicted_per_second > 0);
  });
});

/** In the page: an agent with two tools answers one question, with a call of this tool first. @param {{ question: string, toolName: string | undefined }} how */
async function asks({ question, toolName }) {
  const { Agent, model } = /** @type {any} */ (await (/** @type {any} */ (globalThis).kit ??= make()));
  /** @type {[string, any][]} */
  const [ran, calls] = [[], []];
  const tool = (/** @type {string} */ name, /** @type {string} */ description, /** @type {string} */ given, /** @type {string} */ result) => ({
    name, description, parameters: { type: "object", properties: { [given]: { type: "string", minLength: 1, maxLength: 40 } }, required: [given] },
    execute: (/** @type {any} */ args) => (ran.push([name, args]), result),
  });
  const tools = [tool("calculate", "Computes an arithmetic expression", "expression", "391"), tool("get_weather", "The weather in a city now", "city", "12 degrees and rain")];
  const agent = new Agent({ model, tools, maxTurns: 4, streamOptions: { temperature: 0, maxTokens: 120, ...(toolName && { toolChoice: { toolName } }) } });
  const { stopReason, error, turns, text, usage, messages } = await agent.prompt(question);
  for (const message of messages) for (const block of message.content) if (block.type === "tool_call") calls.push([block.toolName, block.arguments]);
  return { stopReason: error?.message ?? stopReason, turns, ran, calls, text, usage };

  async function make() {
    const [{ Agent }, { wllama }, { Wllama }] = await Promise.all(["turnwheel", "turnwheel/local", "@wllama/wllama"].map((name) => import(name)));
    const engine = new Wllama({ default: "./node_modules/@wllama/wllama/esm/wasm/wllama.wasm" }, { suppressNativeLog: true });
    await engine.loadModelFromUrl(new URL("model.gguf", location.href).href, { n_ctx: 2048, n_threads: 1 });
    return { Agent, engine, model: wllama(engine, { maxCalls: 1 }) };
  }
}

/** In the page: stops an answer in its middle, and asks again. */
async function aborts() {
  const { Agent, model } = await /** @type {any} */ (globalThis).kit;
  const agent = new Agent({ model, streamOptions: { temperature: 0, maxTokens: 60 } });
  const run = agent.prompt("Tell me a long story about the sea.");
  let pieces = 0;
  let since = 0;
  for await (const _ of run.textStream) {
    if (++pieces !== 5) continue;
    since = performance.now();
    run.abort();
  }
  const { stopReason: aborted } = await run;
  const tookMs = performance.now() - since;
  const { stopReason, usage } = await agent.prompt("Now say hello.");
  return { tookMs, aborted, next: { stopReason, usage } };
}

/** In the page: what the engine itself measures, of a text that it has not read. */
async function speed() {
  const { engine } = await /** @type {any} */ (globalThis).kit;
  const words = Array.from({ length: 60 }, (_, i) => ["sea", "red", "house", "walk", "nine"][(i * 7) % 5] + String(i % 13)).join(" ");
  let timings;
  for await (const chunk of await engine.createChatCompletion({ stream: true, messages: [{ role: "user", content: `${words}. Count from one to twenty in words.` }], max_tokens: 24, temperature: 0 })) timings = chunk.timings ?? timings;
  return timings;
}
