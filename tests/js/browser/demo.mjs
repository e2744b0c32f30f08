// @ts-check
// The demo page, driven in Chromium as a person would use it.
//   node tests/js/browser/demo.mjs BASE_URL page|worker [FOLDER_FOR_SCREENSHOTS]
// The second word says where the loop is to run. ONLY=words in the environment plays the checks whose names have them.
// Prints a line per check and `N passed, N failed`; ends with 1 if one failed.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { chromium } from "playwright-core";

const [baseUrl, place = "page", folder] = process.argv.slice(2);
const inWorker = place === "worker";
if (!baseUrl) {
  console.error("Usage: node demo.mjs BASE_URL page|worker [FOLDER_FOR_SCREENSHOTS]");
  process.exit(1);
}
if (folder) await mkdir(folder, { recursive: true });

/** @type {string} */
const axeSource = createRequire(import.meta.url)("axe-core").source;
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const browser = await chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: FLAGS });

/** @typedef {import("playwright-core").Page} Page */

const TWO_PARTS = "What is 17*23, and what time is it in Oslo?";
const SLOW = "Count the primes below 5 million";
let passed = 0;
let failed = 0;

/**
 * One check on a fresh page. Whatever the page complains about in its console fails it too. With `hold` the tools run so many
 * times longer: what must be done while they run has the time that a slow machine needs.
 *
 * @param {string} name
 * @param {(page: Page, complaints: string[]) => Promise<void>} body
 * @param {import("playwright-core").BrowserContextOptions & { hold?: number }} [options]
 */
async function check(name, body, { hold = 1, ...options } = {}) {
  if (!name.includes(process.env["ONLY"] ?? "")) return;
  const startedAt = performance.now();
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  /** @type {string[]} */
  const complaints = [];
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("console", (message) => {
    // What Chromium says when it is asked for a model that it does not have.
    if (/Unable to create a text session/.test(message.text())) return;
    if (message.type() === "error" || message.type() === "warning") complaints.push(message.text());
  });
  try {
    await page.goto(`${baseUrl}?hold=${hold}`);
    await page.waitForSelector("html[data-ready]");
    if (inWorker) await page.check(by("place-worker"));
    await body(page, complaints);
    assert.deepEqual(complaints, [], "the page complains in its console");
    passed += 1;
    console.log(`ok      ${name} (${((performance.now() - startedAt) / 1000).toFixed(1)} s)`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED  ${name}\n        ${String(error instanceof Error ? error.stack : error).replaceAll("\n", "\n        ")}`);
    await shot(page, `failed-${failed}`);
  } finally {
    await context.close();
  }
}

/**
 * A check of something that is the same wherever the loop runs, so it only runs for the page.
 * @type {typeof check}
 */
const checkPage = async (...given) => (inWorker ? undefined : check(...given));

/** @param {Page} page @param {string} name */
async function shot(page, name) {
  if (folder) await page.screenshot({ path: join(folder, `${place}-${name}.png`) });
}

/** What the timeline shows, asked of the inspector. @param {Page} page @param {string} code */
const ofInspector = (page, code) => page.evaluate(`((log) => ${code})(document.querySelector("#inspector").log)`);
const marks = (/** @type {Page} */ page, /** @type {string} */ kind) => ofInspector(page, `log.lanes.marks.filter((mark) => mark.kind === "${kind}").length`);
const inspected = (/** @type {string} */ selector) => `#inspector ${selector}`;

const by = (/** @type {string} */ testid) => `[data-testid="${testid}"]`;
const card = (/** @type {string} */ tool, /** @type {string} */ state) => `${by("tool-card")}[data-tool="${tool}"][data-state="${state}"]`;

/** @param {Page} page @param {string} text */
async function send(page, text) {
  await page.fill(by("box"), text);
  await page.press(by("box"), "Enter");
}

/** @param {Page} page */
async function idle(page) {
  await page.waitForSelector('[data-testid="composer"][data-mode="idle"]');
  await page.waitForSelector(by("run-end"));
  await drawn(page);
}

/** Waits until what has happened is drawn, in the next frame. @param {Page} page */
async function drawn(page) {
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
}

/**
 * Returns what the page has stored for its next life, once this is in it.
 * @param {Page} page @param {string} wanted @returns {Promise<string>}
 */
async function stored(page, wanted) {
  for (const end = Date.now() + 60_000; ; ) {
    const found = await page.evaluate(() => new Promise((resolve) => {
      const opened = indexedDB.open("turnwheel-demo");
      opened.onsuccess = () => {
        const all = opened.result.transaction("checkpoints").objectStore("checkpoints").getAll();
        all.onsuccess = () => (opened.result.close(), resolve(JSON.stringify(all.result)));
      };
    }));
    if (String(found).includes(wanted)) return String(found);
    assert.ok(Date.now() < end, `${wanted} is not stored: ${found}`);
  }
}

/** @param {Page} page */
async function full(page) {
  await page.uncheck(by("hold"));
}

/** @param {Page} page */
async function answer(page) {
  await drawn(page);
  return (await page.locator(by("answer")).last().innerText()).trim();
}

/** @param {Page} page */
async function noSidewaysScroll(page) {
  const wide = await page.evaluate(() => ({ scroll: document.documentElement.scrollWidth, body: document.body.scrollWidth, window: innerWidth }));
  assert.ok(wide.scroll <= wide.window && wide.body <= wide.window, `the page is ${Math.max(wide.scroll, wide.body)} px wide in a window of ${wide.window}`);
  const outside = await page.evaluate(() => [...document.querySelectorAll("main *, header *")]
    .filter((element) => element instanceof HTMLElement && element.offsetParent && !element.closest(".suggestions, .hidden, .skip, pre, .table") && element.getBoundingClientRect().right > innerWidth + 1)
    .map((element) => element.className || element.tagName));
  assert.deepEqual(outside, [], "elements stand outside the window");
}

/** Checks that the placeholder of the empty box fits into it. @param {Page} page */
async function wholePlaceholder(page) {
  const { text, room } = await page.locator(by("box")).evaluate((element) => {
    const box = /** @type {HTMLTextAreaElement} */ (element);
    const { font, paddingLeft, paddingRight } = getComputedStyle(box);
    const canvas = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));
    canvas.font = font;
    return { text: canvas.measureText(box.placeholder).width, room: box.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight) };
  });
  assert.ok(text <= room, `the placeholder is ${text} px wide, the box ${room}`);
}

/** @param {Page} page */
async function accessible(page) {
  if (!(await page.evaluate(() => "axe" in globalThis))) {
    await page.evaluate((source) => {
      // The page's own policy would refuse a script tag, but not the protocol's evaluation.
      (0, eval)(source);
    }, axeSource);
  }
  const findings = await page.evaluate(async () => {
    const { violations } = await /** @type {any} */ (globalThis)["axe"].run(document, { resultTypes: ["violations"] });
    return violations.map((/** @type {any} */ { id, impact, nodes }) => ({ id, impact, where: nodes.map((/** @type {any} */ node) => `${node.target.join(" ")}: ${node.failureSummary}`) }));
  });
  assert.deepEqual(findings.filter((/** @type {any} */ { impact }) => impact === "serious" || impact === "critical"), []);
}

/**
 * A server on loopback for the time of `body`.
 *
 * @param {import("node:http").RequestListener} answer
 * @param {(address: string) => Promise<void>} body
 */
async function withServer(answer, body) {
  const server = createServer(answer);
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  try {
    await body(`http://127.0.0.1:${port}/v1`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

const CORS = { "access-control-allow-origin": "*", "access-control-allow-headers": "*", "access-control-allow-methods": "*" };

/** @param {Page} page @param {{ address: string, model?: string, key?: string, remember?: boolean }} choice */
async function choose(page, { address, model = "some-model", key, remember = false }) {
  await page.click(by("choose-model"));
  await page.check(by("row-own"));
  await page.fill(by("base-url"), address);
  await page.fill(by("model-id"), model);
  if (key) await page.fill(by("api-key"), key);
  if (remember) await page.check(by("remember"));
  await page.click(by("model-use"));
  await page.waitForSelector(by("model-dialog"), { state: "hidden" });
}

await check("the page opens without a complaint, with the rehearsal chosen and labelled as what it is", async (page) => {
  assert.equal(await page.textContent(by("model-name")), "Rehearsal");
  assert.match(String(await page.textContent(by("rehearsal-note"))), /rule-based stand-in, not a language model/);
  assert.match(String(await page.textContent(by("hint"))), /not a language model/);
  await shot(page, "welcome-light");
});

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

/** Another tab of the same browser. @param {Page} page */
async function secondTab(page) {
  const other = await page.context().newPage();
  other.setDefaultTimeout(60_000);
  await other.goto(page.url());
  await other.waitForSelector("html[data-ready]");
  return other;
}

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

const ASKING = "What is 6*7? And rename this page to Spinning";

/** @param {Page} page */
async function reload(page) {
  await page.reload();
  await page.waitForSelector("html[data-ready]");
}

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

await checkPage("with reduced motion nothing is animated and the picture still grows", async (page) => {
  await send(page, SLOW);
  await page.waitForSelector(card("count_primes", "running"));
  assert.equal(await page.evaluate(() => document.getAnimations().length), 0);
  const before = await page.innerText(by("elapsed"));
  await page.waitForFunction((text) => document.querySelector('[data-testid="elapsed"]')?.textContent !== text, before);
}, { reducedMotion: "reduce", hold: 4 });

await check("another model answers over the wire; its key is sent there and kept nowhere", async (page) => {
  /** @type {(string | undefined)[]} */
  const keys = [];
  await withServer((request, response) => {
    if (request.method === "OPTIONS") return void response.writeHead(204, CORS).end();
    keys.push(request.headers.authorization);
    if (request.url?.endsWith("/chat/completions")) assert.equal(request.headers.origin, inWorker ? undefined : new URL(/** @type {string} */ (baseUrl)).origin, "who asks");
    if (request.url?.endsWith("/models")) return void response.writeHead(200, { ...CORS, "content-type": "application/json" }).end('{"data":[{"id":"small"},{"id":"large"}]}');
    const chunk = (/** @type {object} */ delta, /** @type {string | null} */ reason = null) => `data: ${JSON.stringify({ id: "1", object: "chat.completion.chunk", model: "small", choices: [{ index: 0, delta, finish_reason: reason }] })}\n\n`;
    response.writeHead(200, { ...CORS, "content-type": "text/event-stream" });
    response.end(`${chunk({ role: "assistant", content: "Hello from " })}${chunk({ content: "**the server**." })}${chunk({}, "stop")}data: [DONE]\n\n`);
  }, async (address) => {
    await page.click(by("choose-model"));
    await page.check(by("row-own"));
    await page.fill(by("base-url"), address);
    assert.match(String(await page.textContent("#key-note")), inWorker ? /^Sent to the Worker on this machine/ : /^Kept in this page's memory/);
    await page.fill(by("api-key"), "key-of-the-test");
    await page.click(by("find-models"));
    await page.waitForFunction(() => document.querySelector('[data-testid="found"]')?.textContent?.includes("small, large"));
    assert.equal(await page.inputValue(by("model-id")), "small");
    await page.click(by("model-use"));
    await send(page, "Hello");
    await idle(page);
    assert.equal(await answer(page), "Hello from the server.");
    assert.ok(keys.length >= 2 && keys.every((key) => key === "Bearer key-of-the-test"), keys.join(", "));
    assert.deepEqual(await page.evaluate(() => Object.keys({ ...localStorage, ...sessionStorage })), ["turnwheel-demo-conversation"], "which conversation it is, and no key");
    await choose(page, { address, key: "key-of-the-test", remember: true });
    await page.reload();
    await page.waitForSelector("html[data-ready]");
    assert.match(String(await page.textContent(by("model-name"))), /some-model/);
    await page.click(by("choose-model"));
    await page.uncheck(by("remember"));
    await page.click(by("model-use"));
    assert.equal(await page.evaluate(() => localStorage.getItem("turnwheel-demo-model")), null, "unticked, it is forgotten");
  });
});

/**
 * How each row asks, and an answer it understands.
 * @type {[row: string, header: string, key: string, path: RegExp, frames: any[]][]}
 */
const WIRES = [
  ["openai", "authorization", "Bearer my-own-key", /\/chat\/completions$/, [{ choices: [{ index: 0, delta: { content: "By this wire." }, finish_reason: "stop" }] }]],
  ["openai-responses", "authorization", "Bearer my-own-key", /\/responses$/, [{ type: "response.output_text.delta", output_index: 0, delta: "By this wire." }, { type: "response.completed", response: { status: "completed" } }]],
  ["anthropic", "x-api-key", "my-own-key", /\/v1\/messages$/, [
    { type: "message_start", message: { id: "m" } }, { type: "content_block_start", index: 0, content_block: { type: "text", text: "By this wire." } },
    { type: "message_delta", delta: { stop_reason: "end_turn" } }, { type: "message_stop" },
  ]],
  ["gemini", "x-goog-api-key", "my-own-key", /\/models\/small:streamGenerateContent\?alt=sse$/, [{ candidates: [{ content: { parts: [{ text: "By this wire." }] }, finishReason: "STOP" }] }]],
];

await check("each of the four wires can be chosen, with a key and an address of one's own", async (page) => {
  for (const [row, header, key, path, frames] of WIRES) {
    /** @type {string[]} */
    const urls = [];
    await withServer((request, response) => {
      if (request.method === "OPTIONS") return void response.writeHead(204, { ...CORS, "access-control-allow-headers": request.headers["access-control-request-headers"] }).end();
      assert.equal(request.headers[header], key);
      assert.equal(request.headers["anthropic-dangerous-direct-browser-access"], row === "anthropic" ? "true" : undefined);
      urls.push(request.url ?? "");
      const models = row === "gemini" ? { models: [{ name: "models/small" }] } : { data: [{ id: "small" }] };
      if (request.url?.endsWith("/models")) return void response.writeHead(200, { ...CORS, "content-type": "application/json" }).end(JSON.stringify(models));
      response.writeHead(200, { ...CORS, "content-type": "text/event-stream" }).end(frames.map((frame) => `data: ${JSON.stringify(frame)}\n\n`).join(""));
    }, async (address) => {
      await page.click(by("choose-model"));
      await page.check(by(`row-${row}`));
      assert.match(await page.inputValue(by("base-url")), /^https:/);
      await page.fill(by("base-url"), address);
      await page.click(by("model-use"));
      assert.match(String(await page.textContent("#api-key-problem")), /answers with a key only/);
      await page.fill(by("api-key"), "my-own-key");
      await page.click(by("find-models"));
      await page.waitForFunction(() => document.querySelector('[data-testid="found"]')?.textContent?.includes("small"));
      assert.equal(await page.inputValue(by("model-id")), "small");
      if (row === "anthropic") await accessible(page);
      await page.click(by("model-use"));
      await send(page, "Hello");
      await idle(page);
      assert.equal(await answer(page), "By this wire.", row);
      assert.ok(urls.length === 2 && path.test(urls[1] ?? ""), urls.join(" "));
    });
  }
  assert.deepEqual(await page.evaluate(() => Object.keys({ ...localStorage, ...sessionStorage })), ["turnwheel-demo-conversation"], "which conversation it is, and no key");
});

/**
 * Clears the complaints: what the browser itself logs about failed requests is not the page's fault.
 * @param {string[]} complaints
 */
function forgive(complaints) {
  complaints.length = 0;
}

await check("a refused key, a refused origin and a missing server are told apart from success, with the way out", async (page, complaints) => {
  await withServer((request, response) => {
    if (request.method === "OPTIONS") return void response.writeHead(204, CORS).end();
    response.writeHead(401, { ...CORS, "content-type": "application/json" }).end('{"error":{"message":"Incorrect API key provided","type":"invalid_request_error","code":"invalid_api_key"}}');
  }, async (address) => {
    await choose(page, { address, key: "wrong" });
    await send(page, "Hello");
    await page.waitForSelector(by("failure"));
    assert.match(await page.innerText(by("failure")), /refused the key \(401\)[\s\S]*Open the model settings/);
    await shot(page, "error-key");
  });
  await page.click(by("reset"));
  await page.waitForSelector(by("welcome"));
  await withServer((_, response) => void response.writeHead(200).end("no header that lets a page in"), async (address) => {
    await choose(page, { address });
    await send(page, "Hello");
    await page.waitForSelector(by("failure"));
    const text = await page.innerText(by("failure"));
    // No page's rules apply to a Worker, which reads whatever is there.
    if (inWorker) assert.match(text, /no stream of events/);
    else assert.ok(text.includes("CORS") && text.includes(new URL(/** @type {string} */ (baseUrl)).origin), text);
  });
  await page.click(by("reset"));
  await page.waitForSelector(by("welcome"));
  // An address where a server was running a moment ago.
  let gone = "";
  await withServer(() => {}, async (address) => void (gone = address));
  await choose(page, { address: gone });
  await send(page, "Hello");
  await page.waitForSelector(by("failure"));
  const text = await page.innerText(by("failure"));
  assert.ok(text.includes(`No answer from ${gone}`) && text.includes("is there a server"), text);
  await shot(page, "error-network");
  assert.equal(await page.locator('[data-testid="composer"][data-mode="idle"]').count(), 1);
  forgive(complaints);
});

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

/** The page with a double of the browser's own model, and every tab that is opened from now on. @param {Page} page @param {string} state what it says of itself */
async function withBrowsersOwn(page, state) {
  await page.context().addInitScript((state) => {
    class Session extends EventTarget {
      contextUsage = 0;
      contextWindow = 4000;
      measureContextUsage = async () => 10;
      async *promptStreaming(/** @type {any[]} */ messages) {
        const hasResult = JSON.stringify(messages).includes("Tool results");
        if ("fails" in globalThis) throw new Error("the device was lost");
        if (/Rename|Turning/.test(JSON.stringify(messages))) return yield hasResult ? '{"say": "It has its name."}' : '{"calls": [{"name": "rename_page", "arguments": {"title": "Turning"}}]}';
        yield hasResult ? '{"say": "It is 391."}' : '{"calls": [{"name": "calculator", "arguments": {"expression": "17*23"}}]}';
      }
      destroy() {}
    }
    Object.assign(globalThis, { LanguageModel: {
      availability: async () => state,
      create: async (/** @type {any} */ { monitor } = {}) => {
        const target = new EventTarget();
        monitor?.(target);
        target.dispatchEvent(Object.assign(new Event("downloadprogress"), { loaded: 0.5 }));
        if (state === "downloadable" && !("downloaded" in globalThis)) await new Promise((resolve) => Object.assign(globalThis, { downloaded: resolve }));
        return new Session();
      },
    } });
  }, state);
  await reload(page);
}

await checkPage("the browser's own model is offered where there is one, is loaded by a click, and calls the tools of the page", async (page) => {
  assert.ok(await page.isHidden(by("offer-browser")), "here there is none");
  await withBrowsersOwn(page, "downloadable");
  await page.waitForSelector(by("offer-browser"));
  assert.match(await page.innerText(by("offer-browser")), /fetches it once[\s\S]*Nothing leaves the page/);
  await page.click(by("offer-browser"));
  assert.match(await page.innerText(by("leaves")), /What leaves the page: nothing/);
  await shot(page, "picker-light");
  await page.click(by("model-use"));
  await page.waitForFunction(() => /fetches its model: 50 %.*the rehearsal answers/.test(document.querySelector('[data-testid="loading-text"]')?.textContent ?? ""));
  await accessible(page);
  await shot(page, "loading-light");
  assert.equal(await page.textContent(by("model-name")), "Rehearsal");
  await page.evaluate(() => /** @type {any} */ (globalThis)["downloaded"]());
  await page.waitForFunction(() => /own model/.test(document.querySelector('[data-testid="model-name"]')?.textContent ?? ""));
  await full(page);
  await send(page, "What is 17*23?");
  await idle(page);
  assert.match(await page.innerText(card("calculator", "done")), /391/);
  assert.equal(await answer(page), "It is 391.");
  await page.evaluate(() => void Object.assign(globalThis, { fails: true }));
  await send(page, "What is 2+2?");
  await page.waitForSelector(by("failure"));
  assert.match(await page.innerText(by("failure")), /the device was lost/);
  await page.click(by("rehearse"));
  await page.waitForFunction(() => document.querySelectorAll('[data-testid="run-end"]').length === 3);
  assert.match(await answer(page), /4/);
  assert.equal(await page.textContent(by("model-name")), "Rehearsal");
  await page.evaluate(() => void Reflect.deleteProperty(globalThis, "fails"));
  await page.click(by("choose-model"));
  await page.check(by("row-browser"));
  await page.click(by("model-use"));
  await page.waitForFunction(() => /own model/.test(document.querySelector('[data-testid="model-name"]')?.textContent ?? ""));
  assert.match(await page.innerText(by("hint")), /Nothing leaves this page/);
});

await checkPage("the browser's own model in each of its states: hidden, ready, on its way, and one that cannot be made", async (page) => {
  for (const [state, says] of /** @type {[string, RegExp | undefined][]} */ ([["unavailable", undefined], ["nonsense", undefined], ["available", /Ready: it needs no download/], ["downloading", /The browser is fetching it/], ["downloadable", /fetches it once, some gigabytes/]])) {
    await withBrowsersOwn(page, state);
    if (says) await page.waitForSelector(by("offer-browser"));
    // It is known when the model was asked.
    await page.evaluate(() => /** @type {any} */ (globalThis)["LanguageModel"].availability());
    await drawn(page);
    assert.equal(await page.isVisible(by("offer-browser")), says !== undefined, state);
    if (says) assert.match(await page.innerText(by("offer-browser")), says);
    await page.click(by("choose-model"));
    assert.equal(await page.isVisible(by("row-browser")), says !== undefined, state);
    await page.keyboard.press("Escape");
  }
  // It says that it is there, and is not.
  await withBrowsersOwn(page, "available");
  await page.waitForSelector(by("offer-browser"));
  await page.evaluate(() => void (/** @type {any} */ (globalThis)["LanguageModel"].create = () => Promise.reject(new DOMException("The device has no room for it", "NotSupportedError"))));
  await page.click(by("offer-browser"));
  await page.click(by("model-use"));
  await page.waitForSelector(`${by("loading")}[data-state="failed"]`);
  assert.match(await page.innerText(by("loading-text")), /no room for it\. The rehearsal goes on answering/);
  assert.equal(await page.textContent(by("model-name")), "Rehearsal");
});

await checkPage("a model that cannot be loaded says why, and the rehearsal goes on; a file that is none is told apart", async (page) => {
  await page.evaluate(() => void Object.defineProperty(navigator, "hardwareConcurrency", { get: () => 2 }));
  await page.click(by("offer-small"));
  await page.click(by("model-use"));
  assert.match(await page.innerText(by("file-problem")), /Choose a file that ends in \.gguf/);
  assert.match(await page.innerText(by("device-warning")), /Slow on this machine: it has 2 cores/);
  await page.setInputFiles(by("file"), { name: "notes.gguf", mimeType: "text/plain", buffer: Buffer.from("no weights at all") });
  await page.click(by("model-use"));
  await page.waitForSelector(`${by("loading")}[data-state="failed"]`);
  assert.match(await page.innerText(by("loading-text")), /notes is no GGUF file\. The rehearsal goes on answering/);
  await accessible(page);
  await page.click(by("loading-cancel"));
  await page.waitForSelector(by("loading"), { state: "hidden" });
  assert.equal(await page.textContent(by("model-name")), "Rehearsal");
});

/**
 * The page with weights of this content at another address, which are sent as far as `upTo` says, each time they are asked for;
 * and with a double of llama.cpp, which takes all that begins as weights do. Returns what was asked for.
 * @param {Page} page @param {Buffer} content @param {(times: number) => number} upTo @param {() => Promise<unknown>} body
 */
async function withWeights(page, content, upTo, body) {
  /** @type {(string | undefined)[]} */
  const asked = [];
  const context = page.context();
  await context.route("**/wllama/index.min.js", (route) => route.fulfill({ contentType: "text/javascript", body: `export class Wllama {
    async loadModel([blob]) { globalThis.loadedText = await blob.text(); }
    async exit() {}
    async createChatCompletion({ messages }) {
      return (async function* () {
        const words = JSON.stringify(messages).includes("Be slow") ? Array.from({ length: 20 }, (_, i) => "word " + i + " ") : ["It is ", "loaded."];
        for (const content of words) yield await new Promise((resolve) => setTimeout(resolve, words.length > 2 ? 150 : 30, { choices: [{ delta: { content } }] }));
        yield { choices: [{ delta: {}, finish_reason: "stop" }], usage: { prompt_tokens: 9, completion_tokens: 5 } };
      })();
    }
  }` }));
  await withServer((request, response) => {
    if (request.method === "OPTIONS") return void response.writeHead(204, CORS).end();
    asked.push(request.headers.range);
    const from = Number(/bytes=(\d+)-/.exec(request.headers.range ?? "")?.[1] ?? 0);
    const rest = content.subarray(from, upTo(asked.length));
    response.writeHead(from > 0 ? 206 : 200, { ...CORS, "content-length": content.length - from });
    response.write(rest, () => void (from + rest.length === content.length ? response.end() : setTimeout(() => response.destroy(), 200)));
  }, async (address) => {
    const sha256 = createHash("sha256").update(content).digest("hex");
    await context.route("**/site.json", (route) => route.fulfill({ json: { worker: null, weights: { url: `${address}/tiny.gguf`, name: "Tiny", bytes: content.length, sha256 } } }));
    await reload(page);
    await body();
  });
  return asked;
}

/** @param {Page} page */
async function loadSmall(page) {
  await page.click(by("choose-model"));
  await page.check(by("row-small"));
  await page.click(by("model-use"));
}

const isLoaded = (/** @type {Page} */ page) => page.waitForFunction(() => document.querySelector('[data-testid="model-name"]')?.textContent === "Tiny");
const WEIGHTS = Buffer.from(`GGUF${Array.from({ length: 4000 }, (_, i) => `part ${i};`).join("")}`);

await checkPage("weights whose connection breaks go on where they stopped, are checked, and are there at the next visit", async (page, complaints) => {
  const asked = await withWeights(page, WEIGHTS, (times) => [1000, 1000, 20_000][times - 1] ?? WEIGHTS.length, async () => {
    await loadSmall(page);
    await page.waitForFunction(() => /The connection broke\. Fetching the rest of Tiny/.test(document.querySelector('[data-testid="loading-text"]')?.textContent ?? ""));
    await isLoaded(page);
    assert.equal(await page.evaluate(() => /** @type {any} */ (globalThis)["loadedText"]), WEIGHTS.toString());
    await send(page, "Is it there?");
    await idle(page);
    assert.equal(await answer(page), "It is loaded.");
    assert.match(await page.innerText(by("usage-rate")), /\d/);
    assert.doesNotMatch(await page.innerText(by("hint")), /does not keep/);
    await reload(page);
    await loadSmall(page);
    await isLoaded(page);
  });
  assert.deepEqual(asked, [undefined, "bytes=1000-", "bytes=1000-", "bytes=20000-"]);
  forgive(complaints);
});

await checkPage("a download that is cancelled goes on at the next click; a server that sends no parts sends all of it", async (page, complaints) => {
  let most = 5000;
  const asked = await withWeights(page, WEIGHTS, () => most, async () => {
    await loadSmall(page);
    await page.waitForFunction(() => /broke/.test(document.querySelector('[data-testid="loading-text"]')?.textContent ?? ""));
    await page.click(by("loading-cancel"));
    most = 6000;
    await loadSmall(page);
    await page.waitForFunction(() => /broke/.test(document.querySelector('[data-testid="loading-text"]')?.textContent ?? ""));
    await page.click(by("loading-cancel"));
    await page.route("**/tiny.gguf", (route) => route.fulfill({ body: WEIGHTS, headers: CORS }), { times: 1 });
    await loadSmall(page);
    await isLoaded(page);
    assert.equal(await page.evaluate(() => /** @type {any} */ (globalThis)["loadedText"]), WEIGHTS.toString());
  });
  assert.equal(asked[0], undefined);
  assert.ok(asked.slice(1).every((range) => /^bytes=[56]000-$/.test(String(range))), asked.join());
  forgive(complaints);
});

await checkPage("weights that the browser does not keep are fetched once all the same, and the page says so", async (page) => {
  const asked = await withWeights(page, WEIGHTS, () => WEIGHTS.length, async () => {
    // As Chromium says it of what a private window's cache has no room for.
    await page.evaluate(() => void (Cache.prototype.put = () => Promise.reject(new DOMException("Unexpected internal error.", "UnknownError"))));
    await loadSmall(page);
    await isLoaded(page);
    assert.match(await page.innerText(by("hint")), /This browser does not keep it: the next visit fetches it again/);
    await page.waitForFunction(() => /does not keep it/.test(document.querySelector('[data-testid="live"]')?.textContent ?? ""));
  });
  assert.equal(asked.length, 1);
});

await checkPage("weights that are not what was announced are not used, and not kept", async (page) => {
  await page.route("**/site.json", (route) => route.fulfill({ json: { worker: null, weights: { url: "https://models.example/tiny.gguf", name: "Tiny", bytes: 17, sha256: "0".repeat(64) } } }));
  let body = "GGUF, and so on: ";
  await page.route("https://models.example/tiny.gguf", (route) => route.fulfill({ body, headers: { "access-control-allow-origin": "*" } }));
  await reload(page);
  for (const [sent, says] of /** @type {[string, RegExp][]} */ ([["GGUF, and so on: ", /something else than what was announced/], ["GGUF", /1 MB came instead of 1 MB/]])) {
    body = sent;
    await loadSmall(page);
    await page.waitForFunction((source) => new RegExp(source).test(document.querySelector('[data-testid="loading"][data-state="failed"] [data-testid="loading-text"]')?.textContent ?? ""), says.source);
    await page.click(by("loading-cancel"));
  }
  assert.equal(await page.evaluate(() => caches.open("turnwheel-demo-weights").then((cache) => cache.keys()).then((keys) => keys.filter(({ url }) => /from=0$/.test(url)).length)), 0);
});

await checkPage("a model goes with the tab that loaded it: the next one says so, and loads it or goes on with its own", async (page) => {
  await withWeights(page, WEIGHTS, () => WEIGHTS.length, async () => {
    const hears = (/** @type {Page} */ tab, /** @type {number} */ times) => tab.waitForFunction((times) => (document.querySelector('[data-testid="messages"]')?.textContent ?? "").split("word 3").length > times, times);
    await loadSmall(page);
    await isLoaded(page);
    const second = await secondTab(page);
    await isLoaded(second);
    assert.match(await second.innerText("#hint-who"), /Tiny answers, in the other tab\. Nothing leaves this page/);
    await send(page, "Be slow");
    await hears(second, 1);
    await page.close();
    await second.waitForSelector(by("load-again"));
    assert.match(await second.innerText(by("failure")), /A run waits to go on\.[\s\S]*begun with Tiny, which went with its page/);
    assert.match(await second.innerText(by("role")), /The tab that ran this conversation has left/);
    await accessible(second);
    await shot(second, "waits");
    await second.click(by("load-again"));
    await idle(second);
    assert.match(await answer(second), /word 19/);
    assert.equal(await second.locator(by("failure")).count(), 0);
    const third = await secondTab(second);
    await send(second, "Be slow again");
    await hears(third, 2);
    await second.close();
    await third.click(by("go-on"));
    await third.waitForFunction(() => document.querySelectorAll('[data-testid="run-end"]').length === 2);
    assert.doesNotMatch(await answer(third), /word 19/);
    assert.match(await third.innerText(by("role")), /took over in \d+ ms\. Tiny answered there; here Rehearsal does/);
    assert.equal(await third.textContent(by("model-name")), "Rehearsal");
  });
});

await checkPage("a model that went with its tab while it asked: nothing goes on before a person says with which, and the question stays", async (page) => {
  await withBrowsersOwn(page, "available");
  await page.click(by("offer-browser"));
  await page.click(by("model-use"));
  await page.waitForFunction(() => /own model/.test(document.querySelector('[data-testid="model-name"]')?.textContent ?? ""));
  const second = await secondTab(page);
  await send(page, "Rename this page");
  await second.waitForSelector(card("rename_page", "asks"));
  await page.close();
  await second.waitForSelector(by("load-again"));
  assert.match(await second.innerText(by("failure")), /A run waits to go on\.[\s\S]*own model, which went with its page/);
  await second.click(by("allow"));
  await drawn(second);
  assert.equal(await second.locator(by("failure")).count(), 1, "who allows a call has not said which model goes on");
  await second.click(by("load-again"));
  await idle(second);
  assert.match(await answer(second), /It has its name/);
  assert.equal(await second.locator(by("failure")).count(), 0);
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

await checkPage("every choice says what leaves the page, and to whom", async (page) => {
  await page.click(by("choose-model"));
  for (const [row, says] of /** @type {[string, RegExp][]} */ ([
    ["rehearsal", /nothing\.$/], ["small", /nothing\.$/],
    ["ollama", /go to localhost:11434, on this machine, and to nobody else/],
    ["openai", /and your key go to api\.openai\.com, and to nobody else/], ["gemini", /generativelanguage\.googleapis\.com/],
  ])) {
    await page.check(by(`row-${row}`));
    assert.match(await page.innerText(by("leaves")), says, row);
  }
  await page.fill(by("base-url"), "https://llm.example/v1");
  assert.match(await page.innerText(by("leaves")), /llm\.example/, "as it is typed");
  await page.route("**/site.json", (route) => route.fulfill({ json: { worker: null, weights: { url: "https://models.example/tiny.gguf", name: "Tiny" } } }));
  await reload(page);
  assert.match(await page.innerText(by("offer-small")), /Tiny/);
  await page.click(by("offer-small"));
  assert.match(await page.innerText(by("leaves")), /nothing\. The weights come from models\.example\.$/);
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

await checkPage("a choice that lacks something is not taken, and says what it lacks", async (page) => {
  await page.click(by("choose-model"));
  await page.check(by("row-own"));
  await page.click(by("model-use"));
  assert.match(await page.innerText("#base-url-problem"), /Give the address/);
  assert.match(await page.innerText("#model-id-problem"), /Give the id/);
  assert.equal(await page.evaluate(() => document.activeElement?.id), "base-url");
  await page.check(by("row-openai"));
  await page.click(by("model-use"));
  assert.match(await page.innerText("#api-key-problem"), /with a key only/);
  await page.keyboard.press("Escape");
  assert.equal(await page.textContent(by("model-name")), "Rehearsal");
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

await checkPage("the models of an address that one has left are not put down for another", async (page) => {
  /** @type {() => void} */
  let answer = () => {};
  const answered = new Promise((resolve) => (answer = () => resolve(undefined)));
  await page.route("**/v1/models", async (route) => {
    await answered;
    await route.fulfill({ json: { data: [{ id: "of-the-first" }] }, headers: { "access-control-allow-origin": "*" } });
  });
  await page.click(by("choose-model"));
  await page.check(by("row-own"));
  await page.fill(by("base-url"), "https://first.example/v1");
  await page.click(by("find-models"));
  await page.check(by("row-openai"));
  const before = await page.inputValue(by("model-id"));
  const done = page.waitForResponse("**/v1/models");
  answer();
  await done;
  await drawn(page);
  assert.equal(await page.inputValue(by("model-id")), before);
  assert.equal(await page.innerText(by("found")), "");
});

await checkPage("without its package the page says what to do", async (page, complaints) => {
  await page.route("**/pkg/**", (route) => route.abort());
  await page.reload();
  await page.waitForSelector('[role="alert"]');
  assert.match(await page.innerText('[role="alert"]'), /could not be loaded[\s\S]*cargo xtask demo/);
  forgive(complaints);
});

await browser.close();
console.log(`${place}: ${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
