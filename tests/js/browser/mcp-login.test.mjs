// @ts-check
// A login to an MCP server from a page: to the login's own origin and back, kept in the page's storage, renewed, and still
// there after a reload.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { Readable } from "node:stream";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { chromium } from "playwright-core";
import { loginServer } from "../mcp/oauth.mjs";

const here = (/** @type {string} */ path) => fileURLToPath(new URL(path, import.meta.url));
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

const { outputFiles } = await build({
  entryPoints: [here("../mcp/login-page.mjs")], bundle: true, write: false, format: "esm", platform: "browser", outdir: "/", logLevel: "error",
  alias: { turnwheel: here("../../../pkg/entry/web.js"), "turnwheel/mcp": here("../../../pkg/mcp.js") },
});
/** @type {Record<string, [string, any]>} */
const FILES = {
  "/": ["text/html", '<!doctype html><title>login</title><script type="module" src="/page.js"></script>'],
  "/page.js": ["text/javascript", outputFiles[0]?.contents],
  "/turnwheel.wasm": ["application/wasm", await readFile(here("../../../pkg/turnwheel.wasm"))],
};
const site = createServer((request, response) => {
  const [type, body] = FILES[new URL(request.url ?? "", "http://x").pathname] ?? [];
  if (body === undefined) return void response.writeHead(404).end();
  response.setHeader("content-security-policy", "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src *").setHeader("content-type", type ?? "").end(body);
});
const guarded = loginServer();
const server = createServer(async (request, response) => {
  const { method = "GET", headers, url } = request;
  const body = method === "GET" || method === "HEAD" ? undefined : /** @type {any} */ (Readable.toWeb(request));
  const answer = await guarded.handle(new Request(`http://${headers.host}${url}`, /** @type {any} */ ({ method, headers, body, duplex: "half" })));
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  response.end(Buffer.from(await answer.arrayBuffer()));
});
for (const one of [site, server]) await new Promise((resolve) => one.listen(0, "127.0.0.1", () => resolve(undefined)));
const portOf = (/** @type {any} */ one) => one.address().port;
const [home, mcp] = [`http://127.0.0.1:${portOf(site)}/`, `http://127.0.0.1:${portOf(server)}/mcp`];

const browser = await chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: FLAGS });
after(async () => {
  await browser.close();
  for (const one of [site, server]) {
    one.closeAllConnections();
    one.close();
  }
});

test("a page logs in, comes back, calls a tool; after a reload it needs no login, and what ran out is renewed", async () => {
  const page = await browser.newPage();
  const open = (/** @type {string} */ hash) => page.goto(`${home}?mcp=${encodeURIComponent(mcp)}${hash}`);
  /** What the page shows, once it shows it. */
  const shown = async () => {
    await page.waitForSelector("html[data-said]", { state: "attached", timeout: 60_000 });
    return page.evaluate(() => document.documentElement.dataset["said"]);
  };
  await open("");
  await page.click("text=Let it in", { timeout: 60_000 });
  assert.match((await shown()) ?? "", /^the secret/);
  assert.equal(new URL(page.url()).searchParams.get("code"), null, "the code does not stay in the address");
  const logins = () => guarded.log.filter((line) => line === "GET /authorize").length;
  assert.equal(logins(), 1);
  await open("&again");
  assert.match((await shown()) ?? "", /^the secret/);
  guarded.expire();
  await open("&later");
  assert.match((await shown()) ?? "", /^the secret/);
  assert.deepEqual([logins(), guarded.log.filter((line) => line === "POST /token").length], [1, 2]);
  assert.equal(await page.evaluate(() => Object.keys(localStorage).filter((key) => key.endsWith(".tokens")).length), 1);
});
