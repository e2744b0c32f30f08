// @ts-check
// The package in Chromium: in a page and in a web worker, over real HTTP from servers of other origins, under a strict
// Content-Security-Policy.   node tests/js/browser/package.mjs
// Prints a line per check and `N passed, N failed`; ends with 1 if one failed.

import { createReadStream, existsSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { calls, recorded, says, serve, sse } from "../server.mjs";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
/** All that the package asks of a page's policy, and nothing more for scripts. */
const POLICY = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src *";
const TYPES = { ".js": "text/javascript", ".mjs": "text/javascript", ".wasm": "application/wasm", ".html": "text/html" };

/** @type {(() => unknown)[]} */
const ends = [];
const test = { after: (/** @type {() => unknown} */ end) => void ends.push(end) };
let passed = 0;
let failed = 0;

/** @param {string} name @param {unknown} failure @param {string} [more] */
function row(name, failure, more = "") {
  if (failure) failed += 1;
  else passed += 1;
  console.log(failure ? `FAILED  ${name}\n        ${String(failure).replaceAll("\n", "\n        ")}` : `ok      ${name}${more}`);
}

/** @param {string} name @param {() => unknown} check it gives what is wrong, if anything is */
async function check(name, check) {
  row(name, await Promise.resolve().then(check).catch((error) => error?.stack ?? error));
}

/** The files of the project that the page may load. How often each was asked for, by path. @type {Map<string, number>} */
const asked = new Map();
const site = createServer((request, response) => {
  const path = normalize(new URL(request.url ?? "/", "http://x").pathname);
  asked.set(path, (asked.get(path) ?? 0) + 1);
  response.setHeader("content-security-policy", POLICY);
  if (path === "/") return void response.setHeader("content-type", "text/html").end('<!doctype html><title>turnwheel</title><script type="module" src="/tests/js/browser/page.mjs"></script>');
  const file = join(ROOT, path);
  const known = (path.startsWith("/pkg/") || path.startsWith("/tests/js/")) && existsSync(file);
  if (!known) return void response.writeHead(404).end();
  response.setHeader("content-type", /** @type {any} */ (TYPES)[extname(file)] ?? "text/plain");
  createReadStream(file).pipe(response);
});
await new Promise((resolve) => site.listen(0, "127.0.0.1", () => resolve(undefined)));
ends.push(() => (site.closeAllConnections(), new Promise((resolve) => site.close(resolve))));
const port = /** @type {any} */ (site.address()).port;

const half = says(["half ", "never"]);
const silent = { body: half, silent: half.indexOf("\n\n") + 2 };
let isRead = () => {};
const broken = says(["one ", "two"]);
/** Answers by the first word of the path: the n-th of a list to the n-th request for it. @type {Record<string, any[]>} */
const ANSWERS = {
  unicode: [{ body: recorded("llamacpp-unicode"), cut: 7 }],
  tools: [calls(["a", '{"n":1}'], ["b", '{"n":2}']), says("both are done")],
  arguments: [{ body: sse(...Array.from({ length: 12 }, (_, i) => ({ choices: [{ index: 0, delta: { tool_calls: [{ index: 0, ...(i === 0 && { id: "w", type: "function" }), function: { ...(i === 0 && { name: "write" }), arguments: i === 0 ? '{"text":"' : i === 11 ? '"}' : "abcd" } }] } }] })), { choices: [{ index: 0, delta: {}, finish_reason: "tool_calls" }] }), cut: 150 }],
  silent: [silent], "silent-too": [silent], "silent-three": [silent],
  refused: [{ status: 401, body: JSON.stringify({ error: { message: "Incorrect API key provided: sk-browser-0123456789." } }) }],
  patience: [{ status: 429, headers: { "retry-after": "3" }, body: "{}" }, says("here I am")],
  broken: [{ body: broken, after: broken.indexOf("\n\n") + 2, until: () => new Promise((resolve) => (isRead = () => resolve(undefined))) }, broken],
};
/** Who asks next starts with the first answer again: page and worker ask the same. @type {Map<string, number>} */
let turns = new Map();
const models = await serve(test, (request) => {
  const name = request.path.split("/")[1];
  if (name === "read") return (isRead(), { body: "" });
  if (name === "closed") {
    const last = models.requests.findLast((one) => one.path.startsWith(`/${request.text}/`));
    return { headers: { "content-type": "text/plain" }, stream: () => last?.closed };
  }
  const turn = turns.get(name) ?? 0;
  turns.set(name, turn + 1);
  return ANSWERS[name]?.[turn];
}, { cors: true });
const closed = await serve(test, () => says("never read"));
const at = { models: models.url, closed: closed.url, nobody: "http://127.0.0.1:9" };

const browser = await chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: [...FLAGS, "--host-resolver-rules=MAP plain.test 127.0.0.1"] });
ends.push(() => browser.close());

/** @param {string} origin */
async function open(origin) {
  const page = await browser.newPage();
  /** @type {string[]} */
  const complaints = [];
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("console", (message) => {
    if (message.type() === "error" && !/CORS|ERR_|status of 4|favicon/.test(message.text())) complaints.push(message.text());
  });
  await page.goto(origin);
  await page.waitForSelector("html[data-ready]", { timeout: 20_000 });
  return { page, complaints };
}

try {
  const { page, complaints } = await open(`http://127.0.0.1:${port}/`);
  await check("importing the package loads no wasm", () => asked.has("/pkg/turnwheel.wasm") && "it was loaded");
  for (const place of ["inPage", "inWorker"]) {
    turns = new Map();
    const rows = await page.evaluate(([place, at]) => /** @type {any} */ (globalThis)[place](at), /** @type {const} */ ([place, at]));
    for (const { name, failure, ms } of rows) row(`${place === "inPage" ? "page" : "worker"}: ${name}`, failure, ` (${ms} ms)`);
  }
  await check("the wasm file was fetched once by the page and once by its worker", () => asked.get("/pkg/turnwheel.wasm") !== 2 && `${asked.get("/pkg/turnwheel.wasm")} times`);
  await check("the server that refuses pages was never asked the question itself", () => closed.requests.length > 0 && "it was");
  await check(`the policy is enough: ${POLICY.split("; ")[1]}`, () => complaints.length > 0 && complaints.join("\n"));
  await check("without wasm-unsafe-eval the run says what is missing", async () => {
    const bare = await browser.newPage();
    await bare.route("**/*", async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, headers: { ...response.headers(), "content-security-policy": POLICY.replace(" 'wasm-unsafe-eval'", "") } });
    });
    await bare.goto(`http://127.0.0.1:${port}/`);
    await bare.waitForSelector("html[data-ready]");
    turns = new Map();
    const rows = await bare.evaluate((at) => /** @type {any} */ (globalThis).inPage(at, "timers run on their own"), at);
    const told = rows[0]?.failure ?? "";
    return !/wasm-unsafe-eval|Content Security Policy|unsafe-eval/i.test(told) && `it says: ${told}`;
  });
  await check("a page over plain HTTP, where half of `crypto` is missing", async () => {
    const plain = await open(`http://plain.test:${port}/`);
    const secure = await plain.page.evaluate(() => isSecureContext);
    turns = new Map();
    const rows = await plain.page.evaluate((at) => /** @type {any} */ (globalThis).inPage(at), at);
    const wrong = rows.filter((/** @type {any} */ one) => one.failure).map((/** @type {any} */ one) => `${one.name}: ${one.failure}`);
    return (secure && "the page is a secure one after all") || wrong.join("\n");
  });
} catch (error) {
  row("the checks ran to their end", /** @type {any} */ (error)?.stack ?? error);
} finally {
  for (const end of ends.reverse()) await end();
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed > 0 ? 1 : 0;
