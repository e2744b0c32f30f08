// @ts-check
// One conversation in several tabs.

import assert from "node:assert/strict";
import { answer, by, card, checkPage, choose, CORS, drawn, full, idle, reload, secondTab, send, shot, SLOW, withServer } from "./kit.mjs";

await checkPage("a second tab shows the same run, may speak, and takes it over when the first is closed", async (page) => {
  const other = await secondTab(page);
  assert.match(await other.innerText(by("role")), /Another tab runs this conversation/);
  await send(page, SLOW);
  await other.waitForSelector(card("count_primes", "running"));
  assert.equal(await other.innerText(`${by("bubble-user")} .what`), SLOW);
  await shot(other, "second-tab");
  await send(other, "Also: what is 2^16?");
  await page.waitForSelector(`${by("tool-card")}[data-tool="calculator"]`);
  await page.close();
  // Less than a second.
  await other.waitForFunction(() => /this one took over in \d{1,3} ms/.test(document.querySelector('[data-testid="role"]')?.textContent ?? ""));
  await full(other);
  await idle(other);
  assert.match(await answer(other), /65,?536/);
  assert.equal(await other.locator(by("run")).count(), 1, "it stayed one run");
  await shot(other, "took-over");
  await send(other, "What is 2+2?");
  await other.waitForFunction(() => document.querySelectorAll('[data-testid="run-end"]').length === 2);
  await reload(other);
  assert.equal(await other.locator(by("run-end")).count(), 2, "what was shown is still there");
}, { hold: 4 });

await checkPage("a tab that comes late to a question shows it, at its own time, and has nothing in its box", async (page) => {
  await full(page);
  await send(page, "What is 6*7? And rename this page to Turning");
  await page.waitForSelector(card("rename_page", "asks"));
  await page.waitForFunction(() => parseFloat(document.querySelector('[data-testid="elapsed"]')?.textContent ?? "") > 2);
  const other = await secondTab(page);
  await other.setViewportSize({ width: 360, height: 740 });
  await other.waitForSelector(card("calculator", "done"));
  await drawn(other);
  assert.equal(await other.inputValue(by("box")), "", "Enter would steer with what stands there");
  const [button, log] = await Promise.all([other.locator(by("allow")).boundingBox(), other.locator(by("log")).boundingBox()]);
  assert.ok(button && log && button.y >= log.y && button.y + button.height <= log.y + log.height, `${JSON.stringify(button)} in ${JSON.stringify(log)}`);
  assert.doesNotMatch(await other.innerText(by("run")), /Thought for 0\.00|[1-9]\.\d+ s/);
  await shot(other, "late");
});

await checkPage("who chooses a model in a tab that follows gets the agent, and the key stays in that tab", async (page) => {
  await full(page);
  await send(page, "What is 17*23?");
  await idle(page);
  const other = await secondTab(page);
  await other.waitForSelector(by("run-end"));
  assert.match(await answer(other), /391/, "it shows what was said before it was opened");
  /** @type {any[]} */
  const asked = [];
  await withServer(async (request, response) => {
    if (request.method === "OPTIONS") return void response.writeHead(204, CORS).end();
    let body = "";
    for await (const piece of request) body += piece;
    asked.push([request.headers.authorization, JSON.parse(body).messages.map((/** @type {any} */ { role }) => role).join()]);
    response.writeHead(200, { ...CORS, "content-type": "text/event-stream" });
    response.end(`data: ${JSON.stringify({ id: "1", choices: [{ index: 0, delta: { content: "From the server." }, finish_reason: "stop" }] })}\n\ndata: [DONE]\n\n`);
  }, async (address) => {
    await choose(other, { address, key: "key-of-the-test" });
    await page.waitForFunction(() => document.documentElement.dataset["role"] === "follower");
    await send(other, "Hello");
    for (const tab of [other, page]) {
      await tab.waitForFunction(() => document.querySelectorAll('[data-testid="run-end"]').length === 2);
      assert.equal(await answer(tab), "From the server.");
    }
    assert.deepEqual(asked, [["Bearer key-of-the-test", "system,user,assistant,tool,assistant,user"]], "one history");
    const kept = await page.evaluate(() => JSON.stringify({ ...localStorage }));
    assert.ok(!kept.includes("key-of-the-test"));
  });
});

await checkPage("a question is answered in either tab; starting over starts over in both", async (page) => {
  const other = await secondTab(page);
  await send(page, "Rename this page");
  await page.waitForSelector(by("tool-question"));
  await other.waitForSelector(by("tool-question"));
  await other.fill(by("answer-title"), "Turning");
  await other.press(by("answer-title"), "Enter");
  await Promise.all([idle(page), idle(other)]);
  assert.equal(await page.title(), "Turning");
  assert.equal(await page.locator(by("tool-question")).count(), 0);
  await other.click(by("reset"));
  await page.waitForSelector(by("welcome"));
  await other.waitForSelector(by("welcome"));
  await send(page, "What is 2+2?");
  await idle(other);
  assert.match(await answer(other), /4/);
  assert.equal(await other.locator(by("run")).count(), 1);
});
