// @ts-check
// How the page opens, and what stands in its box.

import assert from "node:assert/strict";
import { answer, by, check, checkPage, drawn, forgive, full, idle, inspected, ofInspector, shot } from "./kit.mjs";

await check("the page opens without a complaint, with the rehearsal chosen and labelled as what it is", async (page) => {
  assert.equal(await page.textContent(by("model-name")), "Rehearsal");
  assert.match(String(await page.textContent(by("rehearsal-note"))), /rule-based stand-in, not a language model/);
  assert.match(String(await page.textContent(by("hint"))), /not a language model/);
  await shot(page, "welcome-light");
});

for (const reducedMotion of /** @type {const} */ (["no-preference", "reduce"])) {
  await checkPage(`the page opens on a recorded run, ${reducedMotion === "reduce" ? "as it ended, for whoever wants less motion" : "which plays"}; Enter runs its question live`, async (page) => {
    const ends = () => ofInspector(page, "log.end");
    if (reducedMotion === "reduce") assert.equal(await page.getAttribute(by("play"), "data-state"), "over");
    else {
      const [before] = [await ends()];
      await page.waitForFunction((before) => /** @type {any} */ (document.querySelector("#inspector")).log.end > before, before);
    }
    await page.waitForSelector(`${by("play")}[data-state="over"]`);
    assert.match(String(await page.getAttribute(inspected(".lanes"), "aria-label")), /calculator 1, clock 1, convert_units 1/);
    assert.equal(await page.textContent(by("timeline-title")), "A recorded run");
    await page.focus(inspected("input[type=range]"));
    await page.keyboard.press("Home");
    await drawn(page);
    assert.match(await page.innerText(inspected(".now")), /^0 of /);
    await page.focus(by("box"));
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.querySelectorAll('[data-testid="tool-card"][data-state="running"]').length === 3);
    assert.equal(await page.textContent(by("timeline-title")), "Timeline");
    assert.equal(await page.inputValue(by("box")), "");
    await full(page);
    await idle(page);
    assert.match(await answer(page), /391[\s\S]*Oslo[\s\S]*42\.16/);
  }, { reducedMotion, hold: 3 });
}

await checkPage("what is typed first replaces the question in the box", async (page) => {
  await page.focus(by("box"));
  await page.keyboard.type("2+2");
  assert.equal(await page.inputValue(by("box")), "2+2");
  await page.keyboard.press("Enter");
  await idle(page);
  await page.click(by("reset"));
  await page.waitForSelector(by("welcome"));
  assert.match(await page.inputValue(by("box")), /^What is 17/);
  await page.focus(by("box"));
  await page.keyboard.press("End");
  await page.keyboard.type("!");
  assert.match(await page.inputValue(by("box")), /^What is 17.*km!$/, "whoever moves in it changes it");
});

await checkPage("without its package the page says what to do", async (page, complaints) => {
  await page.route("**/pkg/**", (route) => route.abort());
  await page.reload();
  await page.waitForSelector('[role="alert"]');
  assert.match(await page.innerText('[role="alert"]'), /could not be loaded[\s\S]*cargo xtask demo/);
  forgive(complaints);
});
