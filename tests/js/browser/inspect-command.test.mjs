// @ts-check
// The page of `npx turnwheel inspect FILE` in Chromium: it shows the tape under its policy, and asks nobody else.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";
import { record } from "../../../pkg/tape.js";
import { emptyFolder, start } from "../cli/kit.mjs";
import { Agent, call, scripted, testTool } from "../kit.mjs";

/** @type {import("playwright-core").Browser} */
let browser;
before(async () => void (browser = await chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"] })));
after(() => browser?.close());

test("the inspector shows the tape, complains about nothing, and every request goes to the command", { timeout: 90_000 }, async (t) => {
  const folder = emptyFolder();
  const agent = new Agent({ model: scripted([{ text: "I look.", ...call("look") }, "It is a heron."]), tools: [testTool("look", () => "a bird")] });
  const recorder = await record(agent);
  await agent.prompt("Which bird is it?");
  recorder.stop();
  writeFileSync(join(folder, "bird.tape"), recorder.toText());
  const command = start(t, ["inspect", "bird.tape"], { cwd: folder });
  const [, url = ""] = /^ {2}(http:\S+)$/m.exec(await command.until(/Ctrl-C ends it\.\n/)) ?? [];
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  /** @type {string[]} */
  const [complaints, elsewhere] = [[], []];
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("console", (message) => {
    // A browser asks for an icon by itself.
    if (["error", "warning"].includes(message.type()) && !message.location().url.endsWith("/favicon.ico")) complaints.push(message.text());
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(url) && !/^(data|blob):/.test(request.url()) && !request.url().endsWith("/favicon.ico")) elsewhere.push(request.url());
  });
  await page.goto(url);
  await page.waitForSelector("html[data-ready]", { state: "attached" });
  const shown = await page.evaluate(() => {
    const inspector = /** @type {any} */ (document.querySelector("turnwheel-inspector"));
    return { end: inspector.end, text: inspector.shadowRoot?.textContent ?? inspector.textContent };
  });
  assert.equal(shown.end, recorder.toTape().events);
  assert.match(shown.text, /Which bird is it\?[^]*It is a heron\./);
  if (process.env["SHOTS"]) await page.screenshot({ path: join(process.env["SHOTS"], "inspect-command.png") });
  assert.deepEqual([complaints, elsewhere], [[], []]);
  await page.close();
});
