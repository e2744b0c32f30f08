// @ts-check
// Models behind addresses: wires, keys, errors, and what the choice says.

import assert from "node:assert/strict";
import { accessible, answer, baseUrl, by, check, checkPage, choose, CORS, drawn, forgive, idle, inWorker, reload, send, shot, withServer } from "./kit.mjs";

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
