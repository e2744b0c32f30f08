// @ts-check
// <turnwheel-inspector> in Chromium, under a strict policy: a live agent, one elsewhere, 20,000 events; by pointer, by keyboard
// and for a screen reader. With a folder in SHOTS it leaves screenshots there.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, test } from "node:test";
import { chromium } from "playwright-core";
import { agentHandler } from "../../../pkg/server.js";
import { Agent, call, deferred, scripted, testTool } from "../kit.mjs";
import { startSite } from "./inspector/site.mjs";

/** @typedef {import("playwright-core").Page} Page */

const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
/** @type {string} */
const axeSource = createRequire(import.meta.url)("axe-core").source;

const gate = deferred();
const distant = new Agent({ model: scripted([{ text: ["I look ", "it up."], ...call("search") }, { text: ["It is ", "42."] }]), tools: [testTool("search", () => gate.promise)], includeRequests: true, systemPrompt: "Be brief." });
const site = await startSite(agentHandler(distant));
const browser = await chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: FLAGS });
after(async () => {
  await browser.close();
  await site.end();
});

/** Opens the page, and fails if it complains. @param {(page: Page) => Promise<void>} body @param {import("playwright-core").BrowserContextOptions} [options] */
async function onPage(body, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  /** @type {string[]} */
  const complaints = [];
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type()) && !message.text().includes("404")) complaints.push(message.text());
  });
  await page.goto(site.url);
  await page.waitForSelector("html[data-ready]", { state: "attached" });
  await body(page);
  assert.deepEqual(complaints, [], "the page complains");
  await context.close();
}

const inPage = (/** @type {Page} */ page, /** @type {string} */ code) => page.evaluate(code);
const drawn = (/** @type {Page} */ page) => inPage(page, "frames(3)");

/** @param {Page} page @param {string} name */
async function shot(page, name) {
  if (process.env["SHOTS"]) await page.screenshot({ path: join(process.env["SHOTS"], `${name}.png`) });
}

/** @param {Page} page */
async function accessible(page) {
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate((source) => void (0, eval)(source), axeSource);
  const findings = await page.evaluate(async () => {
    const { violations } = await /** @type {any} */ (globalThis)["axe"].run(document, { resultTypes: ["violations"] });
    return violations.map((/** @type {any} */ { id, impact, nodes }) => `${impact} ${id} ${nodes.map((/** @type {any} */ node) => `${node.target.join(" ")}: ${node.failureSummary}`).join("; ")}`);
  });
  assert.deepEqual(findings, []);
}

/**
 * The most that a frame changes of what is drawn during `body`: nodes that come and go, attributes and texts. Counted, not timed:
 * how long a frame takes depends on the machine, and how much it draws does not.
 * @param {Page} page @param {() => Promise<void>} body
 */
async function mostChanges(page, body) {
  await page.evaluate(() => {
    const { inspector } = /** @type {any} */ (globalThis);
    const seen = { frames: 0, most: 0, now: 0 };
    const observer = new MutationObserver((records) => {
      for (const { type, addedNodes, removedNodes } of records) seen.now += type === "childList" ? addedNodes.length + removedNodes.length : 1;
    });
    observer.observe(inspector.shadowRoot, { subtree: true, childList: true, attributes: true, characterData: true });
    const frame = () => {
      if (seen.now > 0) seen.frames += 1;
      seen.most = Math.max(seen.most, seen.now);
      seen.now = 0;
      /** @type {any} */ (globalThis).counted.next = requestAnimationFrame(frame);
    };
    /** @type {any} */ (globalThis).counted = { seen, observer, next: requestAnimationFrame(frame) };
  });
  await body();
  await drawn(page);
  const { frames, most } = await page.evaluate(() => {
    const { seen, observer, next } = /** @type {any} */ (globalThis).counted;
    observer.disconnect();
    cancelAnimationFrame(next);
    return seen;
  });
  assert.ok(frames > 1, `${frames} frames changed something`);
  return most;
}

/** Drags from one end of an element to the other and back. @param {Page} page @param {string} selector @param {number} [steps] */
async function drag(page, selector, steps = 60) {
  const box = /** @type {any} */ (await page.locator(selector).boundingBox());
  const y = box.y + Math.min(box.height / 2, 60);
  await page.mouse.move(box.x + box.width - 8, y);
  await page.mouse.down();
  await page.mouse.move(box.x + 8, y, { steps });
  await page.mouse.move(box.x + box.width / 2, y, { steps: steps / 2 });
  await page.mouse.up();
}

const SLIDER = "turnwheel-inspector input[type=range]";
const tab = (/** @type {string} */ id) => `turnwheel-inspector #tab-${id}`;
const panel = (/** @type {string} */ id) => `turnwheel-inspector #panel-${id}`;

test("20,000 events: a drag changes little per frame, whatever panel is open, and there are few nodes", { timeout: 180_000 }, () => onPage(async (page) => {
  const end = Number(await inPage(page, "showLongRun(20000)"));
  assert.ok(end >= 20_000);
  await drawn(page);
  await shot(page, "long-all");
  /** @type {Record<string, number>} */
  const changes = {};
  for (const name of ["state", "request", "events", "table"]) {
    await page.click(tab(name));
    await drawn(page);
    for (const where of [SLIDER, "turnwheel-inspector canvas"]) {
      const before = await inPage(page, "inspector.n");
      changes[`${name}, ${where.split(" ").at(-1)}`] = await mostChanges(page, () => drag(page, where));
      assert.notEqual(await inPage(page, "inspector.n"), before, "it was dragged");
    }
    const nodes = Number(await inPage(page, "inspector.shadowRoot.querySelectorAll('*').length"));
    assert.ok(nodes < 900, `${nodes} nodes with ${name}`);
  }
  await inPage(page, "inspector.lanes.zoom(40)");
  changes["zoomed"] = await mostChanges(page, () => drag(page, SLIDER));
  await page.click(tab("events"));
  await drawn(page);
  await shot(page, "long-zoomed");
  console.log(`the most changes per frame of a drag: ${JSON.stringify(changes)}`);
  for (const [name, most] of Object.entries(changes)) assert.ok(most < 300, `${name}: a frame with ${most} changes`);
}));

test("while 20,000 events are there, a live one changes little", { timeout: 180_000 }, () => onPage(async (page) => {
  await inPage(page, "showLongRun(20000)");
  await drawn(page);
  const most = await mostChanges(page, async () => {
    await page.evaluate(async () => {
      const { inspector, frames } = /** @type {any} */ (globalThis);
      const { log } = inspector;
      log.push({ type: "agent_start", runId: "2", at: Date.now() });
      log.push({ type: "turn_start", runId: "2", turnIndex: 0, at: Date.now() });
      log.push({ type: "message_start", runId: "2", at: Date.now() });
      for (let i = 0; i < 60; i++) {
        log.push({ type: "message_update", runId: "2", delta: { type: "text", contentIndex: 0, delta: `word ${i} ` } });
        await frames(1);
      }
    });
  });
  console.log(`the most changes per frame of live events: ${most}`);
  assert.ok(most < 300, `a frame with ${most} changes`);
}));

test("by keyboard: arrows step, Home and End jump, Page keys go by turns", { timeout: 120_000 }, () => onPage(async (page) => {
  const end = Number(await inPage(page, "showLongRun(600)"));
  const n = async () => Number(await inPage(page, "inspector.n"));
  for (const where of [SLIDER, "turnwheel-inspector .lanes"]) {
    await page.focus(where);
    await page.keyboard.press("Home");
    assert.equal(await n(), 0);
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    assert.equal(await n(), 2);
    await page.keyboard.press("ArrowLeft");
    assert.equal(await n(), 1);
    await page.keyboard.press("End");
    assert.equal(await n(), end);
  }
  await page.keyboard.press("PageUp");
  await page.keyboard.press("PageUp");
  await drawn(page);
  assert.match(String(await page.getAttribute(SLIDER, "aria-valuetext")), /turn_start turn \d+/);
  await page.click(tab("events"));
  await page.focus("turnwheel-inspector [role=listbox]");
  const before = await n();
  await page.keyboard.press("ArrowDown");
  await drawn(page);
  assert.equal(await n(), before + 1);
  assert.equal(await page.getAttribute("turnwheel-inspector [role=listbox]", "aria-activedescendant"), `event-${before + 1}`);
  // Tabs by their own arrows.
  await page.focus(tab("events"));
  await page.keyboard.press("ArrowRight");
  assert.equal(await page.getAttribute(tab("table"), "aria-selected"), "true");
}));

for (const colorScheme of /** @type {const} */ (["light", "dark"])) {
  for (const viewport of [{ width: 1280, height: 800 }, { width: 360, height: 740 }]) {
    test(`${colorScheme}, ${viewport.width} px: axe finds nothing in any panel, nothing stands outside`, { timeout: 120_000 }, () => onPage(async (page) => {
      await accessible(page);
      await inPage(page, "showLongRun(1500)");
      await inPage(page, "inspector.n = 700; inspector.lanes.zoom(8)");
      await drawn(page);
      const background = await page.evaluate(() => getComputedStyle(/** @type {any} */ (globalThis).inspector).backgroundColor);
      assert.ok(colorScheme === "dark" ? Number(/\d+/.exec(background)?.[0]) < 60 : background === "rgb(255, 255, 255)", background);
      for (const name of viewport.width > 700 ? ["state", "request", "events", "table"] : ["conversation", "state", "request", "events", "table"]) {
        await page.click(tab(name));
        await drawn(page);
        await accessible(page);
        await shot(page, `${colorScheme}-${viewport.width}-${name}`);
        const outside = await page.evaluate(() => {
          const all = [.../** @type {any} */ (globalThis).inspector.shadowRoot.querySelectorAll("button, input, .panel, canvas, .facts, .now")];
          return all.filter((element) => element.offsetParent && !element.closest(".tabs, table") && element.getBoundingClientRect().right > innerWidth).map((element) => element.className || element.tagName);
        });
        assert.deepEqual(outside, []);
      }
    }, { viewport, colorScheme, reducedMotion: "reduce" }));
  }
}

test("a live agent: it is followed, looked back at, and what is shown at an event is its checkpoint", { timeout: 120_000 }, () => onPage(async (page) => {
  const found = await page.evaluate(async () => {
    const { Agent, inspector, frames, scripted, tool } = /** @type {any} */ (globalThis);
    const model = scripted([{ thinking: "Hm.", text: ["I ", "look."], toolCalls: [{ callId: "a", toolName: "add", arguments: { a: 1 } }, { callId: "b", toolName: "pay" }] }, { text: ["All ", "<b>done</b>."] }]);
    const make = (/** @type {string} */ name, more = {}) => tool({ name, description: name, parameters: { type: "object" }, execute: () => `${name} is done`, ...more });
    const tools = [make("add"), make("pay", { requiresApproval: true })];
    const agent = new Agent({ model, tools, systemPrompt: "Be brief.", includeRequests: true });
    inspector.source = agent;
    /** @type {any[]} */
    const taken = [];
    agent.subscribe((/** @type {any} */ event) => {
      taken.push([inspector.log.end, agent.checkpoint(), event.type]);
      if (event.type === "tool_approval_requested") setTimeout(() => agent.resolve(event.id, "approve"));
    });
    await agent.prompt("Go");
    await frames(2);
    const isFollowed = inspector.n === inspector.end;
    /** @type {string[]} */
    const wrong = [];
    let compared = 0;
    const texts = (/** @type {string} */ selector) => [...inspector.shadowRoot.querySelectorAll(selector)].map((element) => element.textContent);
    for (const [n, checkpoint, type] of taken) {
      inspector.n = n;
      await frames(2);
      if (checkpoint.metadata.turnwheel.untold?.length > 0) continue;
      compared++;
      const restored = await Agent.restore(checkpoint, { model: scripted([]), tools });
      const expected = restored.messages.map(({ content, role }) => `${role}: ${content.map((/** @type {any} */ block) => block.text ?? block.thinking ?? block.toolName).join("|")}`);
      const { frame } = inspector;
      const got = frame.messages.map(({ content, role }) => `${role}: ${content.map((/** @type {any} */ block) => block.text ?? block.thinking ?? block.toolName).join("|")}`);
      // What is in the page, and not only what could be: the articles of the history.
      const articles = texts("#panel-conversation .messages > article").length - (frame.streaming ? 1 : 0) - frame.calls.filter((/** @type {any} */ call) => !frame.messages.some((/** @type {any} */ message) => message.callId === call.callId)).length;
      if (JSON.stringify(expected) !== JSON.stringify(got) || articles !== expected.length) wrong.push(`${n} ${type}: ${articles} articles; ${JSON.stringify([expected, got])}`);
      if (JSON.stringify(restored.pendingQuestions.map((/** @type {any} */ { id }) => id)) !== JSON.stringify(frame.pendingQuestions.map((/** @type {any} */ { id }) => id))) wrong.push(`${n} ${type}: questions`);
    }
    inspector.n = inspector.end;
    inspector.shadowRoot.querySelector("#tab-request").click();
    await frames(2);
    return { isFollowed, wrong, compared, request: texts("#panel-request")[0], conversation: texts("#panel-conversation")[0], markup: inspector.shadowRoot.querySelectorAll("#panel-conversation b").length };
  });
  assert.deepEqual(found.wrong, []);
  assert.ok(found.isFollowed);
  assert.ok(found.compared > 15, `${found.compared} moments were compared`);
  assert.match(String(found.request), /Be brief\.[\s\S]*add is done/);
  assert.match(String(found.conversation), /All <b>done<\/b>\./);
  assert.equal(found.markup, 0, "text does not become HTML");
}));

test("while a run plays, the focus, the scroll and what was opened stay where they are", { timeout: 120_000 }, () => onPage(async (page) => {
  const found = await page.evaluate(async () => {
    const { Agent, inspector, frames, custom, tool } = /** @type {any} */ (globalThis);
    /** @type {() => void} */
    let go = () => {};
    const more = () => new Promise((resolve) => (go = () => resolve(undefined)));
    let turn = 0;
    const model = custom("m", async function* () {
      const index = turn++;
      yield { type: "start" };
      yield { type: "thinking_start", contentIndex: 0 };
      yield { type: "thinking_delta", contentIndex: 0, delta: "hm ".repeat(3000) };
      for (let i = 0; i < 4; i++) {
        await more();
        yield { type: "thinking_delta", contentIndex: 0, delta: "and so on " };
      }
      yield { type: "thinking_end", contentIndex: 0 };
      if (index < 12) {
        yield { type: "tool_call_start", contentIndex: 1, callId: `c${index}`, toolName: "look" };
        yield { type: "tool_call_end", contentIndex: 1 };
      }
      yield { type: "done", stopReason: index < 12 ? "tool_use" : "stop" };
    });
    const agent = new Agent({ model, tools: [tool({ name: "look", description: "", parameters: { type: "object" }, execute: () => "seen" })], includeRequests: true });
    inspector.source = agent;
    const run = agent.prompt("Go");
    const root = inspector.shadowRoot;
    const step = async (/** @type {number} */ times) => {
      for (let i = 0; i < times; i++) {
        go();
        await frames(3);
      }
    };
    const shown = () => ({ tag: root.activeElement?.tagName, text: root.activeElement?.textContent?.slice(0, 20), label: root.activeElement?.getAttribute("aria-label") });
    /** @type {Record<string, unknown>} */
    const out = {};
    const summary = () => root.querySelector("#panel-conversation .open summary");
    for (let tries = 0; !summary() && tries < 300; tries++) await frames(1);
    await step(1);
    summary().focus();
    summary().click();
    await frames(2);
    await step(1);
    out["thinking"] = [shown(), summary().parentElement.open];
    summary().click();
    await frames(2);
    root.querySelector("#panel-conversation .open button.more").click();
    await frames(2);
    await step(1);
    out["all"] = [root.activeElement?.closest?.("[data-all]") !== null, root.querySelector("#panel-conversation .open .long").textContent.length > 9000];
    for (const name of ["table", "request", "events"]) {
      root.querySelector(`#tab-${name}`).click();
      await frames(2);
      if (name === "table") root.querySelectorAll("#panel-table button.plain")[1].focus();
      if (name === "request") (root.querySelector("#panel-request summary").click(), root.querySelector("#panel-request summary").focus());
      if (name === "events") root.querySelector("#panel-events .json").focus();
      const before = shown();
      await step(9);
      out[name] = [before, shown(), name === "request" ? root.querySelector("#panel-request details").open : undefined];
    }
    // At the end there is no next event, and whoever was at its button stays there.
    const on = root.querySelector("[aria-label='Next event']");
    inspector.n = inspector.end - 1;
    await frames(2);
    on.focus();
    on.click();
    await frames(2);
    out["on"] = [shown().label, on.getAttribute("aria-disabled")];
    const panel = root.querySelector("#panel-conversation");
    inspector.n = inspector.end - 1;
    await frames(2);
    panel.scrollTop = 40;
    await step(6);
    out["scroll"] = panel.scrollTop;
    run.abort();
    await run;
    return out;
  });
  assert.deepEqual(found["thinking"], [{ tag: "SUMMARY", text: "thinking", label: null }, false]);
  assert.deepEqual(found["all"], [true, true]);
  for (const name of ["table", "request", "events"]) {
    const [before, after, open] = /** @type {any} */ (found[name]);
    assert.deepEqual(after, before, name);
    assert.ok(before.tag, name);
    if (name === "request") assert.equal(open, true);
  }
  assert.deepEqual(found["on"], ["Next event", "true"]);
  assert.equal(found["scroll"], 40);
}));

test("an agent elsewhere is inspected from the page, while it works", { timeout: 120_000 }, () => onPage(async (page) => {
  await page.evaluate(async () => {
    const { RemoteAgent, inspector } = /** @type {any} */ (globalThis);
    const agent = new RemoteAgent({ url: new URL("/agent", location.href) });
    inspector.source = agent;
    await agent.ready();
    Object.assign(globalThis, { agent, run: agent.prompt("What is it?") });
  });
  await page.waitForFunction(() => /** @type {any} */ (globalThis).inspector.frame.phase === "running tools");
  await drawn(page);
  assert.match(await page.innerText("turnwheel-inspector .facts"), /running tools/);
  assert.match(await page.innerText(panel("conversation")), /What is it\?[\s\S]*I look it up\.[\s\S]*search runs/);
  await shot(page, "elsewhere-running");
  gate.resolve("6 times 7");
  await page.evaluate(async () => void (await /** @type {any} */ (globalThis).run));
  await drawn(page);
  const { messages, distantly } = await page.evaluate(() => ({ messages: /** @type {any} */ (globalThis).inspector.frame.messages, distantly: /** @type {any} */ (globalThis).agent.messages }));
  assert.deepEqual(messages, JSON.parse(JSON.stringify(distant.messages)));
  assert.deepEqual(messages, distantly);
  await page.click(tab("request"));
  await drawn(page);
  assert.match(await page.innerText(panel("request")), /Be brief\.[\s\S]*6 times 7/);
}));

test("what a page does with it: the fork, the source that is no source, leaving and coming back", { timeout: 120_000 }, () => onPage(async (page) => {
  const found = await page.evaluate(async () => {
    const { inspector, frames, InspectorLog, Agent, scripted } = /** @type {any} */ (globalThis);
    /** @type {any} */
    const seen = {};
    inspector.addEventListener("turnwheel-fork", (/** @type {any} */ { detail }) => (seen.fork = { n: detail.n, roles: detail.frame.messages.map((/** @type {any} */ { role }) => role), isSource: detail.source === inspector.source }));
    const agent = new Agent({ model: scripted(["Hello."]) });
    inspector.source = agent;
    await agent.prompt("Hi");
    await frames(2);
    const click = (/** @type {string} */ name) => [...inspector.shadowRoot.querySelectorAll("button")].find((button) => button.textContent === name)?.click();
    inspector.n = 4;
    click("Fork here");
    const refusal = (/** @type {() => void} */ work) => {
      try {
        work();
      } catch (error) {
        return /** @type {any} */ (error).message;
      }
    };
    seen.refused = [() => (inspector.source = 17), () => (inspector.source = '{"tape":1}'), () => (inspector.n = Number.NaN), () => (inspector.n = "4")].map(refusal);
    // A log that is the page's outlives the element's place in it.
    const log = new InspectorLog();
    log.follow(agent);
    inspector.source = log;
    const parent = inspector.parentNode;
    inspector.remove();
    await agent.prompt("Again");
    parent.append(inspector);
    await frames(3);
    seen.after = inspector.frame.messages.length;
    // A property that was set before there was the element.
    const early = /** @type {any} */ (document.createElement("early-inspector"));
    early.source = log;
    document.body.append(early);
    customElements.define("early-inspector", class extends inspector.constructor {});
    await frames(3);
    seen.early = early.frame.messages.length;
    return seen;
  });
  assert.deepEqual(found.fork, { n: 4, roles: ["user"], isSource: true });
  assert.deepEqual(found.refused, [
    "`source` must be an agent, a remote agent, a tape or an InspectorLog, got a number",
    "`source` must be an agent, a remote agent, a tape or an InspectorLog, got a string; Tape.parse(text) of turnwheel/tape makes a tape of a text",
    "`n` must be a number of events, got NaN",
    "`n` must be a number of events, got a string",
  ]);
  assert.equal(found.after, 4);
  assert.equal(found.early, 4);
}));

const noTapes = existsSync(new URL("../../../pkg/tape.js", import.meta.url)) ? false : "this package has no turnwheel/tape";

test("a tape: it is opened from a file, and what is shown at an event is the checkpoint that was taken there live", { timeout: 120_000, skip: noTapes }, () => onPage(async (page) => {
  const { text, taken } = await page.evaluate(async () => {
    const { Agent, scripted, tool } = /** @type {any} */ (globalThis);
    const { record } = await import(/** @type {any} */ ("/pkg/tape.js"));
    const make = (/** @type {string} */ name, more = {}) => tool({ name, description: name, parameters: { type: "object" }, execute: () => `${name} is done`, ...more });
    const model = scripted([{ thinking: "Hm.", text: ["I ", "look."], toolCalls: [{ callId: "a", toolName: "add" }, { callId: "b", toolName: "pay" }] }, { text: ["All ", "done."] }, { error: { code: "context_overflow", message: "too long" } }, "And more."]);
    const compaction = { engine: async (/** @type {any[]} */ messages) => ({ messages: messages.slice(-1), report: { text: "in short" } }) };
    const agent = new Agent({ model, tools: [make("add"), make("pay", { requiresApproval: true })], systemPrompt: "Be brief.", compaction });
    const recorder = await record(agent);
    /** @type {any[]} */
    const taken = [];
    agent.subscribe((/** @type {any} */ event) => {
      taken.push({ type: event.type, messages: JSON.parse(JSON.stringify(agent.messages)), questions: agent.pendingQuestions.map(({ id }) => id) });
      if (event.type === "tool_approval_requested") setTimeout(() => agent.resolve(event.id, "approve"));
    });
    await agent.prompt("Go");
    recorder.note("half of it");
    await agent.prompt("Go on");
    recorder.stop();
    return { text: recorder.toText(), taken };
  });
  await page.setInputFiles("turnwheel-inspector input[type=file]", { name: "run.tape", mimeType: "application/jsonl", buffer: Buffer.from(text) });
  await page.waitForFunction((count) => /** @type {any} */ (globalThis).inspector.end === count, taken.length);
  await drawn(page);
  for (const [index, { type, messages, questions }] of taken.entries()) {
    await inPage(page, `inspector.n = ${index + 1}`);
    await drawn(page);
    const found = await page.evaluate(() => {
      const { frame, shadowRoot } = /** @type {any} */ (globalThis).inspector;
      const articles = shadowRoot.querySelectorAll("#panel-conversation .messages > article").length - (frame.streaming ? 1 : 0) - frame.calls.filter((/** @type {any} */ call) => !frame.messages.some((/** @type {any} */ message) => message.callId === call.callId)).length;
      return { type: frame.event.type, messages: frame.messages, questions: frame.pendingQuestions.map((/** @type {any} */ { id }) => id), articles, hasCheckpoint: frame.checkpoint.version === 1 };
    });
    assert.deepEqual(found, { type, messages, questions, articles: messages.length, hasCheckpoint: true }, `at ${index + 1}`);
  }
  assert.deepEqual(await inPage(page, "inspector.log.lanes.marks.map(({ kind, text }) => kind + ' ' + text)"), ["said Go", "note half of it", "said Go on"]);
  await page.click(tab("request"));
  await drawn(page);
  assert.match(await page.innerText(panel("request")), /Be brief\.[\s\S]*add, pay/);
  const [saved] = await Promise.all([page.waitForEvent("download"), page.click("turnwheel-inspector button:has-text('Save')")]);
  assert.equal(saved.suggestedFilename(), "run.tape");
  await shot(page, "tape");
  // What is no tape is said, and what was shown stays.
  await page.setInputFiles("turnwheel-inspector input[type=file]", { name: "holiday.txt", mimeType: "text/plain", buffer: Buffer.from("sunshine") });
  await page.waitForFunction(() => /holiday\.txt/.test(/** @type {any} */ (globalThis).inspector.shadowRoot.querySelector("[role=status].note").textContent));
  assert.equal(await inPage(page, "inspector.end"), taken.length);
}));
