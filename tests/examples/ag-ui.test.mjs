// @ts-check
// The agent behind AG-UI with its page, in Chromium, with our own model server: questions of a sub-agent, yes and no, and stop.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { build } from "esbuild";
import { chromium } from "playwright-core";
import { calls, serve, textAnswer } from "../js/server.mjs";
import { clean, install, ROOT } from "./kit.mjs";

/** @type {import("playwright-core").Browser} */
let browser;
before(async () => void (browser = await chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"] })));
after(() => browser?.close());
after(clean);
const folder = await install("ag-ui");
await build({ entryPoints: [join(folder, "page.js")], bundle: true, format: "esm", outfile: join(folder, "page.bundle.js"), nodePaths: [join(ROOT, "node_modules")], logLevel: "error" });

/** @param {any} t @param {any} answers of the model */
async function open(t, answers) {
  const models = await serve(t, answers);
  const server = spawn(process.execPath, ["server.js"], { cwd: folder, env: { PATH: process.env.PATH, PORT: "0", BASE_URL: models.baseUrl }, stdio: ["ignore", "pipe", "inherit"] });
  t.after(() => void server.kill());
  const address = await new Promise((resolve) => server.stdout.once("data", (text) => resolve(String(text).trim())));
  const page = await browser.newPage();
  t.after(() => page.close());
  /** @type {string[]} */
  const complaints = [];
  page.on("pageerror", (error) => complaints.push(error.message));
  await page.goto(`${address.replace("localhost", "127.0.0.1")}/`);
  return {
    page, complaints, address, models,
    async send(/** @type {string} */ words) {
      await page.fill("#text", words);
      await page.click("#send");
    },
    said: (/** @type {string} */ kind) => page.locator(`#log .${kind}`).allTextContents(),
  };
}

const letter = (/** @type {string} */ to) => /** @type {[string, string]} */ (["send_letter", JSON.stringify({ to, text: "I am late." })]);

test("two questions of the clerk, one yes and one no, and the conversation goes on", { timeout: 60_000 }, async (t) => {
  const { page, complaints, send, said, models } = await open(t, [
    calls(["clerk", '{"prompt":"Write to Ann and Bob"}']), calls(letter("Ann"), letter("Bob")), textAnswer("Ann knows."), textAnswer("Only Ann was told."), textAnswer("You are welcome."),
  ]);
  await send("Tell Ann and Bob that I am late.");
  await page.locator(".question").nth(1).waitFor();
  await page.locator(".question").nth(0).getByText("Yes").click();
  await page.locator(".question").nth(0).getByText("No").click();
  await page.getByText("Only Ann was told.").waitFor();
  const results = (await said("tool")).filter((text) => /Ann|Bob|reject/.test(text));
  assert.ok(results.some((text) => /The letter to Ann is on its way/.test(text)), results.join("\n"));
  assert.ok(results.some((text) => /rejected/.test(text)), results.join("\n"));
  await send("Thanks.");
  await page.getByText("You are welcome.").waitFor();
  assert.equal(models.requests.length, 5);
  assert.deepEqual(complaints, []);
});

test("stop stops the run, and an error is told", { timeout: 60_000 }, async (t) => {
  const { page, complaints, send, said, models } = await open(t, (/** @type {any} */ _, /** @type {number} */ n) => (n === 0 ? { body: textAnswer("Once upon a time").slice(0, 60), silent: 60 } : { status: 401, body: '{"error":{"message":"the key has expired"}}' }));
  await send("Tell me a story");
  await page.waitForFunction(() => !document.querySelector("#stop")?.matches(":disabled"));
  await page.click("#stop");
  await page.waitForFunction(() => document.querySelector("#stop")?.matches(":disabled"));
  await send("Again");
  await page.getByText("the key has expired").waitFor();
  assert.equal(models.requests.length, 2);
  assert.deepEqual(await said("user"), ["Tell me a story", "Again"]);
  assert.deepEqual(complaints, []);
});

test("what is no request of an AG-UI client is refused", { timeout: 60_000 }, async (t) => {
  const { address } = await open(t, []);
  const post = (/** @type {any} */ body, type = "application/json") => fetch(address.replace("localhost", "127.0.0.1"), { method: "POST", body, headers: { "content-type": type } });
  assert.equal((await post("{}")).status, 400);
  assert.equal((await post("no json")).status, 400);
  assert.equal((await post('{"threadId":"t","runId":"r","messages":[]}')).status, 400);
  assert.equal((await post("{}", "text/plain")).status, 415);
  assert.equal((await fetch(`${address.replace("localhost", "127.0.0.1")}/etc/passwd`)).status, 404);
});
