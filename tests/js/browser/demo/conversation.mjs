// @ts-check
// A conversation: answers in pieces, tools, steering, follow-ups, stopping.

import assert from "node:assert/strict";
import { answer, by, card, check, drawn, full, idle, inspected, inWorker, marks, ofInspector, send, shot, SLOW, TWO_PARTS } from "./kit.mjs";

await check("the question of two parts shows two tools side by side and an answer with both results", async (page) => {
  await send(page, TWO_PARTS);
  await page.waitForFunction(() => document.querySelectorAll('[data-testid="tool-card"][data-state="running"]').length === 2);
  await shot(page, "running-light");
  await full(page);
  await idle(page);
  assert.match(await page.innerText(card("calculator", "done")), /17\*23[\s\S]*391/);
  assert.match(await page.innerText(card("clock", "done")), /Oslo[\s\S]*\d\d:\d\d/);
  assert.match(await answer(page), /391[\s\S]*Oslo[\s\S]*\d\d:\d\d/);
  assert.match(String(await page.getAttribute(inspected(".lanes"), "aria-label")), /2 turns\. model \d+, calculator 1, clock 1/);
  assert.ok(await ofInspector(page, 'log.lanes.byKey.get("tool\\ncalculator").rows[0][0].end > log.lanes.byKey.get("tool\\nclock").rows[0][0].start'), "both ran at the same time");
  assert.equal(await page.locator(by("turn")).count(), 2);
  assert.ok(Number(String(await page.textContent(by("usage-input"))).replace(",", "")) > 100);
  assert.equal(await page.textContent(by("usage-turns")), "2");
  assert.equal(await page.textContent(by("usage-calls")), "2");
  await shot(page, "done-light");
}, { hold: 4 });

await check("words, arguments and thinking arrive in pieces, drawn in frames only", async (page) => {
  await page.evaluate(() => {
    const seen = { outside: 0, draws: 0, length: 0, given: new Set() };
    Object.assign(globalThis, { seen });
    const grown = () => {
      const before = seen.length;
      seen.length = [...document.querySelectorAll('[data-testid="answer"]')].at(-1)?.textContent?.length ?? 0;
      return seen.length > before ? 1 : 0;
    };
    const observer = new MutationObserver(() => void (seen.outside += grown()));
    observer.observe(/** @type {Element} */ (document.querySelector('[data-testid="messages"]')), { subtree: true, childList: true, characterData: true });
    // Frames come as soon as they are requested, so their number does not depend on the machine.
    globalThis.requestAnimationFrame = (draw) => /** @type {any} */ (setTimeout(() => {
      if (observer.takeRecords().length > 0) seen.outside += grown();
      draw(performance.now());
      if (observer.takeRecords().length === 0) return;
      seen.draws += grown();
      seen.given.add(document.querySelector('[data-testid="tool-arguments"]')?.textContent);
    }));
  });
  await send(page, `What is ${Array.from({ length: 40 }, (_, i) => i + 1).join("+")}, and what time is it in Oslo?`);
  await idle(page);
  assert.match(await answer(page), /820[\s\S]*Oslo/);
  const seen = await page.evaluate(() => {
    const { outside, draws, given } = /** @type {any} */ (globalThis)["seen"];
    return { outside, draws, given: given.size };
  });
  // Events from a Worker may arrive together.
  const [pieces, given] = inWorker ? [3, 1] : [10, 10];
  assert.ok(seen.draws > pieces, `the answer grew in ${seen.draws} steps`);
  assert.ok(seen.given > given, `the arguments grew in ${seen.given} steps`);
  assert.equal(seen.outside, 0, "nothing grew outside of a frame");
  const thinking = page.locator(by("thinking")).first();
  assert.equal(await thinking.getAttribute("open"), null, "thinking is folded");
  await thinking.locator("summary").click();
  assert.match(await thinking.innerText(), /1\+2\+3[\s\S]*calculator/);
});

await check("steering reaches a slow run: the tool is cut short, the message heard, the run goes on", async (page) => {
  await send(page, SLOW);
  await page.waitForSelector(`${card("count_primes", "running")} progress:not([hidden])`);
  await send(page, "Stop that. What time is it in Lima?");
  await page.waitForSelector(card("count_primes", "cut"));
  await idle(page);
  assert.equal(await page.locator(by("run")).count(), 1, "it stayed one run");
  assert.equal(await page.locator(by("bubble-steer")).getAttribute("data-receipt"), "delivered");
  assert.match(await page.locator(by("receipt")).innerText(), /heard in turn 1/);
  assert.match(await answer(page), /Lima[\s\S]*\d\d:\d\d/);
  assert.equal(await marks(page, "steer"), 1, "the picture has a mark");
  await shot(page, "steered-light");
}, { hold: 4 });

await check("a follow-up waits until the run would end, and belongs to it", async (page) => {
  await send(page, SLOW);
  await page.waitForSelector('[data-testid="composer"][data-mode="running"]');
  await page.fill(by("box"), "And what is 1+1?");
  await page.click(by("follow-up"));
  await page.waitForSelector(by("bubble-follow_up"));
  await full(page);
  await idle(page);
  assert.equal(await page.locator(by("run")).count(), 1);
  const text = await page.innerText(by("messages"));
  const first = text.indexOf("There are 348,513 primes");
  assert.ok(first > 0 && first < text.indexOf("And what is 1+1?"), "the first answer stands before the follow-up");
  assert.match(await answer(page), /\b2\b/);
}, { hold: 4 });

await check("stop ends a run at once, by button and by Escape, and the page is ready for the next", async (page) => {
  await send(page, SLOW);
  await page.waitForSelector(card("count_primes", "running"));
  await page.click(by("stop"));
  await page.waitForSelector('[data-testid="run"][data-state="aborted"]');
  await idle(page);
  await page.waitForSelector(card("count_primes", "cut"));
  assert.equal(await marks(page, "stop"), 1);
  assert.equal(await page.locator(by("failure")).count(), 0, "being stopped is no failure");
  await send(page, SLOW);
  await page.waitForSelector(`${by("run")}:last-of-type ${by("turn")}`);
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => document.querySelectorAll('[data-testid="run"][data-state="aborted"]').length === 2);
  await full(page);
  await send(page, "What is 2+2?");
  await page.waitForFunction(() => document.querySelectorAll('[data-testid="run-end"]').length === 3);
  assert.match(await answer(page), /4/);
}, { hold: 4 });

await check("a failing tool is shown as failed, in words, beside one that succeeds", async (page) => {
  await full(page);
  await send(page, "What is 10 / (5 - 5), and what time is it in Oslo?");
  await idle(page);
  assert.match(await page.innerText(card("calculator", "failed")), /division by zero/);
  assert.equal(await page.locator(card("clock", "done")).count(), 1);
  assert.match(await answer(page), /division by zero/);
});

await check("later questions go on from earlier ones, and New forgets them", async (page) => {
  await full(page);
  await send(page, "What is 17*23?");
  await idle(page);
  await send(page, "Multiply that by 2");
  await page.waitForFunction(() => document.querySelectorAll('[data-testid="run-end"]').length === 2);
  assert.match(await answer(page), /782/);
  assert.match(String(await page.textContent(inspected(".which"))), /run 2 of 2/);
  await page.click(inspected('[aria-label="The run before"]'));
  await drawn(page);
  assert.match(String(await page.textContent(inspected(".which"))), /run 1 of 2/);
  assert.match(await page.innerText(inspected("#panel-conversation")), /17\*23[\s\S]*391/);
  await page.click(by("reset"));
  await page.waitForSelector(by("welcome"));
  assert.equal(await page.locator(by("run")).count(), 0);
  await send(page, "Multiply that by 2");
  await idle(page);
  assert.match(await answer(page), /no earlier result/);
});

await check("examples and suggestions can be clicked, also in mid-run", async (page) => {
  await page.click(`${by("example")} >> text=Count the primes`);
  await page.waitForSelector(card("count_primes", "running"));
  await page.click(`${by("suggestion")} >> text=Lima`);
  await full(page);
  await idle(page);
  assert.match(await answer(page), /Lima/);
}, { hold: 4 });
