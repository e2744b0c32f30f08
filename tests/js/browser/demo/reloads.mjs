// @ts-check
// What is there after a reload, and where nothing is stored.

import assert from "node:assert/strict";
import { answer, baseUrl, by, check, checkPage, choose, CORS, full, idle, inWorker, ofInspector, reload, send, stored, TWO_PARTS, withServer } from "./kit.mjs";

await check("reloaded in mid-answer and while tools run, the run comes to its end", async (page) => {
  await send(page, TWO_PARTS);
  await page.waitForSelector(by("thinking"));
  await stored(page, inWorker ? TWO_PARTS : '"thinking"');
  await reload(page);
  // In a Worker it did not wait for the page.
  if (!inWorker) {
    await page.waitForFunction(() => document.querySelectorAll('[data-testid="tool-card"][data-state="running"]').length === 2);
    await stored(page, "run_resumed");
  }
  await reload(page);
  await idle(page);
  assert.equal(await page.locator(by("tool-card")).count(), 2);
  assert.equal(await page.locator(by("run-end")).count(), 1);
  assert.match(await answer(page), /391[\s\S]*Oslo[\s\S]*\d\d:\d\d/);
  if (!inWorker) assert.deepEqual((await page.innerText(by("messages"))).match(/The page was reloaded.*/g), ["The page was reloaded 2 times; the run goes on."]);
  assert.equal(await page.textContent(by("usage-turns")), "2");
  assert.deepEqual(await ofInspector(page, `[log.lanes.runs.length, log.frame(log.end).messages.map(({ role }) => role).join()]`), [1, "user,assistant,tool_result,tool_result,assistant"], "it is one run in the timeline too");
}, { hold: 4 });

await check("a key is not remembered with the run: it waits until somebody says who goes on", async (page) => {
  let requestCount = 0;
  await withServer((request, response) => {
    if (request.method === "OPTIONS") return void response.writeHead(204, CORS).end();
    const call = { index: 0, id: "c", function: { name: "rename_page", arguments: '{"title":"Secret"}' } };
    response.writeHead(200, { ...CORS, "content-type": "text/event-stream" });
    requestCount += 1;
    const choice = requestCount === 1 ? { delta: { tool_calls: [call] }, finish_reason: "tool_calls" } : { delta: { content: "Done." }, finish_reason: "stop" };
    response.end(`data: ${JSON.stringify({ id: "1", choices: [{ index: 0, ...choice }] })}\n\ndata: [DONE]\n\n`);
  }, async (address) => {
    await choose(page, { address, key: "key-of-the-test" });
    await send(page, "Go");
    await page.waitForSelector(by("question"));
    const kept = await stored(page, inWorker ? "Go" : "tool_approval_requested");
    await reload(page);
    if (!inWorker) assert.match(await page.innerText(by("failure")), /A run waits to go on[\s\S]*some-model[\s\S]*does not keep/);
    assert.ok(![kept, await stored(page, inWorker ? "Go" : "rename_page")].some((text) => text.includes("key-of-the-test")), "no key is stored");
    // The Worker still has the key.
    if (!inWorker) await page.click(by("go-on"));
    await page.click(by("allow"));
    await idle(page);
    assert.equal(await page.title(), "Secret");
    // Here the rehearsal model continues; the Worker still has its model.
    assert.equal(requestCount, inWorker ? 2 : 1);
  });
});

await checkPage("in a browser that stores nothing the conversation is this tab's, and the page says so", async (page) => {
  await page.addInitScript(() => {
    for (const name of ["indexedDB", "localStorage", "caches"]) Object.defineProperty(globalThis, name, { get() { throw new DOMException("denied", "SecurityError"); } });
  });
  await page.reload();
  await page.waitForSelector("html[data-ready]");
  assert.match(await page.innerText(by("role")), /stores nothing for this page: the conversation ends with this tab/);
  await full(page);
  for (const question of ["What is 17*23?", "What is 6*7? And rename this page to Turning"]) await send(page, question).then(() => (question.includes("rename") ? page.click(by("allow")) : idle(page)));
  await page.waitForFunction(() => document.querySelectorAll('[data-testid="run-end"]').length === 2);
  assert.match(await page.innerText(by("messages")), /391[\s\S]*42/);
  await page.click(by("reset"));
  await page.waitForSelector(by("welcome"));
  await send(page, "What is 2+2?");
  await idle(page);
  assert.match(await answer(page), /4/);
});

await checkPage("what another version of the page has left does not keep it from beginning", async (page) => {
  for (const change of ["who", "shown"]) {
    await send(page, "What is 2+2?");
    await idle(page);
    await stored(page, "agent_end");
    await page.evaluate((change) => new Promise((resolve) => {
      const opened = indexedDB.open("turnwheel-demo");
      opened.onsuccess = () => {
        const table = opened.result.transaction("checkpoints", "readwrite").objectStore("checkpoints");
        const found = table.getAll();
        found.onsuccess = () => {
          const all = found.result;
          all[0].shown.pop();
          if (change === "who") delete all[0].who;
          else all[0].shown.push({ at: 0, event: { type: "agent_end" } });
          table.put(all[0], "conversation").onsuccess = () => (opened.result.close(), resolve(undefined));
        };
      };
    }), change);
    await page.goto(/** @type {string} */ (baseUrl));
    await page.waitForSelector("html[data-ready]");
    assert.ok(await page.isVisible(by("welcome")));
  }
});
