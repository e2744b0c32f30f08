// @ts-check
// The real useChat of @ai-sdk/react, in Chromium, against runs of ours behind one route.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { Readable } from "node:stream";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { chromium } from "playwright-core";
import { fromUIMessages } from "../../../pkg/server.js";
import { Agent, deferred, scripted, testTool } from "../kit.mjs";

const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const { outputFiles } = await build({
  entryPoints: [fileURLToPath(new URL("usechat/page.mjs", import.meta.url))], bundle: true, write: false, format: "esm", logLevel: "silent",
  define: { "process.env.NODE_ENV": '"production"' },
});
const HTML = '<!doctype html><title>useChat</title><div id="root"></div><script type="module" src="/page.js"></script>';

/**
 * The agent of the current test, its newest run, and how many requests it got.
 * @type {{ agent: Agent, run: any, asked: number }}
 */
let now;
const begin = (/** @type {any} */ options) => void (now = { agent: new Agent(options), run: undefined, requestCount: 0 });

/** What a route of an app would do. @param {Request} request @param {AbortSignal} left */
async function chat(request, left) {
  const { prompt, decisions } = fromUIMessages((await request.json()).messages);
  now.requestCount += 1;
  if (prompt) now.run = now.agent.prompt(prompt, { signal: left });
  else now.agent.resolveTools(decisions);
  return now.run.toUIMessageStreamResponse();
}

const site = createServer(async (request, response) => {
  if (request.url === "/") return void response.setHeader("content-type", "text/html").end(HTML);
  if (request.url === "/page.js") return void response.setHeader("content-type", "text/javascript").end(outputFiles[0]?.text);
  if (request.url !== "/api/chat") return void response.writeHead(404).end();
  const left = new AbortController();
  const answer = await chat(new Request("http://site.example/", /** @type {any} */ ({ method: "POST", body: Readable.toWeb(request), duplex: "half" })), left.signal);
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  response.flushHeaders();
  const body = Readable.fromWeb(/** @type {any} */ (answer.body));
  response.on("close", () => { if (!response.writableFinished) left.abort("the page left"); body.destroy(); });
  body.on("error", () => {});
  body.pipe(response);
});
await new Promise((resolve) => site.listen(0, "127.0.0.1", () => resolve(undefined)));
const browser = await chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: FLAGS });
after(async () => {
  await browser.close();
  site.closeAllConnections();
  site.close();
});

/** Opens a fresh page and sends a text. @param {string} text */
async function page(text) {
  const page = await browser.newPage();
  /** @type {string[]} */
  const errors = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  await page.goto(`http://127.0.0.1:${/** @type {any} */ (site.address()).port}/`);
  await page.fill("input", text);
  await page.click("#send");
  const texts = (/** @type {string} */ selector) => page.locator(selector).allTextContents();
  return { page, errors, texts, status: (/** @type {string} */ status) => page.waitForSelector(`main[data-status=${status}]`, { timeout: 60_000 }) };
}

const pay = () => testTool("pay", (/** @type {any} */ { n }) => ({ paid: n }), { requiresApproval: true, parameters: { type: "object", properties: { n: { type: "number" } } } });

test("words, thoughts and a tool stream into the page", async () => {
  const gate = deferred();
  begin({ model: scripted([{ thinking: "hm", text: ["one ", "two"], toolCalls: [{ toolName: "look", arguments: { at: "north" } }] }, "done"]), tools: [testTool("look", async (/** @type {any} */ _, /** @type {any} */ { update }) => (update({ half: 1 }), await gate.promise, { seen: 1 }))] });
  const { page: at, errors, texts, status } = await page("Go");
  await at.waitForSelector(".tool[data-state=output-available]");
  assert.deepEqual(await texts(".tool"), ['tool-look {"at":"north"} {"half":1}'], "progress shows");
  assert.equal(await at.getAttribute("main", "data-status"), "streaming");
  gate.resolve();
  await status("ready");
  assert.deepEqual(await texts(".assistant .text"), ["one two", "done"]);
  assert.deepEqual(await texts(".reasoning"), ["hm"]);
  assert.deepEqual(await texts(".tool"), ['tool-look {"at":"north"} {"seen":1}']);
  assert.equal(JSON.parse((await at.getAttribute(".assistant", "data-metadata")) ?? "").stopReason, "completed");
  assert.deepEqual(errors, []);
  await at.close();
});

for (const button of ["approve", "deny"]) {
  test(`a person is asked, and says ${button}`, async () => {
    begin({ model: scripted([{ text: "May I?", toolCalls: [{ toolName: "pay", arguments: { n: 5 } }] }, "Thanks.", "Again."]), tools: [pay()] });
    const { page: at, errors, texts, status } = await page("Pay");
    await at.waitForSelector(".tool[data-state=approval-requested]");
    await status("ready");
    assert.ok(now.agent.isRunning);
    await at.click(`.${button}`);
    await at.waitForSelector(`.tool[data-state=${button === "approve" ? "output-available" : "output-denied"}]`);
    await at.waitForSelector(".text >> text=Thanks.");
    await status("ready");
    assert.equal(now.requestCount, 2);
    assert.deepEqual(await texts(".assistant .text"), ["May I?", "Thanks."]);
    assert.equal(await at.locator("section").count(), 2, "one question, one answer");
    if (button === "approve") assert.deepEqual(await texts(".tool"), ['tool-pay {"n":5} {"paid":5}']);
    await at.fill("input", "And now?");
    await at.click("#send");
    await at.waitForSelector(".text >> text=Again.");
    await status("ready");
    assert.deepEqual(errors, []);
    await at.close();
  });
}

test("an error is shown, and a stop reaches the run", async () => {
  begin({ model: scripted([{ text: "half", error: { code: "auth", message: "who are you?" } }]) });
  const first = await page("Go");
  await first.status("error");
  assert.deepEqual(await first.texts("[role=alert]"), ["who are you?"]);
  await first.page.close();
  begin({ model: scripted([{ text: "wait", toolCalls: [{ toolName: "wait" }] }]), tools: [testTool("wait", () => new Promise(() => {}))] });
  const second = await page("Go");
  await second.page.waitForSelector(".tool");
  await second.page.click("#stop");
  await second.status("ready");
  assert.equal((await now.run).stopReason, "aborted");
  assert.deepEqual(await second.texts(".assistant .text"), ["wait"]);
  await second.page.close();
});
