// @ts-check
// Models on the device: the browser's own, and weights that are fetched.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { accessible, answer, by, card, checkPage, CORS, drawn, forgive, full, idle, reload, secondTab, send, shot, withServer } from "./kit.mjs";

/** @typedef {import("playwright-core").Page} Page */

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
