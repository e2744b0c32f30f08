// @ts-check
// The loop in a Worker, and from one place to the other.

import assert from "node:assert/strict";
import { answer, baseUrl, by, check, forgive, full, idle, inWorker, reload, send, SLOW, stored, TWO_PARTS } from "./kit.mjs";

/** @typedef {import("playwright-core").Page} Page */

if (inWorker) await check("a conversation goes on at the other place, there and back", async (page) => {
  await full(page);
  await page.check(by("place-page"));
  for (const [question, result] of [["What is 17*23?", /391/], ["Multiply that by 2", /782/], ["Multiply that by 2", /1,?564/], ["Multiply that by 2", /3,?128/]]) {
    const runs = await page.locator(by("run-end")).count();
    await send(page, String(question));
    await page.waitForFunction((runs) => document.querySelectorAll('[data-testid="run-end"]').length === runs + 1, runs);
    assert.match(await answer(page), /** @type {RegExp} */ (result));
    await page.check(by((await page.isChecked(by("place-page"))) ? "place-worker" : "place-page"));
  }
});

/**
 * Asks, and leaves in the middle of the run in the Worker. Returns the address of the conversation.
 * @param {Page} page @param {string} words
 */
async function goAway(page, words) {
  const promptRequest = page.waitForRequest((request) => request.url().endsWith("/prompt"));
  await send(page, words);
  const address = (await promptRequest).url().replace(/prompt$/, "");
  await page.waitForSelector(by("thinking"));
  await stored(page, words);
  await page.goto("about:blank");
  return address;
}

if (inWorker) await check("a run that ended while the page was away is shown as it ended", async (page) => {
  const address = await goAway(page, TWO_PARTS);
  const headers = { origin: new URL(/** @type {string} */ (baseUrl)).origin };
  while ((await (await fetch(`${address}state`, { headers })).json()).isRunning);
  await page.goto(/** @type {string} */ (baseUrl));
  await idle(page);
  assert.equal(await page.locator(`${by("tool-card")}[data-state="done"]`).count(), 2);
  assert.match(await answer(page), /391[\s\S]*Oslo[\s\S]*\d\d:\d\d/);
  assert.ok(await page.isChecked(by("place-worker")));
  await full(page);
  await send(page, "What were the results so far?");
  await page.waitForFunction(() => document.querySelectorAll('[data-testid="run-end"]').length === 2);
  assert.match(await answer(page), /calculator[\s\S]*391/);
});

if (inWorker) await check("a Worker that was started anew is named, and the next message goes on from what was said", async (page, complaints) => {
  await full(page);
  await send(page, "What is 17*23?");
  await idle(page);
  // A run that is over before the page goes away would not be lost: this one takes half a minute.
  await page.check(by("hold"));
  const address = await goAway(page, `${SLOW}, and what is 17*23?`);
  await page.route(`${address}**`, (route) => route.fulfill({ status: 404, headers: { "access-control-allow-origin": "*" }, contentType: "application/json", body: '{"error":{"code":"invalid_request","message":"gone"}}' }));
  await page.goto(/** @type {string} */ (baseUrl));
  await page.waitForSelector("html[data-ready]");
  assert.match(await page.innerText(by("failure")), /The Worker was started anew/);
  await full(page);
  await send(page, "Multiply that by 2");
  await page.waitForFunction(() => document.querySelectorAll('[data-testid="run-end"]').length === 3);
  assert.match(await answer(page), /782/);
  forgive(complaints);
}, { hold: 4 });

if (!inWorker) await check("without a Worker it cannot be chosen", async (page) => {
  await page.route("**/site.json", (route) => route.fulfill({ json: { worker: null } }));
  await reload(page);
  assert.ok(await page.isDisabled(by("place-worker")));
  await send(page, "What is 2+2?");
  await idle(page);
});
