// @ts-check
// The page by keyboard, by ear, on small screens, and with less motion.

import assert from "node:assert/strict";
import { accessible, by, card, check, checkPage, choose, drawn, full, idle, inspected, inWorker, noSidewaysScroll, send, shot, SLOW, TWO_PARTS, wholePlaceholder } from "./kit.mjs";

await checkPage("all of it works by keyboard, with the focus in sight", async (page) => {
  // What is redrawn while it plays takes the focus with it.
  await page.waitForSelector(`${by("play")}[data-state="over"]`);
  await page.focus(".skip");
  /** @type {string[]} */
  const reached = [];
  for (let presses = 0; presses < 80; presses += 1) {
    await page.keyboard.press("Tab");
    const focus = await page.evaluate(() => {
      let element = /** @type {HTMLElement} */ (document.activeElement);
      while (element.shadowRoot?.activeElement) element = /** @type {HTMLElement} */ (element.shadowRoot.activeElement);
      const style = getComputedStyle(element);
      const box = element.id === "box" ? getComputedStyle(/** @type {Element} */ (element.closest(".box"))) : style;
      return { id: element.id || element.dataset["testid"] || element.className || element.getAttribute("type") || element.tagName, visible: box.outlineStyle !== "none" && parseFloat(box.outlineWidth) > 0 };
    });
    if (focus.id === "BODY") break;
    assert.ok(focus.visible, `the focus on ${focus.id} cannot be seen`);
    reached.push(focus.id);
  }
  const wanted = ["choose-model", "log", "offer-small", "example", "box", "play", "lanes", "tab-conversation", "hold", "in-flight"];
  assert.deepEqual(wanted.filter((id) => reached.includes(id)), wanted, `reached: ${reached.join(", ")}`);
  assert.deepEqual([...wanted].sort((a, b) => reached.indexOf(a) - reached.indexOf(b)), wanted, "in the order of the page");

  await page.focus(by("choose-model"));
  await page.keyboard.press("Enter");
  await page.waitForSelector(by("model-dialog"));
  assert.ok(await page.evaluate(() => document.activeElement?.closest("dialog") !== null), "the focus goes into the dialog");
  await page.keyboard.press("Escape");
  await page.waitForSelector(by("model-dialog"), { state: "hidden" });
  assert.equal(await page.evaluate(() => document.activeElement?.id), "choose-model", "and comes back");

  await page.focus(by("box"));
  await page.keyboard.type("Count primes below 3000000");
  await page.keyboard.press("Enter");
  await page.waitForSelector(card("count_primes", "running"));
  await page.keyboard.type("Stop that. What is 2^10?");
  await page.keyboard.press("Enter");
  await page.waitForSelector(`${by("tool-card")}[data-tool="calculator"]`);
  await page.keyboard.type("And what time is it in Oslo?");
  await page.keyboard.press("Alt+Enter");
  await idle(page);
  assert.match(await page.innerText(by("messages")), /1024[\s\S]*Oslo it is/);
  await page.keyboard.press("ArrowUp");
  assert.equal(await page.inputValue(by("box")), "And what time is it in Oslo?", "the arrow brings the last message back");

  await page.focus(inspected(".lanes"));
  await page.keyboard.press("ArrowLeft");
  await drawn(page);
  const first = await page.innerText(inspected(".now"));
  await page.keyboard.press("ArrowLeft");
  await drawn(page);
  assert.notEqual(await page.innerText(inspected(".now")), first);
}, { hold: 4 });

await checkPage("a screen reader hears sentences, not tokens", async (page) => {
  await page.evaluate(() => {
    const announced = /** @type {string[]} */ ([]);
    Object.assign(globalThis, { announced });
    const live = /** @type {Element} */ (document.querySelector('[data-testid="live"]'));
    new MutationObserver(() => announced.push(live.textContent ?? "")).observe(live, { childList: true, characterData: true, subtree: true });
  });
  await send(page, TWO_PARTS);
  await idle(page);
  await page.waitForFunction(() => /** @type {any} */ (globalThis)["announced"].join(" ").includes("391"));
  await page.waitForFunction(() => /Oslo it is/.test(/** @type {any} */ (globalThis)["announced"].join(" ")));
  const announced = await page.evaluate(() => /** @type {any} */ (globalThis)["announced"]);
  assert.ok(announced.length < 10, `${announced.length} announcements`);
  assert.equal(await page.locator('[data-testid="messages"] [aria-live]').count(), 0, "the growing text itself is not live");
});

await checkPage("what is typed is shown as text and never as markup", async (page) => {
  await full(page);
  await send(page, 'call calculator {"expression":"<img src=x onerror=alert(1)>"}');
  await idle(page);
  assert.equal(await page.locator("#messages img").count(), 0);
  assert.ok((await page.innerText(by("messages"))).includes("<img src=x onerror=alert(1)>"));
});

await checkPage("the timeline is there in words too", async (page) => {
  await full(page);
  await send(page, TWO_PARTS);
  await idle(page);
  await page.click(inspected("#tab-table"));
  await drawn(page);
  const table = await page.innerText(inspected("table"));
  for (const word of ["calculator", "clock", "turn 0", "turn 1 ends", "thinking"]) assert.ok(table.includes(word), word);
});

for (const colorScheme of /** @type {("light" | "dark")[]} */ (inWorker ? ["dark"] : ["light", "dark"])) {
  await check(`${colorScheme}: nothing serious for axe, in any state`, async (page) => {
    const background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const brightness = Number(/\d+/.exec(background)?.[0]);
    assert.ok(colorScheme === "dark" ? brightness < 60 : brightness > 200, background);
    await accessible(page);
    await page.click(by("choose-model"));
    await page.check(by("row-openai"));
    await page.click(by("model-use"));
    await accessible(page);
    await shot(page, `dialog-${colorScheme}`);
    await page.keyboard.press("Escape");
    await send(page, "Count the primes below 3 million, and what is 1/0?");
    await page.waitForSelector(`${card("count_primes", "running")} progress:not([hidden])`);
    await page.fill(by("box"), "and in Lima?");
    await accessible(page);
    await send(page, "What time is it in Lima?");
    await full(page);
    await idle(page);
    await page.click(inspected("#tab-table"));
    await page.click(`${by("thinking")} summary`);
    await accessible(page);
    await page.click(inspected("[part=fork]"));
    await accessible(page);
    await page.fill(by("what-if-text"), "the time is not known");
    await page.click(by("what-if-go"));
    await page.waitForSelector(`${by("ending-other-part")}[data-state="over"]`);
    await drawn(page);
    await accessible(page);
    await shot(page, `endings-${colorScheme}`);
    await page.click(by("endings-close"));
    await shot(page, `steered-${colorScheme}`);
  }, { colorScheme, hold: 4 });

  await check(`360 px, ${colorScheme}: no sideways scrolling, everything in reach`, async (page) => {
    await noSidewaysScroll(page);
    await wholePlaceholder(page);
    await shot(page, `phone-welcome-${colorScheme}`);
    await page.tap(by("choose-model"));
    await page.check(by("row-openai"));
    await noSidewaysScroll(page);
    await page.tap(by("model-cancel"));
    await send(page, `${SLOW}, and convert 26.2 miles to km`);
    await page.waitForSelector(`${card("count_primes", "running")} progress:not([hidden])`);
    await wholePlaceholder(page);
    await page.fill(by("box"), "Stop that. What time is it in Lima?");
    await noSidewaysScroll(page);
    await shot(page, `phone-running-${colorScheme}`);
    for (const button of ["send", "follow-up", "stop"]) assert.ok(await page.locator(by(button)).isVisible(), button);
    await page.tap(by("send"));
    await full(page);
    await idle(page);
    await noSidewaysScroll(page);
    await accessible(page);
    await shot(page, `phone-done-${colorScheme}`);
  }, { viewport: { width: 360, height: 740 }, colorScheme, hasTouch: true, isMobile: true, hold: 4 });
}

await check("360 px: a model with a long name leaves every button in reach", async (page) => {
  await choose(page, { address: "http://127.0.0.1:9/v1", model: "qwen3-coder-480b-a35b-instruct" });
  await noSidewaysScroll(page);
  const [name, model, reset] = await Promise.all([".name", by("choose-model"), by("reset")].map(async (each) => /** @type {any} */ (await page.locator(each).boundingBox())));
  assert.ok(name.x + name.width <= model.x && model.x + model.width <= reset.x, JSON.stringify([name, model, reset]));
  await shot(page, "phone-model");
}, { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true });

await checkPage("with reduced motion nothing is animated and the picture still grows", async (page) => {
  await send(page, SLOW);
  await page.waitForSelector(card("count_primes", "running"));
  assert.equal(await page.evaluate(() => document.getAnimations().length), 0);
  const before = await page.innerText(by("elapsed"));
  await page.waitForFunction((text) => document.querySelector('[data-testid="elapsed"]')?.textContent !== text, before);
}, { reducedMotion: "reduce", hold: 4 });

for (const width of [1280, 360]) for (const colorScheme of /** @type {const} */ (["light", "dark"])) {
  await checkPage(`by keyboard alone, ${width} px, ${colorScheme}: the question is run, a tool is allowed, a model is chosen`, async (page) => {
    await page.focus(".skip");
    await page.keyboard.press("Enter");
    assert.equal(await page.evaluate(() => document.activeElement?.id), "box", "the first link leads to the box");
    await noSidewaysScroll(page);
    await shot(page, `opening-${width}-${colorScheme}`);
    await page.keyboard.press("Enter");
    await page.waitForSelector(card("clock", "done"));
    await idle(page);
    await page.keyboard.type("What is 6*7? And rename this page to Turning");
    await page.keyboard.press("Enter");
    await page.waitForSelector(by("question"));
    await page.waitForSelector(card("calculator", "done"));
    // From the box back to the question.
    for (let presses = 0; presses < 40 && (await page.evaluate(() => /** @type {HTMLElement} */ (document.activeElement)?.dataset["testid"])) !== "allow"; presses++) await page.keyboard.press("Shift+Tab");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.querySelectorAll('[data-testid="run-end"]').length === 2);
    assert.equal(await page.title(), "Turning");
    await noSidewaysScroll(page);
    await page.focus(by("choose-model"));
    await page.keyboard.press("Enter");
    await page.focus(by("row-rehearsal"));
    await page.keyboard.press("ArrowDown");
    assert.ok(await page.isChecked(by("row-ollama")));
    await noSidewaysScroll(page);
    await accessible(page);
    await shot(page, `keyboard-picker-${width}-${colorScheme}`);
    await page.keyboard.press("Enter");
    assert.match(String(await page.textContent(by("model-name"))), /Ollama/);
    assert.match(await page.innerText("#hint-who"), /go to localhost:11434/);
  }, { viewport: { width, height: 800 }, colorScheme });
}

await checkPage("Escape that ends a word of an input method stops no run", async (page) => {
  await send(page, SLOW);
  await page.waitForSelector('[data-testid="composer"][data-mode="running"]');
  await page.evaluate(() => document.activeElement?.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", isComposing: true, bubbles: true })));
  assert.doesNotMatch(await page.innerText(by("live")), /Stopped/);
  await drawn(page);
  assert.equal(await page.getAttribute(by("composer"), "data-mode"), "running");
  await page.keyboard.press("Escape");
  await idle(page);
});
