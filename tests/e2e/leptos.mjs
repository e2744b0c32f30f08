// @ts-check
// The Leptos example, built as a user builds it and used in Chromium, against our own model server on loopback: an
// answer streams in, a tool runs, another one asks first, a run is stopped, an error is shown.

import assert from "node:assert/strict";
import { cp, mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { chromium } from "playwright-core";
import { ROOT, run, site } from "../examples/kit.mjs";
import { calls, serve, textAnswer } from "../js/server.mjs";

const WASM = "wasm32-unknown-unknown";
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"];

/** Builds the example, and returns the folder with its page. */
async function build() {
  const cwd = join(ROOT, "www/examples/leptos");
  const target = join(ROOT, "target/leptos");
  const folder = join(target, "site");
  const wasm = join(target, WASM, "debug/leptos-chat.wasm");
  await run("cargo", ["build", "--locked", "--target", WASM, "--target-dir", target], { cwd, timeout: 15 * 60_000 });
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  for (const file of ["index.html", "style.css"]) await cp(join(cwd, file), join(folder, file));
  const bindgen = ["run", "--quiet", "--package", "bindgen-cli", "--bin", "bindgen", "--"];
  await run("cargo", [...bindgen, "--target", "web", "--no-typescript", "--out-name", "leptos-chat", "--out-dir", join(folder, "pkg"), wasm], { cwd: ROOT, timeout: 15 * 60_000 });
  return folder;
}

test("a chat in Leptos", { timeout: 20 * 60_000 }, async (t) => {
  const address = await site(await build(), t);
  const [streamed, half] = [textAnswer(["The page ", "is gold."]), textAnswer(["Once upon", "never"])];
  const firstPiece = (/** @type {string} */ answer) => answer.indexOf("\n\n") + 2;
  let go = () => {};
  const seen = new Promise((resolve) => (go = () => resolve(undefined)));
  const model = await serve(t, [
    calls(["local_time", "{}", "a"], ["paint", '{"colour":"gold"}', "b"]),
    { body: streamed.slice(0, firstPiece(streamed)), until: () => seen, rest: streamed.slice(firstPiece(streamed)) },
    calls(["paint", '{"colour":"red"}', "c"]),
    textAnswer("As you wish."),
    { body: half, silent: firstPiece(half) },
    { status: 401, body: '{"error":{"message":"no such key"}}' },
  ], { cors: true });

  const browser = await chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: FLAGS });
  t.after(() => browser.close());
  const page = await browser.newPage();
  page.setDefaultTimeout(30_000);
  /** @type {string[]} */
  const complaints = [];
  page.on("pageerror", (error) => complaints.push(error.message));
  await page.goto(`${address}/?server=${encodeURIComponent(model.baseUrl)}&model=test`);
  const send = async (/** @type {string} */ text) => {
    await page.getByLabel("Message").fill(text);
    await page.getByRole("button", { name: "Send" }).click();
  };
  const question = page.getByRole("group", { name: "Approval" });
  const status = (/** @type {RegExp} */ words) => page.getByRole("status").filter({ hasText: words }).waitFor();

  await t.test("a tool asks, another one runs, and the answer streams", async () => {
    await send("Paint the page");
    await question.getByText('May it call paint with {"colour":"gold"}?').waitFor();
    assert.equal(await page.locator("body").getAttribute("style"), null, "not before it is allowed");
    await question.getByRole("button", { name: "Allow" }).click();
    await page.getByText("The page", { exact: true }).waitFor();
    assert.equal(await page.locator("body").getAttribute("style"), "background: gold");
    go();
    await page.getByText("The page is gold.").waitFor();
    await status(/^completed/);
    const [time, painted] = await page.locator(".tool").allTextContents();
    assert.match(String(time), /^local_time: \d+:\d+:\d+$/);
    assert.equal(painted, "paint: the page is gold now");
    assert.equal(await question.count(), 0);
  });

  await t.test("a refusal reaches the model", async () => {
    await send("And red");
    await question.getByRole("button", { name: "Refuse" }).click();
    await page.getByText("As you wish.").waitFor();
    assert.match(model.requests[3]?.body.messages.at(-1).content, /the user refused/);
    assert.equal(await page.locator("body").getAttribute("style"), "background: gold");
  });

  await t.test("Stop ends the run and its request", async () => {
    await send("Tell me a story");
    await page.getByText("Once upon", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Stop" }).click();
    await status(/stopped|aborted/);
    assert.equal(await model.requests[4]?.closed, "left");
  });

  await t.test("an error is shown, and the page goes on", async () => {
    await send("Hello?");
    await status(/no such key/);
    assert.equal(await page.getByRole("button", { name: "Send" }).isVisible(), true);
  });

  assert.deepEqual(complaints, []);
});
