// @ts-check
// The tools of an MCP server in a page: the official server-everything over streamable HTTP, from another origin, under
// the policy that the package needs and no more.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { chromium } from "playwright-core";

const here = (/** @type {string} */ path) => fileURLToPath(new URL(path, import.meta.url));
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const POLICY = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src *";

const { outputFiles } = await build({
  entryPoints: [here("../mcp/page.mjs")], bundle: true, write: false, format: "esm", platform: "browser", outdir: "/", logLevel: "error",
  alias: { turnwheel: here("../../../pkg/entry/web.js"), "turnwheel/mcp": here("../../../pkg/mcp.js") },
});
/** @type {Record<string, [string, any]>} */
const FILES = {
  "/": ["text/html", '<!doctype html><title>mcp</title><script type="module" src="/page.js"></script>'],
  "/page.js": ["text/javascript", outputFiles[0]?.contents],
  "/turnwheel.wasm": ["application/wasm", await readFile(here("../../../pkg/turnwheel.wasm"))],
};
const site = createServer((request, response) => {
  const [type, body] = FILES[request.url ?? ""] ?? [];
  if (body === undefined) return void response.writeHead(404).end();
  response.setHeader("content-security-policy", POLICY).setHeader("content-type", type ?? "").end(body);
});
await new Promise((resolve) => site.listen(0, "127.0.0.1", () => resolve(undefined)));

const everything = createRequire(import.meta.url).resolve("@modelcontextprotocol/server-everything/dist/index.js");
const server = spawn(process.execPath, ["--require", here("../mcp/loopback.cjs"), everything, "streamableHttp"], { env: { ...process.env, PORT: "0" }, stdio: ["ignore", "pipe", "ignore"] });
const lines = createInterface({ input: server.stdout });
const url = await new Promise((resolve, reject) => {
  lines.on("line", (line) => { if (line.startsWith("port ")) resolve(`http://127.0.0.1:${line.slice(5)}/mcp`); });
  server.once("exit", () => reject(new Error("server-everything did not start")));
});

const browser = await chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: FLAGS });
after(async () => {
  server.kill();
  await browser.close();
  site.closeAllConnections();
  site.close();
});
const page = await browser.newPage();
await page.goto(`http://127.0.0.1:${/** @type {any} */ (site.address()).port}/`);
await page.waitForSelector("html[data-ready]", { state: "attached" });

/**
 * Returns what a function of the page returns.
 * @param {string} name @param {string} [given] @returns {Promise<any>}
 */
const inPage = (name, given) => page.evaluate(([name, given]) => Promise.race([/** @type {any} */ (globalThis)[name](given), new Promise((_, fail) => setTimeout(fail, 60_000, new Error("it takes too long")))]), /** @type {const} */ ([name ?? "", given]));

test("by its address: text, structured content under a policy without eval, a picture, progress", async () => {
  const { stopReason, results, updates } = await inPage("address", url);
  assert.equal(stopReason, "completed");
  const of = (/** @type {string} */ name) => results.find((/** @type {any} */ one) => one.toolName === `all__${name}`);
  assert.equal(of("echo").content[0].text, "Echo: hi");
  assert.equal(of("get-structured-content").details.structuredContent.humidity, 82);
  assert.equal(of("get-tiny-image").content.find((/** @type {any} */ block) => block.type === "image").mimeType, "image/png");
  assert.ok(updates.length >= 2 && updates[0].total === 3, JSON.stringify(updates));
});

test("an aborted call is called off at the server", async () => {
  const { stopReason, results, cancelled } = await inPage("abort", url);
  assert.deepEqual([stopReason, results[0].isError, cancelled], ["aborted", true, true]);
});

test("the server's list changes", async () => {
  assert.ok((await inPage("changes", url)) > 13);
});

test("a client of one's own that would compile code: the error names the way out", async () => {
  assert.match(await inPage("compiles", url), /make it with `jsonSchemaValidator` of turnwheel\/mcp/);
});

test("a server that is gone, and one that never was", async () => {
  assert.equal(await inPage("gone", url), "mcp-servers/everything");
  const exit = new Promise((resolve) => server.once("exit", resolve));
  server.kill();
  await exit;
  const { isError, content } = await inPage("after");
  assert.deepEqual([isError, /^.*mcp-servers\/everything cannot be reached: /.test(content[0].text)], [true, true], content[0].text);
  assert.match(await inPage("nobody", "http://127.0.0.1:9/mcp"), /no MCP server answers at http:\/\/127\.0\.0\.1:9\/mcp: Failed to fetch/);
});
