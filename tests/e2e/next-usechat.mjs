// @ts-check
// The example with Next.js, built and used in Chromium: the chat whose agent is in the page, and the one whose agent is on the
// server. The model is our own server on loopback.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { calls, serve, textAnswer } from "../js/server.mjs";
import { packagesOf } from "./npm.mjs";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const { folder, missing } = packagesOf("next-usechat", ["next@16.4.6", "react@19.3.1", "react-dom@19.3.1", "ai@7.0.173", "@ai-sdk/react@4.0.177"]);

/** Answers by what was said last: it orders, thanks, and never ends when it is asked for a story. @param {any} request */
function answer({ messages }) {
  const last = messages.at(-1);
  if (last.role === "tool") return textAnswer(last.content);
  if (/story/.test(JSON.stringify(last.content))) return { body: textAnswer("Once upon a time ").split("data: [DONE]")[0]?.split("\n\n").slice(0, 1).join("") + "\n\n", silent: 1e6 };
  return calls(["order_pizza", '{"kind":"Margherita"}']);
}

test("the example with Next.js, in the page and on the server", { skip: missing, timeout: 400_000 }, async (t) => {
  const home = String(folder);
  cpSync(join(ROOT, "www/examples/next-usechat"), home, { recursive: true });
  rmSync(join(home, "node_modules/turnwheel"), { recursive: true, force: true });
  cpSync(join(ROOT, "pkg"), join(home, "node_modules/turnwheel"), { recursive: true });
  const model = await serve(t, (/** @type {any} */ request) => /** @type {any} */ (answer(request.body ?? request)), { cors: true });
  const env = { ...process.env, NEXT_PUBLIC_MODEL_URL: model.baseUrl, NEXT_TELEMETRY_DISABLED: "1" };
  const next = join(home, "node_modules/.bin/next");
  const { status, stdout, stderr } = spawnSync(next, ["build"], { cwd: home, env, encoding: "utf8" });
  assert.equal(status, 0, stdout + stderr);
  const site = spawn(next, ["start", "--port", "0"], { cwd: home, env, stdio: ["ignore", "pipe", "inherit"] });
  t.after(() => void site.kill());
  const port = await new Promise((found, failed) => {
    let told = "";
    site.on("exit", (code) => failed(new Error(`next ended with ${code}: ${told}`)));
    site.stdout.on("data", (data) => {
      const [, at] = /http:\/\/localhost:(\d+)/.exec((told += data)) ?? [];
      if (at) found(at);
    });
  });
  const browser = await chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: FLAGS });
  t.after(() => browser.close());
  for (const path of ["here", "server"]) {
    const page = await browser.newPage();
    page.setDefaultTimeout(30_000);
    /** @type {string[]} */
    const complaints = [];
    page.on("pageerror", (error) => complaints.push(error.message));
    await page.goto(`http://127.0.0.1:${port}/${path}`);
    const say = async (/** @type {string} */ text) => {
      await page.getByLabel("Message").fill(text);
      await page.getByRole("button", { name: "Send" }).click();
    };
    await say("A pizza, please.");
    await page.getByRole("button", { name: "Allow" }).click();
    await page.locator('[data-state="output-available"]').waitFor();
    await page.locator("article.assistant p").filter({ hasText: "One Margherita is on its way." }).waitFor();
    await say("Another one.");
    await page.getByRole("button", { name: "Refuse" }).click();
    await page.locator('[data-state="output-denied"]').waitFor();
    await page.locator('main[data-status="ready"]').waitFor();
    await say("Tell me a story.");
    await page.locator("article.assistant p").filter({ hasText: "Once upon a time" }).waitFor();
    await page.getByRole("button", { name: "Stop" }).click();
    await page.locator('main[data-status="ready"]').waitFor();
    await say("A third one.");
    await page.getByRole("button", { name: "Allow" }).click();
    await page.locator("article.assistant").nth(3).locator("p").filter({ hasText: "is on its way" }).waitFor();
    assert.equal(await page.locator("article").count(), 8, path);
    assert.deepEqual(complaints, [], path);
    await page.close();
  }
});
