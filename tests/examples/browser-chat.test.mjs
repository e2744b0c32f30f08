// @ts-check
// The chat in a page, in Chromium, with our own model server: it streams, calls its tool, is stopped and
// steered, and shows errors.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";
import { deferred } from "../js/kit.mjs";
import { calls, serve, textAnswer } from "../js/server.mjs";
import { clean, install, site } from "./kit.mjs";

/** @type {import("playwright-core").Browser} */
let browser;
before(async () => void (browser = await chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"] })));
after(() => browser?.close());
after(clean);
const folder = await install("browser-chat");

/** The page, with its model at this server. @param {any} t @param {any} answers */
async function open(t, answers) {
  const server = await serve(t, answers, { cors: true });
  const page = await browser.newPage();
  t.after(() => page.close());
  /** @type {string[]} */
  const complaints = [];
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("console", (message) => void (message.type() === "error" && !/favicon|503/.test(message.text() + message.location().url) && complaints.push(message.text())));
  await page.goto(`${await site(folder, t)}/`);
  await page.click("summary");
  await page.fill("#server", server.baseUrl);
  await page.fill("#key", "sk-of-the-user");
  return {
    page, server, complaints,
    async send(/** @type {string} */ words) {
      await page.fill("#text", words);
      await page.press("#text", "Enter");
    },
    said: (/** @type {string} */ kind) => page.locator(`#log .${kind}`).allTextContents(),
    idle: () => page.waitForFunction(() => document.querySelector("#stop")?.matches(":disabled")),
  };
}

test("it streams, with a tool in between, and remembers", { timeout: 60_000 }, async (t) => {
  const { page, server, complaints, send, said, idle } = await open(t, [calls(["clock", '{"zone":"Europe/Oslo"}']), textAnswer(["<b>It is ", "noon.</b>"]), textAnswer("You are welcome.")]);
  await send("What time is it in Oslo?");
  await idle();
  assert.deepEqual(await said("assistant"), ["<b>It is noon.</b>"]);
  assert.match((await said("note"))[0] ?? "", /^clock: .*\d\d:\d\d/);
  await send("Thanks.");
  await idle();
  assert.deepEqual((await said("assistant"))[1], "You are welcome.");
  assert.deepEqual(server.requests[2]?.body.messages.map((/** @type {any} */ message) => message.role), ["system", "user", "assistant", "tool", "assistant", "user"]);
  assert.equal(server.requests[0]?.headers.authorization, "Bearer sk-of-the-user");
  assert.equal(await page.locator("#log b").count(), 0);
  assert.deepEqual(complaints, []);
});

test("a piece stands in the page before the next one is written, and Stop hangs up", { timeout: 60_000 }, async (t) => {
  const story = textAnswer(["On and ", "on"]);
  const { page, server, said, send, idle, complaints } = await open(t, [{ body: story, silent: story.indexOf("\n\n") + 2 }, textAnswer("Stopped.")]);
  await send("Tell me a story.");
  await page.waitForFunction(() => document.querySelector("#log .assistant")?.textContent === "On and ");
  await page.click("#stop");
  await idle();
  assert.equal(await server.requests[0]?.closed, "left");
  assert.deepEqual([await said("assistant"), (await said("note")).length], [["On and "], 1]);
  await send("Why?");
  await idle();
  assert.deepEqual((await said("assistant"))[1], "Stopped.");
  assert.deepEqual(complaints, []);
});

test("what is sent while it works is read next; an error is told", { timeout: 60_000 }, async (t) => {
  const typed = deferred();
  const { page, server, said, send, idle } = await open(t, [{ stream: () => typed.promise.then(() => textAnswer("Monday: hills.")) }, textAnswer("Lundi : collines."), { status: 401, body: '{"error":{"message":"no such key"}}' }]);
  await send("Plan my week.");
  await page.waitForFunction(() => document.querySelector("#stop")?.matches(":enabled"));
  await send("In French.");
  typed.resolve();
  await idle();
  assert.deepEqual([await said("assistant"), server.requests.length], [["Monday: hills.", "Lundi : collines."], 2]);
  await send("More.");
  await idle();
  assert.deepEqual(await said("note"), ["no such key"]);
});
