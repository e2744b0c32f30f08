// @ts-check
// `useAgent` in Chromium, with the oldest and the newest supported React: how often it renders,
// and what it leaves behind.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { chromium } from "playwright-core";

const here = (/** @type {string} */ path) => fileURLToPath(new URL(path, import.meta.url));
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const PACKAGE = { turnwheel: here("../../../pkg/entry/web.js"), "turnwheel/react": here("../../../pkg/react.js") };
const OLD = { react: here("../../../node_modules/react18"), "react-dom": here("../../../node_modules/react-dom18") };

/** @param {Record<string, string>} alias */
async function bundle(alias) {
  const { outputFiles } = await build({
    entryPoints: [here("../react/page.jsx")], bundle: true, write: false, format: "esm", jsx: "automatic", outdir: "/",
    logLevel: "error", alias: { ...PACKAGE, ...alias },
    define: { "process.env.NODE_ENV": '"development"' },
  });
  return outputFiles;
}

/** @type {Map<string, Uint8Array>} */
const files = new Map([["/turnwheel.wasm", await readFile(here("../../../pkg/turnwheel.wasm"))]]);
for (const [version, alias] of /** @type {const} */ ([["19", {}], ["18", OLD]])) {
  for (const { path, contents } of await bundle(alias)) files.set(path === "/page.js" ? `/${version}.js` : path, contents);
}
const TYPES = [[/\.js$/, "text/javascript"], [/\.wasm$/, "application/wasm"]];
const site = createServer((request, response) => {
  const path = request.url ?? "";
  const version = /^\/(18|19)$/.exec(path)?.[1];
  if (version) return void response.setHeader("content-type", "text/html").end(`<!doctype html><title>react</title><div id="root"></div><script type="module" src="/${version}.js"></script>`);
  const body = files.get(path);
  if (!body) return void response.writeHead(404).end();
  response.setHeader("content-type", TYPES.find(([ending]) => /** @type {RegExp} */ (ending).test(path))?.[1]?.toString() ?? "text/plain").end(body);
});
await new Promise((resolve) => site.listen(0, "127.0.0.1", () => resolve(undefined)));
const browser = await chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: FLAGS });
after(async () => {
  await browser.close();
  site.closeAllConnections();
  site.close();
});

/**
 * Frames driven by timers, whose order does not depend on how busy the machine is: `useAgent` would give up
 * on a frame that is 200 ms late.
 */
const FRAMES = `{
  let queue = new Map(), last = 0;
  const tick = () => {
    const now = queue;
    queue = new Map();
    for (const draw of now.values()) draw(performance.now());
    setTimeout(tick, 16);
  };
  tick();
  globalThis.requestAnimationFrame = (draw) => (queue.set(++last, draw), last);
  globalThis.cancelAnimationFrame = (id) => void queue.delete(id);
}`;

/** @param {string} version @param {string} [first] runs before the page */
async function open(version, first) {
  const page = await browser.newPage();
  page.setDefaultTimeout(60_000);
  if (first) await page.addInitScript(first);
  await page.goto(`http://127.0.0.1:${/** @type {any} */ (site.address()).port}/${version}`);
  await page.waitForSelector("html[data-ready]", { state: "attached" });
  return page;
}

/**
 * Runs code in the page and returns its result.
 * @param {import("playwright-core").Page} page @param {string} code @returns {Promise<any>}
 */
const run = (page, code) => page.evaluate(`Promise.race([(async () => { ${code} })(), new Promise((_, fail) => setTimeout(fail, 60000, new Error("it takes too long")))])`);

for (const version of ["19", "18"]) {
  test(`React ${version}: 10,000 pieces make at most one rendering per frame, and only of what changed`, async () => {
    const page = await open(version, FRAMES);
    const { status, length, ...outcome } = await run(page, `
      stream(10000);
      const { text } = await view.send("Go");
      const end = seen.frame + 2;
      while (seen.frame < end) await later();
      return { status: document.querySelector("main").dataset.status, length: document.querySelector("li:last-child").textContent.length, renders: seen.renders, rows: seen.rows, frames: seen.frame, errors: seen.errors, version };
    `);
    assert.ok(outcome.version.startsWith(version), outcome.version);
    assert.deepEqual([status, length, outcome.errors], ["idle", 10_000, []]);
    assert.ok(outcome.renders.length > 5 && outcome.renders.length <= outcome.frames + 1, `${outcome.renders.length} renderings in ${outcome.frames} frames`);
    const perFrame = outcome.renders.reduce((/** @type {any} */ all, /** @type {number} */ frame) => ({ ...all, [frame]: (all[frame] ?? 0) + 1 }), {});
    // Before the first frame the page is shown once, and again when it has subscribed.
    delete perFrame[outcome.renders[0]];
    assert.equal(Math.max(.../** @type {number[]} */ (Object.values(perFrame))), 1);
    assert.deepEqual([outcome.rows[0], outcome.rows[1] <= 2], [1, true], `rows were rendered ${JSON.stringify(outcome.rows)} times`);
    await page.close();
  });

  test(`React ${version}: steering, progress, approval, an error`, async () => {
    const page = await open(version);
    await run(page, 'tools(); void view.send("Go");');
    await page.waitForSelector('#calls:text-is("slow running half")');
    assert.equal(await page.getAttribute("main", "data-status"), "tools");
    await run(page, 'void view.steer("stop that");');
    await page.waitForSelector('li:text-is("as you wish")');
    await page.waitForSelector('main[data-status="idle"]');
    assert.equal(await page.textContent("#queued"), "0");
    assert.deepEqual(await page.locator("li").evaluateAll((all) => all.map((one) => one.getAttribute("data-role"))), ["user", "assistant", "tool_result", "user", "assistant"]);
    await run(page, 'void view.send("Pay");');
    await page.waitForSelector('main[data-status="approval"]');
    await page.click("button");
    await page.waitForSelector('li:text-is("it is paid")');
    assert.equal(await page.locator("button").count(), 0);
    assert.equal(await run(page, "return gone();"), 0);
    await run(page, 'failing(); await view.send("Go");');
    await page.waitForSelector('main[data-status="error"] #error:text-is("no key")');
    assert.deepEqual(await run(page, "return seen.errors;"), []);
    await page.close();
  });

  test(`React ${version}: gone in the middle of a run, a component leaves nothing behind; its own agent stops, another goes on`, async () => {
    for (const isStrict of [false, true]) {
      const page = await open(version);
      const outcome = await run(page, `
        own({ isStrict: ${isStrict} });
        const run = view.send("Go");
        const { agent } = view;
        while (!(document.querySelector("li:last-child")?.textContent.length > 100)) await later();
        const subscribed = seen.subscribed;
        const left = await gone();
        const { stopReason } = await run;
        let after = "";
        try { agent.prompt("More"); } catch (error) { after = error.message; }
        return { subscribed, left, stopReason, after, made: seen.made, errors: seen.errors };
      `);
      assert.deepEqual(outcome, { subscribed: 1, left: 0, stopReason: "aborted", after: "the agent was disposed of", made: isStrict ? 2 : 1, errors: [] });
      const outside = await run(page, `
        stream(3000, { isStrict: ${isStrict} });
        const run = view.send("Go");
        while (!(document.querySelector("li:last-child")?.textContent.length > 100)) await later();
        const left = await gone();
        const { stopReason, text } = await run;
        return { left, stopReason, length: text.length, errors: seen.errors };
      `);
      assert.deepEqual(outside, { left: 0, stopReason: "completed", length: 3000, errors: [] });
      await page.close();
    }
  });

  test(`React ${version}: StrictMode, an effect that begins, another agent, stopping, the page from a server`, async () => {
    const page = await open(version);
    await run(page, "effect();");
    await page.waitForSelector('#effect:text-is("false 2")');
    await gone(page);
    assert.deepEqual(await run(page, "return exchange();"), ["one", "two"]);
    assert.equal(await run(page, "await later(); return seen.subscribed;"), 1);
    await gone(page);
    await run(page, 'stream(1000000, { isStrict: true }); void view.send("Go");');
    await page.waitForSelector('main[data-status="streaming"]');
    await run(page, 'view.stop("enough");');
    await page.waitForSelector('main[data-status="idle"]');
    await gone(page);
    await run(page, `hydrate('<main data-status="idle"><ul><li data-role="user">before</li></ul><p id="calls"></p><p id="queued">0</p><p id="error"></p></main>');`);
    await page.waitForFunction(() => /** @type {any} */ (globalThis).view.history.length === 1);
    await run(page, 'await later(); await view.send("Go");');
    await page.waitForSelector('li:text-is("hello")');
    assert.deepEqual(await run(page, "return seen.errors;"), []);
    await page.close();
  });
}

/** @param {import("playwright-core").Page} page */
async function gone(page) {
  await run(page, "await gone();");
}

test("a page in the background gets no frames, and shows all the same what happens", async () => {
  const page = await open("19");
  await page.evaluate(() => void (globalThis.requestAnimationFrame = () => 0));
  await run(page, 'stream(2000); await view.send("Go");');
  await page.waitForSelector('main[data-status="idle"] li:nth-child(3)');
  assert.equal((await page.textContent("li:last-child"))?.length, 2000);
  await page.close();
});

test("who tests a component says when a frame is", async () => {
  const page = await open("19");
  const said = await run(page, `
    stream(500, { options: { schedule: (work) => (work(), () => {}) } });
    await view.send("Go");
    return [document.querySelectorAll("li").length, seen.renders.length > 500];
  `);
  assert.deepEqual(said, [3, true]);
  await page.close();
});
