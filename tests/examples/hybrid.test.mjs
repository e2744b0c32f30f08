// @ts-check
// Local first, in Chromium: a double of the browser's own model, and our own model server as the other one.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";
import { serve, textAnswer } from "../js/server.mjs";
import { clean, install, site } from "./kit.mjs";

/** @type {import("playwright-core").Browser} */
let browser;
before(async () => void (browser = await chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"] })));
after(() => browser?.close());
after(clean);
const folder = await install("hybrid");

/** The double: `state` is what it says of itself; while it is `slow`, an answer never begins. Runs in the page. @param {string} state */
function double(state) {
  const tokens = (/** @type {any[]} */ messages) => messages.reduce((sum, { content }) => sum + Math.ceil(String(content).length / 4), 0);
  const local = { slow: false, asked: 0 };
  class Session {
    contextUsage = 0;
    contextWindow = 400;
    measureContextUsage = async (/** @type {any[]} */ messages) => tokens(messages);
    /** @param {unknown} _ @param {{ signal?: AbortSignal }} options */
    async *promptStreaming(_, { signal } = {}) {
      local.asked++;
      if (local.slow) await new Promise((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
      yield '{"say": "Here, ';
      yield 'on this device."}';
    }
    destroy() {}
  }
  Object.assign(globalThis, {
    local,
    LanguageModel: {
      availability: async () => state,
      create: async () => {
        if (state === "unavailable") throw Object.assign(new Error("the device is not eligible"), { name: "NotSupportedError" });
        return new Session();
      },
    },
  });
}

/** @param {any} t @param {{ state?: string, consents?: boolean, answers?: any[] }} options */
async function open(t, { state = "available", consents = true, answers = [] }) {
  const server = await serve(t, answers, { cors: true });
  const page = await browser.newPage();
  t.after(() => page.close());
  await page.clock.install();
  await page.addInitScript(double, state);
  await page.goto(`${await site(folder, t)}/`);
  await page.waitForFunction(() => document.getElementById("state")?.textContent !== "");
  await page.click("summary");
  await page.fill("#address", server.baseUrl);
  await page.fill("#model", "cloud-model");
  if (consents) await page.check("#cloud");
  return {
    page, server,
    async send(/** @type {string} */ words) {
      await page.fill("#text", words);
      await page.press("#text", "Enter");
    },
    said: (/** @type {string} */ kind) => page.locator(`#log .${kind}`).allTextContents(),
    idle: () => page.waitForFunction(() => document.querySelector("#stop")?.matches(":disabled")),
  };
}

test("what this device can answer goes nowhere", { timeout: 60_000 }, async (t) => {
  const { page, server, send, said, idle } = await open(t, {});
  assert.match((await page.textContent("#state")) ?? "", /This device answers/);
  await send("Hello");
  await idle();
  assert.deepEqual([await said("assistant"), await said("who"), server.requests.length], [["Here, on this device."], ["by this device"], 0]);
});

test("too slow and too long: another goes on in the same history, and the next message begins here again", { timeout: 60_000 }, async (t) => {
  const { page, server, send, said, idle } = await open(t, { answers: [textAnswer("From afar."), textAnswer("From afar again.")] });
  await send("Hello");
  await idle();
  await page.evaluate(() => void (/** @type {any} */ (globalThis).local.slow = true));
  await send("Are you there?");
  await page.waitForFunction(() => /** @type {any} */ (globalThis).local.asked === 2);
  await page.clock.fastForward(7000);
  assert.equal(server.requests.length, 0, "it was given its time");
  await page.clock.fastForward(1100);
  await idle();
  assert.deepEqual([await said("note"), (await said("who")).at(-1)], [["this device cannot answer; cloud-model does."], "by cloud-model"]);
  await page.evaluate(() => void (/** @type {any} */ (globalThis).local.slow = false));
  await send("And now?");
  await idle();
  await send(`Read this: ${"word ".repeat(600)}`);
  await idle();
  assert.deepEqual(await said("who"), ["by this device", "by cloud-model", "by this device", "by cloud-model"]);
  const last = server.requests[1]?.body.messages.map((/** @type {any} */ { role }) => role);
  assert.deepEqual(last, ["system", "user", "assistant", "user", "assistant", "user", "assistant", "user"], "one history");
});

test("a browser without a model: the other answers; without consent nobody does, and the page says why", { timeout: 60_000 }, async (t) => {
  const with_ = await open(t, { state: "unavailable", answers: [textAnswer("From afar.")] });
  await with_.send("Hello");
  await with_.idle();
  assert.deepEqual([await with_.said("assistant"), await with_.said("who")], [["From afar."], ["by cloud-model"]]);
  const without = await open(t, { state: "unavailable", consents: false });
  await without.send("Hello");
  await without.idle();
  assert.deepEqual([without.server.requests.length, (await without.said("assistant")).length], [0, 0]);
  assert.match((await without.said("note"))[0] ?? "", /not eligible|no `LanguageModel`/);
});
