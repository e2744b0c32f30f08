// @ts-check
// Questions that a run asks: tools that want a person, a budget.

import assert from "node:assert/strict";
import { accessible, answer, by, card, check, drawn, full, idle, inWorker, noSidewaysScroll, reload, send, shot, stored, TWO_PARTS } from "./kit.mjs";

await check("a budget that is used up asks, and may be raised", async (page) => {
  await full(page);
  await page.selectOption(by("budget"), "ask");
  await send(page, TWO_PARTS);
  await page.waitForSelector(by("budget-question"));
  assert.match(await page.innerText(by("budget-question")), /used up: 1 of 1 turn/);
  await accessible(page);
  await shot(page, "budget");
  await page.click(by("raise"));
  await idle(page);
  assert.match(await answer(page), /391/);
  assert.match(await page.innerText(by("budget-note")), /of 3 turns/);
  await page.selectOption(by("budget"), "wrap_up");
  await send(page, "Convert 26.2 miles to km, then divide that by 4.5, and then multiply that by 3");
  await page.waitForFunction(() => document.querySelectorAll('[data-testid="run-end"]').length === 2);
  assert.match(await page.innerText(`${by("run-end")} >> nth=1`), /budget/);
});

const ASKING = "What is 6*7? And rename this page to Spinning";

for (const [name, options] of /** @type {const} */ ([["", {}], [", 360 px, dark", { viewport: { width: 360, height: 740 }, colorScheme: "dark" }]])) {
  await check(`a tool asks; the page is reloaded while it waits; the question is still there, and the run goes on${name}`, async (page) => {
    await send(page, ASKING);
    await page.waitForSelector(by("question"));
    await page.waitForSelector(card("calculator", "done"));
    await accessible(page);
    await noSidewaysScroll(page);
    await shot(page, `asks${name && "-phone"}`);
    await stored(page, inWorker ? ASKING : "tool_execution_end");
    for (let times = 0; times < 2; times += 1) {
      const before = await page.innerText(by("bubble-user"));
      await reload(page);
      await page.waitForSelector(by("question"));
      await drawn(page);
      assert.equal(await page.innerText(by("bubble-user")), before);
      assert.equal(await page.locator(by("turn")).count(), 1);
      assert.match(await page.innerText(card("calculator", "done")), /42/);
    }
    await accessible(page);
    await noSidewaysScroll(page);
    await shot(page, `asks-again${name && "-phone"}`);
    // Other arguments than the model's: first what is none, by keyboard.
    await page.focus(by("change"));
    await page.keyboard.press("Enter");
    for (const [wrong, flaw] of [["{", /no JSON/], ["[]", /an object/]]) {
      await page.fill(by("changed-arguments"), String(wrong));
      await page.click(by("allow"));
      assert.match(await page.innerText(by("changed-flaw")), /** @type {RegExp} */ (flaw));
    }
    await accessible(page);
    await noSidewaysScroll(page);
    await shot(page, `asks-change${name && "-phone"}`);
    await page.fill(by("changed-arguments"), '{ "title": "Turning" }');
    await page.focus(by("allow"));
    await page.keyboard.press("Enter");
    await idle(page);
    assert.equal(await page.title(), "Turning");
    assert.match(await page.innerText(card("rename_page", "done")), /called “Turning” now/);
    assert.match(await answer(page), /42[\s\S]*Turning/);
    assert.equal(await page.locator(by("run")).count(), 1, "it is one run");
    await shot(page, `asked-done${name && "-phone"}`);

    // A finished conversation is still shown and can be continued; starting over deletes it.
    await stored(page, "agent_end");
    await reload(page);
    assert.match(await answer(page), /42[\s\S]*Turning/);
    assert.equal(await page.locator(by("run-end")).count(), 1);
    await full(page);
    await send(page, "What were the results so far?");
    await page.waitForFunction(() => document.querySelectorAll('[data-testid="run-end"]').length === 2);
    assert.match(await answer(page), /calculator[\s\S]*42/);
    await page.click(by("reset"));
    await page.waitForSelector(by("welcome"));
    await reload(page);
    assert.equal(await page.locator(by("run")).count(), 0);
    assert.ok(await page.isVisible(by("welcome")));
  }, options);
}

await check("refused, the tool does not run, and the model hears of it", async (page) => {
  await full(page);
  await send(page, "Rename this page to Turning");
  await page.click(by("refuse"));
  await idle(page);
  assert.match(await page.title(), /watch an agent turn/);
  assert.match(await page.innerText(card("rename_page", "failed")), /refused/);
  assert.match(await answer(page), /did not work/);
});
