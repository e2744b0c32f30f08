// @ts-check
// The Vite and React example, built as a user builds it and used in Chromium.

import assert from "node:assert/strict";
import { cp, mkdir, mkdtemp, readFile, rm, symlink } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { build } from "vite";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
/** @type {Record<string, string>} */
const TYPES = { ".js": "text/javascript", ".css": "text/css", ".wasm": "application/wasm", ".html": "text/html" };

const home = await mkdtemp(join(tmpdir(), "turnwheel-react-"));
await cp(join(ROOT, "www/examples/react"), home, { recursive: true });
await mkdir(join(home, "node_modules/@vitejs"), { recursive: true });
for (const name of ["react", "react-dom", "@vitejs/plugin-react", "vite"]) await symlink(join(ROOT, "node_modules", name), join(home, "node_modules", name));
await symlink(join(ROOT, "pkg"), join(home, "node_modules/turnwheel"));
await build({ root: home, configFile: join(home, "vite.config.js"), logLevel: "error" });

const site = createServer(async (request, response) => {
  const path = request.url === "/" ? "/index.html" : (request.url ?? "");
  const body = await readFile(join(home, "dist", path)).catch(() => undefined);
  response.writeHead(body ? 200 : 404, { "content-type": TYPES[extname(path)] ?? "text/plain" }).end(body);
});
await new Promise((resolve) => site.listen(0, "127.0.0.1", () => resolve(undefined)));
const browser = await chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: FLAGS });
after(async () => {
  await browser.close();
  site.closeAllConnections();
  site.close();
  await rm(home, { recursive: true, force: true });
});

const chunk = (/** @type {any} */ delta, /** @type {string | null} */ reason = null) => `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: reason }] })}\n\n`;
const CORS = { "access-control-allow-origin": "*", "access-control-allow-headers": "*" };

test("the example is built, and talks, asks, is steered and stopped", async () => {
  const page = await browser.newPage();
  page.setDefaultTimeout(60_000);
  /** @type {string[]} */
  const complaints = [];
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("console", (message) => { if (["error", "warning"].includes(message.type()) && !/favicon|404/.test(message.text())) complaints.push(message.text()); });
  const answers = [
    chunk({ tool_calls: [{ index: 0, id: "c", function: { name: "rename_page", arguments: '{"title":"Turning"}' } }] }, "tool_calls"),
    chunk({ content: "It is " }) + chunk({ content: "done." }, "stop"),
  ];
  await page.route("http://localhost:11434/**", (route) => {
    if (route.request().method() === "OPTIONS") return route.fulfill({ status: 204, headers: CORS });
    const body = answers.shift();
    // Without an answer it waits until it is stopped.
    return body === undefined ? undefined : route.fulfill({ headers: { ...CORS, "content-type": "text/event-stream" }, body: `${body}data: [DONE]\n\n` });
  });
  await page.goto(`http://127.0.0.1:${/** @type {any} */ (site.address()).port}/`);
  await page.fill("input", "Rename this page");
  await page.press("input", "Enter");
  await page.waitForSelector('.call[data-state="approval"]');
  await page.click('button:text-is("Allow")');
  await page.waitForSelector('.assistant:has-text("It is done.")');
  assert.equal(await page.title(), "Turning");
  await page.waitForSelector('button:text-is("Send")');
  await page.fill("input", "And now wait");
  await page.press("input", "Enter");
  await page.waitForSelector(".hint");
  await page.fill("input", "Never mind");
  await page.press("input", "Enter");
  await page.waitForSelector('.queued:has-text("Never mind")');
  await page.click('button:text-is("Stop")');
  await page.waitForSelector('button:text-is("Send")');
  assert.equal(await page.locator(".error").count(), 0);
  await page.waitForSelector('nav .chat:text-is("Rename this page")');
  await page.click('nav button:text-is("New chat")');
  await page.waitForSelector('.messages:not(:has(article))', { state: "attached" });
  await page.click('nav .chat:text-is("Rename this page")');
  await page.waitForSelector('.assistant:has-text("It is done.")');
  await page.reload();
  await page.waitForSelector('.assistant:has-text("It is done.")');
  await page.waitForSelector('nav .chat:text-is("Rename this page")');
  assert.deepEqual(complaints, []);
});
