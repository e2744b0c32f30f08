// @ts-check
// A real model in place of the script: with a key, on a server, or in the page. Where keys go, what an error says, and weights
// that come over a connection that breaks.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { booksOf, by, CORS, open, reads, reload, stage, withServer } from "./demo/pay.mjs";

/** @typedef {import("playwright-core").Page} Page */

const on = stage();

/** @param {string} name @param {(page: Page, complaints: string[]) => Promise<void>} body */
function onPage(name, body) {
  test(name, { timeout: 180_000 }, async (t) => {
    const context = await on.browser.newContext({ viewport: { width: 1280, height: 800 } });
    t.after(() => context.close());
    const { page, complaints } = await open(context, `${on.site.url}?pace=0.1`);
    await body(page, complaints);
    // What the browser itself logs about failed requests is not the page's fault.
    assert.deepEqual(complaints.filter((text) => !/Failed to load resource|CORS policy|Unable to create a text session/.test(text)), []);
  });
}

/** @param {Page} page @param {{ address: string, key?: string, remember?: boolean }} choice */
async function choose(page, { address, key, remember = false }) {
  await page.click(by("choose-model"));
  await page.check(by("row-own"));
  await page.fill(by("base-url"), address);
  await page.fill(by("model-id"), "some-model");
  if (key) await page.fill(by("api-key"), key);
  if (remember) await page.check(by("remember"));
  await page.click(by("model-use"));
  await page.waitForSelector(by("model-dialog"), { state: "hidden" });
}

const stored = (/** @type {Page} */ page) => page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }));
const chunk = (/** @type {object} */ delta, /** @type {string | null} */ reason = null) => `data: ${JSON.stringify({ id: "1", object: "chat.completion.chunk", model: "small", choices: [{ index: 0, delta, finish_reason: reason }] })}\n\n`;
const ask = (/** @type {string} */ id, /** @type {object} */ given) => chunk({ tool_calls: [{ index: 0, id, type: "function", function: { name: "pay_invoice", arguments: JSON.stringify(given) } }] }, "tool_calls");

onPage("a model on a server pays; its key is sent there and kept nowhere; a second order of it is not sent", async (page) => {
  /** @type {(string | undefined)[]} */
  const keys = [];
  const order = { invoice: "INV-1001", to: "Lamplight Print", amount: 84 };
  const answers = [ask("a", order), ask("b", order), ask("c", { ...order, to: "Mallory" }), `${chunk({ content: "Hello from the server." })}${chunk({}, "stop")}`];
  await withServer((request, response) => {
    keys.push(request.headers.authorization);
    if (request.url?.endsWith("/models")) return void response.writeHead(200, { ...CORS, "content-type": "application/json" }).end('{"data":[{"id":"small"},{"id":"large"}]}');
    assert.equal(request.headers.origin, on.site.url.slice(0, -1));
    response.writeHead(200, { ...CORS, "content-type": "text/event-stream" }).end(`${answers.shift()}data: [DONE]\n\n`);
  }, async (address) => {
    await page.click(by("real"));
    await page.check(by("row-own"));
    await page.fill(by("base-url"), address);
    assert.match(String(await page.textContent("#key-note")), /^Kept in this page's memory/);
    await page.fill(by("api-key"), "key-of-the-test");
    await page.click(by("find-models"));
    await reads(page, by("found"), /small, large/);
    assert.equal(await page.inputValue(by("model-id")), "small");
    await page.click(by("model-use"));
    assert.match(await page.innerText(by("hint")), /your key go to 127\.0\.0\.1:\d+, on this machine/);
    await page.click(by("begin"));
    await reads(page, by("lines"), /paid before, by another call[\s\S]*refused by a rule[\s\S]*Hello from the server/);
    assert.ok(keys.length === 5 && keys.every((key) => key === "Bearer key-of-the-test"), keys.join(", "));
    const { payments, requests } = await booksOf(page);
    assert.deepEqual([payments.length, requests.length], [1, 1]);
    assert.doesNotMatch(await stored(page), /key-of-the-test/);
    await choose(page, { address, key: "key-of-the-test", remember: true });
    await reload(page);
    assert.match(String(await page.textContent(by("model-name"))), /some-model/);
    await page.click(by("choose-model"));
    await page.uncheck(by("remember"));
    await page.click(by("model-use"));
    assert.doesNotMatch(await stored(page), /key-of-the-test/, "unticked, it is forgotten");
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

for (const [row, header, key, path, frames] of WIRES) {
  onPage(`${row} can be chosen, with a key and an address of one's own; after a reload the run waits for the key`, async (page) => {
    /** @type {string[]} */
    const urls = [];
    await withServer((request, response) => {
      assert.equal(request.headers[header], key);
      urls.push(request.url ?? "");
      response.writeHead(200, { ...CORS, "content-type": "text/event-stream" }).end(frames.map((frame) => `data: ${JSON.stringify(frame)}\n\n`).join(""));
    }, async (address) => {
      const use = async () => {
        await page.click(by("choose-model"));
        await page.check(by(`row-${row}`));
        await page.fill(by("base-url"), address);
        await page.fill(by("model-id"), "small");
        await page.click(by("model-use"));
        assert.match(String(await page.textContent("#api-key-problem")), /answers with a key only/);
        await page.fill(by("api-key"), "my-own-key");
        await page.click(by("model-use"));
      };
      await use();
      await page.click(by("begin"));
      await reads(page, by("lines"), /By this wire/);
      await reads(page, by("status"), /^Done/);
      assert.ok(urls.length === 1 && path.test(urls[0] ?? ""), urls.join(" "));
      await reload(page);
      await reads(page, by("status"), /waits for its model: choose it again/);
      await use();
      await reads(page, by("status"), /^Done/);
      assert.equal(urls.length, 1, "what was answered is not asked again");
      assert.doesNotMatch(await stored(page), /my-own-key/);
    });
  });
}

onPage("a refused key, a refused origin and a missing server are different errors, each with the way out", async (page) => {
  await withServer((_, response) => {
    response.writeHead(401, { ...CORS, "content-type": "application/json" }).end('{"error":{"message":"Incorrect API key provided","type":"invalid_request_error","code":"invalid_api_key"}}');
  }, async (address) => {
    await choose(page, { address, key: "wrong" });
    await page.click(by("begin"));
    await reads(page, by("failure"), /refused the key \(401\)[\s\S]*Open the model settings/);
  });
  await withServer((_, response) => void response.writeHead(200).end("no header that lets a page in"), async (address) => {
    await choose(page, { address });
    await page.click(by("reset"));
    await page.click(by("begin"));
    await reads(page, by("failure"), /CORS/);
    assert.ok((await page.innerText(by("failure"))).includes(new URL(on.site.url).origin));
  });
  let gone = "";
  await withServer(() => {}, async (address) => void (gone = address));
  await choose(page, { address: gone });
  await page.click(by("reset"));
  await page.click(by("begin"));
  await reads(page, by("failure"), /is there a server/);
  assert.ok((await page.innerText(by("failure"))).includes(`No answer from ${gone}`));
  // The script takes over where the server failed.
  await page.click(by("choose-model"));
  await page.check(by("row-script"));
  await page.click(by("model-use"));
  await page.click(by("reset"));
  await page.click(by("begin"));
  await page.waitForSelector(by("question"));
});

onPage("every choice says what leaves the page, and to whom, and what it lacks", async (page) => {
  await page.click(by("choose-model"));
  for (const [row, says] of /** @type {[string, RegExp][]} */ ([
    ["script", /nothing\.$/], ["small", /nothing\.$/],
    ["ollama", /go to localhost:11434, on this machine, and to nobody else/],
    ["openai", /and your key go to api\.openai\.com, and to nobody else/], ["gemini", /generativelanguage\.googleapis\.com/],
  ])) {
    await page.check(by(`row-${row}`));
    assert.match(await page.innerText(by("leaves")), says, row);
  }
  await page.check(by("row-own"));
  await page.click(by("model-use"));
  assert.match(await page.innerText("#base-url-problem"), /Give the address/);
  assert.match(await page.innerText("#model-id-problem"), /Give the id/);
  assert.equal(await page.evaluate(() => document.activeElement?.id), "base-url");
  await page.keyboard.press("Escape");
  assert.equal(await page.textContent(by("model-name")), "Scripted clerk");
});

onPage("the browser's own model is offered where there is one, loads by a click, and answers in the page", async (page) => {
  await page.context().addInitScript(() => {
    class Session extends EventTarget {
      contextUsage = 0;
      contextWindow = 4000;
      measureContextUsage = async () => 10;
      async *promptStreaming(/** @type {any[]} */ messages) {
        yield JSON.stringify(messages).includes("INV-1001") ? '{"say": "Three are open."}' : '{"calls": [{"name": "read_inbox", "arguments": {}}]}';
      }
      destroy() {}
    }
    Object.assign(globalThis, { LanguageModel: { availability: async () => "available", create: async () => new Session() } });
  });
  await reload(page);
  await page.click(by("choose-model"));
  await page.waitForSelector(by("row-browser"));
  await page.check(by("row-browser"));
  assert.match(await page.innerText(by("leaves")), /What leaves the page: nothing/);
  await page.click(by("model-use"));
  await reads(page, by("model-name"), /own model/);
  await page.click(by("begin"));
  await reads(page, by("lines"), /read_inbox: INV-1001[\s\S]*Three are open/);
  await reads(page, by("status"), /^Done/);
});

onPage("a file that is no model says so, and the model stays as it was", async (page) => {
  await page.evaluate(() => void Object.defineProperty(navigator, "hardwareConcurrency", { get: () => 2 }));
  await page.click(by("choose-model"));
  await page.check(by("row-small"));
  await page.click(by("model-use"));
  assert.match(await page.innerText(by("file-problem")), /Choose a file that ends in \.gguf/);
  assert.match(await page.innerText(by("device-warning")), /Slow on this machine: it has 2 cores/);
  await page.setInputFiles(by("file"), { name: "notes.gguf", mimeType: "text/plain", buffer: Buffer.from("no weights at all") });
  await page.click(by("model-use"));
  await page.waitForSelector(`${by("loading")}[data-state="failed"]`);
  assert.match(await page.innerText(by("loading-text")), /notes is no GGUF file\. The model stays as it was/);
  await page.click(by("loading-cancel"));
  await page.waitForSelector(by("loading"), { state: "hidden" });
  assert.equal(await page.textContent(by("model-name")), "Scripted clerk");
});

const WEIGHTS = Buffer.from(`GGUF${Array.from({ length: 4000 }, (_, i) => `part ${i};`).join("")}`);

/** Chooses the weights of the site. @param {Page} page */
async function loadSmall(page) {
  await page.click(by("choose-model"));
  await page.check(by("row-small"));
  await page.click(by("model-use"));
}

onPage("weights whose connection breaks go on where they stopped, are checked, and are there at the next visit", async (page) => {
  await page.context().route("**/wllama/index.min.js", (route) => route.fulfill({ contentType: "text/javascript", body: `export class Wllama {
    async loadModel([blob]) { globalThis.loadedText = await blob.text(); }
    async exit() {}
    async createChatCompletion() {
      return (async function* () {
        for (const content of ["It is ", "loaded."]) yield { choices: [{ delta: { content } }] };
        yield { choices: [{ delta: {}, finish_reason: "stop" }], usage: { prompt_tokens: 9, completion_tokens: 5 } };
      })();
    }
  }` }));
  /** @type {(string | undefined)[]} */
  const asked = [];
  await withServer((request, response) => {
    asked.push(request.headers.range);
    const from = Number(/bytes=(\d+)-/.exec(request.headers.range ?? "")?.[1] ?? 0);
    const rest = WEIGHTS.subarray(from, [1000, 1000, 20_000][asked.length - 1] ?? WEIGHTS.length);
    response.writeHead(from > 0 ? 206 : 200, { ...CORS, "content-length": WEIGHTS.length - from });
    response.write(rest, () => void (from + rest.length === WEIGHTS.length ? response.end() : setTimeout(() => response.destroy(), 200)));
  }, async (address) => {
    const sha256 = createHash("sha256").update(WEIGHTS).digest("hex");
    await page.context().route("**/site.json", (route) => route.fulfill({ json: { weights: { url: `${address}/tiny.gguf`, name: "Tiny", bytes: WEIGHTS.length, sha256 } } }));
    await reload(page);
    await loadSmall(page);
    await reads(page, by("loading-text"), /The connection broke\. Fetching the rest of Tiny/);
    await reads(page, by("model-name"), /^Tiny$/);
    assert.equal(await page.evaluate(() => /** @type {any} */ (globalThis)["loadedText"]), WEIGHTS.toString());
    await page.click(by("begin"));
    await reads(page, by("lines"), /It is loaded/);
    await reload(page);
    await reads(page, by("status"), /waits for its model/);
    await loadSmall(page);
    await reads(page, by("status"), /^Done/);
  });
  assert.deepEqual(asked, [undefined, "bytes=1000-", "bytes=1000-", "bytes=20000-"]);
});

onPage("weights that are not what was announced are not used, and not kept", async (page) => {
  await page.route("**/site.json", (route) => route.fulfill({ json: { weights: { url: "https://models.example/tiny.gguf", name: "Tiny", bytes: 17, sha256: "0".repeat(64) } } }));
  let body = "GGUF, and so on: ";
  await page.route("https://models.example/tiny.gguf", (route) => route.fulfill({ body, headers: { "access-control-allow-origin": "*" } }));
  await reload(page);
  for (const [sent, says] of /** @type {[string, RegExp][]} */ ([["GGUF, and so on: ", /something else than what was announced/], ["GGUF", /1 MB came instead of 1 MB/]])) {
    body = sent;
    await loadSmall(page);
    await reads(page, `${by("loading")}[data-state="failed"] ${by("loading-text")}`, says);
    await page.click(by("loading-cancel"));
  }
  assert.equal(await page.evaluate(() => caches.open("turnwheel-demo-weights").then((cache) => cache.keys()).then((keys) => keys.filter(({ url }) => /from=0$/.test(url)).length)), 0);
});
