// @ts-check
// Pages that listen to an agent on their server, in Chromium: connections that are cut, two pages at once, one run in one
// response, a page of another origin.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { Readable } from "node:stream";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { chromium } from "playwright-core";
import { agentHandler } from "../../../pkg/server.js";
import { Agent, deferred, scripted, testTool } from "../kit.mjs";

const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const { outputFiles } = await build({ entryPoints: [fileURLToPath(new URL("remote/page.mjs", import.meta.url))], bundle: true, write: false, format: "esm", logLevel: "silent" });
const script = outputFiles[0]?.text ?? "";

const gates = [deferred(), deferred()];
const steps = [{ text: ["one ", "two "], toolCalls: [{ callId: "a", toolName: "wait" }] }, { text: ["three"], toolCalls: [{ callId: "b", toolName: "wait" }] }, { text: ["four"] }];
let next = 0;
const agent = new Agent({ model: scripted(steps), tools: [testTool("wait", () => gates[next++]?.promise)] });
const handler = agentHandler(agent);
const single = new Agent({ model: scripted([{ text: Array.from({ length: 200 }, (_, i) => `${i} `) }]) }).prompt("Go");
single.toResponse();
let cuts = 0;

/** @param {import("node:http").IncomingMessage} request @returns {Promise<Response>} */
async function answer(request) {
  const { url = "/", method = "GET", headers } = request;
  if (url === "/") return new Response('<!doctype html><title>remote</title><script type="module" src="/page.js"></script>', { headers: { "content-type": "text/html" } });
  if (url === "/page.js") return new Response(script, { headers: { "content-type": "text/javascript" } });
  if (url === "/run") {
    const last = /** @type {string | undefined} */ (headers["last-event-id"]);
    const { body } = single.toResponse({ lastEventId: last ?? null });
    // The connection breaks three times after its first piece.
    if (cuts++ >= 3) return new Response(body, { headers: { "content-type": "text/event-stream" } });
    const reader = /** @type {any} */ (body).getReader();
    const { value } = await reader.read();
    return new Response(value.subarray(0, value.length - 20), { headers: { "content-type": "text/event-stream" } });
  }
  const body = method === "POST" ? /** @type {any} */ (Readable.toWeb(request)) : undefined;
  return handler(new Request(`http://${headers.host}${url}`, /** @type {any} */ ({ method, headers, body, duplex: "half" })));
}
const site = createServer(async (request, response) => {
  const { status, headers, body } = await answer(request);
  response.writeHead(status, Object.fromEntries(headers));
  response.flushHeaders();
  if (!body) return void response.end();
  const readable = Readable.fromWeb(/** @type {any} */ (body)).on("error", () => {});
  response.on("close", () => readable.destroy());
  readable.pipe(response);
});
await new Promise((resolve) => site.listen(0, "127.0.0.1", () => resolve(undefined)));
const { port } = /** @type {any} */ (site.address());
const browser = await chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: FLAGS });
after(async () => {
  await browser.close();
  site.closeAllConnections();
  site.close();
});

async function open() {
  const page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${port}/`);
  await page.waitForSelector("html[data-ready]", { state: "attached", timeout: 60_000 });
  return page;
}
const inPage = (/** @type {any} */ page, /** @type {string} */ code) => page.evaluate(code);

test("two pages hear one run, each event once, over connections that are cut", { timeout: 180_000 }, async () => {
  /** @type {any[]} */
  const events = [];
  agent.subscribe((event) => void events.push(JSON.parse(JSON.stringify(event))));
  const [one, two] = await Promise.all([open(), open()]);
  await inPage(one, "begin()");
  for (const gate of gates) {
    await two.waitForFunction((n) => /** @type {any} */ (globalThis).received.filter((/** @type {any} */ { type }) => type === "tool_execution_start").length === n, gates.indexOf(gate) + 1);
    site.closeAllConnections();
    gate.resolve("ok");
  }
  assert.equal(await inPage(one, "end()"), "four");
  await inPage(two, "agent.waitForIdle()");
  for (const page of [one, two]) {
    assert.deepEqual(await inPage(page, "received"), events);
    assert.deepEqual(await inPage(page, "agent.messages"), JSON.parse(JSON.stringify(agent.messages)));
  }
  const state = await fetch(`http://127.0.0.1:${port}/agent/state`, { headers: { origin: "http://other.example" } });
  assert.equal(state.status, 403);
  await Promise.all([one.close(), two.close()]);
});

test("one run in one response, over three cuts", async () => {
  const page = await open();
  const { text, result } = await inPage(page, "one()");
  assert.equal(text, Array.from({ length: 200 }, (_, i) => `${i} `).join(""));
  assert.equal(result, text);
  assert.ok(cuts > 3);
  await page.close();
});
