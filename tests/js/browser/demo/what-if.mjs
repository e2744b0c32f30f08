// @ts-check
// Earlier moments of a run, and other endings of it.

import assert from "node:assert/strict";
import { answer, by, check, drawn, full, idle, inspected, ofInspector, reload, send, shot, stored, TWO_PARTS } from "./kit.mjs";

await check("the slider goes back to any moment: what was said by then, and the request as it was sent", async (page) => {
  await full(page);
  await send(page, TWO_PARTS);
  await idle(page);
  const slider = inspected("input[type=range]");
  await page.focus(slider);
  await page.keyboard.press("Home");
  await drawn(page);
  assert.match(await page.innerText(inspected(".now")), /^0 of /);
  const moments = await ofInspector(page, `Array.from({ length: log.end + 1 }, (_, n) => log.frame(n)).map(({ n, messages, request, phase, isRunning }) => ({ n, phase, isRunning, roles: messages.map(({ role }) => role).join(), request: request && request.messages.length }))`);
  const all = /** @type {any[]} */ (moments);
  assert.deepEqual([...new Set(all.map(({ roles }) => roles))], ["", "user", "user,assistant", "user,assistant,tool_result,tool_result", "user,assistant,tool_result,tool_result,assistant"].slice(all[0].roles === "" ? 0 : 1));
  assert.deepEqual([...new Set(all.map(({ request }) => request))], [undefined, 1, 4]);
  const running = all.find(({ phase }) => phase === "running tools");
  await page.evaluate((n) => void (/** @type {any} */ (document.querySelector("#inspector")).n = n), running.n);
  await drawn(page);
  assert.match(await page.innerText(inspected(".facts")), /running tools/);
  assert.match(await page.innerText(inspected("#panel-conversation")), /What is 17\*23[\s\S]*runs/);
  assert.doesNotMatch(await page.innerText(inspected("#panel-conversation")), /Here is what came back/);
  await page.click(inspected("#tab-request"));
  await drawn(page);
  assert.match(await page.innerText(inspected("#panel-request")), /You are the agent of a small demonstration[\s\S]*What is 17\*23/);
  await page.fill(inspected("input[type=search]"), "came back:");
  await page.waitForFunction(() => /[1-9]\d* found/.test(/** @type {any} */ (document.querySelector("#inspector")).shadowRoot.querySelector(".hits").textContent));
  await page.keyboard.press("Enter");
  await drawn(page);
  await page.click(inspected("#tab-conversation"));
  await drawn(page);
  assert.match(await page.innerText(inspected("#panel-conversation")), /Here is what came back:/);
  await shot(page, "back-light");
});

await check("what if a tool had said something else: the run goes on for real, and both endings stand side by side", async (page) => {
  await full(page);
  await send(page, "Convert 26.2 miles to km, then divide that by 4.5");
  await idle(page);
  const moment = await ofInspector(page, `Array.from({ length: log.end }, (_, n) => n + 1).find((n) => log.event(n).type === "tool_execution_end")`);
  await page.evaluate((n) => void (/** @type {any} */ (document.querySelector("#inspector")).n = n), moment);
  await page.click(inspected("[part=fork]"));
  assert.match(await page.inputValue(by("what-if-text")), /26\.2 mi/);
  assert.ok(await page.isDisabled(by("what-if-go")), "nothing is changed yet");
  await page.fill(by("what-if-text"), "26.2 mi = 100 km");
  await page.click(by("what-if-go"));
  await page.waitForSelector(`${by("ending-other-part")}[data-state="over"]`);
  await drawn(page);
  assert.match(await page.innerText(by("ending-was")), /42\.16[\s\S]*9\.36/);
  assert.match(await page.innerText(by("ending-other")), /100 km[\s\S]*22\.2/, "the tool after it really ran with the other number");
  assert.match(await page.innerText(by("ending-name")), /convert_units had said/);
  const other = /** @type {any} */ (await page.evaluate(() => {
    const { log } = /** @type {any} */ (document.querySelector("#ending-other-run"));
    return { runs: log.lanes.runs.length, turns: log.lanes.turns.map((/** @type {any} */ { index }) => index), roles: log.frame(log.end).messages.map((/** @type {any} */ { role }) => role).join() };
  }));
  assert.deepEqual(other, { runs: 1, turns: [0, 1, 2], roles: "user,assistant,tool_result,assistant,tool_result,assistant" });
  await shot(page, "endings-light");
  await page.keyboard.press("Escape");
  // What was asked of the conversation itself is not changed.
  assert.match(await answer(page), /9\.36/);
  await send(page, "What were the results so far?");
  await page.waitForFunction(() => document.querySelectorAll('[data-testid="run-end"]').length === 2);
  assert.doesNotMatch(await answer(page), /100 km/);
});

await check("what if another model had answered, also after the page was reloaded", async (page) => {
  await full(page);
  await send(page, TWO_PARTS);
  await idle(page);
  await stored(page, "agent_end");
  await reload(page);
  await drawn(page);
  await page.click(inspected("[part=fork]"));
  await page.check(by("what-if-other"));
  await page.selectOption(by("what-if-model"), { label: "Rehearsal, in few words" });
  await page.click(by("what-if-go"));
  await page.waitForSelector(`${by("ending-other-part")}[data-state="over"]`);
  await drawn(page);
  assert.match(await page.innerText(by("ending-was")), /391[\s\S]*In Oslo it is/);
  assert.doesNotMatch(await page.innerText(by("ending-other")), /In Oslo it is/);
  assert.match(await page.innerText(by("ending-other")), /391[\s\S]*\d\d:\d\d/);
  await page.click(by("endings-again"));
  assert.ok(await page.isVisible(by("what-if-go")));
});
